"""Which RunOps this is, and with which Playwright it is tested."""

from __future__ import annotations

import importlib.metadata
import platform

VERSION = importlib.metadata.version("runops")

TESTED = (1, 65), (1, 66)
"""Versions of Playwright with which RunOps is tested: from the first on, and before the second."""

TOLD: set[str] = set()
"""What ``warning`` has told in this process."""


def versions() -> dict[str, str]:
    """Versions that decide how a run behaves, for its first entry."""
    return {
        "runops": VERSION,
        "python": platform.python_version(),
        "playwright": playwright(),
    }


def playwright() -> str:
    """The version of Playwright that is installed."""
    return importlib.metadata.version("playwright")


def untested() -> tuple[str, str] | None:
    """What is wrong with the installed Playwright, and the fix, where RunOps is not tested with it."""
    installed = playwright()
    lowest, end = TESTED
    if lowest <= _parts(installed) < end:
        return None
    wanted = f"playwright>={_written(lowest)},<{_written(end)}"
    return (
        f"RunOps is not tested with Playwright {installed}: what an error means may be judged wrongly",
        f"pip install '{wanted}'",
    )


def warning() -> str | None:
    """The same in one line, once in each process."""
    found = untested()
    word = f"{found[0]}; {found[1]}" if found is not None else None
    if word is None or word in TOLD:
        return None
    TOLD.add(word)
    return word


def _parts(written: str) -> tuple[int, ...]:
    """The first two numbers of a version."""
    return tuple(int("".join(filter(str.isdigit, each)) or 0) for each in written.split(".")[:2])


def _written(parts: tuple[int, ...]) -> str:
    return ".".join(map(str, parts))
