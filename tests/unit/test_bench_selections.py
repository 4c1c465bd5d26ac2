"""Selections of draft nodes, and the values that stay valid after edits: over generated drafts."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from director.bench import node_map
from director.bench.node_map import NodeMap, digest
from director.bench.records import FreshnessCheck, Record
from director.draft import draft
from nodes.errors import ModelError
from nodes.values import Json

TEXT = """
version: 1
nodes:
  - {id: a, type: transform, expr: "{{ 1 }}"}
  - id: g
    type: group
    nodes:
      - {id: b, type: browser_action, action: click, target: {text: b}, confirm: {nodes: [{id: c, type: browser_query, query: url}], done: "{{ c == 'x' }}"}}
      - {id: d, type: browser_query, query: url}
  - id: each
    type: iterate
    over: "{{ [1, 2] }}"
    as: x
    nodes:
      - id: h
        type: handle
        try: [{id: e, type: browser_action, action: goto, url: "http://127.0.0.1:1/{{ x }}"}]
        catch: [{id: f, type: transform, expr: "{{ error.code }}"}]
"""


def places_of(text: str) -> NodeMap:
    """The nodes of a draft."""
    made = draft.Draft.of(text)
    return NodeMap(made.loaded, {each.id: each.position for each in made.layout.nodes})


PLACES = places_of(TEXT)


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("all", ["a", "g", "each"]),
        ("1", ["a"]),
        ("1-2", ["a", "g"]),
        ("1-3", ["a", "b"]),
        ("g..d", ["g"]),
        ("d, a", ["a", "d"]),
        ("3,5-6", ["b", "d", "each"]),
        ("a..b", ["a", "b"]),
        ("b..each", ["b", "d", "each"]),
        ("g,b", ["g"]),
        ("g/b, each/h/try/e", ["b", "e"]),
    ],
)
def test_a_selection_resolves_to_nodes(text: str, ids: list[str]) -> None:
    """Nodes come once, in file order, without children of selected containers. A range that ends inside a container selects only that part."""
    assert list(node_map.select(text, PLACES).ids) == ids


@pytest.mark.parametrize("text", ["d,c", "5, 4-4", "d,b/confirm/c"])
def test_nodes_of_a_confirm_are_left_out(text: str) -> None:
    """Where a selection names nodes of a `confirm` and others, the others are selected, and the rest is told."""
    selected = node_map.select(text, PLACES)
    told = "left out: `c`: nodes of a `confirm` are tried with their action: `run_draft`"
    assert (list(selected.ids), selected.left_out) == (["d"], told)


def test_a_step_path_selects_the_iteration() -> None:
    """A path selects the iteration by key or number, even if the key contains a comma."""
    assert node_map.select("each[#a,b]/h/try/e", PLACES).items == {"each": "a,b"}
    assert node_map.select("each[2]/h", PLACES).items == {"each": "2"}


@pytest.mark.parametrize(
    ("text", "suggestion"),
    [
        ("", "no selection"),
        (" , ", "names no node"),
        ("bb", "did you mean `b`"),
        ("99", "1 to 9"),
        ("4", "`c`: nodes of a `confirm` are tried with their action `run_draft`, or take `b`"),
        ("c..c", "nodes of a `confirm` are tried with their action"),
        ("9-2", "the other way round"),
        ("h/e", "each/h/try/e"),
    ],
)
def test_an_invalid_selection_is_refused_with_a_suggestion(text: str, suggestion: str) -> None:
    """The error explains the mistake or suggests the nearest valid selection."""
    with pytest.raises(ModelError) as refused:
        node_map.select(text, PLACES)
    assert refused.value.code == "node-unknown"
    assert suggestion in f"{refused.value.message} {refused.value.fix}"


@given(
    st.text("abegx0129.,-–[]#/ ", max_size=20)
    | st.lists(st.sampled_from([*PLACES.all, "1", "3-7", "all", "..", "x", "[", "/"])).map(",".join)
)
def test_any_text_selects_nodes_or_is_refused(text: str) -> None:
    """A selection contains no node twice, neither directly nor inside a container."""
    try:
        chosen = node_map.select(text, PLACES).ids
    except ModelError:
        return
    covered = [each.id for node_id in chosen for each in PLACES.below(node_id)]
    assert len(covered) == len(set(covered))
    assert list(chosen) == sorted(chosen, key=lambda each: PLACES[each].position)


def test_only_nodes_that_change_the_page_come_before_a_node() -> None:
    """Reads and data do not count, and groups are transparent. A loop counts as a whole, but for its own nodes as one iteration."""
    text = TEXT + "  - {id: last, type: browser_query, query: url}\n"
    places = places_of(text)
    assert [key for _place, key in places.before("last", {})] == ["b", "each"]
    assert [key for _place, key in places.before("e", {"each": "[2]"})] == ["b"]
    assert [key for _place, key in places.up_to("e", {"each": "[2]"})] == ["b", "e[2]"]
    assert places.path("e", {"each": "[2]"}) == "each[2]/h/try/e"
    assert places.items_in("each[2]/h/try/e") == {"each": "[2]"}


# Validity of values.


def chain_of(rests: Sequence[Sequence[int]], add: Sequence[int]) -> str:
    """A draft of data: node ``i`` is the sum of its dependencies and a number."""
    nodes: list[Any] = []
    for number, (rest, more) in enumerate(zip(rests, add, strict=True)):
        total = " + ".join([*(f"n{each}" for each in rest), str(more)])
        nodes.append({"id": f"n{number}", "type": "transform", "expr": f"{{{{ {total} }}}}"})
    return yaml.safe_dump({"version": 1, "nodes": nodes})


@st.composite
def drafts(draw: st.DrawFn) -> tuple[list[list[int]], list[int]]:
    """The dependencies of each node on earlier ones, and the number that each adds."""
    size = draw(st.integers(1, 6))
    rests = [
        draw(st.lists(st.integers(0, number - 1), unique=True, max_size=3)) if number else [] for number in range(size)
    ]
    return rests, [draw(st.integers(0, 2)) for _ in range(size)]


def value_of(number: int, rests: Sequence[Sequence[int]], add: Sequence[int]) -> int:
    """The value of a node."""
    return sum(value_of(each, rests, add) for each in rests[number]) + add[number]


def ran(number: int, rests: Sequence[Sequence[int]], add: Sequence[int], places: NodeMap) -> Record:
    """The record of a node that ran on valid values."""
    node = f"n{number}"
    reads = {f"n{each}": digest(value_of(each, rests, add)) for each in rests[number]}
    value: Json = value_of(number, rests, add)
    return Record(node, node, {}, places.action_digest(node), reads, (), "run", ran=True, value=value)


@settings(max_examples=50)
@given(drafts(), st.data())
def test_a_value_is_valid_if_and_only_if_nothing_under_it_was_edited(
    made: tuple[list[list[int]], list[int]], data: st.DataObject
) -> None:
    """After edits a value is valid only if neither its node nor a dependency changed. The suggested selection makes it valid again."""
    rests, add = made
    places = places_of(chain_of(rests, add))
    records = {f"n{number}": ran(number, rests, add, places) for number in range(len(rests))}
    edited = data.draw(st.sets(st.integers(0, len(rests) - 1)))
    otherwise = [more + 3 if number in edited else more for number, more in enumerate(add)]
    now = places_of(chain_of(rests, otherwise))
    freshness = FreshnessCheck(now, records, {}, {})

    def touched(number: int) -> bool:
        return number in edited or any(map(touched, rests[number]))

    for number in range(len(rests)):
        known, value = freshness.value((f"n{number}",), {})
        assert known == (not touched(number))
        assert not known or value == value_of(number, rests, otherwise)
        missing = freshness.missing(f"n{number}", {})
        assert bool(missing) == any(map(touched, rests[number]))
        if not missing:
            continue
        # Run the suggestion in order: each node finds what it reads, and the value is valid again.
        suggestion = freshness.refresh(missing)
        assert suggestion is not None
        fresh = dict(records)
        for each in node_map.select(suggestion.nodes, now).ids:
            assert not FreshnessCheck(now, fresh, {}, {}).missing(each, {})
            fresh[each] = ran(int(each[1:]), rests, otherwise, now)
        assert FreshnessCheck(now, fresh, {}, {}).value((f"n{number}",), {})[0]


@settings(max_examples=50)
@given(drafts(), st.data())
def test_a_pin_replaces_a_missing_value(made: tuple[list[list[int]], list[int]], data: st.DataObject) -> None:
    """With all dependencies pinned nothing is missing; without records only the pins are known."""
    rests, add = made
    places = places_of(chain_of(rests, add))
    number = data.draw(st.integers(0, len(rests) - 1))
    pins: dict[str, Json] = {f"n{each}": 5 for each in rests[number]}
    freshness = FreshnessCheck(places, {}, {}, pins)
    assert freshness.missing(f"n{number}", {}) == []
    assert {each for each in places.all if freshness.value((each,), {})[0]} == set(pins)


def test_a_record_survives_the_log() -> None:
    """A record is read back as it was written."""
    places = places_of(chain_of([[], [0]], [1, 2]))
    for number in (0, 1):
        record = ran(number, [[], [0]], [1, 2], places)
        assert Record.of(record.as_json()) == record
    assert list(itertools.chain(Record.of(record.as_json(), masked=True).sets)) == []
