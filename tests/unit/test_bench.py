"""The bench: draft nodes run on the page and values of a whole run, and no action repeats unasked."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path

import pytest
from typing_extensions import override

from director.bench import report
from director.bench import tools as bench_tools
from director.builds import subject
from director.conversation import session_tools
from director.proving import finish, tools
from director.proving import report as proving_report
from nodes.errors import SiteError
from nodes.pages import ElementAction
from nodes.pointer import PLAIN, Stroke
from nodes.targets import Target
from nodes.values import Json
from runtime.browser import port
from runtime.log import entries
from runtime.messages.messages import ToolCall
from runtime.models.turns import turn
from runtime.runs import run, start
from tests import build_contexts
from tests.benches import HEAD, Rig
from tests.fakes import FakeBrowser, FakePage, FakeSite

pytestmark = pytest.mark.anyio

SIGN_IN = """
  - id: sign_in
    type: group
    nodes:
      - {id: open, type: browser_action, action: goto, url: "http://127.0.0.1:8765/login"}
      - {id: user, type: browser_action, action: fill, target: {text: user}, value: admin}
      - {id: submit, type: browser_action, action: click, target: {text: submit}}
"""

READS = """
  - {id: seen, type: browser_query, query: text, target: {text: status}}
  - {id: long, type: transform, expr: "{{ seen | length }}"}
  - {id: twice, type: transform, expr: "{{ long * 2 }}"}
"""

LOOP = """
  - {id: list, type: transform, expr: "{{ [{'no': 7}, {'no': 9}] }}"}
  - id: each
    type: iterate
    over: "{{ list }}"
    as: order
    key: "{{ order.no }}"
    nodes:
      - {id: name, type: transform, expr: "{{ 'N' ~ order.no ~ '/' ~ loop.length }}"}
      - {id: pay, type: browser_action, action: click, target: {text: "Pay {{ name }}"}}
"""


KEY = f"otpauth://totp/shop?digits=8&secret={base64.b32encode(b'12345678901234567890').decode()}"
"""Eight digits: six stand in a log by chance now and then."""


def site() -> FakeSite:
    """A site that shows a status."""
    return FakeSite(texts={'text="status"': "paid"})


async def test_a_selection_runs_each_node_once_in_file_order(tmp_path: Path) -> None:
    """A selected container runs its whole block, even if its nodes are also selected. Every value is shown and kept."""
    rig = Rig(tmp_path, SIGN_IN + READS, site())
    assert await rig.execute("twice, sign_in, submit, 5-6") == dict.fromkeys(
        ("sign_in", "open", "user", "submit", "seen", "long", "twice"), "ok"
    )
    assert rig.site.actions == ['text="submit"']
    known = rig.bench.values()
    assert list(known) == ["sign_in", "open", "user", "submit", "seen", "long", "twice"]
    assert (known["open"], known["seen"], known["twice"]) == ("http://127.0.0.1:8765/login", "paid", 8)


async def test_a_code_that_was_typed_stays_masked(tmp_path: Path) -> None:
    """The page still shows a one-time code when its run is over: neither the model nor a log, also of a later run, has it."""
    read = "  - {id: seen, type: browser_query, query: text, target: {text: status}}\n"
    rig = Rig(tmp_path, SIGN_IN + read, site(), known={"OTP": KEY})
    rig.edit("allowed_origins", "secrets: [OTP]\nallowed_origins")
    fill = "{id: code, type: browser_action, action: fill, target: {text: code}, value: '{{ totp(secrets.OTP) }}'}"
    rig.edit(read, f"  - {fill}\n{read}")
    assert (await rig.execute("sign_in, code"))["code"] == "ok"
    code = rig.bench.opened[-1].page.filled['text="code"']
    assert code.isdigit()
    rig.site.texts['text="status"'] = f"Your code is {code}"
    assert await rig.execute("seen") == {"seen": "ok"}
    assert "holds a secret: not shown" in rig.told
    assert code not in rig.told
    assert rig.build.masker.holds(code)
    assert not [file for file in tmp_path.rglob("*") if file.is_file() and code.encode() in file.read_bytes()]


async def test_a_node_begins_on_the_page_of_its_predecessor(tmp_path: Path) -> None:
    """A matching live page is reused. A kept state gets its typed text again. An action in between is refused."""
    rig = Rig(tmp_path, SIGN_IN + READS, site())
    assert (await rig.execute("submit"))["submit"] == "ok"
    assert "redone first, to get there: open, user" in rig.told
    assert "on a new browser" in rig.told
    assert await rig.execute("seen") == {"seen": "ok"}
    assert "on the current page" in rig.told
    # Again: the live page is after the action, and a kept state has no typed text.
    assert await rig.execute("submit") == {"user": "ok", "submit": "ok"}
    assert "on the state kept after `open`; redone first, to get there: user" in rig.told
    assert [browser.page.filled for browser in rig.bench.opened] == [{'text="user"': "admin"}] * 2
    assert rig.bench.opened[0].closed
    rig.edit("value: admin", "value: other")
    assert await rig.execute("seen") == {"error": "state-missing"}
    assert '"submit..seen"' in rig.told
    rig.edit(
        "  - {id: long",
        "  - {id: back, type: browser_action, action: goto, url: 'http://127.0.0.1:8765/back'}\n  - {id: long",
    )
    assert await rig.execute("back") == {"back": "ok"}, "an address is opened from the current page"
    assert len(rig.site.actions) == 2


async def test_a_click_that_only_reads_leads_to_another_page(tmp_path: Path) -> None:
    """A click with `effect: read` may be repeated, yet the pages before and after it are kept as different states."""
    rig = Rig(
        tmp_path,
        """
  - {id: open, type: browser_action, action: goto, url: "http://127.0.0.1:8765/"}
  - {id: queue, type: browser_action, action: click, target: {text: Queue}, effect: read}
  - {id: rows, type: browser_query, query: url}
  - {id: first, type: browser_action, action: click, target: {text: First}, effect: read}
  - {id: status, type: browser_query, query: url}
""",
    )

    async def follow(target: str, page: FakePage) -> None:
        await page.goto(f"http://127.0.0.1:8765/{'queue' if 'Queue' in target else 'queue/100'}")

    rig.site.on_click = follow
    assert "failed" not in str(await rig.execute("open..first"))
    assert await rig.execute("rows") == {"rows": "ok"}
    assert "on the state kept after `queue`" in rig.told
    assert rig.bench.values()["rows"] == "http://127.0.0.1:8765/queue"
    assert await rig.execute("status") == {"status": "ok"}
    assert "on the state kept after `first`" in rig.told
    assert rig.bench.values()["status"] == "http://127.0.0.1:8765/queue/100"
    assert rig.bench.browser is not None
    assert await rig.execute("first") == {"first": "ok"}
    assert rig.bench.marks()["status"] == "done"


async def test_an_edit_of_checks_makes_nothing_stale(tmp_path: Path) -> None:
    """An edit of a node's checks leaves values and states fresh; an edit of its action does not."""
    rig = Rig(tmp_path, SIGN_IN + READS, site())
    await rig.execute("all")
    rig.edit(
        "action: click, target: {text: submit}", "action: click, target: {text: submit}, timeout: 3, description: Go"
    )
    assert await rig.execute("seen..twice") == {"seen": "ok", "long": "ok", "twice": "ok"}
    rig.edit("text: submit}", "text: send}")
    assert await rig.execute("seen") == {"error": "state-missing"}
    assert await rig.execute("long") == {"error": "value-stale"}
    assert '"submit..long"' in rig.told or '"seen,long"' in rig.told


async def test_a_stale_or_missing_input_is_refused_with_the_selection_that_refreshes_it(tmp_path: Path) -> None:
    """The error for a missing or stale value names a selection, and that selection then runs."""
    rig = Rig(tmp_path, READS, site())
    assert await rig.execute("twice") == {"error": "value-missing"}
    assert 'execute "seen,long,twice"' in rig.told
    await rig.execute("all")
    rig.edit("| length }}", "| length + 1 }}")
    assert await rig.execute("twice") == {"error": "value-stale"}
    assert "`twice` reads `long`, which is stale (edited since)" in rig.told
    assert 'execute "long,twice"' in rig.told
    assert await rig.execute("long,twice") == {"long": "ok", "twice": "ok"}
    assert rig.bench.values()["twice"] == 10


async def test_a_read_that_was_edited_is_executed_without_the_action_behind_it(tmp_path: Path) -> None:
    """If only a read was edited, the advice for a node behind a performed action is the read alone, and the action is not done again."""
    more = """
  - {id: send, type: browser_action, action: click, target: {text: send}}
  - {id: note, type: browser_action, action: fill, target: {text: note}, value: "{{ seen }}"}
"""
    rig = Rig(tmp_path, SIGN_IN + READS + more, site())
    await rig.execute("all")
    rig.site.texts['text="state"'] = "is paid"
    rig.edit("target: {text: status}", "target: {text: state}")
    assert await rig.execute("note") == {"error": "value-stale"}
    assert 'execute "seen", which only reads, on the page that is open' in rig.told
    assert await rig.execute("seen", begin="live") == {"seen": "ok"}
    assert await rig.execute("note") == {"note": "ok"}
    assert rig.site.actions.count('text="send"') == 1


async def test_sql_reads_the_tables_that_it_names(tmp_path: Path) -> None:
    """An SQL node that runs alone reads the values of the nodes it names, and is stale once one changes."""
    rig = Rig(
        tmp_path,
        """
  - {id: rows, type: transform, expr: "{{ [{'no': 7}, {'no': 9}] }}"}
  - {id: sum, type: transform, sql: "SELECT sum(no) AS rest FROM rows"}
  - {id: rest, type: transform, expr: "{{ sum }}"}
""",
    )
    await rig.execute("rows")
    assert await rig.execute("sum") == {"sum": "ok"}
    assert rig.bench.values()["sum"] == [{"rest": 16}]
    assert await rig.execute("rest") == {"rest": "ok"}
    rig.edit("'no': 9", "'no': 8")
    assert await rig.execute("sum") == {"error": "value-stale"}
    assert await rig.execute("rows,sum") == {"rows": "ok", "sum": "ok"}
    assert "rest" not in rig.bench.values()


async def test_a_query_for_an_invalid_value_gets_the_reason(tmp_path: Path) -> None:
    """Both variable tools give the same answer: a valid value in full, otherwise the reason and the call that recomputes it."""
    rig = Rig(tmp_path, READS + '\n  - {id: never, type: transform, expr: 1, when: "{{ 1 == 2 }}"}', site())

    async def ask(name: str) -> str:
        tools_of = session_tools.Toolbox(rig.build.state, subject.BuildSubject(rig.build), rig.build.listener)
        answers = set[str]()
        for tool, more in (("get_workflow_variables", {"run": None}), ("get_workflow_variable", {})):
            given = {"key": name, **more}
            asked = ToolCall("a", tool, json.dumps(given))
            answers.add((await tools_of.take(asked, given, turn.Place(1, f"1_{tool}", "session", "a"))).text)
        [one] = answers
        return one

    assert "`long` has no value that counts: it was not executed by itself yet" in await ask("long")
    await rig.execute("all")
    assert await ask("long") == "[page]\n4\n[end of page]"
    assert "it was skipped" in await ask("never")
    rig.site.texts['text="status"'] = "open!"
    await rig.execute("seen")
    asked = await ask("long")
    assert "stale: read `seen`, which has changed since" in asked
    assert 'execute_nodes "long"' in asked
    assert "these have a value: " in await ask("nothing")


async def test_an_equal_value_makes_nothing_stale(tmp_path: Path) -> None:
    """A node that yields an equal value again leaves its readers fresh; a different value makes them stale."""
    rig = Rig(tmp_path, READS, site())
    await rig.execute("all")
    await rig.execute("seen")
    assert "twice" in rig.bench.values()
    rig.site.texts['text="status"'] = "open!"
    await rig.execute("seen")
    assert "twice" not in rig.bench.values()


async def test_a_pin_replaces_a_value(tmp_path: Path) -> None:
    """A session variable named like a node, loop item or variable is read in its place until it is cleared."""
    rig = Rig(tmp_path, READS + LOOP, site())
    variables = rig.build.state.variables
    variables.set("long", 21, reason="to try")
    assert await rig.execute("twice") == {"twice": "ok"}
    assert rig.bench.values()["twice"] == 42
    assert "pinned by a variable of the session: `long`" in rig.told
    variables.set("order", {"no": 5}, reason="to try")
    assert await rig.execute("name,pay", begin="fresh") == {"name": "ok", "pay": "ok"}
    assert rig.site.actions == ['text="Pay N5/1"']
    variables.clear("long", reason="enough")
    assert await rig.execute("twice") == {"error": "value-missing"}


async def test_a_node_of_a_loop_runs_for_one_item(tmp_path: Path) -> None:
    """The item is chosen by key, number or step path, else the first. Values of one iteration are not used in another."""
    rig = Rig(tmp_path, LOOP)
    assert await rig.execute("pay") == {"error": "value-missing"}
    # The same run may compute the list.
    assert await rig.execute("list,name,pay") == dict.fromkeys(("list", "name", "pay"), "ok")
    assert await rig.execute("pay", item="9") == {"error": "value-missing"}
    assert 'execute "name..pay" with the same `item`, or pin' in rig.told
    assert await rig.execute("each[#9]/name, each[#9]/pay") == {"name": "ok", "pay": "ok"}
    assert await rig.execute("pay", begin="live", item="2") == {"pay": "ok"}
    assert rig.site.actions == ['text="Pay N7/2"', 'text="Pay N9/2"', 'text="Pay N9/2"']
    assert await rig.execute("pay", item="8") == {"error": "item-unknown"}
    assert await rig.execute("list", item="8") == {"error": "item-unknown"}
    rig.edit("[{'no': 7}, {'no': 9}]", "[{'no': 9}]")
    assert await rig.execute("pay") == {"error": "value-stale"}


async def test_the_first_failure_stops_the_selection_and_keeps_the_page(tmp_path: Path) -> None:
    """A failure before the action keeps the page, so the fixed node continues there; a failure after the action does not."""
    rig = Rig(tmp_path, SIGN_IN + READS, site())
    failing = [SiteError("target-covered", "it is covered"), SiteError("verify-failed", "no", phase="after")]

    async def refuse(_target: str, _page: FakePage) -> None:
        if failing:
            raise failing.pop(0)

    rig.site.before_click = refuse
    assert await rig.execute("open..long") == {"open": "ok", "user": "ok", "submit": "failed"}
    assert "(target-covered, before its action)" in rig.told
    assert "not executed: seen, long" in rig.told
    assert await rig.execute("submit") == {"submit": "failed"}
    assert "on the current page" in rig.told
    assert "after its action: it may have happened" in rig.told
    assert await rig.execute("seen", begin="live") == {"seen": "ok"}
    assert await rig.execute("submit") == {"user": "ok", "submit": "ok"}


async def test_a_node_that_just_ran_is_not_stale(tmp_path: Path) -> None:
    """Earlier failed attempts, its own included, do not make a node stale; an edit of a node before it does."""
    refused = ['text="submit"']

    async def before(target: str, _page: FakePage) -> None:
        if target in refused:
            raise SiteError("not-actionable", "it cannot be clicked")

    rig = Rig(tmp_path, SIGN_IN + READS, site())
    rig.site.before_click = before
    assert (await rig.execute("sign_in"))["submit"] == "failed"
    rig.edit("target: {text: submit}", "target: {text: send}")
    assert await rig.execute("submit..seen", begin="live") == {"submit": "ok", "seen": "ok"}
    assert {name: rig.bench.marks()[name] for name in ("submit", "seen")} == {"submit": "done", "seen": "done"}
    rig.edit("target: {text: send}", "target: {text: go}")
    assert rig.bench.marks()["submit"] == "stale: edited since"
    assert rig.bench.marks()["seen"] == "stale: its page depends on `submit`, which has changed since"
    assert await rig.execute("submit..seen", begin="live") == {"submit": "ok", "seen": "ok"}
    assert {name: rig.bench.marks()[name] for name in ("submit", "seen")} == {"submit": "done", "seen": "done"}
    assert "value-stale" not in str(await rig.execute("long"))
    rig.edit("value: admin", "value: other")
    assert rig.bench.marks()["seen"] == "stale: its page depends on `user`, which has changed since"
    assert set((await rig.execute("all")).values()) == {"ok"}
    added = "      - {id: more, type: browser_action, action: click, target: {text: more}}\n"
    rig.edit("      - {id: submit", f"{added}      - {{id: submit")
    assert rig.bench.marks()["seen"] == "stale: its page depends on `more`, which has changed since"
    rig.edit(added, "")
    assert rig.bench.marks()["seen"] == "done"


async def test_nodes_that_run_out_of_order_count_by_current_values(tmp_path: Path) -> None:
    """A list read again after actions that used its old value counts, as do later nodes. An edit affects nothing earlier in the file."""
    rig = Rig(
        tmp_path,
        """
  - {id: open, type: browser_action, action: goto, url: "http://127.0.0.1:8765/"}
  - {id: rows, type: browser_query, query: text, target: {text: status}}
  - {id: count, type: transform, expr: "{{ rows | length }}"}
  - id: each
    type: iterate
    over: "{{ rows | list }}"
    as: row
    key: "{{ row }}"
    nodes:
      - {id: pay, type: browser_action, action: click, target: {text: "{{ row }} of {{ rows }}"}}
      - {id: look, type: browser_query, query: text, target: {text: "{{ row }}"}}
  - {id: end, type: browser_action, action: click, target: {text: End}, effect: idempotent}
""",
        FakeSite(texts={'text="status"': "ab", 'text="b"': "paid"}),
    )
    await rig.execute("open,rows,count,pay,look")
    rig.site.texts['text="status"'] = "b"
    await rig.execute("rows", begin="live")
    marks = rig.bench.marks()
    assert marks == {"open": "done", "rows": "done", "count": "stale: read `rows`, which has changed since"}
    assert await rig.execute("count") == {"count": "ok"}
    assert await rig.execute("end", begin="live") == {"end": "ok"}
    assert await rig.execute("pay,look", begin="live", item="b") == {"pay": "ok", "look": "ok"}
    assert await rig.execute("rows", begin="live") == {"rows": "ok"}
    rig.edit("text: End", "text: Home")
    assert rig.bench.marks() == dict.fromkeys(("open", "rows", "count"), "done") | {"end": "stale: edited since"}
    freshness = rig.bench.results.freshness(rig.bench.results.places)
    iteration = freshness.record("look", {"each": "[#b]"})
    assert iteration is not None
    assert freshness.why(iteration) is None
    rig.edit("| length", "| count")
    rig.edit('url: "http://127.0.0.1:8765/"', 'url: "http://127.0.0.1:8765/2"')
    assert rig.bench.marks()["rows"] == "stale: its page depends on `open`, which has changed since"


async def test_a_value_is_shown_in_full_up_to_600_characters(tmp_path: Path) -> None:
    """A longer value shows its first and last item, or each field, and the tool for the rest. Inside a loop no tool is named."""
    rig = Rig(
        tmp_path,
        """
  - {id: short, type: transform, expr: "{{ [{'no': 1, 'say': 'x' * 200}, {'no': 2, 'say': 'the end'}] }}"}
  - {id: long, type: transform, expr: "{{ [{'no': 'first', 'say': 'x' * 500}, {'no': 'middle'}, {'no': 'last', 'say': 'y' * 500}] }}"}
  - {id: wide, type: transform, expr: "{{ {'one': 'x' * 500, 'two': 'y' * 500} }}"}
  - id: each
    type: iterate
    over: "{{ long }}"
    as: item
    nodes: [{id: same, type: transform, expr: "{{ item }}"}]
  - {id: nil, type: transform, expr: "{{ [] }}"}
""",
    )
    await rig.execute("all")
    lines = {line.partition(" = ")[0]: line for line in rig.told.splitlines() if " = " in line}
    assert '"the end"}]' in lines["short"]
    assert lines["long"].startswith('long = [{"no": "first"')
    assert lines["long"].endswith("(3); whole: get_workflow_variables key=long")
    for name in ("long", "each"):
        assert ("first" in lines[name], "middle" in lines[name], '"last"' in lines[name]) == (True, False, True)
    assert all(name in lines["wide"] for name in ('"one"', '"two"', "key=wide"))
    assert lines["nil"] == "nil = [] (empty)"
    await rig.execute("same", item="1")
    assert "get_workflow_variables" not in rig.told


class Fresh(run.Browsers):
    """Fresh browsers on a fake site in place of Chromium."""

    def __init__(self, site: FakeSite) -> None:
        self.site = site

    @override
    async def open(self) -> port.Browser:
        return FakeBrowser(self.site)

    @override
    async def reattach(self) -> port.Browser | None:
        return None


async def test_a_run_of_the_whole_draft_gives_the_bench_its_values(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each node that ran, even in a failed run, gives its value until an edit, and a run that passed its page. The run ignores bench pins."""
    rig = Rig(tmp_path, CONTAINERS.replace(", effect: idempotent", "").replace("never}", "click}") + READS, site())
    monkeypatch.setattr(start, "Chromium", lambda *_given: Fresh(rig.site))
    variables = rig.build.state.variables
    variables.set("long", 21, reason="to try")

    async def run_draft() -> str:
        given: dict[str, Json] = {"inputs": None, "reason": "to see"}
        return (await build_contexts.call(rig.build, "run_draft", tools.toolsets(rig.build), **given)).text

    assert "passed" in await run_draft()
    assert rig.bench.values()["long"] == 21
    variables.clear("long", reason="enough")
    known = rig.bench.values()
    assert (known["seen"], known["long"], known["turns"], known["way"]) == ("paid", 4, [1, 2], "Lnorth")
    assert await rig.execute("twice") == {"twice": "ok"}
    assert rig.bench.values()["twice"] == 8
    assert await rig.execute("seen") == {"seen": "ok"}
    assert "on the current page" in rig.told
    rig.edit("tenant: north}", "tenant: east}")
    assert "way" not in rig.bench.values()
    rig.site.texts['text="status"'] = "open!"
    rig.edit("long * 2", "long.none")
    assert "failed" in await run_draft()
    known = rig.bench.values()
    assert (known["seen"], known["long"], known["way"]) == ("open!", 5, "R")
    assert "twice" not in known


async def test_nodes_after_a_side_effect_go_on_where_a_whole_run_ended(tmp_path: Path) -> None:
    """A passed `run_draft` leaves its page on the bench: new nodes run there, or from its kept state, and its action is not done again."""
    rig = Rig(tmp_path, SIGN_IN, site())
    given: dict[str, Json] = {"inputs": None, "reason": "to see"}

    async def run_draft() -> str:
        return (await build_contexts.call(rig.build, "run_draft", tools.toolsets(rig.build), **given)).text

    first = await run_draft()
    assert "passed" in first
    assert report.page_text.BEGIN in first.partition(proving_report.LEFT)[2]
    rig.edit("{text: submit}}", "{text: submit}}\n" + READS.strip("\n"))
    assert await rig.execute("seen") == {"seen": "ok"}
    assert "began on the current page" in rig.told
    assert rig.site.actions == ['text="submit"']
    await rig.bench.close()
    assert await rig.execute("seen") == {"seen": "ok"}
    assert "began on the state kept after `submit`" in rig.told
    assert rig.site.actions == ['text="submit"']

    async def refuse(_target: str, _page: FakePage) -> None:
        raise SiteError("target-covered", "it is covered", phase="after")

    rig.site.before_click = refuse
    assert "failed at sign_in/submit" in await run_draft()
    await rig.execute("seen")
    assert "began on the state kept after `submit`" in rig.told, "the page of a failed run belongs to no node"


async def test_a_fix_begins_where_the_failed_run_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Values and the last checkpoint of the failed run are reused without repeating actions. A file with other content gets nothing."""
    nodes = (
        SIGN_IN.replace("- id: sign_in", '- id: sign_in\n    when: "{{ 1 == 1 }}"')
        + """
  - {id: orders, type: browser_action, action: goto, url: "http://127.0.0.1:8765/orders"}
"""
        + READS
        + """
  - {id: mine, type: browser_action, action: fill, target: {text: mine}, value: "{{ twice }}"}
  - {id: send, type: browser_action, action: click, target: {text: send}}
"""
    )
    rig = Rig(tmp_path, nodes, site(), policy="hold")
    monkeypatch.setattr(start, "Chromium", lambda *_given: Fresh(rig.site))

    async def refuse(target: str, _page: FakePage) -> None:
        if "send" in target:
            raise SiteError("target-covered", "it is covered")

    rig.site.before_click = refuse
    file = tmp_path / "failed.yaml"
    file.write_text(HEAD + nodes)
    failed = await start.start(file, {}, rig.build.here)
    assert (failed.status, failed.path) == ("failed", "send")
    assert rig.site.actions == ['text="submit"']
    await rig.bench.take_over(failed.run)
    assert rig.bench.values()["twice"] == 8
    assert (await rig.execute("send"))["send"] == "held"
    assert "on the state kept after `orders`; redone first, to get there: mine" in rig.told
    assert rig.bench.opened[-1].page.url == "http://127.0.0.1:8765/orders"
    assert rig.site.actions == ['text="submit"']
    other = Rig(tmp_path / "other", nodes.replace("value: admin", "value: other"), site(), policy="hold")
    other.build.here = rig.build.here
    await other.bench.take_over(failed.run)
    assert other.bench.values() == {}


async def test_a_taken_branch_is_listed_node_by_node(tmp_path: Path) -> None:
    """The nodes of the branch are listed after their route with values, and are not counted as selected nodes."""
    rig = Rig(tmp_path, CONTAINERS, FakeSite())
    assert await rig.execute("set,way") == {"set": "ok", "way": "ok", "left": "ok"}
    assert "2 of 2 nodes ran" in rig.told
    assert 'left = "Lnorth"' in rig.told


PAY = """
  - {id: bare, type: browser_action, action: click, target: {text: one}}
  - id: pay
    type: browser_action
    action: click
    target: {text: pay}
    verify: [{expr: "{{ 1 == 1 }}"}]
    confirm: {settle: 0, nodes: [{id: look, type: browser_query, query: text, target: {text: status}}], done: "{{ look == 'paid' }}"}
"""


def paying(folder: Path) -> Rig:
    """A bench on a site that takes a payment."""

    async def pay(target: str, page: FakePage) -> None:
        page.browser.site.texts |= {'text="status"': "paid"} if "pay" in target else {}

    rig = Rig(folder, PAY, FakeSite(texts={'text="status"': "open"}))
    rig.site.on_click = pay
    return rig


async def test_the_checks_of_an_action_are_reported(tmp_path: Path) -> None:
    """The report says that `verify` held and that `confirm`, asked before and after the action, agreed."""
    rig = paying(tmp_path)
    await rig.execute("all")
    assert "1 bare  ok\n" in rig.told
    assert "pay  ok, verify held, confirm agrees" in rig.told


async def test_a_confirm_that_disagrees_is_reported_first(tmp_path: Path) -> None:
    """A `confirm` that says *not done* after the action stands in the first line, and the call did not go all well."""
    rig = paying(tmp_path)
    rig.edit("look == 'paid'", "look == 'sent'")
    await rig.execute("all")
    assert rig.told.startswith(
        "`pay`: done, and its `confirm` says that it is not: correct the one that is wrong\nnot all well: 2 of 2"
    )
    assert '[page]\n`confirm` read look = "paid", done = false\n' in rig.told


async def test_why_a_confirm_failed_is_reported_with_its_node(tmp_path: Path) -> None:
    """The error of a `confirm` that failed before or after the action is shown with the node."""
    rig = paying(tmp_path)

    class Lacking(FakePage):
        async def text(self, target: Target) -> str:
            if 'text="status"' in str(target) and self.browser.site.texts['text="status"'] == "open":
                raise SiteError("target-not-found", "no element matches")
            return await super().text(target)

    rig.site.page = Lacking
    await rig.execute("all")
    assert "[page]\nbefore it, `confirm` failed: no element matches\n" in rig.told


async def test_a_confirm_that_misses_what_it_opened_is_told_how_to_repeat_both(tmp_path: Path) -> None:
    """The fix is our own text, outside of the page's, and the rest of the report stays as it is."""
    rig = paying(tmp_path)
    rig.edit(
        "{id: look,", "{id: more, type: browser_action, action: click, target: {css: more}, effect: read}, {id: look,"
    )

    class Closed(FakePage):
        async def text(self, target: Target) -> str:
            raise SiteError("target-not-found", "no element matches")

    rig.site.page = Closed
    await rig.execute("all")
    assert (
        "\nhint: in the `confirm` of `pay`: if the page closed again what `more` opened, repeat both: `handle`"
        in rig.told
    )


async def test_an_action_that_the_site_has_is_not_done_again(tmp_path: Path) -> None:
    """Executed again, it is stopped by its `confirm` with the way out; the page stays valid for the nodes before it."""
    rig = paying(tmp_path)
    await rig.execute("all")
    clicks = list(rig.site.actions)
    assert (await rig.execute("pay", begin="live"))["pay"] == "not"
    assert "pay  not done: confirm says that it is done already" in rig.told
    assert "fix: if the site has it, let `when` or a `route` pass over it" in rig.told
    assert rig.site.actions == clicks
    assert "!" not in rig.bench.own.lineage


async def test_a_check_written_anew_is_not_looked_at_yet(tmp_path: Path) -> None:
    """A `verify` or `confirm` written after the node ran is marked so, in the hints of `finish` too, until the node ran again."""
    rig = paying(tmp_path)
    await rig.execute("all")
    assert rig.bench.marks()["pay"] == "done"
    rig.edit("1 == 1", "2 == 2")
    assert rig.bench.marks()["pay"] == "done: verify not looked at yet"
    assert any(each.startswith("pay: verify not looked at yet, ") for each in finish.better(rig.build))
    rig.edit("target: {text: status}}]", "target: {text: state}}]")
    assert rig.bench.marks()["pay"] == "done: verify and confirm not looked at yet"
    await rig.execute("pay", begin="live")
    assert rig.bench.marks()["pay"] == "done"


async def test_a_row_that_is_missing_is_told_with_the_value(tmp_path: Path) -> None:
    """A false `exists` and a count of nothing name the row that matches nothing, in the report and in the log."""
    queries = """
  - {id: there, type: browser_query, query: exists, target: {text: pay, within: {text: order 7}}}
  - {id: many, type: browser_query, query: count, target: {text: pay, within: {text: order 8}}}
"""
    rig = Rig(tmp_path, queries, FakeSite(texts={'text="order 8"': "8"}))
    await rig.execute("all")
    assert 'there = false, as nothing matches within text="order 7"\n' in rig.told
    assert "many = 0\n" in rig.told
    [run] = re.findall(r"\(run (\w+)\)", rig.told)
    past = rig.build.runs.past(run)
    assert past is not None
    results = [each.result for each in past.all_attempts()]
    assert [each.unmatched for each in results if each is not None] == ['within text="order 7"', None]


async def test_a_site_error_after_an_action_is_reported_first(tmp_path: Path) -> None:
    """An error page of the site is no success, whatever rules say. The report names the node, and whether its action is uncertain."""
    enters = '  - {id: enters, type: browser_action, action: type, target: {label: Find}, value: "Ann\\n"}\n'
    rig = Rig(tmp_path, f"{SIGN_IN}{READS}\n{enters}", site())
    rig.bench.fake.answered = 400
    await rig.execute("open,seen", begin="fresh")
    assert rig.told.startswith("the site answered 400 after `open`\nnot all well: 2 of 2")
    assert "open  ok, but the site answered 400\n" in rig.told
    assert "seen  ok, but on an error page (400)\n" in rig.told
    await rig.execute("submit", begin="live")
    assert rig.told.startswith("the site answered 400 after `submit`: look whether it was done\nnot all well: 1 of 1")
    await rig.execute("enters", begin="live")
    assert rig.told.startswith("the site answered 400 after `enters`: look whether it was done\nnot all well: 1 of 1")
    await rig.execute("seen", begin="live")
    assert rig.told.startswith("`seen` worked on an error page of the site (400)\nnot all well: 1 of 1")
    rig.bench.fake.answered = None
    await rig.execute("submit", begin="live")
    assert rig.told.startswith("all done: 1 of 1")


async def test_a_document_is_shown_once_and_then_its_changes(tmp_path: Path) -> None:
    """A new document after the last node is shown in full. A known one shows its changes at their node, or that nothing changed."""
    rig = Rig(
        tmp_path,
        """
  - {id: open, type: browser_action, action: goto, url: "http://127.0.0.1:8765/"}
  - {id: list, type: browser_action, action: goto, url: "http://127.0.0.1:8765/list"}
  - {id: press, type: browser_action, action: click, target: {text: Press}}
  - {id: seen, type: browser_query, query: text, target: {text: status}}
  - {id: long, type: transform, expr: "{{ 1 }}"}
""",
        FakeSite(texts={"": '- button "Press" [ref=e1]\n- link "All" [ref=e2]'}),
    )

    def pages() -> tuple[int, int]:
        return rig.told.count('button "Press"'), rig.told.count(report.NOT_SHOWN)

    await rig.execute("open,list")
    assert pages() == (1, 0)
    assert "after it:\n[page]\npage " in rig.told.partition("\n2 list  ok\n")[2]
    await rig.execute("seen", begin="live")
    assert pages() == (0, 1)
    await rig.execute("long")
    assert not re.search("^page ", rig.told, re.MULTILINE)

    async def grow(_target: str, page: FakePage) -> None:
        page.browser.site.texts[""] += '\n- alert: "Pressed"'

    rig.site.on_click = grow
    await rig.execute("press,seen")
    assert pages() == (0, 0)
    assert rig.told.count('alert "Pressed"') == 1
    rig.site.texts[""] += '\n- alert: "Later"'
    await rig.execute("seen", begin="live")
    assert "what changed since you saw it:" in rig.told
    assert rig.told.count("Later") == 1
    await rig.execute("list", begin="fresh")
    assert pages() == (1, 0)


async def test_a_wrong_address_is_shown_once(tmp_path: Path) -> None:
    """Evidence in the error message is not repeated beside it, and only the beginning of the page is shown."""
    here, lines = (
        "http://127.0.0.1:8765/list?page=2",
        [f'- button "Number {each} of many" [ref=e{each}]' for each in range(80)],
    )
    rig = Rig(tmp_path, SIGN_IN, FakeSite(texts={"": "\n".join(lines)}))

    async def elsewhere(_target: str, page: FakePage) -> None:
        page.address = here
        evidence = {"rule": 'url "**page=2"', "wanted": "**page=2", "seen": here, "page": here, "waited": 2.0}
        raise SiteError(
            "rule-failed", f'url "**page=2" does not hold; seen: {here!r}', phase="after", evidence=evidence
        )

    rig.site.before_click = elsewhere
    assert (await rig.execute("sign_in"))["submit"] == "failed"
    failure = rig.told.partition("submit  failed")[2]
    # In the error and in the head of the page.
    assert failure.count(here) == 2
    assert failure.count("**page=2") == 1
    assert "waited: 2.0" in failure
    assert len(failure) < 1_200


async def test_a_crashed_browser_is_released(tmp_path: Path) -> None:
    """After a crash the next call opens a new browser in the kept state."""
    rig = Rig(tmp_path, SIGN_IN, site())

    async def crash(_target: str, _page: FakePage) -> None:
        rig.site.before_click = None
        raise SiteError("page-crashed", "the tab or its browser was closed")

    rig.site.before_click = crash
    assert (await rig.execute("all"))["submit"] == "failed"
    assert rig.bench.browser is None
    assert await rig.execute("submit") == {"user": "ok", "submit": "ok"}
    assert "on the state kept after `open`" in rig.told


async def test_a_withheld_action_stops_the_selection_and_is_no_failure(tmp_path: Path) -> None:
    """A withheld action is ready but not done, and the page keeps the text that was typed before it."""
    rig = Rig(tmp_path, SIGN_IN + READS, site(), policy="hold")
    outcome = await rig.execute("all")
    assert outcome["submit"] == "held"
    assert "seen" not in outcome
    assert "would do:" in rig.told
    assert rig.site.actions == []
    assert await rig.execute("submit") == {"submit": "held"}
    assert "on the current page" in rig.told
    assert not [each for each in rig.build.writer.history.actions.values() if each.result and each.result.error]


async def test_what_an_action_would_type_is_hidden_by_the_name_of_its_value(tmp_path: Path) -> None:
    """A value whose name says that it is secret is not told as the text of a withheld action; the action has the real one."""
    nodes = """
  - {id: open, type: browser_action, action: goto, url: "http://127.0.0.1:8765/login"}
  - {id: password, type: transform, expr: "{{ 'open-sesame-1' }}"}
  - {id: user, type: browser_action, action: fill, target: {text: user}, value: "{{ password }}", effect: effect}
"""
    rig = Rig(tmp_path, nodes, site(), policy="hold")
    assert (await rig.execute("all"))["user"] == "held"
    assert 'password = "[hidden]"' in rig.told
    assert '"value": "[hidden]"' in rig.told
    assert "sesame" not in rig.told


async def test_isolated_begins_each_node_from_its_own_state(tmp_path: Path) -> None:
    """Each node has its own run and begins on the page before it in the draft, not on the page of the previous selection."""
    rig = Rig(
        tmp_path,
        """
  - {id: one, type: browser_action, action: goto, url: "http://127.0.0.1:8765/1"}
  - {id: two, type: browser_action, action: goto, url: "http://127.0.0.1:8765/2"}
  - {id: three, type: browser_action, action: goto, url: "http://127.0.0.1:8765/3"}
""",
    )
    await rig.execute("all")
    assert await rig.execute("one,three", mode="isolated") == {"one": "ok", "three": "ok"}
    assert rig.bench.opened[-1].page.visited[-1] == "http://127.0.0.1:8765/2"
    assert len(rig.build.writer.history.runs_of) == 2
    assert [len(runs) for runs in rig.build.writer.history.runs_of.values()] == [1, 2]
    await rig.execute("one,three")
    assert "`three` is run without `two`" in rig.told


async def test_a_resumed_bench_has_values_and_states_but_no_page(tmp_path: Path) -> None:
    """After a crash the log gives values and states; the live page, and states changed on disk, are refused."""
    rig = Rig(tmp_path, SIGN_IN + READS, site())
    await rig.execute("all")
    resumed = rig.bench = rig.build.bench = type(rig.bench)(rig.build, rig.site)
    assert resumed.values()["twice"] == 8
    assert await rig.execute("seen", begin="live") == {"error": "no-page"}
    assert await rig.execute("seen") == {"seen": "ok"}
    assert "on the state kept after `submit`" in rig.told
    assert len(rig.site.actions) == 1
    states = list((rig.build.here.reader.private(rig.build.writer.conversation.id) / "bench").glob("*.json"))
    assert states
    assert {each.stat().st_mode & 0o777 for each in states} == {0o600}
    for each in states:
        each.write_text(json.dumps({"url": "http://127.0.0.1:8765/forged"}))
    await rig.bench.close()
    assert await rig.execute("seen") == {"error": "state-missing"}


async def test_a_value_with_a_secret_is_used_but_neither_shown_nor_stored(tmp_path: Path) -> None:
    """Readers in the same session use the value; after a crash they learn that it contained a secret and was not stored."""
    known = {"TOKEN": "wunderbar-77"}
    rig = Rig(tmp_path, READS, FakeSite(texts={'text="status"': "is wunderbar-77"}), known=known)
    assert await rig.execute("all") == {"seen": "ok", "long": "ok", "twice": "ok"}
    assert rig.bench.values()["twice"] == 30
    assert "wunderbar" not in rig.told
    rig.bench = rig.build.bench = type(rig.bench)(rig.build, rig.site)
    assert await rig.execute("long") == {"error": "value-stale"}
    assert "held a secret" in rig.told
    kept = rig.build.writer.conversation
    assert not [file for file in rig.build.writer.files() if b"wunderbar" in file.read_bytes()], kept.id


async def test_a_call_interrupted_by_a_crash_is_reported_step_by_step(tmp_path: Path) -> None:
    """The report lists steps that are done, uncertain and not begun. Nothing is repeated."""
    rig = Rig(tmp_path, SIGN_IN + READS, site())

    class Crash(BaseException):
        """The process dies here."""

    async def die(_target: str, _page: FakePage) -> None:
        raise Crash

    rig.site.on_click = die
    with pytest.raises(Crash):
        await rig.execute("all")
    [open_call] = rig.build.writer.history.open_calls()
    toolset = bench_tools.Execute(rig.build, bench_tools.EXECUTE)
    outcome = toolset.outcome_of_open_call(open_call.call)
    assert outcome is not None
    assert outcome.error is None
    lines = outcome.text.splitlines()
    assert lines[0].startswith("interrupted")
    assert {"sign_in/open: done", "sign_in/user: done"} <= set(lines)
    assert any(line.startswith("sign_in/submit: open: it may have happened") for line in lines)
    assert "not begun: seen, long, twice" in lines
    assert toolset.outcome_of_open_call(open_call.call.model_copy(update={"action": "another"})) is None
    # The page that the action may have changed belongs to no node any more.
    rig.site.on_click = None
    assert await rig.execute("seen") == {"error": "state-missing"}
    assert len(rig.site.actions) == 1


async def test_a_call_that_began_no_run_did_nothing(tmp_path: Path) -> None:
    """A call that a crash ended before its run is reported as having done nothing."""
    rig = Rig(tmp_path, READS, site())
    call = entries.Call(
        thread=entries.SESSION_THREAD, path="1_execute_nodes", node="session", action="execute_nodes", asked="a",
        attempt=1, effect="effect", args={}, fingerprint="",
    )  # fmt: skip
    toolset = bench_tools.Execute(rig.build, bench_tools.EXECUTE)
    outcome = toolset.outcome_of_open_call(call)
    assert outcome is not None
    assert "nothing was done" in outcome.text


async def test_the_report_is_bounded(tmp_path: Path) -> None:
    """Many nodes and a large page give a report of at most 5,000 characters, which still names the last node."""
    many = "".join(
        f'\n  - {{id: n{each}, type: browser_action, action: goto, url: "http://127.0.0.1:8765/{each}"}}'
        for each in range(15)
    )
    many += "".join(f"\n  - {{id: d{each}_{'x' * 60}, type: transform, expr: {each}}}" for each in range(60))
    page = "\n".join(f'- button "A button with a long name that differs {each}" [ref=e{each}]' for each in range(150))
    rig = Rig(tmp_path, many, FakeSite(texts={"": page}))
    await rig.execute("all")
    assert len(rig.told) <= 5_000
    assert f"d59_{'x' * 60}  ok" in rig.told
    assert rig.told.count("[page]") == rig.told.count("[end of page]")


async def test_the_values_of_nodes_go_before_the_page(tmp_path: Path) -> None:
    """On large pages that change with each node, every value is shown, in short if it is long; page text is left out for it."""
    reads = "".join(
        f'\n  - {{id: go{each}, type: browser_action, action: click, target: {{text: "{each}"}}, effect: read}}'
        f"\n  - {{id: read{each}, type: transform, expr: \"{{{{ 'v{each}' ~ 'x' * {each * 90} }}}}\"}}"
        for each in range(8)
    )
    rig = Rig(tmp_path, reads, FakeSite(texts={"": ""}))

    async def change(_target: str, page: FakePage) -> None:
        number = len(page.browser.site.actions)
        page.browser.site.texts[""] = "\n".join(
            f'- button "A button with a long name that differs {number} {each}" [ref=e{each}]' for each in range(150)
        )

    rig.site.on_click = change
    await rig.execute("all")
    assert len(rig.told) <= 5_000
    for each in range(8):
        assert f'\nread{each} = "v{each}' in rig.told or f"\nread{each} = v{each}" in rig.told
    assert "page after it:" in rig.told
    assert 'button "A button with a long name that differs 8' in rig.told


CONTAINERS = """
  - {id: set, type: context, set: {tenant: north}}
  - {id: may, type: browser_query, query: text, target: {text: gone}, on_error: continue}
  - id: way
    type: route
    branches:
      - {name: left, when: "{{ vars.tenant == 'north' }}", nodes: [{id: left, type: transform, expr: "{{ 'L' ~ vars.tenant }}"}]}
    otherwise: [{id: right, type: transform, expr: "{{ 'R' }}"}]
  - id: care
    type: handle
    attempts: 2
    try: [{id: click, type: browser_action, action: click, target: {text: never}, effect: idempotent}]
    catch: [{id: caught, type: transform, expr: "{{ error.code }}"}]
  - id: turns
    type: iterate
    until: "{{ number == 2 }}"
    max: 3
    as: n
    nodes:
      - {id: number, type: transform, expr: "{{ n }}"}
  - {id: never, type: transform, expr: "{{ 1 }}", when: "{{ run.taken.way == 'right' }}"}
  - {id: end, type: transform, expr: "{{ [run.errors.may.code if run.errors.may is defined else 'fine', run.taken.way, care, turns, vars.tenant, never | default('none')] }}"}
"""


async def test_containers_ignored_errors_and_variables_are_as_in_a_run(tmp_path: Path) -> None:
    """Variables, errors and the taken branch reach later nodes, in the same call and in later ones. A nested leaf runs alone."""
    rig = Rig(tmp_path, CONTAINERS, FakeSite())
    plain = FakePage.ready

    class Bare(FakePage):
        """A page on which a few elements are missing."""

        async def ready(self, target: Target, action: ElementAction) -> None:
            if "gone" in str(target) or "never" in str(target):
                raise SiteError("target-not-found", f"no element matches {target}")
            await plain(self, target, action)

        async def click(self, target: Target, how: Stroke = PLAIN) -> None:
            await self.ready(target, "click")

    rig.site.page = Bare
    done = await rig.execute("all")
    assert done == {
        "set": "ok",
        "may": "no",
        "way": "ok",
        "left": "ok",
        "care": "ok",
        "turns": "ok",
        "never": "skipped",
        "end": "ok",
    }
    expected = ["target-not-found", "left", "target-not-found", [1, 2], "north", "none"]
    assert rig.bench.values()["end"] == expected
    assert await rig.execute("end") == {"end": "ok"}
    assert rig.bench.values()["end"] == expected
    assert await rig.execute("left") == {"left": "ok"}
    assert await rig.execute("right") == {"right": "ok"}
    assert await rig.execute("number", item="2") == {"number": "ok"}
    assert await rig.execute("caught") == {"error": "value-missing"}
    assert "`set_variable` error" in rig.told
    rig.build.state.variables.set("error", {"code": "mine"}, reason="to try")
    assert await rig.execute("caught") == {"caught": "ok"}
    rig.build.state.variables.set("vars.tenant", "south", reason="to try")
    assert await rig.execute("left") == {"left": "ok"}
    assert rig.bench.values()["left"] == "Lsouth"
    rig.build.state.variables.clear("vars.tenant", reason="enough")
    rig.edit("tenant: north}", "tenant: east}")
    assert await rig.execute("end") == {"error": "value-stale"}


def test_the_schema_of_the_tool_is_small() -> None:
    """The schema and description take less than 1,000 characters."""
    tool = bench_tools.EXECUTE
    assert len(json.dumps(tool.parameters) + tool.description) < 1_000
