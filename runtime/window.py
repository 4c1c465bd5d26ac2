"""The part of a thread that a request holds, and what stands around it: one builder for agents in runs, chats and the Director.

It is a pure function of what stands in the log, of what is told beside it, and of limits. What does not fit gives way in this order, and the report
says so: old outputs of tools become pointers to where they are kept, then whole exchanges are left out, oldest first. The newest word of the user
stays always, and so does what stands before the thread; where these alone are too much, nothing is sent. What is left with pointers for outputs
takes at most half of the thread's room, so that the newest outputs have the rest.

The cost is that of the window, not that of the thread: sizes were counted when the entries were written.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Literal, Protocol

from pydantic import BaseModel, ConfigDict, Field

from nodes.errors import ModelError
from nodes.values import Json
from runtime.models import estimates
from runtime.models.exchange import Item, Message, Tool

Strategy = Literal["injected", "clean", "hybrid"]
"""What of the state is told with each request: all of it, nothing (each part has a tool), or the plan and a line of status."""

Overflow = Literal["prune", "summarize"]

MARGIN, SYSTEM, KNOWLEDGE, CONVERSATION = 0.07, 0.10, 0.40, 0.43
"""The shares of a hard limit: what is left free, what stands before the thread with the tools, what is told beside it, the thread. What one does not use is the thread's."""

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
    events: bool = True
    """Whether what a person did beside talking is told, in a line."""
    hard_limit: int | None = Field(default=None, ge=1)
    """Tokens of everything that a request holds, never more."""
    overflow: Overflow = "summarize"
    min_recent: int = Field(default=4, ge=1)
    """How many of the newest messages no summary takes in."""
    top_k: int = Field(default=3, ge=0)
    """Sections of the knowledge that are told."""
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


class Piece(Protocol):
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
        """How large it is; with ``pointers`` in the place of outputs."""
        ...

    def items(self, *, pointers: bool) -> tuple[Item, ...]:
        """What it is in a request. Reads the texts."""
        ...


class Pieces(Protocol):
    """What a window may hold of a thread, oldest first: the last summary of it, and what came since."""

    def __len__(self) -> int: ...

    def __getitem__(self, number: int, /) -> Piece: ...

    @property
    def summary(self) -> Piece | None:
        """What stands for everything before the first of them."""
        ...

    @property
    def newest_word(self) -> int | None:
        """Where the newest word of the user is."""
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
class Around:
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
class Left:
    """Something that was left out, or has a pointer in the place of its outputs."""

    what: str
    line: int
    """Of the log; 0 for what stands in none."""
    why: str
    tokens: int


RungName = Literal["pointers", "dropped", "summary"]


@dataclasses.dataclass(frozen=True, slots=True)
class Rung:
    """One step by which a window is made to fit, and what came of it."""

    name: RungName
    outcome: Literal["not needed", "saved", "no effect", "failed"]
    saved: int = 0
    """Tokens."""
    why: str = ""
    """Of one that failed."""

    def __str__(self) -> str:
        return f"saved {self.saved:,}" if self.outcome == "saved" else self.outcome


@dataclasses.dataclass(frozen=True, slots=True)
class Section:
    """A part of the window, with what it takes and might take."""

    name: str
    tokens: int
    share: float | None = None
    """Its part of the hard limit."""
    messages: int = 0


@dataclasses.dataclass(frozen=True, slots=True)
class Report:
    """What a window holds, and why not more."""

    limit: int
    """Tokens that it might have."""
    sections: tuple[Section, ...]
    left: tuple[Left, ...]
    rungs: tuple[Rung, ...]

    @property
    def tokens(self) -> int:
        """Tokens of all of it."""
        return sum(each.tokens for each in self.sections)

    def as_json(self) -> dict[str, Json]:
        """The report, for programs."""
        return {
            "limit": self.limit,
            "tokens": self.tokens,
            "sections": [dataclasses.asdict(each) for each in self.sections],
            "left": [dataclasses.asdict(each) for each in self.left],
            "rungs": [dataclasses.asdict(each) for each in self.rungs],
        }


@dataclasses.dataclass(frozen=True, slots=True)
class Window:
    """What a request holds."""

    instructions: str
    items: tuple[Item, ...]
    tools: tuple[Tool, ...]
    state: str
    whole: bool
    """Whether it holds all that was said, word for word, and nothing beside: a server that has kept the rest may go on from there."""
    report: Report


def build(pieces: Pieces, around: Around, limits: Limits) -> Window:
    """The window. The same arguments give the same window; a higher limit never gives fewer items.

    Raises ModelError ``window-too-large`` where what stands before the thread and the newest word of the user are too much by themselves.
    """
    return _Builder(pieces, around, limits).build()


@dataclasses.dataclass(frozen=True, slots=True)
class _Rooms:
    """Tokens that each part may have. Each grows with the limit, or stays: so a higher limit never gives less of anything."""

    tools: int
    state: int
    thread: int


class _Builder:
    def __init__(self, pieces: Pieces, around: Around, limits: Limits) -> None:
        self._pieces, self._around, self._limits = pieces, around, limits
        self._instructions = "\n\n".join(each.text for each in around.prefix if each.text)
        self._newest = pieces[pieces.newest_word] if pieces.newest_word is not None else None
        self._left: list[Left] = []
        self._system = estimates.of_text(self._instructions) + estimates.AN_ANSWER
        self._word = self._newest.size(pointers=False) if self._newest is not None else Size()
        self._known = [*around.state, *(around.knowledge(_text(self._newest)) if self._newest is not None else ())]
        self._all_tools = estimates.of_tools(around.tools)
        self._all_known = sum(estimates.of_text(_headed(each)) for each in self._known)

    def build(self) -> Window:
        rooms = self._strict(self._limits.hard_limit) if self._limits.hard_limit is not None else self._loose()
        tools = self._tools(rooms.tools)
        known = self._state(rooms.state)
        summary, room = self._summary(rooms.thread)
        kept, whole = self._kept(room, 1 if summary is not None else 0)
        ordered = [(number, number in whole) for number in kept]
        if (newest := self._pieces.newest_word) is not None:
            ordered.append((newest, True))
        ordered.sort()
        items = [] if summary is None else list(summary.items(pointers=False))
        for number, is_whole in ordered:
            items += self._pieces[number].items(pointers=not is_whole)
        state = "\n\n".join(_headed(each) for each in known)
        return Window(
            instructions=self._instructions,
            items=tuple(items),
            tools=tools,
            state=state,
            whole=not state and summary is None and not self._left,
            report=self._report(tools, known, summary, ordered),
        )

    # How much room each part has.

    def _loose(self) -> _Rooms:
        """Everything around the thread has its place, and the thread has the rest."""
        most = self._limits.compress_at
        around = self._system + self._all_tools + self._all_known
        if around + self._word.tokens > most:
            raise self._too_large(around + self._word.tokens, most)
        return _Rooms(self._all_tools, self._all_known, most - around - self._word.tokens)

    def _strict(self, most: int) -> _Rooms:
        """Each has its share; what a share does not need at all is the thread's."""
        fixed = self._system + self._word.tokens
        if fixed > most:
            raise self._too_large(fixed, most)
        margin, system, known, thread = (
            most * round(100 * each) // 100 for each in (MARGIN, SYSTEM, KNOWLEDGE, CONVERSATION)
        )
        usable = max(fixed, most - margin)
        spare = max(0, system - self._system - self._all_tools) + max(0, known - self._all_known)
        room = thread + spare - max(0, self._system - system) - self._word.tokens
        tools = max(0, min(system - self._system, usable - fixed))
        # A word that is larger than the thread's share takes what it needs of what is told beside it.
        state = max(0, min(known, usable - fixed - min(tools, self._all_tools)))
        return _Rooms(tools, state, max(0, room))

    def _too_large(self, needed: int, most: int) -> ModelError:
        return ModelError(
            "window-too-large",
            f"what must be sent may have {needed:,} tokens, and the window has {most:,}: nothing was sent",
            mend="say it in fewer words, or allow a larger window (`--hard-limit`, `--compress-at`)",
            evidence={"limit": most, "needed": needed, "system": self._system, "newest": self._word.tokens},
        )

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
            part = _cut(each, room)
            told = estimates.of_text(_headed(part)) if part is not None else 0
            if part != each:
                self._left.append(Left(each.name, 0, NO_SHARE, estimates.of_text(_headed(each)) - told))
            if part is not None:
                taken.append(part)
                room -= told
        return taken

    def _summary(self, room: int) -> tuple[Piece | None, int]:
        """The summary, where it takes no more than half of the thread's room; and what is left of that."""
        summary = self._pieces.summary
        if summary is None:
            return None, room
        tokens = summary.size(pointers=False).tokens
        if tokens > room // 2:
            why = "it is larger than half of what the thread may have"
            self._left.append(Left("summary", summary.line, why, tokens))
            return None, room - room // 2
        return summary, room - tokens

    def _kept(self, room: int, before: int) -> tuple[list[int], set[int]]:
        """Which pieces stay, the newest first, and which of them have their outputs whole. The newest word is none of them: it stays always."""
        rest = Size(
            room,
            _rest(self._limits.max_chars, self._word.chars),
            _rest(self._limits.max_messages, self._word.messages + before),
        )
        half = Size(rest.tokens // 2, rest.chars // 2, rest.messages)
        kept: list[int] = []
        wholes, skeleton = Size(), Size()
        fit_whole = fit_skeleton = True
        for number in range(len(self._pieces) - 1, -1, -1):
            piece = self._pieces[number]
            if number == self._pieces.newest_word or (piece.what == "events" and not self._limits.events):
                continue
            wholes += piece.size(pointers=not self._limits.tool_results)
            skeleton += piece.size(pointers=True)
            fit_whole = fit_whole and wholes.within(rest)
            fit_skeleton = fit_skeleton and skeleton.within(half)
            if not (fit_whole or fit_skeleton):
                self._leave_from(number)
                break
            kept.append(number)
        return kept, self._made_whole(kept, rest)

    def _made_whole(self, kept: Sequence[int], rest: Size) -> set[int]:
        """Those of the pieces that have their outputs whole: from the newest on, as far as there is room."""
        total = sum((self._pieces[number].size(pointers=True) for number in kept), Size())
        whole: set[int] = set()
        room = self._limits.tool_results
        for number in kept:
            piece = self._pieces[number]
            large, small = piece.size(pointers=False), piece.size(pointers=True)
            room = room and (total - small + large).within(rest)
            if room:
                total = total - small + large
                whole.add(number)
            elif large.tokens > small.tokens:
                why = NO_ROOM if self._limits.tool_results else "outputs are not wanted"
                self._left.append(Left("outputs", piece.line, why, large.tokens - small.tokens))
        return whole

    def _leave_from(self, number: int) -> None:
        """This piece and all before it are left out, but for the newest word; they are not looked at one by one."""
        newest = self._pieces.newest_word
        is_newest = newest is not None and newest < number
        tokens = self._pieces.tokens_before(number + 1) - (self._word.tokens if is_newest else 0)
        self._left.append(Left(f"{number + 1 - is_newest} of the oldest", self._pieces[0].line, NO_ROOM, tokens))

    def _report(
        self, tools: Sequence[Tool], known: Sequence[Part], summary: Piece | None, ordered: Sequence[tuple[int, bool]]
    ) -> Report:
        strict = self._limits.hard_limit is not None
        thread = sum((self._pieces[number].size(pointers=not whole) for number, whole in ordered), Size()) - self._word
        parts = [Section(each.name, estimates.of_text(_headed(each))) for each in known]
        summed = [Section("summary", summary.size(pointers=False).tokens, messages=1)] if summary is not None else []
        return Report(
            limit=self._limits.hard_limit or self._limits.compress_at,
            sections=(
                Section("system", self._system, SYSTEM if strict else None),
                Section("tools", estimates.of_tools(tools)),
                *parts,
                *summed,
                Section("thread", thread.tokens, CONVERSATION if strict else None, thread.messages),
                Section("newest word", self._word.tokens, messages=self._word.messages),
            ),
            left=tuple(self._left),
            rungs=(self._rung("pointers", "outputs"), self._rung("dropped", "of the oldest")),
        )

    def _rung(self, name: RungName, what: str) -> Rung:
        saved = sum(each.tokens for each in self._left if each.what.endswith(what))
        return Rung(name, "saved", saved) if saved else Rung(name, "not needed")


NO_ROOM, NO_SHARE = "there is no room", "its share is used up"
_ENDLESS = 2**62


def _rest(most: int | None, used: int) -> int:
    return _ENDLESS if most is None else max(0, most - used)


def _text(piece: Piece) -> str:
    """What the newest word says."""
    return " ".join(each.text for each in piece.items(pointers=False) if isinstance(each, Message))


def _headed(part: Part) -> str:
    return f"## {part.name}\n{part.text}"


def _cut(part: Part, room: int) -> Part | None:
    """The part as far as there is room for it, line by line; None where not even its first line has any."""
    lines = part.text.splitlines()
    for most in range(len(lines), 0, -1):
        cut = part if most == len(lines) else Part(part.name, "\n".join([*lines[:most], "… (cut)"]))
        if estimates.of_text(_headed(cut)) <= room:
            return cut
    return None
