"""What a window may hold of a thread with a model, piece by piece, each read from the log when it is wanted."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence

from typing_extensions import override

from runtime import journal, log, window
from runtime.models import estimates, threads
from runtime.models.exchange import Item, Message, ToolOutput
from runtime.window import Size

OPEN = "(open: no outcome is recorded)"
"""What a reader is told of a call that a crash left, or that is going on: the log itself never says this."""

SUMMED_UP = "(A summary of what was said before this.)\n"
"""What stands before a summary."""

HAPPENED = "(Not said, but what happened meanwhile.)\n"
"""What stands before events."""

PREVIEW = 80
"""Characters of an output that stand beside the pointer to it."""


@dataclasses.dataclass(frozen=True, slots=True)
class Word(window.Piece):
    """Something that was said, and is nothing else."""

    entry: log.User | log.Summary
    texts: journal.Texts

    @property
    @override
    def what(self) -> str:
        return "user" if isinstance(self.entry, log.User) else "summary"

    @property
    @override
    def line(self) -> int:
        return self.entry.seq

    @override
    def size(self, *, pointers: bool) -> Size:
        more = Size() if isinstance(self.entry, log.User) else _size_of(SUMMED_UP)
        return Size(self.entry.tokens, self.entry.chars, 1) + more

    @override
    def items(self, *, pointers: bool) -> tuple[Item, ...]:
        text = self.texts.text_of(self.entry)
        if isinstance(self.entry, log.Summary):
            return (Message("user", SUMMED_UP + text),)
        return journal.items_of(self.entry, text)


@dataclasses.dataclass(frozen=True, slots=True)
class Broken(window.Piece):
    """What had come of an answer that broke off, with the reason: whoever is told to continue can go on from there."""

    entry: log.ModelError
    texts: journal.Texts

    @property
    @override
    def what(self) -> str:
        return "error"

    @property
    @override
    def line(self) -> int:
        return self.entry.seq

    @override
    def size(self, *, pointers: bool) -> Size:
        told = self._told
        return Size(self.entry.tokens + estimates.of_text(told), self.entry.chars + len(told), 1)

    @override
    def items(self, *, pointers: bool) -> tuple[Item, ...]:
        return (Message("assistant", self.texts.text_of(self.entry) + self._told),)

    @property
    def _told(self) -> str:
        return f"\n(LLM_ERROR {self.entry.error.get('code')}: the answer broke off here)"


@dataclasses.dataclass(frozen=True, slots=True)
class Exchanged(window.Piece):
    """An answer with every call that it asks for, and what the model was told of each."""

    exchange: threads.Exchange
    texts: journal.Texts

    @property
    @override
    def what(self) -> str:
        return "exchange"

    @property
    @override
    def line(self) -> int:
        return self.exchange.answer.seq

    @override
    def size(self, *, pointers: bool) -> Size:
        answer = self.exchange.answer
        says = 1 if answer.text or answer.blob or not answer.calls else 0
        total = Size(answer.tokens, answer.chars, says + len(answer.calls or ()))
        for asked, done in self.exchange.done.items():
            total += self._output_size(asked, done, pointers=pointers)
        return total

    @override
    def items(self, *, pointers: bool) -> tuple[Item, ...]:
        answer = self.exchange.answer
        calls = self.texts.calls_of(answer)
        outputs = (ToolOutput(call.id, self._output(self.exchange.done[call.id], pointers=pointers)) for call in calls)
        return (*journal.items_of(answer, self.texts.text_of(answer), calls), *outputs)

    def _output_size(self, asked: str, done: threads.Done, *, pointers: bool) -> Size:
        told = done.told
        if told is not None and not (pointers and is_long(told)):
            return Size(told.tokens, told.chars, 1)
        text = pointer(told) if told is not None else OPEN
        return Size(estimates.of_item(ToolOutput(asked, text)), len(text), 1)

    def _output(self, done: threads.Done, *, pointers: bool) -> str:
        told = done.told
        if told is None:
            return OPEN
        return pointer(told) if pointers and is_long(told) else self.texts.text_of(told) or journal.NOTHING


@dataclasses.dataclass(frozen=True, slots=True)
class Happened(window.Piece):
    """What a person did beside talking, or what happened meanwhile: one after the other in one message."""

    entries: Sequence[log.Event]
    texts: journal.Texts

    @property
    @override
    def what(self) -> str:
        return "events"

    @property
    @override
    def line(self) -> int:
        return self.entries[0].seq

    @override
    def size(self, *, pointers: bool) -> Size:
        tokens, chars = (sum(getattr(each, name) for each in self.entries) for name in ("tokens", "chars"))
        return Size(tokens, chars, 1) + _size_of(HAPPENED)

    @override
    def items(self, *, pointers: bool) -> tuple[Item, ...]:
        return (Message("user", HAPPENED + "\n".join(map(self.texts.text_of, self.entries))),)


@functools.cache
def _size_of(text: str) -> Size:
    """Of a text of ours."""
    return Size(estimates.of_text(text), len(text))


class Thread(window.Pieces):
    """The pieces of a thread, from where its last summary ends."""

    def __init__(self, thread: threads.Thread, texts: journal.Texts) -> None:
        """Reads nothing yet."""
        self._thread, self._texts = thread, texts
        self._first, self._end = thread.first, len(thread.said)
        # What had come of the last answer is only of use to whoever goes on from it.
        while self._end > self._first and isinstance(thread.said[self._end - 1], log.ModelError):
            self._end -= 1

    @override
    def __len__(self) -> int:
        return self._end - self._first

    @override
    def __getitem__(self, number: int, /) -> window.Piece:
        said = self._thread.said[self._first + number]
        match said:
            case threads.Exchange():
                return Exchanged(said, self._texts)
            case log.ModelError():
                return Broken(said, self._texts)
            case log.Event():
                return Happened([said], self._texts)
            case log.User():
                return Word(said, self._texts)

    @property
    @override
    def summary(self) -> window.Piece | None:
        return None if self._thread.summary is None else Word(self._thread.summary, self._texts)

    @property
    @override
    def newest_word(self) -> int | None:
        newest = self._thread.newest_word
        return None if newest is None or newest < self._first else newest - self._first

    @override
    def tokens_before(self, number: int) -> int:
        return self._thread.tokens_before(self._first + number) - self._thread.tokens_before(self._first)


def is_long(told: log.Told) -> bool:
    """Whether a pointer is shorter than the output."""
    return told.chars > len(pointer(told))


def pointer(told: log.Told) -> str:
    """What stands for an output that is left out: where it is, how long it is, and how it begins."""
    path = told.blob.path if told.blob is not None else f"@state/line/{told.seq}"
    begins = (told.blob.preview if told.blob is not None else told.text or "")[:PREVIEW]
    return f"(left out: {told.chars} characters, kept at {path}; it begins: {begins!r})"
