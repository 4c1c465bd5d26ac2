"""Awaitables run to their end at once, for tests and helpers that are no coroutines."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from runtime.log.store import file_store
from runtime.log.store import store as log_store

Found = TypeVar("Found")


def now(work: Coroutine[Any, Any, Found]) -> Found:
    """Await it to its end, in its own loop, even where this thread has a running one."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, work).result()


def let_go(conversation: log_store.Conversation) -> None:
    """Release the log, as its owner does at the end."""
    now(conversation.aclose())


def keeper(store: file_store.Files | log_store.Store) -> log_store.Store:
    """The store itself, for writing."""
    return file_store.FileStore(store) if isinstance(store, file_store.Files) else store
