"""The window: the part of a thread that a request contains, with the frame around it: a pure function of log, frame and limits.

If not everything fits, old outputs of tools become pointers, then whole exchanges are left out, oldest first; the report lists both. Where
the limits summarize, a summary covers them before anything is sent (``request.py``). The user's newest message and the prefix always stay.
The time to build it depends on the size of the window, not the thread.
"""

from __future__ import annotations

import bisect
import dataclasses
from collections.abc import Callable, Sequence
from typing import Literal, Protocol

from pydantic import BaseModel, ConfigDict, Field

from nodes.errors import ModelError
from nodes.values import Json
from runtime.context.report import Left, Reduction, Report, Section
from runtime.messages import estimates
from runtime.messages.messages import Item, Message, Tool
from runtime.observation import page_text
from runtime.settings.shares import Known, Shares

Strategy = Literal["injected", "clean", "hybrid"]
"""State in each request: ``injected``: all; ``clean``: none, as each part has a tool; ``hybrid``: plan and status line."""

Overflow = Literal["prune", "summarize", "summarize-only"]
"""Treatment of exchanges that do not fit: left out; summed up, or left out without a summary; summed up, or nothing is sent."""

Kind = Literal["user", "exchange", "error", "summary", "run", "events"]

RECENT_ARGUMENTS = 2_500  # tokens of the newest part in which replaced arguments stay, where all outputs are whole

STRICT = 1_500  # tokens of a hard limit, if none is named

CONTINUE = "continue"
"""Message with which a person asks for the answer to what was said before."""

HUNDRED = 100  # a limit that suffices is told in these steps
DOUBLED = 24  # number of times that such a limit is doubled until none is found


class Limits(BaseModel):
    """Limits of a window. The settings ``window_…`` describe them."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    strategy: Strategy = "hybrid"
    max_messages: int | None = Field(default=None, ge=1)
    max_chars: int | None = Field(default=None, ge=1)
    tool_results: bool = True
    recent_outputs: int | None = Field(default=None, ge=1)
    events: bool = True
    hard_limit: int | None = Field(default=None, ge=1)
    shares: Known = Shares()
    overflow: Overflow = "summarize"
    min_recent: int = Field(default=4, ge=0)
    top_k: int = Field(default=3, ge=0)
    checkpoint_at: int | None = Field(default=None, ge=1)
    checkpoint_messages: int | None = Field(default=None, ge=1)
    warn_at: int = Field(default=160_000, ge=1)
    compress_at: int = Field(default=180_000, ge=1)
    compress_to: int = Field(default=20_000, ge=1)


@dataclasses.dataclass(frozen=True, slots=True)
class Size:
    """Size of a part of a request; its tokens are an upper bound."""

    tokens: int = 0
    chars: int = 0
    messages: int = 0

    def __add__(self, other: Size) -> Size:
        return Size(self.tokens + other.tokens, self.chars + other.chars, self.messages + other.messages)

    def __sub__(self, other: Size) -> Size:
        return Size(self.tokens - other.tokens, self.chars - other.chars, self.messages - other.messages)

    def within(self, most: Size) -> bool:
        """True if it is larger than ``most`` in nothing."""
        return self.tokens <= most.tokens and self.chars <= most.chars and self.messages <= most.messages


class Fitting:
    """The rule which of the newest items stay, asked of each in turn, the newest first.

    Outputs count as pointers here. A reserve of at most half of ``rest`` is kept for whole outputs of later items.
    """

    def __init__(self, rest: Size) -> None:
        self._rest, self._skeleton, self._beyond = rest, Size(), Size()

    def takes(self, item: WindowItem, *, whole: bool) -> bool:
        """True if the item fits after those taken before it; ``whole``: its outputs are wanted whole."""
        rest, beyond = self._rest, self._beyond
        skeleton = self._skeleton + item.small
        reserve = Size(min(rest.tokens // 2, beyond.tokens), min(rest.chars // 2, beyond.chars))
        if not (skeleton + reserve).within(rest):
            return False
        self._skeleton = skeleton
        self._beyond += item.large - item.small if whole else Size()
        return True


@dataclasses.dataclass(frozen=True, slots=True)
class WindowItem:
    """Unit that is kept or left out as a whole: a message, an answer with its calls and outputs, a summary, events."""

    what: Kind
    line: int
    large: Size
    small: Size  # size with pointers in place of outputs: in nothing larger than `large`
    read: Callable[[bool], tuple[Item, ...]] = dataclasses.field(compare=False)
    """Returns its items in a request; the argument is true for pointers in place of outputs."""
    later: WindowItem | None = (
        None  # the same once it is not recent: with pointers for the arguments that were replaced since
    )
    saved: int = 0  # tokens of arguments that were replaced

    def size(self, *, pointers: bool) -> Size:
        return self.small if pointers else self.large

    def items(self, *, pointers: bool) -> tuple[Item, ...]:
        return self.read(pointers)


class Pieces(Protocol):
    """Items of a thread for a window, oldest first: those since its last summary."""

    def __len__(self) -> int: ...

    def __getitem__(self, number: int, /) -> WindowItem: ...

    @property
    def summary(self) -> WindowItem | None:
        """The summary of everything before the first item."""
        return None

    @property
    def newest_word(self) -> int | None:
        """The number of the user's newest message; None if a summary includes it."""
        return None

    @property
    def word(self) -> WindowItem | None:
        """The user's newest message, even if a summary includes it."""
        return None

    def tokens_before(self, number: int) -> int:
        """Return the tokens of all items before that one, outputs whole."""
        ...


@dataclasses.dataclass(frozen=True, slots=True)
class Part:
    name: str
    text: str
    on_tools: bool = False  # true if it is about tools: it is said only where some are offered
    shorter: tuple[str, ...] = ()  # shorter texts of the same, the longest first, for a window without room
    rest: str = ""  # what has the whole if it is cut: the name of a tool


@dataclasses.dataclass(frozen=True, slots=True)
class RequestFrame:
    prefix: tuple[Part, ...]  # instructions before the thread, in order; always whole
    tools: tuple[Tool, ...] = ()  # the most important first: the last ones may not fit
    state: tuple[Part, ...] = ()  # session state after the thread, the most important first
    knowledge: Callable[[str], Sequence[Part]] = lambda _asked: ()
    """Returns the knowledge about a question, the best first."""
    on_knowledge: Part | None = None  # what is said before knowledge, where some is sent


@dataclasses.dataclass(frozen=True, slots=True)
class Window:
    instructions: str
    items: tuple[Item, ...]
    tools: tuple[Tool, ...]
    state: str
    report: Report
    rest: Size = dataclasses.field(default=Size(), compare=False)
    """What the thread may have in it, its summary included, without the newest message."""


def build(items: Pieces, around: RequestFrame, limits: Limits) -> Window:
    """Build the window. Raises ModelError ``window-too-large`` if prefix and newest message alone are too large."""
    return _Builder(items, around, limits).build()


def enough(items: Pieces, around: RequestFrame, limits: Limits) -> dict[str, int]:
    """Return the limits, by name, with which nothing is left out for lack of room; those that suffice as they are do not count."""
    every = sum((items[number].small for number in range(len(items))), Size())
    whole = sum((items[number].large for number in range(len(items))), Size())
    if items.summary is not None:
        every, whole = every + items.summary.large, whole + items.summary.large
    # Of the room, up to a half is kept for whole outputs, or for the summary.
    needed = {"max_messages": every.messages + 1, "max_chars": min(2 * every.chars, whole.chars) + 1}
    if items.word is not None:
        needed["max_chars"] += items.word.large.chars
    if items.summary is not None:
        needed["max_chars"] = max(needed["max_chars"], 2 * items.summary.large.chars)
    found = {name: most for name, most in needed.items() if most > (getattr(limits, name) or _ENDLESS)}
    wide = limits.model_copy(update=dict.fromkeys(needed))

    def suffices(most: int) -> bool:
        try:
            return not _Builder(items, around, _with_tokens(wide, most)).build().report.lost
        except ModelError:
            return False

    if not suffices(tokens_of(limits)):
        found |= _least(limits, suffices)
    return found


def tokens_of(limits: Limits) -> int:
    """Return the most tokens of a request."""
    return limits.hard_limit or limits.compress_at


def _with_tokens(limits: Limits, most: int) -> Limits:
    return limits.model_copy(update={_token_limit(limits): most})


def _token_limit(limits: Limits) -> str:
    return "hard_limit" if limits.hard_limit is not None else "compress_at"


def _least(limits: Limits, suffices: Callable[[int], bool]) -> dict[str, int]:
    """Return the least token limit, in hundreds, that suffices; nothing if none does."""
    first = tokens_of(limits) // HUNDRED + 1
    most = next((2**power for power in range(DOUBLED) if suffices((first + 2**power) * HUNDRED)), None)
    if most is None:
        return {}
    steps = range(first, first + most + 1)
    least = bisect.bisect_left(steps, 1, key=lambda step: 1 if suffices(step * HUNDRED) else 0)
    return {_token_limit(limits): steps[least] * HUNDRED}


class _Builder:
    def __init__(self, items: Pieces, around: RequestFrame, limits: Limits) -> None:
        self._items, self._around, self._limits = items, around, limits
        self._first_whole = _first_recent(items, limits.recent_outputs) if limits.tool_results else len(items)
        self._first_current = _first_recent(items, limits.recent_outputs or RECENT_ARGUMENTS)
        self._left: list[Left] = []
        self._word = items.word.large if items.word is not None else Size()
        self._instruct(with_tools=False)

    def build(self) -> Window:
        tools, known, room = self._frame()
        summary, rest = self._summary(room)
        kept = self._kept(rest)
        whole = self._made_whole(kept, rest)
        newest, word = self._items.newest_word, self._items.word
        items: list[Item] = []
        if word is not None and newest is None:
            items += word.items(pointers=False)
        if summary is not None:
            items += summary.items(pointers=False)
        for number in sorted(kept if newest is None else [*kept, newest]):
            items += self._item(number).items(pointers=not (number == newest or number in whole))
        report = self._report(room, tools, known, summary, kept, whole)
        return Window(self._instructions, tuple(items), tools, _joined(known), report, self._beside_word(room))

    def _item(self, number: int) -> WindowItem:
        item = self._items[number]
        return item.later if item.later is not None and number < self._first_current else item

    def _frame(self) -> tuple[tuple[Tool, ...], list[Part], int]:
        """Return the tools and the state that fit into their shares, and the tokens left to the thread. Raises ModelError."""
        strict, share = self._limits.hard_limit, self._limits.shares
        most = strict or self._limits.compress_at
        margin = most * share.free // 100 if strict else 0
        self._instruct(with_tools=True)
        free = most - self._system - self._word.tokens - margin
        tools = self._tools(min(free, most * share.system // 100 - self._system) if strict else free)
        if not tools:
            self._instruct(with_tools=False)
        fixed = self._system + self._word.tokens
        if fixed > most:
            raise ModelError(
                "window-too-large",
                f"what must be sent may have {fixed:,} tokens, and the window has {most:,}: nothing was sent",
                fix="say it in fewer words, or allow a larger window (`hard_limit`, `compress_at`)",
                evidence={
                    "limit": most,
                    "needed": fixed,
                    "system": self._system,
                    "newest": self._word.tokens,
                    "enough": dict[str, Json](self.enough_to_continue()),
                },
            )
        free = max(0, most - fixed - margin - estimates.of_tools(tools))
        known = self._state(min(free, most * share.state // 100) if strict else free // 2)
        return tools, known, free - _tokens(known)

    def enough_to_continue(self) -> dict[str, int]:
        """Return the token limit with which the newest message fits, and so does one word behind it: a request to continue."""
        last, limits = Message("user", CONTINUE), self._limits
        earlier = len(self._items) > (self._items.newest_word is not None) or self._items.summary is not None

        def suffices(most: int) -> bool:
            other = _Builder(self._items, self._around, _with_tokens(limits, most))
            other._word = Size(estimates.of_item(last), len(CONTINUE), 1)
            if other._system + other._word.tokens > most:
                return False
            room = other._frame()[2]
            # What was said before may need a summary.
            return room >= self._word.tokens + (min(limits.compress_to, room // 2) if earlier else 0)

        return _least(limits, suffices)

    def _instruct(self, *, with_tools: bool) -> None:
        said = [each.text for each in self._around.prefix if each.text and (with_tools or not each.on_tools)]
        self._instructions = "\n\n".join(said)
        self._system = (estimates.of_text(self._instructions) if said else 0) + estimates.AN_ANSWER

    def _tools(self, room: int) -> tuple[Tool, ...]:
        taken: list[Tool] = []
        for each in self._around.tools:
            if estimates.of_tools([*taken, each]) <= room:
                taken.append(each)
            else:
                self._left.append(Left(f"tool {each.name}", 0, NO_SHARE, estimates.of_tools([each])))
        return tuple(taken)

    def _state(self, room: int) -> list[Part]:
        word = self._items.word
        asked = " ".join(each.text for each in word.items(pointers=False) if isinstance(each, Message)) if word else ""
        taken: list[Part] = []
        known = self._around.knowledge(asked) if word is not None else ()
        rule = self._around.on_knowledge if known else None
        state = [each for each in self._around.state if each.text]
        shares = _shares([estimates.of_text(_headed(each)) for each in state], room)
        more = [each for each in (rule, *known) if each is not None and each.text]
        for number, each in enumerate([*state, *more]):
            within = min(room, _tokens(taken) + shares[number]) if number < len(state) else room
            part = _cut(taken, each, within)
            if part is not None:
                taken.append(part)
            if part != each:
                lost = estimates.of_text(_headed(each)) - (estimates.of_text(_headed(part)) if part is not None else 0)
                self._left.append(Left(each.name, 0, NO_SHARE, lost))
        if rule is not None and taken and taken[-1] is rule:
            # No section had room.
            taken.pop()
        return taken

    def _summary(self, room: int) -> tuple[WindowItem | None, Size]:
        """Return the summary, if it takes at most half of the thread's budget, and the rest of the budget."""
        rest = self._beside_word(room)
        summary = self._items.summary
        if summary is None:
            return None, rest
        if takes_summary(summary, rest):
            return summary, rest - summary.large
        why = "it is larger than half of what the thread may have"
        self._left.append(Left("summary", summary.line, why, summary.large.tokens, lost=True))
        return None, rest

    def _beside_word(self, room: int) -> Size:
        limits, word = self._limits, self._word
        return Size(room, _rest(limits.max_chars, word.chars), _rest(limits.max_messages, word.messages))

    def _kept(self, rest: Size) -> list[int]:
        """Return the items that stay, the newest first, without the newest message, which always stays."""
        kept: list[int] = []
        fitting = Fitting(rest)
        followed = False
        for number in range(len(self._items) - 1, -1, -1):
            item = self._item(number)
            if number == self._items.newest_word:
                followed = True
            elif item.what == "error" and not followed:
                # A broken-off answer at the end is useful only if a later message continues it.
                pass
            elif item.what in ("run", "events") and not self._limits.events:
                self._left.append(Left(item.what, item.line, NOT_WANTED, item.small.tokens))
            else:
                followed = True
                if not fitting.takes(item, whole=number >= self._first_whole):
                    self._leave_from(number)
                    break
                kept.append(number)
        return kept

    def _made_whole(self, kept: Sequence[int], rest: Size) -> set[int]:
        total = sum((self._item(number).small for number in kept), Size())
        whole: set[int] = set()
        for number in kept:
            item = self._item(number)
            if item.saved:
                self._left.append(Left(ARGUMENTS, item.line, REPLACED, item.saved))
            larger = total - item.small + item.large
            if item.large == item.small or (number >= self._first_whole and larger.within(rest)):
                total = larger
                whole.add(number)
            else:
                why = NOT_WANTED if not self._limits.tool_results else NO_ROOM if number >= self._first_whole else OLD
                self._left.append(Left(OUTPUTS, item.line, why, item.large.tokens - item.small.tokens))
        return whole

    def _leave_from(self, number: int) -> None:
        """Leave out this item and all before it, except the newest message; reads only the first."""
        newest = self._items.newest_word
        has_word = newest is not None and newest < number
        tokens = self._items.tokens_before(number + 1) - (self._word.tokens if has_word else 0)
        self._left.append(Left(f"{number + 1 - has_word} {OLDEST}", self._items[0].line, NO_ROOM, tokens, lost=True))

    # The report.

    def _report(
        self,
        room: int,
        tools: Sequence[Tool],
        known: Sequence[Part],
        summary: WindowItem | None,
        kept: Sequence[int],
        whole: set[int],
    ) -> Report:
        limits, newest = self._limits, self._items.newest_word
        strict = limits.hard_limit is not None
        thread = sum((self._item(number).size(pointers=number not in whole) for number in kept), Size())
        summed = self._items.summary.large.tokens if self._items.summary is not None else 0
        said = summed + self._items.tokens_before(len(self._items)) - (self._word.tokens if newest is not None else 0)
        parts = [Section(each.name, tokens) for each, tokens in zip(known, _each_tokens(known), strict=True)]
        return Report(
            limit=limits.hard_limit or limits.compress_at,
            sections=(
                Section("system", self._system, limits.shares.system / 100 if strict else None),
                Section("tools", estimates.of_tools(tools)),
                *parts,
                *([Section("summary", summed, messages=1)] if summary is not None else ()),
                Section("thread", thread.tokens, limits.shares.conversation / 100 if strict else None, thread.messages),
                Section("newest word", self._word.tokens, messages=self._word.messages),
            ),
            left=tuple(self._left),
            rungs=self._rungs(said > room),
            said=said,
            warn_at=0 if strict else limits.warn_at,
        )

    def _rungs(self, is_tight: bool) -> tuple[Reduction, Reduction]:
        """Report what pointers and leaving out have saved. ``is_tight``: the whole thread exceeds its token budget."""
        small = sum(each.tokens for each in self._left if each.what == OUTPUTS)
        gone = sum(each.tokens for each in self._left if each.what.endswith(OLDEST))
        if small:
            pointers = Reduction("pointers", "saved", small)
        else:
            pointers = Reduction("pointers", "no effect" if is_tight or gone else "not needed")
        return pointers, Reduction("dropped", "saved", gone) if gone else Reduction("dropped", "not needed")


NO_ROOM, NO_SHARE, NOT_WANTED = "there is no room", "its share is used up", "they are not wanted"
OLD = "they are not recent"
REPLACED = "later ones have replaced them"
OUTPUTS, ARGUMENTS, OLDEST = "outputs", "arguments", "of the oldest"
_ENDLESS = 2**62


def _first_recent(items: Pieces, recent: int | None) -> int:
    """Return the first item whose outputs may stay whole.

    It moves only by whole steps of ``recent`` tokens. Between moves a request begins like the one before, which a server may have cached.
    The last item is always recent, however large it is.
    """
    if recent is None:
        return 0
    everything = items.tokens_before(len(items))
    begins = (everything - recent) // recent * recent
    if begins <= 0:
        return 0
    found = bisect.bisect_left(range(len(items)), begins, key=items.tokens_before)
    return min(found, max(0, len(items) - 1))


def takes_summary(summary: WindowItem, rest: Size) -> bool:
    """True if a window has the summary: it takes at most half of what the thread may have."""
    return summary.large.within(Size(rest.tokens // 2, rest.chars // 2, rest.messages))


def joined(parts: Sequence[Part], room: int) -> str:
    """Return the text of the parts, each cut to the lines that fit into the ``room`` of tokens."""
    taken: list[Part] = []
    for each in parts:
        part = _cut(taken, each, room) if each.text else None
        if part is not None:
            taken.append(part)
    return _joined(taken)


def _rest(most: int | None, used: int) -> int:
    return _ENDLESS if most is None else max(0, most - used)


def _headed(part: Part) -> str:
    return f"## {part.name}\n{part.text}"


def _joined(parts: Sequence[Part]) -> str:
    return "\n\n".join(map(_headed, parts))


def _tokens(parts: Sequence[Part]) -> int:
    return estimates.of_text(_joined(parts)) if parts else 0


def _each_tokens(parts: Sequence[Part]) -> list[int]:
    upto = [_tokens(parts[:end]) for end in range(len(parts) + 1)]
    return [upto[end + 1] - upto[end] for end in range(len(parts))]


def _shares(needs: Sequence[int], room: int) -> list[int]:
    """Divide the room: each part gets what it needs, or an equal share of what smaller ones leave."""
    shares = [0] * len(needs)
    for left, number in enumerate(sorted(range(len(needs)), key=needs.__getitem__)):
        shares[number] = min(needs[number], room // (len(needs) - left))
        room -= shares[number]
    return shares


def _cut(before: Sequence[Part], part: Part, room: int) -> Part | None:
    """Return the longest text of the part that fits after the parts before it, or lines of the shortest; None if not even one fits."""
    for text in (part.text, *part.shorter):
        whole = part if text is part.text else Part(part.name, text)
        if _tokens([*before, whole]) <= room:
            return whole
    lines = (part.shorter or (part.text,))[-1].splitlines()
    rest = f"; {part.rest} has the rest" if part.rest else ""

    def upto(most: int) -> Part:
        text = "\n".join(lines[:most])
        if text.rfind(page_text.BEGIN) > text.rfind(page_text.END):
            text = f"{text}\n{page_text.END}"
        return Part(part.name, f"{text}\n… (cut{rest})")

    def fits(most: int) -> bool:
        return _tokens([*before, upto(most)]) <= room

    most = bisect.bisect_left(range(len(lines)), 1, key=lambda number: 0 if fits(number + 1) else 1)
    return upto(most) if most and fits(most) else None
