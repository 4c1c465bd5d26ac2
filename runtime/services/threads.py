"""Blocking calls beside the loop."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


async def called(work: Callable[[], T], name: str) -> T:
    """Return what ``work`` returns, or raise what it raises. If nobody waits any more, it continues, and its outcome is dropped."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()

    def settle(result: Callable[[asyncio.Future[T]], None]) -> None:
        with contextlib.suppress(RuntimeError):  # the loop may be gone
            loop.call_soon_threadsafe(lambda: done.done() or result(done))

    def run() -> None:
        try:
            value = work()
        except BaseException as error:  # noqa: BLE001 - the caller has it
            raised = error
            settle(lambda future: future.set_exception(raised))
        else:
            settle(lambda future: future.set_result(value))

    # A thread cannot be ended; a daemon thread keeps neither the run nor the process alive.
    threading.Thread(target=run, name=name, daemon=True).start()
    return await done
