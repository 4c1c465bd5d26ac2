"""How much of its content a page holds: it stays small enough to be kept, sent and opened."""

from __future__ import annotations

import base64
import bisect
import functools
import itertools
import json
from collections.abc import Iterator, Mapping
from typing import Any

from nodes.values import Json
from runtime.display.text import harmless
from runtime.report.page.content import Page, Part, Whole

PAGE = 5_000_000  # most bytes of a page
PICTURES = 2_000_000  # bytes that pictures may take from long texts
LONGEST = (1_000_000, 100_000, 50_000, 20_000, 10_000, 5_000, 3_000, 2_000, 1_000, 500, 200, 100)
"""Most characters of one text or value; the next where the page is too large."""

_PNG, _JPEG = b"\x89PNG", b"\xff\xd8\xff"
_LIVE = str.maketrans({each: f"\\u{ord(each):04x}" for each in "<>&\u2028\u2029"})


def fitted(page: Page, pictures: Mapping[str, str], most: int) -> str:
    """Return the data of a page as JSON for a script element, in at most ``most`` bytes.

    Long texts and values are shortened first, then pictures are left out, and last the steps of runs that passed. ``pictures`` are in base64,
    by SHA-256. A page with many thousands of failed steps may be larger.
    """
    wanted = [each for each in _wanted(page.cases) if each in pictures]
    reserved = min(PICTURES, sum(len(pictures[each]) for each in wanted))
    data = _texts(page, most - reserved)
    room, kept = most - len(data.encode()), dict[str, str]()
    for each in wanted:
        if (shown := _picture(pictures[each])) is not None and len(shown) + len(each) + 6 <= room:
            kept[each] = shown
            room -= len(shown) + len(each) + 6
    return f'{data.removesuffix("}")},"pictures":{json.dumps(kept)}}}'


def _texts(page: Page, most: int) -> str:
    lengths = [*_lengths(page.cases)]

    @functools.cache
    def fitting(longest: int) -> str | None:
        # No more than this fits, so rendering is tried only where it may.
        if sum(min(each, longest) for each in lengths) > most:
            return None
        data = _json({"title": page.title, **page.head, "cases": page.cases}, longest)
        return data if len(data.encode()) <= most else None

    # Rendering takes long where there are many steps, so few lengths are tried.
    first = bisect.bisect_left(LONGEST, True, key=lambda longest: fitting(longest) is not None)
    if first < len(LONGEST) and (data := fitting(LONGEST[first])) is not None:
        return data
    cases = [{**case, "runs": [_outline(run) for run in case.get("runs", ())]} for case in page.cases]
    return _json({"title": page.title, **page.head, "cases": cases}, LONGEST[-1])


def _lengths(part: Any) -> Iterator[int]:
    match part:
        case Whole():
            yield len(part.text)
        case dict():
            yield from itertools.chain.from_iterable(map(_lengths, part.values()))
        case list():
            yield from itertools.chain.from_iterable(map(_lengths, part))
        case _:
            pass


def _outline(run: Part) -> Part:
    """Leave out the steps of a run that passed."""
    if run["status"] != "passed":
        return run
    return {**{name: each for name, each in run.items() if name != "steps"}, "left_out": len(run.get("steps", ()))}


def _wanted(cases: list[Part]) -> Iterator[str]:
    """Yield the pictures, the most telling first: those of failures, then of the steps before them, then those shown to models."""
    views = [each["views"] for case in cases for run in case.get("runs", ()) for each in run.get("evidence", ())]
    found = [
        view.get("picture") for back in range(1, 5) for each in views for view in each[-back : len(each) - back + 1]
    ]
    steps = (step for case in cases for run in case.get("runs", ()) for step in run.get("steps", ()))
    lines = (line for step in steps for attempt in step.get("attempts", ()) for line in attempt.get("thread", ()))
    yield from dict.fromkeys(each for each in (*found, *(line.get("picture") for line in lines)) if each)


def _picture(encoded: str) -> str | None:
    """Return the picture as an address that only contains it; None if it is no picture."""
    try:
        data = base64.b64decode(encoded, validate=True)
    except ValueError:
        return None
    kind = "png" if data.startswith(_PNG) else "jpeg" if data.startswith(_JPEG) else None
    return None if kind is None else f"data:image/{kind};base64,{base64.b64encode(data).decode()}"


def _shown(part: Any, longest: int) -> Json:
    match part:
        case Whole() if len(part.text) > longest:
            return {"text": _safe(part.text[:longest]), "more": len(part.text) - longest}
        case Whole(str()):
            return _safe(part.text)
        case Whole(value):
            return {"json": _shown(value, longest)}
        case str():
            return _safe(part)
        case dict():
            return {_safe(str(name)): _shown(each, longest) for name, each in part.items()}
        case list():
            return [_shown(each, longest) for each in part]
        case _:
            return part


def _safe(text: str) -> str:
    return text if text.isprintable() else harmless(text)


def _json(data: Part, longest: int) -> str:
    """Format JSON that can neither end the script element nor begin a comment in it."""
    return json.dumps(_shown(data, longest), ensure_ascii=False, separators=(",", ":")).translate(_LIVE)
