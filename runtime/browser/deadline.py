"""Deadline for the browser: one for everything that an attempt of a step does."""

from __future__ import annotations

import asyncio
import time

FOREVER = 86400.0

GRACE_SECONDS = 1.0  # seconds that Playwright may be late: it never gives up on a page that computes without end


class Deadline:
    def __init__(self) -> None:
        self.bound(FOREVER)

    def bound(self, seconds: float, quiet: float | None = None) -> None:
        """Begin anew. ``quiet``: seconds without a change after which a page is not waited for any longer."""
        self.quiet = quiet
        self._began = time.monotonic()
        self._ends = self._began + seconds

    def left(self) -> float:
        return max(0.0, self._ends - time.monotonic())

    def milliseconds(self) -> float:
        """Return the time left for Playwright; at least 1, because 0 would mean for ever."""
        return max(1.0, (self._ends - time.monotonic()) * 1000)

    def limit(self) -> asyncio.Timeout:
        """Return a timeout for calls that keep the deadline themselves: raises TimeoutError if they are late by ``GRACE_SECONDS``."""
        return asyncio.timeout_at(self._ends + GRACE_SECONDS)

    def over(self) -> bool:
        return time.monotonic() >= self._ends

    def waited(self) -> float:
        return round(time.monotonic() - self._began, 1)
