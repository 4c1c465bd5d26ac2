"""The place of trials: one browser of this process, in which each life of each run has its own context."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import itertools
import random
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path
from typing import Any

from nodes.errors import RunOpsError
from runtime.browser.options import Mode
from runtime.language import reader
from runtime.system import crash_points
from tests import browsers
from tests.resumes import mortal, trial
from tests.resumes.cases import Case, Shape
from tests.rig import Killed

LATEST = 12
"""The last crash point at which a resume dies, too."""


@dataclasses.dataclass
class Done:
    """A trial that is over."""

    report: trial.Report
    moments: list[str]
    """The crash points of its last process."""
    said: list[str]
    log: list[str]


@dataclasses.dataclass(frozen=True)
class Kill:
    """The crash point at which a run dies."""

    at: str
    """Its name."""
    again: int = 0
    """The crash point at which its resume dies, too, by its number; 0 for none."""
    drops: bool = False
    """True if the site never carries out an effect before which the run dies."""


class Bench:
    """Runs trials, some at a time."""

    def __init__(self, folder: Path, jobs: int, mode: Mode) -> None:
        """Each trial has its own folder in ``folder``; ``mode`` is that of its browsers."""
        self._folder = folder
        self._mode: Mode = mode
        self._names = itertools.count(1)
        self._free = asyncio.Semaphore(jobs)

    async def one(self, case: Case, shape: Shape, kill: Kill | None = None) -> Done:
        """One trial; without ``kill`` it is not interrupted."""
        async with self._free:
            tried = trial.Trial(case, shape, self._folder / f"t{next(self._names)}", self._mode)
            report = await (tried.run(kill.at, kill.again, drops=kill.drops) if kill is not None else tried.run())
            file = tried.process.store.conversation_file(tried.process.id)
            lines = file.read_text().splitlines() if file.exists() else []
            return Done(report, list(tried.reaper.moments), tried.said, lines)

    async def alone(self, case: Case, shape: Shape) -> Done:
        """An uninterrupted run."""
        return await self.one(case, shape)

    async def killed(self, case: Case, shape: Shape, kills: Sequence[Kill]) -> list[Done]:
        """A trial for each kill, in their order."""
        return await asyncio.gather(*(self.one(case, shape, each) for each in kills))


@contextlib.asynccontextmanager
async def opened(folder: Path, jobs: int = 1, mode: Mode = "shared") -> AsyncGenerator[Bench]:
    """A bench whose browser stays until the block ends; in mode *own* each life starts another one."""
    before = crash_points.hook
    mortal.install()
    # It stays: background tasks of a dead process may fail only when they are garbage-collected.
    asyncio.get_running_loop().set_exception_handler(_ignore_the_dead)
    try:
        async with browsers.opened(folder / "stays", mode="shared"):
            yield Bench(folder, jobs, mode)
    finally:
        crash_points.hook = before


def _ignore_the_dead(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Ignore background tasks of a dead process, which end unawaited."""
    if not isinstance(context.get("exception"), Killed):
        loop.default_exception_handler(context)


def refused(case: Case, shape: Shape) -> str | None:
    """The reason why the language has no such workflow; None where it has."""
    try:
        reader.parse(case.text(shape), "flow.yaml")
    except RunOpsError as error:
        return error.message
    return None


def moments(alone: Done) -> list[str]:
    """The crash points at which a run is killed: those of an uninterrupted one without the first, before which there is no run."""
    return alone.moments[1:]


def kills(names: Sequence[str], chance: random.Random, only: int | None = None, again: int | None = None) -> list[Kill]:
    """A kill at each crash point, or at ``only`` so many; some resumes die, too. A received request is carried out, and in another run dropped."""
    drawn = list(names) if only is None else sorted(chance.sample(list(names), min(only, len(names))), key=names.index)
    return [
        Kill(each, again if again is not None else chance.choice([0, 0, 0, chance.randint(1, LATEST)]), drops)
        for each in drawn
        for drops in ((False, True) if each.startswith("site before") else (False,))
    ]
