"""An approval covers an action exactly as it was asked for, and no other."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from pathlib import Path

import pytest

from director.effects import grants
from tests import benches, build_contexts
from tests.holding import SITE, TEXT, asking, click, edited, holds, leaf

pytestmark = pytest.mark.anyio


async def test_an_approval_releases_only_its_action(tmp_path: Path) -> None:
    """An approved action runs in every iteration of its loop. Refused and unasked actions are withheld; reads are never asked about."""
    build, asked = asking(tmp_path, "yes", "no", "no")
    withheld = await holds(build)
    assert [withheld(leaf(build, "pay"), path) for path in ("each[1]/pay", "each[#9]/pay")] == [False, False]
    assert withheld(leaf(build, "note"), "note")
    assert withheld(leaf(build, "pay"), "elsewhere")
    assert not withheld(leaf(build, "open"), "open")
    assert len(asked) == 3
    for part in (
        'click button "Pay for Ann"',
        "who = Ann",
        "{{ orders }}",
        "css tr",
        f"page   {SITE}/orders",
        "hold all: nothing",
    ):
        assert part in asked[0]


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
async def test_a_changed_action_is_asked_for_again(tmp_path: Path, old: str, new: str) -> None:
    """An edit of the action, of its data or of its place invalidates the earlier answer."""
    text = TEXT.replace('name: "Pay for', 'name: "Pay {{ inputs.base_url }} for')
    build, asked = asking(tmp_path, *["yes"] * 3, *["no"] * 3, text=text)
    await holds(build)
    edited(build, old, new)
    withheld = await holds(build, "2_run_draft")
    name = "pay_it" if "pay_it" in new else "pay"
    assert withheld(leaf(build, name), f"each[1]/{name}")
    assert name in asked[3]


@pytest.mark.parametrize(
    "new", ["timeout: 9", "description: now", "verify: [{visible: {text: paid}}]", "retry: {attempts: 2}"]
)
async def test_checks_are_no_part_of_an_action(tmp_path: Path, new: str) -> None:
    """Another description, rule, timeout or retry keeps the answer, and no person is asked again."""
    build, asked = asking(tmp_path, "yes", "no", "no")
    await holds(build)
    edited(build, "timeout: 5", new)
    withheld = await holds(build, "2_run_draft")
    assert (len(asked), withheld(leaf(build, "pay"), "each[1]/pay")) == (3, False)


async def test_other_inputs_make_another_action(tmp_path: Path) -> None:
    """A run whose other inputs reach the action asks separately, and the first answer stays valid for its own inputs."""
    text = TEXT.replace(
        "  - {id: note",
        '  - {id: home, type: browser_action, action: goto, url: "{{ inputs.base_url }}"}\n  - {id: note',
    )
    build, asked = asking(tmp_path, "yes", "no", "no", "no", text=text)
    await holds(build)
    withheld = await holds(build, "2_run_draft", who="Eve")
    assert withheld(leaf(build, "pay"), "each[1]/pay")
    withheld = await holds(build, "3_run_draft", who="Ann")
    assert (len(asked), withheld(leaf(build, "pay"), "each[1]/pay")) == (4, False)


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
async def test_an_approval_covers_the_way_to_the_page(tmp_path: Path, old: str, new: str, again: bool) -> None:
    """Steps since the last address, fields filled there and conditions of the block belong to the action; earlier and neighbouring steps do not."""
    build, asked = asking(tmp_path, "yes", "no", text=WAY)
    await holds(build)
    for part in ('click "Transfer"', 'fill field "Amount" "10"', "{{ look == 'Send' }}", "/b"):
        assert part in asked[0]
    assert "Note" not in asked[0]
    edited(build, old, new)
    withheld = await holds(build, "2_run_draft")
    assert (len(asked), withheld(leaf(build, "send"), "big/send")) == (1 + again, again)


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
async def test_an_action_depends_on_all_that_it_reads(tmp_path: Path, old: str, new: str, again: int) -> None:
    """An edit of an indirect value or a variable that the action reads asks again."""
    build, asked = asking(tmp_path, "yes", "no", text=RESTING)
    await holds(build)
    edited(build, old, new)
    withheld = await holds(build, "2_run_draft")
    assert (len(asked), withheld(leaf(build, "pay"), "pay")) == (1 + again, bool(again))


async def test_a_pinned_value_makes_another_action(tmp_path: Path) -> None:
    """If the action depends on a pinned value, the bench asks again. The earlier approval stays valid for whole runs, which have no pins."""
    build, asked = asking(tmp_path, "yes", "no", "no", "no")
    await holds(build)
    build.state.variables.set("orders", ["1007"], reason="a smaller list")
    wanted = [(leaf(build, "pay"), "each[1]/pay")]
    bench = await build.effects.demand(wanted, place="2_execute_nodes")
    whole = await build.effects.demand(wanted, place="3_finish", pins={})
    assert [each(leaf(build, "pay"), "each[1]/pay") for each in (bench, whole)] == [True, False]
    assert (len(asked), '["1007"] (set by hand)' in asked[3]) == (4, True)


@pytest.mark.parametrize(("answers", "own"), [(("yes", "yes", "no"), True), (("no", "no", "yes"), False)])
async def test_approving_a_click_approves_no_agent(tmp_path: Path, answers: Sequence[str], own: bool) -> None:
    """Only approval of the agent, whose question says so, covers the actions it chooses; that approval covers nothing else."""
    build, asked = asking(tmp_path, *answers)
    withheld = await holds(build)
    assert withheld(leaf(build, "work"), "work") is own
    assert withheld(click(), "work/3_click") is own
    assert withheld(click(), "note/3_click")
    assert withheld(click(), "click")
    assert "by itself" in asked[2]
    assert "by itself" not in asked[0]


async def test_hold_all_asks_nothing_more(tmp_path: Path) -> None:
    """After "hold all" no question follows and earlier approved actions are withheld too, also in a later process of the build."""
    build, asked = asking(tmp_path, "yes", "hold all")
    withheld = await holds(build)
    again = grants.Grants(build.writer, build.state, build.person)
    later = await again.demand([(leaf(build, "pay"), "pay"), (click(), "click")], place="2_execute_nodes")
    for each in (withheld, later):
        assert each(leaf(build, "pay"), "each[1]/pay")
    assert len(asked) == 2


async def test_answers_survive_a_resume(tmp_path: Path) -> None:
    """A resumed build finds its earlier answers, yes and no, in its log."""
    build, asked = asking(tmp_path, "yes", "no", "no")
    await holds(build)
    build.effects = grants.Grants(build.writer, build.state, build.person)
    withheld = await holds(build, "7_finish")
    assert (len(asked), withheld(leaf(build, "pay"), "each[1]/pay"), withheld(leaf(build, "note"), "note")) == (
        3,
        False,
        True,
    )
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
async def test_an_approval_is_for_the_page_that_the_draft_reaches(
    tmp_path: Path, executed: Sequence[tuple[str, str | None]], again: bool
) -> None:
    """On the bench an approved action is asked for again, with its page, where the page differs or a step before it was skipped."""
    person = build_contexts.Answering("yes", "no")
    rig = benches.Rig(tmp_path, SENDS, policy="ask", who=person)
    done = await rig.execute("all")
    assert done["send"] == "ok"
    for nodes, begin in executed:
        done = await rig.execute(nodes, begin=begin)
    assert (len(person.asked), done["send"]) == (1 + again, "held" if again else "ok")
    if executed == [("home", None), ("send", "live")]:
        assert "page   http://127.0.0.1:8765/home" in person.asked[1]
