"""Holding on to a run while it works, in a store whose claims expire."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator

from nodes.errors import RunOpsError
from runtime.log.store import store

PER_LEASE = 3
"""How often a lease is renewed before it would expire, so that one late renewal loses nothing."""


@contextlib.asynccontextmanager
async def held(conversation: store.Conversation) -> AsyncGenerator[None]:
    """Renew the conversation's lease while the block runs. Where that fails, the block is cancelled at once, and the failure raised in its place.

    Raises Replaced where another owner has claimed the conversation, or whatever else the store says of a renewal.
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
    """A task that renews a lease until it is stopped, or cannot."""

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
        """What kept the lease from being renewed."""
        assert self._failure is not None
        return self._failure

    def given_up(self, error: BaseException | None = None) -> bool:
        """Whether the lease could not be renewed, and nobody else has cancelled the block, which ended with ``error``."""
        if self._failure is None:
            return False
        by_others = self._worker.uncancel() > self._cancelled_before
        return not (by_others and isinstance(error, asyncio.CancelledError))

    def stop(self) -> None:
        """Renew no more."""
        self._task.cancel()
