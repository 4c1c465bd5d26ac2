"""The next request of a thread: the window that fits, with what stands around it.

What does not fit gives way step by step: outputs become pointers, exchanges are left out, and where the thread has outgrown its room, a summary comes to
stand for what is not recent. Where what must be told is too much by itself, nothing is sent.
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

FULL = 85
"""Percent of what a model takes as input, at which a window is full."""

ENDLESS = 2**62
"""Tokens that no thread has."""

ROWS = 200
"""Rows of the ledger among which the last request of the thread is looked for."""


class Frame(turn.Frame):
    """Builds the requests of one thread."""

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
        """``around`` and ``limits`` are asked for each request, so that it is told what holds then; ``strict`` is whether all schemas are in the strict form.

        ``models`` say what is known of the model: how it counts, how much it takes. ``asks`` opens the threads in which a model sums up; without it
        nothing is summed up. ``ids`` are names that no summary may lose, such as those of nodes. ``warn`` is told when the window comes to be nearly full.
        ``joined`` is what a request is built from: the thread, or the thread with what stands before it and is no part of it.
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
        """Of the last request."""

    def window(self, model: str) -> window.Window:
        """What a request to the model would hold now. Nothing is summed up, sent or written. Raises ModelError ``window-too-large``."""
        return self._told(window.build(self._joined(self._items()), self._around(), self._narrowed(model)))

    @override
    async def request(self, model: str) -> Request:
        limits = self._narrowed(model)
        built = window.build(self._joined(self._items()), self._around(), limits)
        rung = context_report.Rung("summary", "not needed")
        room = built.report.room if built.report.overflows else ENDLESS
        room = min(room, limits.checkpoint_at or ENDLESS)
        wanted = limits.overflow == "summarize" and self._outgrows(room)
        if self._summaries is not None and wanted:
            rung = await self._summaries.sum_up(limits, room, built.report.limit)
            if rung.outcome == "saved":
                built = window.build(self._joined(self._items()), self._around(), limits)
        report = dataclasses.replace(built.report, rungs=(*built.report.rungs, rung))
        built = self._told(dataclasses.replace(built, report=report))
        warned = self.report is not None and self.report.warns
        self.report = built.report
        if built.report.warns and not warned:
            self._warn(built.report)
        return Request(
            model,
            built.instructions,
            built.items,
            None,
            self._max_output,
            self._strict,
            built.tools,
            state=built.state,
        )

    def _outgrows(self, room: int) -> bool:
        """Whether the thread itself has, with its summary: none takes in what stands before it."""
        thread = self._items()
        tokens = thread.tokens_before(len(thread))
        if thread.summary is not None:
            tokens += thread.summary.size(pointers=False).tokens
        if thread.word is not None and thread.newest_word is not None:
            tokens -= thread.word.size(pointers=False).tokens
        return tokens > room

    def _items(self) -> items.Thread:
        return items.Thread(self._writer.history.thread(self._thread), self._writer)

    def _narrowed(self, model: str) -> window.Limits:
        """The limits in tokens as we count them: a model may count more, and take less."""
        limits = self._limits()
        if self._models is None or limits.hard_limit is not None:
            return limits
        full = limits.compress_at
        if (known := self._models.context_window(model)) is not None:
            full = min(full, max(1, (known - self._max_output) * FULL // 100))
        # A warning that would come behind what it warns of comes where the one of the defaults does: at eight of nine parts.
        part = (limits.warn_at, limits.compress_at) if limits.warn_at < limits.compress_at else (8, 9)
        warn = min(limits.warn_at, full * part[0] // part[1])
        ledger = self._writer.history.ledger
        within = {"compress_at": full, "warn_at": warn}
        return limits.model_copy(
            update={name: max(1, self._models.within(model, most, ledger)) for name, most in within.items()}
        )

    def _told(self, built: window.Window) -> window.Window:
        """With what the server said of the last request of the thread."""
        rows = self._writer.history.ledger.rows
        for row in reversed(rows[-ROWS:]):
            if row.thread == self._thread and row.usage is not None:
                thread = self._items()
                since = thread.tokens_before(len(thread)) - thread.tokens_before(thread.upto(row.line))
                report = dataclasses.replace(built.report, counted=row.usage.input, since=since)
                return dataclasses.replace(built, report=report)
        return built
