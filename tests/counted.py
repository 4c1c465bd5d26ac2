"""Programs whose starts are counted: a script that records its process and becomes the program."""

from __future__ import annotations

from pathlib import Path

from playwright._impl._driver import compute_driver_executable

from runtime.browser.chromium import find


class Counted:
    """One program, wrapped by a script."""

    def __init__(self, folder: Path, program: str | Path) -> None:
        """Write the script into ``folder``."""
        self.script = folder / f"counted-{Path(program).name}"
        self._starts = folder / f"{self.script.name}.starts"
        self.script.write_text(f'#!/bin/sh\necho $$ >> "{self._starts}"\nexec "{program}" "$@"\n')
        self.script.chmod(0o755)

    @property
    def processes(self) -> list[int]:
        """The processes that were started, by their ids, in order."""
        return [int(line) for line in self._starts.read_text().split()] if self._starts.exists() else []


def browser(folder: Path) -> Counted:
    """The browser that runs use."""
    return Counted(folder, find.find())


def driver(folder: Path) -> Counted:
    """Playwright's driver."""
    return Counted(folder, compute_driver_executable()[0])
