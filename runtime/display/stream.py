"""Output stream that never fails the run: a reader that disconnects, or a full disk, only ends the output."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from collections.abc import Callable
from typing import Literal, TextIO

from runtime.display import escapes

Kind = Literal["tree", "plain"]

NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)  # errors of a write to a full or broken disk


class Talk:
    def __init__(self, stream: TextIO) -> None:
        self.stream = stream
        self.broken = False  # true if nothing can be written any more
        self.full: OSError | None = None  # error that broke it, if the disk was full or broken

    def write(self, text: str) -> int:
        """Write ``text``, escaped; do nothing once the stream is broken."""
        self._put(_told(escapes.shown(text)))
        return len(text)

    def draw(self, text: str) -> int:
        """Write text with cursor movements unchanged: for a drawing whose texts are already escaped."""
        self._put(_told(text))
        return len(text)

    def _put(self, text: str) -> None:
        if not self.broken:
            try:
                self.stream.write(text)
            except (OSError, ValueError) as error:
                self._give_up(error)

    def flush(self) -> None:
        if not self.broken:
            try:
                self.stream.flush()
            except (OSError, ValueError) as error:
                self._give_up(error)

    def line(self, text: str = "") -> None:
        self.write(f"{text}\n")
        self.flush()

    def isatty(self) -> bool:
        try:
            return self.stream.isatty()
        except ValueError:
            return False

    def fileno(self) -> int:
        return self.stream.fileno()

    @property
    def encoding(self) -> str:
        return self.stream.encoding

    def _give_up(self, error: OSError | ValueError) -> None:
        self.broken = True
        if isinstance(error, OSError) and error.errno in NO_ROOM:
            self.full = error
        drain(self.stream)


def _secrets_are_known() -> bool:
    # Most commands read none: do not import what masks them.
    sources = sys.modules.get("runtime.secrets.sources")
    return sources is not None and bool(sources.SEEN)


def _told(text: str) -> str:
    if not _secrets_are_known():
        return text
    from runtime.secrets import published

    return published.told(text, escapes.as_json)


def put(stream: TextIO, text: str) -> None:
    """Write a result, escaped, and flush it. Raises OSError if it cannot be written, UsageError ``secret-published``."""
    shown = escapes.shown(text)
    if _secrets_are_known():
        from runtime.secrets import published

        shown = published.result(shown, escapes.as_json)
    stream.write(shown)
    stream.flush()


def put_at_once(text: str) -> None:
    """Write a last line to stderr without Python's buffers: a signal may have interrupted a write to them."""
    with contextlib.suppress(OSError):
        os.write(2, f"{escapes.shown(text)}\n".encode(errors="backslashreplace"))


def drain(stream: TextIO) -> None:
    """Redirect a broken stream to /dev/null, so that Python's flush at exit raises no error."""
    try:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
        stream.flush()
    except (OSError, ValueError):
        pass


def kind_for(stream: Talk, *, environment: Callable[[str], str | None] = os.environ.get) -> Kind:
    return "tree" if stream.isatty() and environment("TERM") not in (None, "", "dumb", "unknown") else "plain"


def coloured(stream: Talk, *, environment: Callable[[str], str | None] = os.environ.get) -> bool:
    return kind_for(stream, environment=environment) == "tree" and not environment("NO_COLOR")
