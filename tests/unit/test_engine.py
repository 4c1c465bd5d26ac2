"""The engine on a fake site: order of a step, effects of a failure, and entries in the log."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Literal

import pytest

from nodes.errors import OriginRefused, SiteError
from runtime import events
from runtime.browser.port import MissingAnswer
from runtime.log import entries
from tests.fakes import FakePage, FakeSite
from tests.rig import Rig

CLICK = "{type: browser_action, action: click, target: {role: button, name: Pay}"
READ = "{type: browser_query, query: text, target: {css: h1}"


def flow(nodes: str, more: str = "") -> str:
    """A workflow file with these nodes."""
    return f"version: 1\nname: test\n{more}\nnodes:\n{nodes}"


async def test_values_flow_from_node_to_node(tmp_path: Path) -> None:
    """A node's value is read by its id, and the output is rendered at the end."""
    rig = Rig(
        tmp_path,
        flow(
            """
  - {id: numbers, type: transform, expr: [1, 2, "{{ 1 + 2 }}"]}
  - {id: sum, type: transform, fields: {total: "{{ numbers | sum }}", text: "{{ numbers | length }} numbers"}}
  - {id: keep, type: context, set: {best: "{{ sum.total }}"}}
""",
            'output: {total: "{{ sum.total }}", best: "{{ vars.best }}", text: "{{ sum.text }}"}',
        ),
    )
    ended = await rig.start()
    assert (ended.status, ended.exit, ended.output) == ("passed", 0, {"total": 6, "best": 6, "text": "3 numbers"})


async def test_a_loop_yields_its_items_in_order(tmp_path: Path) -> None:
    """The value of an iterate lists each item's last value; `loop` and `<as>_loop` give the position."""
    rig = Rig(
        tmp_path,
        flow(
            """
  - id: each
    type: iterate
    over: [{nr: a}, {nr: b}]
    as: order
    key: "{{ order.nr }}"
    nodes:
      - {id: seen, type: transform, expr: "{{ order.nr ~ loop.index ~ order_loop.length }}"}
""",
            'output: "{{ each }}"',
        ),
    )
    ended = await rig.start()
    assert ended.output == ["a12", "b22"]
    assert "each[#a]/seen" in rig.history.order


async def test_a_route_takes_the_first_true_branch(tmp_path: Path) -> None:
    """Only the first true branch runs, and `run.taken.<id>` has its name."""
    rig = Rig(
        tmp_path,
        flow(
            """
  - id: way
    type: route
    branches:
      - {name: first, when: "{{ 1 > 2 }}", nodes: [{id: a, type: transform, expr: never}]}
      - {name: second, when: "{{ 2 > 1 }}", nodes: [{id: b, type: transform, expr: taken}]}
    otherwise: [{id: c, type: transform, expr: never}]
""",
            'output: {way: "{{ way }}", name: "{{ run.taken.way }}"}',
        ),
    )
    ended = await rig.start()
    assert ended.output == {"way": "taken", "name": "second"}
    assert "way/a" not in rig.history.order
    assert "way/c" not in rig.history.order


async def test_an_action_is_synced_before_it_begins(tmp_path: Path) -> None:
    """When an effect begins, its call is the last line of the log and synced."""
    rig = Rig(tmp_path, flow(f"  - {CLICK}, id: pay}}"))

    async def look(_target: str, _page: FakePage) -> None:
        assert rig.open_writer is not None
        last = rig.store.read(rig.id).entries[-1]
        assert isinstance(last, entries.Call)
        assert (last.path, last.effect) == ("pay", "effect")
        assert rig.open_writer.synced == last.seq

    rig.site.before_click = look
    ended = await rig.start()
    assert ended.status == "passed"
    assert rig.site.actions == ['role=button name="Pay"']


async def test_a_missing_target_fails_before_the_action(tmp_path: Path) -> None:
    """The attempt has an error result with phase before, the run names the path, and no action is done."""
    rig = Rig(tmp_path, flow(f"  - {CLICK}, id: pay}}"))
    rig.missing.add('role=button name="Pay"')
    ended = await rig.start()
    assert (ended.status, ended.exit, ended.path) == ("failed", 1, "pay")
    assert ended.error is not None
    assert (ended.error["code"], ended.error["phase"]) == ("target-not-found", "before")
    assert rig.calls("pay") == ["error"]
    assert rig.site.actions == []


async def test_retry_covers_errors_before_the_action_only(tmp_path: Path) -> None:
    """An error before the action is retried; an effect is not retried after its action, even with attempts left."""
    rig = Rig(tmp_path, flow(f"  - {CLICK}, id: pay, retry: {{attempts: 3, delay: 0}}}}"))
    tries = 0

    async def fail_twice(_target: str, _page: FakePage) -> None:
        nonlocal tries
        tries += 1
        raise SiteError("target-not-actionable", "covered", phase="before" if tries < 3 else "after")

    rig.site.before_click = fail_twice
    ended = await rig.start()
    assert ended.status == "failed"
    assert rig.calls("pay") == ["error"] * 3

    rig = Rig(tmp_path, rig.text)

    async def fail_after(_target: str, _page: FakePage) -> None:
        raise SiteError("target-not-actionable", "covered", phase="after")

    rig.site.on_click = fail_after
    ended = await rig.start()
    assert (ended.status, rig.calls("pay"), len(rig.site.actions)) == ("failed", ["error"], 1)


async def test_on_error_continue_tolerates_and_counts_failures(tmp_path: Path) -> None:
    """A tolerated failure has no value, is in `run.errors`, and the run passes with its count."""
    rig = Rig(
        tmp_path,
        flow(
            f"""
  - {READ}, id: title, verify: [{{text: never}}], on_error: continue}}
  - {{id: after, type: transform, expr: "{{{{ title | default('none') }}}}"}}
""",
            'output: {after: "{{ after }}", code: "{{ run.errors.title.code | default() }}"}',
        ),
    )
    ended = await rig.start()
    assert (ended.status, ended.tolerated, ended.output) == ("passed", 1, {"after": "none", "code": "verify-failed"})


async def test_a_refused_origin_is_never_tolerated(tmp_path: Path) -> None:
    """A document from a foreign origin fails the run, whatever `on_error` says."""
    rig = Rig(tmp_path, flow(f"  - {CLICK}, id: pay, on_error: continue}}"))

    async def stray(_target: str, page: FakePage) -> None:
        page.browser.refused = OriginRefused("origin-refused", "a document of http://evil.test was refused")

    rig.site.on_click = stray
    ended = await rig.start()
    assert (ended.status, ended.error and ended.error["code"]) == ("failed", "origin-refused")


async def test_a_failed_assert_is_a_finding(tmp_path: Path) -> None:
    """A failed `assert` fails the run with `assert-failed` as a finding of the workflow."""
    rig = Rig(tmp_path, flow("  - {id: check, type: browser_query, query: assert, rules: [{text: never}]}"))
    ended = await rig.start()
    assert ended.error is not None
    assert (ended.exit, ended.error["code"], ended.error["who"]) == (1, "assert-failed", "finding")


async def test_cancelling_leaves_the_step_open_and_the_run_resumable(tmp_path: Path) -> None:
    """A cancelled run is interrupted, logs no result for its current step, and closes its browser."""
    rig = Rig(tmp_path, flow(f"  - {CLICK}, id: pay}}"))
    begun = asyncio.Event()

    async def hang(_target: str, _page: FakePage) -> None:
        begun.set()
        await asyncio.Event().wait()

    rig.site.before_click = hang
    task = asyncio.ensure_future(rig.start())
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert rig.calls("pay") == ["open"]
    assert rig.history.status == "interrupted"
    assert rig.browser is not None
    assert rig.browser.closed
    assert isinstance(rig.told[-1], events.RunEnded)
    assert rig.told[-1].exit == 130


async def test_secrets_are_logged_as_references(tmp_path: Path) -> None:
    """The page receives the secret, the log its template, and text echoed by the page is masked."""
    rig = Rig(
        tmp_path,
        flow(
            f"""
  - {{id: pass, type: browser_action, action: fill, target: {{label: Password}}, value: "{{{{ secrets.PASSWORD }}}}"}}
  - {READ}, id: echo}}
  - {{id: shout, type: transform, expr: "{{{{ echo | upper }}}}"}}
""",
            'secrets: [PASSWORD]\noutput: "{{ echo }}"',
        ),
        secrets={"PASSWORD": "correct-horse"},
        site=FakeSite(texts={"css=h1": "you typed correct-horse"}),
    )
    ended = await rig.start()
    assert ended.status == "passed"
    assert ended.output == "you typed [hidden]"
    assert rig.browser is not None
    assert rig.browser.page.filled == {'label="Password"': "correct-horse"}
    lines = rig.store.conversation_file(rig.id).read_text()
    assert "correct-horse" not in lines
    assert "{{ secrets.PASSWORD }}" in lines
    assert [attempt.result.masked for attempt in rig.history.attempts["echo"] if attempt.result] == [True]


async def test_without_masking_the_scan_fails_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With masking switched off, the final scan finds the secret in the log and fails the run with `secret-leaked`."""
    rig = Rig(
        tmp_path,
        flow(f"  - {READ}, id: echo}}"),
        secrets={"PASSWORD": "correct-horse"},
        site=FakeSite(texts={"css=h1": "correct-horse"}),
    )
    monkeypatch.setattr(rig.masker, "json", lambda value: value)
    ended = await rig.start()
    assert (ended.status, ended.error and ended.error["code"]) == ("failed", "secret-leaked")


async def test_large_values_are_stored_in_blobs(tmp_path: Path) -> None:
    """A value over 4 KiB is stored in a blob and read back in full."""
    rig = Rig(
        tmp_path,
        flow("  - {id: big, type: transform, expr: \"{{ ['0123456789'] * 1000 }}\"}", 'output: "{{ big | length }}"'),
    )
    ended = await rig.start()
    result = rig.history.attempts["big"][0].result
    assert ended.output == 1000
    assert result is not None
    assert result.blob is not None
    assert result.value is None
    assert rig.open_writer is not None
    assert rig.open_writer.value_of(result) == ["0123456789"] * 1000


async def test_a_step_is_shown_with_resolved_references(tmp_path: Path) -> None:
    """The summary of a step has its resolved values, with secrets masked."""
    goto = "{id: open, type: browser_action, action: goto, url: 'http://shop.test/{{ item }}/{{ echo }}'}"
    rig = Rig(
        tmp_path,
        flow(
            f"  - {{id: item, type: transform, expr: '{{{{ 6 * 7 }}}}'}}\n  - {READ}, id: echo}}\n  - {goto}",
            "secrets: [PASSWORD]",
        ),
        secrets={"PASSWORD": "correct-horse"},
        site=FakeSite(texts={"css=h1": "correct-horse"}),
    )
    await rig.start()
    summaries = {event.path: event.summary for event in rig.told if isinstance(event, events.StepStarted)}
    assert summaries["open"] == "goto http://shop.test/42/[hidden]"


CONFIRMED = (
    ", confirm: {settle: 0, nodes: [{id: status, type: browser_query, query: text, target: {test_id: status}}],"
    " done: \"{{ status == 'paid' }}\"}"
)


@pytest.mark.parametrize("verify", ["", ", verify: [{text: paid, target: {css: p}}]"])
async def test_a_click_whose_answer_was_lost_is_unknown(tmp_path: Path, verify: str) -> None:
    """Without `confirm` the run pauses with exit 4, the call stays open, and the click happened once."""
    rig = Rig(tmp_path, flow(f"  - {CLICK}, id: pay, retry: {{attempts: 3, delay: 0}}{verify}}}"))

    async def lose(_target: str, page: FakePage) -> None:
        page.browser.lost = "POST http://shop.test/pay"

    rig.site.on_click = lose
    ended = await rig.start()
    assert ended.question is not None
    assert (ended.status, ended.exit, ended.question["reason"]) == ("paused", 4, "outcome-unknown")
    assert (rig.calls("pay"), len(rig.site.actions)) == (["open"], 1)


@pytest.mark.parametrize(
    ("status", "calls", "actions"), [("paid", ["recovered"], 1), ("open", ["error not-done", "ok"], 2)]
)
async def test_confirm_resolves_a_lost_answer(tmp_path: Path, status: str, calls: list[str], actions: int) -> None:
    """If `confirm` says done, the click is not repeated; if not done, it is retried while attempts are left."""
    rig = Rig(
        tmp_path,
        flow(f"  - {CLICK}, id: pay, retry: {{attempts: 2, delay: 0}}{CONFIRMED}}}"),
        site=FakeSite(texts={'test_id="status"': status}),
    )

    async def lose_once(_target: str, page: FakePage) -> None:
        page.browser.lost = "POST http://shop.test/pay" if len(rig.site.actions) == 1 else None

    rig.site.on_click = lose_once
    ended = await rig.start()
    assert (ended.status, rig.calls("pay"), len(rig.site.actions)) == ("passed", calls, actions)


@pytest.mark.parametrize("how", ["late", "error"])
@pytest.mark.parametrize(
    ("confirm", "status", "calls", "actions"),
    [(CONFIRMED, "paid", ["recovered"], 1), (CONFIRMED, "open", ["error not-done", "ok"], 2), ("", "", ["ok"], 1)],
)
async def test_with_confirm_every_answer_counts(
    tmp_path: Path, how: Literal["late", "error"], confirm: str, status: str, calls: list[str], actions: int
) -> None:
    """With `confirm`, late and failed requests are checked too; without it, only documents are waited for."""
    rig = Rig(
        tmp_path,
        flow(f"  - {CLICK}, id: pay, retry: {{attempts: 2, delay: 0}}{confirm}}}"),
        site=FakeSite(texts={'test_id="status"': status}),
    )

    async def answer_badly_once(_target: str, page: FakePage) -> None:
        missing = MissingAnswer("POST http://shop.test/pay", how, 500 if how == "error" else None)
        page.browser.unanswered = missing if len(rig.site.actions) == 1 else None

    rig.site.on_click = answer_badly_once
    ended = await rig.start()
    assert (ended.status, rig.calls("pay"), len(rig.site.actions)) == ("passed", calls, actions)


async def test_confirm_proves_nothing_while_the_request_is_pending(tmp_path: Path) -> None:
    """While the request is pending a denial does not repeat the click: a person is asked, and a later resume finds it done."""
    site = FakeSite(texts={'test_id="status"': "open"})
    rig = Rig(tmp_path, flow(f"  - {CLICK}, id: pay, retry: {{attempts: 2, delay: 0}}{CONFIRMED}}}"), site=site)

    async def answer_late(_target: str, page: FakePage) -> None:
        page.browser.unanswered = MissingAnswer("POST http://shop.test/pay", "late", None)
        page.browser.on_its_way = True

    site.on_click = answer_late
    ended = await rig.start()
    assert (ended.status, len(site.actions), (ended.question or {})["reason"]) == ("paused", 1, "outcome-unknown")
    assert "the site has not answered" in (ended.question or {})["message"]
    rig.die()
    site.texts['test_id="status"'] = "paid"
    assert ((await rig.resume()).status, len(site.actions)) == ("passed", 1)


@pytest.mark.parametrize("tries_again", [False, True])
async def test_a_resume_repeats_confirm_before_acting(tmp_path: Path, tries_again: bool) -> None:
    """A run that failed after `confirm` denied the click checks again on resume, and does not repeat a click that arrived late."""
    site = FakeSite(texts={'test_id="status"': "open"})
    retry = "retry: {attempts: 2, delay: 0}" if tries_again else "timeout: 5"
    rig = Rig(tmp_path, flow(f"  - {CLICK}, id: pay, {retry}{CONFIRMED}}}"), site=site)

    async def answer_late(target: str, page: FakePage) -> None:
        page.browser.unanswered = MissingAnswer("POST http://shop.test/pay", "late", None)
        page.browser.missing.add(target)

    site.on_click = answer_late
    ended = await rig.start()
    assert (ended.status, len(site.actions)) == ("failed", 1)
    rig.die()
    site.texts['test_id="status"'] = "paid"
    assert ((await rig.resume()).status, len(site.actions)) == ("passed", 1)


async def test_a_verify_that_fails_is_a_failure_not_a_question(tmp_path: Path) -> None:
    """If the site answers but `verify` fails, the run fails with exit 1."""
    rig = Rig(tmp_path, flow(f"  - {CLICK}, id: pay, verify: [{{text: paid, target: {{css: p}}}}]}}"))
    ended = await rig.start()
    assert ended.error is not None
    assert (ended.exit, ended.error["code"], ended.error["phase"]) == (1, "verify-failed", "after")
