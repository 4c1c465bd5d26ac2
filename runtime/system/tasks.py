"""Helpers for work that must not be left half done, or must not keep other tasks waiting."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import ParamSpec, TypeVar

Given = ParamSpec("Given")
Found = TypeVar("Found")


async def to_the_end(work: Awaitable[Found]) -> Found:
    """Await ``work`` to its end, even if the task is cancelled meanwhile; the cancellation then takes effect at the next await."""
    task, waiting = asyncio.current_task(), asyncio.ensure_future(work)
    cancelled = False
    while not waiting.done():
        try:
            await asyncio.wait((waiting,))
        except asyncio.CancelledError:
            cancelled = True
    if cancelled and task is not None:
        task.uncancel()
        task.cancel()
    return waiting.result()


async def in_thread(work: Callable[Given, Found], *args: Given.args, **kwargs: Given.kwargs) -> Found:
    """Do ``work`` in a thread, to its end: a caller that takes a lock there has it afterwards, or was refused."""
    return await to_the_end(asyncio.to_thread(work, *args, **kwargs))


class Turns:
    AT_ONCE = 50
    """Parts that are done without a pause; each takes a tenth of a millisecond."""

    def __init__(self) -> None:
        self._done = 0

    async def over(self) -> None:
        self._done += 1
        if self._done % self.AT_ONCE == 0:
            await asyncio.sleep(0)
