"""What a session holds, folded from its log: what was said, what it keeps, what it cost. A session is a conversation with a person: a chat's or the Director's."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Sequence

from typing_extensions import override

from nodes.values import Json
from runtime.log import entries as log_entries
from runtime.log import ledger, threads
from runtime.log.writer import Fold


@dataclasses.dataclass(slots=True)
class SideEffect:
    """A call of a session, and its outcome."""

    call: log_entries.Call
    result: log_entries.Result | None = None


@dataclasses.dataclass(slots=True)
class Question:
    """What a person is asked in a session."""

    question: str
    choices: Sequence[str]
    free: bool
    """Whether words of their own are an answer, too."""
    place: str
    """The path of the call that asks."""
    answer: str | None = None
    lapsed: bool = False
    """Whether the person has said something else since: nobody waits for the answer any more."""


class Session(Fold):
    """The fold. ``add`` takes entries in order; everything else reads."""

    def __init__(self, entries: Iterable[log_entries.AnyEntry] = ()) -> None:
        """Folds ``entries``, if there are any."""
        self.header: log_entries.SessionHeader | None = None
        self.started = ""
        self.last_at = ""
        self.last_seq = 0
        self.epoch = 0
        self.budget: str | None = None
        """What it may spend, as it was last said."""
        self.mode: log_entries.Mode = "chat"
        self.about: str | None = None
        """The run that it is about by now."""
        self.following: log_entries.Note | None = None
        """That a run began, or went on, of which the session does not know how it ended; of several the last."""
        self.open_runs: dict[str, log_entries.Note] = {}
        """The same of each such run, by its id, in the order in which they began."""
        self.runs_of: dict[str, list[str]] = {}
        """The runs that a tool has begun, by the id of its call, in order; also those of which is known how they ended."""
        self.questions: list[Question] = []
        """What a person was asked, in order; each once."""
        self.messages = 0
        """Words of the person and answers of the model, delegates' and summaries' not counted."""
        self.ledger = ledger.Ledger()
        self.actions: dict[str, SideEffect] = {}
        """Every call, by its id, in order."""
        self._versions: dict[tuple[str, str], list[log_entries.Version]] = {}
        self._threads: dict[str, threads.Thread] = {}
        for entry in entries:
            self.add(entry)

    @override
    def add(self, entry: log_entries.AnyEntry) -> None:
        self.last_seq, self.last_at = entry.seq, entry.at
        self._threads.setdefault(entry.thread, threads.Thread()).add(entry)
        if entry.thread == log_entries.SESSION_THREAD and isinstance(entry, log_entries.User | log_entries.Assistant):
            self._heard(entry)
        match entry:
            case log_entries.Scope(session=log_entries.SessionHeader() as header):
                self.header, self.started, self.budget = header, entry.at, header.budget
                self.about = header.run
                if header.purpose == "build":
                    self.mode = "agent"
            case log_entries.Event():
                self.about = entry.run or self.about
                self._ended(entry.run)
                self.ledger.add(entry, "")
            case log_entries.Note():
                self._note(entry)
            case log_entries.Call():
                self.actions[entry.call] = SideEffect(entry)
            case log_entries.Result():
                self.actions[entry.call].result = entry
            case log_entries.Version():
                self._versions.setdefault((entry.of, entry.name), []).append(entry)
                if entry.of == "mode":
                    self.mode = entry.value
            case _:
                self.ledger.add(entry, self.path_of(entry.thread))

    def _heard(self, entry: log_entries.User | log_entries.Assistant) -> None:
        """The person, or the model, has said something."""
        self.messages += 1
        if isinstance(entry, log_entries.User) and entry.mode is not None and self.waits_for is not None:
            self.waits_for.lapsed = True

    def _note(self, entry: log_entries.Note) -> None:
        match entry.name:
            case "child-started":
                self.following = self.open_runs[str(entry.data["run"])] = entry
                if "call" in entry.data:
                    self.runs_of.setdefault(str(entry.data["call"]), []).append(str(entry.data["run"]))
            case "child-ended":
                self._ended(str(entry.data["run"]))
                self.ledger.add(entry, "")
            case "paused" | "answered":
                self._asked(entry.data)
            case "claimed":
                self.epoch = int(entry.data["epoch"])
                self.budget = entry.data.get("budget", self.budget)
                self.ledger.stopped(entry.at)
            case _:
                self.ledger.add(entry, self.path_of(entry.thread))

    def _asked(self, data: dict[str, Json]) -> None:
        """A question waits, or has its answer."""
        found = self.asked(str(data["question"]), str(data["place"]))
        if found is None:
            found = Question(str(data["question"]), list(data["choices"]), bool(data["free"]), str(data["place"]))
            self.questions.append(found)
        found.answer = data.get("answer", found.answer)

    def asked(self, question: str, place: str) -> Question | None:
        """The question, as it was asked at that place before; None where it was not."""
        every = (each for each in self.questions if (each.question, each.place) == (question, place))
        return next(every, None)

    @property
    def waits_for(self) -> Question | None:
        """The question that was asked last, while it has no answer, and the person has said nothing else."""
        last = self.questions[-1] if self.questions else None
        return last if last is not None and last.answer is None and not last.lapsed else None

    def _ended(self, run: str | None) -> None:
        """A run is followed no more; without a name all of them."""
        if run is None:
            self.open_runs.clear()
        else:
            self.open_runs.pop(run, None)
        self.following = next(reversed(self.open_runs.values()), None)

    @property
    def begun(self) -> bool:
        """Whether there is a session: a fork is one only when it has taken over all that it is to have."""
        return self.header is not None and (self.header.forked is None or self.epoch > 0)

    @property
    def untouched(self) -> bool:
        """Whether nothing was ever said, done or kept in it."""
        return not (self._versions or any(each.said for each in self._threads.values()))

    @property
    def threads(self) -> list[str]:
        """The names of all threads, in the order in which they began."""
        return list(self._threads)

    @override
    def thread(self, name: str) -> threads.Thread:
        return self._threads.get(name) or threads.Thread()

    @override
    def threads_that_count(self, path: str) -> list[str]:
        """The threads of who asks at ``path``: an answer that is worked on in the background is fetched, whoever asked for it."""
        return [name for name in reversed(self._threads) if self.path_of(name) == path]

    def path_of(self, thread: str) -> str:
        """Where what is spent in a thread is put to: empty for the session's own, the path of the call for a delegate's, ``…/summary`` for a summary's."""
        if thread.startswith(log_entries.SUMMARY):
            return f"{self.path_of(thread.split(':', 2)[2])}/summary".removeprefix("/")
        if thread.startswith(log_entries.DELEGATE):
            return self.actions[log_entries.call_of(thread)].call.path
        return ""

    def versions(self, of: str, name: str = "") -> list[log_entries.Version]:
        """Every version of what is kept, oldest first."""
        return self._versions.get((of, name), [])

    def latest(self, of: str, name: str = "") -> log_entries.Version | None:
        """What holds now; None where nothing was ever said, or it was cleared."""
        versions = self.versions(of, name)
        return versions[-1] if versions and not versions[-1].cleared else None

    def variables(self) -> Iterator[log_entries.Version]:
        """The variables that have a value, in the order in which they first had one."""
        for name in self.names_of("variable"):
            if (found := self.latest("variable", name)) is not None:
                yield found

    def names_of(self, of: str) -> list[str]:
        """The names under which anything of this kind was ever kept, in the order in which they first were."""
        return [name for kind, name in self._versions if kind == of]

    def open_calls(self) -> list[SideEffect]:
        """Calls without a result, in order: what a crash left."""
        return [each for each in self.actions.values() if each.result is None]
