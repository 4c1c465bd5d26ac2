"""Mutual slowdown of runs in one event loop, on a disk with 200 ms per sync: nineteen runs that click, alone and beside slow work.

The slow work: resuming a dead run of 10,000 steps, a refused claim, a take-over from a running process, and the end of a run with a file of 500 MB.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Coroutine, Generator
from pathlib import Path
from typing import Any

from nodes.errors import RunHeld
from nodes.values import Json
from runtime import events
from runtime.log import entries
from runtime.log.store import file_store
from runtime.log.store import store as log_store
from tests.benchmarks import logs, loops, pairs
from tests.fakes import FakePage, FakeSite
from tests.rig import Rig

RUNS = 19
CLICKS = 60
CLICK_SECONDS = 0.05
SYNC_SECONDS = 0.2
STEPS = 10_000
BYTES = 500 << 20

CLICKING = """\
version: 1
name: clicks
inputs: {numbers: {type: list}}
nodes:
  - id: each
    type: iterate
    over: "{{ inputs.numbers }}"
    as: number
    nodes:
      - {id: click, type: browser_action, action: click, target: {css: more}, effect: read}
"""

KEEPING = """\
version: 1
name: keeps a large file
secrets: [PASSWORD]
nodes: [{id: one, type: transform, expr: 1}]
"""

HOLDING = """
import sys, time
from pathlib import Path
from runtime.log.store import file_store as files
from runtime.log.store import owners as holders
from runtime.log import entries as log
from runtime.log.store import store as log_store
owned = files.Files(Path(sys.argv[1])).create(sys.argv[2])
owned.append(log.Note(name="claimed", data={**holders.me(), "epoch": owned.epoch}))
print("held", flush=True)
time.sleep(600)
"""


async def measure(
    folder: Path, count: int, warm: int, *, steps: int = STEPS, size: int = BYTES, runs: int = RUNS
) -> pairs.Comparison:
    """The seconds of a step beside the slow work, and alone, in turn."""
    folder.mkdir()
    dead = await _dead(folder / "dead", steps)
    large = folder / "large.txt"
    _write(large, size)
    beside: list[float] = []
    alone: list[float] = []
    with _slow_disk():
        for number in range(warm + count):
            ways = (beside, alone) if number % 2 else (alone, beside)
            for way in ways:
                place = folder / f"{number}-{'beside' if way is beside else 'alone'}"
                async with _others(place, dead, large) if way is beside else contextlib.nullcontext():
                    way.append(await _clicking(place / "runs", runs))
                shutil.rmtree(place)
    ratios = [a / b for a, b in zip(beside[warm:], alone[warm:], strict=True)]
    return pairs.Comparison(
        statistics.median(ratios), ratios, statistics.median(beside[warm:]), statistics.median(alone[warm:])
    )


async def _clicking(folder: Path, runs: int) -> float:
    """Mean seconds of a click of so many runs at once."""

    async def click(_target: str, _page: FakePage) -> None:
        await asyncio.sleep(CLICK_SECONDS)

    inputs = {"numbers": list[Json](range(CLICKS))}
    rigs = [Rig(folder / str(number), CLICKING, site=FakeSite(on_click=click), inputs=inputs) for number in range(runs)]
    for ended in await asyncio.gather(*(each.start() for each in rigs)):
        assert ended.status == "passed", ended
    steps = [each for rig in rigs for each in rig.told if isinstance(each, events.StepFinished) and not each.container]
    assert len(steps) == runs * CLICKS
    return statistics.fmean(each.seconds for each in steps)


@contextlib.asynccontextmanager
async def _others(folder: Path, dead: Rig, large: Path) -> AsyncGenerator[None]:
    """Start all slow work; it has ended after the block."""
    works: list[Coroutine[Any, Any, None]] = [
        _resumed(folder / "dead", dead),
        _refused(folder / "refused"),
        _taken_over(folder / "held"),
        _scanned(folder / "kept", large),
    ]
    tasks = [asyncio.create_task(each) for each in works]
    await asyncio.sleep(0)
    yield
    await asyncio.gather(*tasks)


async def _dead(folder: Path, steps: int) -> Rig:
    """A run that died when it had done so many steps."""
    rig = await logs.run_of(folder, steps // loops.NODES)
    file = rig.store.conversation_file(rig.id)
    file.write_bytes(b"".join(file.read_bytes().splitlines(keepends=True)[:-2]))
    return rig


async def _resumed(folder: Path, dead: Rig) -> None:
    await asyncio.to_thread(shutil.copytree, dead.home, folder)
    rig = Rig(folder, dead.text, inputs=dead.inputs, id=dead.id)
    assert (await rig.resume()).status == "passed"


async def _refused(folder: Path) -> None:
    store, run = file_store.FileStore(folder), log_store.new_id()
    # The owner has not recorded itself, and is waited for.
    async with contextlib.aclosing(await store.create(run)):
        with contextlib.suppress(RunHeld):
            await file_store.FileStore(folder).claim(run)
            raise AssertionError("it is held")


async def _taken_over(folder: Path) -> None:
    run = log_store.new_id()
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", HOLDING, folder, run, stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert await process.stdout.readline() == b"held\n"
    owned, _entries = await file_store.FileStore(folder).claim(run, take_over=True)
    owned.append(entries.Note(name="restored", data={}))
    await owned.aclose()
    await process.wait()


async def _scanned(folder: Path, large: Path) -> None:
    rig = Rig(folder, KEEPING, secrets={"PASSWORD": "correct-horse-battery"})
    place = rig.store.files(rig.id)
    place.mkdir(parents=True)
    (place / "large.txt").hardlink_to(large)
    assert (await rig.start()).status == "passed"


@contextlib.contextmanager
def _slow_disk() -> Generator[None]:
    """Delay each sync, and nothing else."""
    fsync, fdatasync = os.fsync, os.fdatasync
    os.fsync = os.fdatasync = lambda _handle: time.sleep(SYNC_SECONDS)
    try:
        yield
    finally:
        os.fsync, os.fdatasync = fsync, fdatasync


def _write(file: Path, size: int) -> None:
    line = b'{"path":"orders/1007","text":"%20 words &amp; words \\u00e4 and so on","number":12345}\n'
    with file.open("wb") as opened:
        for _ in range(size // (len(line) * 1000) + 1):
            opened.write(line * 1000)
