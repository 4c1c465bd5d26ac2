"""Dialog of a tab: ``alert``, ``confirm``, ``prompt``, or the question to leave the page.

While a dialog is open, the page neither runs scripts nor answers. So an action that opens one is set aside until the dialog
is answered, and everything that waits for the page is notified at once.
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
"""Seconds that a tab may take to answer while another tab shows a dialog: tabs of one process are blocked together."""

UNLOAD = "beforeunload"  # playwright's name of the question to leave the page


class Dialogs:
    """Dialogs of one tab; at most one is open at a time."""

    def __init__(self, all_of_run: weakref.WeakSet[Dialogs]) -> None:
        self._all = all_of_run
        self._all.add(self)
        self.leaving = False
        """True while the workflow itself navigates the tab: the question to leave the page is then accepted."""
        self.appeared_so_far = 0
        self._open: Dialog | None = None
        self._limits: set[asyncio.Timeout] = set()
        self._aside_if_blocked = False
        self._awaited: set[asyncio.Future[None]] = set()
        self._aside: set[asyncio.Future[Any]] = set()
        self._failed_before: RunOpsError | None = None

    @property
    def message(self) -> str | None:
        return None if self._open is None else sound(self._open.message)

    def appeared(self, dialog: Dialog) -> None:
        self.appeared_so_far += 1
        if dialog.type == UNLOAD and self.leaving:
            self._put_aside(asyncio.ensure_future(dialog.accept()))
            return
        self._open = dialog
        self._notify()
        for limit in self._running():
            limit.reschedule(0)
        for other in self._all:
            if other is not self:
                other._appeared_elsewhere()

    def _notify(self) -> None:
        for waiting in self._awaited:
            if not waiting.done():
                waiting.set_result(None)

    def _appeared_elsewhere(self) -> None:
        loop = asyncio.get_running_loop()
        if self._aside_if_blocked:
            loop.call_later(ELSEWHERE_SECONDS, self._notify_if_blocked)
        for limit in self._running():
            if (limit.when() or loop.time()) > loop.time() + ELSEWHERE_SECONDS:
                limit.reschedule(loop.time() + ELSEWHERE_SECONDS)

    def _running(self) -> list[asyncio.Timeout]:
        return [limit for limit in self._limits if not limit.expired()]

    def _notify_if_blocked(self) -> None:
        if self._aside_if_blocked and self.elsewhere is not None:
            self._notify()

    @property
    def elsewhere(self) -> Dialogs | None:
        return next((other for other in self._all if other is not self and other._open is not None), None)

    def refuse(self, phase: Phase = "before") -> None:
        """Raise SiteError ``dialog-open`` if a dialog is open; also raise, once, the error of a set-aside action that never began."""
        if self._open is not None:
            kind, message = self._open.type, self._open.message
            what = f"{'an' if kind[0] in 'aeiou' else 'a'} {kind}"
            shown = "the question whether to leave the page" if kind == UNLOAD else what
            said = f': "{playwright_errors.short(message, 200)}"' if message else ""
            raise SiteError(
                "dialog-open",
                f"the page shows {shown}{said}",
                fix="answer it with a `dialog` node after the step that opens it",
                phase=phase,
                evidence={"kind": kind, "message": message},
            )
        if (failed := self._failed_before) is not None:
            self._failed_before = None
            said = f"a dialog blocked an earlier step, which then failed: {failed.message}"
            raise failed.replaced(phase=phase, message=said)

    @contextlib.contextmanager
    def cutting(self, limit: asyncio.Timeout) -> Generator[None]:
        """End ``limit`` at once if a dialog opens within the block. Blocks may overlap and end in any order."""
        self._limits.add(limit)
        try:
            yield
        finally:
            self._limits.discard(limit)

    async def through(self, work: Coroutine[Any, Any, Answer]) -> Answer | None:
        """Await ``work``. If a dialog opens meanwhile, set it aside and return None."""
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
        # The step already has its result, and the page shows the outcome. Only the error of an action that never began is kept.
        if isinstance(error, RunOpsError) and error.phase == "before":
            self._failed_before = error

    async def wait(self) -> str:
        """Wait until a dialog is open, and return its message. Never returns if none opens."""
        while self._open is None:
            async with self._next() as appeared:
                await appeared
        return sound(self._open.message)

    async def answer(self, *, accept: bool, text: str | None) -> None:
        """Answer the open dialog; wait for the actions it held up. Raises, in phase ``after``, the error of one that never began."""
        assert self._open is not None, "there is no dialog to answer"
        dialog, self._open = self._open, None
        async with self._next() as appeared:
            try:
                await (dialog.dismiss() if not accept else dialog.accept() if text is None else dialog.accept(text))
            except Error as error:
                # The answer may close the tab before Playwright confirms it.
                if playwright_errors.kind_of(error) != "gone":
                    raise
            while (held_up := self._held_up()) and not appeared.done():
                await asyncio.wait((*held_up, appeared), return_when=asyncio.FIRST_COMPLETED)
        for each in self._all:
            if each._open is None:
                each.refuse("after")

    def _held_up(self) -> list[asyncio.Future[Any]]:
        return [doing for each in self._all if each._open is None for doing in each._aside]

    def drop(self) -> None:
        self._open = None
        for doing in self._aside:
            doing.cancel()
