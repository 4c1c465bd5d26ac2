"""Which process a process id means: the id comes back after a while, so its start and the machine's boot are part of it."""

from __future__ import annotations

from pathlib import Path

import psutil

_PROC = Path("/proc")


def started(pid: int) -> str | None:
    """When the process began, as text to be compared and no more; None where it has ended, also where nobody has collected it yet."""
    stat = _PROC / str(pid) / "stat"
    try:
        # The clock of psutil moves when the machine's clock is set; the ticks since boot do not.
        fields = stat.read_text().rpartition(")")[2].split()
    except FileNotFoundError:
        pass
    except OSError:
        return None
    else:
        return None if fields[0] in ("Z", "X") else fields[19]
    if _PROC.joinpath("self").exists():
        return None
    try:
        process = psutil.Process(pid)
        return None if process.status() == psutil.STATUS_ZOMBIE else f"{process.create_time():.0f}"
    except psutil.Error:
        return None


def boot() -> str:
    """What tells this boot of the machine from every other."""
    try:
        return (_PROC / "sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return f"{psutil.boot_time():.0f}"
