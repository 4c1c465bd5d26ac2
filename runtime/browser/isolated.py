"""Scripts of our own in a page, out of the reach of the page's: they see its document, and none of what its scripts have replaced."""

from __future__ import annotations

import json
from typing import Any

from playwright.async_api import Error, Page

from nodes.values import Json


async def evaluate(page: Page, function: str, argument: Json) -> bool:
    """Whether ``function``, called with ``argument`` in a world of its own of the page's main frame, returns true. Raises Playwright's Error."""
    session = await page.context.new_cdp_session(page)
    try:
        tree: dict[str, Any] = await session.send("Page.getFrameTree")  # pyright: ignore[reportUnknownMemberType]
        frame = {"frameId": tree["frameTree"]["frame"]["id"], "worldName": "runops"}
        world: dict[str, Any] = await session.send("Page.createIsolatedWorld", frame)  # pyright: ignore[reportUnknownMemberType]
        called: dict[str, Any] = await session.send(  # pyright: ignore[reportUnknownMemberType]
            "Runtime.evaluate",
            {
                "expression": f"({function})({json.dumps(argument)})",
                "contextId": world["executionContextId"],
                "returnByValue": True,
            },
        )
    finally:
        await session.detach()
    if "exceptionDetails" in called:
        raise Error(str(called["exceptionDetails"].get("text")))
    return called["result"].get("value") is True
