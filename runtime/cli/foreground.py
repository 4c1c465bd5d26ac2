"""Event loop of a command that works in the foreground, and its reaction to signals."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import time
from collections.abc import Callable, Coroutine, Generator
from pathlib import Path
from types import FrameType
from typing import Any, Self, TypeVar

import psutil

from runtime.browser.chromium import survivors
from runtime.cli import signals
from runtime.display.stream import put_at_once

_Result = TypeVar("_Result")

SAME_PRESS = 0.1  # seconds within which two signals count as one: `timeout` signals both the command and its group


class Foreground:
    """Context manager with one event loop. The first signal cancels the current work; a second one ends the process at once."""

    def __init__(
        self,
        last_words: Callable[[], str],
        *,
        clear: Callable[[], object] = lambda: None,
        notice: Callable[[], object] = lambda: None,
    ) -> None:
        """To end at once, call ``clear`` to end what would outlive the process, kill children, print ``last_words``.

        ``notice`` is called when the first signal cancels work.
        """
        self._last_words, self._clear, self._notice = last_words, clear, notice
        self._stack = contextlib.ExitStack()
        self._runner: asyncio.Runner
        self._task: asyncio.Task[Any] | None = None
        self._number: int | None = None  # number of the signal not handled yet
        self._at = 0.0
        self._reading = False
        self._stopped = False
        self.meanwhile: Callable[[asyncio.AbstractEventLoop], contextlib.AbstractContextManager[None]] = lambda _loop: (
            contextlib.nullcontext()
        )
        """What is entered while work is run."""

    def __enter__(self) -> Self:
        self._runner = self._stack.enter_context(asyncio.Runner())
        self._stack.enter_context(signals.handled_by(self.handle))
        return self

    def __exit__(self, *_error: object) -> None:
        self._stack.close()

    def run(self, work: Coroutine[Any, Any, _Result]) -> _Result:
        """Run ``work`` to its end. Raises ``signals.Interrupted`` if a signal or ``stop`` has cancelled it, once it has ended."""
        try:
            with self.meanwhile(self._runner.get_loop()):
                return self._runner.run(self._cancellable(work))
        except asyncio.CancelledError:
            if self._stopped:
                raise signals.Stopped(signal.SIGINT) from None
            if self._number is None:
                raise
            raise self._interrupted() from None
        finally:
            self._task, self._stopped = None, False

    def stop(self) -> None:
        """Cancel the work that is run now."""
        if self._task is not None:
            self._stopped = True
            self._cancel(self._task)

    def complete(self, work: Coroutine[Any, Any, _Result]) -> _Result:
        return self._runner.run(work)

    @contextlib.contextmanager
    def holding(self, manager: contextlib.AbstractAsyncContextManager[_Result]) -> Generator[_Result]:
        entered = self.complete(manager.__aenter__())
        try:
            yield entered
        finally:
            # Nothing can be lost any more, so a signal may end the process without waiting.
            with signals.handled_by(self._leave):
                self.complete(manager.__aexit__(*sys.exc_info()))

    async def _cancellable(self, work: Coroutine[Any, Any, _Result]) -> _Result:
        self._task = asyncio.current_task()
        if self._number is not None:
            work.close()
            raise asyncio.CancelledError
        return await work

    @contextlib.contextmanager
    def reading(self) -> Generator[None]:
        """Raise ``signals.Interrupted`` at once if a signal arrives while a message is typed."""
        if self._number is not None:
            raise self._interrupted()
        self._reading = True
        try:
            yield
        finally:
            self._reading = False

    def handle(self, number: int, _frame: FrameType | None) -> None:
        now = time.monotonic()
        if self._number is not None:
            if now - self._at > SAME_PRESS:
                self._end_at_once(number)
            return
        self._number, self._at = number, now
        if self._reading:
            self._reading = False
            raise self._interrupted()
        if self._task is not None:
            self._task.get_loop().call_soon_threadsafe(self._cancel, self._task)

    def _leave(self, number: int, _frame: FrameType | None) -> None:
        if time.monotonic() - self._at > SAME_PRESS:
            self._end_at_once(number)

    def _cancel(self, task: asyncio.Task[Any]) -> None:
        self._notice()
        task.cancel()

    def _interrupted(self) -> signals.Interrupted:
        number, self._number = self._number, None
        return signals.Interrupted(number if number is not None else signal.SIGINT)

    def _end_at_once(self, number: int) -> None:
        with contextlib.suppress(Exception):
            self._clear()
        end_children()
        if words := self._last_words():
            put_at_once(words)
        os._exit(signals.exit_code(number))


def end_browser(private: Path) -> None:
    if (alive := survivors.find(private)) is not None:
        with contextlib.suppress(OSError):
            os.kill(alive.watcher, signal.SIGTERM)


def end_children() -> None:
    children = psutil.Process().children(recursive=True)
    for child in children:
        with contextlib.suppress(psutil.NoSuchProcess):
            child.send_signal(signal.SIGKILL)
    psutil.wait_procs(children, timeout=2)
