"""Polling of a background response until it is finished."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from nodes.errors import ModelError
from runtime.messages.messages import Answer
from runtime.models.client.errors import Failed

if TYPE_CHECKING:
    from runtime.models.client import client as model_client

POLL_SECONDS, SLOWEST_POLL = 0.5, 5.0  # seconds between polls, at first and at most; each wait is half as long again


async def polled(
    client: model_client.Client,
    response: str,
    seconds: float,
    left: Callable[[], float],
    affordable: Callable[[], float],
) -> Answer:
    """Poll a background response until it is finished, at least once. Raises Failed.

    Cancels the response if the wait is given up, but not if a later poll may succeed: a resumed run fetches it.
    """
    delay = POLL_SECONDS
    try:
        while True:
            try:
                answer = await client.fetch(response, seconds)
                if answer is not None:
                    return answer
            except Failed as failed:
                # The response outlives a failed poll, and a new request would be paid twice: poll again.
                if failed.over or failed.error.code == "model-unknown":
                    raise
                if not failed.again or left() <= delay:
                    failed.pending, failed.again = True, False
                    raise
            if left() <= delay:
                raise Failed(_too_late())
            can_pay = affordable()
            if can_pay <= 0:
                # The budget check refuses another try, with its own message.
                raise Failed(_too_late(), again=True)
            await asyncio.sleep(min(delay, can_pay))
            delay = min(delay * 1.5, SLOWEST_POLL)
    except (Failed, asyncio.CancelledError) as ended:
        if not (isinstance(ended, Failed) and (ended.over or ended.pending)):
            await client.cancel(response)
        raise


def _too_late() -> ModelError:
    return ModelError(
        "model-timeout",
        "the answer in the background is not there, and the attempt's time is over",
        fix="give the node a longer `timeout`",
    )
