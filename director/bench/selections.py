"""Which nodes are meant: ``all``, ``3``, ``1-3,10``, ids, ``login..submit``, step paths. Pure."""

from __future__ import annotations

import dataclasses
import re

from director.bench.node_map import Place, Places
from nodes import errors
from nodes.errors import ModelError

_NUMBER = re.compile(r"[0-9]{1,6}")
_RANGE = re.compile(r"([0-9]{1,6})\s*[-–]\s*([0-9]{1,6})")

LONGEST = 2_000
"""Characters of a selection."""


@dataclasses.dataclass(frozen=True, slots=True)
class Selection:
    """Nodes that are meant."""

    ids: tuple[str, ...]
    """In the order of the file, each once. What stands in a container that is meant is not named beside it."""
    items: dict[str, str]
    """The turns that step paths have named, by the ids of their loops: a key, or a number."""


def chosen(text: str, places: Places) -> Selection:
    """The nodes that a text means. Raises ModelError ``node-unknown`` for what means none, with what was meant."""
    text = text.strip()[: LONGEST + 1]
    if not text or len(text) > LONGEST:
        raise _unknown(
            f"`{text[:40]}` is no selection", "say `all`, positions (`1-3,10`), ids, `login..submit`, or step paths"
        )
    if text == "all":
        return Selection(tuple(each.id for each in places.in_order if not each.around), {})
    found: dict[str, None] = {}
    items: dict[str, str] = {}
    for part in filter(None, map(str.strip, _parts(text))):
        for each in _part(part, places, items):
            found[each.id] = None
    if not found:
        raise _unknown(
            f"`{text[:40]}` names no node", "say `all`, positions (`1-3,10`), ids, `login..submit`, or step paths"
        )
    ids = tuple(each.id for each in places.in_order if each.id in found and not any(o.id in found for o in each.around))
    return Selection(ids, items)


def _parts(text: str) -> list[str]:
    """The text at its commas; a key may hold one."""
    return re.split(r",(?![^\[]*\])", text)


def _part(part: str, places: Places, items: dict[str, str]) -> list[Place]:
    if (numbers := _RANGE.fullmatch(part)) is not None:
        last_one = next((each for each in places.in_order if each.position == int(numbers[2])), None)
        end = _end(last_one, places) if last_one is not None else int(numbers[2])
        return _between(int(numbers[1]), end, places, part)
    first, dots, last = part.partition("..")
    if dots and "[" not in first:
        ends = [_one(each.strip(), places, items) for each in (first, last)]
        return _between(ends[0].position, _end(ends[1], places), places, part)
    return [_one(part, places, items)]


def _end(place: Place, places: Places) -> int:
    """The position of the last node in it."""
    return max(each.position for each in places.below(place.id))


def _between(first: int, last: int, places: Places, said: str) -> list[Place]:
    """The nodes from one position to another; of a container that goes on behind the last one only what comes before."""
    within = [each for each in places.in_order if first <= each.position <= last]
    if not within:
        turned = " the other way round" if first > last else ""
        raise _unknown(f"there is no node at {said[:80]}{turned}", f"the positions are 1 to {len(places.all)}")
    return [each for each in within if _end(each, places) <= last]


def _one(said: str, places: Places, items: dict[str, str]) -> Place:
    """The node of a position, an id, or a step path."""
    if _NUMBER.fullmatch(said):
        found = next((each for each in places.all.values() if each.position == int(said)), None)
    else:
        name = re.sub(r"\[[^\]]*\]", "", said).rpartition("/")[2]
        found = places.all.get(name)
        if found is not None and "/" in said:
            _take_items(said, found, places, items)
    if found is None:
        close = errors.near(said, places.all)
        mend = (
            f"did you mean `{close}`?"
            if close
            else f"the positions are 1 to {len(places.all)}; the outline has the ids"
        )
        raise _unknown(f"there is no node `{said[:80]}`", mend)
    if found.confirms:
        owner = found.around[-1].id
        raise _unknown(
            f"`{found.id}` belongs to the `confirm` of `{owner}`, and is run only where it must be found out whether that was done",
            f"take `{owner}`, or try the look as a node of its own",
        )
    return found


def _take_items(said: str, place: Place, places: Places, items: dict[str, str]) -> None:
    """Note the turns that a step path names. Raises ModelError ``node-unknown`` where the node stands elsewhere."""
    bare = re.sub(r"\[[^\]]*\]", "", said)
    there = places.path(place.id)
    if bare != there:
        raise _unknown(f"there is no step `{said[:80]}`", f"`{place.id}` stands at `{there}`")
    for loop, segment in places.items_in(said).items():
        inside = segment.strip("[]")
        items[loop] = inside.removeprefix("#")


def _unknown(what: str, mend: str) -> ModelError:
    return ModelError("node-unknown", what, mend=mend)
