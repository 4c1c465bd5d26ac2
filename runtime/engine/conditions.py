"""What a false condition over values is reported with: its text as the file has it, and the values that it reads."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from nodes.base import Leaf
from nodes.errors import RunOpsError
from nodes.values import Json
from runtime.display.text import cut, one_line
from runtime.engine import scopes
from runtime.language.expressions.references import Compiled
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
    """Yield each reference that a condition reads, with its value in short. Declared secrets and hidden names are not shown."""
    for name, value in condition.values_read(known):
        # Masked before it is cut: half a secret would not be found.
        shown = _json(masker.names.json(masker.json(value), name)) if value is not ... else "no value"
        yield cut(one_line(f"{name} = {shown}"), LONGEST)


def _json(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False)
