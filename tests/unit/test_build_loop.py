"""The loop of a build runs until `finish` is accepted, always ends, and resumes where it stopped."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest
from typing_extensions import override

from director.builds import loop
from director.draft import output_files
from director.session import person
from director.tools import barrier, toolbox
from director.tools.build_context import BuildContext
from director.tools.toolbox import CHANGED, Toolset
from nodes.errors import Paused, UsageError
from nodes.values import Json
from runtime.log import entries
from runtime.messages.messages import Answer, ToolCall, Usage
from runtime.models.turns import turn
from tests import builds_rig
from tests.build_lives import GOAL, Life
from tests.now import let_go, now
from tests.talks import asks, in_turn, messages, said

PLAN: tuple[str, dict[str, Json]] = ("update_plan", {"plan": builds_rig.PLAN, "reason": "the way"})
LOOKS: tuple[str, dict[str, Json]] = ("get_current_plan", {})
ASKS: tuple[str, dict[str, Json]] = ("ask_user", {"question": "Which shop?", "choices": ["old", "new"]})


class Says(person.Person):
    """A person who always gives one answer, and counts the questions."""

    def __init__(self, answer: str) -> None:
        self.answer, self.questions = answer, list[str]()

    @override
    async def ask(self, question: str, choices: object = (), *, place: str = "", free: bool = False) -> str:
        self.questions.append(question)
        return self.answer


class Listening(person.Person):
    """A person who says yes, and records the questions."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, list[str]]] = []

    @override
    async def ask(self, question: str, choices: Sequence[str] = (), *, place: str = "", free: bool = False) -> str:
        self.asked.append((question, list(choices)))
        return "yes"


def test_a_question_cannot_imitate_our_output(tmp_path: Path) -> None:
    """Later lines of a question are indented, and a choice is one line."""
    asked = ("ask_user", {"question": "Which?\n\n  1 yes\r  answer  runops x", "choices": ["old\n  2 no"]})
    listener = Listening()
    Life(tmp_path, in_turn([asks(asked), said("Fine."), said("Well.")]), who=listener).live()
    assert listener.asked == [("Which?\n    1 yes\n    answer  runops x", ["old 2 no"])]


def test_a_model_that_only_talks_gets_one_reminder(tmp_path: Path) -> None:
    """Two answers in a row without a call end the build."""
    one = Life(tmp_path, in_turn([said("Fine."), asks(LOOKS), said("And?"), said("Well.")])).live()
    assert one.code == "build-stopped"
    assert messages(one.requests[-1]) == [
        f"user: {GOAL}",
        "assistant: Fine.",
        f"user: {loop.REMINDER}",
        "assistant: And?",
        f"user: {loop.REMINDER}",
    ]


def test_invalid_calls_are_answered_and_the_build_continues(tmp_path: Path) -> None:
    """Invalid JSON, wrong arguments and unknown tools get errors. Actions after them in the same answer are not done."""
    odd = Answer("", Usage(10, 0, 5, 0), "m", calls=(ToolCall("a", "update_plan", "{"), ToolCall("b", *_empty("find"))))
    unknown = asks(("press_any_key", {}), PLAN)
    one = Life(tmp_path, in_turn([odd, unknown, asks(PLAN), said("x"), said("x")])).live()
    codes = [result.rpartition("(")[2].partition(")")[0] for result in one.told[:4]]
    assert codes == ["tool-arguments", "tool-arguments", "tool-unknown", "tool-not-done"]
    assert one.told[4].startswith("kept as version 1")


CREATE = (
    "create_nodes",
    {"yaml": "- {id: one, type: transform, expr: 1}", "after": None, "dry_run": None, "reason": "r1"},
)
BROKEN = ("create_nodes", {"yaml": "- {id: two, type: transfrm}", "after": "one", "dry_run": None, "reason": "r2"})
RUN = ("execute_nodes", {"nodes": "all", "mode": None, "from": None, "item": None, "reason": "r"})


def _codes(one: Life) -> list[str]:
    return [result.rpartition(" (")[2].partition(").")[0] if ")." in result else "" for result in one.told]


def test_a_refused_plan_or_read_stops_nothing(tmp_path: Path) -> None:
    """After a plan, a read or a target that was refused, the calls after it are done; a plan with missing fields is none of them."""
    plan = ("update_plan", {"plan": {"overall_goal": "x" * 3_000}, "reason": "r"})
    bare = ("update_plan", {"plan": {"phases": []}})
    target = ("propose_target", {"tab": None, "ref": "e1", "anchor": None, "reason": "r"})
    one = Life(tmp_path, in_turn([asks(plan, LOOKS, target, bare, CREATE), said("x"), said("x")])).live()
    assert _codes(one)[0] == "plan-invalid"
    assert _codes(one)[2] == "page-unknown"
    assert one.told[3].startswith("kept as version 1")
    assert one.told[4].startswith("version 1")


def test_a_failed_edit_stops_what_needs_it(tmp_path: Path) -> None:
    """After an edit that failed nothing runs the draft, adds nodes at its place, names what it was to add, or deletes what it was to replace; other edits and the scout go on."""
    other = ("update_node", {"id": "one", "yaml": "{id: one, type: transform, expr: 2}", "reason": "r3"})
    behind = ("create_nodes", {"yaml": "- {id: three, type: transform, expr: 3}", "after": "one", "dry_run": None, "reason": "r4"})  # fmt: skip
    last = ("create_nodes", {"yaml": "- {id: four, type: transform, expr: 4}", "after": None, "dry_run": None, "reason": "r5"})  # fmt: skip
    gone = ("delete_nodes", {"ids": ["one"], "reason": "r6"})
    scout = ("debug_action", {"tab": "x", "action": "close_tab", "ref": None, "value": None, "options": None, "reason": "r"})  # fmt: skip
    task = ("patch_plan_task", {"task_id": "t", "status": "completed", "notes": None, "reason": "r"})
    head = ("update_node", {"id": "workflow", "yaml": "output: '{{ two }}'", "reason": "r7"})
    calls = asks(CREATE, BROKEN, other, behind, last, gone, RUN, task, scout, head)
    one = Life(tmp_path, in_turn([calls, said("x"), said("x")])).live()
    assert one.told[1].startswith("nothing was changed")
    assert one.told[2].startswith("version 2")
    assert "tool-not-done" in one.told[3]
    assert one.told[4].startswith("version 3")
    assert all("`create_nodes` (draft-invalid)" in each for each in (one.told[3], *one.told[5:8]))
    assert "page-unknown" in one.told[8]
    assert "tool-not-done" in one.told[9]


def test_a_failed_look_around_stops_what_acts_beside_the_draft_alone(tmp_path: Path) -> None:
    """After an action beside the draft that failed, its nodes are still written and executed, and no other action is done there; a reason is given to any tool."""
    scout = ("debug_action", {"tab": "x", "action": "close_tab", "ref": None, "value": None, "options": None, "reason": "r"})  # fmt: skip
    how = ("get_node_type", {"type": "targets", "reason": "r"})
    one = Life(tmp_path, in_turn([asks(scout, CREATE, RUN, scout, how), said("x"), said("x")])).live()
    assert _codes(one)[0] == "page-unknown"
    assert one.told[1].startswith("version 1")
    assert one.told[2].startswith("all done")
    assert "tool-not-done" in one.told[3]
    assert "tool-arguments" not in one.told[4]


def test_after_an_execution_that_failed_nothing_is_executed(tmp_path: Path) -> None:
    """After a node that failed on the bench the calls that execute are not done, except from a fresh browser; looks, edits and the plan are."""
    text = "- {id: one, type: transform, expr: '{{ 1 // 0 }}'}\n- {id: two, type: transform, expr: 2}"
    begins = ("create_nodes", {"yaml": text, "after": None, "dry_run": None, "reason": "r1"})
    behind = (RUN[0], {**RUN[1], "nodes": "two", "from": "live"})
    fresh = (RUN[0], {**RUN[1], "nodes": "two", "from": "fresh"})
    draft = ("run_draft", {"inputs": None, "reason": "r"})
    more = ("create_nodes", {"yaml": "- {id: three, type: transform, expr: 3}", "after": "two", "dry_run": None, "reason": "r2"})  # fmt: skip
    ends = ("finish", {"done": True, "summary": "It counts.", "unproved": None, "reason": "r"})
    calls = asks(begins, RUN, behind, draft, ends, LOOKS, more, PLAN, fresh)
    one = Life(tmp_path, in_turn([calls, asks(fresh, draft), said("x"), said("x")])).live()
    assert one.told[1].startswith("stopped at the first failure")
    for each in one.told[2:5]:
        assert each.startswith("not done: an earlier call of the same answer failed: `execute_nodes` (tool-not-done)")
    assert one.told[6].startswith("version 2")
    assert one.told[7].startswith("kept as version 1")
    assert [each.startswith("all done") for each in one.told[8:10]] == [True, True]
    assert "failed at one" in one.told[10]


def test_edits_of_one_answer_are_checked_behind_all_of_them(tmp_path: Path) -> None:
    """A reference that an edit breaks is no mistake if the edits after it in the same answer resolve it; else it is told at the edit."""
    two = "- {id: one, type: transform, expr: 1}\n- {id: two, type: transform, expr: '{{ one }}'}"
    begins = ("create_nodes", {"yaml": two, "after": None, "dry_run": None, "reason": "r1"})
    delete = ("delete_nodes", {"ids": ["one"], "reason": "r2"})
    update = ("update_node", {"id": None, "yaml": "- {id: two, type: transform, expr: 7}", "reason": "r3"})
    more = ("create_nodes", {"yaml": "- {id: three, type: transform, expr: '{{ two }}'}", "after": None, "dry_run": None, "reason": "r4"})  # fmt: skip
    one = Life(
        tmp_path, in_turn([asks(begins), asks(delete, more), asks(delete, update, more), said("x"), said("x")])
    ).live()
    assert "unknown-reference" in one.told[1]
    assert one.told[2].startswith("version 2\n  3 three")
    assert one.told[3].startswith("version 3\n  1 two  transform")
    assert "gone: one" in one.told[3]
    assert one.told[4] == "done in version 3, with an edit before it"
    assert "duplicate-id" in one.told[5]


def _empty(name: str) -> tuple[str, str]:
    return name, "{}"


def test_ten_calls_of_one_answer_are_done_in_order(tmp_path: Path) -> None:
    """Each call has one result, and the model sees the results in call order."""
    sets = [("set_variable", {"name": f"v{number}", "value": str(number), "reason": "r"}) for number in range(10)]
    one = Life(tmp_path, in_turn([asks(*sets), said("x"), said("x")])).live()
    assert [result.split()[0] for result in one.told] == [f"v{number}" for number in range(10)]
    assert [each.call.action for each in one.writer.history.actions.values()] == ["set_variable"] * 10


def test_the_same_call_that_fails_three_times_ends_the_build(tmp_path: Path) -> None:
    """The build ends with `agent-stuck`; a message of the person lets the model try again."""
    wrong = asks(("get_workflow_variable", {"key": "nothing"}))
    one = Life(tmp_path, in_turn([wrong, wrong, wrong])).live()
    assert (one.code, len(one.requests)) == ("agent-stuck", 3)
    two = one.again(in_turn([wrong, wrong, wrong, wrong, asks(PLAN)])).live("Leave that.")
    assert two.code == "build-stopped"
    assert "user: Leave that." in messages(two.requests[-1])


def test_a_budget_that_is_used_up_can_be_enlarged(tmp_path: Path) -> None:
    """No request exceeds the budget. With a larger one the build continues, and nothing is paid twice."""
    script = in_turn([asks(PLAN), asks(LOOKS), said("x"), said("x")])
    one = Life(tmp_path, script, budget="calls=1").live()
    assert (one.code, len(one.requests)) == ("budget-reached", 1)
    two = one.again(script, budget="calls=9").live()
    assert (two.code, len(two.requests)) == ("build-stopped", 3)
    assert len(two.writer.history.versions("plan")) == 1


def test_a_question_waits_for_its_answer(tmp_path: Path) -> None:
    """No model request is made before the answer. Then the model sees it, and the question is not repeated."""
    script = in_turn([asks(PLAN, ASKS), said("x"), said("x")])
    one = Life(tmp_path, script).live()
    assert one.code == "question"
    still = one.again(script).live()
    assert (still.code, still.requests) == ("question", [])
    two = one.again(script)
    now(person.answer(two.writer, "2"))
    assert two.live().code == "build-stopped"
    assert two.told[1] == "new"
    assert len(two.writer.history.versions("plan")) == 1


def test_an_answer_is_for_the_question_that_is_open(tmp_path: Path) -> None:
    """The same question at another place is asked again."""
    script = in_turn([asks(ASKS), asks(ASKS), said("x"), said("x")])
    one = Life(tmp_path, script, who=Says("old")).live()
    assert [each.answer for each in one.writer.history.questions] == ["old", "old"]
    assert len({each.place for each in one.writer.history.questions}) == 2


class Asking(Toolset):
    """An action that asks a person after its call is logged."""

    def __init__(self, build: BuildContext, done: list[str]) -> None:
        super().__init__(toolbox.tool("action", "Does it.", {}), CHANGED)
        self._shop, self._done = build, done

    @override
    async def take(self, arguments: dict[str, Json], place: turn.Place) -> turn.Outcome:
        async def work(_call: entries.Call) -> turn.Outcome:
            self._done.append(await self._shop.person.ask("Do it?", ["yes", "no"], place=place.path))
            return turn.Outcome("done", "done")

        return await barrier.done(self._shop.writer, "action", arguments, place, work)


def test_an_action_that_waits_for_an_answer_is_done_once(tmp_path: Path) -> None:
    """The waiting call is closed as skipped, and after the answer a second attempt performs the action once."""
    done: list[str] = []
    script = in_turn([asks(("action", {})), said("x"), said("x")])
    one = Life(tmp_path, script, more=lambda build: [Asking(build, done)]).live()
    assert (one.code, done) == ("question", [])
    two = one.again(script, more=lambda build: [Asking(build, done)])
    now(person.answer(two.writer, "y"))
    assert (two.live().told, done) == (["done"], ["yes"])
    ends = [
        (each.call.attempt, each.result.status if each.result else None) for each in two.writer.history.actions.values()
    ]
    assert ends == [(1, "skipped"), (2, "ok")]


def test_a_skipped_question_takes_no_answer(tmp_path: Path) -> None:
    """After another message replaced the answer, a late answer is refused."""
    script = in_turn([asks(ASKS), said("x"), said("x")])
    one = Life(tmp_path, script).live()
    assert one.again(script).live("Take any.").code == "build-stopped"
    late = one.again(script)
    with pytest.raises(UsageError, match="waits for no answer"):
        now(person.answer(late.writer, "old"))
    let_go(late.writer.conversation)


@pytest.mark.parametrize("typed", ["", "  ", "3", "neither"])
def test_free_text_is_an_answer_only_where_allowed(typed: str) -> None:
    """Text that is no choice is refused where only choices count; otherwise it is the answer, unless empty."""
    assert person.meaning(typed, ["yes", "no"], free=False) is None
    assert person.meaning(typed, ["yes", "no"], free=True) == (typed.strip() or None)


def test_a_person_is_asked_until_the_answer_is_valid() -> None:
    """Choices are listed below the question. Invalid input asks again, and the end of input leaves the question pending."""
    shown: list[str] = []
    typed = iter(["", "maybe", "1"])

    async def read() -> str | None:
        return next(typed, None)

    who = person.Typing(shown.append, read)
    assert asyncio.run(who.ask("Pay it?", ["yes", "no"])) == "yes"
    assert shown == ["Pay it?\n  1 yes\n  2 no", "Type one of: 1 yes, 2 no"]
    with pytest.raises(Paused, match="Pay it"):
        asyncio.run(who.ask("Pay it?", ["yes", "no"]))


@pytest.mark.parametrize("typed", ["2", "no", " NO ", "n"])
def test_a_choice_is_given_by_number_or_text(typed: str) -> None:
    """Case does not matter, and an unambiguous beginning is enough."""
    assert person.meaning(typed, ["yes", "no"], free=False) == "no"


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Life:
    """A build without interruption."""
    return Life(tmp_path_factory.mktemp("whole"), CUT, who=Says("old")).live()


CUT = in_turn([asks(PLAN), asks(ASKS), asks(LOOKS), said("x"), said("x")])


def test_a_draft_that_cannot_be_saved_keeps_the_first_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The build reports why it ended, and in the evidence why there is no file."""

    def full(_file: Path, _data: bytes) -> None:
        raise OSError(28, "No space left on device")

    node = "- {id: a, type: transform, expr: '{{ 1 }}'}"
    begins = ("create_nodes", {"yaml": node, "after": None, "dry_run": None, "reason": "r"})
    one = Life(tmp_path, in_turn([asks(begins), said("Fine."), said("Well.")]))
    monkeypatch.setattr(output_files.files, "write", full)
    one.live()
    assert one.code == "build-stopped"
    assert one.error is not None
    assert "No space left" in str(one.error.evidence["draft"])


SHARES = 40


@pytest.mark.drawn(6)
@pytest.mark.parametrize("share", range(SHARES))
def test_a_build_resumes_after_any_log_line(share: int, whole: Life, tmp_path: Path) -> None:
    """A build cut after any log line resumes in mode agent with its goal, one plan, one answer and the same end."""
    lines = len(whole.file.read_bytes().splitlines())
    one = whole.cut(1 + share * (lines - 1) // SHARES, tmp_path, CUT, who=Says("old"))
    assert (one.writer.history.mode, one.build.goal.goal, one.build.goal.policy) == ("agent", GOAL, "hold")
    one.live()
    past = one.writer.history
    assert one.code == "build-stopped"
    assert len(past.versions("plan")) == 1
    assert [each.answer for each in past.questions] == ["old"]
    assert not past.open_calls()
