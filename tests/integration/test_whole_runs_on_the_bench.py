"""Whole runs of a draft in the bench's browser against the demo shop: where they end is shown, and nodes continue there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from director.bench import tools as bench_tools
from director.draft import draft
from director.proving import report
from director.proving import tools as proving
from director.scouting import observer
from tests import build_contexts, shop_flows, shop_process

pytestmark = pytest.mark.anyio


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[shop_process.Shop]:
    """A shop with open orders."""
    with shop_process.Shop.start(tmp_path, orders=3, paid=0) as started:
        yield started


async def test_nodes_after_an_action_are_tried_where_the_whole_run_ended(
    shop: shop_process.Shop, tmp_path: Path
) -> None:
    """A passed `run_draft` shows its last page with refs that work, and new nodes run on it, with each payment made once."""
    text = shop_flows.sign_in("Pay") + shop_flows.PAY_EACH + shop_flows.VERIFY
    known = {"SHOP_PASSWORD": shop.password}
    build = build_contexts.opened(tmp_path / "b", shop.url, text, inputs={"base_url": shop.url}, known=known)
    try:
        given = {"inputs": None, "reason": "all"}
        done = await build_contexts.call(build, "run_draft", proving.toolsets(build), **given)
        assert done.error is None, done.text
        shown = done.text.partition(report.LEFT)[2]
        [ref, *_more] = re.findall(r'link "Paid" \[ref=(\w+)\]', shown)
        sight = build.observer
        assert isinstance(sight, observer.PageObserver)
        async with sight.pointed_at(sight.page("bench"), ref) as (_pointed, element):
            assert element.name == "Paid"
        assert len(shop.ledger("payment")) == 3
        node = "  - {id: title, type: browser_query, query: text, target: {role: heading, name: Orders}}\n"
        build.state.write_draft(draft.Draft.of(f"{text.rstrip()}\n{node}"), reason="reads on")
        asked = {"nodes": "title", "mode": None, "from": None, "item": None, "reason": "to see"}
        tool = bench_tools.Execute(build, bench_tools.EXECUTE)
        tried = (await build_contexts.call(build, "execute_nodes", [tool], **asked)).text
        assert "began on the current page" in tried
        assert "title  ok" in tried
        assert len(shop.ledger("payment")) == 3
    finally:
        await build.close()
