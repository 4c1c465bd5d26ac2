"""The dialog that a tab shows: ``alert``, ``confirm``, ``prompt``, or the question whether to leave the page.

While one is open the page computes nothing and answers nothing. So an action that opens one is let go of, to be finished once somebody has
answered, and whatever waits for the page is told at once.
"""

from __future__ import annotations

import asyncio
import contextlib
import weakref
from collections.abc import AsyncGenerator, Coroutine, Generator
from typing import Any, TypeVar

from playwright.async_api import Dialog, Error

from nodes.errors import Phase, RunOpsError, SiteError
from nodes.values import sound
from runtime.browser import playwright_errors

Answer = TypeVar("Answer")

ELSEWHERE_SECONDS = 1.0
"""How long a tab may take to answer while another tab shows a dialog: it stands still as well where both share a process."""

UNLOAD = "beforeunload"
"""What Playwright calls the question whether to leave the page."""

_WORDS = {UNLOAD: "the question whether to leave the page"}


class Dialogs:
    """The dialogs of one tab; at most one is open at a time."""

    def __init__(self, all_of_run: weakref.WeakSet[Dialogs]) -> None:
        """``all_of_run`` are the dialogs of all tabs of the run; these become some of them."""
        self._all = all_of_run
        self._all.add(self)
        self.leaving = False
        """Whether the workflow itself leads the tab elsewhere: then the page is not asked for leave."""
        self._open: Dialog | None = None
        self._limits: set[asyncio.Timeout] = set()
        self._aside_if_blocked = False
        self._awaited: set[asyncio.Future[None]] = set()
        self._aside: set[asyncio.Future[Any]] = set()
        self._undone: RunOpsError | None = None

    @property
    def message(self) -> str | None:
        """What the open dialog says; None where none is open."""
        return None if self._open is None else sound(self._open.message)

    def appeared(self, dialog: Dialog) -> None:
        """The page has opened a dialog."""
        if dialog.type == UNLOAD and self.leaving:
            self._put_aside(asyncio.ensure_future(dialog.accept()))
            return
        self._open = dialog
        self._tell()
        for limit in self._running():
            limit.reschedule(0)
        for other in self._all:
            if other is not self:
                other._appeared_elsewhere()

    def _tell(self) -> None:
        for waiting in self._awaited:
            if not waiting.done():
                waiting.set_result(None)

    def _appeared_elsewhere(self) -> None:
        loop = asyncio.get_running_loop()
        if self._aside_if_blocked:
            loop.call_later(ELSEWHERE_SECONDS, self._tell_if_blocked)
        for limit in self._running():
            if (limit.when() or loop.time()) > loop.time() + ELSEWHERE_SECONDS:
                limit.reschedule(loop.time() + ELSEWHERE_SECONDS)

    def _running(self) -> list[asyncio.Timeout]:
        return [limit for limit in self._limits if not limit.expired()]

    def _tell_if_blocked(self) -> None:
        if self._aside_if_blocked and self.elsewhere is not None:
            self._tell()

    @property
    def elsewhere(self) -> Dialogs | None:
        """The dialogs of another tab that shows one, if any does."""
        return next((other for other in self._all if other is not self and other._open is not None), None)

    def refuse(self, phase: Phase = "before") -> None:
        """Raise SiteError ``dialog-open`` where a dialog is open; and, told once, what kept an action from being done that one had held up."""
        if self._open is not None:
            raise opened(self._open.type, self._open.message, phase)
        if (undone := self._undone) is not None:
            self._undone = None
            said = f"a dialog held up an earlier step, which then failed: {undone.message}"
            raise undone.replaced(phase=phase, message=said)

    @contextlib.contextmanager
    def cutting(self, limit: asyncio.Timeout) -> Generator[None]:
        """Let a dialog that opens within end ``limit`` at once. Several may be at it: they end in any order."""
        self._limits.add(limit)
        try:
            yield
        finally:
            self._limits.discard(limit)

    async def through(self, work: Coroutine[Any, Any, Answer]) -> Answer | None:
        """Await ``work``, or let go of it where a dialog opens meanwhile: then None."""
        doing = asyncio.ensure_future(work)
        self._aside_if_blocked = True
        try:
            async with self._next() as appeared:
                await asyncio.wait((doing, appeared), return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            doing.cancel()
            raise
        finally:
            self._aside_if_blocked = False
        if doing.done():
            return doing.result()
        self._put_aside(doing)
        return None

    @contextlib.asynccontextmanager
    async def _next(self) -> AsyncGenerator[asyncio.Future[None]]:
        appeared: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._awaited.add(appeared)
        try:
            yield appeared
        finally:
            self._awaited.discard(appeared)

    def _put_aside(self, doing: asyncio.Future[Any]) -> None:
        self._aside.add(doing)
        doing.add_done_callback(self._finished)

    def _finished(self, doing: asyncio.Future[Any]) -> None:
        self._aside.discard(doing)
        error = None if doing.cancelled() else doing.exception()
        # Its step has had its result, so what came of the action is for the page to show; but one that was not even begun is not.
        if isinstance(error, RunOpsError) and error.phase == "before":
            self._undone = error

    async def wait(self) -> str:
        """Wait until a dialog is open, and return what it says. Takes for ever where none opens."""
        while self._open is None:
            async with self._next() as appeared:
                await appeared
        return sound(self._open.message)

    async def answer(self, *, accept: bool, text: str | None) -> None:
        """Answer the open dialog, and wait until what it held up has gone on, or the next dialog opens.

        Raises what kept an action from being done that it had held up: its phase is ``after``, for the answer is given.
        """
        assert self._open is not None, "there is no dialog to answer"
        dialog, self._open = self._open, None
        async with self._next() as appeared:
            try:
                await (dialog.dismiss() if not accept else dialog.accept() if text is None else dialog.accept(text))
            except Error as error:
                # What the answer leads to may close the tab before it says so.
                if playwright_errors.kind_of(error) != "gone":
                    raise
            while (held_up := self._held_up()) and not appeared.done():
                await asyncio.wait((*held_up, appeared), return_when=asyncio.FIRST_COMPLETED)
        for each in self._all:
            if each._open is None:
                each.refuse("after")

    def _held_up(self) -> list[asyncio.Future[Any]]:
        """What can go on now, in this tab and in those that stood still with it."""
        return [doing for each in self._all if each._open is None for doing in each._aside]

    def drop(self) -> None:
        """The tab is closed."""
        self._open = None
        for doing in self._aside:
            doing.cancel()


def opened(kind: str, message: str, phase: Phase) -> SiteError:
    """A dialog is open that nobody has answered."""
    what = _WORDS.get(kind, f"{'an' if kind[0] in 'aeiou' else 'a'} {kind}")
    said = f': "{playwright_errors.short(message, 200)}"' if message else ""
    return SiteError(
        "dialog-open",
        f"the page shows {what}{said}",
        fix="answer it with a `dialog` node after the step that opens it",
        phase=phase,
        evidence={"kind": kind, "message": message},
    )
