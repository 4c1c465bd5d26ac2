"""What is awaited, done at once, for tests and helpers that are no coroutines."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from runtime.log.store import file_store, store

Found = TypeVar("Found")


def now(work: Coroutine[Any, Any, Found]) -> Found:
    """Await it to its end, in a loop of its own, also where this thread has one that runs."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, work).result()


def let_go(conversation: store.Conversation) -> None:
    """Give the log up, as its owner does at its end."""
    now(conversation.aclose())


def keeper(kept: file_store.Files | store.Store) -> store.Store:
    """The store of what is kept, for who writes into it."""
    return file_store.FileStore(kept) if isinstance(kept, file_store.Files) else kept
