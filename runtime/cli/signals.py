"""Handlers of Ctrl-C and similar signals, for each phase of a command. None prints a traceback."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable, Generator
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Signals that end a command. A hang-up counts too, except under ``nohup``."""

Handler = Callable[[int, FrameType | None], None]


class Interrupted(KeyboardInterrupt):
    """Signal ``number`` arrived while a command was at work; ``exit`` is the exit code."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number
        self.exit = exit_code(number)


class Stopped(Interrupted):
    """The person has stopped the work with a word."""


def exit_code(number: int) -> int:
    return 130 if number == signal.SIGINT else 143


def install(handler: Handler) -> None:
    for number in SIGNALS:
        if number == signal.SIGHUP and signal.getsignal(number) == signal.SIG_IGN:
            continue
        signal.signal(number, handler)


def leave_at_once(number: int, _frame: FrameType | None) -> None:
    """Exit at once, so that an unfinished import raises nothing. Used while nothing needs to be ended."""
    os._exit(exit_code(number))


def leave(number: int, _frame: FrameType | None) -> None:
    """Exit at once. Used while a command only reads: libraries would replace a handler's exception by their own."""
    with contextlib.suppress(OSError):
        os.write(2, b"interrupted\n")
    os._exit(exit_code(number))


def unwind(number: int, _frame: FrameType | None) -> None:
    """Raise ``Interrupted``, so that ``finally`` blocks run. Used while a command works."""
    raise Interrupted(number)


@contextlib.contextmanager
def handled_by(handler: Handler) -> Generator[None]:
    before = {number: signal.getsignal(number) for number in SIGNALS}
    install(handler)
    try:
        yield
    finally:
        for number, earlier in before.items():
            if earlier is not None:  # None is a handler that was not set from Python: it cannot be restored
                signal.signal(number, earlier)
