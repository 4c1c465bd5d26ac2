"""Which calls of a session have been replaced: an old plan, an old description, a value set again, nodes written again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from director.draft import edits
from director.session.state import SessionState
from nodes.values import Json
from runtime.context.replaced import Replaced, When
from runtime.log import entries

PLAN = "plan"
FAILED = "a refused edit"  # of no use once another edit was accepted

EDITS = frozenset({"create_nodes", "update_node"})

CONTENTS = {
    "update_plan": "plan",
    "update_workflow_description": "description",
    "set_variable": "value",
    "create_nodes": "yaml",
    "update_node": "yaml",
}
"""The argument with the content, by tool."""


class ReplacedCalls:
    def __init__(self, state: SessionState, is_plan_told: Callable[[], bool]) -> None:
        """``is_plan_told``: whether requests have the plan beside the conversation, so that no call needs to have it."""
        self._state, self._is_plan_told = state, is_plan_told
        self._seen = 0  # number of actions that were looked at
        self._waiting: list[str] = []  # calls that had no result then
        self._wrote: dict[
            str, tuple[int, frozenset[str]]
        ] = {}  # what a call wrote, with its line, by the id of the model's call
        self._newest: dict[str, int] = {}  # the line of the last call that wrote it

    def of_thread(self) -> Replaced:
        return Replaced(CONTENTS, self._when)

    def _when(self, asked: str) -> When | None:
        self._follow()
        line, wrote = self._wrote.get(asked, (0, frozenset[str]()))
        if PLAN in wrote and self._is_plan_told():
            return "now"
        replaced = wrote and all(self._newest.get(each, 0) > line for each in wrote)
        if replaced and FAILED in wrote:
            return "now"
        return "later" if replaced else None

    def _follow(self) -> None:
        """Take in the calls that have ended since."""
        actions = self._state.history.actions
        if self._seen == len(actions) and not self._waiting:
            return
        new = list(actions)[self._seen :]
        self._seen = len(actions)
        pending, self._waiting = [*self._waiting, *new], []
        for name in pending:
            call, result = actions[name].call, actions[name].result
            if result is None:
                self._waiting.append(name)
            elif call.asked is not None:
                if result.status in ("ok", "recovered"):
                    wrote = frozenset(self._written(call))
                    also = {FAILED} if call.action in EDITS else set[str]()
                    self._newest |= {each: max(call.seq, self._newest.get(each, 0)) for each in wrote | also}
                else:
                    wrote = frozenset({FAILED} if call.action in EDITS else ())
                self._wrote[call.asked] = (call.seq, wrote)

    def _written(self, call: entries.Call) -> Iterator[str]:
        match call.action:
            case "update_plan" | "patch_plan_task":
                yield PLAN
            case "update_workflow_description":
                yield "description"
            case "set_variable" | "clear_variable":
                yield f"variable {self._given(call).get('name')}"
            case "clear_all_variables":
                yield from [each for each in self._newest if each.startswith("variable ")]
            case "create_nodes" | "update_node" | "delete_nodes":
                given: Any = self._given(call)
                named = [given.get("id"), *(given.get("ids") or ()), *edits.IDS.findall(str(given.get("yaml") or ""))]
                yield from (f"node {each}" for each in named if each)
            case _:
                pass

    def _given(self, call: entries.Call) -> dict[str, Json]:
        given = self._state.writer.value_of(call)
        return given if isinstance(given, dict) else {}
