"""The head of a draft: everything but its nodes. It begins with what the person gave, and changes key by key."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from director.draft import layout
from director.draft import splices as draft_splices
from director.draft.edits import Edit, is_whole, read
from director.draft.entries import Entries, written
from director.draft.lines import data_at
from director.draft.splices import Cut, Splice
from nodes.errors import ModelError
from nodes.template import OPENING
from nodes.values import Json
from runtime.browser.origins import origin
from runtime.language import writer
from runtime.language.yaml_text import Document

if TYPE_CHECKING:
    from director.draft.goal import Goal

BASE = "base_url"
"""The input with the address of the site."""

LONGEST_NAME = 60
"""Limit of a name made from a goal, in characters."""

_SENTENCE = re.compile(r"(?<=[.!?])\s|\n")


def begun(goal: Goal) -> str:
    """Return the head of a new draft as text. All of it comes from the person.

    Name and purpose come from the goal. The site's origin is the default of the input ``base_url``. The other inputs have no default: a
    run that omits one must not act on the build's values.
    Secrets are listed by name. The origins that the inputs name may be opened.
    """
    values = given(goal)
    inputs = {name: _input(value, default=name == BASE) for name, value in values.items()}
    addresses = [name for name, value in values.items() if origin(str(value))]
    data: dict[str, Json] = {"version": 1, "name": name_of(goal.goal)}
    if goal.goal.strip():
        data["description"] = " ".join(goal.goal.split())
    # One input a line: readers look for these in the head.
    lines = ["inputs:", *(f"  {name}: {writer.inline(each)}" for name, each in inputs.items())] if inputs else []
    behind: dict[str, Json] = {}
    if goal.secrets:
        behind["secrets"] = list[Json](goal.secrets)
    if addresses:
        behind["allowed_origins"] = [f"{{{{ inputs.{name} }}}}" for name in addresses]
    return "".join([writer.text(data), *(f"{line}\n" for line in lines), writer.text(behind) if behind else ""])


def given(goal: Goal) -> dict[str, Json]:
    """Return the first inputs of a draft with the person's values. The site's address comes first, if it is known."""
    at = origin(goal.url) if goal.url is not None else None
    return {**({BASE: at} if at else {}), **goal.inputs}


def name_of(goal: str) -> str:
    """Return a goal's first sentence, cut after a word."""
    sentence = _SENTENCE.split(goal.strip(), maxsplit=1)[0].strip().rstrip(".!?:;,")
    if len(sentence) <= LONGEST_NAME:
        return sentence or "Draft"
    return f"{sentence[: LONGEST_NAME - 1].rsplit(' ', 1)[0]}…"


def _input(value: Json, *, default: bool) -> dict[str, Any]:
    """Return an input declaration for such a value, with the value as its default if it has one."""
    kind = _kind(value)
    # Defaults do not resolve references: a value that looks like one must be given with each run.
    if not default or (isinstance(value, str) and OPENING in value):
        return {"type": kind}
    return {"type": kind, "default": value}


def _kind(value: Json) -> str:
    match value:
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "number"
        case list():
            return "list"
        case dict():
            return "map"
        case _:
            return "string"


def beside_nodes(text: str) -> str:
    """Return the head given next to ``nodes``, as text, or an empty text. Raises WorkflowInvalid if it is not YAML."""
    document = read(text)
    data: Any = document.data
    if not isinstance(data, dict) or not is_whole(data) or len(data) < 2:
        return ""
    if layout.opening(document, ()) == "{":
        return writer.text({key: value for key, value in data.items() if key != "nodes"})
    return draft_splices.spliced(document.source, Entries(document, ()).without("nodes")).text


def changed(document: Document, text: str) -> Edit:
    """Change the head of ``document`` by ``text``, a map of keys. Null removes a key, inputs are merged by name, other keys are replaced.

    Raises WorkflowInvalid if the text is not YAML, and ModelError ``update-unclear``, ``edit-not-possible``.
    """
    new = read(text)
    given: Any = new.data
    if not isinstance(given, dict) or not given:
        raise ModelError("update-unclear", "the head is changed by a map of its keys", fix="such as `output: …`")
    if "nodes" in given:
        raise ModelError(
            "update-unclear",
            "`nodes` are not changed with the head",
            fix="`create_nodes`, `update_node` with a node's id, `move_nodes` and `delete_nodes` change them",
        )
    was: Any = document.data
    data: dict[str, Any] = {**was}
    head = Entries(document, ())
    splices: list[Splice] = []
    for key, value in given.items():
        inputs: Any = was.get(key)
        if key == "inputs" and isinstance(value, dict) and isinstance(inputs, dict) and inputs and value:
            data[key] = _taken_in(inputs, value)
            splices += _inputs_edited(document, new, head, data[key])
        elif value is None:
            data.pop(key, None)
            splices += head.without(key)
        else:
            data[key] = value
            splices += head.put(key, written(new, (key,), head.column, draft_splices.newline(document.source.text)))
    return Edit(draft_splices.spliced(document.source, splices), data)


def _taken_in(inputs: Mapping[str, Json], given: Mapping[str, Json]) -> dict[str, Json]:
    return {name: value for name, value in {**inputs, **given}.items() if value is not None}


def _inputs_edited(document: Document, new: Document, head: Entries, wanted: dict[str, Json]) -> list[Splice]:
    given: Any = data_at(new.data, ("inputs",))
    end = draft_splices.newline(document.source.text)
    if not wanted:
        return head.without("inputs")
    if layout.opening(document, ("inputs",)) in ("{", "*"):
        # In braces: all of them are rewritten, one a line.
        lines = ["inputs:", *(f"  {name}: {writer.inline(each)}" for name, each in wanted.items())]
        mark = new.keys["inputs",]
        text = end.join(" " * head.column + line for line in lines)
        return head.put("inputs", [Cut(text, new.source, mark.start, mark.stop)])
    entries = Entries(document, ("inputs",))
    splices: list[Splice] = []
    for name, value in given.items():
        if value is None:
            splices += entries.without(name)
        else:
            splices += entries.put(name, written(new, ("inputs", name), entries.column, end))
    return splices


def differences(before: Any, now: Any) -> list[str]:
    """Return the added, changed and removed keys of a head, in one line or none."""
    said: list[str] = []
    for name, was, new in (("", before, now), ("inputs.", before.get("inputs") or {}, now.get("inputs") or {})):
        keys = [each for each in {**was, **new} if each != "nodes" and (name or each != "inputs")]
        said += [f"{name}{each} new" for each in keys if each not in was]
        said += [f"{name}{each} changed" for each in keys if each in was and each in new and was[each] != new[each]]
        said += [f"{name}{each} gone" for each in keys if each not in new]
        if name and any(each.startswith(name) for each in said):
            said += [
                f"{name}{each} as it was" for each in keys if each in was and each in new and was[each] == new[each]
            ]
    return [f"head: {', '.join(said)}"] if said else []
