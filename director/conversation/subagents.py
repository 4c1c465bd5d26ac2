"""Subagents (delegates, scouts): models that work for one call of a session, in a separate thread. Only the answer is returned.

The answer states its cost, which counts against the parent's budget even if the subagent fails or is interrupted. A crash ends a
subagent: if its answer is in the log, that is used; otherwise it is closed as interrupted, with its own subagents.
"""

from __future__ import annotations

import asyncio
import dataclasses
import math
import time
from abc import abstractmethod
from collections.abc import Callable, Collection, Sequence
from typing import Protocol

from typing_extensions import override

from director.conversation import session_tools
from director.session import prompt, state_lists
from director.session.events import Listener
from director.session.state import SessionState
from director.tools import barrier, toolbox
from director.tools.toolbox import Toolset
from nodes.budgets import Budget
from nodes.errors import ModelError, Paused, RunOpsError
from nodes.values import Json
from runtime.context import items as window_items
from runtime.context import request as context_request
from runtime.context import summaries, window
from runtime.display import costs
from runtime.display.text import count
from runtime.log import entries, ledger, session, threads
from runtime.log.writer import NOTHING, LogWriter, chars_of
from runtime.messages import estimates
from runtime.messages.messages import Item, Request, Tool
from runtime.models import budgets, requests, run_models
from runtime.models.turns import call_checks, turn

ENDS = barrier.ENDS - {"budget", "paused"}
"""Categories of errors that end the parent, too, and so are not returned to it."""


@dataclasses.dataclass(frozen=True, slots=True)
class Sender:
    levels: int  # levels of delegates that it may send
    budgets: budgets.Requester
    items: Callable[[], tuple[Item, ...]]  # returns its thread as in a request, with the answer that calls the subagent


@dataclasses.dataclass(frozen=True, slots=True)
class Terms:
    """What one subagent may spend."""

    budget: Budget
    turns: int  # limit of its requests
    model: str | None = None  # its model, if it is another one than the session's
    max_output: int | None = None  # tokens of one answer; None for the setting


class Tabs(Protocol):
    """The browser of a session, for a subagent that acts there in its own tabs."""

    @property
    def toolsets(self) -> Sequence[Toolset]: ...

    @property
    def notes(self) -> str:
        """Return what its first message says about the site: where to begin, and which secrets it may type."""
        ...

    async def close(self) -> None:
        """Close its tabs."""
        ...


class Pages(Protocol):
    """The pages of a session, for its subagents."""

    def tabs(self, call: entries.Call) -> Tabs: ...

    def looking(self, thread: str) -> Sequence[Toolset]:
        """Return the tools with which the model of this thread looks at every page of the session."""
        ...

    def actions(self, call: entries.Call) -> int:
        """Return the number of actions on the site that the call's subagent did, or may have done."""
        ...


class SubagentTools(toolbox.ModelTools):
    def __init__(
        self,
        state: SessionState,
        listener: Listener,
        toolsets: Sequence[Toolset],
        prompts: Sequence[window.Part],
        tabs: Tabs | None = None,
    ) -> None:
        """``tabs`` are closed once the subagent has ended in any way."""
        super().__init__(state, listener, toolsets)
        self._prompts, self._tabs = tuple(prompts), tabs

    @property
    @override
    def final(self) -> Collection[str]:
        return ()

    def around(self) -> window.RequestFrame:
        return window.RequestFrame(self._prompts, tuple(self.offered))

    @override
    async def _outcome(self, toolset: Toolset, arguments: dict[str, Json], place: turn.Place) -> turn.Outcome:
        try:
            return await super()._outcome(toolset, arguments, place)
        except Paused:
            # A subagent cannot wait for a person; its parent can.
            error = ModelError(
                "delegate-unasked",
                "a person must be asked for it, and none is there now",
                fix="leave it, and say in the answer what would have to be done",
            ).as_json()
            return turn.Outcome(call_checks.render_error(error), error=error)

    def outcome_of_open_call(self, call: entries.Call) -> turn.Outcome | None:
        return next(filter(None, (each.outcome_of_open_call(call) for each in self.toolsets.values())), None)

    @property
    def notes(self) -> str:
        """What the first message says besides the task."""
        return self._tabs.notes if self._tabs is not None else ""

    async def close(self) -> None:
        if self._tabs is not None:
            await self._tabs.close()


def prompts(*names: str) -> list[window.Part]:
    return [window.Part(name, prompt.prompt(name), on_tools=name == "tools") for name in names]


class SubagentCall(Toolset):
    """A tool that starts a subagent; ``employ`` must have set its parent."""

    turns: int
    budget: Budget
    pages: Pages | None = None

    side_by_side = True

    def __init__(self, state: SessionState, listener: Listener, offered: Tool, modes: frozenset[entries.Mode]) -> None:
        super().__init__(offered, modes)
        self.state, self.writer, self.listener = state, state.writer, listener
        self.models: run_models.RunModels | None = None
        self.limits: Callable[[], window.Limits] = window.Limits
        self.sender = Sender(0, budgets.Requester("", None), tuple)

    def employ(self, models: run_models.RunModels | None, limits: Callable[[], window.Limits], sender: Sender) -> None:
        self.models, self.limits, self.sender = models, limits, sender

    @abstractmethod
    def config(self, call: entries.Call, subagent: Subagent) -> SubagentTools: ...

    @abstractmethod
    def who(self, call: entries.Call) -> str: ...

    def word(self, arguments: dict[str, Json]) -> str:
        return str(arguments["task"])

    def check(self, arguments: dict[str, Json]) -> None:
        """Raise ModelError ``tool-arguments`` if the task is incomplete."""
        if not str(arguments["task"]).strip():
            raise self._incomplete("task: it says nothing", "call it again, with what to find")

    def terms(self, _call: entries.Call) -> Terms:
        return Terms(self.budget, self.turns)

    def began(self, call: entries.Call, subagent: Subagent) -> None:
        """Log what is to be known of the subagent besides its call."""

    def unfounded(self, _call: entries.Call) -> str:
        """Return what the subagent is told if its answer cannot rest on anything yet; empty if it can."""
        return ""

    def before(self, _arguments: dict[str, Json], _asked: str) -> tuple[Item, ...]:
        return ()

    def left(self, call: entries.Call) -> str:
        """Return a note on effects that may have happened, for a subagent without an answer: they must be checked before a repeat."""
        number = self.pages.actions(call) if self.pages is not None else 0
        did = f"it did {count(number, 'action')} on the site, or may have: look there first; " if number else ""
        return f"{did}`{state_lists.delegate_path(call.call)}` tells what it did; "

    @override
    async def take(self, arguments: dict[str, Json], place: turn.Place) -> turn.Outcome:
        self.check(arguments)
        call = entries.Call(
            thread=place.thread,
            path=place.path,
            node=self.tool.name,
            action=self.tool.name,
            asked=place.asked,
            attempt=1,
            # A call starts it only once.
            effect="effect",
            args=arguments,
            fingerprint="",
        )
        call = await self.writer.announce(call)
        begun = time.monotonic()
        subagent = Subagent(self, call, self.before(arguments, place.asked))
        try:
            self.began(call, subagent)
            answer = await subagent.work("\n\n".join(filter(None, (self.word(arguments), subagent.config.notes))))
        except asyncio.CancelledError:
            subagent.close()
            raise
        except RunOpsError as error:
            if error.who in ENDS:
                raise
            subagent.close(error)
            outcome = self._failed(error, call)
        else:
            report = self._answered(answer, call)
            outcome = turn.Outcome(report, report, written=True)
        finally:
            await subagent.config.close()
        status = "ok" if outcome.error is None else "error"
        seconds = round(time.monotonic() - begun, 4)
        self.writer.result(call, status, value=outcome.value, error=outcome.error, seconds=seconds)
        self.listener.spent(call.path, self._cost(call))
        return outcome

    def outcome_of_open_call(self, call: entries.Call) -> turn.Outcome | None:
        """Return the outcome of a subagent that was interrupted, and close its open calls. None for a call of another tool."""
        if call.action != self.tool.name:
            return None
        said = self.writer.history.thread(entries.delegate_thread(call.call)).said
        last = said[-1] if said else None
        if isinstance(last, threads.Exchange) and not last.answer.calls and not self.unfounded(call):
            report = self._answered(self.writer.text_of(last.answer), call)
            return turn.Outcome(report, report)
        if self.models is not None:
            Subagent(self, call, ()).close()
        error = ModelError(
            "delegate-interrupted",
            f"the {self.who(call)} was interrupted before it had an answer ({self._cost(call)})",
            fix=f"{self.left(call)}send it again if its answer is still wanted",
        )
        return turn.Outcome("", error=error.as_json())

    def _answered(self, answer: str, call: entries.Call) -> str:
        return f"{answer or NOTHING}\n({self._cost(call)})"

    def _failed(self, error: RunOpsError, call: entries.Call) -> turn.Outcome:
        details = error.as_json()
        details["message"] = f"the {self.who(call)} failed: {error.message} ({self._cost(call)})"
        details["fix"] = f"{self.left(call)}{details.get('fix') or 'do it without one, or send it with another task'}"
        details = self.writer.masker.json(details)
        return turn.Outcome(call_checks.render_error(details), error=details, written=True)

    def _cost(self, call: entries.Call) -> str:
        totals = ledger.totals([*self.writer.history.ledger.within(call.path)])
        return f"the {self.who(call)} took {costs.sentence(totals)}"

    def _incomplete(self, what: str, fix: str) -> ModelError:
        return ModelError("tool-arguments", f"the arguments do not fit `{self.tool.name}`: {what}", fix=fix)


class Subagent:
    def __init__(self, of: SubagentCall, call: entries.Call, before: tuple[Item, ...]) -> None:
        models, writer, sender = of.models, of.writer, of.sender
        assert models is not None, "the caller was asked by a model"
        self.sender = sender
        self._writer, self._limits, self._before = writer, of.limits, before
        self._thread = entries.delegate_thread(call.call)
        self._unfounded = lambda: of.unfounded(call)
        terms = of.terms(call)
        self._most = terms.turns
        most = terms.max_output or models.max_output("delegate")
        ends = time.monotonic() + float(terms.budget.time or math.inf)
        requester = requests.RequestScope(
            call.path,
            self._thread,
            "director",
            lambda: ends - time.monotonic(),
            lambda what: of.listener.waiting(f"{call.path}: {what}"),
            longer=f"allow a delegate more: `max_output` of its agent, or RUNOPS_DELEGATE_MAX_OUTPUT={2 * most}",
            patient=True,
        )
        self._exchanges = requests.Exchanges(models, writer, requester, terms.model, terms.budget, sender.budgets)
        self.config = of.config(call, self)
        frame = context_request.Frame(
            writer,
            self._thread,
            self.config.around,
            self._room,
            max_output=most,
            models=models,
            asks=asks(models, writer, requester.left, requester.tell, terms.budget, sender.budgets),
            refresh=session_tools.REFRESH,
        )
        self._turns = turn.Turns(
            self._exchanges,
            _FrameAfter(frame, before),
            self.config,
            writer,
            turn.TurnOptions(call.path, self._thread, of.tool.name),
            talks=True,
            find_out=self.config.outcome_of_open_call,
        )

    @property
    def share(self) -> budgets.Requester:
        return self._exchanges.share

    @property
    def model(self) -> str:
        return self._exchanges.model()

    async def work(self, word: str) -> str:
        self._turns.say(word)
        reminded = False
        while True:
            latest = await self._turns.turn()
            if not latest.answer.calls:
                missing = self._unfounded()
                if not missing:
                    return latest.answer.text
                if reminded:
                    raise ModelError(
                        "report-unfounded",
                        "it reported twice without having looked at any page",
                        fix="send it again, with the page that it is to look at, or look yourself",
                    )
                reminded = True
                self._turns.say(missing)
            if self._turns.count >= self._most:
                raise ModelError(
                    "delegate-turns",
                    f"it had no answer after {self._most} requests",
                    fix="send it with a smaller task",
                )

    def close(self, error: RunOpsError | None = None) -> None:
        said = self._writer.history.thread(self._thread).said
        if not said:
            return
        self._turns.break_off()
        if not isinstance(said[-1], entries.ModelError):
            self._exchanges.broken_off(error or interrupted())

    def items(self) -> tuple[Item, ...]:
        thread = window_items.Thread(self._writer.history.thread(self._thread), self._writer)
        return (*self._before, *window.build(thread, self.config.around(), self._room()).items)

    def _room(self) -> window.Limits:
        """Return the limits that remain for the thread after the inherited items, whose size is fixed."""
        limits = self._limits()
        size = sum(map(estimates.of_item, self._before))
        chars = sum(map(chars_of, self._before))
        taken = {"compress_at": size, "hard_limit": size, "max_chars": chars, "max_messages": len(self._before)}
        now: dict[str, int | None] = {name: getattr(limits, name) for name in taken}
        left = {name: max(1, most - taken[name]) for name, most in now.items() if most is not None}
        return limits.model_copy(update={"strategy": "clean", **left})


class _FrameAfter(turn.Frame):
    def __init__(self, frame: turn.Frame, before: tuple[Item, ...]) -> None:
        self._frame, self._before = frame, before

    @override
    async def request(self, model: str) -> Request:
        request = await self._frame.request(model)
        return dataclasses.replace(request, items=(*self._before, *request.items))


def interrupted() -> ModelError:
    return ModelError("interrupted", "it was interrupted", fix="say `continue`, or what is wanted now")


def asks(
    models: run_models.RunModels,
    writer: LogWriter[session.Session],
    left: Callable[[], float],
    tell: Callable[[str], None],
    budget: Budget | None = None,
    within: budgets.Requester | None = None,
) -> summaries.Asks:
    def opened(thread: str) -> requests.Exchanges:
        requester = requests.RequestScope(
            writer.history.path_of(thread),
            thread,
            "summary",
            left,
            lambda what: tell(f"a summary: {what}"),
            patient=True,
        )
        return requests.Exchanges(models, writer, requester, None, budget, within)

    return opened
