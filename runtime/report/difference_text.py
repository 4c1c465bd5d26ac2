"""Renders differences between runs as rows of a table, from the reports alone."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator

from nodes.values import Json
from runtime.display.text import ELLIPSIS, count, cut, one_line
from runtime.report.parts import DifferenceReport

RUN = "run"  # stands for the run where a row has no step
FOLDED = 5  # most steps in a row that only one of the runs has; of more, the others are counted
LONGEST = 80  # characters of a value beside a long one; of longer ones the row shows the part that differs
ARROW = " → "
NOTHING = "nothing"


def rows(differences: list[DifferenceReport]) -> list[list[str]]:
    """Return a row for each difference: the step, the kind with the differing part, and both sides."""
    return list(_rows(differences))


def _rows(differences: list[DifferenceReport]) -> Iterator[list[str]]:
    for what, alike in itertools.groupby(differences, lambda each: each.what):
        those = list(alike)
        hidden = len(those) - FOLDED if what in ("missing", "new") and len(those) > FOLDED + 1 else 0
        for each in those[: len(those) - hidden]:
            kind = f"{what} {one_line(each.within)}" if each.within else what
            yield [one_line(each.path) or RUN, kind, _sides(each)]
        if hidden:
            yield [ELLIPSIS, what, f"{count(hidden, 'more step')} ({_whose(what)})"]


def _sides(each: DifferenceReport) -> str:
    if each.what in ("missing", "new"):
        return f"{one_line(str(each.before or each.after))} ({_whose(each.what)})"
    if each.what == "file" and each.within is not None:
        return ARROW.join(f"text {str(side)[:8]}" if side else NOTHING for side in (each.before, each.after))
    render = _value if each.what in ("value", "inputs", "output") else _words
    return ARROW.join(_beside(*(render(side) for side in (each.before, each.after))))


def _whose(what: str) -> str:
    return "only the first run has it" if what == "missing" else "only the second run has it"


def _value(value: Json) -> str:
    return NOTHING if value is None else one_line(json.dumps(value, ensure_ascii=False))


def _words(value: Json) -> str:
    if isinstance(value, dict):
        return one_line(": ".join(str(each) for each in value.values()))
    return NOTHING if value is None else one_line(str(value))


def _beside(one: str, other: str) -> Iterator[str]:
    """Yield both sides, of long ones the part from a little before the first difference."""
    differs = (number for number, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1])
    start = max(0, next(differs, min(len(one), len(other))) - LONGEST // 4)
    for each, beside in ((one, other), (other, one)):
        begun = f"{ELLIPSIS}{each[start:]}" if start and max(len(one), len(other)) > LONGEST else each
        yield cut(begun, max(LONGEST, 2 * LONGEST - len(beside)))
