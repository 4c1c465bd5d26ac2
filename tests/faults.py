"""A disk that fails: all writes below a folder are counted, and one of them fails, or all from one on."""

from __future__ import annotations

import dataclasses
import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

import pytest


@dataclasses.dataclass
class Disk:
    """The disk below ``root``."""

    root: Path
    fails_at: int = 0
    """The number of the write that fails, from 1; 0: none does."""
    full: bool = False
    """True if the disk is full from there on, with half of a log line written. Otherwise one write fails, and later ones do not."""
    done: list[str] = dataclasses.field(default_factory=list)
    """The writes so far, in order: operation and path."""
    on_failure: Callable[[], None] = lambda: None
    """Called as the first write fails."""

    @property
    def failed(self) -> str | None:
        """The first failed write."""
        return self.done[self.fails_at - 1] if 0 < self.fails_at <= len(self.done) else None

    def write(self, what: str, path: str) -> bool:
        """Count a write; whether it fails."""
        if not path.startswith(f"{self.root}"):
            return False
        self.done.append(f"{what} {os.path.relpath(path, self.root)}")
        if len(self.done) == self.fails_at:
            self.on_failure()
        return len(self.done) == self.fails_at or (self.full and 0 < self.fails_at < len(self.done))

    def error(self) -> OSError:
        """The error of the kernel."""
        code = errno.ENOSPC if self.full else errno.EIO
        return OSError(code, os.strerror(code))

    def install(self, patched: pytest.MonkeyPatch) -> None:
        """Intercept the disk access of this process. Syncs that do not fail return at once."""
        for name in ("fsync", "fdatasync"):
            patched.setattr(os, name, self._of_handle(name, lambda _handle: None))
        for name in ("ftruncate",):
            patched.setattr(os, name, self._of_handle(name, getattr(os, name)))
        for name in ("mkdir", "utime", "unlink"):
            patched.setattr(os, name, self._of_path(name, getattr(os, name), 0))
        for name in ("rename", "link"):
            patched.setattr(os, name, self._of_path(name, getattr(os, name), 1))
        patched.setattr(os, "open", self._open(os.open))
        patched.setattr(os, "write", self._write(os.write))
        patched.setattr(os, "fdopen", self._fdopen(os.fdopen))

    def _of_handle(self, name: str, really: Callable[..., Any]) -> Callable[..., Any]:
        def stand_in(handle: int, *more: Any) -> Any:
            if self.write(name, _path_of(handle)):
                raise self.error()
            return really(handle, *more)

        return stand_in

    def _of_path(self, name: str, really: Callable[..., Any], which: int) -> Callable[..., Any]:
        def stand_in(*given: Any, **more: Any) -> Any:
            if self.write(name, str(Path(given[which]).absolute())) and not (name == "unlink" and self.full):
                raise self.error()
            return really(*given, **more)

        return stand_in

    def _open(self, really: Callable[..., int]) -> Callable[..., int]:
        def stand_in(path: Any, flags: int, *more: Any, **fields: Any) -> int:
            makes = flags & os.O_CREAT and not Path(path).exists()
            if makes and self.write("make", str(Path(path).absolute())):
                raise self.error()
            return really(path, flags, *more, **fields)

        return stand_in

    def _write(self, really: Callable[[int, bytes], int]) -> Callable[[int, bytes], int]:
        def stand_in(handle: int, data: bytes) -> int:
            if not self.write("write", _path_of(handle)):
                return really(handle, data)
            if self.full and len(self.done) == self.fails_at:
                return really(handle, data[: len(data) // 2])
            raise self.error()

        return stand_in

    def _fdopen(self, really: Callable[..., Any]) -> Callable[..., Any]:
        def stand_in(handle: int, *more: Any, **fields: Any) -> Any:
            file = really(handle, *more, **fields)
            return _File(file, self) if "w" in "".join(map(str, more)) else file

        return stand_in


class _File:
    """A file that is written through a buffer."""

    def __init__(self, file: Any, disk: Disk) -> None:
        self._file = file
        self._disk = disk

    def write(self, data: bytes) -> int:
        """Write, or fail."""
        if self._disk.write("write", _path_of(self._file.fileno())):
            raise self._disk.error()
        return self._file.write(data)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self._file.close()


def _path_of(handle: int) -> str:
    return str(Path(f"/proc/self/fd/{handle}").readlink())
