"""Private files that are whole or missing: written under another name, synced, then renamed."""

from __future__ import annotations

import asyncio
import hashlib
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from nodes.errors import LogError
from runtime.system import regular_files

CHUNK = 1 << 20

_known: set[tuple[int, int]] = set()  # folders whose names are known to be synced, by device and inode


def not_written(what: str, path: Path, error: OSError, code: str = "log-write-failed") -> LogError:
    """Return the error that stops a run: ``what``, which a resume needs ("the log", say), could not be written to ``path``."""
    return LogError(
        code,
        f"{what} could not be written: {error.strerror or error} ({path})",
        fix="free some space (or fix the disk), then resume the run: nothing was done on the site after this",
        evidence={"file": str(path), "errno": error.errno},
    )


def not_read(what: str, path: Path, error: OSError) -> LogError:
    return LogError(
        "log-unreadable",
        f"{what} could not be read: {error.strerror or error} ({path})",
        fix="take it away, or put the file back from a copy; nothing was changed"
        if isinstance(error, regular_files.NotRegular)
        else "make the file readable for the user who runs this (or repair the disk); nothing was changed",
        evidence={"file": str(path), "errno": error.errno},
    )


def not_kept(what: str, path: Path, error: OSError) -> LogError:
    """Return the same error as ``not_written`` for a file of a step."""
    return not_written(what, path, error, "file-write-failed")


def write(path: Path, data: bytes) -> None:
    """Replace ``path`` with ``data``, readable by its owner only; file and name are synced when this returns. Raises OSError."""
    _write(path, (data,), os.rename)


def publish(path: Path, data: bytes) -> None:
    """Write like ``write``, with the permissions that the user gives to new files. Raises OSError."""
    write(path, data)
    mask = os.umask(0o077)
    os.umask(mask)
    path.chmod(0o666 & ~mask)


def write_once(path: Path, data: bytes) -> bool:
    """Write like ``write``, but keep an existing file. True if ``data`` was written; of several callers only one writes. Raises OSError."""
    try:
        _write(path, (data,), os.link)
    except FileExistsError:
        return False
    return True


def folder(path: Path, mode: int = 0o700) -> None:
    """Create the folder and its parents if missing, by default for its owner only; its name is synced when this returns. Raises OSError.

    An existing folder may have been created by a process that died before its name was synced. So a process trusts none before it has
    synced it once.
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
        # We may not read the folder around it, so no process of ours has created it.
        if not there:
            raise
    _known.add(_identity(path))


def _identity(path: Path) -> tuple[int, int]:
    found = path.stat()
    return found.st_dev, found.st_ino


async def keep(path: Path, data: bytes | Path) -> tuple[int, str]:
    """Write bytes, or a file's content, like ``write`` in a thread; creates the folder. Returns size and SHA-256."""

    def kept() -> tuple[int, str]:
        folder(path.parent.parent)
        folder(path.parent)
        return _write(path, (data,) if isinstance(data, bytes) else _chunks(data), os.rename)

    return await asyncio.to_thread(kept)


def _chunks(source: Path) -> Iterator[bytes]:
    with regular_files.opened(source) as file:
        while chunk := file.read(CHUNK):
            yield chunk


def _write(path: Path, chunks: Iterable[bytes], place: Callable[[str, Path], None]) -> tuple[int, str]:
    size, digest = 0, hashlib.sha256()
    # A bounded prefix: the name itself may be as long as the file system allows.
    handle, temporary = tempfile.mkstemp(prefix=f".{path.name[:40]}.", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            for chunk in chunks:
                file.write(chunk)
                size += len(chunk)
                digest.update(chunk)
            file.flush()
            os.fsync(file.fileno())
        place(temporary, path)
    finally:
        Path(temporary).unlink(missing_ok=True)
    sync_folder(path.parent)
    return size, digest.hexdigest()


def sync_folder(folder: Path) -> None:
    """Sync the names in ``folder``. Raises OSError."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
