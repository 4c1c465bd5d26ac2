"""Faults that are put into a copy of the code, to see that its tests find them."""

from __future__ import annotations

import dataclasses
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
WINDOW = Path(__file__).parent / "window"

COPIED = (
    "nodes",
    "runtime",
    "pyproject.toml",
    "tests/windows.py",
    "tests/window_draws.py",
    "tests/unit/test_window.py",
    "tests/unit/test_window_properties.py",
)
"""What the tests of windows need."""


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What the tests said of a copy."""

    passed: bool
    said: str


def patches() -> list[Path]:
    """The faults in the builder of windows."""
    return sorted(WINDOW.glob("*.patch"))


def copy(folder: Path) -> Path:
    """A copy of what the tests of windows need."""
    ignored = shutil.ignore_patterns("__pycache__", "*.pyc", "cli", "browser", "display")
    for name in COPIED:
        there = folder / name
        there.parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, there, ignore=ignored)
        else:
            shutil.copy(ROOT / name, there)
    return folder


def apply(patch: Path, folder: Path) -> None:
    """Put the fault into the copy. Raises CalledProcessError where the code is another one by now."""
    subprocess.run(["git", "apply", "--whitespace=nowarn", patch], cwd=folder, check=True, capture_output=True)


def try_out(folder: Path) -> Outcome:
    """What the tests of windows say of the copy, those by property always with the same draws."""
    tests = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:randomly", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*tests, "--hypothesis-seed=1", "tests/unit/test_window.py", "tests/unit/test_window_properties.py"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    # Whatever else than tests that failed ends it says nothing of the fault.
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return Outcome(done.returncode == 0, done.stdout)
