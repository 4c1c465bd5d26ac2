"""Private files that are whole or not there: written beside, brought to the disk, then renamed."""

from __future__ import annotations

import asyncio
import hashlib
import os
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TypedDict

from nodes.errors import LogError
from nodes.values import Json
from runtime.system import regular_files

CHUNK = 1 << 20

_known: set[tuple[int, int]] = set()
"""Folders whose names are known to be on the disk, by device and inode."""


def not_written(what: str, path: Path, error: OSError) -> LogError:
    """What to say where ``what`` ("the log", say), which a resume needs, could not be written to ``path``: the run stops."""
    return LogError("log-write-failed", **_refused(what, path, error))


def not_read(what: str, path: Path, error: OSError) -> LogError:
    """What to say where ``what`` ("the log", say) is there and could not be read."""
    return LogError(
        "log-unreadable",
        f"{what} could not be read: {error.strerror or error} ({path})",
        fix="take it away, or put the file back from a copy; nothing was changed"
        if isinstance(error, regular_files.NotRegular)
        else "make the file readable for the user who runs this (or repair the disk); nothing was changed",
        evidence={"file": str(path), "errno": error.errno},
    )


def not_kept(what: str, path: Path, error: OSError) -> LogError:
    """As ``not_written``, of a file that is the step's own."""
    return LogError("file-write-failed", **_refused(what, path, error))


def write(path: Path, data: bytes) -> None:
    """Put ``data`` in the place of ``path``, readable by its owner only; file and name are on the disk when this returns. Raises OSError."""
    _write(path, (data,))


def write_once(path: Path, data: bytes) -> bool:
    """As ``write``, but what stands at ``path`` already stays: whether ``data`` was put there. Of several at once one puts it. Raises OSError."""
    handle, temporary = tempfile.mkstemp(prefix=f".{path.name[:40]}.", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.link(temporary, path)
    except FileExistsError:
        return False
    finally:
        os.unlink(temporary)  # noqa: PTH108 - a name, as mkstemp gives it
    sync_folder(path.parent)
    return True


def folder(path: Path, mode: int = 0o700) -> None:
    """Make the folder where it is missing, by default for its owner only, and what it stands in; its name is on the disk when this returns. Raises OSError.

    A folder that is there already may have been made by somebody who died before its name was on the disk, so a process trusts
    none before it has synced it once.
    """
    there = path.is_dir()
    if there and _identity(path) in _known:
        return
    if not there:
        folder(path.parent, 0o777)
        path.mkdir(mode, exist_ok=True)
    try:
        sync_folder(path.parent)
    except PermissionError:
        # It stands where we may not look, so none of us has made it.
        if not there:
            raise
    _known.add(_identity(path))


def _identity(path: Path) -> tuple[int, int]:
    found = path.stat()
    return found.st_dev, found.st_ino


async def keep(path: Path, data: bytes | Path) -> tuple[int, str]:
    """``write`` of bytes or of what a file holds, beside other work, into a folder that is made with the one it stands in where they are missing.

    Returns size and SHA-256 of what was written.
    """

    def kept() -> tuple[int, str]:
        folder(path.parent.parent)
        folder(path.parent)
        return _write(path, (data,) if isinstance(data, bytes) else _chunks(data))

    return await asyncio.to_thread(kept)


def _chunks(source: Path) -> Iterator[bytes]:
    with regular_files.opened(source) as file:
        while chunk := file.read(CHUNK):
            yield chunk


def _write(path: Path, chunks: Iterable[bytes]) -> tuple[int, str]:
    size, digest = 0, hashlib.sha256()
    # A bounded prefix: the name itself may be as long as the file system lets it be.
    handle, temporary = tempfile.mkstemp(prefix=f".{path.name[:40]}.", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            for chunk in chunks:
                file.write(chunk)
                size += len(chunk)
                digest.update(chunk)
            file.flush()
            os.fsync(file.fileno())
        os.rename(temporary, path)  # noqa: PTH104 - its target is a path, its source a name
    except BaseException:
        os.unlink(temporary)  # noqa: PTH108 - the same
        raise
    sync_folder(path.parent)
    return size, digest.hexdigest()


class _Refused(TypedDict):
    message: str
    fix: str
    evidence: dict[str, Json]


def _refused(what: str, path: Path, error: OSError) -> _Refused:
    return {
        "message": f"{what} could not be written: {error.strerror or error} ({path})",
        "fix": "free some space (or fix the disk), then resume the run: nothing was done on the site after this",
        "evidence": {"file": str(path), "errno": error.errno},
    }


def sync_folder(folder: Path) -> None:
    """The names in ``folder`` are on the disk when this returns. Raises OSError."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
