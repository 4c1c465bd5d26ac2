"""A whole run in the browser of the bench: its last page stays there for the nodes that are still to be written."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

from typing_extensions import override

from director.bench import browser, report, watcher
from director.bench.records import BROKEN
from director.bench.results import Results
from director.scouting.observer import WHOLE
from director.tools import build_context
from nodes.errors import SiteError
from runtime import events
from runtime.browser import borrowed
from runtime.language import prepare
from runtime.runs import run

A_PAGE = 1_500  # limit of the page at the end of a run, in characters


class Stage(build_context.Stage):
    """Nothing is observed during the run, which is as fast as any other."""

    def __init__(
        self,
        results: Results,
        own: browser.Browser,
        prepared: prepare.Prepared,
        reason: str,
        run_id: Callable[[], str],
    ) -> None:
        self._results, self._own, self._prepared = results, own, prepared
        self._watch = watcher.Watcher(
            results, reason, run_id, inputs=prepared.inputs, pins={}, own=own, only_records=True
        )

    @property
    @override
    def watch(self) -> watcher.Watcher:
        return self._watch

    @override
    async def opened(self) -> run.Browsers:
        await self._own.close()
        # Until the run is over, its page belongs to no node.
        self._own.lineage = (BROKEN,)
        return borrowed.Lender(lambda: self._own.open(self._prepared))

    @override
    async def left(self, ended: events.RunEnded) -> str | None:
        own, watch = self._own, self._watch
        if own.now is None:
            return None
        if ended.status != "passed":
            stopped = watch.failed(ended.error or ended.question or {}, ended.path)
            before = (ended.error or {}).get("phase") == "before" or (ended.question or {}).get("reason") == "held"
            if before and stopped is not None and stopped.at is None and not stopped.place.node.container:
                own.lineage = watch.lineage
            return ""
        own.lineage = watch.lineage
        if watch.is_on_the_way and not own.now.facts().pending_input:
            with contextlib.suppress(SiteError):
                await self._results.keep_state(watch.lineage, await own.now.capture())
        view, _why = await watcher.look(own, own.now)
        if view is None:
            return ""
        whole = own.told().page(view, WHOLE)
        fits = len(whole) <= A_PAGE
        text = whole if fits else own.told().page(view, A_PAGE)
        own.note_shown(view, text, WHOLE if fits else 0)
        return report.inspectable(text)
