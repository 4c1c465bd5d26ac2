"""Which nodes of a draft are meant, and what of them counts after edits: over drafts that are drawn."""

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
def test_a_selection_means_these(text: str, ids: list[str]) -> None:
    """In the order of the file, each once, what stands in a chosen container not beside it, and of a container that continues after a range only its part."""
    assert list(node_map.select(text, PLACES).ids) == ids


def test_a_step_path_names_the_turn() -> None:
    """By key or number, also where the key holds a comma."""
    assert node_map.select("each[#a,b]/h/try/e", PLACES).items == {"each": "a,b"}
    assert node_map.select("each[2]/h", PLACES).items == {"each": "2"}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "no selection"),
        (" , ", "names no node"),
        ("bb", "did you mean `b`"),
        ("99", "1 to 9"),
        ("4", "`confirm` of `b`"),
        ("9-2", "the other way round"),
        ("h/e", "each/h/try/e"),
    ],
)
def test_what_means_nothing_is_refused_with_what_was_meant(text: str, told: str) -> None:
    """In words."""
    with pytest.raises(ModelError) as refused:
        node_map.select(text, PLACES)
    assert refused.value.code == "node-unknown"
    assert told in f"{refused.value.message} {refused.value.fix}"


@given(
    st.text("abegx0129.,-–[]#/ ", max_size=20)
    | st.lists(st.sampled_from([*PLACES.all, "1", "3-7", "all", "..", "x", "[", "/"])).map(",".join)
)
def test_any_text_means_nodes_or_is_refused(text: str) -> None:
    """Nothing else comes of it, and no node is meant twice, by itself or within another."""
    try:
        chosen = node_map.select(text, PLACES).ids
    except ModelError:
        return
    covered = [each.id for node_id in chosen for each in PLACES.below(node_id)]
    assert len(covered) == len(set(covered))
    assert list(chosen) == sorted(chosen, key=lambda each: PLACES[each].position)


def test_what_comes_before_a_node_is_what_changes_the_page() -> None:
    """Reads and data do not; a group is only a name for its nodes; a loop counts as a whole, and for its own nodes only as their one turn."""
    text = TEXT + "  - {id: last, type: browser_query, query: url}\n"
    places = places_of(text)
    assert [key for _place, key in places.before("last", {})] == ["b", "each"]
    assert [key for _place, key in places.before("e", {"each": "[2]"})] == ["b"]
    assert [key for _place, key in places.up_to("e", {"each": "[2]"})] == ["b", "e[2]"]
    assert places.path("e", {"each": "[2]"}) == "each[2]/h/try/e"
    assert places.items_in("each[2]/h/try/e") == {"each": "[2]"}


# What counts.


def chain_of(rests: Sequence[Sequence[int]], add: Sequence[int]) -> str:
    """A draft of data: node ``i`` is the sum of those that it rests on, and of a number."""
    nodes: list[Any] = []
    for number, (rest, more) in enumerate(zip(rests, add, strict=True)):
        said = " + ".join([*(f"n{each}" for each in rest), str(more)])
        nodes.append({"id": f"n{number}", "type": "transform", "expr": f"{{{{ {said} }}}}"})
    return yaml.safe_dump({"version": 1, "nodes": nodes})


@st.composite
def drafts(draw: st.DrawFn) -> tuple[list[list[int]], list[int]]:
    """Which node rests on which before it, and what each adds."""
    size = draw(st.integers(1, 6))
    rests = [
        draw(st.lists(st.integers(0, number - 1), unique=True, max_size=3)) if number else [] for number in range(size)
    ]
    return rests, [draw(st.integers(0, 2)) for _ in range(size)]


def value_of(number: int, rests: Sequence[Sequence[int]], add: Sequence[int]) -> int:
    """What a node yields."""
    return sum(value_of(each, rests, add) for each in rests[number]) + add[number]


def ran(number: int, rests: Sequence[Sequence[int]], add: Sequence[int], places: NodeMap) -> Record:
    """What came of a node that ran on values that counted."""
    node = f"n{number}"
    reads = {f"n{each}": digest(value_of(each, rests, add)) for each in rests[number]}
    value: Json = value_of(number, rests, add)
    return Record(node, node, {}, places.print(node), reads, (), "run", ran=True, value=value)


@settings(max_examples=50)
@given(drafts(), st.data())
def test_a_value_counts_if_and_only_if_it_would_come_out_so_again(
    made: tuple[list[list[int]], list[int]], data: st.DataObject
) -> None:
    """After an edit of any nodes a value counts only where neither the node nor anything that it rests on was edited; and a selection that is told makes it so again."""
    rests, add = made
    places = places_of(chain_of(rests, add))
    records = {f"n{number}": ran(number, rests, add, places) for number in range(len(rests))}
    edited = data.draw(st.sets(st.integers(0, len(rests) - 1)))
    otherwise = [more + 3 if number in edited else more for number, more in enumerate(add)]
    now = places_of(chain_of(rests, otherwise))
    judge = FreshnessCheck(now, records, {}, {})

    def touched(number: int) -> bool:
        return number in edited or any(map(touched, rests[number]))

    for number in range(len(rests)):
        known, value = judge.value((f"n{number}",), {})
        assert known == (not touched(number))
        assert not known or value == value_of(number, rests, otherwise)
        lacks = judge.missing(f"n{number}", {})
        assert bool(lacks) == any(map(touched, rests[number]))
        if not lacks:
            continue
        # What is told is run, in its order: each finds what it reads, and the value counts again.
        told = judge.refresh(lacks)
        assert told is not None
        fresh = dict(records)
        for each in node_map.select(told, now).ids:
            assert not FreshnessCheck(now, fresh, {}, {}).missing(each, {})
            fresh[each] = ran(int(each[1:]), rests, otherwise, now)
        assert FreshnessCheck(now, fresh, {}, {}).value((f"n{number}",), {})[0]


@settings(max_examples=50)
@given(drafts(), st.data())
def test_a_pin_is_read_in_the_place_of_what_lacks(made: tuple[list[list[int]], list[int]], data: st.DataObject) -> None:
    """With everything that a node reads pinned, nothing lacks; without records nothing else is known."""
    rests, add = made
    places = places_of(chain_of(rests, add))
    number = data.draw(st.integers(0, len(rests) - 1))
    pins: dict[str, Json] = {f"n{each}": 5 for each in rests[number]}
    judge = FreshnessCheck(places, {}, {}, pins)
    assert judge.missing(f"n{number}", {}) == []
    assert {each for each in places.all if judge.value((each,), {})[0]} == set(pins)


def test_a_record_survives_the_log() -> None:
    """What is written is what is read again."""
    places = places_of(chain_of([[], [0]], [1, 2]))
    for number in (0, 1):
        record = ran(number, [[], [0]], [1, 2], places)
        assert Record.of(record.as_json()) == record
    assert list(itertools.chain(Record.of(record.as_json(), masked=True).sets)) == []
