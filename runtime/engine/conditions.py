"""What a false condition over values is reported with: its text as the file has it, and the values that it reads."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping

from nodes.base import Leaf
from nodes.errors import RunOpsError
from nodes.values import Json
from runtime.display.text import cut, one_line
from runtime.engine import scopes
from runtime.engine.rendering import RecordedClock
from runtime.language.expressions import references
from runtime.language.expressions.operands import operands
from runtime.language.expressions.references import CLOSING, OPENING, Compiled
from runtime.secrets.masking import Masker

LONGEST = 200
"""Most columns of a reference with its value."""

RULES = ("expr", "a condition")
"""A filled-in condition, as errors name it."""


def explained(error: RunOpsError, node: Leaf, resolved: Leaf, frame: scopes.Scope, masker: Masker) -> RunOpsError:
    """Return an error about one of ``RULES`` with the condition of the file: filled in, all look alike."""
    for field in ("verify", "rules"):
        for written, filled in zip(getattr(node, field, ()), getattr(resolved, field, ()), strict=True):
            if filled.kind == "expr" and not filled.expr:
                template = frame.program.loaded.templates.get(written.expr)
                read: list[Json] = [*values(template, frame, masker)] if template is not None else []
                evidence: dict[str, Json] = {"values": read} if read else {}
                return error.replaced(message=f"the condition `{written.expr}` is false", evidence=evidence)
    return error


def values(condition: Compiled, known: Mapping[str, Json], masker: Masker) -> Iterator[str]:
    """Yield what a condition compares, as ``rows | length``, then each reference that it reads, all with their values in short.

    Declared secrets and hidden names are not shown.
    """
    for name, value in (*_computed(condition, known, masker), *condition.values_read(known)):
        # Masked before it is cut: half a secret would not be found.
        shown = _json(_masked(name, value, masker)) if value is not ... else "no value"
        yield cut(one_line(f"{name} = {shown}"), LONGEST)


def _computed(condition: Compiled, known: Mapping[str, Json], masker: Masker) -> Iterator[tuple[str, Json]]:
    """Yield the parts of the condition that are more than a name or a literal, and can be computed from values that are shown."""
    parts = operands(condition.text[len(OPENING) : -len(CLOSING)]) if condition.exact else []
    for part in dict.fromkeys(parts) if len(parts) > 1 else ():
        compiled = references.compile(f"{OPENING} {part} {CLOSING}")
        read = dict(compiled.values_read(known))
        if compiled.plain or compiled.calls or not read:
            continue
        # What is computed from a secret is no text that can be found and masked.
        if any(value is not ... and _masked(name, value, masker) != value for name, value in read.items()):
            continue
        with contextlib.suppress(RunOpsError):
            yield part, compiled.render(known, RecordedClock([]))


def _masked(name: str, value: Json, masker: Masker) -> Json:
    return masker.names.json(masker.json(value), name)


def _json(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False)
