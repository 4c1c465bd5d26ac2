"""Agent loop: one turn of the model after another, until the work is done, given up, or stopped by a limit."""

from __future__ import annotations

import dataclasses
from typing import Any

from nodes import agent as nodes_agent
from nodes.errors import ModelError
from nodes.values import Json
from runtime.agents import page_tools, tool_schemas
from runtime.context import hidden_values, request, window
from runtime.engine.run_state import LeafView, RunState
from runtime.log import attempts
from runtime.models import requests, run_models
from runtime.models.turns import turn

SILENT = 2  # answers in a row without a tool call that end the step
CLOSING_TURNS = 5  # additional turns for the value of a goal that is already reached

LIMITS = window.Limits(max_messages=None, max_chars=None)
"""Limits of an agent's window: only those of the model, so that it contains the whole work."""

CALL_A_TOOL = "Call a tool. When the goal is reached, or cannot be, call `finish`."
REACHED = (
    "The run was interrupted, and the goal was reached before. No further action on the site is allowed. "
    "Look at what you need to see, and call `finish` with the value."
)


@dataclasses.dataclass(frozen=True, slots=True)
class PageAgent:
    """The agent of a step whose call is written already; ``requester`` is that of the call."""

    run: RunState
    step: LeafView
    models: run_models.RunModels
    requester: requests.RequestScope

    async def work(self, task: nodes_agent.Agent) -> Json:
        run, call = self.run, self.step.call
        assert call is not None, "`await ctx.act()` comes first"
        thread = requests.Exchanges(self.models, run.writer, self.requester, task.model, task.allowance)
        at_work = page_tools.PageTools(run, self.step, call, task)
        frame = request.Frame(
            run.writer,
            self.requester.thread,
            lambda: window.RequestFrame((window.Part("rules", tool_schemas.RULES),), at_work.offered),
            lambda: LIMITS,
            max_output=task.max_output,
        )
        options = turn.TurnOptions(call.path, self.requester.thread, attempts.AGENT, call.fingerprint)
        turns = turn.Turns(thread, frame, at_work, run.writer, options)
        most = task.max_turns
        if not turns.begun:
            turns.say(hidden_values.Hidden(run, self.step.node, self.step.frame).text(task.goal))
        if self.step.closing:
            turns.say(REACHED)
            most = max(most, turns.count + CLOSING_TURNS)
        silent = 0
        while True:
            if turns.count >= most:
                fix = "give it a larger `max_turns`, or a smaller goal"
                raise ModelError("agent-turns", f"the goal was not reached in {most} turns", fix=fix, phase="after")
            at_work.turn = turns.count + 1
            latest = await turns.turn()
            if (end := latest.final(at_work)) is not None:
                given: Any = end.value
                if given["done"]:
                    return given.get("output")
                note = " ".join(str(given["note"]).split())
                fix = "read what prevented it, and say in the goal what it needs"
                raise ModelError("agent-gave-up", f"the model gave up: {note[:500]}", fix=fix, phase="after")
            silent = 0 if latest.answer.calls else silent + 1
            if silent >= SILENT:
                message = f"the model asked for no tool, {SILENT} times in a row"
                evidence: dict[str, Json] = {"said": latest.answer.text[:500]}
                fix = "choose a model that can use tools"
                raise ModelError("agent-silent", message, fix=fix, phase="after", evidence=evidence)
            if silent:
                turns.say(CALL_A_TOOL)
