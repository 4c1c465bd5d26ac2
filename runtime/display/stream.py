"""A stream that a run can talk to without ever failing: a reader who goes away, or a full disk, only ends the talk."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Callable
from typing import Literal, TextIO

from runtime.display import escapes

Kind = Literal["tree", "plain", "quiet"]

NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
"""What a write fails with where the disk is full, or broken."""


class Talk:
    """Text for people on a stream that may break at any time."""

    def __init__(self, stream: TextIO) -> None:
        """``stream`` is not closed by this."""
        self.stream = stream
        self.broken = False
        """Whether nobody can be reached any more."""
        self.full: OSError | None = None
        """What broke it, where there is no room for what was written."""

    def write(self, text: str) -> int:
        """Write ``text``, made harmless; once the stream is broken, nothing happens."""
        return self.draw(escapes.shown(text))

    def draw(self, text: str) -> int:
        """Write what moves the cursor, as it is: for a drawing whose texts were made harmless before."""
        if not self.broken:
            try:
                self.stream.write(text)
            except (OSError, ValueError) as error:
                self._give_up(error)
        return len(text)

    def flush(self) -> None:
        """Send what was written."""
        if not self.broken:
            try:
                self.stream.flush()
            except (OSError, ValueError) as error:
                self._give_up(error)

    def line(self, text: str = "") -> None:
        """Write one line, and send it."""
        self.write(f"{text}\n")
        self.flush()

    def isatty(self) -> bool:
        """Whether a terminal stands behind the stream."""
        try:
            return self.stream.isatty()
        except ValueError:
            return False

    def fileno(self) -> int:
        """The stream's file descriptor."""
        return self.stream.fileno()

    @property
    def encoding(self) -> str:
        """The stream's encoding."""
        return self.stream.encoding

    def _give_up(self, error: OSError | ValueError) -> None:
        self.broken = True
        if isinstance(error, OSError) and error.errno in NO_ROOM:
            self.full = error
        drain(self.stream)


def put(stream: TextIO, text: str) -> None:
    """Write ``text``, made harmless, and send it. Raises OSError where it cannot be written."""
    stream.write(escapes.shown(text))
    stream.flush()


def put_at_once(text: str) -> None:
    """Write a last line to stderr past Python's buffers: a signal may have come in the middle of a write to them."""
    with contextlib.suppress(OSError):
        os.write(2, f"{escapes.shown(text)}\n".encode(errors="backslashreplace"))


def drain(stream: TextIO) -> None:
    """Let a broken stream swallow what is still written to it, so that Python's own flush at exit has nothing to complain of."""
    try:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
        stream.flush()
    except (OSError, ValueError):
        pass


def kind_for(stream: Talk, *, quiet: bool = False, environment: Callable[[str], str | None] = os.environ.get) -> Kind:
    """Which display suits the stream: a live tree on a terminal that can move its cursor, else a line per step."""
    if quiet:
        return "quiet"
    return "tree" if stream.isatty() and environment("TERM") not in (None, "", "dumb", "unknown") else "plain"


def coloured(stream: Talk, *, environment: Callable[[str], str | None] = os.environ.get) -> bool:
    """Whether colours are wanted: a terminal that knows them, and no ``NO_COLOR``."""
    return kind_for(stream, environment=environment) == "tree" and not environment("NO_COLOR")
