"""The part of a thread that a request holds, and what stands around it: one builder for agents in runs, chats and the Director.

It is a pure function of what stands in the log, of what is told beside it, and of limits. What does not fit gives way in this order, and the report
says so: old outputs of tools become pointers to where they are kept, then whole exchanges are left out, oldest first. The newest word of the user
stays always, and so does what stands before the thread; where these alone are too much, nothing is sent. What is old keeps half of the thread's room
free for the newest outputs, where these need it.

Outputs that are not recent are pointers also where there is room, if the limits say so: what a tool said once is read again and again otherwise.

A higher limit never gives fewer items. That holds because the room of each part grows with the limit and depends on nothing that was taken in
before it: whether a tool, a text or a summary found room changes nothing for the others.

The cost is that of the window, not that of the thread: sizes were counted when the entries were written.
"""

from __future__ import annotations

import bisect
import dataclasses
from collections.abc import Callable, Sequence
from typing import Literal, Protocol

from pydantic import BaseModel, ConfigDict, Field

from nodes.errors import ModelError
from runtime.context.report import Left, Report, Rung, Section
from runtime.messages import estimates
from runtime.messages.messages import Item, Message, Tool

Strategy = Literal["injected", "clean", "hybrid"]
"""What of the state is told with each request: all of it, nothing (each part has a tool), or the plan and a line of status."""

Overflow = Literal["prune", "summarize"]

MARGIN, SYSTEM, KNOWLEDGE, CONVERSATION = 7, 10, 40, 43
"""The shares of a hard limit, in percent: what is left free, what stands before the thread with the tools, what is told beside it, the thread. What one does not use is the thread's."""

STRICT = 1_500
"""Tokens of a hard limit, where none is said."""


class Limits(BaseModel):
    """How a window is built. Each is a setting: of the project, of a session, of one command."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    strategy: Strategy = "hybrid"
    max_messages: int | None = Field(default=80, ge=1)
    max_chars: int | None = Field(default=120_000, ge=1)
    tool_results: bool = True
    """Whether outputs of tools stand in the window, or only pointers to them."""
    recent_outputs: int | None = Field(default=None, ge=1)
    """Tokens of the newest part of the thread in which outputs stand whole, at the least; before twice as many stand pointers. None: all may stand whole."""
    events: bool = True
    """Whether what a person did beside talking is told, in a line."""
    hard_limit: int | None = Field(default=None, ge=1)
    """Tokens of everything that a request holds, never more."""
    overflow: Overflow = "summarize"
    min_recent: int = Field(default=4, ge=1)
    """How many of the newest messages no summary takes in."""
    top_k: int = Field(default=3, ge=0)
    """Sections of the knowledge that are told."""
    checkpoint_at: int | None = Field(default=None, ge=1)
    """Tokens of the thread since its last summary at which the next one is made, though there is room; None: only where there is none."""
    warn_at: int = Field(default=160_000, ge=1)
    compress_at: int = Field(default=180_000, ge=1)
    compress_to: int = Field(default=20_000, ge=1)
    """Tokens of a summary, at the most."""


@dataclasses.dataclass(frozen=True, slots=True)
class Size:
    """How large something is in a request: an upper bound of its tokens."""

    tokens: int = 0
    chars: int = 0
    messages: int = 0

    def __add__(self, other: Size) -> Size:
        return Size(self.tokens + other.tokens, self.chars + other.chars, self.messages + other.messages)

    def __sub__(self, other: Size) -> Size:
        return Size(self.tokens - other.tokens, self.chars - other.chars, self.messages - other.messages)

    def within(self, most: Size) -> bool:
        """Whether no part of it is more than that of ``most``."""
        return self.tokens <= most.tokens and self.chars <= most.chars and self.messages <= most.messages


class WindowItem(Protocol):
    """What is kept or left out as a whole: a word, an answer with all its calls and their outputs, a summary, what happened meanwhile."""

    @property
    def what(self) -> str:
        """What it is: ``user``, ``exchange``, ``error``, ``summary``, ``events``, ``step``."""
        ...

    @property
    def line(self) -> int:
        """The line of the log with which it begins."""
        ...

    def size(self, *, pointers: bool) -> Size:
        """How large it is; with ``pointers`` in the place of outputs. Where that is larger in anything, no pointers are asked for."""
        ...

    def items(self, *, pointers: bool) -> tuple[Item, ...]:
        """What it is in a request. Reads the texts."""
        ...


class Pieces(Protocol):
    """What a window may hold of a thread, oldest first: the last summary of it, and what came since."""

    def __len__(self) -> int: ...

    def __getitem__(self, number: int, /) -> WindowItem: ...

    @property
    def summary(self) -> WindowItem | None:
        """What stands for everything before the first of them."""
        ...

    @property
    def newest_word(self) -> int | None:
        """Where the newest word of the user is among them; None where the summary has taken it in, or there is none."""
        ...

    @property
    def word(self) -> WindowItem | None:
        """The newest word of the user, also where the summary has taken it in."""
        ...

    def tokens_before(self, number: int) -> int:
        """Tokens of all of them before that one together, outputs whole."""
        ...


@dataclasses.dataclass(frozen=True, slots=True)
class Part:
    """A text that stands around the thread."""

    name: str
    text: str


@dataclasses.dataclass(frozen=True, slots=True)
class RequestFrame:
    """What stands around the thread, made anew for each request."""

    prefix: tuple[Part, ...]
    """Before it, in order: how the model is to work. Always whole."""
    tools: tuple[Tool, ...] = ()
    """In order of weight, should there be too little room."""
    state: tuple[Part, ...] = ()
    """Behind it, in order of weight: what the session keeps."""
    knowledge: Callable[[str], Sequence[Part]] = lambda _asked: ()
    """What is known about a question, the best first."""


@dataclasses.dataclass(frozen=True, slots=True)
class Window:
    """What a request holds."""

    instructions: str
    items: tuple[Item, ...]
    tools: tuple[Tool, ...]
    state: str
    report: Report


def build(items: Pieces, around: RequestFrame, limits: Limits) -> Window:
    """The window. The same arguments give the same window; a higher limit never gives fewer items.

    Raises ModelError ``window-too-large`` where what stands before the thread and the newest word of the user are too much by themselves.
    """
    return _Builder(items, around, limits).build()


@dataclasses.dataclass(frozen=True, slots=True)
class _Rooms:
    """Tokens that each part may have. Each grows with the limit, or stays."""

    tools: int
    state: int
    thread: int


class _Builder:
    def __init__(self, items: Pieces, around: RequestFrame, limits: Limits) -> None:
        self._items, self._around, self._limits = items, around, limits
        self._instructions = "\n\n".join(each.text for each in around.prefix if each.text)
        self._newest = items.word
        self._first_whole = _first_recent(items, limits.recent_outputs) if limits.tool_results else len(items)
        self._left: list[Left] = []
        self._system = (estimates.of_text(self._instructions) if self._instructions else 0) + estimates.AN_ANSWER
        self._word = self._newest.size(pointers=False) if self._newest is not None else Size()
        told = [*around.state, *(around.knowledge(_text(self._newest)) if self._newest is not None else ())]
        self._known = [each for each in told if each.text]
        self._all_tools = estimates.of_tools(around.tools)
        self._all_known = _tokens(self._known)

    def build(self) -> Window:
        rooms = self._strict(self._limits.hard_limit) if self._limits.hard_limit is not None else self._loose()
        tools = self._tools(rooms.tools)
        known = self._state(rooms.state)
        summary, rest = self._summary(rooms.thread)
        kept = self._kept(rest)
        whole = self._made_whole(kept, rest)
        items: list[Item] = []
        newest = self._items.newest_word
        if self._newest is not None and newest is None:
            items += self._newest.items(pointers=False)
        if summary is not None:
            items += summary.items(pointers=False)
        for number in sorted(kept if newest is None else [*kept, newest]):
            items += self._items[number].items(pointers=not (number == newest or number in whole))
        return Window(
            instructions=self._instructions,
            items=tuple(items),
            tools=tools,
            state=_joined(known),
            report=self._report(rooms, tools, known, summary, kept, whole),
        )

    # How much room each part has.

    def _loose(self) -> _Rooms:
        """What stands around the thread has its place, the state at most half of what is free; the thread has the rest."""
        most = self._limits.compress_at
        free = self._free(most)
        tools = min(free, self._all_tools)
        state = min((free - tools) // 2, self._all_known)
        return _Rooms(tools, state, free - tools - state)

    def _strict(self, most: int) -> _Rooms:
        """Each has its share; what a share does not need at all is the thread's."""
        free = self._free(most)
        margin, system, known, thread = (most * each // 100 for each in (MARGIN, SYSTEM, KNOWLEDGE, CONVERSATION))
        spare = max(0, system - self._system - self._all_tools) + max(0, known - self._all_known)
        room = thread + spare - max(0, self._system - system) - self._word.tokens
        free = max(0, free - margin)
        tools = max(0, min(system - self._system, free))
        # A word that is larger than the thread's share takes what it needs of what is told beside it.
        state = max(0, min(known, free - min(tools, self._all_tools)))
        return _Rooms(tools, state, max(0, room))

    def _free(self, most: int) -> int:
        """Tokens beside what is always there. Raises ModelError."""
        fixed = self._system + self._word.tokens
        if fixed > most:
            raise ModelError(
                "window-too-large",
                f"what must be sent may have {fixed:,} tokens, and the window has {most:,}: nothing was sent",
                fix="say it in fewer words, or allow a larger window (`hard_limit`, `compress_at`)",
                evidence={"limit": most, "needed": fixed, "system": self._system, "newest": self._word.tokens},
            )
        return most - fixed

    # What each part is.

    def _tools(self, room: int) -> tuple[Tool, ...]:
        taken: list[Tool] = []
        for each in self._around.tools:
            if estimates.of_tools([*taken, each]) <= room:
                taken.append(each)
            else:
                self._left.append(Left(f"tool {each.name}", 0, NO_SHARE, estimates.of_tools([each])))
        return tuple(taken)

    def _state(self, room: int) -> list[Part]:
        taken: list[Part] = []
        for each in self._known:
            part = _cut(taken, each, room)
            if part is not None:
                taken.append(part)
            if part != each:
                told = _headed(part) if part is not None else ""
                lost = estimates.of_text(_headed(each)) - (estimates.of_text(told) if told else 0)
                self._left.append(Left(each.name, 0, NO_SHARE, lost))
        return taken

    def _summary(self, room: int) -> tuple[WindowItem | None, Size]:
        """The summary, where it takes no more than half of the thread's room; and what is left. Also one that is left out has its place, lest another limit give less."""
        word = self._word
        rest = Size(room, _rest(self._limits.max_chars, word.chars), _rest(self._limits.max_messages, word.messages))
        summary = self._items.summary
        if summary is None:
            return None, rest
        size, half = summary.size(pointers=False), Size(rest.tokens // 2, rest.chars // 2, rest.messages)
        if size.within(half):
            return summary, rest - size
        why = "it is larger than half of what the thread may have"
        self._left.append(Left("summary", summary.line, why, size.tokens))
        taken = Size(half.tokens, half.chars, min(size.messages, rest.messages))
        return None, rest - taken

    def _kept(self, rest: Size) -> list[int]:
        """Which pieces stay, the newest first. The newest word is none of them: it stays always.

        Outputs count as their pointers here, beside a reserve for those outputs of later pieces that they would take the place of: half of the room at the most.
        """
        kept: list[int] = []
        skeleton, beyond = Size(), Size()
        followed = False
        for number in range(len(self._items) - 1, -1, -1):
            if number == self._items.newest_word:
                followed = True
                continue
            item = self._items[number]
            if not self._is_told(item, followed=followed):
                continue
            followed = True
            large, small = _sizes(item)
            skeleton += small
            reserve = Size(min(rest.tokens // 2, beyond.tokens), min(rest.chars // 2, beyond.chars))
            if not (skeleton + reserve).within(rest):
                self._leave_from(number)
                break
            beyond += large - small if number >= self._first_whole else Size()
            kept.append(number)
        return kept

    def _is_told(self, item: WindowItem, *, followed: bool) -> bool:
        """Whether it is told at all, room or no room."""
        if item.what == "error" and not followed:
            # What had come of the last answer is of use only to whoever goes on from it.
            return False
        if item.what == "events" and not self._limits.events:
            self._left.append(Left("events", item.line, NOT_WANTED, item.size(pointers=True).tokens))
            return False
        return True

    def _made_whole(self, kept: Sequence[int], rest: Size) -> set[int]:
        """Those of the pieces that have their outputs whole: the newest first, as far as there is room."""
        total = sum((_sizes(self._items[number])[1] for number in kept), Size())
        whole: set[int] = set()
        for number in kept:
            large, small = _sizes(self._items[number])
            larger = total - small + large
            if large == small or (number >= self._first_whole and larger.within(rest)):
                total = larger
                whole.add(number)
            else:
                why = NOT_WANTED if not self._limits.tool_results else NO_ROOM if number >= self._first_whole else OLD
                self._left.append(Left(OUTPUTS, self._items[number].line, why, large.tokens - small.tokens))
        return whole

    def _leave_from(self, number: int) -> None:
        """This piece and all before it are left out, but for the newest word; they are not looked at one by one."""
        newest = self._items.newest_word
        has_word = newest is not None and newest < number
        tokens = self._items.tokens_before(number + 1) - (self._word.tokens if has_word else 0)
        self._left.append(Left(f"{number + 1 - has_word} {OLDEST}", self._items[0].line, NO_ROOM, tokens))

    # What is said of it.

    def _report(
        self,
        rooms: _Rooms,
        tools: Sequence[Tool],
        known: Sequence[Part],
        summary: WindowItem | None,
        kept: Sequence[int],
        whole: set[int],
    ) -> Report:
        limits, newest = self._limits, self._items.newest_word
        strict = limits.hard_limit is not None
        thread = sum((self._items[number].size(pointers=number not in whole) for number in kept), Size())
        summed = self._items.summary.size(pointers=False).tokens if self._items.summary is not None else 0
        all_of_it = self._items.tokens_before(len(self._items)) - (self._word.tokens if newest is not None else 0)
        parts = [Section(each.name, tokens) for each, tokens in zip(known, _each_tokens(known), strict=True)]
        return Report(
            limit=limits.hard_limit or limits.compress_at,
            sections=(
                Section("system", self._system, SYSTEM / 100 if strict else None),
                Section("tools", estimates.of_tools(tools)),
                *parts,
                *([Section("summary", summed, messages=1)] if summary is not None else ()),
                Section("thread", thread.tokens, CONVERSATION / 100 if strict else None, thread.messages),
                Section("newest word", self._word.tokens, messages=self._word.messages),
            ),
            left=tuple(self._left),
            rungs=self._rungs(summed + all_of_it > rooms.thread),
            room=rooms.thread,
            said=summed + all_of_it,
            warn_at=0 if strict else limits.warn_at,
        )

    def _rungs(self, is_tight: bool) -> tuple[Rung, Rung]:
        """What pointers and leaving out have saved. ``is_tight`` is whether the whole thread has more tokens than it may have."""
        small = sum(each.tokens for each in self._left if each.what == OUTPUTS)
        gone = sum(each.tokens for each in self._left if each.what.endswith(OLDEST))
        needed = is_tight or gone > 0
        if small:
            pointers = Rung("pointers", "saved", small)
        else:
            pointers = Rung("pointers", "no effect" if needed else "not needed")
        return pointers, Rung("dropped", "saved", gone) if gone else Rung("dropped", "not needed")


NO_ROOM, NO_SHARE, NOT_WANTED = "there is no room", "its share is used up", "they are not wanted"
OLD = "they are not recent"
OUTPUTS, OLDEST = "outputs", "of the oldest"
_ENDLESS = 2**62


def _first_recent(items: Pieces, recent: int | None) -> int:
    """The first of them whose outputs may stand whole.

    It moves by ``recent`` tokens at a time: between, a request begins as the one before did, so that what a server has kept of that one is of use. What
    came last is always recent, however large it is.
    """
    if recent is None:
        return 0
    everything = items.tokens_before(len(items))
    begins = (everything - recent) // recent * recent
    if begins <= 0:
        return 0
    found = bisect.bisect_left(range(len(items)), begins, key=items.tokens_before)
    return min(found, max(0, len(items) - 1))


def _rest(most: int | None, used: int) -> int:
    return _ENDLESS if most is None else max(0, most - used)


def _sizes(item: WindowItem) -> tuple[Size, Size]:
    """How large it is whole, and with pointers where these are smaller."""
    large, small = item.size(pointers=False), item.size(pointers=True)
    return large, small if small.within(large) else large


def _text(item: WindowItem) -> str:
    """What the newest word says."""
    return " ".join(each.text for each in item.items(pointers=False) if isinstance(each, Message))


def _headed(part: Part) -> str:
    return f"## {part.name}\n{part.text}"


def _joined(parts: Sequence[Part]) -> str:
    """The parts as one text."""
    return "\n\n".join(map(_headed, parts))


def _tokens(parts: Sequence[Part]) -> int:
    """Tokens of the parts in a request."""
    return estimates.of_text(_joined(parts)) if parts else 0


def _each_tokens(parts: Sequence[Part]) -> list[int]:
    """Tokens that each of them adds to those before it."""
    upto = [_tokens(parts[:end]) for end in range(len(parts) + 1)]
    return [upto[end + 1] - upto[end] for end in range(len(parts))]


def _cut(before: Sequence[Part], part: Part, room: int) -> Part | None:
    """The part as far as there is room for it behind those before, line by line; None where not even its first line has any."""
    lines = part.text.splitlines()

    def upto(most: int) -> Part:
        return part if most == len(lines) else Part(part.name, "\n".join([*lines[:most], "… (cut)"]))

    def fits(most: int) -> bool:
        return _tokens([*before, upto(most)]) <= room

    if fits(len(lines)):
        return part
    most = bisect.bisect_left(range(len(lines)), 1, key=lambda number: 0 if fits(number + 1) else 1)
    return upto(most) if most and fits(most) else None
