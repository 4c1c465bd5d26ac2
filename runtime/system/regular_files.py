"""Opening of regular files. A pipe, a socket or a device is refused, because it may block forever or never end."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO

KINDS = {stat.S_IFIFO: "a named pipe", stat.S_IFSOCK: "a socket", stat.S_IFCHR: "a device", stat.S_IFBLK: "a device"}


class NotRegular(OSError):
    """A path is no regular file; ``strerror`` says what it is."""

    def __init__(self, path: str | Path, mode: int) -> None:
        super().__init__(
            errno.EINVAL, f"it is {KINDS.get(stat.S_IFMT(mode), 'no file')}, not a regular file", str(path)
        )


def fix(error: OSError | ValueError) -> str | None:
    """Return the fix for a file that could not be opened; None if the error is clear without it."""
    return "write what it gives into a regular file, and name that" if isinstance(error, NotRegular) else None


def descriptor(path: str | Path, flags: int = os.O_RDONLY, mode: int = 0o600) -> int:
    """Return a handle of the regular file at ``path``. Raises NotRegular, IsADirectoryError, any other OSError; never waits for a process."""
    try:
        handle = os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY, mode)
    except OSError as error:
        if error.errno == errno.ENXIO:  # a socket, or a pipe without a reader
            raise NotRegular(path, os.stat(path).st_mode) from None  # noqa: PTH116 - the path may be a text
        raise
    found = os.fstat(handle).st_mode
    if stat.S_ISREG(found):
        return handle
    os.close(handle)
    if stat.S_ISDIR(found):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    raise NotRegular(path, found)


def opened(path: str | Path) -> BinaryIO:
    """Open the file for reading; its ``name`` is the path. Raises like ``descriptor``."""
    return open(path, "rb", opener=lambda _path, _flags: descriptor(path))


def read(path: str | Path, most: int = -1) -> bytes:
    """Return the content of the regular file, or its first ``most`` bytes. Raises like ``descriptor``."""
    with opened(path) as file:
        return file.read(most)


def read_text(path: str | Path, errors: str = "strict") -> str:
    r"""Return the content as UTF-8 text, with ``\n`` as line ends. Raises like ``descriptor``, and UnicodeDecodeError."""
    return read(path).decode("utf-8", errors).replace("\r\n", "\n").replace("\r", "\n")


def write(path: str | Path, data: bytes) -> None:
    """Write ``data`` to the regular file, which is created if missing. Raises like ``descriptor``."""
    with os.fdopen(descriptor(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666), "wb") as file:
        file.write(data)
