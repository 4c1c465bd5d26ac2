"""Guards: steps that change nothing, and that each run passed by as their condition did not hold, leave a proof full."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from director.proving import tools
from tests import build_contexts
from tests.finishes import TEXT, Browsers, clicks, finish, installed, left, opened

pytestmark = pytest.mark.anyio


@pytest.fixture
def browsers(monkeypatch: pytest.MonkeyPatch) -> Browsers:
    """The browsers that runs open here, on a site that takes each payment."""
    made = installed(monkeypatch)
    clicks(made, lambda _number: None)
    return made


SEEN = "{id: seen, type: browser_query, query: exists, target: {css: banner}}"


def shut(name: str, effect: str = "read") -> str:
    """A step that closes the banner."""
    return f"{{id: {name}, type: browser_action, action: click, target: {{text: Shut}}, effect: {effect}}}"


def look(name: str) -> str:
    """A step that reads."""
    return f"{{id: {name}, type: browser_query, query: text, target: {{test_id: status}}}}"


def when(node: str) -> str:
    """The node, if there is a banner."""
    return f"{node[:-1]}, when: '{{{{ seen }}}}'}}"


def route(name: str, *nodes: str) -> str:
    """A route with these nodes in its first branch."""
    branches = f"branches: [{{name: banner, when: '{{{{ seen }}}}', nodes: [{', '.join(nodes)}]}}]"
    return f"{{id: {name}, type: route, {branches}, otherwise: [{{id: {name}_fine, type: transform, expr: 1}}]}}"


def with_nodes(*nodes: str) -> str:
    """A file with these nodes at its end."""
    return TEXT.replace("output: {", "".join(f"  - {each}\n" for each in (SEEN, *nodes)) + "output: {")


async def test_guards_that_were_not_needed_leave_the_proof_full(tmp_path: Path, browsers: Browsers) -> None:
    """Their conditions were decided in each run and did not hold; the notes name them so, and as executed in no run nowhere."""
    gone = "{id: gone, type: browser_action, action: wait, verify: [{hidden: {css: banner}}]}"
    build = opened(
        tmp_path,
        with_nodes(
            when(shut("alone")),
            route("way", shut("first"), gone),
            when(f"{{id: all, type: group, nodes: [{shut('one')}, {shut('two')}]}}"),
            "{id: no, type: route, branches: [{name: yes, when: true, nodes: [{id: a, type: transform, expr: 1}]}, "
            f"{{name: later, when: true, nodes: [{shut('last')}]}}]}}",
        ),
    )
    outcome = await finish(build)
    value: Any = outcome.value
    notes = left(build)[1]
    assert (outcome.error, value["proved"]) == (None, "full")
    for named in ("alone", "way/banner", "all", "last"):
        assert f"- passed by: {named}: condition did not hold in 2 of 2 runs\n" in notes
    assert "executed in no run" not in notes


async def test_all_else_that_no_run_executed_is_named(tmp_path: Path, browsers: Browsers) -> None:
    """What may change something, reads, or is read stays unproved, and so does what no condition was decided about."""
    build = opened(
        tmp_path,
        with_nodes(
            when(shut("acts", "effect")),
            when(shut("may", "idempotent")),
            when(look("reads")),
            route("way", shut("fine"), look("also")),
            when(shut("is_read")),
            "{id: reader, type: transform, expr: \"{{ is_read | default('') }}\"}",
            f"{{id: each, type: iterate, over: [], as: it, nodes: [{when(shut('undecided'))}]}}",
            f"{{id: tried, type: handle, try: [{look('well')}], catch: [{shut('caught')}]}}",
        ),
    )
    outcome = await finish(build, unproved="acts: there is no banner")
    value: Any = outcome.value
    unproved = ["may", "reads", "also", "is_read", "undecided", "caught"]
    said = ", ".join(f"{each} (executed in no run)" for each in unproved)
    assert value["proved"] == f"all but acts (never reached), {said}"
    assert "- passed by: fine: " in left(build)[1]


async def test_a_guard_that_only_some_runs_decided_is_named(tmp_path: Path, browsers: Browsers) -> None:
    """Each run that counts must have decided its condition, those with other inputs too."""
    over = "over: \"{{ [1] if inputs.number == '8' else [] }}\""
    loop = f"{{id: all, type: iterate, {over}, as: it, nodes: [{when(shut('guard'))}, {look('line')}]}}"
    build = opened(tmp_path, with_nodes(loop))
    await build_contexts.call(build, "run_draft", tools.toolsets(build), inputs='{"number": "8"}', reason="more")
    value: Any = (await finish(build)).value
    assert value["proved"] == "all but guard (executed in no run)"
