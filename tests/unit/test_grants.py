"""What a yes to an action covers: that action as it was asked for, and no other."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from pathlib import Path

import pytest

from director.effects import grants
from tests import benches, build_contexts
from tests.holding import SITE, TEXT, asking, click, edited, holds, leaf

pytestmark = pytest.mark.anyio


async def test_a_yes_holds_nothing_back_but_what_it_was_given_for(tmp_path: Path) -> None:
    """What was granted is done in every turn of its loop, and whatever was refused, or never asked for, is held; reads are nobody's business."""
    build, asked = asking(tmp_path, "yes", "no", "no")
    held = await holds(build)
    assert [held(leaf(build, "pay"), path) for path in ("each[1]/pay", "each[#9]/pay")] == [False, False]
    assert held(leaf(build, "note"), "note")
    assert held(leaf(build, "pay"), "elsewhere")
    assert not held(leaf(build, "open"), "open")
    assert len(asked) == 3
    for said in (
        'click button "Pay for Ann"',
        "who = Ann",
        "{{ orders }}",
        "css tr",
        f"page   {SITE}/orders",
        "hold all: nothing",
    ):
        assert said in asked[0]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('name: "Pay', 'name: "Delete'),
        ("action: click", "action: dblclick"),
        ('over: "{{ orders }}"', 'over: ["1001", "1002"]'),
        ("css: tr", "css: li"),
        ("/orders", "/users"),
        ("default: Ann", "default: Eve"),
        ("id: pay", "id: pay_it"),
        ("timeout: 5", "when: '{{ order.no }}'"),
        ("timeout: 5", "retry: {attempts: 3, on: [verify-failed]}"),
        ('default: "http://127.0.0.1:8765"', 'default: "http://127.0.0.1:9"'),
    ],
)
async def test_another_action_is_asked_for_anew(tmp_path: Path, old: str, new: str) -> None:
    """Where the action itself is edited, or for what or where it is done, what was answered before does not count."""
    text = TEXT.replace('name: "Pay for', 'name: "Pay {{ inputs.base_url }} for')
    build, asked = asking(tmp_path, *["yes"] * 3, *["no"] * 3, text=text)
    await holds(build)
    edited(build, old, new)
    held = await holds(build, "2_run_draft")
    name = "pay_it" if "pay_it" in new else "pay"
    assert held(leaf(build, name), f"each[1]/{name}")
    assert name in asked[3]


@pytest.mark.parametrize(
    "new", ["timeout: 9", "description: now", "verify: [{visible: {text: paid}}]", "retry: {attempts: 2}"]
)
async def test_how_an_action_is_checked_is_not_the_action(tmp_path: Path, new: str) -> None:
    """Another description, rule, time or retry leaves an action what it was: nobody is asked again."""
    build, asked = asking(tmp_path, "yes", "no", "no")
    await holds(build)
    edited(build, "timeout: 5", new)
    held = await holds(build, "2_run_draft")
    assert (len(asked), held(leaf(build, "pay"), "each[1]/pay")) == (3, False)


async def test_other_inputs_make_another_action(tmp_path: Path) -> None:
    """A run with other inputs, where the action reads them, is asked for by itself; the answer to the first one stands."""
    text = TEXT.replace(
        "  - {id: note",
        '  - {id: home, type: browser_action, action: goto, url: "{{ inputs.base_url }}"}\n  - {id: note',
    )
    build, asked = asking(tmp_path, "yes", "no", "no", "no", text=text)
    await holds(build)
    held = await holds(build, "2_run_draft", who="Eve")
    assert held(leaf(build, "pay"), "each[1]/pay")
    held = await holds(build, "3_run_draft", who="Ann")
    assert (len(asked), held(leaf(build, "pay"), "each[1]/pay")) == (4, False)


WAY = textwrap.dedent("""
    version: 1
    inputs: {amount: {type: string, default: "10"}}
    nodes:
      - {id: home, type: browser_action, action: goto, url: "http://127.0.0.1:8765/a"}
      - {id: first, type: browser_action, action: fill, target: {label: Note}, value: old}
      - {id: open, type: browser_action, action: goto, url: "http://127.0.0.1:8765/b"}
      - {id: menu, type: browser_action, action: click, target: {text: Transfer}, effect: idempotent}
      - {id: amount, type: browser_action, action: fill, target: {label: Amount}, value: "{{ inputs.amount }}"}
      - {id: look, type: browser_query, query: text, target: {css: h1}}
      - id: big
        type: route
        branches:
          - {name: small, when: "{{ inputs.amount == '0' }}", nodes: [{id: no, type: transform, expr: 1}]}
          - {name: large, when: "{{ look == 'Send' }}", nodes: [{id: send, type: browser_action, action: click, target: {text: Send}}]}
          - {name: other, when: "{{ look == 'x' }}", nodes: [{id: nothing, type: transform, expr: 2}]}
""")


@pytest.mark.parametrize(
    ("old", "new", "again"),
    [
        ("text: Transfer", "text: Withdraw", True),
        ('value: "{{ inputs.amount }}"', 'value: "1000"', True),
        ("default: \"10\"", "default: \"99\"", True),
        ("  - {id: look", "  - {id: tick, type: browser_action, action: check, target: {label: All}}\n  - {id: look", True),
        ("== 'Send'", "!= 'Send'", True),
        ("== '0'", "== '1'", True),
        ("id: big\n", "id: big\n    when: '{{ look is defined }}'\n", True),
        ("value: old", "value: new", False),
        ("id: amount, ", "id: how_much, ", False),
        ("id: menu, ", "id: menu, timeout: 9, verify: [{text: Amount}], ", False),
        ("== 'x'", "== 'y'", True),
    ],
)  # fmt: skip
async def test_an_action_is_done_where_it_was_granted(tmp_path: Path, old: str, new: str, again: bool) -> None:
    """What leads to its page from the last address on, what is filled in there, and where its block is run, belong to an action; what comes before and beside it does not."""
    build, asked = asking(tmp_path, "yes", "no", text=WAY)
    await holds(build)
    for said in ('click "Transfer"', 'fill field "Amount" "10"', "{{ look == 'Send' }}", "/b"):
        assert said in asked[0]
    assert "Note" not in asked[0]
    edited(build, old, new)
    held = await holds(build, "2_run_draft")
    assert (len(asked), held(leaf(build, "send"), "big/send")) == (1 + again, again)


RESTING = textwrap.dedent("""
    version: 1
    nodes:
      - {id: orders, type: browser_query, query: extract, target: {css: tr}, fields: {no: td}}
      - {id: some, type: transform, sql: "SELECT no FROM orders"}
      - {id: first, type: transform, expr: "{{ some[0].no }}"}
      - {id: keep, type: context, set: {who: Ann}}
      - {id: pay, type: browser_action, action: click, target: {text: "Pay {{ first }} for {{ vars.who }}"}}
""")


@pytest.mark.parametrize(
    ("old", "new", "again"),
    [
        ("tr}", "li}", 1),
        ("[0]", "[1]", 1),
        ("no FROM", "'1' AS no FROM", 1),
        ("Ann", "Eve", 1),
        ("id: pay", "description: so, id: pay", 0),
    ],
)
async def test_an_action_rests_on_all_that_it_reads(tmp_path: Path, old: str, new: str, again: int) -> None:
    """What an action reads at second hand, or as a variable, belongs to it: where that is edited, it is asked for anew."""
    build, asked = asking(tmp_path, "yes", "no", text=RESTING)
    await holds(build)
    edited(build, old, new)
    held = await holds(build, "2_run_draft")
    assert (len(asked), held(leaf(build, "pay"), "pay")) == (1 + again, bool(again))


async def test_a_value_set_by_hand_makes_another_action(tmp_path: Path) -> None:
    """Where a value is pinned that the action rests on, the yes to what stands in the file does not count on the bench; for whole runs, which know no pins, it stands."""
    build, asked = asking(tmp_path, "yes", "no", "no", "no")
    await holds(build)
    build.state.variables.set("orders", ["1007"], reason="a smaller list")
    wanted = [(leaf(build, "pay"), "each[1]/pay")]
    bench = await build.effects.demand(wanted, place="2_execute_nodes")
    whole = await build.effects.demand(wanted, place="3_finish", pins={})
    assert [each(leaf(build, "pay"), "each[1]/pay") for each in (bench, whole)] == [True, False]
    assert (len(asked), '["1007"] (set by hand)' in asked[3]) == (4, True)


@pytest.mark.parametrize(("answers", "own"), [(("yes", "yes", "no"), True), (("no", "no", "yes"), False)])
async def test_a_click_lets_no_agent_click(tmp_path: Path, answers: Sequence[str], own: bool) -> None:
    """What an agent does by itself is covered by a yes to the agent, which says so, and by no other; it covers nothing outside."""
    build, asked = asking(tmp_path, *answers)
    held = await holds(build)
    assert held(leaf(build, "work"), "work") is own
    assert held(click(), "work/3_click") is own
    assert held(click(), "note/3_click")
    assert held(click(), "click")
    assert "by itself" in asked[2]
    assert "by itself" not in asked[0]


async def test_hold_all_asks_nothing_more(tmp_path: Path) -> None:
    """Who wants everything held is asked no further question, and what they allowed before is held, too; also in a later process of the build."""
    build, asked = asking(tmp_path, "yes", "hold all")
    held = await holds(build)
    again = grants.Grants(build.writer, build.state, build.goal, build.person)
    later = await again.demand([(leaf(build, "pay"), "pay"), (click(), "click")], place="2_execute_nodes")
    for each in (held, later):
        assert each(leaf(build, "pay"), "each[1]/pay")
    assert len(asked) == 2


async def test_answers_are_kept(tmp_path: Path) -> None:
    """A build that continues finds in its log what was answered: yes and no alike."""
    build, asked = asking(tmp_path, "yes", "no", "no")
    await holds(build)
    build.effects = grants.Grants(build.writer, build.state, build.goal, build.person)
    held = await holds(build, "7_finish")
    assert (len(asked), held(leaf(build, "pay"), "each[1]/pay"), held(leaf(build, "note"), "note")) == (3, False, True)
    assert [each["answer"] for each in grants.answers(build.writer)] == ["yes", "no", "no"]


SENDS = """
  - {id: home, type: browser_action, action: goto, url: "http://127.0.0.1:8765/home"}
  - {id: open, type: browser_action, action: goto, url: "http://127.0.0.1:8765/form"}
  - {id: amount, type: browser_action, action: fill, target: {label: Amount}, value: "10"}
  - {id: send, type: browser_action, action: click, target: {text: Send}}
"""


@pytest.mark.parametrize(
    ("executed", "again"),
    [
        ([("open..amount", None), ("send", None)], False),
        ([("open..amount", None), ("send", "live")], False),
        ([("all", "fresh")], False),
        ([("open..send", "live")], False),
        ([("send", "live")], True),
        ([("home", None), ("send", "live")], True),
        ([("open, send", None)], True),
        ([("send", "fresh")], True),
    ],
)
async def test_a_yes_is_for_the_page_to_which_the_draft_leads(
    tmp_path: Path, executed: Sequence[tuple[str, str | None]], again: bool
) -> None:
    """On the bench an action that was granted is asked for again where the page is another one, or something was left out before it: with the page that is there."""
    who = build_contexts.Answering("yes", "no")
    rig = benches.Rig(tmp_path, SENDS, policy="ask", who=who)
    done = await rig.execute("all")
    assert done["send"] == "ok"
    for nodes, begin in executed:
        done = await rig.execute(nodes, begin=begin)
    assert (len(who.asked), done["send"]) == (1 + again, "held" if again else "ok")
    if executed == [("home", None), ("send", "live")]:
        assert "page   http://127.0.0.1:8765/home" in who.asked[1]
