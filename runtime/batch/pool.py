"""Cases carried out by several worker processes. The command watches; the workers write the logs.

A worker that dies loses nothing: its run is resumed once in a new worker. Cancelling ``Pool.run`` interrupts all current runs.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from nodes.errors import RunOpsError, SetupError
from nodes.values import Json
from runtime import events
from runtime.batch import policy as policies
from runtime.batch import worker as workers
from runtime.runs import results
from runtime.system import tasks

COMMAND = (sys.executable, "-P", "-m", workers.__name__)
LIVES = 2  # workers that a run may have: the second one resumes it
INTERRUPTED = 130
LAST_SECONDS = 10.0  # seconds in which a worker must end once it has nothing to do


class Refused(RunOpsError):
    """Why a worker could not start a run."""

    def __init__(self, error: Mapping[str, Any], code: int) -> None:
        super().__init__(
            error["code"], error["message"], fix=error.get("fix"), phase=error["phase"], evidence=error.get("evidence")
        )
        self._who, self.exit = error["who"], code  # type: ignore[misc]

    def as_json(self) -> dict[str, Json]:
        return {**super().as_json(), "who": self._who}


class WorkerBug(Exception):
    """An exception in a worker, with its traceback as text."""


class Watcher(Protocol):
    """Is informed while cases run. ``place`` is the number of a worker, from 0."""

    def began(self, place: int, outcome: results.Outcome) -> None: ...

    def heard(self, place: int, outcome: results.Outcome, event: events.Event) -> None: ...

    def retries(self, outcome: results.Outcome) -> None:
        """A new run of the case begins, as the last one has failed."""

    def ended(self, place: int, outcome: results.Outcome) -> None: ...

    def changed(self) -> None:
        """A run began or ended."""

    def printed(self, text: str) -> None:
        """A function of a workflow has printed these lines."""


class _Worker:
    def __init__(self, process: asyncio.subprocess.Process, printed: Callable[[str], None]) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        self._process, self._stdin, self._answers = process, process.stdin, process.stdout
        self._printing = asyncio.create_task(_lines(process.stderr, printed))

    @classmethod
    async def start(cls, options: Mapping[str, Json], printed: Callable[[str], None]) -> _Worker:
        """Start a process. It is in a session of its own, so that Ctrl-C on a terminal reaches the command only."""
        process = await asyncio.create_subprocess_exec(
            *COMMAND,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
            limit=workers.LONGEST_LINE,
        )
        started = cls(process, printed)
        await started.order(options)
        return started

    async def order(self, order: Mapping[str, Json]) -> None:
        with contextlib.suppress(ConnectionError):
            self._stdin.write(f"{json.dumps(order)}\n".encode())
            await self._stdin.drain()

    async def answer(self) -> dict[str, Any] | None:
        """Return the next answer; None once the worker has died."""
        line = await self._answers.readline()
        return json.loads(line) if line.endswith(b"\n") else None

    def interrupt(self) -> None:
        """Have it interrupt its run, answer, and end."""
        self._stdin.close()

    async def end(self) -> None:
        """Return once the process is gone, with its locks."""
        self.interrupt()
        try:
            async with asyncio.timeout(LAST_SECONDS):
                await self._process.wait()
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()
            await self._process.wait()
        # A program that the worker has left may hold the pipe open.
        await asyncio.wait((self._printing,), timeout=0.1)
        self._printing.cancel()


async def _lines(stream: asyncio.StreamReader, printed: Callable[[str], None]) -> None:
    rest = b""
    while data := await stream.read(1 << 16):
        *whole, rest = (rest + data).split(b"\n")
        for line in whole:
            printed(line.decode(errors="replace"))
    if rest:
        printed(rest.decode(errors="replace"))


@dataclasses.dataclass
class Pool:
    outcomes: Sequence[results.Outcome]  # in the order in which they begin
    inputs: Mapping[str, Mapping[str, Json]]  # inputs that each case is given, by its id
    size: int  # number of workers
    options: Mapping[str, Json]
    policy: policies.Policy
    watcher: Watcher

    def __post_init__(self) -> None:
        self._left = [*self.outcomes][::-1]
        self._workers: dict[int, _Worker] = {}
        self._stopping = False

    async def run(self) -> None:
        """Carry out all cases. Raises WorkerBug once the current ones have ended, and SetupError ``worker-died``."""
        working = [asyncio.create_task(self._work(place)) for place in range(self.size)]
        try:
            await asyncio.wait(working, return_when=asyncio.FIRST_EXCEPTION)
        except asyncio.CancelledError:
            self._stop(interrupt=True)
            raise
        finally:
            self._stop(interrupt=False)
            await tasks.to_the_end(asyncio.wait(working))
        for each in working:
            each.result()

    def _stop(self, *, interrupt: bool) -> None:
        """Begin no further run."""
        self._stopping = True
        if interrupt:
            for each in self._workers.values():
                each.interrupt()

    async def _work(self, place: int) -> None:
        try:
            while not self._stopping and self._left and not self.policy.is_over(self.outcomes):
                await self._case(place, self._left.pop())
        finally:
            if (last := self._workers.pop(place, None)) is not None:
                await last.end()

    async def _case(self, place: int, outcome: results.Outcome) -> None:
        self.watcher.began(place, outcome)
        await self._run(place, outcome)
        while not self._stopping and self.policy.retries_now(outcome):
            self.watcher.retries(outcome)
            await self._run(place, outcome)
        self.watcher.ended(place, outcome)

    async def _run(self, place: int, outcome: results.Outcome) -> None:
        this = outcome.begin()
        self.watcher.changed()
        lives = 1
        while not await self._carried_out(place, outcome) and not self._stopping:
            if lives == LIVES:
                outcome.notes.append("its processes died, the second one too")
                if this.id is None:
                    this.refuse(_died())
                break
            lives += 1
            again = "resumed" if this.id is not None else "begun"
            outcome.notes.append(f"its process died, and the run was {again} in another one")
        if this.id is None and this.error is None:
            outcome.runs.remove(this)
        elif this.state == "begun":
            this.end(None, INTERRUPTED)
        self.watcher.changed()

    async def _carried_out(self, place: int, outcome: results.Outcome) -> bool:
        """Have a worker begin the last run of a case, or resume it; return False if the worker has died before the run ended."""
        worker = await self._worker(place)
        this = outcome.runs[-1]
        if worker is not None:
            await worker.order(self._order(outcome))
        while worker is not None and (answer := await worker.answer()) is not None:
            match answer:
                case {"event": event}:
                    self._hear(place, outcome, events.from_json(event))
                case {"refused": {"code": "unknown-run"}} if this.id is not None:
                    # Its process died before the log had an entry, so nothing was done that must not be done again.
                    this.id = None
                    await worker.order(self._order(outcome))
                case {"refused": error, "exit": code}:
                    this.refuse(Refused(error, code))
                    return True
                case {"bug": text}:
                    raise WorkerBug(text)
                case {"over": _}:
                    return True
                case _:
                    pass
        if (dead := self._workers.pop(place, None)) is not None:
            await dead.end()
        # A run that has ended is not resumed, whatever became of its worker.
        return this.state != "begun"

    def _order(self, outcome: results.Outcome) -> dict[str, Json]:
        run = outcome.runs[-1].id
        if run is not None:
            return {"resume": run}
        return {"file": str(outcome.file), "inputs": dict(self.inputs[outcome.case.id]), "row": outcome.case.row}

    async def _worker(self, place: int) -> _Worker | None:
        """Return the worker at a place, ready for an order; None if it has died at its start, or no run is to begin."""
        if place in self._workers:
            return self._workers[place]
        worker = self._workers[place] = await _Worker.start(self.options, self.watcher.printed)
        if self._stopping:
            worker.interrupt()
        return worker if await worker.answer() is not None else None

    def _hear(self, place: int, outcome: results.Outcome, event: events.Event) -> None:
        this = outcome.runs[-1]
        if isinstance(event, events.RunStarted):
            this.id = event.run
            self.watcher.changed()
        elif isinstance(event, events.RunEnded):
            this.end(event, event.exit)
        self.watcher.heard(place, outcome, event)


def _died() -> SetupError:
    return SetupError(
        "worker-died",
        "the process that was to carry out the run died twice before the run began",
        fix="look at the memory of this machine, or use fewer workers: `-j 1`",
    )
