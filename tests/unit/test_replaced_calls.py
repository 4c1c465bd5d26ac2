"""Arguments of calls that later calls have replaced."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from director.conversation.replaced_calls import ReplacedCalls
from director.session.state import SessionState
from nodes.values import Json
from runtime.context.replaced import Calls
from runtime.log import entries
from runtime.messages import estimates
from runtime.messages.messages import ToolCall
from tests import sessions

LONG = "word " * 60


class Session:
    """A session whose calls are written to the log."""

    def __init__(self, folder: Path, *, is_plan_told: bool = False) -> None:
        self.state = SessionState(sessions.begun(folder))
        self.replaced = ReplacedCalls(self.state, lambda: is_plan_told).of_thread()
        self.made: list[ToolCall] = []

    def calls(self, name: str, status_: entries.Status = "ok", /, **arguments: Json) -> None:
        """A call with this outcome."""
        asked = ToolCall(f"a{len(self.made)}", name, json.dumps(arguments))
        call = entries.Call(
            path=asked.id, node="session", action=name, asked=asked.id, attempt=1, effect="read", args=arguments, fingerprint="",
            thread=entries.SESSION_THREAD,
        )  # fmt: skip
        self.state.writer.result(self.state.writer.call(call), status_)
        self.made.append(asked)

    def shown(self) -> Calls:
        """All of them as calls of one answer."""
        return self.replaced.calls(self.made)

    def replaced_later(self) -> list[bool]:
        """Of each call whether its content has left a request in which it is not recent."""
        shown = self.shown()
        return [one is not other for one, other in zip(shown.whole, shown.later, strict=True)]


def test_nodes_that_were_all_written_again_are_replaced(tmp_path: Path) -> None:
    """A call stays as long as one of its nodes is as it wrote it; a failed call replaces nothing, and leaves at once when another edit is accepted."""
    made = Session(tmp_path)
    made.calls(
        "create_nodes", yaml=f"- {{id: a, type: transform, expr: '{LONG}'}}\n- id: b\n  type: transform", reason="r"
    )
    made.calls("update_node", yaml=f"- {{id: a, type: transform, expr: '{LONG}2'}}", id=None, reason="r")
    assert made.replaced_later() == [False, False]
    made.calls("update_node", "error", yaml=f"expr: {LONG}", id="b", reason="r")
    assert made.replaced_later() == [False, False, False]
    made.calls("delete_nodes", ids=["b"], reason="r")
    assert made.replaced_later() == [True, False, False, False]
    made.calls("update_node", yaml=f"id: a\nexpr: {LONG}3", id="a", reason="r")
    assert made.replaced_later() == [True, True, True, False, False]
    shown = made.shown()
    assert [one is not other for one, other in zip(shown.whole, shown.now, strict=True)] == [
        False,
        False,
        True,
        False,
        False,
    ]


def test_values_and_descriptions_are_replaced_by_newer_ones(tmp_path: Path) -> None:
    """A cleared variable, too; a variable of another name is not."""
    made = Session(tmp_path)
    for name in ("v", "w"):
        made.calls("set_variable", name=name, value=LONG, reason="r")
    made.calls("update_workflow_description", description=LONG, reason="r")
    made.calls("set_variable", name="v", value=LONG, reason="r")
    assert made.replaced_later() == [True, False, False, False]
    made.calls("clear_all_variables", reason="r")
    made.calls("update_workflow_description", description=f"{LONG}2", reason="r")
    assert made.replaced_later() == [True, True, True, True, False, False]


@pytest.mark.parametrize("told", [True, False])
def test_a_plan_that_stands_beside_the_conversation_is_in_no_call(told: bool, tmp_path: Path) -> None:
    """From the first request on; otherwise the newest stays, and an older one leaves with a step. What stays is JSON, shorter, and says where it is kept."""
    made = Session(tmp_path, is_plan_told=told)
    made.calls("update_plan", plan={"notes": LONG}, reason="first")
    made.calls("patch_plan_task", task_id="a", status="completed", notes=None, reason="r")
    made.calls("update_plan", plan={"notes": LONG}, reason="second")
    shown = made.shown()
    assert [one is not other for one, other in zip(shown.whole, shown.now, strict=True)] == [told, False, told]
    assert made.replaced_later() == [True, False, told]
    size = len(json.dumps({"notes": LONG}))
    assert json.loads(shown.later[0].arguments) == {
        "reason": "first",
        "left_out": f"plan, {size} characters, kept at @state/call/a0",
    }
    tokens, chars = shown.saved(shown.later)
    assert tokens == sum(map(estimates.of_item, shown.whole)) - sum(map(estimates.of_item, shown.later)) > 0
    assert chars > 0


def test_short_and_broken_arguments_stay(tmp_path: Path) -> None:
    """Where a pointer would not be shorter, or the arguments are no JSON."""
    made = Session(tmp_path)
    made.calls("set_variable", name="v", value="1", reason="r")
    made.calls("set_variable", name="v", value=LONG, reason="r")
    made.calls("set_variable", name="v", value="2", reason="r")
    made.made[1] = ToolCall("a1", "set_variable", "{broken")
    assert made.replaced_later() == [False, False, False]
