"""One turn of a model with tools: a request, then each call of its answer executed in order, logged and reported to the model.

Each request is built from the log. So an interrupted thread continues with the same request, and no call with a result is executed again.
"""

from __future__ import annotations

import asyncio
import dataclasses
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Protocol

from nodes.errors import RunOpsError
from nodes.values import Json, normalise
from runtime.log import entries, threads
from runtime.log.writer import NOTHING, Fold, LogWriter
from runtime.messages.messages import Answer, Picture, Request, Tool, ToolCall, is_models
from runtime.models import requests
from runtime.models.turns import call_checks

_HAVE_A_TURN = (entries.User, threads.Exchange, entries.ModelError)  # the last of these decides the next speaker
_OVER = "an earlier call of the same answer ended the work"  # reason to skip all later calls of an answer

INTERRUPTED = "This was interrupted: it may have happened, and it is not done again. Look first, then continue from what you find."
"""Shown to the model for an action that began and whose outcome is unknown."""

NOT_DONE = "This waited for a person, and was not done."
"""Shown to the model for an action that was given up while a person was asked."""


@dataclasses.dataclass(frozen=True, slots=True)
class TurnOptions:
    path: str  # path of the step, or of a delegate of a session; empty for the session itself
    thread: str
    node: str  # node type in the log of the calls that the turn itself logs
    fingerprint: str = ""


class Frame(Protocol):
    """Builds requests from the thread and the parts around it."""

    async def request(self, model: str) -> Request:
        """Return the thread's next request, to ``model``. Raises ModelError ``window-too-large``, and the errors of a summary's request."""
        ...


@dataclasses.dataclass(frozen=True, slots=True)
class Place:
    number: int
    path: str
    thread: str
    asked: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class Outcome:
    text: str  # text for the model; the caller masks secrets in it
    value: Json = None
    error: dict[str, Json] | None = None  # the error, as `RunOpsError.as_json`; None after a success
    written: bool = False  # true if the call and its result are in the log already
    picture: Picture | None = None  # shown with the text


class Tools(Protocol):
    @property
    def offered(self) -> Sequence[Tool]:
        """Tools in every request, the same throughout a thread."""
        ...

    @property
    def final(self) -> Collection[str]:
        """Names of the tools that end the work if they succeed."""
        ...

    @property
    def side_by_side(self) -> Collection[str]:
        """Names of the tools whose leading calls in an answer run at the same time: none waits for another, or fails with it."""
        return ()

    @property
    def lenient(self) -> Collection[str]:
        """Names of the tools that take what they can of arguments that do not fit their schema."""
        return ()

    def needs(self, asked: ToolCall, earlier: Done) -> bool:
        """Return whether a call is not done because of how an earlier one of the same answer ended, by default if that failed."""
        return earlier.error is not None

    async def take(self, asked: ToolCall, arguments: dict[str, Json], place: Place) -> Outcome:
        """Execute a call with valid ``arguments``. An error for the model is an outcome; an exception ends the step."""
        ...

    def render_done(self, asked: ToolCall, result: entries.Result) -> str:
        """Return the text for the model about a call that was executed before a crash and not reported yet."""
        ...


@dataclasses.dataclass(frozen=True, slots=True)
class Done:
    asked: ToolCall
    text: str
    value: Json
    error: dict[str, Json] | None


@dataclasses.dataclass(frozen=True, slots=True)
class Turn:
    """One answer of the model, with the outcomes of its calls, in order."""

    answer: Answer
    done: tuple[Done, ...]

    def final(self, tools: Tools) -> Done | None:
        return next((each for each in self.done if each.error is None and each.asked.name in tools.final), None)


FindOut = Callable[[entries.Call], Outcome | None]
"""Returns the known outcome of a call that a crash left open: ``recovered`` with a value, else ``interrupted``."""


Refused = Callable[[ToolCall, Place, str], None]
"""Called with a call that no tool received, its place, and the text for the model."""


class Turns:
    """A thread whose model may call tools."""

    def __init__(
        self,
        thread: requests.Exchanges,
        frame: Frame,
        tools: Tools,
        writer: LogWriter[Fold],
        options: TurnOptions,
        *,
        talks: bool = False,
        find_out: FindOut = lambda _call: None,
        refused: Refused = lambda _asked, _place, _told: None,
    ) -> None:
        """If it ``talks``, an answer without tool calls ends the turn until the next message, and is not returned again after a crash."""
        self._exchanges, self._frame, self._tools, self._writer, self._options = thread, frame, tools, writer, options
        self._say = ""
        self._said_at = 0  # last line of the log when it was said
        self._mode: entries.Mode | None = None
        self._failures = call_checks.Failures()
        self._calls = 0  # number of calls in all answers before the current one
        self._last: threads.Exchange | None = None  # the last answer, until the caller has received it
        self._pictures: dict[str, Picture] = {}  # pictures of calls that were done and not reported yet
        self._doing: set[str] = set()  # the ids of the calls that were begun in this process
        self._talks, self._find_out, self._refused = talks, find_out, refused
        self.stopped = False  # true once the person has stopped the work: no further call is begun
        self.asking = False  # true while a request is on its way
        self.count = 0  # number of finished turns, those before a crash included
        self.since_word = 0  # number of turns since the last message of a person
        self._load()

    @property
    def begun(self) -> bool:
        return bool(self._say or self._writer.history.thread(self._options.thread).said)

    @property
    def waiting(self) -> bool:
        """True if the model is next: a message has no answer, or the last answer has calls. After a failed request the person is next."""
        said = self._writer.history.thread(self._options.thread).said
        last = next((each for each in reversed(said) if isinstance(each, _HAVE_A_TURN)), None)
        asks = isinstance(last, threads.Exchange) and bool(last.answer.calls)
        return bool(self._say or self.heard) or asks or isinstance(last, entries.User)

    @property
    def heard(self) -> Mapping[int, entries.Heard]:
        """Messages that the person said while the model worked, and that it does not have yet."""
        return self._writer.history.thread(self._options.thread).heard

    def say(self, text: str, mode: entries.Mode | None = None) -> None:
        """Add a message to the next request. A ``mode`` marks a person's message, after which earlier failures no longer count."""
        self._say = f"{self._say}\n\n{text}" if self._say else text
        self._said_at = self._writer.history.last_seq
        self._mode = mode or self._mode
        self._heard(mode)

    async def turn(self) -> Turn:
        """Return the next answer, with all its calls executed; after a crash the last one, unless a message follows it.

        Raises the errors of ``Frame.request`` and ``Exchanges.exchange``, errors of tools that end the step, and ModelError ``agent-stuck``.
        """
        exchange = self._last or await self._ask()
        answer = requests.recorded(exchange.answer, self._writer)
        self._last = exchange
        done, given_up = await self._do_all(answer, exchange)
        self._last = None
        self._calls += len(answer.calls)
        self._counted()
        if given_up is not None:
            raise call_checks.stuck(given_up.asked, given_up.error or {})
        return Turn(answer, done)

    def break_off(self) -> None:
        """Report the begun calls of the last answer as interrupted and the others as not done, so that the thread can continue."""
        exchange, self._last = self._last, None
        if exchange is None:
            return
        calls = self._writer.calls_of(exchange.answer)
        # After a crash it is unknown which call was interrupted: assume the first without an entry, if none has one and no output.
        known = any(each.call is not None and each.output is None for each in exchange.done.values())
        left = [asked.id for asked in calls if exchange.done[asked.id].call is None]
        begun = {*self._doing, *([] if known else left[:1])}
        for number, asked in enumerate(calls, self._calls + 1):
            place, state = self._place(number, asked), exchange.done[asked.id]
            if state.output is None:
                text = self._rendered(asked, state)
                if state.call is None:
                    text = self._not_done(asked, place, state, begun=asked.id in begun)
                waited = state.result is not None and state.result.status == "skipped"
                self._report(asked, text or (NOT_DONE if waited else INTERRUPTED), place, state)
        self._calls += len(calls)
        self._counted()

    def _load(self) -> None:
        for each in self._writer.history.thread(self._options.thread).said:
            if isinstance(each, entries.User):
                self._skip_last()
                self._heard(each.mode)
            elif isinstance(each, threads.Exchange):
                self._skip_last()
                self._last = each
            elif self._talks and isinstance(each, entries.ModelError):
                self._skip_last()
        if self._talks and self._last is not None and not self._last.answer.calls:
            self._skip_last()

    def _skip_last(self) -> None:
        """Count the last answer as returned; if the thread ``talks``, only if all its calls have an output."""
        exchange = self._last
        if exchange is None or (self._talks and any(each.output is None for each in exchange.done.values())):
            return
        calls = self._writer.calls_of(exchange.answer)
        for asked in calls:
            self._failures.too_many(asked, _error_of(exchange.done[asked.id].result))
        self._calls += len(calls)
        self._counted()
        self._last = None

    def _counted(self) -> None:
        self.count += 1
        self.since_word += 1

    def _heard(self, mode: entries.Mode | None) -> None:
        if mode is not None:
            self._failures.forget()
            self.since_word = 0

    async def _ask(self) -> threads.Exchange:
        """Return the next exchange as logged, so that tools and later requests see the same in this process and after a crash."""
        self.asking = True
        try:
            await self._exchanges.exchange(await self._request())
        finally:
            self.asking = False
        said = self._writer.history.thread(self._options.thread).said
        return next(each for each in reversed(said) if isinstance(each, threads.Exchange))

    async def _request(self) -> Request:
        """Return the next request, with every message that the person has said until now."""
        self._hear(self._said_at)
        if self._say:
            self._exchanges.say(self._say, self._mode)
            self._say, self._mode = "", None
        while True:
            self._hear(self._writer.history.last_seq)
            request = await self._frame.request(self._exchanges.model())
            # A summary takes a while.
            if not self.heard:
                break
        assert not is_models(request.items[-1]), "a request ends with a message or an output"
        return request

    def _hear(self, upto: int) -> None:
        for line, each in [*self.heard.items()]:
            if line <= upto:
                self._exchanges.say(self._writer.text_of(each), each.mode, line)
                self._heard(each.mode)

    # The calls of an answer.

    async def _do_all(self, answer: Answer, exchange: threads.Exchange) -> tuple[tuple[Done, ...], Done | None]:
        """Return each call with its outcome, and the one that has failed too often."""
        hidden = {each.id for each in exchange.answer.calls or () if each.masked}
        done: list[Done] = []
        given_up: Done | None = None
        over = False
        earlier: list[Done] = []
        begun = await self._side_by_side(answer, exchange, hidden)
        for number, asked in enumerate(answer.calls, self._calls + 1):
            place, state = self._place(number, asked), exchange.done[asked.id]
            if state.output is not None:
                one = self._known(asked, state)
            elif asked.id in begun:
                one = self._report(asked, begun[asked.id], place, state)
            elif (text := self._rendered(asked, state)) is not None:
                one = self._report(asked, text, place, state)
            else:
                why = _OVER if over else self._needed(asked, earlier)
                refusal = call_checks.over(why) if why else self._refusal(asked, hidden)
                refusal = call_checks.stopped() if self.stopped else refusal
                one = self._report(asked, await self._do(asked, place, state, refusal), place, state)
            done.append(one)
            # Count every call, as `_skip_last` does after a crash; skipped calls are no failures.
            if self._failures.too_many(one.asked, one.error):
                given_up = given_up or one
            if asked.name in self._tools.side_by_side:
                continue
            over = over or (one.error is None and asked.name in self._tools.final)
            if (one.error or {}).get("code") != call_checks.OVER:
                earlier.append(one)
        return tuple(done), given_up

    def _needed(self, asked: ToolCall, earlier: Sequence[Done]) -> str:
        """Return why a call is not done after earlier ones; empty if nothing stops it."""
        one = next((each for each in earlier if self._tools.needs(asked, each)), None)
        if one is None:
            return ""
        code = f" ({one.error.get('code')})" if one.error is not None else ""
        return f"an earlier call of the same answer failed: `{one.asked.name}`{code}"

    def _place(self, number: int, asked: ToolCall) -> Place:
        path = f"{self._options.path}/{number}_{asked.name}".removeprefix("/")
        return Place(number, path, self._options.thread, asked.id)

    async def _side_by_side(
        self, answer: Answer, exchange: threads.Exchange, hidden: Collection[str]
    ) -> dict[str, str]:
        """Run the leading calls that may run at the same time; return the texts for the model by the calls' ids."""
        together: list[tuple[int, ToolCall]] = []
        for number, asked in enumerate(answer.calls, self._calls + 1):
            if asked.name not in self._tools.side_by_side:
                break
            state = exchange.done[asked.id]
            if state.output is None and self._refusal(asked, hidden) is None and self._rendered(asked, state) is None:
                together.append((number, asked))
        if len(together) < 2:
            return {}
        try:
            async with asyncio.TaskGroup() as group:
                doing = {
                    asked.id: group.create_task(
                        self._do(asked, self._place(number, asked), exchange.done[asked.id], None)
                    )
                    for number, asked in together
                }
        except BaseExceptionGroup as ended:
            # The task group has cancelled and awaited the others, so none is still running.
            raise ended.exceptions[0] from None
        return {name: task.result() for name, task in doing.items()}

    async def _do(self, asked: ToolCall, place: Place, state: threads.Done, refusal: RunOpsError | None) -> str:
        """Execute a call and log it; return the text for the model."""
        begun = time.monotonic()
        self._doing.add(asked.id)
        if refusal is not None:
            outcome = Outcome(call_checks.render_error(refusal.as_json()), error=refusal.as_json())
            self._refused(asked, place, outcome.text)
        else:
            outcome = await self._tools.take(asked, call_checks.arguments(asked, self._tools.offered), place)
        if not outcome.written:
            status = "ok" if outcome.error is None else "error"
            seconds = round(time.monotonic() - begun, 4)
            self._write(asked, place, state, status, normalise(outcome.value), outcome.error, seconds)
        if outcome.picture is not None:
            self._pictures[asked.id] = outcome.picture
        assert state.result is not None, "a tool that says that it wrote its call has written it, with its result"
        return outcome.text

    def _write(
        self,
        asked: ToolCall,
        place: Place,
        state: threads.Done,
        status: entries.Status,
        value: Json = None,
        error: dict[str, Json] | None = None,
        seconds: float | None = None,
    ) -> None:
        call = entries.Call(
            thread=self._options.thread,
            path=place.path,
            node=self._options.node,
            action=asked.name,
            asked=asked.id,
            attempt=state.call.attempt + 1 if state.call is not None else 1,
            effect="read",
            args=call_checks.read(asked.arguments),
            fingerprint=self._options.fingerprint,
        )
        self._writer.result(self._writer.call(call), status, value=value, error=error, seconds=seconds)

    def _not_done(self, asked: ToolCall, place: Place, state: threads.Done, *, begun: bool) -> str:
        """Log a call that was interrupted or never begun; return the text for the model."""
        if begun:
            self._write(asked, place, state, "interrupted")
            return INTERRUPTED
        over = call_checks.over("an earlier call of the same answer was interrupted")
        error = (call_checks.stopped() if self.stopped else over).as_json()
        self._write(asked, place, state, "error", error=error)
        return call_checks.render_error(error)

    def _rendered(self, asked: ToolCall, state: threads.Done) -> str | None:
        """Return the text for the model about a call begun before a crash; None if it is to be executed now."""
        if state.call is None:
            return None
        if state.result is None:
            found = self._find_out(state.call) or Outcome("", error=None)
            recovered = found.error is None and found.value is not None
            status = "recovered" if recovered else "interrupted"
            self._writer.result(state.call, status, value=normalise(found.value), error=found.error)
        assert state.result is not None
        error = state.result.error
        if error and state.call.node == self._options.node and error.get("code") in call_checks.REFUSAL_CODES:
            return call_checks.render_error(error)
        if state.result.status == "skipped":
            return None
        if state.result.status != "interrupted" or error:
            return self._tools.render_done(asked, state.result)
        return INTERRUPTED if state.call.effect == "effect" else None

    def _report(self, asked: ToolCall, text: str, place: Place, state: threads.Done) -> Done:
        shown = entries.ToolResult(thread=self._options.thread, asked=asked.id)
        picture = self._pictures.pop(asked.id, None)
        self._writer.said(shown, normalise(text) or NOTHING, place.path, picture=picture)
        return self._known(asked, state)

    def _known(self, asked: ToolCall, state: threads.Done) -> Done:
        output, result = state.output, state.result
        assert output is not None, "a finished call has its output"
        assert result is not None, "a call with an output has its result"
        return Done(asked, self._writer.text_of(output), self._writer.value_of(result), _error_of(result))

    def _refusal(self, asked: ToolCall, hidden: Collection[str]) -> RunOpsError | None:
        lenient = asked.name in self._tools.lenient
        return call_checks.of(asked, self._tools.offered, holds_secret=asked.id in hidden, lenient=lenient)


def _error_of(result: entries.Result | None) -> dict[str, Json] | None:
    if result is None:
        return {"code": "open"}
    return result.error or (None if result.status == "ok" else {"code": result.status})
