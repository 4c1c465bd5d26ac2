"""Failure of one request to a model, with the facts that decide about a retry."""

from __future__ import annotations

import dataclasses
import datetime as dt
import email.utils
from collections.abc import Mapping

from nodes.errors import RunOpsError
from runtime.messages.messages import Usage


@dataclasses.dataclass(eq=False)
class Failed(Exception):
    """Failure of one request: it got no answer."""

    error: RunOpsError  # ModelError or SetupError for the person, unless a retry succeeds
    again: bool = False  # true if the same request may succeed later
    wait: float | None = None  # seconds that the server asks to wait; None if it names none
    partial: str = ""  # the text received so far
    usage: Usage | None = None  # its usage, if the server reports it
    sent: bool = True  # true if the server may have worked on the request, and may charge for it
    pending: bool = False  # true if the server may still work on it in the background: a resumed run fetches the answer
    over: bool = False  # true if the background response itself failed: fetching it again gives the same error

    @property
    def stopped(self) -> bool:
        """True if the background response was cancelled, so that its result is unknown."""
        return self.error.evidence.get("code") == "cancelled"

    def __str__(self) -> str:
        return self.error.message


def retry_after(headers: Mapping[str, str], now: dt.datetime | None = None) -> float | None:
    """Return the seconds to wait by ``retry-after-ms`` or ``Retry-After`` (seconds, or a date); None if neither is valid."""
    for name, scale in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        try:
            seconds = float(headers[name]) * scale
        except (KeyError, ValueError):
            continue
        if 0 <= seconds < 7 * 24 * 3600:
            return seconds
    try:
        wanted = email.utils.parsedate_to_datetime(headers["retry-after"])
    except (KeyError, ValueError, OverflowError):
        return None
    if wanted.tzinfo is None:
        wanted = wanted.replace(tzinfo=dt.UTC)
    return max(0.0, (wanted - (now or dt.datetime.now(dt.UTC))).total_seconds())
