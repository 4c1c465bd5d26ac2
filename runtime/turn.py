"""A turn with a model that has tools: one request, and every call of its answer done in order, told to the model, and written down.

The whole conversation stands in the log, and what the next request holds is made from what stands there. So an attempt that goes on in the thread of
one that a crash ended asks what that one would have asked: calls that have their result are not done again, and an answer that is there is not paid again.
"""

from __future__ import annotations

import dataclasses
import json
import time
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from typing import Any, Protocol

import jsonschema

from nodes.errors import ModelError, RunOpsError
from nodes.values import Json, normalise
from runtime import journal, log
from runtime.models import asking, exchanges, threads
from runtime.models.exchange import Answer, Item, Message, Request, Tool, ToolCall, ToolOutput, Usage

EQUAL_FAILURES = 3
"""How often one call may fail in a row, before the conversation is given up."""

MOST_PROBLEMS = 5
"""Problems of a call's arguments that the model is told at once."""

NODE = "agent"
"""Node type of the calls that a turn writes itself."""

INTERRUPTED = (
    "This was interrupted: it may have happened, and it is not done again. Look first, then go on from what you find."
)
"""What the model is told of a deed of which only its beginning is known."""


@dataclasses.dataclass(frozen=True, slots=True)
class Place:
    """Which call of the thread it is."""

    number: int
    """Counted from 1, over all answers of the thread."""
    path: str
    """Path of the call in the log."""
    thread: str


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

    async def take(self, asked: ToolCall, arguments: dict[str, Json], place: Place) -> Outcome:
        """Do it. ``arguments`` fit the tool's schema, and no secret stands in them.

        What the model did wrong is an outcome; raised is only what ends the step.
        """
        ...

    def told(self, asked: ToolCall, result: log.Result) -> str:
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


class Turns:
    """A thread in which a model may call tools."""

    def __init__(
        self,
        thread: exchanges.Exchanges,
        tools: Tools,
        pen: journal.Journal,
        call: log.Call,
        *,
        instructions: str,
        max_output: int,
        strict: bool = True,
    ) -> None:
        """``call`` is the step's; where it goes on with an earlier attempt's conversation, that is taken from the log."""
        self._exchanges, self._tools, self._pen, self._call = thread, tools, pen, call
        self._instructions, self._max_output, self._strict = instructions, max_output, strict
        self._thread = log.model_thread(call.again or call.call)
        self._items: list[Item] = []
        self._say = ""
        self._failures = Counter[str]()
        self._calls = 0
        """How many calls the model has asked for, before the answer that is being done."""
        self._last: threads.Exchange | None = None
        """The last answer, where the caller has not been given it."""
        self.count = 0
        """How many turns there were: answers that ``turn`` has given, or had given before a crash."""
        self._take_up()

    @property
    def begun(self) -> bool:
        """Whether the model has been told anything."""
        return bool(self._items or self._say or self._last)

    def say(self, text: str) -> None:
        """Tell the model something, with the next request; what is said twice before it is one message."""
        self._say = f"{self._say}\n\n{text}" if self._say else text

    async def turn(self) -> Turn:
        """The next answer, with all its calls done. After a crash that is the last one of before, where nothing was said since.

        Raises what ``Exchanges.exchange`` raises, what a tool raises to end the step, and ModelError ``agent-stuck``.
        """
        exchange, self._last = self._last or await self._ask(), None
        answer = self._answer(exchange.answer)
        done, stuck = await self._do_all(answer, exchange)
        self._items += _items(answer, done)
        self._calls += len(answer.calls)
        self.count += 1
        if stuck is not None:
            raise _stuck(stuck)
        return Turn(answer, done)

    def _take_up(self) -> None:
        """What the log has of the thread."""
        *before, last = self._pen.history.thread(self._thread).said or (None,)
        for each in before:
            assert each is not None
            if isinstance(each, log.User):
                self._items.append(Message("user", self._pen.text_of(each)))
                continue
            answer = self._answer(each.answer)
            done = tuple(self._known(asked, each.done[asked.id]) for asked in answer.calls)
            for one in done:
                self._is_stuck(one)
            self._items += _items(answer, done)
            self._calls += len(answer.calls)
            self.count += 1
        if isinstance(last, log.User):
            self._items.append(Message("user", self._pen.text_of(last)))
        else:
            self._last = last

    async def _ask(self) -> threads.Exchange:
        """The next exchange, as the log has it: what a tool is given, and what the next request holds, is the same whoever made it."""
        if self._say:
            self._exchanges.say(self._say)
            # As the log has it, so that whoever goes on builds the same request.
            self._items.append(Message("user", self._pen.masker.text(self._say)))
            self._say = ""
        assert not (self._items and _is_models(self._items[-1])), "the model is told something, and then it answers"
        await self._exchanges.exchange(
            Request(
                self._exchanges.model(),
                self._instructions,
                tuple(self._items),
                None,
                self._max_output,
                self._strict,
                tuple(self._tools.offered),
            )
        )
        exchange = self._pen.history.thread(self._thread).said[-1]
        assert isinstance(exchange, threads.Exchange), "an exchange ends with its answer"
        return exchange

    def _answer(self, entry: log.Assistant) -> Answer:
        usage = Usage(**entry.usage.model_dump()) if entry.usage is not None else None
        calls = self._pen.calls_of(entry)
        return Answer(self._pen.text_of(entry), usage, entry.model, entry.response or "", calls=calls)

    # The calls of an answer.

    async def _do_all(self, answer: Answer, exchange: threads.Exchange) -> tuple[tuple[Done, ...], Done | None]:
        """Each call with what came of it, and the one that has failed too often."""
        hidden = {each.id for each in exchange.answer.calls or () if each.masked}
        done: list[Done] = []
        stuck: Done | None = None
        why = ""
        """Why no more of the calls is done: what follows was asked for by a model that counted on what went before."""
        for number, asked in enumerate(answer.calls, self._calls + 1):
            place = Place(number, f"{self._call.path}/{number}_{asked.name}", self._thread)
            state = exchange.done[asked.id]
            if state.told is not None:
                one = self._known(asked, state)
            elif (told := self._told_of(asked, state)) is not None:
                one = self._tell(asked, told, place, state)
            else:
                refusal = _over(why) if why else self._refusal(asked, hidden)
                one = await self._do(asked, place, state, refusal)
            done.append(one)
            if not why and self._is_stuck(one):
                stuck = one
            if one.error is not None:
                why = why or "failed"
            elif asked.name in self._tools.final:
                why = why or "ended the work"
        return tuple(done), stuck

    async def _do(self, asked: ToolCall, place: Place, state: threads.Done, refusal: RunOpsError | None) -> Done:
        begun = time.monotonic()
        if refusal is not None:
            outcome = Outcome(_refused(refusal.as_json()), error=refusal.as_json())
        else:
            outcome = await self._tools.take(asked, self._arguments(asked), place)
        if not outcome.written:
            call = log.Call(
                thread=self._thread,
                path=place.path,
                node=NODE,
                action=asked.name,
                asked=asked.id,
                attempt=state.call.attempt + 1 if state.call is not None else 1,
                effect="read",
                args=_shown(asked.arguments),
                fingerprint=self._call.fingerprint,
            )
            call = self._pen.call(call, barrier=False)
            seconds = round(time.monotonic() - begun, 4)
            status = "ok" if outcome.error is None else "error"
            self._pen.result(call, status, value=normalise(outcome.value), error=outcome.error, seconds=seconds)
        assert state.result is not None, "a tool that says that it wrote its call has written it, with its result"
        return self._tell(asked, outcome.told, place, state)

    def _told_of(self, asked: ToolCall, state: threads.Done) -> str | None:
        """What the model is told of a call that was begun before a crash; None where it is done now."""
        if state.call is None:
            return None
        if state.result is None:
            self._pen.result(state.call, "interrupted")
        assert state.result is not None
        if state.call.node == NODE and state.result.error and state.result.error.get("code") in _OURS:
            return _refused(state.result.error)
        if state.result.status != "interrupted":
            return self._tools.told(asked, state.result)
        return INTERRUPTED if state.call.effect == "effect" else None

    def _tell(self, asked: ToolCall, told: str, place: Place, state: threads.Done) -> Done:
        self._pen.said(log.Told(thread=self._thread, asked=asked.id), normalise(told) or asking.NOTHING, place.path)
        return self._known(asked, state)

    def _known(self, asked: ToolCall, state: threads.Done) -> Done:
        """A call as the log has it."""
        told, result = state.told, state.result
        assert told is not None, "a call that is done is told of"
        assert result is not None, "a call that is told of has its result"
        error = result.error or (None if result.status == "ok" else {"code": result.status})
        return Done(asked, self._pen.text_of(told), self._pen.value_of(result), error)

    # What is refused before any tool sees it.

    def _refusal(self, asked: ToolCall, hidden: Collection[str]) -> RunOpsError | None:
        tool = self._tool(asked)
        if tool is None:
            names = ", ".join(each.name for each in self._tools.offered)
            return ModelError("tool-unknown", f"there is no tool `{asked.name}`", mend=f"these are the tools: {names}")
        if asked.id in hidden:
            return ModelError(
                "secret-refused",
                "a secret of the run stands in the arguments, and no secret is typed or sent for a model",
                mend="go on without it",
            )
        problems = list(_problems(tool, self._arguments(asked)))
        if not problems:
            return None
        told = "; ".join(problems[:MOST_PROBLEMS])
        return ModelError(
            "tool-arguments", f"the arguments do not fit `{tool.name}`: {told}", mend="call it again, mended"
        )

    def _tool(self, asked: ToolCall) -> Tool | None:
        return next((each for each in self._tools.offered if each.name == asked.name), None)

    def _arguments(self, asked: ToolCall) -> Json:
        """The arguments; as text where they are no JSON. Left out may be what may be null, as models of lesser servers do."""
        given = _shown(asked.arguments or "{}")
        tool = self._tool(asked)
        if not isinstance(given, dict) or tool is None:
            return given
        fields: dict[str, Json] = tool.parameters.get("properties") or {}
        return {**{name: None for name, field in fields.items() if _may_be_null(field)}, **given}

    def _is_stuck(self, done: Done) -> bool:
        """Whether the call has failed too often; it counts from the last time that it went right."""
        key = f"{done.asked.name} {json.dumps(_shown(done.asked.arguments), sort_keys=True)}"
        if done.error is None:
            del self._failures[key]
            return False
        self._failures[key] += done.error.get("code") != _OVER
        return self._failures[key] >= EQUAL_FAILURES


_OVER = "tool-not-done"


def _over(why: str) -> ModelError:
    return ModelError(
        "tool-not-done",
        f"not done: an earlier call of the same answer {why}",
        mend="look at what came of that one, then ask for it again if it is still wanted",
    )


_OURS = frozenset({"tool-unknown", "tool-arguments", "secret-refused", _OVER})
"""Codes of what a turn refuses itself."""


def _refused(error: dict[str, Json]) -> str:
    """What the model is told of what it may not do, or cannot."""
    return f"{error['message']} ({error['code']}). {error['mend']}"


def _stuck(done: Done) -> ModelError:
    error = done.error or {}
    return ModelError(
        "agent-stuck",
        f"the model asked {EQUAL_FAILURES} times for the same `{done.asked.name}`, and each time it failed: {error.get('message')}",
        mend="say in the goal how it is done, or do this step with a node of its own",
        evidence={"tool": done.asked.name, "arguments": done.asked.arguments[:1000], "error": error},
    )


def _items(answer: Answer, done: Sequence[Done]) -> Iterator[Item]:
    """An answer and what came of it, as the next request holds them."""
    if answer.text or not answer.calls:
        yield Message("assistant", answer.text or asking.NOTHING)
    yield from answer.calls
    for each in done:
        yield ToolOutput(each.asked.id, each.told)


def _is_models(item: Item) -> bool:
    return isinstance(item, ToolCall) or (isinstance(item, Message) and item.role == "assistant")


def _shown(arguments: str) -> Json:
    """The arguments as the value that they are; as text where they are no JSON."""
    try:
        return normalise(json.loads(arguments))
    except (ValueError, RecursionError):
        return arguments


def _may_be_null(field: Json) -> bool:
    kinds: Json = field.get("type")
    return kinds == "null" or (isinstance(kinds, list) and "null" in kinds)


def _problems(tool: Tool, arguments: Json) -> Iterator[str]:
    """What does not fit the tool's schema."""
    if not isinstance(arguments, dict):
        yield "they are no JSON object"
        return
    fits: Any = jsonschema.Draft202012Validator(tool.parameters)
    for error in fits.iter_errors(arguments):
        where = "".join(f".{each}" if isinstance(each, str) else f"[{each}]" for each in error.absolute_path)
        yield f"{where[1:] or 'arguments'}: {error.message}"[:300]
