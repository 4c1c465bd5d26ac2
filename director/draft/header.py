"""The head of a draft: everything but its nodes. It is made from the goal, and changed key by key."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from director.draft.edits import Edit, is_whole, read
from director.draft.lines import Item, Lines, data_at, in_lines, shifted, written
from nodes.errors import ModelError
from nodes.template import OPENING
from nodes.values import Json
from runtime.browser.origins import origin
from runtime.language import writer
from runtime.language.workflow import Workflow
from runtime.language.yaml_text import Document, Path

if TYPE_CHECKING:
    from director.draft.goal import Goal

BASE = "base_url"  # the input with the address of the site
LONGEST_NAME = 60  # limit of a name made from a goal, in characters

ORDER = [field.alias or name for name, field in Workflow.model_fields.items()]
"""The keys of a file, in the order in which they are written."""

_TYPES = {bool: "boolean", int: "integer", float: "number", list: "list", dict: "map"}

_SENTENCE = re.compile(r"(?<=[.!?])\s|\n")


def begun(goal: Goal) -> str:
    """Return the head of a new draft as text, made only from what the person gave.

    The goal gives the name and the description, the site's origin the default of the input ``base_url``. Other inputs have no default: a
    run that omits one must not act on the build's values.
    Secrets are listed by name. Origins of inputs that are addresses may be opened.
    """
    values = given(goal)
    inputs: dict[str, Json] = {name: {"type": _TYPES.get(type(value), "string")} for name, value in values.items()}
    # References in a default are not resolved: a value that looks like one must be given with each run.
    if BASE in values and OPENING not in str(values[BASE]):
        inputs[BASE]["default"] = values[BASE]
    addresses = [name for name, value in values.items() if origin(str(value))]
    data: dict[str, Json] = {"version": 1, "name": name_of(goal.goal)}
    if goal.goal.strip():
        data["description"] = " ".join(goal.goal.split())
    more: dict[str, Json] = {"secrets": [*goal.secrets]} if goal.secrets else {}
    if addresses:
        more["allowed_origins"] = [f"{{{{ inputs.{name} }}}}" for name in addresses]
    declared = "\n".join([*written("inputs", inputs), ""]) if inputs else ""
    return "".join([writer.text(data), declared, writer.text(more) if more else ""])


def given(goal: Goal) -> dict[str, Json]:
    """Return the inputs of a new draft with the person's values; the origin of the site, if known, comes first."""
    at = origin(goal.url) if goal.url is not None else None
    return {**({BASE: at} if at else {}), **goal.inputs}


def name_of(goal: str) -> str:
    sentence = _SENTENCE.split(goal.strip(), maxsplit=1)[0].strip().rstrip(".!?:;,")
    if len(sentence) <= LONGEST_NAME:
        return sentence or "Draft"
    return f"{sentence[: LONGEST_NAME - 1].rsplit(' ', 1)[0]}…"


def beside_nodes(text: str) -> str:
    """Return the keys given next to ``nodes``, as text; empty if there are none. Raises WorkflowInvalid if it is not YAML."""
    document = read(text)
    data: Any = document.data
    if not isinstance(data, dict) or not is_whole(data) or len(data) < 2:
        return ""
    return _edited(in_lines(document, ()), {("nodes",): None})


def changed(document: Document, text: str) -> Edit:
    """Change the head by ``text``, a map of keys: null removes a key, inputs are merged by name, other keys are replaced.

    Raises WorkflowInvalid if the text is not YAML, and ModelError ``update-unclear``, ``edit-not-possible``.
    """
    new = read(text)
    content: Any = new.data
    given: dict[str, Any] = content if isinstance(content, dict) else {}
    if not given:
        raise ModelError("update-unclear", "the head is changed by a map of its keys", fix="such as `output: …`")
    if "nodes" in given:
        raise ModelError(
            "update-unclear",
            "`nodes` are not changed with the head",
            fix="`create_nodes`, `update_node` with a node's id, `move_nodes` and `delete_nodes` change them",
        )
    document, new = in_lines(document, ()), in_lines(new, ())
    data: dict[str, Any] = {**data_at(document.data, ())}
    paths: dict[Path, Json] = {}
    if data.get("inputs") and isinstance(inputs := given.get("inputs"), dict) and inputs:
        merged = {name: value for name, value in {**data["inputs"], **inputs}.items() if value is not None}
        document, new = in_lines(document, ("inputs",)), in_lines(new, ("inputs",))
        if merged:
            # Inputs are edited first: the next key may be inserted right below them.
            paths = {("inputs", name): value for name, value in inputs.items()}
        given["inputs"] = merged or None
    paths |= {(name,): value for name, value in given.items() if name != "inputs" or not paths}
    lines = Lines(new)
    entries = {path: lines.item(path) if value is not None else None for path, value in paths.items()}
    kept = {name: value for name, value in data.items() if name not in given}
    return Edit(
        _edited(document, entries), {**kept, **{name: each for name, each in given.items() if each is not None}}
    )


def _edited(document: Document, entries: Mapping[Path, Item | None]) -> str:
    lines = Lines(document)
    put: dict[int, list[str]] = {}
    gone: set[int] = set()
    for path, item in entries.items():
        keys = list(data_at(document.data, path[:-1]))
        span = lines.span(path) if path[-1] in keys else None
        if span is not None:
            start = span.own
            gone |= set(lines.around(span, below=path[-1] == keys[0]) if item is None else range(start, span.stop))
        else:
            before = _before(keys, str(path[-1])) if len(path) == 1 else keys[-1]
            span = lines.span((*path[:-1], before or keys[0]))
            start = span.stop if before else span.own
            # A blank line separates the nodes from the key after them.
            put.setdefault(start, []).extend([""] if before == "nodes" else [])
        if item is not None:
            put.setdefault(start, []).extend(shifted(item.lines, span.column))
    return lines.edited(put, gone)


def _before(keys: Sequence[str], key: str) -> str | None:
    """Return the key after which a new one is written, in the model's order; unknown keys come right above the nodes."""
    ranks = {each: ORDER.index(each) if each in ORDER else ORDER.index("nodes") - 0.5 for each in (*keys, key)}
    return next((each for each in reversed(keys) if ranks[each] < ranks[key]), None)


def differences(before: Any, now: Any) -> list[str]:
    said: list[str] = []
    for prefix, was, new in (("", before, now), ("inputs.", before.get("inputs") or {}, now.get("inputs") or {})):
        names = [each for each in {**was, **new} if prefix or each not in ("nodes", "inputs")]
        same = [each for each in names if each in was and each in new and was[each] == new[each]]
        other = [each for each in names if each not in same]
        how = {each: "new" if each not in was else "gone" if each not in new else "changed" for each in other}
        said += [f"{prefix}{each} {how[each]}" for each in other]
        said += [f"{prefix}{each} as it was" for each in same if prefix and other]
    return [f"head: {', '.join(said)}"] if said else []
