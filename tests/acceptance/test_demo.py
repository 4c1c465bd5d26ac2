"""The demo as `make demo` starts it: an interruption leaves no process, and the demo can be resumed."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

pytestmark = [pytest.mark.full_browser, pytest.mark.own_driver]

ROOT = Path(__file__).parents[2]


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A folder with the demo and its workflows."""
    (tmp_path / "scripts").mkdir()
    shutil.copy(ROOT / "scripts" / "demo.py", tmp_path / "scripts")
    shutil.copytree(ROOT / "workflows", tmp_path / "workflows")
    return tmp_path


def start(clone: Path, *arguments: str) -> subprocess.Popen[str]:
    """The demo in its own process group, like a job of a terminal."""
    kept = {name: os.environ[name] for name in ("HOME", "PATH", "RUNOPS_BROWSER") if name in os.environ}
    return subprocess.Popen(
        [sys.executable, "scripts/demo.py", *arguments],
        cwd=clone,
        env=kept,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def test_ctrl_c_in_the_middle_and_a_continuation(clone: Path) -> None:
    """Ctrl-C after the second payment prints how to continue, exits 130 and leaves no process. Continuing pays every order once."""
    demo = start(clone)
    said: list[str] = []
    assert demo.stdout is not None
    for line in demo.stdout:
        said.append(line)
        if "each_order[#1001]/pay" in line:
            break
    family = psutil.Process(demo.pid).children(recursive=True)
    os.killpg(demo.pid, signal.SIGINT)
    rest, _ = demo.communicate(timeout=60)
    assert demo.returncode == 130, rest
    assert "make demo-resume" in said[0]
    assert "next:  make demo-resume" in rest.rstrip().splitlines()[-1]
    assert psutil.wait_procs(family, timeout=10)[1] == []
    assert running_in(clone) == []

    resumed = start(clone, "--resume")
    out, _ = resumed.communicate(timeout=60)
    assert resumed.returncode == 0, out
    assert "9 payments, none of them twice" in out
    assert "the log is in .runops/conversations" in out
    assert running_in(clone) == []


def running_in(folder: Path) -> list[str]:
    """Processes with the folder in their command line, after a grace period."""
    until = time.monotonic() + 10
    while True:
        found = [
            " ".join(each.info["cmdline"] or [])[:200]
            for each in psutil.process_iter(["cmdline"])
            if named(each, folder)
        ]
        if not found or time.monotonic() > until:
            return found
        time.sleep(0.1)


def named(process: psutil.Process, folder: Path) -> bool:
    """True if a running process has the folder in its arguments."""
    return any(str(folder) in part for part in process.info["cmdline"] or []) and process.pid != os.getpid()
