"""``make miniwob`` as a process: files that do the task win, files that do the wrong thing lose, and the exit code says which."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests import breadth

pytestmark = [pytest.mark.full_browser, pytest.mark.own_driver]

ROOT = Path(__file__).parents[2]


def played(*arguments: str, tasks: str, seeds: str) -> subprocess.CompletedProcess[str]:
    """The judge's process, with chosen tasks and seeds."""
    return subprocess.run(
        [sys.executable, "-m", "tests.miniwob", *arguments],
        cwd=ROOT,
        env={**os.environ, "TASKS": tasks, "SEEDS": seeds},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


def test_files_that_do_the_task_win() -> None:
    """Tasks of several kinds are won with each seed: the last line counts them, and the exit code is 0."""
    done = played(tasks="click-tab-2-hard draw-line highlight-text-2", seeds="3 71")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1] == "3 tasks, 6 episodes, 6 passed"


WRONG = sorted(each.stem for each in (ROOT / "tests" / "miniwob" / "wrong").glob("*.yaml"))


def test_files_that_do_the_wrong_thing_lose() -> None:
    """Each of the ten files gets the reward -1, and the exit code is 1."""
    assert len(WRONG) == 10
    tried = breadth.some(WRONG, 1)
    done = played("--wrong", tasks=" ".join(tried), seeds="5")
    assert done.returncode == 1, done.stdout + done.stderr
    assert re.findall(r"seed 5: reward (\S+),", done.stdout) == ["-1.0"] * len(tried)
    assert done.stdout.splitlines()[-1] == f"{len(tried)} tasks, {len(tried)} episodes, 0 passed"
