"""Ctrl-C and its kin in a conversation: one stops the answer and not the session, a second one ends it; every other signal ends it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import Callable, Coroutine, Generator
from types import FrameType
from typing import Any, TypeVar

from runtime.cli import execution, signals
from runtime.display.stream import put_at_once

_Result = TypeVar("_Result")


class Interrupts:
    """Carries out what takes time, and takes the signals that come meanwhile and between."""

    def __init__(
        self, runner: asyncio.Runner, last_words: Callable[[], str], clear: Callable[[], object] = lambda: None
    ) -> None:
        """``last_words`` is what is said where the process must end at once; ``clear`` ends what would live on then, beside its children."""
        self._runner, self._last_words, self._clear = runner, last_words, clear
        self._task: asyncio.Task[Any] | None = None
        self._number: int | None = None
        """Of the signal that nobody has heard of yet."""
        self._at = 0.0
        self._reading = False

    def run(self, doing: Coroutine[Any, Any, _Result]) -> _Result:
        """Carry it out. Raises ``signals.Interrupted`` where a signal has ended it, once it has come to an end."""
        try:
            return self._runner.run(self._followed(doing))
        except asyncio.CancelledError:
            if self._number is None:
                raise
            raise self._interrupted() from None
        finally:
            self._task = None

    def complete(self, doing: Coroutine[Any, Any, _Result]) -> _Result:
        """Carry out what is over soon, and what no signal keeps from being done."""
        return self._runner.run(doing)

    async def _followed(self, doing: Coroutine[Any, Any, _Result]) -> _Result:
        self._task = asyncio.current_task()
        if self._number is not None:
            doing.close()
            raise asyncio.CancelledError
        return await doing

    @contextlib.contextmanager
    def reading(self) -> Generator[None]:
        """While a word is read, a signal raises ``signals.Interrupted`` at once."""
        self.check()
        self._reading = True
        try:
            yield
        finally:
            self._reading = False

    def check(self) -> None:
        """Raise ``signals.Interrupted`` where a signal came while neither was going on."""
        if self._number is not None:
            raise self._interrupted()

    def handle(self, number: int, _frame: FrameType | None) -> None:
        """Take a signal."""
        now = time.monotonic()
        if self._number is not None:
            if now - self._at > execution.SAME_PRESS:
                self._end_at_once(number)
            return
        self._number, self._at = number, now
        if self._reading:
            self._reading = False
            raise self._interrupted()
        if self._task is not None:
            self._task.get_loop().call_soon_threadsafe(self._task.cancel)

    def _interrupted(self) -> signals.Interrupted:
        number, self._number = self._number, None
        return signals.Interrupted(number if number is not None else signal.SIGINT)

    def _end_at_once(self, number: int) -> None:
        with contextlib.suppress(Exception):
            self._clear()
        execution.end_children()
        put_at_once(self._last_words())
        os._exit(signals.exit_code(number))
