"""A turn with a model that has tools: one request, and every call of its answer done in order, told to the model, and written down.

The whole conversation stands in the log, and what the next request holds is made from what stands there. So whoever goes on in a thread that a crash
left asks what would have been asked: calls that have their result are not done again, and an answer that is there is not paid again.
"""

from __future__ import annotations

import asyncio
import dataclasses
import time
from collections.abc import Callable, Collection, Sequence
from typing import Protocol

from nodes.errors import RunOpsError
from nodes.values import Json, normalise
from runtime.log import entries, threads
from runtime.log.writer import NOTHING, Fold, LogWriter
from runtime.messages.messages import Answer, Request, Tool, ToolCall, Usage, is_models
from runtime.models import requests
from runtime.models.turns import call_checks

_HAVE_A_TURN = (entries.User, threads.Exchange, entries.ModelError)
"""What is said that gives the next word to somebody."""

_FAILED = "failed"
"""Why no more actions of an answer are done behind one that failed."""

INTERRUPTED = (
    "This was interrupted: it may have happened, and it is not done again. Look first, then go on from what you find."
)
"""What the model is told of an action of which only its beginning is known."""

NOT_DONE = "This waited for a person, and was not done."
"""What the model is told of an action that was given up while a person was asked."""


@dataclasses.dataclass(frozen=True, slots=True)
class TurnOptions:
    """Where a conversation with a model stands in the log."""

    path: str
    """Path of the step, or of a delegate of a session; empty for the session itself."""
    thread: str
    node: str
    """Node type of the calls that a turn writes itself."""
    fingerprint: str = ""
    """Of the step's node."""


class Frame(Protocol):
    """What a request holds of the thread, and around it."""

    async def request(self, model: str) -> Request:
        """The next request of the thread, to ``model``. Raises ModelError ``window-too-large``, and what it raises that is asked for a summary."""
        ...


@dataclasses.dataclass(frozen=True, slots=True)
class Place:
    """Which call of the thread it is."""

    number: int
    """Counted from 1, over all answers of the thread."""
    path: str
    """Path of the call in the log."""
    thread: str
    asked: str = ""
    """The id by which the model knows the call."""


@dataclasses.dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a call."""

    told: str
    """What the model is told of it. Secrets are masked by whoever takes the outcome."""
    value: Json = None
    error: dict[str, Json] | None = None
    """Why it failed, as ``RunOpsError.as_json``; None where it did not."""
    written: bool = False
    """Whether the call and its result stand in the log already."""


class Tools(Protocol):
    """What a model may do."""

    @property
    def offered(self) -> Sequence[Tool]:
        """What it is told of. The same at every request of a thread."""
        ...

    @property
    def final(self) -> Collection[str]:
        """Names of the tools that end the work where they succeed."""
        ...

    @property
    def side_by_side(self) -> Collection[str]:
        """Names of the tools of which several calls that follow each other in an answer are done at the same time: none waits for another, or fails with it."""
        ...

    @property
    def reads(self) -> Collection[str]:
        """Names of the tools that change nothing: they are done behind a call that failed, too, and where they fail themselves they stop nothing behind them."""
        ...

    async def take(self, asked: ToolCall, arguments: dict[str, Json], place: Place) -> Outcome:
        """Do it. ``arguments`` fit the tool's schema, and no secret stands in them.

        What the model did wrong is an outcome; raised is only what ends the step.
        """
        ...

    def told(self, asked: ToolCall, result: entries.Result) -> str:
        """What the model is told of a call that was done before a crash, and of which it was not told yet."""
        ...


@dataclasses.dataclass(frozen=True, slots=True)
class Done:
    """A call that was answered."""

    asked: ToolCall
    told: str
    value: Json
    error: dict[str, Json] | None


@dataclasses.dataclass(frozen=True, slots=True)
class Turn:
    """One answer of the model, with what came of its calls, in order."""

    answer: Answer
    done: tuple[Done, ...]

    def final(self, tools: Tools) -> Done | None:
        """The call that ended the work."""
        return next((each for each in self.done if each.error is None and each.asked.name in tools.final), None)


FindOut = Callable[[entries.Call], Outcome | None]
"""Says what came of a call that a crash left open, where that is known all the same: what it yielded, or in which words it is told as interrupted."""


Refused = Callable[[ToolCall, Place, str], None]
"""Hears of a call that no tool was asked to do, and what the model is told of it."""


def _unheard(_asked: ToolCall, _place: Place, _told: str) -> None:
    pass


def _unknown(_call: entries.Call) -> Outcome | None:
    return None


class Turns:
    """A thread in which a model may call tools."""

    def __init__(
        self,
        thread: requests.Exchanges,
        frame: Frame,
        tools: Tools,
        writer: LogWriter[Fold],
        options: TurnOptions,
        *,
        talks: bool = False,
        find_out: FindOut = _unknown,
        refused: Refused = _unheard,
    ) -> None:
        """``thread`` and ``frame`` are those of the thread of ``options``; what stands there already is taken from the log.

        Where it ``talks``, an answer that asks for no tool is the last word until something is said, and it is not given twice.
        """
        self._exchanges, self._frame, self._tools, self._writer, self._options = thread, frame, tools, writer, options
        self._say = ""
        self._mode: entries.Mode | None = None
        self._failures = call_checks.Failures()
        self._calls = 0
        """How many calls the model has asked for, before the answer that is being done."""
        self._last: threads.Exchange | None = None
        """The last answer, where the caller has not been given it."""
        self._doing: set[str] = set()
        """The ids of the calls that were begun in this process."""
        self._talks, self._find_out, self._refused = talks, find_out, refused
        self.count = 0
        """How many turns there were: answers that ``turn`` has given, or had given before a crash."""
        self.since_word = 0
        """How many of them since a person spoke last."""
        self._take_up()

    @property
    def begun(self) -> bool:
        """Whether the model has been told anything."""
        return bool(self._say or self._writer.history.thread(self._options.thread).said)

    @property
    def waiting(self) -> bool:
        """Whether the model has the next word: something was said that has no answer, or an answer asked for tools. Where none came, the person has it."""
        said = self._writer.history.thread(self._options.thread).said
        last = next((each for each in reversed(said) if isinstance(each, _HAVE_A_TURN)), None)
        asks = isinstance(last, threads.Exchange) and bool(last.answer.calls)
        return bool(self._say) or asks or isinstance(last, entries.User)

    def say(self, text: str, mode: entries.Mode | None = None) -> None:
        """Tell the model something, with the next request; what is said twice before it is one message.

        With a ``mode`` it is a person who says it: then failures of before do not count any more.
        """
        self._say = f"{self._say}\n\n{text}" if self._say else text
        self._mode = mode or self._mode
        self._heard(mode)

    async def turn(self) -> Turn:
        """The next answer, with all its calls done. After a crash that is the last one of before, where nothing was said since.

        Raises what ``Frame.request`` and ``Exchanges.exchange`` raise, what a tool raises to end the step, and ModelError ``agent-stuck``.
        """
        exchange = self._last or await self._ask()
        answer = self._answer(exchange.answer)
        self._last = exchange
        done, given_up = await self._do_all(answer, exchange)
        self._last = None
        self._calls += len(answer.calls)
        self._counted()
        if given_up is not None:
            raise call_checks.stuck(given_up.asked, given_up.error or {})
        return Turn(answer, done)

    def break_off(self) -> None:
        """Close what the last answer asked for and what has no outcome yet, so that the thread can go on with another word.

        What was begun is told as interrupted, the rest as not done. A call that has its result is told of as if nothing had happened.
        """
        exchange, self._last = self._last, None
        if exchange is None:
            return
        calls = self._writer.calls_of(exchange.answer)
        # In which call it was interrupted, nobody knows any more who finds the thread as a crash left it: at the latest in the first.
        left = [asked.id for asked in calls if exchange.done[asked.id].call is None]
        begun = {*self._doing, *left[:1]}
        for number, asked in enumerate(calls, self._calls + 1):
            place, state = self._place(number, asked), exchange.done[asked.id]
            if state.told is None:
                told = self._told_of(asked, state)
                if state.call is None:
                    told = self._not_done(asked, place, state, begun=asked.id in begun)
                waited = state.result is not None and state.result.status == "skipped"
                self._tell(asked, told or (NOT_DONE if waited else INTERRUPTED), place, state)
        self._calls += len(calls)
        self._counted()

    def _take_up(self) -> None:
        """What the log has of the thread."""
        for each in self._writer.history.thread(self._options.thread).said:
            if isinstance(each, entries.User):
                self._pass_over()
                self._heard(each.mode)
            elif isinstance(each, threads.Exchange):
                self._pass_over()
                self._last = each
            elif self._talks and isinstance(each, entries.ModelError):
                self._pass_over()
        if self._talks and self._last is not None and not self._last.answer.calls:
            self._pass_over()

    def _pass_over(self) -> None:
        """The last answer was given out before; but where a call of it has no outcome."""
        exchange = self._last
        if exchange is None or (self._talks and any(each.told is None for each in exchange.done.values())):
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
        """The next exchange, as the log has it: what a tool is given, and what the next request holds, is the same whoever made it."""
        if self._say:
            self._exchanges.say(self._say, self._mode)
            self._say, self._mode = "", None
        request = await self._frame.request(self._exchanges.model())
        assert not is_models(request.items[-1]), "the model is told something, and then it answers"
        await self._exchanges.exchange(request)
        said = self._writer.history.thread(self._options.thread).said
        return next(each for each in reversed(said) if isinstance(each, threads.Exchange))

    def _answer(self, entry: entries.Assistant) -> Answer:
        usage = Usage(**entry.usage.model_dump()) if entry.usage is not None else None
        calls = self._writer.calls_of(entry)
        return Answer(self._writer.text_of(entry), usage, entry.model, entry.response or "", calls=calls)

    # The calls of an answer.

    async def _do_all(self, answer: Answer, exchange: threads.Exchange) -> tuple[tuple[Done, ...], Done | None]:
        """Each call with what came of it, and the one that has failed too often."""
        hidden = {each.id for each in exchange.answer.calls or () if each.masked}
        done: list[Done] = []
        given_up: Done | None = None
        why = ""
        """Why no more of the calls is done: what follows was asked for by a model that counted on what went before."""
        begun = await self._side_by_side(answer, exchange, hidden)
        for number, asked in enumerate(answer.calls, self._calls + 1):
            place, state = self._place(number, asked), exchange.done[asked.id]
            if state.told is not None:
                one = self._known(asked, state)
            elif asked.id in begun:
                one = self._tell(asked, begun[asked.id], place, state)
            elif (told := self._told_of(asked, state)) is not None:
                one = self._tell(asked, told, place, state)
            else:
                stopped = why and (why != _FAILED or asked.name not in self._tools.reads)
                refusal = call_checks.over(why) if stopped else self._refusal(asked, hidden)
                one = self._tell(asked, await self._do(asked, place, state, refusal), place, state)
            done.append(one)
            # Each is counted, as whoever takes the log up counts it: what was not done counts for nothing.
            if self._failures.too_many(one.asked, one.error):
                given_up = given_up or one
            if asked.name in self._tools.side_by_side:
                pass
            elif one.error is not None:
                why = why or ("" if asked.name in self._tools.reads else _FAILED)
            elif asked.name in self._tools.final:
                why = why or "ended the work"
        return tuple(done), given_up

    def _place(self, number: int, asked: ToolCall) -> Place:
        path = f"{self._options.path}/{number}_{asked.name}".removeprefix("/")
        return Place(number, path, self._options.thread, asked.id)

    async def _side_by_side(
        self, answer: Answer, exchange: threads.Exchange, hidden: Collection[str]
    ) -> dict[str, str]:
        """What the model is told of those calls at the head of the answer that are done at the same time, by their ids."""
        together: list[tuple[int, ToolCall]] = []
        for number, asked in enumerate(answer.calls, self._calls + 1):
            if asked.name not in self._tools.side_by_side:
                break
            state = exchange.done[asked.id]
            if state.told is None and self._refusal(asked, hidden) is None and self._told_of(asked, state) is None:
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
            # The others are over by now: whatever ends the work leaves nobody at it.
            raise ended.exceptions[0] from None
        return {name: task.result() for name, task in doing.items()}

    async def _do(self, asked: ToolCall, place: Place, state: threads.Done, refusal: RunOpsError | None) -> str:
        """Do a call, and write it down; what the model is told of it."""
        begun = time.monotonic()
        self._doing.add(asked.id)
        if refusal is not None:
            outcome = Outcome(call_checks.told(refusal.as_json()), error=refusal.as_json())
            self._refused(asked, place, outcome.told)
        else:
            outcome = await self._tools.take(asked, call_checks.arguments(asked, self._tools.offered), place)
        if not outcome.written:
            status = "ok" if outcome.error is None else "error"
            seconds = round(time.monotonic() - begun, 4)
            self._write(asked, place, state, status, normalise(outcome.value), outcome.error, seconds)
        assert state.result is not None, "a tool that says that it wrote its call has written it, with its result"
        return outcome.told

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
        """Write down a call that is over, with its result."""
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
        """Write down a call that was interrupted, or never begun; what the model is told of it."""
        if begun:
            self._write(asked, place, state, "interrupted")
            return INTERRUPTED
        error = call_checks.over("was interrupted").as_json()
        self._write(asked, place, state, "error", error=error)
        return call_checks.told(error)

    def _told_of(self, asked: ToolCall, state: threads.Done) -> str | None:
        """What the model is told of a call that was begun before a crash; None where it is done now."""
        if state.call is None:
            return None
        if state.result is None:
            found = self._find_out(state.call) or Outcome("", error=None)
            recovered = found.error is None and found.value is not None
            status = "recovered" if recovered else "interrupted"
            self._writer.result(state.call, status, value=normalise(found.value), error=found.error)
        assert state.result is not None
        if (
            state.call.node == self._options.node
            and state.result.error
            and state.result.error.get("code") in call_checks.OURS
        ):
            return call_checks.told(state.result.error)
        if state.result.status == "skipped":
            return None
        if state.result.status != "interrupted" or state.result.error:
            return self._tools.told(asked, state.result)
        return INTERRUPTED if state.call.effect == "effect" else None

    def _tell(self, asked: ToolCall, told: str, place: Place, state: threads.Done) -> Done:
        self._writer.said(
            entries.ToolResult(thread=self._options.thread, asked=asked.id), normalise(told) or NOTHING, place.path
        )
        return self._known(asked, state)

    def _known(self, asked: ToolCall, state: threads.Done) -> Done:
        """A call as the log has it."""
        told, result = state.told, state.result
        assert told is not None, "a call that is done is told of"
        assert result is not None, "a call that is told of has its result"
        return Done(asked, self._writer.text_of(told), self._writer.value_of(result), _error_of(result))

    def _refusal(self, asked: ToolCall, hidden: Collection[str]) -> RunOpsError | None:
        return call_checks.of(asked, self._tools.offered, holds_secret=asked.id in hidden)


def _error_of(result: entries.Result | None) -> dict[str, Json] | None:
    """Why a call failed, as ``Done`` has it."""
    if result is None:
        return {"code": "open"}
    return result.error or (None if result.status == "ok" else {"code": result.status})
