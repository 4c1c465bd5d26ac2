"""One case, killed with its browser at one crash point, resumed until it ends, and compared with the required outcome."""

from __future__ import annotations

import asyncio
import dataclasses
from pathlib import Path
from typing import Any, Literal

from typing_extensions import override

from nodes.values import Json
from runtime import events
from runtime.browser import open as open_browser
from runtime.browser import port
from runtime.browser.options import Mode
from runtime.language import reader
from runtime.log.store import file_store
from runtime.workspace import run_index
from tests import browsers, site
from tests.now import now
from tests.resumes import mortal, pages
from tests.resumes.cases import Case, Shape
from tests.resumes.office import Office
from tests.rig import Killed, Rig

MOST_LIVES = 12

QUESTIONS = ("outcome-unknown", "redo-unconfirmed")
"""Pauses that ask whether an effect happened: the office's record answers them."""

Verdict = Literal["equal", "paused", "named", "stuck", "wrong"]
"""``equal``: without a question; ``paused``: it asked by name and ended right, or asked what no record can answer; ``named``: it ended with
an error that names the step to continue from; ``stuck``: a resume fails like the one before; ``wrong``: anything else."""


@dataclasses.dataclass
class Report:
    """The result of one kill."""

    case: str
    shape: Shape
    at: str
    verdict: Verdict
    why: str = ""
    died_at: list[str] = dataclasses.field(default_factory=list)
    asked: list[str] = dataclasses.field(default_factory=list)
    """The reason and the step of each question."""
    failed: list[str] = dataclasses.field(default_factory=list)
    """The code and the step of each error with which a resume ended."""

    def __str__(self) -> str:
        """The kill and its result in one line."""
        more = "".join(
            f"; {word} {', '.join(some)}" for word, some in (("asked", self.asked), ("failed", self.failed)) if some
        )
        died = f" (died at {', then '.join(self.died_at)})" if self.died_at[1:] else ""
        return f"{self.verdict}: {self.case} {self.shape} at `{self.at}`{died}: {self.why}{more}"


@dataclasses.dataclass
class Process(Rig):
    """A run on the office, with a real browser that never survives."""

    mode: Mode = "shared"
    opened: list[port.Browser] = dataclasses.field(default_factory=list)

    @override
    async def open(self) -> port.Browser:
        opened = await open_browser.open_browser(
            None,
            origins=self.loaded.origins(self.inputs),
            private=self.reader.private(self.id),
            settings=browsers.Chosen(browser_mode=self.mode),
        )
        self.opened.append(opened)
        return opened

    @override
    async def reattach(self) -> port.Browser | None:
        return None

    async def end_browsers(self) -> None:
        """Close the remaining browsers."""
        for each in self.opened:
            await each.close()
        self.opened.clear()


class Trial:
    """A run of a case that dies as scheduled."""

    def __init__(self, case: Case, shape: Shape, folder: Path, mode: Mode = "shared") -> None:
        """``folder`` is its own; ``mode`` is that of its browsers."""
        self._mode: Mode = mode
        self.case = case
        self.shape: Shape = shape
        self.reaper = mortal.Reaper(0)
        """The reaper of the current process."""
        self.office = Office(lambda: self.reaper.on_site)
        self.said: list[str] = []
        """The messages to a person over all its lives."""
        self._home = folder / ".runops"
        folder.mkdir(parents=True)
        (folder / "report.txt").write_text("new")
        self._file = folder / "flow.yaml"
        self._file.write_text(case.text(shape))

    async def run(self, at: str = "", again: int = 0, *, drops: bool = False) -> Report:
        """Kill it at the crash point of this name, and its resume at that of this number; then resume it to its end."""
        report = Report(self.case.name, self.shape, at, "wrong")
        with site.serve() as served:
            pages.build(served, self.office)
            given: dict[str, Json] = {"base_url": served.origin}
            self.process = Process(self._home, self._file.read_text(), inputs=given, mode=self._mode)
            self.process.loaded = reader.load(self._file)
            self.process.store = mortal.MortalStore(self._home)
            try:
                report.verdict, report.why = await self._lives(report, at, again, drops=drops)
            finally:
                self.reaper.over()
        if at and not report.died_at:
            report.verdict, report.why = "wrong", "it never came to this moment"
        if doubled := [kind for kind in self.case.effects.values() if self.office.times(kind) > 1]:
            report.verdict, report.why = "wrong", f"doubled: {', '.join(doubled)} ({report.why})"
        return report

    async def _lives(self, report: Report, at: str, again: int, *, drops: bool) -> tuple[Verdict, str]:
        deaths: list[str | int] = [at or 0, again]
        begun = False
        for _ in range(MOST_LIVES):
            self.reaper = mortal.Reaper(deaths[0] if deaths else 0, drops=drops)
            ended = await self._life(begins=not begun)
            begun = begun or self._has_begun()
            if ended is None:
                del deaths[0]
                report.died_at.append(str(self.reaper.died_at))
            elif ended.status == "passed":
                different = self._difference(ended.output)
                return ("wrong", different) if different else ("paused" if report.asked else "equal", "")
            elif ended.status == "paused":
                if (over := self._answer(report, ended.question or {})) is not None:
                    return over
            elif ended.status == "failed":
                error: Any = ended.error or {}
                name = f"{error.get('code')} at {ended.path}"
                if "--from" in str(error.get("fix") or error.get("fix")):
                    return "named", f"{name}: {error['message']}"
                if name in report.failed:
                    return "stuck", f"{name}: {error['message']}"
                report.failed.append(name)
            else:
                return "wrong", f"it ended as {ended.status}"
        return "stuck", "it does not end"

    async def _life(self, *, begins: bool) -> events.RunEnded | None:
        """One process, from its start to its end; None where it died."""

        async def live() -> events.RunEnded:
            mortal.present.set(self.reaper)
            return await (self.process.start() if begins else self.process.resume())

        task = asyncio.create_task(live())
        self.reaper.watch(task)
        try:
            return await task
        except (Killed, asyncio.CancelledError):
            if self.reaper.died_at is None:
                raise
            return None
        finally:
            self._listen()
            await self.process.end_browsers()
            self.process.die()
            self.reaper.over()
            # Requests of the dead process are carried out or dropped before the resume.
            await browsers.until(lambda: not self.office.busy)

    def _listen(self) -> None:
        self.said += [f"--- life until {self.reaper.died_at or 'its end'}"]
        for each in self.process.told:
            match each:
                case events.Said(text):
                    self.said.append(text)
                case events.StepFinished(path, status) if status != "ok":
                    self.said.append(f"{path}: {status}")
                case events.RunEnded():
                    self.said.append(f"{each.status} {each.path or ''} {each.error or each.question or ''}")
                case _:
                    pass
        self.process.told.clear()

    def _has_begun(self) -> bool:
        file = self.process.store.conversation_file(self.process.id)
        if file.exists() and b"\n" in file.read_bytes():
            return True
        # Nothing of it is in the workspace, so the next process starts another run.
        self.process.id = f"{self.process.id}x"
        return False

    def _difference(self, output: Json) -> str:
        """The deviations from the required outcome; empty if none."""
        wrong: list[str] = []
        if output != self.case.output:
            wrong.append(f"its output is {output}, and should be {self.case.output}")
        kinds = sorted(each.kind for each in self.office.effects)
        if kinds != sorted(self.case.effects.values()):
            wrong.append(f"the effects are {self.office.effects}, and should be {sorted(self.case.effects.values())}")
        record = self.office.record()
        wrong += [
            f"{name} is {record[name]}, and should be {value}"
            for name, value in self.case.left.items()
            if record[name] != value
        ]
        return "; ".join(wrong)

    def _answer(self, report: Report, question: dict[str, Any]) -> tuple[Verdict, str] | None:
        """Answer a question truthfully; the end of the trial, where no answer is possible."""
        name = f"{question.get('reason')} at {question.get('path')}"
        if question.get("reason") not in QUESTIONS:
            report.asked.append(name)
            return "paused", str(question.get("message"))
        if report.asked.count(name) > 1:
            return "stuck", f"it asks again and again: {name}"
        report.asked.append(name)
        evidence: dict[str, Any] = question["evidence"]
        asked: list[str] = evidence["calls"] if "calls" in evidence else [evidence["call"]]
        truths = {
            self.case.happened(self.office, each.call.path)
            for each in self.process.history.all_attempts()
            if each.call.call in asked
        }
        if len(truths) != 1:
            return "stuck", f"one answer is wanted for effects of which one happened and another did not: {name}"
        now(run_index.decide(file_store.FileStore(self._home), self.process.id, "done" if truths.pop() else "not-done"))
        return None
