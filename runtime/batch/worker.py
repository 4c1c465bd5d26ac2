"""A process that carries out cases for a command: ``python -m runtime.batch.worker``.

Standard input has a JSON object a line: first the options, then orders, ``{"file": …, "inputs": …, "row": …}`` or ``{"resume": RUN}``. Standard output
has the answers: ``{"ready": true}``, events of the run, and one of ``over``, ``refused`` and ``bug`` for each order. Once standard input is
closed, the current run is interrupted as by Ctrl-C, and the process ends: so no run outlives the command, however that dies.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import io
import json
import os
import signal
import sys
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TextIO, cast

from typing_extensions import override

from nodes.errors import RunOpsError
from nodes.values import Json
from runtime import events, logger
from runtime.display.stream import Talk
from runtime.runs.runtime import Run, Runtime
from runtime.services import functions
from runtime.workspace import host

LONGEST_LINE = 1 << 30  # bytes of a message at the most: it may hold the whole output of a run

SHOWN_ALWAYS = (events.RunStarted, events.RunEnded, events.Said)
"""Events that are sent even if nobody looks at the steps."""


class Worker:
    def __init__(self, answers: int) -> None:
        """``answers`` is the descriptor of the pipe to the command."""
        self._answers = answers
        self._orders: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._over = asyncio.Event()
        self._steps = False

    def _say(self, **answer: Json) -> None:
        line = f"{json.dumps(answer)}\n".encode()
        try:
            while line:
                line = line[os.write(self._answers, line) :]
        except OSError:  # the command is gone
            self._over.set()

    def _hear(self, event: events.Event) -> None:
        if self._steps or isinstance(event, SHOWN_ALWAYS):
            self._say(event=event.as_json())

    async def serve(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, self._over.set)
        stream = asyncio.StreamReader(limit=LONGEST_LINE)
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(stream), sys.stdin)
        options = json.loads(await stream.readline() or "{}")
        reading = asyncio.create_task(self._read(stream))
        self._steps = bool(options.get("steps"))
        here = dataclasses.replace(host.load(**options.get("flags", {})), usual_mode="shared")
        async with Runtime.of(here) as runs:
            self._say(ready=True)
            while (order := await self._until_over(self._orders.get())) is not None:
                await self._carry_out(runs, order)
        reading.cancel()

    async def _read(self, stream: asyncio.StreamReader) -> None:
        while line := await stream.readline():
            self._orders.put_nowait(json.loads(line))
        self._over.set()

    async def _until_over(self, work: Any) -> Any:
        """Await ``work``; None if no more is to be done before that is there."""
        working, over = asyncio.ensure_future(work), asyncio.create_task(self._over.wait())
        await asyncio.wait((working, over), return_when=asyncio.FIRST_COMPLETED)
        over.cancel()
        if self._over.is_set():
            working.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await working
            return None
        return working.result()

    async def _carry_out(self, runs: Runtime, order: Mapping[str, Any]) -> None:
        try:
            await self._until_over(self._run(runs, order))
        except RunOpsError as error:
            self._say(refused=error.as_json(), exit=error.exit)
        except Exception as error:  # noqa: BLE001 — the command reports the bug
            self._say(bug="".join(traceback.format_exception(error)))
        else:
            self._say(over=True)

    async def _run(self, runs: Runtime, order: Mapping[str, Any]) -> events.RunEnded:
        run: Run
        if "resume" in order:
            run = await runs.resume(order["resume"], listener=self._hear)
        else:
            run = await runs.start(Path(order["file"]), order["inputs"], row=order["row"], listener=self._hear)
        return await run.to_its_end()


class _Printed(io.TextIOBase):
    """What a workflow's functions print goes to standard error, secrets masked."""

    @override
    def write(self, text: str) -> int:
        Talk(sys.stderr).write(functions.masked(text))
        return len(text)


def main() -> None:
    answers = os.dup(1)
    os.dup2(2, 1)
    sys.stdout = cast("TextIO", _Printed())
    logger.silence()
    asyncio.run(Worker(answers).serve())


if __name__ == "__main__":
    main()
