"""Renewal of a run's lease while it works, in a store whose claims expire."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator

from nodes.errors import RunOpsError
from runtime.log.store import store as log_store

PER_LEASE = 3  # number of renewals per lease, so that one late renewal loses nothing


@contextlib.asynccontextmanager
async def renewed(conversation: log_store.Conversation) -> AsyncGenerator[None]:
    """Renew the conversation's lease while the block runs. If that fails, cancel the block at once and raise the failure instead.

    Raises Replaced if another owner has claimed the conversation, or any other error of the store's renewal.
    """
    worker, lease = asyncio.current_task(), conversation.lease
    assert worker is not None
    if lease is None:
        yield
        return
    cancelled_before = worker.cancelling()
    failure: RunOpsError | None = None

    async def renew() -> None:
        nonlocal failure
        while True:
            await asyncio.sleep(lease / PER_LEASE)
            try:
                await conversation.renew()
            except RunOpsError as error:
                failure = error
                worker.cancel()
                return

    renewing = asyncio.create_task(renew())
    ended: BaseException | None = None
    try:
        yield
    except BaseException as error:
        ended = error
        raise
    finally:
        renewing.cancel()
        if failure is not None:
            # A cancellation by somebody else, besides ours, stays one.
            by_others = worker.uncancel() > cancelled_before
            if not (by_others and isinstance(ended, asyncio.CancelledError)):
                raise failure from ended
