"""Reply to a person's message: requests and tools until the model answers without a tool call.

Everything is in the session's log, and each request is made from it. So a reply that ends early, by Ctrl-C, an error, a budget or a crash,
can be resumed: paid answers are used, and completed work is not repeated.
"""

from __future__ import annotations

import asyncio
import dataclasses
import math
import time
from collections.abc import Callable, Sequence

from typing_extensions import override

from director.conversation import knowledge, replaced_calls, session_tools, subagents
from director.conversation.delegate import LEVELS, Delegates, Delegation
from director.session import prompt
from director.session.events import Listener
from director.session.state import SessionState
from director.session.subject import Subject
from director.tools.toolbox import Toolset
from nodes.errors import ModelError, RunOpsError, SetupError
from runtime.context import request as context_request
from runtime.context import window
from runtime.log import entries
from runtime.messages.messages import Item, Request
from runtime.models import budgets, requests, run_models
from runtime.models.turns import turn
from runtime.settings.settings import Settings


@dataclasses.dataclass(frozen=True, slots=True)
class ReplyOptions:
    turns: int = 40  # requests
    an_answer: float = 1200.0  # limit of one answer with its retries, in seconds
    max_output: int = 0  # least limit of one answer that no setting names, in tokens, reasoning included
    left_open: bool = False
    """True if an interruption leaves open calls to the resumed session, as after a crash."""
    without: frozenset[str] = frozenset()  # tools that are not offered


CHAT = ReplyOptions()

NODE = "session"  # node type of the calls of a session


class Talk:
    def __init__(
        self,
        state: SessionState,
        subject: Subject,
        models: run_models.RunModels | None,
        settings: Settings,
        listener: Listener,
        limits: Callable[[], window.Limits],
        more: Sequence[Toolset] = (),
        options: ReplyOptions | None = None,
        delegates: Delegates | None = None,
    ) -> None:
        """``limits`` is called for each request; ``more`` are additional tools; ``options`` default to those of a chat.

        ``delegates`` are by default anonymous, and begin as the settings say.

        Nothing is written or sent yet; without ``models`` nothing can be. Raises UsageError if the configured knowledge cannot be read.
        """
        writer = state.writer
        self._writer, self._subject, self._state, self._listener = writer, subject, state, listener
        self._limits, self._options = limits, options or CHAT
        self.ended: turn.Done | None = None
        """The call that ended the work; None if the model has worked on since."""
        known = [settings.chat_knowledge] if settings.chat_knowledge is not None else []
        self._known = knowledge.Knowledge.read(known)
        self._until = math.inf
        sender = subagents.Sender(LEVELS, budgets.Requester("", None), self._items)
        delegates = delegates or Delegates(settings.delegate_clean_context)
        every = [*more, Delegation(state, listener, lambda: self._tools, delegates)]
        for each in every:
            if isinstance(each, subagents.SubagentCall):
                each.employ(models, limits, sender)
        self._tools = session_tools.Toolbox(state, subject, listener, every, self._options.without)
        self._exchanges: requests.Exchanges | None = None
        self._turns: turn.Turns | None = None
        self._turning: asyncio.Task[turn.Turn] | None = None
        most = models.max_output("session", self._options.max_output) if models is not None else 0
        self._frame = context_request.Frame(
            writer,
            entries.SESSION_THREAD,
            self._around,
            limits,
            max_output=most,
            models=models,
            asks=subagents.asks(models, writer, self._left, listener.waiting) if models is not None else _asks_nobody,
            ids=self._names,
            stands=lambda: prompt.stands(state, subject),
            refresh=session_tools.REFRESH,
            replaced=replaced_calls.ReplacedCalls(state, lambda: limits().strategy != "clean").of_thread(),
            summed=listener.summed,
            warn=lambda report: listener.fills(report, limits().overflow),
        )
        if models is None:
            return
        requester = requests.RequestScope(
            "",
            entries.SESSION_THREAD,
            "director",
            self._left,
            listener.waiting,
            longer=f"allow more: `--max-output {2 * most}` (the setting `session_max_output`)",
            hear=listener.text,
            patient=True,
        )
        self._exchanges = requests.Exchanges(models, writer, requester, None, None)
        turn_options = turn.TurnOptions("", entries.SESSION_THREAD, NODE)
        self._turns = turn.Turns(
            self._exchanges,
            _ReportingFrame(self._frame, listener),
            self._tools,
            writer,
            turn_options,
            talks=True,
            find_out=lambda call: next(filter(None, (each.outcome_of_open_call(call) for each in every)), None),
            refused=self._tools.refused,
        )

    @property
    def mode(self) -> entries.Mode:
        return self._writer.history.mode

    @mode.setter
    def mode(self, mode: entries.Mode) -> None:
        if mode != self.mode:
            self._state.keep(entries.Version(of="mode", number=0, reason=f"/mode {mode}", by="person"), mode)

    def window(self) -> window.Report:
        """Return the contents of the next request; nothing is sent or written. Raises ModelError ``window-too-large``."""
        return self._built().report

    async def say(self, text: str) -> str:
        """Send ``text``, and return the model's answer once it calls no tool, or one that ends the work. Open calls are closed first.

        After ModelError the conversation continues with another message; after BudgetReached and SetupError ``go_on`` resumes this one. It
        also raises LogError and Replaced. When cancelled, open calls are closed as interrupted, unless the options leave them open.
        """
        turns = self._ready()
        turns.break_off()
        turns.say(text, self.mode)
        return await self._until_answered(turns)

    async def remind(self, text: str) -> str:
        """Send a message that is not the person's: the limit of requests and earlier failures continue to count. Raises like ``say``."""
        turns = self._ready()
        turns.say(text)
        return await self._until_answered(turns)

    @property
    def untouched(self) -> bool:
        return not self._writer.history.thread(entries.SESSION_THREAD).said

    async def go_on(self) -> str | None:
        """Answer a message left unanswered by a crash or a budget limit; None if it is the person's turn.

        Closes calls that a crash left open, and shows that to the model. Work that the person had stopped is not continued. Raises like ``say``.
        """
        turns = self._ready()
        if self._writer.history.thread(entries.SESSION_THREAD).stopped and turns.waiting:
            turns.stopped = True
            turns.break_off()
            await self._broken_off(_stopped())
        return await self._until_answered(turns) if turns.waiting else None

    @property
    def is_compressing(self) -> bool:
        """True if a summary that the person asked for has no end yet: ``compress`` completes it."""
        return self._frame.is_compressing

    async def compress(self, keep: str) -> context_request.Compressed:
        """Sum up what was said until now, ``keep`` above all. Open calls are closed first. Raises like ``say``."""
        turns = self._ready()
        turns.break_off()
        self._until = time.monotonic() + self._options.an_answer
        assert self._exchanges is not None, "there is a model"
        done = await self._frame.compress(self._exchanges.model(), self.mode, keep)
        await self._writer.barrier()
        return done

    def stop(self, *, at_once: bool = False) -> bool:
        """End the work: a request at once, a call once it is done, or ``at_once``, or if it is told twice. False if nothing works.

        ``say`` then raises ModelError ``work-stopped``.
        """
        if self._turns is None or self._turning is None:
            return False
        twice, self._turns.stopped = self._turns.stopped, True
        if not twice:
            self._writer.noted("stopped", {}, entries.SESSION_THREAD)
        if twice or at_once or self._turns.asking:
            self._turning.cancel()
        return True

    async def _until_answered(self, turns: turn.Turns) -> str:
        turns.stopped, self.ended = False, None
        try:
            while True:
                if turns.since_word >= self._options.turns and not turns.heard:
                    raise ModelError(
                        "talk-turns",
                        f"there was no answer after {self._options.turns} requests",
                        fix="say `continue`, or ask for less at once",
                    )
                self._until = time.monotonic() + self._options.an_answer
                latest = await self._turn(turns)
                final = latest.final(self._tools)
                if any(each.asked.name not in self._tools.reads for each in latest.done):
                    self.ended = final
                # What was said meanwhile is answered, also after the end of the work.
                if not turns.heard and (final is not None or not latest.answer.calls):
                    return latest.answer.text
                if turns.stopped:
                    raise _stopped()
                if not latest.answer.calls:
                    self._listener.replied(latest.answer.text)
        except asyncio.CancelledError:
            if not self._options.left_open:
                turns.break_off()
                await self._broken_off(subagents.interrupted())
            raise
        except RunOpsError as error:
            self._listener.failed(error)
            if isinstance(error, ModelError):
                turns.break_off()
                await self._broken_off(error)
            raise

    async def _turn(self, turns: turn.Turns) -> turn.Turn:
        self._turning = asyncio.ensure_future(turns.turn())
        try:
            return await self._turning
        except asyncio.CancelledError:
            this = asyncio.current_task()
            if turns.stopped and not (this is not None and this.cancelling()):
                raise _stopped() from None
            raise
        finally:
            self._turning = None

    async def _broken_off(self, error: RunOpsError) -> None:
        """Log that the message has no answer, unless that is logged already. A resumed session then waits for the person."""
        said = self._writer.history.thread(entries.SESSION_THREAD).said
        if self._exchanges is not None and said and not isinstance(said[-1], entries.ModelError):
            self._exchanges.broken_off(error)
            await self._writer.barrier()

    def _left(self) -> float:
        return self._until - time.monotonic()

    def _ready(self) -> turn.Turns:
        if self._turns is None:
            raise SetupError("model-unset", "no model is set to talk with", fix="set RUNOPS_MODEL")
        return self._turns

    def _around(self) -> window.RequestFrame:
        limits = self._limits()

        def known(asked: str) -> Sequence[window.Part]:
            return self._known.parts(asked, limits.top_k)

        return prompt.around(self.mode, limits, self._state, self._subject, self._tools.offered, known)

    def _built(self) -> window.Window:
        return self._frame.window(self._exchanges.model() if self._exchanges is not None else "")

    def _names(self) -> set[str]:
        return {*self._subject.variables(), *(each.name for each in self._writer.history.variables())}

    def _items(self) -> tuple[Item, ...]:
        return self._built().items


def _stopped() -> ModelError:
    return ModelError("work-stopped", "the person stopped the work", fix="say what to do now")


def _asks_nobody(_thread: str) -> requests.Exchanges:
    raise AssertionError("a session that is only shown asks no model")


class _ReportingFrame(turn.Frame):
    def __init__(self, frame: context_request.Frame, listener: Listener) -> None:
        self._frame, self._listener = frame, listener

    @override
    async def request(self, model: str) -> Request:
        request = await self._frame.request(model)
        assert self._frame.report is not None, "a request has its report"
        self._listener.asked(model, self._frame.report)
        return request
