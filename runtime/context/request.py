"""The next request of a thread: the window that fits, with the frame around it.

First outputs become pointers, then exchanges are left out. If the thread has outgrown its token budget, a summary replaces its older part.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

from typing_extensions import override

from runtime.context import items, summaries, window
from runtime.context import report as context_report
from runtime.log.writer import Fold, LogWriter
from runtime.messages.messages import Request
from runtime.models.turns import turn

if TYPE_CHECKING:
    from runtime.models import run_models

FULL = 85  # percentage of a model's input limit at which a window is full

ENDLESS = 2**62

ROWS = 200  # number of ledger rows searched for the thread's last request


class Frame(turn.Frame):
    def __init__(
        self,
        writer: LogWriter[Fold],
        thread: str,
        around: Callable[[], window.RequestFrame],
        limits: Callable[[], window.Limits],
        *,
        max_output: int,
        strict: bool = True,
        models: run_models.RunModels | None = None,
        asks: summaries.Asks | None = None,
        ids: Callable[[], Collection[str]] = tuple,
        warn: Callable[[window.Report], None] = lambda _report: None,
        joined: Callable[[window.Pieces], window.Pieces] = lambda thread: thread,
    ) -> None:
        """``around`` and ``limits`` are called for each request, so that it shows the current state.

        Without ``asks`` nothing is summarized. Every summary keeps the names ``ids``. ``joined`` may add earlier items before the thread.
        """
        self._writer, self._thread = writer, thread
        self._around, self._limits = around, limits
        self._max_output, self._strict = max_output, strict
        self._models = models
        self._summaries = (
            summaries.Summaries(writer, thread, asks, max_output=max_output, ids=ids) if asks is not None else None
        )
        self._warn, self._joined = warn, joined
        self.report: window.Report | None = None

    def window(self, model: str) -> window.Window:
        """Build the current window without a summary; sends and logs nothing. Raises ModelError ``window-too-large``."""
        return self._with_usage(window.build(self._joined(self._items()), self._around(), self._narrowed(model)))

    @override
    async def request(self, model: str) -> Request:
        limits = self._narrowed(model)
        built = window.build(self._joined(self._items()), self._around(), limits)
        rung = context_report.Reduction("summary", "not needed")
        room = built.report.room if built.report.overflows else ENDLESS
        room = min(room, limits.checkpoint_at or ENDLESS)
        wanted = limits.overflow == "summarize" and self._outgrows(room)
        if self._summaries is not None and wanted:
            rung = await self._summaries.sum_up(limits, room, built.report.limit)
            if rung.outcome == "saved":
                built = window.build(self._joined(self._items()), self._around(), limits)
        report = dataclasses.replace(built.report, rungs=(*built.report.rungs, rung))
        built = self._with_usage(dataclasses.replace(built, report=report))
        warned = self.report is not None and self.report.warns
        self.report = built.report
        if built.report.warns and not warned:
            self._warn(built.report)
        most, strict = self._max_output, self._strict
        return Request(model, built.instructions, built.items, None, most, strict, built.tools, state=built.state)

    def _outgrows(self, room: int) -> bool:
        """True if the thread with its summary exceeds ``room`` tokens, without joined items, which no summary shortens."""
        thread = self._items()
        summed = thread.summary.large.tokens if thread.summary is not None else 0
        newest = thread.word.large.tokens if thread.word is not None and thread.newest_word is not None else 0
        return thread.tokens_before(len(thread)) + summed - newest > room

    def _items(self) -> items.Thread:
        return items.Thread(self._writer.history.thread(self._thread), self._writer)

    def _narrowed(self, model: str) -> window.Limits:
        """Return the limits in our own token count: a model may count more tokens, and accept fewer."""
        limits = self._limits()
        if self._models is None or limits.hard_limit is not None:
            return limits
        full = limits.compress_at
        if (known := self._models.context_window(model)) is not None:
            full = min(full, max(1, (known - self._max_output) * FULL // 100))
        # A warning above the limit is moved to eight ninths of the limit, the ratio of the defaults.
        part = (limits.warn_at, limits.compress_at) if limits.warn_at < limits.compress_at else (8, 9)
        warn = min(limits.warn_at, full * part[0] // part[1])
        ledger = self._writer.history.ledger
        within = {"compress_at": full, "warn_at": warn}
        return limits.model_copy(
            update={name: max(1, self._models.within(model, most, ledger)) for name, most in within.items()}
        )

    def _with_usage(self, built: window.Window) -> window.Window:
        """Add the server's token count of the thread's last request."""
        rows = self._writer.history.ledger.rows
        for row in reversed(rows[-ROWS:]):
            if row.thread == self._thread and row.usage is not None:
                thread = self._items()
                since = thread.tokens_before(len(thread)) - thread.tokens_before(thread.upto(row.line))
                report = dataclasses.replace(built.report, counted=row.usage.input, since=since)
                return dataclasses.replace(built, report=report)
        return built
