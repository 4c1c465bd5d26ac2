"""Kill a run that asks a model at every crash point. The page is faked; the model server and the client are real.

A resumed run must reach the same output, send no request with an open call, perform each action once, and pay no logged answer twice.
"""

from __future__ import annotations

import asyncio
import collections
import contextlib
import dataclasses
import json
import random
from collections.abc import Generator, Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest

from nodes.values import Json
from runtime import events
from runtime.log import entries as log_entries
from runtime.log import history
from runtime.log.store import store as log_store
from runtime.system import crash_points
from runtime.system.crash_points import CrashPoint
from runtime.testing import responses, scripted_model
from tests import models
from tests.fakes import FakeSite
from tests.rig import Killed, Rig

WAYS: dict[str, dict[str, Any]] = {
    "live": {},
    "chained": {"model_store": True},
    "background": {"model_background": True},
}
"""Settings for each way of asking the model."""

FLOW = """
version: 1
name: Sort notes
inputs:
  notes: {type: list}
nodes:
  - {id: open, type: browser_action, action: goto, url: "http://shop.test/"}
  - id: each
    type: iterate
    over: "{{ inputs.notes }}"
    as: note
    key: "{{ note.number }}"
    nodes:
      - id: kind
        type: cognition
        instruction: Say what the customer wants.
        input: "{{ note }}"
        output: {wish: [refund, delivery, other]}
      - {id: mark, type: browser_action, action: click, effect: idempotent, target: {css: "{{ note.number }}-{{ kind.wish }}"}}
  - id: sum
    type: cognition
    instruction: Count the wishes.
    input: "{{ each }}"
    output: integer
output: {marks: "{{ each }}", sum: "{{ sum }}"}
"""

NOTES = [{"number": 1, "text": "money back"}, {"number": 2, "text": "mumbling"}, {"number": 3, "text": "rush hour"}]

NOTHING_SENT = frozenset({CrashPoint.REQUESTED, CrashPoint.REQUEST_SYNCED})
"""Crash points at which a request is announced but not yet sent."""


@dataclasses.dataclass
class Report:
    """The result of one run."""

    way: str
    kill: str
    resumed: int = 0
    wrong: list[str] = dataclasses.field(default_factory=list)


class Voice:
    """The model. Its first answer to the second note is invalid; the third note is rate-limited once in each run."""

    def __init__(self) -> None:
        self.refused = False

    def __call__(self, asked: scripted_model.AskedFor) -> scripted_model.Scripted:
        """The answer to a request."""
        question = scripted_model.text_of(asked.items[0])
        if "rush hour" in question and not self.refused:
            self.refused = True
            return scripted_model.rate_limited(milliseconds=1)
        if "mumbling" in question and len(asked.items) == 1:
            return (scripted_model.thought("Hm.") + scripted_model.text("Hm.")).in_background(polls=0)
        if "text" not in question:
            return scripted_model.text({"value": 3}).in_background(polls=0)
        answer = scripted_model.thought("Let me see.") + scripted_model.text({"wish": "refund"})
        return answer.in_background(polls=int("money" in question))


class Run:
    """One run of the flow, which is killed as scheduled and resumed to its end."""

    def __init__(self, way: str, folder: Path, server: responses.Server, patch: pytest.MonkeyPatch) -> None:
        self.site = FakeSite()
        chosen = models.asked_at(server, patch, **WAYS[way])
        self.rig = Rig(folder, FLOW, site=self.site, inputs={"notes": NOTES}, settings=chosen)
        self.passed: list[CrashPoint] = []
        """The crash points over all lives, in order."""
        self.output: Json = None

    def live(self, deadly: int = 0) -> bool:
        """Start or resume; whether it reached its end. It dies at the crash point with this number in this life, from 1; 0 for none."""
        ended: Any = None
        with self._dying(deadly), contextlib.suppress(Killed):
            # Its own loop: background tasks of a dead process do not run.
            ended = asyncio.run(self._start_or_resume())
        if ended is None:
            self.rig.die()
            return False
        assert ended.status == "passed", ended
        self.output = ended.output
        return True

    async def _start_or_resume(self) -> events.RunEnded:
        if self.rig.id in self.rig.store.ids() and self.rig.store.read(self.rig.id).entries:
            return await self.rig.resume()
        # It died before its first entry: no run exists.
        self.rig.id = log_store.new_id()
        return await self.rig.start()

    @property
    def waits(self) -> bool:
        """True if the log has a request without an answer."""
        return any(row.status == "open" for row in self.rig.history.ledger.rows)

    @contextlib.contextmanager
    def _dying(self, deadly: int) -> Generator[None]:
        count = 0

        def hook(point: CrashPoint) -> None:
            nonlocal count
            count += 1
            self.passed.append(point)
            if count == deadly:
                raise Killed

        crash_points.hook = hook
        try:
            yield
        finally:
            crash_points.hook = None


def asked(server: responses.Server) -> int:
    """The number of answers that the model gave."""
    return sum(each.status == 200 for each in server.asked)


def examine(way: str, numbers: Sequence[int] | None, chance: random.Random, folder: Path) -> Generator[Report]:
    """Kill a run at each of its crash points, or at those with these numbers, one after the other. Each resume is killed once, too."""
    with pytest.MonkeyPatch.context() as patch:
        alone, paid = _one(way, [], folder / "alone", patch)
        assert not alone.wrong, alone
        count = alone.resumed
        chosen = range(1, count + 1) if numbers is None else [1 + (each - 1) % count for each in numbers]
        for each in chosen:
            yield _one(way, [each, chance.randint(1, 12)], folder / f"{way}-{each}", patch, paid)[0]


def _one(
    way: str, deaths: Sequence[int], folder: Path, patch: pytest.MonkeyPatch, paid: int | None = None
) -> tuple[Report, int]:
    """One run killed at these crash points of its lives, and the number of answers. For an uninterrupted run ``resumed`` counts its crash points."""
    with responses.serve(Voice()) as server:
        run = Run(way, folder, server, patch)
        lives, on_the_way, killed = 0, 0, list[CrashPoint]()
        for deadly in (*deaths, 0):
            over = run.live(deadly)
            if over:
                break
            killed.append(run.passed[-1])
            on_the_way += run.waits and run.passed[-1] not in NOTHING_SENT
            lives += 1
        report = Report(way, " ".join(killed), lives if deaths else len(run.passed))
        answered = asked(server)
        report.wrong = [*_wrong(run, server)]
        if paid is not None:
            # An answer still on its way is requested again; in the background it is fetched.
            twice = 0 if way == "background" else on_the_way
            if not paid <= answered <= paid + twice:
                report.wrong.append(f"{answered} answers were given, and {paid} without a crash")
    return report, answered


def _wrong(run: Run, server: responses.Server) -> Iterable[str]:
    """The deviations at the end."""
    if run.output != {"marks": [None] * 3, "sum": 3} and not _same(run.output):
        yield f"the output is {run.output}"
    yield from server.problems
    if sorted(set(run.site.actions)) != ["css=1-refund", "css=2-refund", "css=3-refund"]:
        yield f"the actions are {run.site.actions}"
    entries = run.rig.store.read(run.rig.id).entries
    past = history.History(entries)
    yield from (f"the call {each.call.call} is open" for each in past.open_calls())
    yield from _broken_threads(entries)
    responded = [row.response for row in past.ledger.rows if row.status == "ok" and row.source == "model"]
    yield from (f"{each} was paid {n} times" for each, n in collections.Counter(responded).items() if n > 1)


def _same(output: Json) -> bool:
    return isinstance(output, dict) and output["sum"] == 3 and len(output["marks"]) == 3


def _broken_threads(entries: Sequence[log_entries.AnyEntry]) -> Iterable[str]:
    """A thread with a model alternates: questions come before their answers, and no answer follows an answer."""
    last: dict[str, str] = {}
    for entry in entries:
        if isinstance(entry, log_entries.User | log_entries.Assistant):
            if last.get(entry.thread, "assistant") == entry.kind:
                yield f"{entry.thread}: two entries of kind {entry.kind} in a row"
            last[entry.thread] = entry.kind


def summary(reports: Sequence[Report]) -> str:
    """The results in one line."""
    wrong = sum(bool(each.wrong) for each in reports)
    return f"{sum(each.resumed for each in reports)} kill points, {wrong} not as they should be"


def as_json(report: Report) -> str:
    """A report for debugging."""
    return json.dumps(dataclasses.asdict(report))
