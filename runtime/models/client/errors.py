"""How one request to a model can go wrong, and whether the same request may go right the next time."""

from __future__ import annotations

import dataclasses
import datetime as dt
import email.utils
from collections.abc import Mapping

from nodes.errors import RunOpsError
from runtime.messages.messages import Usage


@dataclasses.dataclass(eq=False)
class Failed(Exception):
    """One request that brought no answer."""

    error: RunOpsError
    """What a person reads if it stays so: ModelError or SetupError."""
    again: bool = False
    """Whether the same request may go right another time."""
    wait: float | None = None
    """Seconds after which the server wants to be asked again, where it says so."""
    partial: str = ""
    """The text that had come by then."""
    usage: Usage | None = None
    """What it cost all the same, where the server says so."""
    sent: bool = True
    """Whether the server may have worked on it, and charge for it."""
    pending: bool = False
    """Whether the server may still be at it, in the background: the answer is fetched by whoever goes on."""
    over: bool = False
    """Whether the response in the background itself has ended like this: whoever asks for it once more is told the same."""

    @property
    def stopped(self) -> bool:
        """Whether somebody had the response in the background cancelled: nobody knows what it would have been."""
        return self.error.evidence.get("code") == "cancelled"

    def __str__(self) -> str:
        """The error's message."""
        return self.error.message


def retry_after(headers: Mapping[str, str], now: dt.datetime | None = None) -> float | None:
    """Seconds that a server asks to wait, by its ``retry-after-ms`` or ``Retry-After`` (seconds, or a date); None where it does not say, or nonsense."""
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
