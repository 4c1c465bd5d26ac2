"""The next request of a thread: the window that fits, with what stands around it."""

from __future__ import annotations

from collections.abc import Callable

from typing_extensions import override

from runtime import journal, pieces, turn, window
from runtime.models.exchange import Request


class Frame(turn.Frame):
    """Builds the requests of one thread."""

    def __init__(
        self,
        pen: journal.Journal[journal.Fold],
        thread: str,
        around: Callable[[], window.Around],
        limits: Callable[[], window.Limits],
        *,
        max_output: int,
        strict: bool = True,
    ) -> None:
        """``around`` and ``limits`` are asked for each request, so that it is told what holds then; ``strict`` is whether all schemas are in the strict form."""
        self._pen, self._thread = pen, thread
        self._around, self._limits = around, limits
        self._max_output, self._strict = max_output, strict
        self.report: window.Report | None = None
        """Of the last request."""

    @override
    async def request(self, model: str) -> Request:
        thread = pieces.Thread(self._pen.history.thread(self._thread), self._pen)
        built = window.build(thread, self._around(), self._limits())
        self.report = built.report
        return Request(
            model,
            built.instructions,
            built.items,
            None,
            self._max_output,
            self._strict,
            built.tools,
            state=built.state,
            chains=built.whole,
        )
