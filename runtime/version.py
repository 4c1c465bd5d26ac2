"""Version of RunOps, and the versions of Playwright with which it is tested."""

from __future__ import annotations

import importlib.metadata
import platform

VERSION = importlib.metadata.version("runops")

TESTED = (1, 65), (1, 66)
"""Range of tested Playwright versions; the second is excluded."""

WARNED: set[str] = set()
"""Warnings already given in this process."""


def versions() -> dict[str, str]:
    return {"runops": VERSION, "python": platform.python_version(), "playwright": playwright()}


def playwright() -> str:
    return importlib.metadata.version("playwright")


def untested() -> tuple[str, str] | None:
    """Return a warning and its fix if RunOps is not tested with the installed Playwright, else None."""
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
    """Return the warning of ``untested`` in one line; None if there is none, or if this process has given it."""
    found = untested()
    word = f"{found[0]}; {found[1]}" if found is not None else None
    if word is None or word in WARNED:
        return None
    WARNED.add(word)
    return word


def _parts(written: str) -> tuple[int, ...]:
    return tuple(int("".join(filter(str.isdigit, each)) or 0) for each in written.split(".")[:2])


def _written(parts: tuple[int, ...]) -> str:
    return ".".join(map(str, parts))
