"""Kernel lock on a log file: it ends with the process that holds it, however that process ends."""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path

from runtime.system import regular_files


def hold(path: Path, *, make: bool = False) -> int | None:
    """Return a handle for reading and appending that has the file's lock; None if a running process has it. Closing it releases the lock.

    ``make`` creates the file if it is missing. Raises OSError.
    """
    flags = os.O_RDWR | os.O_APPEND | (os.O_CREAT if make else 0)
    while True:
        handle = regular_files.descriptor(path, flags)
        try:
            if not _lock(handle):
                os.close(handle)
                return None
            if _is_at(handle, path):
                return handle
        except BaseException:
            os.close(handle)
            raise
        # The previous owner deleted the file: the locked one has no name any more.
        os.close(handle)


def share(path: Path) -> int:
    """Return a handle with a shared lock on the file, made if it is missing. Waits while a process has the lock by ``hold``. Raises OSError."""
    handle = regular_files.descriptor(path, os.O_RDWR | os.O_CREAT)
    try:
        fcntl.flock(handle, fcntl.LOCK_SH)
    except BaseException:
        os.close(handle)
        raise
    return handle


def is_held(path: Path) -> bool:
    handle = regular_files.descriptor(path)
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(handle)
    return False


def holder(path: Path) -> int | None:
    """Return the process that has the file's lock; None if the kernel does not say. Raises OSError."""
    try:
        lines = Path("/proc/locks").read_text().splitlines()
    except OSError:
        return None
    inode = str(path.stat().st_ino)
    # 1: FLOCK  ADVISORY  WRITE 4711 fd:01:1234567 0 EOF
    for fields in map(str.split, lines):
        if (
            fields[1:4] == ["FLOCK", "ADVISORY", "WRITE"]
            and fields[5].rpartition(":")[2] == inode
            and int(fields[4]) > 0
        ):
            return int(fields[4])
    return None


def _lock(handle: int) -> bool:
    """Take the lock. A process that checks it (``is_held``) takes it for an instant, so one refusal does not count."""
    for _ in range(20):
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(0.01)
        else:
            return True
    return False


def _is_at(handle: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), path.stat())
    except FileNotFoundError:
        return False
