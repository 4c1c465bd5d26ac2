"""Short description of the difference between a request and the recorded one."""

from __future__ import annotations

import dataclasses
import difflib
import json
from collections.abc import Iterator, Mapping

from nodes.values import Json
from runtime.models.cassettes import normal_form

MOST_LINES = 12
WIDTH = 160  # characters of a line; a longer one is cut around the difference

ABSENT = object()


@dataclasses.dataclass(frozen=True, slots=True)
class Difference:
    """The parts of the request that differ, by name, and the differing lines: ``-`` as recorded, ``+`` as asked."""

    parts: tuple[str, ...]
    text: str

    @property
    def summary(self) -> str:
        if self.parts == ("end",):
            return self.text
        verb = "differs" if len(self.parts) == 1 else "differ"
        first = self.text.splitlines()
        return f"{', '.join(self.parts)} {verb}: {'  '.join(first[:2])}"


def between(kept_step: str, kept: Mapping[str, Json], step: str, asked: Mapping[str, Json]) -> Difference:
    """Compare the recorded exchange with the request in its place; they must differ."""
    found = dict(_parts(kept_step, kept, step, asked))
    lines = [line for part in found.values() for line in part]
    return Difference(tuple(found), "\n".join(lines[:MOST_LINES] + ["…"] * (len(lines) > MOST_LINES)))


def _parts(
    kept_step: str, kept: Mapping[str, Json], step: str, asked: Mapping[str, Json]
) -> Iterator[tuple[str, list[str]]]:
    if kept_step != step:
        yield "step", _lines(kept_step, step)
    for part, label in (("model", "model"), ("instructions", "instruction")):
        if kept[part] != asked[part]:
            yield label, _lines(kept[part], asked[part])
    yield from _messages(kept["messages"], asked["messages"])
    old, new = ({str(tool["name"]): tool for tool in each.get("tools") or []} for each in (kept, asked))
    yield from _json_parts(old, new, "tools")
    yield from _json_parts(kept["schema"], asked["schema"], "schema")
    for part in ("max_output", "strict"):
        if kept[part] != asked[part]:
            yield part, _lines(_json(kept[part]), _json(asked[part]))


def _json_parts(old: Json, new: Json, path: str) -> Iterator[tuple[str, list[str]]]:
    found = [(where, _lines(_json(one), _json(other))) for where, one, other in _values(old, new, path)]
    if not found and not normal_form.same(old, new):
        found = [(path, ["its parts are in another order"])]
    yield from found


def _messages(kept: list[dict[str, str]], asked: list[dict[str, str]]) -> Iterator[tuple[str, list[str]]]:
    for number in range(max(len(kept), len(asked))):
        old = kept[number] if number < len(kept) else None
        new = asked[number] if number < len(asked) else None
        if old != new:
            yield f"message {number + 1}", _lines(_said(old, new), _said(new, old))


def _said(message: dict[str, str] | None, other: dict[str, str] | None) -> str:
    if message is None:
        return "(there is none)"
    # The role is shown only where it differs.
    same = other is None or _whose(other) == _whose(message)
    said = message["text"] if "text" in message else message["arguments"]
    return said if same else f"{_whose(message)}: {said}"


def _whose(message: dict[str, str]) -> str:
    if "role" in message:
        return message["role"]
    return f"{message['call']}, {message['tool']}" if "call" in message else f"output of {message['output_of']}"


def _values(old: Json, new: Json, path: str) -> Iterator[tuple[str, Json, Json]]:
    """Yield the smallest parts of two values that differ, each with its path."""
    if isinstance(old, dict) and isinstance(new, dict):
        before: dict[str, Json] = old
        after: dict[str, Json] = new
        for name in dict.fromkeys([*before, *after]):
            yield from _values(before.get(name, ABSENT), after.get(name, ABSENT), f"{path}.{name}")
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for index, (one, other) in enumerate(zip(old, new, strict=True)):
            yield from _values(one, other, f"{path}[{index}]")
    elif type(old) is not type(new) or old != new:
        yield path, old, new


def _json(value: Json) -> str:
    return "(nothing)" if value is ABSENT else json.dumps(value, ensure_ascii=False)


def _lines(old: str, new: str) -> list[str]:
    compared = list(difflib.unified_diff(old.split("\n"), new.split("\n"), lineterm="", n=0))[2:]
    lines = [each for each in compared if not each.startswith("@@")]
    if len(lines) == 2:
        return [f"- {one}" if sign == "-" else f"+ {one}" for sign, one in zip("-+", _pair(lines), strict=True)]
    return [f"{each[0]} {_cut(each[1:], 0)}" for each in lines]


def _pair(lines: list[str]) -> tuple[str, str]:
    old, new = lines[0][1:], lines[1][1:]
    same = next((index for index, (one, other) in enumerate(zip(old, new, strict=False)) if one != other), None)
    start = max(0, (min(len(old), len(new)) if same is None else same) - WIDTH // 4)
    start = 0 if max(len(old), len(new)) <= WIDTH else start
    return _cut(old, start), _cut(new, start)


def _cut(line: str, start: int) -> str:
    end = start + WIDTH
    return f"{'…' if start else ''}{line[start:end]}{'…' if len(line) > end else ''}"
