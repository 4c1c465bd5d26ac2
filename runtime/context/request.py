"""The next request of a thread: the window that fits, with the frame around it.

First outputs become pointers. What still does not fit is summed up before the request is sent, in several requests if one cannot hold it;
only where no summary can be made is it left out, and the report names it with the limits that suffice. A thread is also summed up beyond a
checkpoint, and when a person asks for it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from typing_extensions import override

from nodes.errors import ModelError
from nodes.values import Json
from runtime.context import items, summaries, window
from runtime.context import replaced as replaced_arguments
from runtime.context import report as context_report
from runtime.log import entries
from runtime.log.writer import Fold, LogWriter
from runtime.messages.messages import Request
from runtime.models.turns import turn

if TYPE_CHECKING:
    from runtime.models import run_models

FULL = 85  # percentage of a model's input limit at which a window is full

TOLD: Collection[str] = ("saved", "failed")
"""Outcomes of a summary that a person is told."""

TRIES = 8  # number of limits tried until one suffices in the tokens of the model

ROWS = 200  # number of ledger rows searched for the thread's last request


@dataclasses.dataclass(frozen=True, slots=True)
class Compressed:
    """What a person's summary has replaced, the summary, and the window after it."""

    replaced: window.Size
    summary: window.Size
    report: window.Report
    cut: str  # what is missing of a summary that was too long; empty if it is whole


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
        stands: Callable[[], Sequence[window.Part]] = tuple,
        refresh: Collection[str] = (),
        replaced: replaced_arguments.Replaced = replaced_arguments.NOTHING,
        warn: Callable[[window.Report], None] = lambda _report: None,
        summed: Callable[[window.Reduction, window.Report], None] = lambda _rung, _report: None,
    ) -> None:
        """``around`` and ``limits`` are called for each request, so that it shows the current state.

        Without ``asks`` nothing is summarized. Every summary keeps the names ``ids``, is made with ``stands``, the state in full, and names
        those offered tools that are in ``refresh``. ``summed`` is called when a summary was made or failed.
        """
        self._writer, self._thread = writer, thread
        self._around, self._limits = around, limits
        self._max_output, self._strict = max_output, strict
        self._models = models
        self._summaries = (
            summaries.Summaries(writer, thread, asks, max_output=max_output, ids=ids) if asks is not None else None
        )
        self._stands, self._refresh, self._replaced = stands, refresh, replaced
        self._warn, self._summed = warn, summed
        self._model: str | None = None  # the model of the last request
        self.report: window.Report | None = None

    def window(self, model: str) -> window.Window:
        """Build the current window; sends and logs nothing. A summary that it needs is told as due. Raises ModelError ``window-too-large``."""
        limits = self._narrowed(model)
        built = self._built(limits)
        rung = context_report.Reduction("summary", "not needed")
        if self._summaries is not None and self._wants(limits, built):
            why = self._summaries.last_failure
            why = f"before the next request{f'; the last try failed: {why}' if why else ''}"
            rung = self._summaries.failed() or context_report.Reduction("summary", "due", why=why)
        return self._told(built, rung, limits)

    @override
    async def request(self, model: str) -> Request:
        limits = self._narrowed(model)
        built, rung = await self._summed_up(limits, self._built(limits))
        built = self._told(built, rung, limits)
        warned = self.report is not None and self.report.warns
        self.report = built.report
        if rung.outcome in TOLD:
            self._summed(rung, built.report)
        if limits.overflow == "summarize-only":
            self._refuse_loss(built.report, rung)
        if built.report.warns and not warned and not (rung.outcome == "failed" and built.report.lost):
            self._warn(built.report)
        most, strict = self._max_output, self._strict
        return Request(model, built.instructions, built.items, None, most, strict, built.tools, state=built.state)

    def _refuse_loss(self, report: window.Report, rung: context_report.Reduction) -> None:
        """Raise ModelError ``window-unsummed`` if a part of the thread would be left out without a summary."""
        if not report.lost:
            return
        why = rung.why or "none could be made"
        parts = ", ".join(f"{each.what} ({each.tokens:,} tokens)" for each in report.lost)
        raise ModelError(
            "window-unsummed",
            f"there is no room and no summary for {parts}: {why}. Nothing was sent",
            fix="say it again later, allow a larger window (`hard_limit`), or that they are left out (`overflow` `summarize`)",
            evidence={"enough": dict[str, Json](report.enough)},
        )

    @property
    def is_compressing(self) -> bool:
        """True if a summary that a person asked for was begun, and a crash or a budget left it without its end."""
        return self._summaries is not None and self._summaries.begun_by_person

    async def compress(self, model: str, mode: entries.Mode, keep: str) -> Compressed:
        """Sum up everything said so far, as a person asks. Raises ModelError, also ``window-too-large``, if not all could be."""
        assert self._summaries is not None, "a thread that a person compresses has a model"
        limits = self._narrowed(model)
        built, before = self._built(limits), self._items()
        whole = before.total
        cut = ""
        while True:
            rung = await self._summaries.sum_up(self._order(limits, built, mode, keep))
            cut = rung.why if rung.outcome == "saved" else cut
            built = self._built(limits)
            if rung.outcome != "saved" or not self._summaries.begun:
                break
        if rung.outcome == "failed":
            raise ModelError(
                "window-too-large",
                f"not all was summed up: {rung.why}",
                fix="allow a larger window (`hard_limit`, `compress_at`)",
            )
        left = self._items()
        summary = left.summary.large if left.summary is not None else window.Size()
        return Compressed(whole - left.total, summary, self._told(built, rung, limits).report, cut)

    async def _summed_up(
        self, limits: window.Limits, built: window.Window
    ) -> tuple[window.Window, context_report.Reduction]:
        """Make the summaries that the window needs."""
        saved, cut = 0, ""
        rung = context_report.Reduction("summary", "not needed")
        while self._summaries is not None and (self._summaries.begun or self._wants(limits, built)):
            rung = await self._summaries.sum_up(self._order(limits, built))
            if rung.outcome != "saved":
                break
            saved, cut = saved + rung.saved, rung.why
            built = self._built(limits)
        if saved and rung.outcome == "no effect":
            rung = context_report.Reduction("summary", "saved", saved, cut)
        return built, dataclasses.replace(rung, saved=saved)

    def _order(
        self, limits: window.Limits, built: window.Window, mode: entries.Mode | None = None, keep: str = ""
    ) -> summaries.Order:
        refresh = [each.name for each in built.tools if each.name in self._refresh]
        most, must = window.tokens_of(limits), bool(built.report.lost)
        return summaries.Order(limits, built.rest, most, must, mode, keep, refresh, self._stands())

    def _wants(self, limits: window.Limits, built: window.Window) -> bool:
        """True if something would be lost, or the thread is beyond a checkpoint."""
        if limits.overflow == "prune":
            return False
        if built.report.lost:
            return True
        thread = self._items()
        newest = thread.word.large.tokens if thread.word is not None and thread.newest_word is not None else 0
        summed = thread.summary.large.tokens if thread.summary is not None else 0
        tokens = thread.tokens_before(len(thread)) + summed - newest
        return tokens > (limits.checkpoint_at or tokens) or thread.has_messages(limits.checkpoint_messages)

    def _built(self, limits: window.Limits) -> window.Window:
        try:
            return window.build(self._items(), self._around(), limits)
        except ModelError as error:
            evidence = {**error.evidence, "enough": dict[str, Json](self._widened(error.evidence["enough"], limits))}
            raise error.replaced(evidence=evidence) from None

    def _told(self, built: window.Window, rung: context_report.Reduction, limits: window.Limits) -> window.Window:
        """Add to the report: the summary, what suffices where something is lost, the server's token count."""
        report = dataclasses.replace(built.report, rungs=(*built.report.rungs, rung))
        if report.lost:
            found = window.enough(self._items(), self._around(), limits)
            report = dataclasses.replace(report, enough=self._widened(found, limits))
        return self._with_usage(dataclasses.replace(built, report=report))

    def _items(self) -> items.Thread:
        return items.Thread(self._writer.history.thread(self._thread), self._writer, self._replaced)

    def _narrowed(self, model: str, limits: window.Limits | None = None) -> window.Limits:
        """Return the limits, by default the current ones, in our own token count: a model may count more tokens, and accept fewer."""
        self._model = model
        limits = limits or self._limits()
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

    def _widened(self, enough: Mapping[str, int], narrowed: window.Limits) -> dict[str, int]:
        """Return these limits as a person sets them: in the tokens of the model, as far as it accepts so many."""
        if "compress_at" not in enough:
            return dict(enough)
        wanted = most = enough["compress_at"]
        if self._models is not None and (model := self._model) is not None:
            for _try in range(TRIES):
                fits = self._narrowed(model, self._limits().model_copy(update={"compress_at": most})).compress_at
                if fits >= wanted:
                    break
                most = -(-most * wanted // max(1, fits) // window.HUNDRED) * window.HUNDRED
            else:
                return {name: value for name, value in enough.items() if name != "compress_at"}
        return {**enough, "compress_at": most}

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
