"""Items of a thread with a model, for a window; each is read from the log when it is needed."""

from __future__ import annotations

import bisect
import contextlib
import functools
import json
import re
from collections.abc import Sequence
from typing import Literal

from typing_extensions import override

from runtime.context import replaced as replaced_arguments
from runtime.context import window
from runtime.context.window import Kind, Size, WindowItem
from runtime.log import entries as log_entries
from runtime.log import threads
from runtime.log.writer import NOTHING, Texts, chars_of, items_of
from runtime.messages import estimates
from runtime.messages.messages import Item, Message, ToolCall, ToolOutput
from runtime.observation import page_text

OPEN = "(open: no outcome is recorded)"
"""Shown as the output of a call that a crash left open, or that still runs. The log itself never contains it."""

SUMMARY = "(A summary of what was said before this."
SUMMED_UP = f"{SUMMARY})\n"
REFRESH = f"{SUMMARY} How things stand now, these tools tell: {{tools}}. Look again before you rely on it.)\n"
"""The same for a model that has such tools."""

HAPPENED = "(Not said, but what happened meanwhile.)\n"

UNSENT = frozenset({"window-too-large", "window-unsummed"})
"""Errors before which nothing was sent, so that no answer broke off."""

NO_PICTURE = "(the picture is left out here; the file has it)"
STOPPED = "work-stopped"
"""Code of the error of a message whose work the person has stopped."""

_FRAME = re.compile(rf"\A\(characters \d[^\n]*\n{re.escape(page_text.BEGIN)}\n")
"""What stands before the part of a value that a tool has read."""

PREVIEW = 160  # characters of an output shown with its pointer: its first lines
CUT_ESCAPE = 6  # longest escape of JSON, in characters: that many may be cut at the end of a preview


def _message(entry: log_entries.User, texts: Texts) -> WindowItem:
    size = Size(entry.tokens, entry.chars, 1)
    return WindowItem("user", entry.seq, size, size, lambda _pointers: texts.items_of(entry))


def _composed(kind: Kind, line: int, text: str, role: Literal["user", "assistant"] = "user") -> WindowItem:
    size = size_of(text)
    return WindowItem(kind, line, size, size, lambda _pointers: (Message(role, text),))


def _exchange(exchange: threads.Exchange, texts: Texts, replaced: replaced_arguments.Replaced) -> WindowItem:
    answer = exchange.answer
    says = 1 if answer.text or answer.blob or not answer.calls else 0
    large = small = Size(answer.tokens, answer.chars, says + len(answer.calls or ()))
    for asked, done in exchange.done.items():
        whole, short = _output_sizes(asked, done)
        large, small = large + whole, small + (short or whole)

    def read(pointers: bool) -> tuple[Item, ...]:
        return with_calls(texts.calls_of(answer), pointers)

    def with_calls(calls: Sequence[ToolCall], pointers: bool) -> tuple[Item, ...]:
        said = items_of(answer, texts.text_of(answer), calls, texts.thoughts_of(answer))
        outputs = (_output(each.id, exchange.done[each.id], texts, pointers) for each in calls)
        return (*said, *outputs)

    if not any(replaced.may(each.name) for each in answer.calls or ()):
        return WindowItem("exchange", answer.seq, large, small, read)
    calls = replaced.calls(texts.calls_of(answer))

    def shorter(of: tuple[ToolCall, ...], later: WindowItem | None = None) -> WindowItem:
        tokens, chars = calls.saved(of)
        less = Size(tokens, chars)
        own = functools.partial(with_calls, of)
        return WindowItem("exchange", answer.seq, large - less, small - less, own, later, tokens)

    return shorter(calls.now, shorter(calls.later) if calls.later != calls.now else None)


def _output_sizes(asked: str, done: threads.Done) -> tuple[Size, Size | None]:
    """Return the size of a call's output, and that of its pointer, if it is shorter."""
    output = done.output
    if output is None:
        return output_size(asked, OPEN), None
    whole, short = Size(output.tokens, output.chars, 1), output_size(asked, without_picture(output) or pointer(output))
    return whole, short if is_shorter(short, whole) else None


def _output(asked: str, done: threads.Done, texts: Texts, pointers: bool) -> ToolOutput:
    output = done.output
    if output is None:
        return ToolOutput(asked, OPEN)
    if pointers and _output_sizes(asked, done)[1] is not None:
        return ToolOutput(asked, without_picture(output) or pointer(output))
    return ToolOutput(asked, texts.text_of(output) or NOTHING, texts.picture_of(output))


def without_picture(output: log_entries.ToolResult) -> str:
    """Return the text of an output with a picture, in place of both; empty for any other."""
    return f"{output.text or NOTHING}\n{NO_PICTURE}" if output.picture is not None and output.blob is None else ""


def _run(told: log_entries.Event, texts: Texts) -> WindowItem:
    asked = items_of(told, "")[0]
    assert isinstance(asked, ToolCall), "a run is told as a call"
    large, short = Size(told.tokens, told.chars, 2), pointer(told)
    small = Size(estimates.of_item(asked), chars_of(asked), 1) + output_size(asked.id, short)
    shorter = is_shorter(small, large)

    def read(pointers: bool) -> tuple[Item, ...]:
        return (asked, ToolOutput(asked.id, short)) if pointers and shorter else items_of(told, texts.text_of(told))

    return WindowItem("run", told.seq, large, small if shorter else large, read)


class Thread(window.Pieces):
    """The items of a thread after its last summary."""

    def __init__(
        self, thread: threads.Thread, texts: Texts, replaced: replaced_arguments.Replaced = replaced_arguments.NOTHING
    ) -> None:
        self._thread, self._texts, self._replaced = thread, texts, replaced
        self._first = thread.first

    @override
    def __len__(self) -> int:
        return len(self._thread.said) - self._first

    @override
    def __getitem__(self, number: int, /) -> WindowItem:
        texts = self._texts
        match self._thread.said[self._first + number]:
            case threads.Exchange() as exchange:
                return _exchange(exchange, texts, self._replaced)
            case log_entries.ModelError() as error if error.error.get("code") in UNSENT:
                return WindowItem("error", error.seq, Size(), Size(), lambda _pointers: ())
            case log_entries.ModelError() as error:
                came = texts.text_of(error)
                text = "\n".join(filter(None, (came, broke_off(error, came))))
                return _composed("error", error.seq, text, "assistant")
            case log_entries.Event() as told:
                return _run(told, texts)
            case threads.Happened(events=events):
                return _composed("events", events[0].seq, HAPPENED + "\n".join(map(texts.text_of, events)))
            case log_entries.User() as word:
                return _message(word, texts)

    @property
    @override
    def summary(self) -> WindowItem | None:
        summary = self._thread.summary
        return summary and _composed(
            "summary", summary.seq, summed_up(summary.refresh or ()) + self._texts.text_of(summary)
        )

    @property
    def covered(self) -> int:
        """The last line that the summary covers; 0 without one."""
        return self._thread.summary.upto if self._thread.summary is not None else 0

    @property
    @override
    def newest_word(self) -> int | None:
        newest = self._thread.newest_word
        return None if newest is None or newest < self._first else newest - self._first

    @property
    @override
    def word(self) -> WindowItem | None:
        newest = self._thread.newest_word
        return None if newest is None else self[newest - self._first]

    @override
    def tokens_before(self, number: int) -> int:
        return self._thread.tokens_before(self._first + number) - self._thread.tokens_before(self._first)

    @property
    def total(self) -> Size:
        """The size of all items, outputs whole, without the summary."""
        return sum((self[number].large for number in range(len(self))), Size())

    def has_messages(self, count: int | None) -> bool:
        """True if there are so many messages since the last summary, without the user's newest message; False for None."""
        found = 0
        for number in range(len(self) - 1, -1, -1):
            if count is None or found >= count:
                break
            found += self[number].large.messages if number != self.newest_word else 0
        return count is not None and found >= count

    def upto(self, line: int) -> int:
        """Return the number of items that begin at or before that line of the log."""
        return max(0, bisect.bisect_right(self._thread.said, line, key=threads.line_of) - self._first)


def summed_up(refresh: Sequence[str]) -> str:
    """Return what stands before a summary, for a model with these tools to refresh its view."""
    return REFRESH.format(tools=", ".join(refresh)) if refresh else SUMMED_UP


def broke_off(error: log_entries.ModelError, came: str) -> str:
    """Return what a model is told of an answer that broke off after the part ``came``."""
    if error.error.get("code") == STOPPED:
        return "(The person stopped the work here.)"
    return f"(LLM_ERROR {error.error.get('code')}: {'the answer broke off here' if came else 'no answer came'})"


def pointer(output: log_entries.ToolResult | log_entries.Event) -> str:
    """Return the replacement of a left-out output: its place, its length, and its first lines."""
    path = output.blob.path if output.blob is not None else f"@state/line/{output.seq}"
    text = beginning(output.blob.preview) if output.blob is not None else output.text or ""
    return f"(left out: {output.chars} characters, kept at {path}; it begins:)\n{_first_lines(text)}"


def beginning(preview: str) -> str:
    """Return the beginning of the text whose JSON begins with ``preview``; of another value its JSON."""
    if not preview.startswith('"'):
        return preview
    for cut in range(CUT_ESCAPE):
        with contextlib.suppress(ValueError):
            return json.loads(f'{preview[: len(preview) - cut]}"')
    return preview


def _first_lines(text: str) -> str:
    """Return whole lines of at most ``PREVIEW`` characters, or a part of the first; page text in them stays fenced."""
    frame = _FRAME.match(text)
    text = text[frame.end() :] if frame is not None else text
    begins = text[:PREVIEW]
    if len(text) > PREVIEW:
        lines = begins.rpartition("\n")[0]
        begins = f"{lines}\n…" if lines else f"{begins}…"
    begins = f"{page_text.BEGIN}\n{begins}" if frame is not None else begins
    if begins.rfind(page_text.BEGIN) > begins.rfind(page_text.END):
        begins = f"{begins}\n{page_text.END}"
    return begins


def is_shorter(one: Size, other: Size) -> bool:
    """True if ``one`` has fewer tokens than ``other``, and is larger in nothing."""
    return one.within(other) and one.tokens < other.tokens


@functools.lru_cache(maxsize=1 << 12)
def size_of(text: str) -> Size:
    return Size(estimates.of_text(text), len(text), 1)


@functools.lru_cache(maxsize=1 << 14)
def output_size(asked: str, text: str) -> Size:
    return Size(estimates.of_item(ToolOutput(asked, text)), len(text), 1)
