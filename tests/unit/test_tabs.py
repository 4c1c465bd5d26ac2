"""Tabs in workflow files, and steps that work in them, on a fake site."""

from __future__ import annotations

from pathlib import Path

import pytest

from runtime.language import reader
from runtime.language.diagnostics import WorkflowInvalid
from tests.fakes import FakePage
from tests.rig import Rig

HEAD = "version: 1\nallowed_origins: ['http://a.test']\nnodes:\n"


def mistakes(*nodes: str) -> list[tuple[str, str, int, int, list[str]]]:
    """The mistakes of a file with these nodes: code, message, line of the node (from 1), column, fixes."""
    try:
        reader.parse(HEAD + "".join(f"  - {node}\n" for node in nodes), "t.yaml")
    except WorkflowInvalid as invalid:
        return [
            (
                each.code,
                each.message,
                each.mark.line - 3 if each.mark else 0,
                each.mark.column if each.mark else 0,
                list(each.help),
            )
            for each in invalid.diagnostics
        ]
    return []


CLICK = "{id: c, type: browser_action, action: click, target: {css: a}, opens: popup}"
OPEN = "{id: o, type: browser_action, action: open_tab, tab: reports}"


def test_a_tab_is_one_that_a_node_opens() -> None:
    """``main``, a tab of ``open_tab`` and one that an action ``opens`` may be named by every page node, anywhere."""
    uses = [
        "{id: a, type: browser_query, query: url, tab: main}",
        "{id: b, type: browser_query, query: title, tab: popup}",
        "{id: d, type: browser_action, action: switch_tab, tab: reports}",
        "{id: e, type: browser_action, action: close_tab, tab: popup}",
        "{id: f, type: browser_action, action: reload, tab: reports}",
    ]
    assert mistakes(OPEN, CLICK, *uses) == []


@pytest.mark.parametrize(
    "node",
    [
        "{id: x, type: browser_query, query: url, tab: popap}",
        "{id: x, type: browser_action, action: switch_tab, tab: popap}",
        "{id: x, type: browser_action, action: close_tab, tab: popap}",
        "{id: x, type: group, nodes: [{id: y, type: browser_query, query: url, tab: popap}]}",
    ],
)
def test_a_tab_that_no_node_opens(node: str) -> None:
    """An unknown tab name is reported at its position, with a suggestion."""
    (found,) = mistakes(OPEN, CLICK, node)
    column = len("  - ") + node.index("popap") + 1
    assert found == ("unknown-tab", "no node opens a tab called `popap`", 3, column, ["did you mean `popup`?"])


def test_a_tab_that_is_like_no_other() -> None:
    """A tab name like no other is reported with all known names."""
    (found,) = mistakes(OPEN, CLICK, "{id: x, type: browser_query, query: url, tab: zzz}")
    assert found[4] == ["the tabs here are main, popup, reports"]


@pytest.mark.parametrize("field", ["tab: main", "tab: popap"])
def test_a_confirm_may_name_no_tab(field: str) -> None:
    """A `confirm` query works on a separate page, so naming a tab is a mistake."""
    look = f"{{id: l, type: browser_query, query: url, {field}}}"
    node = (
        f"{{id: x, type: browser_action, action: click, target: {{css: a}}, confirm: {{nodes: [{look}], done: true}}}}"
    )
    assert "not-in-confirm" in [each[0] for each in mistakes(CLICK, node)]


@pytest.mark.parametrize(("name", "column"), [("'{{ vars.x }}'", 0), ("'two words'", 0), ("''", 0)])
def test_the_name_of_a_tab_is_literal(name: str, column: int) -> None:
    """A tab name contains no reference and no blank."""
    assert mistakes(f"{{id: o, type: browser_action, action: open_tab, tab: {name}}}") != []


def flow(*nodes: str) -> str:
    """A workflow file."""
    return HEAD + "".join(f"  - {node}\n" for node in nodes)


async def test_a_step_works_in_its_tab_without_switching(tmp_path: Path) -> None:
    """``tab`` selects where a step works; only ``open_tab``, ``switch_tab`` and ``close_tab`` change the current tab."""
    rig = Rig(
        tmp_path,
        flow(
            "{id: a, type: browser_action, action: goto, url: 'http://a.test/main'}",
            "{id: b, type: browser_action, action: open_tab, tab: second, url: 'http://a.test/second'}",
            "{id: c, type: browser_action, action: goto, url: 'http://a.test/other', tab: main}",
            "{id: d, type: browser_query, query: url}",
            "{id: e, type: browser_query, query: url, tab: main}",
            "{id: f, type: browser_action, action: switch_tab, tab: main}",
            "{id: g, type: browser_action, action: close_tab, tab: second}",
            "{id: h, type: browser_query, query: url, tab: second, on_error: continue}",
        )
        + "output: ['{{ b }}', '{{ d }}', '{{ e }}', '{{ f }}', '{{ run.errors.h.code | default(0) }}']\n",
    )
    ended = await rig.start()
    second, other = "http://a.test/second", "http://a.test/other"
    assert ended.output == [second, second, other, other, "tab-closed"]


async def test_verify_checks_the_current_tab_after_the_action(tmp_path: Path) -> None:
    """After an action that closed its own tab, its rules are checked on the tab that is then current."""

    async def close(target: str, page: FakePage) -> None:
        if target == "css=#close":
            await page.browser.tabs.close("popup")

    rig = Rig(
        tmp_path,
        flow(
            "{id: a, type: browser_action, action: click, target: {css: '#open'}, opens: popup}",
            "{id: b, type: browser_action, action: click, target: {css: '#close'}, tab: popup, verify: [{text: saved, target: {css: p}}]}",
        ),
    )
    rig.site.on_click = close
    rig.site.texts["=css=p"] = "saved"
    ended = await rig.start()
    assert ended.status == "passed", ended.error
    assert rig.browser is not None
    assert list(rig.browser.tabs.open_ones) == ["main"]


ASKING = (
    "{id: a, type: browser_action, action: click, target: {css: '#ask'}, effect: idempotent}",
    "{id: b, type: browser_action, action: dialog, answer: accept, text: sure}",
)


async def ask(target: str, page: FakePage) -> None:
    """A click that opens a dialog."""
    if target == "css=#ask":
        page.dialog = "Are you sure?"


async def test_an_answer_is_a_separate_action(tmp_path: Path) -> None:
    """Accepting has class *effect*, dismissing has not; the value is the dialog's message."""
    rig = Rig(tmp_path, flow(*ASKING) + "output: '{{ b }}'\n")
    rig.site.on_click = ask
    ended = await rig.start()
    assert ended.output == "Are you sure?"
    assert rig.site.actions == ["css=#ask", "accept Are you sure?"]
    assert [each.call.effect for each in rig.history.all_attempts()] == ["idempotent", "effect"]
    dismissing = reader.parse(flow(ASKING[0], ASKING[1].replace("accept", "dismiss")), "t.yaml")
    assert dismissing.workflow.nodes[1].effect_class == "idempotent"


@pytest.mark.parametrize(
    "node",
    [
        "{id: b, type: browser_query, query: url}",
        "{id: b, type: browser_action, action: click, target: {css: a}}",
        "{id: b, type: browser_action, action: wait, verify: [{url: '**'}]}",
    ],
)
async def test_nothing_else_is_done_while_a_dialog_is_open(node: str, tmp_path: Path) -> None:
    """The next step in that tab fails with `dialog-open` before its action."""
    rig = Rig(tmp_path, flow(ASKING[0], node))
    rig.site.on_click = ask
    ended = await rig.start()
    assert ended.error is not None
    assert (ended.error["code"], ended.error["phase"], ended.path) == ("dialog-open", "before", "b")
    assert rig.site.actions == ["css=#ask"]


async def test_an_answer_is_verified_after_the_dialog(tmp_path: Path) -> None:
    """The rules of an answer are checked once the dialog is gone, and not before the answer."""
    asked, answered = ASKING
    rig = Rig(tmp_path, flow(asked, answered.replace("}", ", verify: [{text: gone, target: {css: p}}]}")))
    rig.site.on_click = ask
    rig.site.texts["=css=p"] = "gone"
    ended = await rig.start()
    assert ended.status == "passed", ended.error
    assert rig.history.attempts["b"][0].call.held_before is None


@pytest.mark.parametrize("verify", ["", ", verify: [{text: sure}]"])
async def test_an_action_that_opens_a_dialog_is_done(verify: str, tmp_path: Path) -> None:
    """An action that opens a dialog passes; a rule on the page, which the dialog blocks, fails it after the action."""
    rig = Rig(tmp_path, flow("{id: a, type: browser_action, action: click, target: {css: '#ask'}" + verify + "}"))
    rig.site.on_click = ask
    ended = await rig.start()
    if not verify:
        assert (ended.status, rig.calls("a")) == ("passed", ["ok"])
    else:
        assert ended.error is not None
        assert (ended.error["code"], ended.error["phase"]) == ("dialog-open", "after")


async def test_other_tabs_work_during_a_dialog(tmp_path: Path) -> None:
    """A dialog blocks only its own tab; other tabs can be opened, selected and closed."""
    rig = Rig(
        tmp_path,
        flow(
            ASKING[0],
            "{id: o, type: browser_action, action: open_tab, tab: second, url: 'http://a.test/'}",
            "{id: u, type: browser_query, query: url}",
            "{id: s, type: browser_action, action: switch_tab, tab: main}",
            "{id: c, type: browser_action, action: close_tab}",
        )
        + "output: '{{ u }}'\n",
    )
    rig.site.on_click = ask
    ended = await rig.start()
    assert (ended.status, ended.output) == ("passed", "http://a.test/")
