"""Identity of processes: ids are reused, so an identity includes the process's start and the machine's boot."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import psutil

_PROC = Path("/proc")


def started(pid: int) -> str | None:
    """Return the start of the process, as text for comparison only; None if it has ended, even if it is still a zombie."""
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


def end(pid: int, since: str) -> None:
    """Kill the process with this id and start (``started``), whatever it is doing, even if it is stopped; never another one.

    Raises PermissionError if it belongs to another user.
    """
    try:
        # A process id may be given to another process at any moment; a handle keeps its process.
        handle = os.pidfd_open(pid) if hasattr(os, "pidfd_open") else None
    except ProcessLookupError:
        return
    except OSError:
        handle = None
    try:
        if started(pid) != since:
            return
        if handle is not None:
            signal.pidfd_send_signal(handle, signal.SIGKILL)
        else:
            os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return
    finally:
        if handle is not None:
            os.close(handle)


def boot() -> str:
    try:
        return (_PROC / "sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return f"{psutil.boot_time():.0f}"
