"""An excerpt runs some nodes of a file as one run, in their places, with given values."""

from __future__ import annotations

import pathlib
from collections.abc import Mapping
from typing import Any

import pytest
from typing_extensions import override

from nodes.base import Node
from nodes.errors import UsageError
from nodes.iterate import Iterate
from nodes.ports import Item
from nodes.values import Json
from runtime.engine import run_state, scopes
from runtime.runs import excerpt, run
from tests import rig

pytestmark = pytest.mark.anyio

TEXT = """
version: 1
nodes:
  - {id: open, type: browser_action, action: goto, url: "http://shop.test/"}
  - {id: list, type: transform, expr: "{{ [{'no': 1}, {'no': 2}] }}"}
  - id: each
    type: iterate
    over: "{{ list }}"
    as: order
    key: "{{ order.no }}"
    nodes:
      - {id: name, type: transform, expr: "{{ 'N' ~ order.no }}"}
      - {id: pay, type: browser_action, action: click, target: {text: "Pay {{ name }} of {{ loop.length }}"}}
  - {id: seen, type: context, set: {more: 1}}
  - {id: total, type: transform, expr: "{{ list | length + vars.more }}"}
  - {id: maybe, type: transform, expr: "{{ 1 }}", when: "{{ vars.more == 2 }}"}
  - {id: behind, type: transform, expr: "{{ maybe | default('none') }}"}
"""


class Watching(run_state.Watch):
    """Records what it sees."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    @override
    async def before(self, node: Node, frame: scopes.Scope, path: str) -> None:
        self.seen.append(f"> {path}")

    @override
    async def after(self, node: Node, frame: scopes.Scope, path: str, *, ran: bool) -> None:
        self.seen.append(f"{path} {frame[node.id]}" if ran else f"{path} -")


async def run_of(one: rig.Rig, part: excerpt.Excerpt) -> Any:
    """Runs the excerpt and returns its end."""
    writer = one.open_writer = await one.newly_begun()
    run.write_header(writer, one.loaded, one.inputs, trial=part.header, parent="01SESSION")
    own = one._run(writer)
    return await own.drive(part.run(own.engine))


def segment(
    one: rig.Rig, node: str, path: str | None = None, bound: Mapping[str, Json] | None = None
) -> excerpt.Segment:
    """A node of the rig's file, in its place."""
    return excerpt.Segment(one.loaded.index[node][0], path or node, bound or {})


async def test_segments_run_in_order_in_their_places_with_given_values(tmp_path: pathlib.Path) -> None:
    """A leaf of a loop runs as in its iteration, and unselected nodes do not run. The watcher sees each node and its value."""
    one, watch = rig.Rig(tmp_path, TEXT), Watching()
    item = Item("order", {"no": 7}, 1, 3, 7)
    pay = segment(one, "pay", "each[#7]/pay", {**item.bound, "name": "N7"})
    total = segment(one, "total")
    part = excerpt.Excerpt(
        segments=[pay, total], names=["pay", "total"], values={"list": [1, 2]}, variables={"more": 5}, watch=watch
    )
    ended = await run_of(one, part)
    assert (ended.status, ended.output) == ("passed", 7)
    assert one.site.actions == ['text="Pay N7 of 3"']
    assert watch.seen == ["> each[#7]/pay", "each[#7]/pay about:blank", "> total", "total 7"]
    assert list(one.history.attempts) == ["each[#7]/pay", "total"]


async def test_the_earlier_value_of_a_skipped_segment_is_dropped(tmp_path: pathlib.Path) -> None:
    """Once a segment is skipped, later ones no longer see its given value, as in a full run."""
    one = rig.Rig(tmp_path, TEXT)
    segments = [segment(one, "maybe"), segment(one, "behind")]
    part = excerpt.Excerpt(segments=segments, names=["maybe", "behind"], values={"maybe": 7}, variables={"more": 1})
    assert (await run_of(one, part)).output == "none"


async def test_a_segment_may_depend_on_an_earlier_one(tmp_path: pathlib.Path) -> None:
    """The same run may compute the list of the loop."""
    one = rig.Rig(tmp_path, TEXT)
    loop = one.loaded.index["each"][0]
    assert isinstance(loop, Iterate)

    def placed(names: Mapping[str, Json]) -> excerpt.Segment:
        item = excerpt.turn(loop, excerpt.turns(one.loaded, loop, names), "2")
        return segment(one, "name", f"each{item.segment}/name", item.bound)

    ended = await run_of(one, excerpt.Excerpt(segments=[segment(one, "list"), placed], names=["list", "name"]))
    assert ended.output == "N2"
    assert list(one.history.attempts) == ["list", "each[#2]/name"]


async def test_a_withheld_action_is_reported(tmp_path: pathlib.Path) -> None:
    """A withheld action pauses the excerpt, which has its arguments."""
    one = rig.Rig(tmp_path, TEXT)
    pay = segment(one, "pay", "each[1]/pay", {**Item("order", {}, 1, 1, None).bound, "name": "A"})
    part = excerpt.Excerpt(segments=[pay, segment(one, "total")], names=["pay", "total"])
    writer = one.open_writer = await one.newly_begun()
    run.write_header(writer, one.loaded, one.inputs, trial=part.header)
    own = one._run(writer)
    own.engine.state.holds = lambda node, _path: node.effect_class == "effect"
    ended = await own.drive(part.run(own.engine))
    assert (ended.status, ended.question["reason"] if ended.question else None) == ("paused", "held")
    assert part.withheld is not None
    assert part.withheld["args"]["target"] == {"text": "Pay A of 1"}
    assert one.site.actions == []
    assert one.calls("total") == []


def test_an_item_is_found_by_key_or_number_or_refused() -> None:
    """Without a name the first item is taken, and keys precede numbers. An unknown item is refused with the valid range."""
    loop = Iterate.model_validate(
        {
            "id": "each",
            "over": "{{ list }}",
            "as": "order",
            "nodes": [{"id": "x", "type": "transform", "expr": "{{ 1 }}"}],
        }
    )
    listed = [Item("order", None, number, 2, key) for number, key in ((1, 2), (2, 9))]
    assert excerpt.turn(loop, listed, None).index == 1
    assert [excerpt.turn(loop, listed, each).index for each in ("2", "9", "1")] == [1, 2, 1]
    with pytest.raises(UsageError, match="no item") as refused:
        excerpt.turn(loop, listed, "3")
    assert "1 to 2" in (refused.value.fix or "")
    with pytest.raises(UsageError, match="empty"):
        excerpt.turn(loop, [], None)
