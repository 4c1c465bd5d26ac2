"""The folder that keeps the runs. It imports little: completion in a shell has no time for more."""

from __future__ import annotations

import os
from pathlib import Path


def find_home(start: Path | None = None) -> Path:
    """Return the nearest own ``.runops`` from ``start`` up, else beside pyproject.toml or ``.git``, else in ``start``; creates none."""
    start = (start or Path.cwd()).absolute()
    folders = [start, *start.parents]
    for folder in folders:
        if (folder / ".runops").is_dir() and os.getuid() in (0, (folder / ".runops").stat().st_uid):
            return folder / ".runops"
    for folder in folders:
        if (folder / "pyproject.toml").is_file() or (folder / ".git").exists():
            return folder / ".runops"
    return start / ".runops"
