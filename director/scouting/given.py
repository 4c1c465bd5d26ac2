"""Targets and rules that a model gives to a tool, written in YAML as in a file."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TypeVar

from pydantic import ValidationError

from nodes.errors import ModelError, SiteError
from nodes.part import Part
from nodes.rules import Rule
from nodes.targets import Target
from nodes.values import Json
from runtime.agents import secret_checks
from runtime.language import words, yaml_text
from runtime.observation.lines import quoted
from runtime.secrets.masking import Masker

_Given = TypeVar("_Given", bound=Part)

NAME = "argument"
EVIDENCE = ("nearest", "candidates", "frames")
"""Evidence of an error about a target: lines that tell what else there is."""


def is_target(ref: Json) -> bool:
    """Return True if what a model gave for an element is a target in YAML; else it is a ref."""
    return isinstance(ref, str) and (ref.lstrip().startswith("{") or ":" in ref)


def target(text: str, masker: Masker) -> Target:
    """Raises ModelError ``tool-arguments``, ``secret-refused``."""
    return _read(Target, text, masker, "a target as in a file, such as `{role: button, name: Pay}`")


def rule(text: str, masker: Masker) -> Rule:
    """Raises ModelError ``tool-arguments``, ``secret-refused``."""
    found = _read(Rule, text, masker, "a rule as in `verify`, such as `{text: Paid}` or `{visible: {role: alert}}`")
    if found.kind == "expr":
        raise _refused("a page is waited for, and `expr` is about values", "give a rule about the page")
    return found


def fields(
    text: str, known: Collection[str], unused: Collection[str], of: str, masker: Masker
) -> tuple[dict[str, Json], list[str]]:
    """Return the fields of a node with the action ``of``, and the names of those that only a workflow uses, which are left out.

    Raises ModelError ``tool-arguments``, ``secret-refused``.
    """
    data = _map(text, masker, f"a map of its fields: {', '.join(known) or 'it has none'}", unused)
    if left := [each for each in data if each not in [*known, *unused]]:
        raise _refused(f"`{of}` has no `{left[0][:80]}` here", f"it has: {', '.join(known) or 'none'}")
    return {name: each for name, each in data.items() if name in known}, [each for each in data if each not in known]


def _read(kind: type[_Given], text: str, masker: Masker, wanted: str) -> _Given:
    data = _map(text, masker, wanted)
    try:
        return kind.model_validate(data)
    except ValidationError as error:
        why = "; ".join(dict.fromkeys(_said(kind, each["loc"], each["msg"]) for each in error.errors()))
        raise _refused(why, f"give {wanted}") from None


def _said(kind: type[Part], loc: Sequence[str | int], message: str) -> str:
    """Return a mistake at a place; a field that another tool has is told in the words of the language."""
    model = kind if len(loc) == 1 else Target
    habit = words.of_field(model, str(loc[-1]), model.model_fields) if loc and "Extra inputs" in message else None
    return f"{'.'.join(map(str, loc))} {habit or message}".strip().replace("Value error, ", "")


def _map(text: str, masker: Masker, wanted: str, unused: Collection[str] = ()) -> dict[str, Json]:
    document = yaml_text.read(NAME, text)
    if document.problems:
        raise _refused(f"it is no YAML: {document.problems[0].message}", f"give {wanted}")
    data = document.data
    if not isinstance(data, dict):
        raise _refused(f"{quoted(text, 80)} is no map", f"give {wanted}")
    used: dict[str, Json] = {name: each for name, each in data.items() if name not in unused}
    if "{{" in str(used):
        raise _refused("it has `{{ … }}`, which only a run fills", "write the text itself")
    if (why := secret_checks.refusal(data, masker)) is not None:
        raise ModelError("secret-refused", why, fix="leave it out")
    return data


def _refused(message: str, fix: str) -> ModelError:
    return ModelError("tool-arguments", message, fix=fix)


def evidence(error: SiteError, mask: Callable[[str], str]) -> list[str]:
    """Return lines about what else is on the page, from the evidence of an error about a target: text of the page."""
    lines: list[str] = []
    for name in EVIDENCE:
        found = error.evidence.get(name)
        if isinstance(found, list) and found:
            lines += [f"{name}:", *(f"  {mask(str(each))}" for each in found)]
    return lines


def unwaited(error: SiteError) -> str:
    """Return the message of an error about a target that was tried at once."""
    return error.message.partition("  (waited")[0]
