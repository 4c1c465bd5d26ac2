"""What stands in one thread with a model, folded from the log: what it was told, what it answered, and what became of the calls that it asked for."""

from __future__ import annotations

import dataclasses

from runtime import log


@dataclasses.dataclass(slots=True)
class Done:
    """What became of a call that a model asked for."""

    call: log.Call | None = None
    """The last entry that says that it was begun."""
    result: log.Result | None = None
    """Of that entry."""
    told: log.Told | None = None


@dataclasses.dataclass(slots=True)
class Exchange:
    """An answer, and what became of its calls."""

    answer: log.Assistant
    done: dict[str, Done]
    """By the id of each call that it asks for, in order."""


@dataclasses.dataclass(slots=True)
class Thread:
    """The fold. ``add`` takes the entries of the thread in order."""

    said: list[log.User | Exchange] = dataclasses.field(default_factory=list["log.User | Exchange"])
    """What the model was told and what it answered, oldest first."""
    _asked: dict[str, Done] = dataclasses.field(default_factory=dict[str, Done])
    _begun: dict[str, Done] = dataclasses.field(default_factory=dict[str, Done])

    def add(self, entry: log.AnyEntry) -> None:
        """Take an entry; those that are no part of a conversation say nothing here."""
        match entry:
            case log.User():
                self.said.append(entry)
            case log.Assistant():
                done = {each.id: Done() for each in entry.calls or ()}
                self._asked |= done
                self.said.append(Exchange(entry, done))
            case log.Call(asked=str(asked)) if asked in self._asked:
                done = self._begun[entry.call] = self._asked[asked]
                done.call, done.result = entry, None
            case log.Result() if entry.call in self._begun and (done := self._begun[entry.call]).call is not None:
                if done.call.call == entry.call:
                    done.result = entry
            case log.Told() if entry.asked in self._asked:
                self._asked[entry.asked].told = entry
            case _:
                pass
