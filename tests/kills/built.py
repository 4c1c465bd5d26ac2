"""A build that is killed and resumed: `runops build` as a process, a real model client, and the site's own list of actions as a judge.

It dies at every entry and every crash point, in the session and in runs of its tools, and is resumed with `--resume`. It must end with the file of an
uninterrupted build; no call of the model runs twice, and no action without a call.
"""

from __future__ import annotations

import collections
import dataclasses
import random
import re
from collections.abc import Iterator, Sequence
from typing import Any, Literal

from typing_extensions import override

from runtime.log import entries as log_entries
from runtime.log import history, session, threads
from runtime.system.crash_points import CrashPoint
from tests.kills import controls, disk, drafted, lives, said

_RUNS = re.compile(r"\b(\d+) of \1 runs\b")
_SUM = re.compile(r"\bsum [0-9a-f]{16}\b")

RUNS = {"execute_nodes": 1, "finish": 2}
"""The most runs that one call of a tool may start."""

Page = Literal["faked", "shop"]

CONTROLS: dict[controls.Control, CrashPoint] = {
    "forgotten": CrashPoint.EXCHANGE_SYNCED,
    "again": CrashPoint.CHILD_STARTED,
}
"""For each defect the crash point whose first passing reveals it."""


@dataclasses.dataclass(frozen=True)
class Case(lives.Case):
    """A variant of a build, and its deaths."""

    way: said.Way = "streamed"
    page: Page = "faked"


@dataclasses.dataclass
class Bench(lives.Place):
    """The place of builds."""

    def run(self, case: Case) -> Trial:
        """One build to its end."""
        return Trial(self, case, f"b{next(self.names)}").run()


class Trial(lives.Trial[Case, drafted.Voice]):
    """One build in its own folder."""

    def __init__(self, bench: Bench, case: Case, name: str) -> None:
        shop = bench.shop if case.page == "shop" else None
        self._url = shop.url if shop is not None else "http://127.0.0.1:9"
        password = shop.password if shop is not None else "correct-horse"
        environment = {"RUNOPS_LINGER": "0", "SHOP_PASSWORD": password, **said.WAYS[case.way]}
        super().__init__(bench, case, name, drafted.Voice(), environment, faked=case.page == "faked")

    @override
    def _words(self, *, begins: bool) -> tuple[list[str], None]:
        if not begins:
            return ["build", "--resume", "last"], None
        arguments = ["build", drafted.GOAL, "--url", self._url, "--save", "built.yaml", "--effects", "allow"]
        return [*arguments, "-i", f"ref={self._ref}", "--secret", "SHOP_PASSWORD"], None

    # The judge.

    @property
    def built(self) -> str:
        """The file that it saves, without the parts that differ from build to build."""
        file = self._folder / "built.yaml"
        if not file.exists():
            return "(there is no file)"
        text = said.alike(file.read_text()).replace(self._url, "URL")
        # A run that passed before the proof was interrupted is counted with those of the new proof.
        return _RUNS.sub("all runs", _SUM.sub("sum SUM", text))

    @override
    def _judge(self) -> None:
        every = self._sessions()
        if len(every) != 1:
            self.wrong.append(f"there are {len(every)} sessions")
            return
        fold = session.Session(every[0].entries)
        self._judge_sessions([fold], announced=len(self.kills))
        self.wrong += [f"the run {each} is followed still" for each in fold.open_runs]
        self.wrong += [
            f"what came of {name} is not known"
            for each in fold.thread(log_entries.SESSION_THREAD).said
            if isinstance(each, threads.Exchange)
            for name, done in each.done.items()
            if done.result is None or done.output is None
        ]
        self.lost = sum(row.status == "open" for row in fold.ledger.rows)
        self.interrupted = sum(drafted.is_interrupted(each) for each in self.voice.items)
        self.wrong += _done_twice(every[0].entries)
        # An action needs a call in a run, and each call causes at most one.
        asked = [
            each
            for past in self._runs()
            for each in history.History(past.entries).all_attempts()
            if each.call.action == "click" and each.call.effect == "effect"
        ]
        known = sum(each.result is not None and each.result.status == "ok" for each in asked)
        done = len(self._actions())
        if not known <= done <= len(asked):
            self.wrong.append(
                f"{done} articles were put into the cart, {len(asked)} calls asked for one, {known} had it done"
            )

    def _actions(self) -> list[Any]:
        """The actions of the site, from its own record."""
        if self.case.page == "shop":
            assert self._shop is not None
            return self._shop.ledger("cart", self._ref)
        return [each for each in disk.read(self._record) if "Add to cart" in each.get("action", "")]

    @override
    def differs(self, alone: Trial) -> Iterator[str]:
        if self.built != alone.built:
            yield f"it left {self.built}"
        more = len(self.voice.requests) - len(alone.voice.requests)
        # An answer still on its way is requested again, and an interrupted call is inspected or repeated.
        if not 0 <= more <= self.lost + self.interrupted:
            yield f"{more} requests more than were needed; {self.lost} answers were lost, {self.interrupted} calls interrupted"


def _done_twice(entries: Sequence[log_entries.AnyEntry]) -> Iterator[str]:
    """The calls of the model that began more than once, or started more runs than allowed."""
    calls = {each.call: each for each in entries if isinstance(each, log_entries.Call)}
    begun = collections.Counter(each.asked for each in calls.values() if each.effect == "effect")
    yield from (f"{asked} was done {times} times" for asked, times in begun.items() if times > 1)
    notes = [each for each in entries if isinstance(each, log_entries.Note) and each.name == "child-started"]
    runs = collections.Counter(str(each.data["call"]) for each in notes)
    for name, times in runs.items():
        if times > RUNS.get(str(calls[name].action), 1):
            yield f"{calls[name].path} began {times} runs"


def examine(
    bench: Bench,
    case: Case,
    draws: Sequence[int] | None,
    chance: random.Random,
    jobs: int = 1,
    alone: Trial | None = None,
) -> Iterator[Trial]:
    """Kill a build at each of its crash points, or at those drawn.

    The first build is not killed, unless one was left ``alone`` already: the build is the same however a model is asked.
    """
    if alone is None:
        alone = bench.run(case)
        yield alone
    yield from lives.examine(bench.run, case, alone, lives.moments(alone), draws, chance, later=60, jobs=jobs)


def deviations(bench: Bench, control: controls.Control, alone: Trial) -> list[str]:
    """The deviations of a build with this defect that dies where the defect shows."""
    return lives.deviations(bench.run, alone.case, control, CONTROLS[control], alone)
