"""A build on a site that asks for HTTP credentials, in a real browser: the line that says how, and scout and bench once the head has them."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from director.builds import open as open_build
from nodes.values import Json
from runtime.browser import http_sign_in
from tests import build_contexts, site

pytestmark = [pytest.mark.anyio, pytest.mark.drawn(0)]

SECRET = "correct-horse-battery"
BASIC = "Basic " + base64.b64encode(f"ada:{SECRET}".encode()).decode()

FIX = http_sign_in.fix(["PASSWORD"], given=False)
REFUSED = http_sign_in.fix(["PASSWORD"], given=True)

HEAD = 'browser: {http_credentials: {username: NAME, password: "{{ secrets.PASSWORD }}"}}\n'
NODES = """nodes:
  - {id: open, type: browser_action, action: goto, url: "{{ inputs.base_url }}/list"}
  - {id: total, type: browser_query, query: text, target: {test_id: total}, timeout: 1}
"""


def listed(request: site.Request) -> site.Answer:
    """What only Ada sees: the list, with the header that let her in."""
    sent = request.headers.get("authorization", "")
    if sent == BASIC:
        return site.Answer(f"<!doctype html><title>List</title><p data-testid=total>7</p><p>{sent} {SECRET}</p>")
    body = "" if request.path == "/silent" else "Not Authorized"
    return site.Answer(body, 401, {"www-authenticate": 'Basic realm="List"'})


async def test_a_site_that_asks_for_http_credentials(tmp_path: Path) -> None:
    """Scout and bench say what to write, and get in once the head has it, though their browsers were open already; the secret shows nowhere."""
    with site.serve() as served:
        for path in ("/list", "/silent"):
            served.answer(path, listed)
        build = build_contexts.opened(tmp_path, f"{served.origin}/list", known={"PASSWORD": SECRET})
        tools = [*open_build.toolsets(build)]

        async def call(tool: str, /, **given: Json) -> str:
            offered = next(each.tool for each in tools if each.tool.name == tool)
            fields = {each: "r" if each == "reason" else None for each in offered.parameters["properties"]}
            return (await build_contexts.call(build, tool, tools, **{**fields, **given})).text

        async def looks(path: str = "/list") -> str:
            return await call("debug_navigate", url=path)

        async def executes(nodes: str) -> str:
            return await call("execute_nodes", nodes=nodes)

        try:
            before = [await looks(), await looks("/silent")]
            await call("create_nodes", yaml=HEAD.replace("NAME", "eve") + NODES)
            wrong = [await looks(), await executes("all")]
            await call("update_node", id="workflow", yaml="browser: null")
            before += [await executes("open"), await executes("all")]
            await call("update_node", id="workflow", yaml=HEAD.replace("NAME", "ada"))
            after = [await looks(), await executes("all")]
        finally:
            await build.close()
    assert [each.count(FIX) for each in before] == [1, 1, 1, 1], before
    assert [each.count(REFUSED) for each in wrong] == [1, 1], wrong
    assert ["7" in after[0], 'total = "7"' in after[1]] == [True, True], after
    assert not any("credentials" in each for each in after)
    kept = b"\n".join(each.read_bytes() for each in tmp_path.rglob("*") if each.is_file()).decode(errors="replace")
    for each in (*before, *wrong, *after, kept):
        assert SECRET not in each
        assert BASIC not in each
