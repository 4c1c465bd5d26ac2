"""States that the bench kept, and whose page is another one when they are restored."""

from __future__ import annotations

from pathlib import Path

import pytest

from runtime.browser.port import Differs, Shown
from tests.benches import Rig
from tests.fakes import FakePage, FakeSite

pytestmark = pytest.mark.anyio

SITE = "http://127.0.0.1:8765"

NODES = f"""
  - {{id: open, type: browser_action, action: goto, url: "{SITE}/login"}}
  - {{id: submit, type: browser_action, action: click, target: {{text: submit}}, effect: idempotent}}
  - {{id: list, type: browser_action, action: goto, url: "{SITE}/list"}}
  - {{id: where, type: browser_query, query: url}}
"""


async def rig_at_the_list(folder: Path, nodes: str = NODES) -> Rig:
    """A bench that has run all nodes and lost its browser; the site signs in by a click."""
    rig = Rig(folder, nodes, FakeSite())

    async def follow(_target: str, page: FakePage) -> None:
        await page.goto(f"{SITE}/home")

    rig.site.on_click = follow
    assert "failed" not in (await rig.execute("all")).values()
    await rig.bench.close()
    return rig


async def test_a_state_that_the_site_no_longer_takes_is_given_up(tmp_path: Path) -> None:
    """If a restored state leads to another address, the nodes are done again from the last valid state, and one line says so."""
    rig = await rig_at_the_list(tmp_path)
    signed_out = f"{SITE}/login?redirect=list"
    rig.site.leads = {f"{SITE}/list": signed_out, f"{SITE}/home": signed_out}
    opened = len(rig.bench.opened)
    assert await rig.execute("where") == {"submit": "ok", "list": "ok", "where": "ok"}
    assert "note: the state kept after `list` is no longer valid (the site shows /login)\n" in rig.told
    assert "note: the state kept after `submit` is no longer valid (the site shows /login)\n" in rig.told
    assert "began on the state kept after `open`; redone first, to get there: submit, list" in rig.told
    assert rig.bench.values()["where"] == f"{SITE}/list"
    assert len(rig.bench.opened) == opened + 3
    # The state that was kept meanwhile counts.
    rig.site.leads = {}
    await rig.bench.close()
    assert await rig.execute("where") == {"where": "ok"}
    assert "began on the state kept after `list`" in rig.told


async def test_without_any_valid_state_a_new_browser_begins(tmp_path: Path) -> None:
    """If no kept state is valid, all nodes that lead there are done again in a new browser."""
    rig = await rig_at_the_list(tmp_path)
    rig.site.leads = dict.fromkeys((f"{SITE}/{each}" for each in ("login", "home", "list")), f"{SITE}/gone")
    assert (await rig.execute("where"))["where"] == "ok"
    assert "began on a new browser; redone first, to get there: open, submit, list" in rig.told


async def test_no_action_is_repeated_for_a_state_that_was_lost(tmp_path: Path) -> None:
    """If only an action leads to the page anew, the call is refused, says what was lost, and leaves the page for `live`."""
    rig = await rig_at_the_list(tmp_path, NODES.replace(", effect: idempotent", ""))
    rig.site.leads = {f"{SITE}/list": f"{SITE}/login", f"{SITE}/home": f"{SITE}/login"}
    assert await rig.execute("where") == {"error": "state-missing"}
    assert rig.told.startswith("the state kept after `list` is no longer valid (the site shows /login); ")
    assert rig.site.actions == ['text="submit"']
    assert await rig.execute("where", begin="live") == {"where": "ok"}
    assert rig.bench.values()["where"] == f"{SITE}/login"


async def test_another_page_at_the_address_is_used_and_told(tmp_path: Path) -> None:
    """A page that looks otherwise at its address may only be slow: the node runs on it, and a note says so."""
    rig = await rig_at_the_list(tmp_path)
    rig.site.differs = Differs(None, Shown(f"{SITE}/list?t=1", "", "dialog"), Shown(f"{SITE}/list?t=2", "", ""))
    for _each in range(2):
        assert await rig.execute("where") == {"where": "ok"}
        assert "note: the page of the state kept after `list` is not as it was: " in rig.told
        assert "began on the state kept after `list`" in rig.told
        await rig.bench.close()
