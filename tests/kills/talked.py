"""A session that is killed and resumed: `runops chat` as a process, a real model client, and the shop's ledger as a judge.

It dies at every entry and every crash point. The resume sends the messages that the log lacks. It must end like an uninterrupted session: the same
requests, none paid twice, the same state and messages, each action done once.
"""

from __future__ import annotations

import collections
import dataclasses
import itertools
import json
import random
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any

from typing_extensions import override

from runtime.log import entries as log_entries
from runtime.log import history, session
from runtime.log.threads import Exchange
from runtime.system.crash_points import CrashPoint
from tests.kills import controls, disk, lives, said

CONTROLS: dict[controls.Control, CrashPoint] = {
    "forgotten": CrashPoint.EXCHANGE_SYNCED,
    "unheard": CrashPoint.EFFECT_DONE,
    "unsaid": CrashPoint.HEARD,
}
"""For each defect the crash point whose first passing reveals it."""

OF_A_MODEL = frozenset({
    CrashPoint.USER, CrashPoint.REQUESTED, CrashPoint.REQUEST_SYNCED, CrashPoint.SUBMITTED, CrashPoint.SUBMISSION_SYNCED, CrashPoint.ANSWER_CAME,
    CrashPoint.ASSISTANT, CrashPoint.EXCHANGE_SYNCED, CrashPoint.TOOL_RESULT, CrashPoint.MODEL_ERROR, CrashPoint.SUMMARY,
})  # fmt: skip
"""Crash points where the way of asking the model matters."""


@dataclasses.dataclass(frozen=True)
class Case(lives.Case):
    """A variant of a session, and its deaths."""

    way: said.Way
    shop: bool = False
    """True if its run orders something."""
    survives: bool = True
    """True if the browser of its run outlives the process."""


@dataclasses.dataclass
class Bench(lives.Place):
    """The place of sessions."""

    def run(self, case: Case) -> Trial:
        """One session to its end."""
        return Trial(self, case, f"s{next(self.names)}").run()


class Trial(lives.Trial[Case, said.Voice]):
    """One session in its own folder."""

    def __init__(self, bench: Bench, case: Case, name: str) -> None:
        environment = {"RUNOPS_LINGER": "120" if case.survives else "0", **said.WAYS[case.way]}
        self._plot = said.TALK
        super().__init__(bench, case, name, said.Voice(case.way), environment, faked=False)
        if case.shop:
            assert bench.shop is not None
            self._project.environment["SHOP_PASSWORD"] = bench.shop.password
            self._plot = said.order(bench.shop.url, self._ref)
        self.shown: list[dict[str, Any]] = []
        """The output of ``runops show`` for each session at the end, without ids and times."""
        self.again = 0
        """Requests repeated for delegates that a death has ended."""
        self.claims = 0
        """The number of processes that have owned the run."""
        file = self._project.write("flow.yaml", self._plot.file)
        self.named: list[list[str]] = []
        """The calls whose outputs the summaries of each session name by their lines."""
        self._disk = disk.Disk(self._folder, {str(file): file.stat().st_size}, {str(file)})

    # The lives.

    @override
    def _words(self, *, begins: bool) -> tuple[list[str], str]:
        left = self._left()
        arguments = ["flow.yaml"] if begins else ["--resume", "last"]
        # Flags apply to the session from its first message on.
        flags = self._plot.flags if len(left) == len(self._plot.words) else ()
        return ["chat", *arguments, *flags], "".join(f"{each}\n" for each in left)

    @override
    def _dead(self, cut: Callable[[], object]) -> None:
        announced = self._announced()
        cut()
        self.lost += self._on_the_way(announced)

    def _left(self) -> list[str]:
        """The messages still to be sent, as the log shows them."""
        heard = [number for number, word in enumerate(self._plot.words) if self._heard(word)]
        left = list(self._plot.words[max(heard, default=-1) + 1 :])
        runs = self._runs()
        return [f"/resume {runs[-1].id}" if word.startswith("/run") and runs else word for word in left]

    def _heard(self, word: str) -> bool:
        """True if the log has the message, or its effect."""
        every = self._sessions()
        if not every:
            return False
        if word == said.FORK:
            return len(every) > 1
        entries = every[-1].entries
        if word == said.AGENT:
            return any(isinstance(each, log_entries.Version) and each.of == "mode" for each in entries)
        if word.startswith("/run"):
            followed = session.Session(entries).following is not None
            # The session reports that the run has passed only when it is resumed.
            return any(
                isinstance(each, log_entries.Event) and each.text and " passed" in each.text for each in entries
            ) or (followed and self._passed())
        return any(
            isinstance(each, log_entries.User) and each.mode is not None and self._text(each) == word
            for each in entries
        )

    def _passed(self) -> bool:
        """True if the run has passed."""
        return any(history.History(each.entries).status == "passed" for each in self._runs())

    def _text(self, entry: log_entries.Said) -> str:
        if entry.blob is not None:
            return json.loads(self._kept.blob(entry.blob.sha256))
        return entry.text or ""

    def _announced(self) -> int:
        """The line of a request announced but not sent when this life ended; 0 where there is none."""
        every = self._sessions()
        last = every[-1].entries[-1] if every else None
        if (
            self.kills[-1] == CrashPoint.ANSWER_CAME
            or not isinstance(last, log_entries.Note)
            or last.name != "requested"
        ):
            return 0
        return 0 if last.thread.startswith(log_entries.DELEGATE) else last.seq

    def _on_the_way(self, announced: int) -> int:
        """Requests of this life that were sent and left no trace; in the background none is lost whose response has its id in the log.

        Those of delegates are excluded: an interrupted delegate identifies its repetition.
        """
        every = self._sessions()
        if not every:
            return 0
        entries = every[-1].entries
        begun = max(
            (each.seq for each in entries if isinstance(each, log_entries.Note) and each.name == "claimed"), default=0
        )
        rows = session.Session(entries).ledger.rows
        waiting = [
            row
            for row in rows
            if row.line > begun
            and row.status == "open"
            and not row.response
            and row.line != announced
            and not row.thread.startswith(log_entries.DELEGATE)
        ]
        return len(waiting)

    # The judge.

    @override
    def _judge(self) -> None:
        readings = self._sessions()
        folds = [session.Session(each.entries) for each in readings]
        if len(readings) != 1 + (said.FORK in self._plot.words):
            self.wrong.append(f"there are {len(readings)} sessions")
        # Only a power cut can remove a run entirely.
        runs = [each.id for each in self._runs()]
        lost = [each.text or "" for one in readings for each in one.entries if isinstance(each, log_entries.Event)]
        self.wrong += [
            f"there is more to be known: {text}"
            for text in lost
            if "nothing is known" in text and (not self.case.power or any(run in text for run in runs))
        ]
        if self.case.shop and (times := len(self._orders())) != 1:
            self.wrong.append(f"{times} pieces were ordered")
        threads = collections.Counter(row.thread for fold in folds for row in fold.ledger.rows)
        for fold in folds:
            for action in fold.actions.values():
                ended = action.result is not None and action.result.status == "interrupted"
                if not ended or action.call.action != "delegate":
                    continue
                thread = log_entries.delegate_thread(action.call.call)
                self.interrupted += 1
                self.again += 1 + threads[thread]
                # The reason for the break is last in its thread, without an answer before it.
                if any(isinstance(each, Exchange) and not each.answer.calls for each in fold.thread(thread).said):
                    self.wrong.append(f"{action.call.path} had answered, and is called interrupted")
        # An announced request counts, though it was never sent; two delegates may each have one.
        self._judge_sessions(folds, announced=len(self.kills) + self.interrupted)
        self.claims = sum(
            isinstance(each, log_entries.Note) and each.name == "claimed"
            for run in self._runs()
            for each in run.entries
        )
        self.shown = [self._project.show(each.id) for each in readings]
        self.named = [[*self._named(each.entries)] for each in readings]
        if any(each != self.named[0] for each in self.named):
            self.wrong.append(f"a summary names other outputs in the fork: {self.named}")

    def _named(self, entries: Sequence[log_entries.AnyEntry]) -> Iterator[str]:
        at = {each.seq: each for each in entries}
        for summary in entries:
            if isinstance(summary, log_entries.Summary):
                for line in said.named_lines(self._text(summary)):
                    one = at.get(line)
                    yield one.asked if isinstance(one, log_entries.ToolResult) else f"no output: {one}"

    def _orders(self) -> list[dict[str, Any]]:
        assert self._shop is not None
        return self._shop.ledger("cart", self._ref)

    @override
    def differs(self, alone: Trial) -> Iterator[str]:
        asides: set[said.Aside] = {"delegates"} if self.interrupted else set()
        if self.claims != alone.claims:
            asides.add("run")
        requests, wanted = (_counted(each.voice.requests, asides) for each in (self, alone))
        more = requests - wanted
        yield from (f"was never asked: {_apart(each, more)}" for each in wanted - requests)
        if more.total() > self.lost + self.again:
            yield f"{more.total()} requests too many, {self.lost} answers were lost, {self.again} were for delegates: {[_apart(each, wanted) for each in more]}"
        if self.named != alone.named:
            yield f"summaries name the outputs of {self.named}, and should name those of {alone.named}"
        for mine, its in zip(self.shown, alone.shown, strict=False):
            one, other = (said.shown(each, asides) for each in (mine, its))
            for name in sorted({*one, *other}):
                if one.get(name) != other.get(name):
                    yield f"{name} is {_first_difference(one.get(name), other.get(name))}"


def _counted(requests: Sequence[dict[str, Any]], asides: Collection[said.Aside]) -> collections.Counter[str]:
    compared = (said.without(each, asides) for each in requests)
    return collections.Counter(json.dumps(each, sort_keys=True, ensure_ascii=False) for each in compared)


def _apart(request: str, others: Iterable[str]) -> str:
    """The place where the request differs from the most similar of the others."""
    same = max((_same(request, each) for each in others), default=0)
    return f"…{request[max(0, same - 100) : same + 200]}…"


def _same(one: str, other: str) -> int:
    """The length of their common beginning."""
    differ = (number for number, (mine, its) in enumerate(zip(one, other, strict=False)) if mine != its)
    return next(differ, min(len(one), len(other)))


def _first_difference(one: Any, other: Any) -> str:
    if isinstance(one, list) and isinstance(other, list):
        for mine, its in itertools.zip_longest(one, other):
            if mine != its:
                return f"{mine}, and should be {its}"
    return f"{one}, and should be {other}"


def moments(alone: Trial) -> list[int]:
    """The numbers of the crash points at which a session is killed; for later variants only those of requests."""
    if alone.case.way != next(iter(said.WAYS)):
        return [number for number, moment in enumerate(alone.moments, 1) if moment in OF_A_MODEL]
    return lives.moments(alone)


def examine(
    bench: Bench, case: Case, draws: Sequence[int] | None, chance: random.Random, jobs: int = 1
) -> Iterator[Trial]:
    """Kill a session at each of its crash points, or at those drawn. The first session is not killed."""
    alone = bench.run(case)
    yield alone
    yield from lives.examine(bench.run, case, alone, moments(alone), draws, chance, later=30, jobs=jobs)


def deviations(bench: Bench, control: controls.Control, alone: Trial) -> list[str]:
    """The deviations of a session with this defect that dies where the defect shows."""
    return lives.deviations(bench.run, alone.case, control, CONTROLS[control], alone)
