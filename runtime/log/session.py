"""Content of a session, folded from its log: messages, kept values, costs. A session is a person's talk with a chat or the Director."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Sequence

from typing_extensions import override

from runtime.log import entries as log_entries
from runtime.log import threads


@dataclasses.dataclass(slots=True)
class SideEffect:
    call: log_entries.Call
    result: log_entries.Result | None = None


@dataclasses.dataclass(slots=True)
class Question:
    question: str
    choices: Sequence[str]
    free: bool
    place: str
    answer: str | None = None
    lapsed: bool = False  # true if the person has since sent another message: the answer is no longer awaited


class Session(threads.Fold):
    def __init__(self, entries: Iterable[log_entries.AnyEntry] = ()) -> None:
        super().__init__()
        self.header: log_entries.SessionHeader | None = None
        self.mode: log_entries.Mode = "chat"
        self.about: str | None = None
        self.builds = False
        """True from the first moment in mode agent on: from then on the tools of a build are offered."""
        self.runs: dict[str, str] = {}
        """Runs of the session in the order in which they came into it, each with the message or tool that began it."""
        self.told: dict[str, int] = {}
        """Runs that the session's thread tells, in order of the last telling, each with the line of its log up to which it is told."""
        self.following: log_entries.Note | None = None
        """Last ``child-started`` note of a run whose end the session does not know."""
        self.open_runs: dict[str, log_entries.Note] = {}
        """Such notes by the id of each run, in the order in which the runs began."""
        self.runs_of: dict[str, list[str]] = {}
        """Runs that a tool began, by the id of its call, in order; also those whose end is known."""
        self.reset_runs: set[str] = set()  # runs before which the site's data were put back
        self.delegates: dict[str, log_entries.Note] = {}
        """How each delegate ran: its ``delegate-started`` note, by the id of its call."""
        self.questions: list[Question] = []  # questions to the person, in order; each once
        self.messages = 0
        """Number of the person's messages and the model's answers, without those of delegates and summaries."""
        self.actions: dict[str, SideEffect] = {}
        self.course: list[log_entries.AnyEntry] = []
        """What the person said, answered and did, the runs that began and the versions that were kept, in order."""
        self._versions: dict[tuple[str, str], list[log_entries.Version]] = {}
        for entry in entries:
            self.add(entry)

    @override
    def add(self, entry: log_entries.AnyEntry) -> None:
        self.last_seq, self.last_at = entry.seq, entry.at
        self._threads.setdefault(entry.thread, threads.Thread()).add(entry)
        self._message(entry)
        match entry:
            case log_entries.Scope(session=log_entries.SessionHeader() as header):
                self.header, self.started, self.budget = header, entry.at, header.budget
                self.about = header.run
                if header.run is not None:
                    self.runs[header.run] = ""
                if header.purpose == "build":
                    self.mode = "agent"
                self.builds = self.builds or self.mode == "agent" or header.build is not None
            case log_entries.Event():
                self._happened(entry)
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
                    self.builds = self.builds or self.mode == "agent"
            case _:
                self.ledger.add(entry, self.path_of(entry.thread))

    def _message(self, entry: log_entries.AnyEntry) -> None:
        if entry.thread == log_entries.SESSION_THREAD and isinstance(entry, log_entries.User | log_entries.Assistant):
            self.messages += 1
            if isinstance(entry, log_entries.User) and entry.mode is not None and self.waits_for is not None:
                self.waits_for.lapsed = True
        if _is_of_course(entry):
            self.course.append(entry)

    def _happened(self, entry: log_entries.Event) -> None:
        self.about = entry.run or self.about
        if entry.run is not None:
            self.runs.setdefault(entry.run, entry.what or "")
        if entry.asked is not None and entry.run is not None:
            self.told.pop(entry.run, None)
            self.told[entry.run] = entry.upto or 0
        self._ended(entry.run)
        self.ledger.add(entry, "")

    def _note(self, entry: log_entries.Note) -> None:
        match entry.name:
            case "child-started":
                self.following = self.open_runs[str(entry.data["run"])] = entry
                self.runs.setdefault(str(entry.data["run"]), str(entry.data["what"] or ""))
                if "call" in entry.data:
                    self.runs_of.setdefault(str(entry.data["call"]), []).append(str(entry.data["run"]))
                if entry.data.get("reset") is True:
                    self.reset_runs.add(str(entry.data["run"]))
            case "delegate-started":
                self.delegates[str(entry.data["call"])] = entry
            case "child-ended":
                self._ended(str(entry.data["run"]))
                self.ledger.add(entry, "")
            case "paused" | "answered":
                data = entry.data
                found = self.asked(str(data["question"]), str(data["place"]))
                if found is None:
                    found = Question(
                        str(data["question"]), list(data["choices"]), bool(data["free"]), str(data["place"])
                    )
                    self.questions.append(found)
                found.answer = data.get("answer", found.answer)
            case "claimed":
                self._claimed(entry)
            case _:
                self.ledger.add(entry, self.path_of(entry.thread))

    def asked(self, question: str, place: str) -> Question | None:
        return next((each for each in self.questions if (each.question, each.place) == (question, place)), None)

    @property
    def waits_for(self) -> Question | None:
        """Last question, while it has no answer and the person has sent no other message."""
        last = self.questions[-1] if self.questions else None
        return last if last is not None and last.answer is None and not last.lapsed else None

    def _ended(self, run: str | None) -> None:
        """Record that a run is followed no more; without a name, all of them."""
        if run is None:
            self.open_runs.clear()
        else:
            self.open_runs.pop(run, None)
        self.following = next(reversed(self.open_runs.values()), None)

    @property
    def begun(self) -> bool:
        """True if there is a session. A fork counts only once it has taken over everything."""
        return self.header is not None and (self.header.forked is None or self.epoch > 0)

    @property
    def untouched(self) -> bool:
        return not (self._versions or any(each.said for each in self._threads.values()))

    @property
    def threads(self) -> list[str]:
        return list(self._threads)

    @override
    def threads_that_count(self, path: str) -> list[str]:
        """Return the threads that ask at ``path``. An answer in progress in the background is fetched, whichever of them asked for it."""
        return [name for name in reversed(self._threads) if self.path_of(name) == path]

    def path_of(self, thread: str) -> str:
        """Return the path for a thread's costs: empty for the session's own, of the call for a delegate's, ``…/summary`` for a summary's."""
        if thread.startswith(log_entries.SUMMARY):
            return f"{self.path_of(thread.split(':', 2)[2])}/summary".removeprefix("/")
        if thread.startswith(log_entries.DELEGATE):
            return self.actions[log_entries.call_of(thread)].call.path
        return ""

    def versions(self, of: str, name: str = "") -> list[log_entries.Version]:
        return self._versions.get((of, name), [])

    def latest(self, of: str, name: str = "") -> log_entries.Version | None:
        """Return the present version; None if there never was one, or it was cleared."""
        versions = self.versions(of, name)
        return versions[-1] if versions and not versions[-1].cleared else None

    def variables(self) -> Iterator[log_entries.Version]:
        for name in self.names_of("variable"):
            if (found := self.latest("variable", name)) is not None:
                yield found

    def names_of(self, of: str) -> list[str]:
        """Return the names under which values of this kind were ever kept, in the order of their first use."""
        return [name for kind, name in self._versions if kind == of]

    def open_calls(self) -> list[SideEffect]:
        """Return calls without a result, in order: a crash left them open."""
        return [each for each in self.actions.values() if each.result is None]


def _is_of_course(entry: log_entries.AnyEntry) -> bool:
    match entry:
        case log_entries.User():
            # Of a person: a message, or a `/compress`.
            return entry.mode is not None
        case log_entries.ModelError():
            return entry.thread == log_entries.SESSION_THREAD and entry.again is None
        case log_entries.Heard() | log_entries.Version() | log_entries.Arrived():
            return True
        case log_entries.Event():
            return entry.asked is None
        case log_entries.Note():
            return entry.name in ("child-started", "asked", "answered", "stopped", "claimed")
        case _:
            return False
