"""Items that a window may hold of a thread with a model, each read from the log when it is needed."""

from __future__ import annotations

import abc
import bisect
import dataclasses
import functools
from collections.abc import Sequence
from typing import ClassVar, Literal

from typing_extensions import override

from runtime.context import window
from runtime.context.window import Size
from runtime.log import entries as log_entries
from runtime.log import threads
from runtime.log.writer import NOTHING, Texts, items_of
from runtime.messages import estimates
from runtime.messages.messages import Item, Message, ToolOutput

OPEN = "(open: no outcome is recorded)"
"""Shown for a call that a crash left open, or that still runs. The log itself never contains it."""

SUMMED_UP = "(A summary of what was said before this.)\n"
"""Text before a summary."""

HAPPENED = "(Not said, but what happened meanwhile.)\n"
"""Text before events."""

PREVIEW = 80
"""Characters of an output shown next to its pointer."""


@dataclasses.dataclass(frozen=True, slots=True)
class MessageItem(window.WindowItem):
    """A plain message to the model."""

    entry: log_entries.User
    texts: Texts

    @property
    @override
    def what(self) -> str:
        return "user"

    @property
    @override
    def line(self) -> int:
        return self.entry.seq

    @override
    def size(self, *, pointers: bool) -> Size:
        return Size(self.entry.tokens, self.entry.chars, 1)

    @override
    def items(self, *, pointers: bool) -> tuple[Item, ...]:
        return items_of(self.entry, self.texts.text_of(self.entry))


class Telling(window.WindowItem):
    """A message whose text is composed, and is in no entry."""

    ROLE: ClassVar[Literal["user", "assistant"]] = "user"
    """The sender's role."""

    @property
    @abc.abstractmethod
    def told(self) -> str:
        """The text."""

    @override
    def size(self, *, pointers: bool) -> Size:
        return size_of(self.told)

    @override
    def items(self, *, pointers: bool) -> tuple[Item, ...]:
        return (Message(self.ROLE, self.told),)


@dataclasses.dataclass(frozen=True, slots=True)
class SummedUp(Telling):
    """The summary that replaces the older part of a thread."""

    entry: log_entries.Summary
    texts: Texts

    @property
    @override
    def what(self) -> str:
        return "summary"

    @property
    @override
    def line(self) -> int:
        return self.entry.seq

    @property
    @override
    def told(self) -> str:
        return SUMMED_UP + self.texts.text_of(self.entry)


@dataclasses.dataclass(frozen=True, slots=True)
class Broken(Telling):
    """The received part of an answer that broke off, with the reason; the model can continue from there."""

    ROLE: ClassVar[Literal["user", "assistant"]] = "assistant"
    entry: log_entries.ModelError
    texts: Texts

    @property
    @override
    def what(self) -> str:
        return "error"

    @property
    @override
    def line(self) -> int:
        return self.entry.seq

    @property
    @override
    def told(self) -> str:
        partial = self.texts.text_of(self.entry)
        return f"{partial}\n{broke_off(self.entry)}" if partial else broke_off(self.entry)


@dataclasses.dataclass(frozen=True, slots=True)
class Happened(Telling):
    """Actions of a person besides messages, and events meanwhile, in one message."""

    entries: Sequence[log_entries.Event]
    texts: Texts

    @property
    @override
    def what(self) -> str:
        return "events"

    @property
    @override
    def line(self) -> int:
        return self.entries[0].seq

    @property
    @override
    def told(self) -> str:
        return HAPPENED + "\n".join(map(self.texts.text_of, self.entries))


@dataclasses.dataclass(frozen=True, slots=True)
class Exchanged(window.WindowItem):
    """An answer with all its calls and their outputs."""

    exchange: threads.Exchange
    texts: Texts

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
        outputs = (
            ToolOutput(call.id, self._output(call.id, self.exchange.done[call.id], pointers=pointers)) for call in calls
        )
        return (*items_of(answer, self.texts.text_of(answer), calls), *outputs)

    def _output_size(self, asked: str, done: threads.Done, *, pointers: bool) -> Size:
        told = done.told
        if told is None:
            return output_size(asked, OPEN)
        whole = Size(told.tokens, told.chars, 1)
        short = output_size(asked, pointer(told)) if pointers else whole
        return short if is_shorter(short, whole) else whole

    def _output(self, asked: str, done: threads.Done, *, pointers: bool) -> str:
        told = done.told
        if told is None:
            return OPEN
        if pointers and is_shorter(output_size(asked, pointer(told)), Size(told.tokens, told.chars, 1)):
            return pointer(told)
        return self.texts.text_of(told) or NOTHING


class Thread(window.Pieces):
    """The items of a thread after its last summary."""

    def __init__(self, thread: threads.Thread, texts: Texts) -> None:
        """Take the thread; nothing is read yet."""
        self._thread, self._texts = thread, texts
        self._first = thread.first

    @override
    def __len__(self) -> int:
        return len(self._thread.said) - self._first

    @override
    def __getitem__(self, number: int, /) -> window.WindowItem:
        match self._thread.said[self._first + number]:
            case threads.Exchange() as exchange:
                return Exchanged(exchange, self._texts)
            case log_entries.ModelError() as error:
                return Broken(error, self._texts)
            case threads.Happened(events=events):
                return Happened(events, self._texts)
            case log_entries.User() as word:
                return MessageItem(word, self._texts)

    @property
    @override
    def summary(self) -> window.WindowItem | None:
        return None if self._thread.summary is None else SummedUp(self._thread.summary, self._texts)

    @property
    @override
    def newest_word(self) -> int | None:
        newest = self._thread.newest_word
        return None if newest is None or newest < self._first else newest - self._first

    @property
    @override
    def word(self) -> window.WindowItem | None:
        newest = self._thread.newest_word
        if newest is None:
            return None
        entry = self._thread.said[newest]
        assert isinstance(entry, log_entries.User), "the newest word is one"
        return MessageItem(entry, self._texts)

    @override
    def tokens_before(self, number: int) -> int:
        return self._thread.tokens_before(self._first + number) - self._thread.tokens_before(self._first)

    def upto(self, line: int) -> int:
        """Return how many of them begin in the log up to that line."""
        return max(0, bisect.bisect_right(self._thread.said, line, key=threads.line_of) - self._first)


def broke_off(error: log_entries.ModelError) -> str:
    """Return the text about an answer that broke off."""
    return f"(LLM_ERROR {error.error.get('code')}: the answer broke off here)"


def pointer(told: log_entries.ToolResult) -> str:
    """Return the replacement of a left-out output: its place, length and beginning."""
    path = told.blob.path if told.blob is not None else f"@state/line/{told.seq}"
    begins = (told.blob.preview if told.blob is not None else told.text or "")[:PREVIEW]
    return f"(left out: {told.chars} characters, kept at {path}; it begins: {begins!r})"


def is_shorter(one: Size, other: Size) -> bool:
    """True if ``one`` should replace ``other``: larger in nothing, and smaller in tokens."""
    return one.within(other) and one.tokens < other.tokens


@functools.lru_cache(maxsize=1 << 12)
def size_of(text: str) -> Size:
    """Return the size of a message with this text."""
    return Size(estimates.of_text(text), len(text), 1)


@functools.lru_cache(maxsize=1 << 14)
def output_size(asked: str, text: str) -> Size:
    """Return the size of a call's output with this text."""
    return Size(estimates.of_item(ToolOutput(asked, text)), len(text), 1)
