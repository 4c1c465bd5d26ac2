"""Regular files, opened: a pipe, a socket or a device in the place of one is refused, for it may wait for ever or never end."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO

KINDS = {
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


class NotRegular(OSError):
    """What stands at a path is no regular file; ``strerror`` says what it is."""

    def __init__(self, path: str | Path, mode: int) -> None:
        super().__init__(
            errno.EINVAL, f"it is {KINDS.get(stat.S_IFMT(mode), 'no file')}, not a regular file", str(path)
        )


def fix(error: OSError | ValueError) -> str | None:
    """What to do about a file that could not be opened; None where the error says it all."""
    return "write what it gives into a regular file, and name that" if isinstance(error, NotRegular) else None


def descriptor(path: str | Path, flags: int = os.O_RDONLY, mode: int = 0o600) -> int:
    """A handle of the regular file at ``path``. Raises NotRegular, IsADirectoryError, and any other OSError; never waits for another process."""
    try:
        handle = os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY, mode)
    except OSError as error:
        if error.errno == errno.ENXIO:  # a socket, or a pipe that nobody reads
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
    """The regular file, for reading bytes. Raises like ``descriptor``."""
    return os.fdopen(descriptor(path), "rb")


def read(path: str | Path, most: int = -1) -> bytes:
    """What the regular file holds, or its first ``most`` bytes. Raises like ``descriptor``."""
    with opened(path) as file:
        return file.read(most)


def read_text(path: str | Path, errors: str = "strict") -> str:
    r"""The same as text in UTF-8, with the ends of its lines as ``\n``. Raises UnicodeDecodeError, too."""
    return read(path).decode("utf-8", errors).replace("\r\n", "\n").replace("\r", "\n")


def write(path: str | Path, data: bytes) -> None:
    """Put ``data`` into the regular file, which is made where it is missing. Raises like ``descriptor``."""
    with os.fdopen(descriptor(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666), "wb") as file:
        file.write(data)
