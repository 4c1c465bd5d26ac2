"""Differences between two runs, from their whole reports. Times are no difference, nor are the ids of the runs."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from urllib.parse import urlsplit

from nodes.values import Json
from runtime.report.models import RunReport, StepReport
from runtime.report.parts import DifferenceReport, ErrorReport, Printed
from runtime.report.text import error_in

MOST = 8  # parts of a value that are listed one by one; of more, the whole value is listed
LONGEST = 2_000  # items of a list that are matched with those of another; longer lists are compared as a whole

_PLAIN = re.compile(r"[^\W\d]\w*")
_ENDS = r"(?![\w:-]|\.\w)"  # after an origin in a text: no longer port or host
_ABSENT: Json = object()


class RunDiff(Printed):
    """The differences between two runs: `runops diff --json`."""

    before: str
    """The first run."""
    after: str
    """The second run."""
    at: str | None
    """The step that was compared; null for whole runs."""
    differences: list[DifferenceReport]


def differences(before: RunReport, after: RunReport) -> list[DifferenceReport]:
    """Return the differences between two runs: those of the runs, then those of their steps in order, then those of their outputs.

    Steps are matched by their paths, items of loops by the keys in them. A container does not repeat what a step in it shows. If the site
    has another address, addresses in it are no difference.
    """
    return [*_Comparison(before, after)]


class _Comparison:
    def __init__(self, before: RunReport, after: RunReport) -> None:
        self._before, self._after = before, after
        self._ones = {each.path: each for each in before.steps}
        self._others = {each.path: each for each in after.steps}
        self._moved = _moved(
            (one.page, self._others[one.path].page) for one in before.steps if one.path in self._others
        )

    def __iter__(self) -> Iterator[DifferenceReport]:
        yield from self._of_runs()
        yield from self._of_steps()
        if self._before.state == self._after.state or None not in (self._before.output, self._after.output):
            yield from self._parts("", "output", self._before.output, self._after.output)

    def _of_runs(self) -> Iterator[DifferenceReport]:
        before, after = self._before, self._after
        if before.file != after.file:
            yield _difference("", "file", before.file, after.file)
        else:
            for name, one, other in _pairs(before.texts, after.texts):
                yield _difference("", "file", one, other, Path(name).name)
        for name, one, other in _pairs(before.inputs, after.inputs):
            yield from _parts("", "inputs", one, other, name)
        for origin, other in self._moved.items():
            yield _difference("", "page", origin, other)
        if before.state != after.state:
            yield _difference("", "status", before.state, after.state)
        yield from self._errors("", *(None if each.path else each.error for each in (before, after)))

    def _of_steps(self) -> Iterator[DifferenceReport]:
        found = {path: list(self._of_step(path)) for path in _merged(list(self._ones), list(self._others))}
        below: dict[str, list[DifferenceReport]] = {}
        for path, here in found.items():
            above = self._step(path).parent
            while here and above is not None:
                below.setdefault(above, []).extend(here)
                above = self._step(above).parent
        page: tuple[Json, Json] | None = None
        for path, here in found.items():
            for each in here:
                if each.what == "page":
                    # The steps after it are on the same page.
                    if (each.before, each.after) == page:
                        continue
                    page = each.before, each.after
                if not self._step(path).attempts and _repeats(each, below.get(path, [])):
                    continue
                yield each

    def _of_step(self, path: str) -> Iterator[DifferenceReport]:
        one, other = self._ones.get(path), self._others.get(path)
        if one is None or other is None:
            there = self._step(path)
            if there.parent is None or self._both_begun(there.parent):
                yield _difference(path, "missing", one.status) if one else _difference(path, "new", None, there.status)
            return
        if one.status != other.status:
            yield _difference(path, "status", one.status, other.status)
        yield from self._errors(path, error_in(self._before, one), error_in(self._after, other))
        if one.page and other.page and self._same_site(one.page) != other.page:
            yield _difference(path, "page", one.page, other.page)
        if one.http != other.http:
            yield _difference(path, "page", _answer(one.http), _answer(other.http), "answer")
        if one.status == other.status or None not in (one.value, other.value):
            yield from self._parts(path, "value", one.value, other.value)

    def _step(self, path: str) -> StepReport:
        return self._others.get(path) or self._ones[path]

    def _both_begun(self, path: str) -> bool:
        """True if both runs did something in the container at ``path``; otherwise it has a difference itself."""
        one, other = self._ones.get(path), self._others.get(path)
        return one is not None and other is not None and "skipped" not in (one.status, other.status)

    def _errors(self, path: str, one: ErrorReport | None, other: ErrorReport | None) -> Iterator[DifferenceReport]:
        before, after = ({"code": each.code, "message": each.message} if each else None for each in (one, other))
        if self._same_site(before) != after:
            yield _difference(path, "error", before, after)

    def _parts(self, path: str, what: str, one: Json, other: Json) -> Iterator[DifferenceReport]:
        return _parts(path, what, self._same_site(one), other)

    def _same_site(self, value: Json) -> Json:
        """Return a value of the first run with the addresses that the site has in the second one."""
        if isinstance(value, str):
            for origin, other in self._moved.items():
                value = re.sub(rf"{re.escape(origin)}{_ENDS}", lambda _found, other=other: other, value)
            return value
        if not self._moved:
            return value
        if isinstance(value, dict):
            return {name: self._same_site(item) for name, item in value.items()}
        return [self._same_site(item) for item in value] if isinstance(value, list) else value


def _answer(status: int | None) -> str:
    return "no error" if status is None else f"error {status} of the server"


def _repeats(difference: DifferenceReport, below: list[DifferenceReport]) -> bool:
    """True if differences of steps in a container show this one of the container already."""
    if difference.what == "value":
        return any(each.what in ("value", "missing", "new") for each in below)
    pair = difference.before, difference.after
    return difference.what == "status" and any(
        each.what == "status" and (each.before, each.after) == pair for each in below
    )


def _moved(pages: Iterable[tuple[str | None, str | None]]) -> dict[str, str]:
    """Return the origins of a site that has another one in the second run; empty if no pair of origins fits all ``pages``."""
    found: dict[str, str] = {}
    for one, other in pages:
        before, after = _origin(one or ""), _origin(other or "")
        if before and after and found.setdefault(before, after) != after:
            return {}
    if len(set(found.values())) < len(found):
        return {}
    return {before: after for before, after in found.items() if before != after}


def _origin(url: str) -> str:
    """Return the origin of a page of a site; empty for other pages, such as a blank one."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}" if parts.netloc else ""


def _merged(ones: list[str], others: list[str]) -> list[str]:
    """Return all paths in order: those of ``others``, and each that only ``ones`` has behind the common one before it."""
    common, last = set(others), ""
    between: dict[str, list[str]] = {}
    for path in ones:
        if path in common:
            last = path
        else:
            between.setdefault(last, []).append(path)
    return [*between.get("", []), *(each for path in others for each in (path, *between.get(path, [])))]


def _pairs(old: Mapping[str, Json], new: Mapping[str, Json]) -> Iterator[tuple[str, Json, Json]]:
    for name in dict.fromkeys([*old, *new]):
        if not _same(old.get(name, _ABSENT), new.get(name, _ABSENT)):
            yield name, old.get(name, _ABSENT), new.get(name, _ABSENT)


def _difference(path: str, what: str, before: Json = None, after: Json = None, within: str = "") -> DifferenceReport:
    before, after = (None if each is _ABSENT else each for each in (before, after))
    within_it = within.removeprefix(".") or None
    return DifferenceReport.model_validate(
        {"path": path, "what": what, "before": before, "after": after, "within": within_it}
    )


def _parts(path: str, what: str, old: Json, new: Json, name: str = "") -> Iterator[DifferenceReport]:
    """Yield the smallest parts in which two values differ, or the whole values if there are many."""
    found = list(_smallest(old, new, name))
    if len(found) > MOST:
        found = [(name, old, new)]
    for within, one, other in found:
        yield _difference(path, what, one, other, within)


def _smallest(old: Json, new: Json, within: str) -> Iterator[tuple[str, Json, Json]]:
    if _same(old, new):
        return
    if isinstance(old, dict) and isinstance(new, dict):
        for name, one, other in _pairs(old, new):
            place = f".{name}" if _PLAIN.fullmatch(name) else f"[{json.dumps(name, ensure_ascii=False)}]"
            yield from _smallest(one, other, f"{within}{place}")
    elif isinstance(old, list) and isinstance(new, list) and max(len(old), len(new)) <= LONGEST:
        yield from _items(old, new, within)
    else:
        yield within, old, new


def _items(old: list[Json], new: list[Json], within: str) -> Iterator[tuple[str, Json, Json]]:
    texts = ([json.dumps(item, sort_keys=True) for item in each] for each in (old, new))
    for how, start, end, begin, stop in difflib.SequenceMatcher(None, *texts, autojunk=False).get_opcodes():
        if how == "replace" and end - start == stop - begin:
            for number in range(end - start):
                yield from _smallest(old[start + number], new[begin + number], f"{within}[{begin + number}]")
        elif how != "equal":
            yield from ((f"{within}[{number}]", old[number], _ABSENT) for number in range(start, end))
            yield from ((f"{within}[{number}]", _ABSENT, new[number]) for number in range(begin, stop))


def _same(one: Json, other: Json) -> bool:
    """True if two values are the same in JSON; in Python, true equals 1."""
    if one is _ABSENT or other is _ABSENT:
        return one is other
    return one == other and (one is other or json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True))
