"""A chat with a program: messages come and events go as JSON objects, one a line."""

from __future__ import annotations

import asyncio
import codecs
import collections
import contextlib
import os
import threading
from collections.abc import Callable, Generator, Sequence

import pydantic
from typing_extensions import override

from director.cli import screen
from director.cli.input import STOP
from director.session import person
from nodes.errors import UsageError
from nodes.values import Json
from runtime import events
from runtime.context import window
from runtime.display import display
from runtime.display.text import harmless
from runtime.report import chat_events, endings
from runtime.report.parts import Costs

LINE: pydantic.TypeAdapter[chat_events.ChatLine] = pydantic.TypeAdapter(chat_events.ChatLine)
AT_ONCE = 1 << 16  # bytes that are read at once


class Input:
    """The lines that a front end writes, read by a thread, so that a question is answered while the session works."""

    def __init__(self, number: int) -> None:
        """``number`` is the file descriptor to read."""
        self._number = number
        self._lines: collections.deque[str] = collections.deque()  # messages, and what is unreadable
        self._answers: collections.deque[str] = collections.deque()
        self._ended = False
        self._came = threading.Condition()
        self._waits: list[Callable[[], object]] = []  # called when something came
        self._thread: threading.Thread | None = None

    def message(self) -> str:
        """Return the next message. Raises EOFError after the last, UsageError ``line-unreadable`` for a line that is none."""
        self._begin()
        with self._came:
            while not (self._lines or self._answers or self._ended):
                self._came.wait()
            if self._lines:
                line = self._lines.popleft()
                return _said(line)
            if self._answers:
                self._answers.popleft()
                raise _unreadable("it answers a question, and none is open")
        raise EOFError

    async def answer(self) -> str | None:
        """Return the next answer; None once the input has ended. Messages wait for their turn."""
        self._begin()
        loop, came = asyncio.get_running_loop(), asyncio.Event()
        with self._waiting(lambda: loop.call_soon_threadsafe(came.set)):
            while True:
                came.clear()
                with self._came:
                    if self._answers:
                        return self._answers.popleft()
                    if self._ended:
                        return None
                await came.wait()

    @contextlib.contextmanager
    def heard(self, loop: asyncio.AbstractEventLoop, hear: Callable[[str | None], None]) -> Generator[None]:
        """Call ``hear`` with each line that is said at once; the others wait for their turn."""

        def pass_on() -> None:
            with self._came:
                found = [each for each in self._lines if at_once(each) is not None]
                self._lines = collections.deque(each for each in self._lines if at_once(each) is None)
            for each in found:
                hear(each)

        loop.call_soon(pass_on)
        with self._waiting(lambda: loop.call_soon_threadsafe(pass_on)):
            self._begin()
            yield

    @contextlib.contextmanager
    def _waiting(self, call: Callable[[], object]) -> Generator[None]:
        self._waits.append(call)
        try:
            yield
        finally:
            self._waits.remove(call)

    def _begin(self) -> None:
        if self._thread is None:
            # It may wait for ever: without Python's buffers it holds nothing that the end of the process needs.
            self._thread = threading.Thread(target=self._read, name="front end", daemon=True)
            self._thread.start()

    def _read(self) -> None:
        decoder, rest = codecs.getincrementaldecoder("utf-8")("replace"), ""
        while True:
            try:
                data = os.read(self._number, AT_ONCE)
            except OSError:
                data = b""
            *lines, rest = (rest + decoder.decode(data, not data)).split("\n")
            lines += [rest] if not data and rest else []
            with self._came:
                for each in lines:
                    found = _answer(each)
                    if found is None:
                        self._lines.append(each.removesuffix("\r"))
                    else:
                        self._answers.append(found)
                self._ended = not data
                self._came.notify_all()
                waits = [*self._waits]
            for each in waits:
                with contextlib.suppress(RuntimeError):  # the loop has ended meanwhile
                    each()
            if not data:
                return


def _answer(line: str) -> str | None:
    try:
        found = LINE.validate_json(line)
    except pydantic.ValidationError:
        return None
    return found.answer if isinstance(found, chat_events.Answered) else None


def _said(line: str) -> str:
    if not line.lstrip().startswith("{"):
        return line
    try:
        return chat_events.Said.model_validate_json(line).say
    except pydantic.ValidationError as error:
        said = "; ".join(f"{'.'.join(map(str, each['loc']))} {each['msg']}".strip() for each in error.errors())
        raise _unreadable(f"it is no message: {said[:300]}") from None


def _unreadable(why: str) -> UsageError:
    return UsageError("line-unreadable", f"a line cannot be taken: {why}", fix='write {"say": "…"}')


class Asking(person.Person):
    """Asks the front end."""

    def __init__(self, lines: Lines, read: Input) -> None:
        self._lines, self._read = lines, read

    @override
    async def ask(self, question: str, choices: Sequence[str] = (), *, place: str = "", free: bool = False) -> str:
        while True:
            self._lines.question(
                chat_events.QuestionEvent(
                    path=place, question=question, choices=list(choices), free=free or not choices
                )
            )
            typed = await self._read.answer()
            if typed is None:
                return await person.Nobody().ask(question, choices, place=place, free=free)
            if (meant := person.meaning(typed, choices, free=free)) is not None:
                return meant


def at_once(line: str) -> str | None:
    """Return the message of a line that is said also while something works; None if it waits for its turn, or is no message."""
    try:
        said = chat_events.Said.model_validate_json(line)
    except pydantic.ValidationError:
        return None
    return said.say if said.meanwhile or said.say.strip() == STOP else None


class Lines(screen.Screen):
    """Writes each event of a session as a line of JSON to stdout."""

    def __init__(self) -> None:
        super().__init__(as_it_comes=False, quiet=True)
        self._open = False  # the line that begins a chat for people says what the first event says

    def _emit(self, event: chat_events.Heard) -> None:
        self._answers.line(event.line())

    @override
    def opened(self, session: chat_events.SessionEvent) -> None:
        self._open = True
        self._emit(session)

    @override
    def ready(self) -> None:
        self._emit(chat_events.ReadyEvent())

    @override
    def asked(self, model: str, report: window.Report) -> None:
        super().asked(model, report)
        self._emit(chat_events.RequestEvent(model=model, tokens=report.tokens, limit=report.limit))

    @override
    def text(self, part: str) -> None:
        if part:
            self._emit(chat_events.TextEvent(text=part))

    @override
    def waiting(self, what: str) -> None:
        self._emit(chat_events.WaitingEvent(text=what))

    @override
    def called(self, path: str, name: str, arguments: str) -> None:
        self._emit(chat_events.CallEvent(path=path, tool=name, arguments=arguments))

    @override
    def done(self, path: str, text: str, *, failed: bool) -> None:
        self._emit(chat_events.OutputEvent(path=path, failed=failed, text=text))

    @override
    def spent(self, path: str, text: str) -> None:
        self._emit(chat_events.DelegateEvent(path=path, text=text))

    @override
    def ran(self, event: events.Event) -> None:
        self._emit(chat_events.RunEvent(run=event.as_json()))

    @override
    def steps(self) -> display.Display:
        return _Steps(self)

    def question(self, asked: chat_events.QuestionEvent) -> None:
        self._emit(asked)

    @override
    def changed(self, of: str, name: str) -> None:
        self._emit(chat_events.ChangedEvent(of=of, name=name))

    @override
    def say(self, text: str, colour: int | None = None) -> None:
        if self._open and (told := harmless(text).strip().removeprefix("--  ")):
            self._emit(chat_events.NoteEvent(text=told))

    @override
    def _warns(self, warning: str, advice: str) -> None:
        self.warnings.append(warning)
        self._emit(chat_events.WarningEvent(text=warning))

    @override
    def result(self, lines: list[str]) -> None:
        if lines:
            self._emit(chat_events.ResultEvent(text="\n".join(lines)))

    @override
    def meter(self, spent: dict[str, Json] | None, report: window.Report | None) -> None:
        if spent is not None:
            self._emit(chat_events.CostsEvent(costs=Costs.model_validate(spent)))

    @override
    def answered(self, text: str) -> None:
        """Write nothing: the ``answer`` event has it."""

    @override
    def kept(self) -> None:
        self._emit(chat_events.KeptEvent())

    @override
    def replied(self, text: str) -> None:
        self._emit(chat_events.ReplyEvent(text=text))

    @override
    def proposed(self, command: str) -> bool:
        self._emit(chat_events.ProposalEvent(command=command))
        return True

    @override
    def word(self, word: endings.WordReport) -> None:
        self._emit(chat_events.AnswerEvent(said=word.said, answer=word.answer, error=word.error, run=word.run))

    @override
    def end(self, ending: endings.ChatEnding) -> None:
        self._emit(chat_events.EndEvent(ending=ending))


class _Steps(display.Display):
    """Passes on the events of a run that a person began."""

    def __init__(self, lines: Lines) -> None:
        super().__init__()
        self._lines = lines

    @override
    def __call__(self, event: events.Event) -> None:
        self._lines.ran(event)
