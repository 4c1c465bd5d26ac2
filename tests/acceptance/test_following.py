"""A program follows a run of other processes: while it is active, when it is killed, and when it is resumed."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Generator
from pathlib import Path

import pytest

from runtime import Runtime, Settings
from runtime.log import entries
from tests import shop_flows
from tests.acceptance.test_two_at_once import wait_until
from tests.command import TIMEOUT, Project, Started

FLOW = """
version: 1
name: Wait
secrets: [PASSWORD]
inputs: {word: {type: string, default: none}}
nodes:
  - {id: first, type: transform, expr: "{{ 1 + 1 }}"}
  - {id: wait, type: transform, python: "waiting:until_told", timeout: 600}
  - {id: last, type: transform, python: "waiting:secret"}
output: "{{ wait }}"
"""

SECRET = "correct-horse-battery"


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A project whose workflow waits for a signal file, and yields a secret."""
    folder = tmp_path / "project"
    folder.mkdir()
    project = Project(folder, PASSWORD=SECRET)
    project.write("waiting.py", f"{shop_flows.WAITING}\ndef secret():\n    return {SECRET!r}\n")
    project.write("pyproject.toml", '[tool.runops]\npython_modules = ["waiting"]\n')
    project.write("wait.yaml", FLOW)
    return project


async def seen_from(runs: Runtime, run: str, after: int, seen: list[entries.AnyEntry], waits: asyncio.Event) -> None:
    """Follow the run to its end; set ``waits`` when its second step begins."""
    async for entry in runs.follow(run, after):
        seen.append(entry)
        if isinstance(entry, entries.Call) and entry.path == "wait":
            waits.set()


def until_it_waits(project: Project) -> None:
    """Wait until the run has begun to wait."""
    wait_until((project.folder / "begun").exists, "the run has not begun to wait")
    (project.folder / "begun").unlink()


async def test_a_run_that_is_killed_and_resumed_is_followed_from_any_cursor(project: Project) -> None:
    """A follower sees the end of a killed run, and from its last number on the entries of the resume: each once, in order, without the secret."""
    home = project.folder / ".runops"
    async with contextlib.AsyncExitStack() as stack:
        runs = await stack.enter_async_context(Runtime(settings=Settings(home=home)))
        with _started(project, "run", "wait.yaml") as first:
            await asyncio.to_thread(until_it_waits, project)
            (file,) = home.glob("conversations/*.jsonl")
            run = file.stem
            active, waits = list[entries.AnyEntry](), asyncio.Event()
            following = asyncio.create_task(seen_from(runs, run, 0, active, waits))
            await asyncio.wait_for(waits.wait(), TIMEOUT)
            assert not following.done()
            first.kill()
            await asyncio.wait_for(following, TIMEOUT)
        dead: list[entries.AnyEntry] = []
        await seen_from(runs, run, 0, dead, waits)
        assert dead == active
        with _started(project, "resume", run) as second:
            await asyncio.to_thread(until_it_waits, project)
            cursors = (0, 1, len(dead) // 2, len(dead))
            found = [list[entries.AnyEntry]() for _each in cursors]
            tasks = [
                asyncio.create_task(seen_from(runs, run, after, seen, waits))
                for after, seen in zip(cursors, found, strict=True)
            ]
            (project.folder / "go").touch()
            await asyncio.wait_for(asyncio.gather(*tasks), TIMEOUT)
            assert await asyncio.to_thread(second.wait, TIMEOUT) == 0
    for after, seen in zip(cursors, found, strict=True):
        assert [each.seq for each in seen] == list(range(after + 1, after + len(seen) + 1))
        assert seen == found[0][after:]
    assert found[0][: len(dead)] == dead
    last = found[0][-1]
    assert isinstance(last, entries.Note)
    assert (last.name, last.data["status"]) == ("ended", "passed")
    assert SECRET not in repr(found)
    assert "[hidden]" in repr(found)


@contextlib.contextmanager
def _started(project: Project, *arguments: str) -> Generator[Started]:
    process: Started = project.start(*arguments)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()
