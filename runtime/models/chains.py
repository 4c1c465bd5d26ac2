"""From which response a server that keeps responses goes on: decided from the log alone."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from runtime.log import threads, writer
from runtime.messages.messages import Request


def goes_on(
    said: Sequence[threads.Saying], request: Request, texts: writer.Texts, lost: str | None
) -> tuple[str | None, int]:
    """The id of the response, and how many items of the request it stands for; None and 0 where the whole request is sent.

    That is the last answer of what was ``said`` in the thread, where it was given to a request with just the items that stand before it in this one,
    of the same system prompt. So it is a new chain where the window has changed: where something was left out, summed up, or told in other words, and
    where anything came to the front. ``lost`` is the id of a response that the server does not have any more.
    """
    last = next((each.answer for each in reversed(said) if isinstance(each, threads.Exchange)), None)
    if last is None or last.response in (None, lost) or request.state:
        return None, 0
    its = writer.items_of(last, texts.text_of(last), texts.calls_of(last))
    for begins in range(len(request.items) - len(its), 0, -1):
        if request.items[begins : begins + len(its)] == its:
            before = dataclasses.replace(request, items=request.items[:begins])
            return (last.response, begins + len(its)) if before.key == last.key else (None, 0)
    return None, 0
