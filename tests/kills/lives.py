"""The lives of a session that is killed and resumed: its processes, and the state of its folder and disk after each.

It dies at a crash point or a written entry. Input and final checks depend on the kind of session.
"""

from __future__ import annotations

import abc
import collections
import concurrent.futures
import dataclasses
import itertools
import json
import random
import signal
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Generic, Protocol, Self, TypeVar

from nodes.errors import UsageError
from runtime.log import entries, session
from runtime.log.store import file_store
from runtime.log.store import store as log_store
from runtime.system.crash_points import CrashPoint
from runtime.testing import responses, scripted_model
from runtime.workspace import session_index
from tests import warm
from tests.command import Project
from tests.kills import controls, disk, mortal
from tests.shop_process import Shop

SECONDS = 240.0
"""Timeout of a command. None takes so long, unless it hangs."""

KILLED = -signal.SIGKILL


@dataclasses.dataclass(frozen=True, kw_only=True)
class Case:
    """The deaths of a session."""

    power: bool = False
    """True if a power cut accompanies the kill: only synced data survives."""
    deaths: tuple[int | CrashPoint, ...] = ()
    """For each life the number of its fatal crash point, from 1, or the name of one at whose first passing it dies."""
    control: controls.Control | None = None


@dataclasses.dataclass
class Place:
    """The place of trials."""

    folder: Path
    shop: Shop | None
    server: warm.Warm
    names: Iterator[int] = dataclasses.field(default_factory=itertools.count)


class Voice(Protocol):
    """The model of a session."""

    requests: list[dict[str, Any]]
    """All requests, in order."""

    def __call__(self, asked: scripted_model.AskedFor, /) -> scripted_model.Scripted:
        """The answer to a request."""
        ...


OfCase = TypeVar("OfCase", bound=Case)
OfVoice = TypeVar("OfVoice", bound=Voice)


class Trial(abc.ABC, Generic[OfCase, OfVoice]):
    """One session in its own folder; ``faked`` says whether its pages are faked."""

    def __init__(
        self, place: Place, case: OfCase, name: str, voice: OfVoice, environment: Mapping[str, str], *, faked: bool
    ) -> None:
        self.case, self.voice = case, voice
        self.kills: list[str] = []
        """The crash points at which it died."""
        self.wrong: list[str] = []
        self.lost = 0
        """Requests whose answer was lost entirely."""
        self.interrupted = 0
        """Calls interrupted by a death."""
        self._shop, self._server, self._faked = place.shop, place.server, faked
        self._ref = f"ref-{name}"
        self._folder = place.folder / name
        self._folder.mkdir()
        self._record = place.folder / f"{name}.record"
        self._project = Project(self._folder, **environment)
        self._disk = disk.Disk(self._folder)
        self._read = 0

    # The parts that depend on the kind of session.

    @abc.abstractmethod
    def _words(self, *, begins: bool) -> tuple[list[str], str | None]:
        """The arguments of a life, and its typed input, if any."""

    @abc.abstractmethod
    def _judge(self) -> None:
        """Collect the deviations at the end."""

    @abc.abstractmethod
    def differs(self, alone: Any) -> Iterator[str]:
        """The differences from the uninterrupted session of its kind."""

    def _dead(self, cut: Callable[[], object]) -> None:
        """It has died; ``cut`` removes what is not synced."""
        cut()

    # The lives.

    @property
    def moments(self) -> list[str]:
        """The crash points and written entries so far, in order."""
        return [each["point"][1] for each in disk.read(self._record) if "point" in each]

    def run(self) -> Self:
        """To its end."""
        with responses.serve(self.voice) as model:
            self._project.environment |= {
                "RUNOPS_MODEL": "test-model",
                "RUNOPS_MODEL_BASE_URL": model.url,
                "RUNOPS_MODEL_KEY": model.key,
                "RUNOPS_MODEL_PROFILE": "openai",
                "RUNOPS_PRICES": json.dumps({"test-model": {"input": 0.5, "output": 2.0}}),
            }
            for deadly in (*self.case.deaths, 0):
                if not self._life(deadly):
                    break
            self.wrong += model.problems
        self._judge()
        return self

    def _life(self, deadly: int | CrashPoint) -> bool:
        """Start or resume; whether it died."""
        begins = not self._sessions()
        arguments, typed = self._words(begins=begins)
        # Concurrent tools pass crash points in varying order: only a name identifies one reliably.
        dies: dict[str, Any] = {"first": str(deadly)} if isinstance(deadly, CrashPoint) else {"any": deadly}
        control = self.case.control or ""
        fate = mortal.Fate(
            str(self._record), begins=begins, writes=True, control=control, faked=self._faked, speaks=True, **dies
        )
        environment = {**self._project.environment, **fate.environment()}
        with self._server.start(arguments, self._folder, environment, asks=typed is not None) as life:
            ended = life.result(SECONDS, typed)
        if ended.returncode == KILLED:
            self.kills.append(self.moments[-1])
            events = disk.read(self._record)
            self._disk.learn(events[self._read :])
            self._read = len(events)
            self._dead(self._disk.cut if self.case.power else lambda: None)
            return True
        if ended.returncode != 0 or "Traceback" in ended.stderr:
            self.wrong.append(f"exit {ended.returncode}: {ended.stderr[-1500:]}")
        return False

    # The state that it leaves.

    @property
    def _kept(self) -> file_store.Files:
        return file_store.Files(self._folder / ".runops")

    def _readings(self) -> list[log_store.Reading]:
        kept = self._kept
        return [kept.read(each) for each in kept.ids()]

    def _sessions(self) -> list[log_store.Reading]:
        """The sessions with complete logs, oldest first."""
        return [each for each in self._readings() if _is_session(each)]

    def _runs(self) -> list[log_store.Reading]:
        """The runs that the session started and that have begun."""
        return [
            each
            for each in self._readings()
            if isinstance(first := next(iter(each.entries), None), entries.Scope) and first.run
        ]

    def _judge_sessions(self, folds: Iterable[session.Session], announced: int) -> None:
        """No call is open, none is paid twice, and each request sent is in the ledger, with at most ``announced`` more."""
        folds = list(folds)
        self.wrong += [f"the call {each.call.call} is open" for fold in folds for each in fold.open_calls()]
        rows = [row for fold in folds for row in fold.ledger.rows]
        paid = collections.Counter(row.response for row in rows if row.status == "ok" and row.source == "model")
        self.wrong += [f"{each} was paid {times} times" for each, times in paid.items() if each and times > 1]
        sent = len(self.voice.requests)
        if not sent <= len(rows) <= sent + announced:
            self.wrong.append(f"{sent} requests were sent, and {len(rows)} are in the ledger")


def _is_session(reading: log_store.Reading) -> bool:
    try:
        session_index.fold(reading)
    except UsageError:
        return False
    return True


def moments(alone: Trial[Any, Any]) -> list[int]:
    """The numbers of the crash points at which a session is killed; one directly after a written entry is skipped."""
    return [
        number
        for number, (before, moment) in enumerate(itertools.pairwise(["", *alone.moments]), 1)
        if moment == mortal.WRITTEN or before != mortal.WRITTEN
    ]


OfTrial = TypeVar("OfTrial", bound=Trial[Any, Any])


def examine(
    run: Callable[[OfCase], OfTrial],
    case: OfCase,
    alone: OfTrial,
    numbers: Sequence[int],
    draws: Sequence[int] | None,
    chance: random.Random,
    *,
    later: int,
    jobs: int = 1,
) -> Iterator[OfTrial]:
    """Kill a session at each crash point of these ``numbers``, or at those drawn. Some resumes die once, too, at ``later`` at most.

    Each must end like the one that was left ``alone``.
    """
    chosen = numbers if draws is None else [numbers[each % len(numbers)] for each in draws]
    cases = [
        dataclasses.replace(case, deaths=(each, *([chance.randint(1, later)] if chance.random() < 0.5 else [])))
        for each in chosen
    ]
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for done in pool.map(run, cases):
            done.wrong += done.differs(alone)
            yield done


def deviations(
    run: Callable[[OfCase], OfTrial], case: OfCase, control: controls.Control, dies: CrashPoint, alone: OfTrial
) -> list[str]:
    """The deviations of a session with this defect that dies where the defect shows."""
    done = run(dataclasses.replace(case, deaths=(dies,), control=control))
    return [*done.wrong, *done.differs(alone)]
