"""A response that is worked on in the background is asked for until it is there."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from nodes.errors import ModelError
from runtime.messages.messages import Answer
from runtime.models.client.errors import Failed

if TYPE_CHECKING:
    from runtime.models.client import client as model_client

POLL_SECONDS, SLOWEST_POLL = 0.5, 5.0
"""How often it is asked for: half as often again each time."""


async def polled(
    client: model_client.Client,
    response: str,
    seconds: float,
    left: Callable[[], float],
    affordable: Callable[[], float],
) -> Answer:
    """Ask for a background response until it is there; it is asked for once at least, and each time for ``seconds`` at the most.

    ``left`` says how many seconds the attempt has, ``affordable`` how many the budgets leave. It is cancelled where nobody will want it any more:
    not where we are killed, and not where it may be there all the same. Raises Failed.
    """
    delay = POLL_SECONDS
    try:
        while True:
            try:
                answer = await client.fetch(response, seconds)
                if answer is not None:
                    return answer
            except Failed as failed:
                # What cannot be fetched this time is not lost: to ask anew would be to pay twice.
                if failed.over or failed.error.code == "model-unknown":
                    raise
                if not failed.again or left() <= delay:
                    failed.pending, failed.again = True, False
                    raise
            if left() <= delay:
                raise Failed(_too_late())
            can_pay = affordable()
            if can_pay <= 0:
                # Another try is refused, by the budget and in its words.
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
