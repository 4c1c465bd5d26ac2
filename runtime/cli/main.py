"""Entry point of ``runops``. It sets up signals and streams before further imports, so that Ctrl-C is always clean."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from runtime.cli import signals


def main(arguments: Sequence[str] | None = None) -> int:
    signals.install(signals.leave_at_once)
    open_streams()
    words = list(sys.argv[1:] if arguments is None else arguments)
    if os.environ.get("_RUNOPS_COMPLETE"):
        from runtime.cli import completing

        return completing.answer(words)
    from runtime.cli import app

    return app.run(words)


def open_streams() -> None:
    """Open /dev/null for each of stdin, stdout and stderr that the process was started without.

    Otherwise the next opened file, such as a run's log, would get its number, and prints would go into that file.
    """
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    for name, number, mode in (("stdin", 0, "r"), ("stdout", 1, "w"), ("stderr", 2, "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(number, mode, encoding="utf-8", closefd=False))
