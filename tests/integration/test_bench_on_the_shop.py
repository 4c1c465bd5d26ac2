"""The bench in a real browser on a real shop: pages, states, typed input, items, and the shop's own ledger of what was done."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from director.bench import report, tools
from director.draft import draft
from director.scouting import observer
from director.scouting import tools as scouting
from director.tools.build_context import BuildContext
from nodes.values import Json
from tests import build_contexts, shop_flows, shop_process, site

pytestmark = pytest.mark.anyio

TEXT = shop_flows.sign_in("Pay") + shop_flows.PAY_EACH + shop_flows.VERIFY


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[shop_process.Shop]:
    """A shop with open orders."""
    with shop_process.Shop.start(tmp_path_factory.mktemp("shop"), orders=3, paid=0) as started:
        yield started


@pytest.fixture(scope="module")
async def build(shop: shop_process.Shop, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[BuildContext]:
    """One build, whose actions are all done."""
    known = {"SHOP_PASSWORD": shop.password}
    made = build_contexts.opened(
        tmp_path_factory.mktemp("build"), shop.url, TEXT, inputs={"base_url": shop.url}, known=known
    )
    yield made
    await made.close()


def observer_of(build: BuildContext) -> observer.PageObserver:
    """The eyes of a build."""
    assert isinstance(build.observer, observer.PageObserver)
    return build.observer


async def execute(
    build: BuildContext,
    nodes: str,
    mode: str | None = None,
    begin: str | None = None,
    item: str | None = None,
) -> str:
    """What the tool tells."""
    given: dict[str, Json] = {"nodes": nodes, "mode": mode, "from": begin, "item": item, "reason": "to see"}
    return (await build_contexts.call(build, "execute_nodes", [tools.Execute(build, tools.EXECUTE)], **given)).text


async def test_a_sign_in_is_tried_step_by_step_and_gone_on_from(shop: shop_process.Shop, build: BuildContext) -> None:
    """Typed input stays on the live page; on a kept state it is typed again; the session behind the action is kept; and each payment is done once."""
    told = await execute(build, "login..user")
    assert 'textbox "Username"' in told
    assert '= "admin"' in told
    told = await execute(build, "submit")
    assert "on the current page; redone first, to get there: pass" in told
    assert f"url: {shop.url}/login -> {shop.url}/orders" in told
    assert shop.password not in told
    assert 'heading "Orders"' in told
    # All of the page was told, and is not told once more.
    seen = {"tab": "bench", "instruction": None, "ref": None, "reason": "to see"}
    assert "nothing changed" in (await build_contexts.call(build, "inspect_tab", scouting.toolsets(build), **seen)).text
    # What was told of the page may be pointed at.
    [ref] = re.findall(r'link "Paid" \[ref=(\w+)\]', told)
    sight = observer_of(build)
    async with sight.pointed_at(sight.page("bench"), ref) as (_pointed, element):
        assert element.name == "Paid"
    told = await execute(build, "orders")
    assert "orders = [" in told
    # What only reads shows no page a second time, and says so.
    assert told.endswith(f"\n{report.NOT_SHOWN}")
    # A browser that is built anew is signed in still, and stands where it stood.
    await build.bench.close()
    told = await execute(build, "pay", item="2")
    assert "on the state kept after `submit`" in told
    assert "| paid |" in told
    assert [each["subject"] for each in shop.ledger("payment")] == ["1001"]
    told = await execute(build, "pay", item="1002")
    assert "on the state kept after `submit`" in told
    assert [each["subject"] for each in shop.ledger("payment")] == ["1001", "1002"]
    # What was paid has no button any more: nothing is done, and what stands there instead is told.
    written = build.state.draft
    assert written is not None
    quick = draft.Draft.of(
        written.text.replace(
            "action: click\n        target", "action: click\n        timeout: 1\n        target"
        ).replace("query: extract\n", "query: extract\n    timeout: 1\n")
    )
    build.state.write_draft(quick, reason="to be quick")
    told = await execute(build, "pay", begin="live", item="1002")
    assert "failed (target-not-found, before its action)" in told
    assert "nearest:" in told
    assert "fix: " in told
    told = await execute(build, "user,pass", mode="isolated")
    assert "all done: 2 of 2" in told
    assert "on the state kept after `login`" in told
    told = await execute(build, "orders..each", begin="fresh")
    assert "failed (target-not-found" in told
    assert len(shop.ledger("payment")) == 2


async def test_the_frame_of_a_site_that_the_scout_has_told_is_a_line_on_the_bench(tmp_path: Path) -> None:
    """Whoever has seen a navigation beside the workflow is not told it once more behind a node, nor on the page after it."""
    with site.serve() as served:
        menu = "<nav aria-label=Main><a href=/>Home</a><a href=/bills>Bills</a><a href=/staff>Staff</a></nav>"
        served.page("/", f"<!doctype html><title>Home</title>{menu}<main><h1>Welcome</h1></main>")
        served.page("/bills", f"<!doctype html><title>Bills</title>{menu}<main><h1>Due</h1></main>")
        text = f"""
version: 1
nodes:
  - {{id: home, type: browser_action, action: goto, url: "{served.origin}/"}}
  - {{id: bills, type: browser_action, action: goto, url: "{served.origin}/bills"}}
"""
        build = build_contexts.opened(tmp_path, served.origin, text)
        try:
            looked = {"tab": None, "url": f"{served.origin}/", "reason": "to see"}
            told = (await build_contexts.call(build, "debug_navigate", scouting.toolsets(build), **looked)).text
            assert 'link "Staff"' in told
            for node, heading in (("home", "Welcome"), ("bills", "Due")):
                told = await execute(build, node, begin="live" if node == "bills" else None)
                assert f'heading "{heading}"' in told
                assert 'navigation "Main"' in told
                assert 'link "Staff"' not in told
        finally:
            await build.close()


async def test_what_pages_complain_of_is_told(tmp_path: Path) -> None:
    """Errors of scripts and of the console, with the node that met them and no other; a document that the site answered with an error by its status alone, in the line of the node and first of all."""
    with site.serve() as served:
        served.page(
            "/",
            "<!doctype html><title>Home</title><button onclick='none()'>Break</button><script>console.error('lost')</script>",
        )
        served.answer("/broken", lambda _request: site.Answer("<!doctype html><h1>Oops</h1>", status=500))
        text = f"""
version: 1
nodes:
  - {{id: home, type: browser_action, action: goto, url: "{served.origin}/"}}
  - {{id: press, type: browser_action, action: click, target: {{role: button, name: Break}}}}
  - {{id: bad, type: browser_action, action: goto, url: "{served.origin}/broken"}}
  - {{id: items, type: browser_query, query: count, target: {{css: li}}}}
"""
        build = build_contexts.opened(tmp_path, served.origin, text)
        try:
            told = (await execute(build, "all")).split("\n2 press")
        finally:
            await build.close()
    assert "page complains: console: lost" in told[0]
    assert "none is not defined" in told[1]
    assert "/broken was answered" not in told[1]
    assert "Failed to load" not in told[1]
    assert "\n3 bad  ok, but the site answered 500\n" in told[1]
    assert "\n4 items  failed (error-page, before its action), on an error page (500)\n" in told[1]
    assert told[0].startswith("the site answered 500 after `bad`\nstopped at the first failure")
    assert "lost" not in told[1]
