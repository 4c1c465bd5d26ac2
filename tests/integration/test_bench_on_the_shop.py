"""Nodes executed in a real browser against the demo shop: pages, states, typed input, items, and the shop's ledger of performed actions."""

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

pytestmark = [pytest.mark.anyio, pytest.mark.drawn(share=0.25, of="bench on the shop")]

TEXT = shop_flows.sign_in("Pay") + shop_flows.PAY_EACH + shop_flows.VERIFY


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[shop_process.Shop]:
    """A shop with open orders."""
    with shop_process.Shop.start(tmp_path_factory.mktemp("shop"), orders=3, paid=0) as started:
        yield started


@pytest.fixture(scope="module")
async def build(shop: shop_process.Shop, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[BuildContext]:
    """One build context; its policy performs every action."""
    known = {"SHOP_PASSWORD": shop.password}
    made = build_contexts.opened(
        tmp_path_factory.mktemp("build"), shop.url, TEXT, inputs={"base_url": shop.url}, known=known
    )
    yield made
    await made.close()


def observer_of(build: BuildContext) -> observer.PageObserver:
    """The page observer of a build."""
    assert isinstance(build.observer, observer.PageObserver)
    return build.observer


async def execute(
    build: BuildContext,
    nodes: str,
    mode: str | None = None,
    begin: str | None = None,
    item: str | None = None,
) -> str:
    """Runs `execute_nodes` and returns its text."""
    given: dict[str, Json] = {"nodes": nodes, "mode": mode, "from": begin, "item": item, "reason": "to see"}
    return (await build_contexts.call(build, "execute_nodes", [tools.Execute(build, tools.EXECUTE)], **given)).text


async def test_a_sign_in_is_tried_step_by_step_and_continued(shop: shop_process.Shop, build: BuildContext) -> None:
    """Typed input stays on the live page and is typed again on a stored state. The signed-in session is kept, and each payment happens once."""
    output = await execute(build, "login..user")
    assert 'textbox "Username"' in output
    assert '= "admin"' in output
    output = await execute(build, "submit")
    assert "on the current page; redone first, to get there: pass" in output
    assert f"url: {shop.url}/login -> /orders" in output
    assert shop.password not in output
    assert 'heading "Orders"' in output
    # The whole page was shown, and is not shown again.
    seen = {"tab": "bench", "instruction": None, "ref": None, "dom": None, "screenshot": None, "reason": "to see"}
    assert "nothing changed" in (await build_contexts.call(build, "inspect_tab", scouting.toolsets(build), **seen)).text
    # Elements that were shown can be pointed at.
    [ref] = re.findall(r'link "Paid" \[ref=(\w+)\]', output)
    sight = observer_of(build)
    async with sight.pointed_at(sight.page("bench"), ref) as (_pointed, element):
        assert element.name == "Paid"
    output = await execute(build, "orders")
    assert "orders = [" in output
    # A read does not show the page again, and its output says so.
    assert output.endswith(f"\n{report.NOT_SHOWN}")
    # A rebuilt browser is still signed in, and on the same page.
    await build.bench.close()
    output = await execute(build, "pay", item="2")
    assert "on the state kept after `submit`" in output
    assert "| paid |" in output
    assert [each["subject"] for each in shop.ledger("payment")] == ["1001"]
    output = await execute(build, "pay", item="1002")
    assert "on the state kept after `submit`" in output
    assert [each["subject"] for each in shop.ledger("payment")] == ["1001", "1002"]
    # A paid order has no button: nothing is done, and the nearest elements are listed.
    written = build.state.draft
    assert written is not None
    quick = draft.Draft.of(
        written.text.replace(
            "action: click\n        target", "action: click\n        timeout: 1\n        target"
        ).replace("query: extract\n", "query: extract\n    timeout: 1\n")
    )
    build.state.write_draft(quick, reason="to be quick")
    output = await execute(build, "pay", begin="live", item="1002")
    assert "failed (target-not-found, before its action)" in output
    assert "nearest:" in output
    assert "fix: " in output
    output = await execute(build, "user,pass", mode="isolated")
    assert "all done: 2 of 2" in output
    assert "on the state kept after `login`" in output
    output = await execute(build, "orders..each", begin="fresh")
    assert "failed (target-not-found" in output
    assert len(shop.ledger("payment")) == 2


async def test_a_site_frame_that_scouting_has_shown_is_one_line_on_the_bench(tmp_path: Path) -> None:
    """A page that scouting has shown is not repeated after a node, nor is its navigation on the next page."""
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
            arguments = {"tab": None, "url": f"{served.origin}/", "reason": "to see"}
            output = (await build_contexts.call(build, "debug_navigate", scouting.toolsets(build), **arguments)).text
            assert 'link "Staff"' in output
            output = await execute(build, "home")
            assert 'page "Home" /\nas shown before\n' in output
            assert "Welcome" not in output
            output = await execute(build, "bills", begin="live")
            assert 'heading "Due"' in output
            assert 'navigation "Main"' in output
            assert 'link "Staff"' not in output
        finally:
            await build.close()


async def test_page_errors_are_shown(tmp_path: Path) -> None:
    """Script and console errors appear with the node that met them. A document answered with an error shows only its status, which also comes first."""
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
            output = (await execute(build, "all")).split("\n2 press")
        finally:
            await build.close()
    assert "page complains: console: lost" in output[0]
    assert "none is not defined" in output[1]
    assert "/broken was answered" not in output[1]
    assert "Failed to load" not in output[1]
    assert "\n3 bad  ok, but the site answered 500\n" in output[1]
    assert "\n4 items  failed (error-page, before its action), on an error page (500)\n" in output[1]
    assert output[0].startswith("the site answered 500 after `bad`\nstopped at the first failure")
    assert "lost" not in output[1]


ONE = """
  - {id: order, type: browser_action, action: goto, url: "{{ inputs.base_url }}/orders/1001"}
  - id: pay
    type: browser_action
    action: click
    target: {role: button, name: Pay}
    verify: [{text: paid, target: {test_id: status}}]
    confirm:
      settle: 0
      nodes:
        - {id: nowhere, type: browser_action, action: goto, url: "{{ inputs.base_url }}/nowhere"}
        - {id: look, type: browser_action, action: goto, url: "{{ inputs.base_url }}/orders/1001"}
        - {id: status, type: browser_query, query: text, target: {test_id: status}}
      done: "{{ status == 'paid' }}"
"""


async def test_a_confirm_is_tried_beside_the_page(tmp_path: Path) -> None:
    """It reads in a separate tab, whose errors are not those of the node's page; done once, the payment is not done again."""
    with shop_process.Shop.start(tmp_path / "shop", orders=1, paid=0) as own:
        text = shop_flows.sign_in("Pay") + ONE
        known = {"SHOP_PASSWORD": own.password}
        build = build_contexts.opened(tmp_path, own.url, text, inputs={"base_url": own.url}, known=known)
        try:
            output = await execute(build, "login..pay")
            assert "pay  ok, verify held, confirm agrees" in output
            assert "404" not in output
            assert 'heading "Order 1001"' in output
            assert len(own.ledger("payment")) == 1
            output = await execute(build, "pay", begin="live")
            assert "pay  not done: confirm says that it is done already" in output
            assert len(own.ledger("payment")) == 1
        finally:
            await build.close()
