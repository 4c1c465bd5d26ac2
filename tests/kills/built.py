"""A build that is killed and gone on with: `runops build` as a process, a model behind the real client, the site's own list of deeds as a judge.

It dies at every entry that it writes and at every crash point besides, in the session and in the runs that its tools start. Whoever goes on does so with
`--resume`. It ends with the file with which one ends that nobody kills; no call of the model is done twice, and no deed without a call.
"""

from __future__ import annotations

import collections
import concurrent.futures
import dataclasses
import itertools
import json
import random
import re
import signal
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

from nodes.errors import UsageError
from runtime import conversations, history, log, sessions, store
from runtime.crashes import CrashPoint
from runtime.models import threads
from runtime.testing import responses
from tests import warm
from tests.command import Project
from tests.kills import controls, disk, drafted, mortal, said
from tests.shop_process import Shop

SECONDS = 240.0
"""How long a command may take. None does; one that hangs is to be seen."""

KILLED = 128 + signal.SIGKILL

_RUNS = re.compile(r"\bdone in (\d+) of \1 runs\b")
_SUM = re.compile(r"\bsum [0-9a-f]{16}\b")

RUNS = {"execute_nodes": 1, "finish": 2}
"""How many runs one call of a tool may begin."""

Page = Literal["faked", "shop"]

CONTROLS: dict[controls.Control, CrashPoint] = {
    "forgotten": CrashPoint.EXCHANGE_SYNCED,
    "again": CrashPoint.FOLLOWING,
}
"""For each way of being wrong the crash point of which the first passing shows it."""


@dataclasses.dataclass(frozen=True)
class Case:
    """How a build is led, and where it dies."""

    way: said.Way = "streamed"
    page: Page = "faked"
    power: bool = False
    """Whether the power goes with the process: of the disk only what was synced is left."""
    deaths: tuple[int | CrashPoint, ...] = ()
    """For each life the moment of its death: its number, from 1, or the crash point at whose first passing it dies."""
    control: controls.Control | None = None


@dataclasses.dataclass
class Bench:
    """Where trials take place."""

    folder: Path
    shop: Shop | None
    server: warm.Warm
    names: Iterator[int] = dataclasses.field(default_factory=itertools.count)

    def run(self, case: Case) -> Trial:
        """One build to its end."""
        return Trial(self, case, f"b{next(self.names)}").run()


class Trial:
    """One build, in a folder of its own."""

    def __init__(self, bench: Bench, case: Case, name: str) -> None:
        self.case, self._bench = case, bench
        self.kills: list[str] = []
        """The moments at which it died."""
        self.wrong: list[str] = []
        self.lost = 0
        """Requests that were announced, and of whose answer nothing is left."""
        self.interrupted = 0
        """Calls that the model was told of as interrupted."""
        self.voice = drafted.Voice()
        self._ref = f"ref-{name}"
        self._folder = bench.folder / name
        self._folder.mkdir()
        self._record = bench.folder / f"{name}.record"
        self._url = bench.shop.url if case.page == "shop" and bench.shop is not None else "http://127.0.0.1:9"
        password = bench.shop.password if bench.shop is not None else "correct-horse"
        environment = {"RUNOPS_LINGER": "0", "SHOP_PASSWORD": password, **said.WAYS[case.way]}
        self._project = Project(self._folder, **environment)
        self._disk = disk.Disk(self._folder)
        self._read = 0

    @property
    def moments(self) -> list[str]:
        """What was passed so far, in order: entries that were written, and crash points."""
        return [each["point"][1] for each in disk.read(self._record) if "point" in each]

    def run(self) -> Trial:
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
        """Begin, or go on; whether it died."""
        begins = not self._sessions()
        arguments = ["--resume", "last"]
        if begins:
            arguments = [drafted.GOAL, "--url", self._url, "--save", "built.yaml", "--effects", "allow"]
            arguments += ["-i", f"ref={self._ref}", "--secret", "SHOP_PASSWORD"]
        dies: dict[str, Any] = {"first": str(deadly)} if isinstance(deadly, CrashPoint) else {"any": deadly}
        fate = mortal.Fate(
            str(self._record),
            begins=begins,
            writes=True,
            control=self.case.control or "",
            faked=self.case.page == "faked",
            **dies,
        )
        ended = subprocess.run(
            [str(self._bench.server.script), "build", *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            cwd=self._folder,
            env={**self._project.environment, **fate.environment()},
            encoding="utf-8",
            timeout=SECONDS,
            check=False,
        )
        if ended.returncode == KILLED:
            self.kills.append(self.moments[-1])
            told = disk.read(self._record)
            self._disk.learn(told[self._read :])
            self._read = len(told)
            if self.case.power:
                self._disk.cut()
            return True
        if ended.returncode != 0 or "Traceback" in ended.stderr:
            self.wrong.append(f"exit {ended.returncode}: {ended.stderr[-1500:]}")
        return False

    def _readings(self) -> list[store.Reading]:
        kept = store.FileStore(self._folder / ".runops")
        return [kept.read(each) for each in kept.ids()]

    def _sessions(self) -> list[store.Reading]:
        """Those that have begun, oldest first."""
        return [each for each in self._readings() if _is_session(each)]

    def _runs(self) -> dict[str, history.History]:
        """The runs that have begun, by their ids."""
        return {
            each.id: history.History(each.entries)
            for each in self._readings()
            if isinstance(first := next(iter(each.entries), None), log.Scope) and first.run
        }

    # Its judge.

    @property
    def built(self) -> str:
        """The file that it leaves, without what is another one for each build."""
        file = self._folder / "built.yaml"
        if not file.exists():
            return "(there is no file)"
        text = said.alike(file.read_text()).replace(self._url, "URL")
        # A run that passed before the proof was broken off counts beside those of the proof that was made anew.
        return _RUNS.sub("done in all runs", _SUM.sub("sum SUM", text))

    def _judge(self) -> None:
        every = self._sessions()
        if len(every) != 1:
            self.wrong.append(f"there are {len(every)} sessions")
            return
        fold, runs = sessions.Session(every[0].entries), self._runs()
        self.wrong += [f"the call {each.call.call} is open" for each in fold.open_calls()]
        self.wrong += [f"the run {each} is followed still" for each in fold.open_runs]
        self.wrong += [
            f"what came of {name} is not known"
            for each in fold.thread(log.SESSION_THREAD).said
            if isinstance(each, threads.Exchange)
            for name, done in each.done.items()
            if done.result is None or done.told is None
        ]
        rows = fold.ledger.rows
        paid = collections.Counter(row.response for row in rows if row.status == "ok" and row.source == "model")
        self.wrong += [f"{each} was paid {times} times" for each, times in paid.items() if each and times > 1]
        self.lost = sum(row.status == "open" for row in rows)
        items: list[dict[str, Any]] = self.voice.items
        self.interrupted = sum(drafted.is_interrupted(each) for each in items)
        sent = len(self.voice.requests)
        if not sent <= len(rows) <= sent + len(self.kills):
            self.wrong.append(f"{sent} requests were sent, and {len(rows)} are in the ledger")
        self.wrong += _done_twice(every[0].entries)
        # A deed is done for a call that stands in a run, and for each at most once.
        asked = [
            each
            for past in runs.values()
            for each in past.all_attempts()
            if each.call.action == "click" and each.call.effect == "effect"
        ]
        known = sum(each.result is not None and each.result.status == "ok" for each in asked)
        done = len(self._deeds())
        if not known <= done <= len(asked):
            self.wrong.append(
                f"{done} articles were put into the cart, {len(asked)} calls asked for one, {known} had it done"
            )

    def _deeds(self) -> list[Any]:
        """What the site has done, as it tells it itself."""
        if self.case.page == "shop":
            assert self._bench.shop is not None
            return self._bench.shop.ledger("cart", self._ref)
        return [each for each in disk.read(self._record) if "Add to cart" in each.get("deed", "")]

    def differs(self, alone: Trial) -> Iterator[str]:
        """In what it did not end as the build that nobody killed."""
        if self.built != alone.built:
            yield f"it left {self.built}"
        more = len(self.voice.requests) - len(alone.voice.requests)
        # An answer that was on its way is asked for again, and of a call that was interrupted it is looked what came of it, or it is made again.
        if not 0 <= more <= self.lost + self.interrupted:
            yield f"{more} requests more than were needed; {self.lost} answers were lost, {self.interrupted} calls interrupted"


def _done_twice(entries: Sequence[log.AnyEntry]) -> Iterator[str]:
    """The calls of the model that were begun more than once, or have begun more runs than they may."""
    calls = {each.call: each for each in entries if isinstance(each, log.Call)}
    begun = collections.Counter(each.asked for each in calls.values() if each.effect == "effect")
    yield from (f"{asked} was done {times} times" for asked, times in begun.items() if times > 1)
    notes = [each for each in entries if isinstance(each, log.Note) and each.name == "following"]
    runs = collections.Counter(str(each.data["call"]) for each in notes)
    for name, times in runs.items():
        if times > RUNS.get(str(calls[name].action), 1):
            yield f"{calls[name].path} began {times} runs"


def _is_session(reading: store.Reading) -> bool:
    try:
        conversations.fold(reading)
    except UsageError:
        return False
    return True


def moments(alone: Trial) -> list[int]:
    """The moments at which a build is killed, by their numbers: each that something was done before, a crash point right behind an entry is none."""
    return [
        number
        for number, (before, moment) in enumerate(itertools.pairwise(["", *alone.moments]), 1)
        if moment == mortal.WRITTEN or before != mortal.WRITTEN
    ]


def examine(
    bench: Bench,
    case: Case,
    draws: Sequence[int] | None,
    chance: random.Random,
    jobs: int = 1,
    alone: Trial | None = None,
) -> Iterator[Trial]:
    """Kill a build at each of its moments, or at those that are drawn; who goes on dies once too, in some.

    The first is not killed, where there is none that was left ``alone`` already: however a model is asked, the build is the same.
    """
    if alone is None:
        alone = bench.run(case)
        yield alone
    numbers = moments(alone)
    chosen = numbers if draws is None else [numbers[each % len(numbers)] for each in draws]
    cases = [
        dataclasses.replace(case, deaths=(each, *([chance.randint(1, 60)] if chance.random() < 0.5 else [])))
        for each in chosen
    ]
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for done in pool.map(bench.run, cases):
            done.wrong += done.differs(alone)
            yield done


def found_out(bench: Bench, control: controls.Control, alone: Trial) -> list[str]:
    """What is not as it should be in a build that is wrong in this way, and dies where it shows."""
    done = bench.run(dataclasses.replace(alone.case, deaths=(CONTROLS[control],), control=control))
    return [*done.wrong, *done.differs(alone)]
