"""One random workflow: run without kills, then killed repeatedly, and both compared by the site's records."""

from __future__ import annotations

import asyncio
import collections
import contextlib
import dataclasses
import random
from pathlib import Path
from typing import Any

import pytest

from nodes.values import Json
from runtime import events
from runtime.log import entries, history
from runtime.log.store import file_store
from runtime.log.writer import LogWriter
from runtime.workspace import run_index
from tests.crashes import flows, world
from tests.now import now
from tests.rig import Killed, Rig

MOST_LIVES = 80


@dataclasses.dataclass
class Report:
    """The result of one seed."""

    seed: int
    exact: bool = True
    kills: list[str] = dataclasses.field(default_factory=list)
    pauses: int = 0
    lost: list[str] = dataclasses.field(default_factory=list)
    doubled: list[str] = dataclasses.field(default_factory=list)
    wrong: list[str] = dataclasses.field(default_factory=list)
    """All other differences from the uninterrupted run."""

    @property
    def fine(self) -> bool:
        """True if every promise was kept."""
        return not (self.lost or self.doubled or self.wrong)


class Trial:
    """A run of a flow that dies as scheduled, is answered truthfully, and is resumed until it ends."""

    def __init__(self, flow: flows.Flow, home: Path, seed: int) -> None:
        """Everything random comes from ``seed``."""
        self.flow = flow
        self.seed = seed
        self.seed = seed
        self.chance = random.Random(f"kills {seed}")
        self.reaper = world.Reaper()
        self.site = world.World(self.reaper, flow.faults, flow.listings, seed)
        self.home = home
        self.lives = 0
        self.pauses = 0
        self.ends: list[tuple[str, str | None]] = []
        self.mixed: list[str] = []
        self._new_run()

    def _new_run(self) -> None:
        self.rig = Rig(self.home, self.flow.text, site=self.site, texts=self.flow.texts)
        self.rig.store = self.store = world.WatchedStore(self.home, self.reaper, self.seed)

    async def run(self, kills: int, span: int) -> events.RunEnded:
        """To its end, with ``kills`` deaths, each within ``span`` operations of a process; where it fails, the site is fixed and the run resumed."""
        begun = False
        for _ in range(MOST_LIVES):
            self.lives += 1
            at = self.chance.randint(1, max(1, span)) if kills else 0
            self.reaper.arm(at)
            try:
                ended = await (self.rig.resume() if begun else self.rig.start())
            except Killed:
                kills -= 1
                begun = await self._end_of_process()
                continue
            await self._clear()
            begun = True
            self.rig.die()
            if ended.status == "paused":
                self.pauses += 1
                assert ended.question is not None
                self._answer(ended.question, mortal=kills > 0)
                continue
            self.ends.append((ended.status, ended.error["code"] if ended.error else None))
            if ended.status == "failed" and len(self.ends) == 1:
                self.site.repair()
                continue
            return ended
        raise RuntimeError(f"it does not end: {self.ends}, {self.pauses} pauses")

    async def _clear(self) -> None:
        writing = [
            each for each in asyncio.all_tasks() if "Checkpoints" in getattr(each.get_coro(), "__qualname__", "")
        ]
        for task in writing:
            task.cancel()
        await asyncio.gather(*writing, return_exceptions=True)

    async def _end_of_process(self) -> bool:
        """Leave the state of a dead process: its log, perhaps cut by a power failure, and perhaps its browser. Returns whether the run began."""
        await self._clear()
        way = self.chance.choice(["alone", "alone", "survived", "survived", "power"])
        self.store.give_up()
        self.rig.die(browser_survives=way == "survived")
        self.reaper.kills[-1] += f" ({way})"
        if way == "power":
            self.store.cut_power(self.rig.id, self.chance)
        if not self.store.conversation_file(self.rig.id).exists() or not self._has_header():
            if any(_name(each) not in self.flow.repeatable for each in self.site.actions):
                raise RuntimeError("actions were done by a run whose log does not begin")
            self._new_run()
            return False
        return True

    def _has_header(self) -> bool:
        return b"\n" in self.store.conversation_file(self.rig.id).read_bytes()

    def _answer(self, question: dict[str, Json], *, mortal: bool) -> None:
        evidence: Any = question["evidence"]
        asked = set(evidence["calls"] if "calls" in evidence else [evidence["call"]])
        if self.lives == 1 and question["reason"] == "redo-unconfirmed":
            self.mixed.append(f"asked about {question['path']} though nothing had died or failed")
        # A question about a step that may repeat an action is about that step.
        truths = (
            {evidence["step"].split()[-1] in self.site.actions}
            if "step" in evidence
            else {
                f"css={each.call.args['target']['css']}" in self.site.actions
                for each in self.rig.history.all_attempts()
                if each.call.call in asked
            }
        )
        if len(truths) > 1:
            self.mixed.append(str(question["message"]))
        # The answering command may die, too: then the question is asked again, or the written part of the answer counts.
        self.reaper.arm(self.chance.choice([0, 0, 1, 2, 3, 4]) if mortal else 0)
        append = LogWriter._append

        def counted(writer: LogWriter, entry: Any) -> Any:
            self.reaper.tick(f"answer {entry.kind}")
            return append(writer, entry)

        with pytest.MonkeyPatch.context() as patched, contextlib.suppress(Killed):
            patched.setattr(LogWriter, "_append", counted)
            now(run_index.decide(file_store.FileStore(self.home), self.rig.id, "done" if min(truths) else "not-done"))

    def wrongly_settled(self) -> list[str]:
        """Actions that are done in the log but not on the site."""
        past = history.History(self.store.read(self.rig.id).entries)
        found: list[str] = []
        for path in past.order:
            last = past.done(path)
            if last is None or last.call.effect == "read" or last.call.action != "click" or last.result is None:
                continue
            if last.result.status == "error" or last.verdict == "skipped" or last.call.thread != entries.RUN_THREAD:
                continue
            target: Any = last.call.args
            if f"css={target['target']['css']}" not in self.site.actions:
                found.append(path)
        return found


def same_order(value: Any) -> Any:
    """A value without the order of its lists."""
    if isinstance(value, list):
        return sorted((same_order(each) for each in value), key=str)
    if isinstance(value, dict):
        return {name: same_order(each) for name, each in value.items() if name != "index"}
    return value


async def examine(seed: int, home: Path) -> Report:
    """Run the flow of ``seed`` both ways and compare."""
    flow = flows.Author(seed).write()
    report = Report(seed, flow.exact)
    try:
        whole = Trial(flow, home / "whole", seed)
        expected = await whole.run(0, 0)
    except Exception as error:  # noqa: BLE001 - an engine that fails without a kill is found as well
        report.wrong.append(f"undisturbed run: {type(error).__name__}: {error}")
        return report
    span = whole.reaper.count
    trial = Trial(flow, home / "killed", seed)
    try:
        ended = await trial.run(trial.chance.randint(1, 4), span)
    except Exception as error:  # noqa: BLE001 - whatever it is, it was found
        report.wrong.append(f"{type(error).__name__}: {error}")
        ended = None
    report.kills, report.pauses = trial.reaper.kills, trial.pauses
    _compare(report, flow, (trial, ended), (whole, expected))
    return report


def _compare(
    report: Report,
    flow: flows.Flow,
    killed: tuple[Trial, events.RunEnded | None],
    alone: tuple[Trial, events.RunEnded],
) -> None:
    """Find the differences between the killed run and the uninterrupted one."""
    (trial, ended), (whole, expected) = killed, alone
    report.wrong += [*trial.mixed, *(f"undisturbed run: {each}" for each in whole.mixed)]
    done = collections.Counter(trial.site.actions)
    wanted = collections.Counter(whole.site.actions)
    report.doubled = [each for each, times in done.items() if times > 1 and _name(each) not in flow.repeatable]
    report.lost = trial.wrongly_settled() if ended is not None else []
    report.wrong += [f"undisturbed run: {each}" for each in whole.wrongly_settled()]
    report.wrong += [
        f"undisturbed run doubled {each}"
        for each, times in wanted.items()
        if times > 1 and _name(each) not in flow.repeatable
    ]
    if flow.exact and ended is not None:
        report.lost += sorted(wanted.keys() - done.keys())
        report.wrong += [f"done, and should not have been: {each}" for each in sorted(done.keys() - wanted.keys())]
        if (ended.status, trial.ends) != (expected.status, whole.ends):
            report.wrong.append(f"it ended {trial.ends}, and should have {whole.ends}")
        got, due = ended.output, expected.output
        if (got, due) != (due, due) and (flow.ordered or same_order(got) != same_order(due)):
            report.wrong.append(f"its output is {got}, and should be {due}")
        if flow.ordered and not _ended_by_error(trial):
            books, due_books = set(trial.site.books), set(whole.site.books)
            report.wrong += [
                f"{each}, and should be in {[other for other in due_books if other.target == each.target]}"
                for each in books - due_books
                if _name(each.target) not in flow.repeatable
            ]


def _name(target: str) -> str:
    return target.removeprefix("css=").split("-")[0]


def _ended_by_error(trial: Trial) -> bool:
    """True if a block or the run ended with an error: it is not replayed, so a new browser lacks the pages and fields of it."""
    past = history.History(trial.store.read(trial.rig.id).entries)
    return len(trial.ends) > 1 or any(scope.stays_failed for scope in past.scopes.values())
