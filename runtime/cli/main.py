"""The command ``runops``: signals and streams first, everything else after, so that Ctrl-C is clean from the first moment on."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from runtime.cli import signals


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command line (``sys.argv`` without the program's name); returns the exit code."""
    signals.install(signals.leave_at_once)
    open_streams()
    from runtime.cli import app

    return app.run(list(sys.argv[1:] if arguments is None else arguments))


def open_streams() -> None:
    """Give a process that was started without stdin, stdout or stderr the empty device for each.

    The next file that it opens, a run's log, would take the free number, and what is printed would go into it.
    """
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    for name, number, mode in (("stdin", 0, "r"), ("stdout", 1, "w"), ("stderr", 2, "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(number, mode, encoding="utf-8", closefd=False))
