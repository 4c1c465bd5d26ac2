"""What stands in one thread with a model, folded from the log: what it was told, what it answered, and what became of the calls that it asked for."""

from __future__ import annotations

import bisect
import dataclasses
from collections.abc import Collection

from runtime.log import entries


@dataclasses.dataclass(slots=True)
class Done:
    """What became of a call that a model asked for."""

    call: entries.Call | None = None
    """The last entry that says that it was begun."""
    result: entries.Result | None = None
    """Of that entry."""
    told: entries.ToolResult | None = None


@dataclasses.dataclass(slots=True)
class Exchange:
    """An answer, and what became of its calls."""

    answer: entries.Assistant
    done: dict[str, Done]
    """By the id of each call that it asks for, in order."""


@dataclasses.dataclass(slots=True)
class Happened:
    """What happened between two things that were said."""

    events: list[entries.Event]
    """In order, one at least."""


Saying = entries.User | Exchange | entries.ModelError | Happened
"""What a request may hold a part of: a word, an answer with its calls, what had come of one that failed, what happened meanwhile."""


@dataclasses.dataclass(slots=True)
class Thread:
    """The fold. ``add`` takes the entries of the thread in order."""

    said: list[Saying] = dataclasses.field(default_factory=list["Saying"])
    """What the model was told and what it answered, oldest first. Of requests that failed only the last try."""
    summary: entries.Summary | None = None
    """The last one."""
    newest_word: int | None = None
    """Where in ``said`` the last thing stands that the model was told."""
    _ends: list[int] = dataclasses.field(default_factory=list[int])
    """Of each saying: the tokens up to its end."""
    _asked: dict[str, tuple[int, Done]] = dataclasses.field(default_factory=dict[str, tuple[int, Done]])
    """The calls, each with where its exchange stands."""
    _begun: dict[str, Done] = dataclasses.field(default_factory=dict[str, Done])

    def add(self, entry: entries.AnyEntry) -> None:
        """Take an entry; those that are no part of a conversation say nothing here."""
        match entry:
            case entries.User():
                self.newest_word = len(self.said)
                self._say(entry, entry.tokens)
            case entries.Event():
                self._happened(entry)
            case entries.ModelError(again=None, pending=None):
                self._say(entry, entry.tokens)
            case entries.Summary():
                self.summary = entry
            case entries.Assistant():
                done = {each.id: Done() for each in entry.calls or ()}
                self._asked |= {name: (len(self.said), each) for name, each in done.items()}
                self._say(Exchange(entry, done), entry.tokens)
            case entries.Call(asked=str(asked)) if asked in self._asked:
                done = self._begun[entry.call] = self._asked[asked][1]
                done.call, done.result = entry, None
            case entries.Result() if entry.call in self._begun and (done := self._begun[entry.call]).call is not None:
                if done.call.call == entry.call:
                    done.result = entry
            case entries.ToolResult() if entry.asked in self._asked:
                number, done = self._asked[entry.asked]
                done.told = entry
                for later in range(number, len(self.said)):
                    self._ends[later] += entry.tokens
            case _:
                pass

    def _say(self, saying: Saying, tokens: int) -> None:
        self.said.append(saying)
        self._ends.append(self.tokens_before(len(self.said) - 1) + tokens)

    def _happened(self, event: entries.Event) -> None:
        """What happens in a row is told in one message."""
        last = self.said[-1] if self.said else None
        if isinstance(last, Happened):
            last.events.append(event)
            self._ends[-1] += event.tokens
        else:
            self._say(Happened([event]), event.tokens)

    @property
    def ids(self) -> Collection[str]:
        """Of all calls that were asked for."""
        return self._asked.keys()

    def tokens_before(self, number: int) -> int:
        """Tokens of all sayings before that one."""
        return self._ends[number - 1] if number else 0

    @property
    def first(self) -> int:
        """Where in ``said`` that begins for which no summary stands."""
        if self.summary is None:
            return 0
        return bisect.bisect_right(self.said, self.summary.upto, key=line_of)


def line_of(saying: Saying) -> int:
    """The line of the log with which it begins."""
    match saying:
        case Exchange():
            return saying.answer.seq
        case Happened():
            return saying.events[0].seq
        case _:
            return saying.seq
