"""The fold that runs and sessions share: each thread with a model (messages, answers, outcomes of the calls), and the costs."""

from __future__ import annotations

import abc
import bisect
import dataclasses
from collections.abc import Collection

from runtime.log import entries, ledger


@dataclasses.dataclass(slots=True)
class Done:
    call: entries.Call | None = None
    result: entries.Result | None = None
    output: entries.ToolResult | None = None


@dataclasses.dataclass(slots=True)
class Exchange:
    answer: entries.Assistant
    done: dict[str, Done]  # outcomes by the id of each call that it asks for, in order


@dataclasses.dataclass(slots=True)
class Happened:
    events: list[entries.Event]


Saying = entries.User | Exchange | entries.ModelError | entries.Event | Happened
"""A possible part of a request: a message, an answer with its calls, the text of a failed answer, a run, events in between."""


@dataclasses.dataclass(slots=True)
class Thread:
    """Fold of one thread. ``add`` takes its entries in order."""

    said: list[Saying] = dataclasses.field(default_factory=list["Saying"])
    """Messages to the model and its answers, oldest first. Of failed requests only the last try."""
    heard: dict[int, entries.Heard] = dataclasses.field(default_factory=dict[int, "entries.Heard"])
    """Messages that the model does not have yet, by their line."""
    broken: dict[int, str] = dataclasses.field(default_factory=dict[int, str])
    """What came of answers in whose midst a process ended, by the line of the first part."""
    summary: entries.Summary | None = None
    stopped: bool = False
    """True if a person has stopped the work, and its end is not logged yet."""
    newest_word: int | None = None  # position in `said` of the last message to the model
    _ends: list[int] = dataclasses.field(default_factory=list[int])
    _asked: dict[str, tuple[int, Done]] = dataclasses.field(default_factory=dict[str, tuple[int, Done]])
    """Calls by id, each with the position of its exchange."""
    _told: set[str] = dataclasses.field(default_factory=set[str])  # ids of the calls as which runs are told
    _begun: dict[str, Done] = dataclasses.field(default_factory=dict[str, Done])
    _arriving: int | None = None  # the line of the first part of the answer on its way

    def add(self, entry: entries.AnyEntry) -> None:
        self._arrive(entry)
        self._stop(entry)
        match entry:
            case entries.User():
                self.newest_word = len(self.said)
                self._say(entry, entry.tokens)
                self.heard.pop(entry.heard or 0, None)
            case entries.Heard():
                self.heard[entry.seq] = entry
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
                done.output = entry
                for later in range(number, len(self.said)):
                    self._ends[later] += entry.tokens
            case _:
                pass

    def _arrive(self, entry: entries.AnyEntry) -> None:
        match entry:
            case entries.Arrived():
                self._arriving = self._arriving or entry.seq
                self.broken[self._arriving] = self.broken.get(self._arriving, "") + entry.text
            case entries.Assistant() | entries.ModelError():
                self.broken.pop(self._arriving or 0, None)
                self._arriving = None
            case entries.Note(name="requested"):
                self._arriving = None
            case _:
                pass

    def _stop(self, entry: entries.AnyEntry) -> None:
        match entry:
            case entries.Note(name="stopped"):
                self.stopped = True
            case entries.User() | entries.ModelError(again=None, pending=None):
                self.stopped = False
            case _:
                pass

    def _happened(self, entry: entries.Event) -> None:
        last = self.said[-1] if self.said else None
        if entry.asked is not None:
            self._told.add(entry.asked)
            self._say(entry, entry.tokens)
        elif isinstance(last, Happened) and not self._covers(last):
            last.events.append(entry)
            self._ends[-1] += entry.tokens
        else:
            self._say(Happened([entry]), entry.tokens)

    def _say(self, saying: Saying, tokens: int) -> None:
        self.said.append(saying)
        self._ends.append(self.tokens_before(len(self.said) - 1) + tokens)

    def _covers(self, saying: Saying) -> bool:
        return self.summary is not None and line_of(saying) <= self.summary.upto

    @property
    def ids(self) -> Collection[str]:
        return self._asked.keys() | self._told

    def tokens_before(self, number: int) -> int:
        return self._ends[number - 1] if number else 0

    @property
    def first(self) -> int:
        """Position in ``said`` of the first saying that no summary covers."""
        if self.summary is None:
            return 0
        return bisect.bisect_right(self.said, self.summary.upto, key=line_of)


def line_of(saying: Saying) -> int:
    match saying:
        case Exchange():
            return saying.answer.seq
        case Happened():
            return saying.events[0].seq
        case _:
            return saying.seq


class Fold(abc.ABC):
    """State folded from a log. ``add`` takes its entries in order; everything else reads."""

    def __init__(self) -> None:
        self.started = ""
        self.last_at = ""
        self.last_seq = 0
        self.epoch = 0
        self.budget: str | None = None  # budget for models, as last set
        self.ledger = ledger.Ledger()
        self._threads: dict[str, Thread] = {}

    @abc.abstractmethod
    def add(self, entry: entries.AnyEntry) -> None: ...

    @abc.abstractmethod
    def threads_that_count(self, path: str) -> list[str]:
        """Return the threads, the latest first, whose answers are still valid for a requester at ``path``."""

    def thread(self, name: str) -> Thread:
        return self._threads.get(name) or Thread()

    def _claimed(self, entry: entries.Note) -> None:
        self.epoch = int(entry.data["epoch"])
        self.budget = entry.data.get("budget", self.budget)
        self.ledger.stopped(entry.at)
