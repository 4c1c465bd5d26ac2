"""How long the browser may be waited for: one deadline for all that a step's attempt does."""

from __future__ import annotations

import asyncio
import time

FOREVER = 86400.0

GRACE_SECONDS = 1.0
"""By how much Playwright may be late: it does not give up on a page in which something computes without end."""


class Deadline:
    """A deadline that the engine sets and every page method keeps to."""

    def __init__(self) -> None:
        self.bound(FOREVER)

    def bound(self, seconds: float) -> None:
        """Start anew: ``seconds`` from now."""
        self._began = time.monotonic()
        self._ends = self._began + seconds

    def left(self) -> float:
        """Seconds left, 0 when there are none."""
        return max(0.0, self._ends - time.monotonic())

    def milliseconds(self) -> float:
        """What is left as Playwright takes it; at least 1, because 0 would mean for ever."""
        return max(1.0, (self._ends - time.monotonic()) * 1000)

    def limit(self) -> asyncio.Timeout:
        """For what should keep to the time by itself: raises TimeoutError where it is late by more than a moment."""
        return asyncio.timeout_at(self._ends + GRACE_SECONDS)

    def over(self) -> bool:
        """Whether the time is up."""
        return time.monotonic() >= self._ends

    def waited(self) -> float:
        """Seconds since the deadline was set."""
        return round(time.monotonic() - self._began, 1)
