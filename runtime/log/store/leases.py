"""Renewal of a run's lease while it works, in a store whose claims expire."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator

from nodes.errors import RunOpsError
from runtime.log.store import store

PER_LEASE = 3
"""Number of renewals per lease, so that one late renewal loses nothing."""


@contextlib.asynccontextmanager
async def held(conversation: store.Conversation) -> AsyncGenerator[None]:
    """Renew the conversation's lease while the block runs. If that fails, cancel the block at once and raise the failure instead.

    Raises Replaced if another owner has claimed the conversation, or any other error of the store's renewal.
    """
    if conversation.lease is None:
        yield
        return
    holding = _Holding(conversation, conversation.lease / PER_LEASE)
    try:
        yield
    except BaseException as error:
        if holding.given_up(error):
            raise holding.failure from error
        raise
    else:
        if holding.given_up():
            raise holding.failure
    finally:
        holding.stop()


class _Holding:
    def __init__(self, conversation: store.Conversation, interval: float) -> None:
        worker = asyncio.current_task()
        assert worker is not None
        self._worker = worker
        self._cancelled_before = worker.cancelling()
        self._failure: RunOpsError | None = None
        self._conversation = conversation
        self._interval = interval
        self._task = asyncio.create_task(self._renew())

    async def _renew(self) -> None:
        while True:
            await asyncio.sleep(self._interval)
            try:
                await self._conversation.renew()
            except RunOpsError as error:
                self._failure = error
                self._worker.cancel()
                return

    @property
    def failure(self) -> RunOpsError:
        assert self._failure is not None
        return self._failure

    def given_up(self, error: BaseException | None = None) -> bool:
        """True if the renewal failed and nothing else has cancelled the block, which ended with ``error``."""
        if self._failure is None:
            return False
        by_others = self._worker.uncancel() > self._cancelled_before
        return not (by_others and isinstance(error, asyncio.CancelledError))

    def stop(self) -> None:
        """Renew no more."""
        self._task.cancel()
