"""Kept states of the bench in a real browser, on a site that renews a sign-in at each load."""

from __future__ import annotations

from pathlib import Path

import pytest

from director.bench import tools
from tests import build_contexts, site

pytestmark = [pytest.mark.anyio, pytest.mark.drawn(0)]


async def test_a_sign_in_that_is_renewed_at_each_load_is_made_again(tmp_path: Path) -> None:
    """A state whose token was used up leads to the sign-in page: the bench says so, signs in again, and the node runs on its page."""
    token = 0

    def renewed(body: str, **headers: str) -> site.Answer:
        nonlocal token
        token += 1
        return site.Answer(body, 302 if headers else 200, {"set-cookie": f"token={token}.; Path=/", **headers})

    def listed(request: site.Request) -> site.Answer:
        if f"token={token}." not in request.headers.get("cookie", ""):
            return site.Answer(status=302, headers={"location": "/login?redirect=list"})
        return renewed("<!doctype html><title>List</title><main><h1>List</h1><p data-testid=state>open</p></main>")

    with site.serve() as served:
        served.page("/login", "<!doctype html><title>Sign in</title><form><a href=/enter>Enter</a></form>")
        served.answer("/enter", lambda _request: renewed("", location="/list"))
        served.answer("/list", listed)
        text = f"""
version: 1
nodes:
  - {{id: open, type: browser_action, action: goto, url: "{served.origin}/login"}}
  - {{id: enter, type: browser_action, action: click, target: {{role: link, name: Enter}}, effect: idempotent}}
  - {{id: list, type: browser_action, action: goto, url: "{served.origin}/list"}}
  - {{id: state, type: browser_query, query: text, target: {{test_id: state}}}}
"""
        build = build_contexts.opened(tmp_path, served.origin, text)
        try:
            told = [await execute(build, nodes) for nodes in ("all", "state", "state")]
        finally:
            await build.close()
    assert "began on the state kept after `list`" in told[1]
    assert "state = " in told[1]
    assert "note: the state kept after `list` is no longer valid (the site shows /login)\n" in told[2]
    assert "began on the state kept after `open`; redone first, to get there: enter, list" in told[2]
    assert 'state = "open"' in told[2]


async def execute(build: build_contexts.BuildContext, nodes: str) -> str:
    """Run nodes on a bench without a live page."""
    await build.bench.close()
    given = {"nodes": nodes, "mode": None, "from": None, "item": None, "reason": "to see"}
    return (await build_contexts.call(build, "execute_nodes", [tools.Execute(build, tools.EXECUTE)], **given)).text
