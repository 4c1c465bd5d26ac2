"""A dialog ends waits for its page at once."""

from __future__ import annotations

import asyncio
import contextlib
import weakref
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from runtime.browser import dialogs

pytestmark = pytest.mark.anyio


class Alert:
    """A dialog with Playwright's attributes."""

    type = "alert"
    message = "Look out"


@contextlib.asynccontextmanager
async def waiting(tab: dialogs.Dialogs) -> AsyncGenerator[None]:
    """A wait of some seconds for the page."""
    async with asyncio.timeout(5) as limit:
        with tab.cutting(limit):
            yield


async def sat_out(begun: contextlib.AbstractAsyncContextManager[None]) -> None:
    """Waits to the end of a wait that has begun."""
    async with contextlib.AsyncExitStack() as stack:
        stack.push_async_exit(begun.__aexit__)
        await asyncio.sleep(5)


async def test_a_dialog_ends_every_wait_for_the_page() -> None:
    """Overlapping waits that end in another order leave no state, and the next dialog ends those that remain."""
    tab = dialogs.Dialogs(weakref.WeakSet())
    first, second = waiting(tab), waiting(tab)
    await first.__aenter__()
    await second.__aenter__()
    await first.__aexit__(None, None, None)
    alert: Any = Alert()
    tab.appeared(alert)
    with pytest.raises(TimeoutError):
        await sat_out(second)
    tab.appeared(alert)
    assert tab.message == "Look out"
