"""``now()`` and ``uuid()``, which a resumed run repeats."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Callable


class RecordedClock:
    """``now()`` and ``uuid()``: first what the log says they gave before, then new ones."""

    def __init__(self, before: list[str]) -> None:
        """``before`` is what was recorded, in order."""
        self._before = before
        self.given: list[str] = []

    def now(self) -> str:
        """The present moment, ISO 8601 UTC."""
        return self._give(lambda: dt.datetime.now(dt.UTC).isoformat(timespec="seconds").replace("+00:00", "Z"))

    def uuid(self) -> str:
        """A random UUID."""
        return self._give(lambda: str(uuid.uuid4()))

    def _give(self, make: Callable[[], str]) -> str:
        position = len(self.given)
        value = self._before[position] if position < len(self._before) else make()
        self.given.append(value)
        return value
