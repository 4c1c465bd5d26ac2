"""The command ``runops``: signals first, everything else after, so that Ctrl-C is clean from the first moment on."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from runtime.cli import signals


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command line (``sys.argv`` without the program's name); returns the exit code."""
    signals.install(signals.leave_at_once)
    from runtime.cli import app

    return app.run(list(sys.argv[1:] if arguments is None else arguments))
