"""Runs nodes of the draft, alone or in sequence, each with the page and values of a run of the whole draft."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from typing_extensions import override

from director.bench import browser as browser_module
from director.bench import node_map, plans, requests, restore, results, watcher
from director.bench import report as bench_report
from director.bench.node_map import NodeMap
from director.bench.records import FreshnessCheck, Lineage
from director.effects import effects
from director.proving import draft_runs
from director.tools import build_context
from nodes.base import Leaf
from nodes.errors import ModelError, RunOpsError, SiteError
from nodes.values import Json
from runtime import events
from runtime.browser import port
from runtime.engine import run_state
from runtime.language import prepare, workflow
from runtime.log import entries
from runtime.runs import excerpt
from runtime.runs import start as start_run
from runtime.runs.runtime import Run

if TYPE_CHECKING:
    from director.tools.build_context import BuildContext

GONE = frozenset({"page-crashed", "guard-lost"})
"""Errors after which the browser is unusable."""

FOLDER = "bench"
"""The bench's folder in the session's private folder."""


class Bench(build_context.Bench):
    """Keeps the last good value of each node, and browser states between nodes; implements ``director.tools.build_context.Bench``.

    Values and states are in the session's log and its private folder, so a resumed session has them; the browser does not survive.
    """

    def __init__(self, build: BuildContext) -> None:
        """Nothing is opened or read yet."""
        self._build = build
        private = build.here.kept.private(build.writer.conversation.id) / FOLDER
        self.known = results.Results(build, private)
        self.own = self._own(build, private)

    def _own(self, build: BuildContext, private: Path) -> browser_module.Browser:
        return browser_module.Browser(build, private)

    @property
    @override
    def browser(self) -> port.Browser | None:
        return self.own.now

    @override
    def values(self) -> Mapping[str, Json]:
        found = self._judged()
        if found is None:
            return {}
        places, judge = found
        known = {each.id: judge.value((each.id,), {}) for each in places.in_order if not each.loops}
        return {name: value for name, (counts, value) in known.items() if counts}

    def marks(self) -> Mapping[str, str]:
        """Return the state of each executed node outside loops, by id: ``done``, ``passed by``, or ``stale: `` and the cause."""
        found = self._judged()
        if found is None:
            return {}
        places, judge = found
        records = {each.id: judge.record(each.id, {}) for each in places.in_order if not each.loops}
        return {
            name: f"stale: {judge.why(record)}" if not judge.holds(record) else "done" if record.ran else "passed by"
            for name, record in records.items()
            if record is not None
        }

    def _judged(self) -> tuple[NodeMap, FreshnessCheck] | None:
        """Return the current draft with the check of its results; None if there is no draft that can run."""
        try:
            return self.known.places, self.known.judge(self.known.places)
        except RunOpsError:
            return None

    @override
    def onlooker(self, prepared: prepare.Prepared, call: entries.Call) -> run_state.Watch:
        places, reason = self.known.places, str(call.args.get("reason") or call.action)
        recording = watcher.RecordingPage(
            # Pins belong to the bench: a run of the whole draft reads the values of its own nodes.
            judge=lambda: self.known.judge(places, prepared.inputs, pins={}),
            keep=lambda record: self.known.keep(record, reason),
            masks=self._masks,
            run=lambda: next(reversed(self._build.runs.of(call)), ""),
        )
        return watcher.Watcher(places, (), recording)

    @override
    async def take_over(self, run: str) -> None:
        recording = watcher.RecordingPage(
            judge=lambda: self.known.judge(self.known.places, pins={}),
            keep=lambda record: self.known.keep(record, restore.WHY),
            masks=self._masks,
            run=lambda: run,
        )
        await restore.take(self._build, self.known, recording, run)

    def _masks(self, value: Json) -> bool:
        return self._build.writer.masker.json(value) != value

    @override
    async def close(self) -> None:
        await self.own.close()

    def told(self, report: requests.Report, text: str) -> None:
        """Note what the build's model was shown of a call."""
        if report.view is not None:
            self.own.told(report.view, text, whole=bench_report.is_whole(report, text))

    # Executing.

    async def execute(self, call: entries.Call, wanted: requests.BenchRequest) -> requests.Report:
        """Run the requested nodes, each once, until the first that fails or is withheld.

        Raises ModelError ``draft-missing``, ``reason-missing``, ``node-unknown``, ``value-missing``, ``value-stale``, ``state-missing``,
        ``no-page``, ``origin-not-named``; UsageError ``item-unknown``; SetupError ``secret-missing``; Paused if a person is asked for an
        action.
        """
        if not wanted.reason.strip():
            raise ModelError("reason-missing", "there is no reason for it", fix="say in a sentence why")
        places = self.known.places
        selection = node_map.chosen(wanted.nodes, places)
        given = plans.given(selection, wanted.item, places)
        prepared = draft_runs.prepared(self._build, places.loaded, self.known.given(places.loaded))
        report = requests.Report(places, wanted, selection.ids)
        rows = [[each] for each in selection.ids] if wanted.mode == "isolated" else [list(selection.ids)]
        # Reject impossible requests before a person is asked for anything.
        start = self._plan(places, rows[0], given, wanted, prepared).start
        report.notes += self.known.pinned(places, selection.ids)
        astray = (
            start.astray or (wanted.begin == "live" and len(rows) > 1) or any(plans.gaps(places, row) for row in rows)
        )
        shows = self.browser.page.url if self.browser is not None and not start.fresh else None
        holds = await self._demand(
            call, places, selection.ids, prepared.loaded, shows if astray else None, astray=astray
        )
        shown = self.own.shown()
        for row in rows:
            report.notes += plans.gaps(places, row)
            setup = await self._setup(call, places, row, given, wanted, prepared, holds)
            report.trips.append(setup)
            if setup.ended.status != "passed":
                break
        if shown is not None and report.view is not None:
            page, before = shown
            if self.own.is_shown(page) and bench_report.same(before, report.view):
                report.known = before
        report.around = self.own.around()
        return report

    async def _demand(
        self,
        call: entries.Call,
        places: NodeMap,
        ids: Sequence[str],
        loaded: workflow.Loaded,
        page: str | None,
        *,
        astray: bool,
    ) -> run_state.Withholds:
        """Return the withheld ones of the actions in these nodes."""
        within = {each.id for node_id in ids for each in places.below(node_id)}
        actions = [(leaf, path) for leaf, path in effects.actions_of(loaded) if path.partition("/")[0] in within]
        return await self._build.effects.demand(actions, place=call.path, page=page, astray=astray)

    def _plan(
        self,
        places: NodeMap,
        ids: Sequence[str],
        given: Mapping[str, str],
        wanted: requests.BenchRequest,
        prepared: prepare.Prepared,
    ) -> plans.Plan:
        judge = self.known.judge(places, prepared.inputs)
        planner = plans.Planner(places, judge, self.known.records, self.known.pins(places), given)
        live = None
        if self.browser is not None:
            live = plans.Live(self.own.lineage, fits=self.own.fits(prepared))
        return planner.plan(ids, wanted.begin, live, self.known.states)

    async def _setup(
        self,
        call: entries.Call,
        places: NodeMap,
        ids: Sequence[str],
        given: Mapping[str, str],
        wanted: requests.BenchRequest,
        prepared: prepare.Prepared,
        holds: run_state.Withholds,
    ) -> requests.Setup:
        build = self._build
        plan = self._plan(places, ids, given, wanted, prepared)
        start, began = plan.start, list[str]()
        redone = [place.id for place, _key in start.redo]
        if start.fresh:
            await self.close()
        recording = self._recording(lambda: self.known.judge(places, prepared.inputs), wanted.reason, began)
        watch = watcher.Watcher(places, start.lineage, recording, redone)
        part = excerpt.Excerpt(
            segments=plan.segments,
            names=[*redone, *ids],
            values=plan.values,
            variables=plan.variables,
            facts=plan.facts,
            state=start.state,
            watch=watch,
        )

        def begin(listener: events.Listener, options: start_run.Options) -> Awaitable[Run]:
            def listen(event: events.Event) -> None:
                if isinstance(event, events.RunStarted):
                    began.append(event.run)
                listener(event)

            return build.carrier.begin(
                prepared,
                listener=listen,
                options=dataclasses.replace(options, part=part, browsers=self.own.lender(prepared), holds=holds),
            )

        works_on_page = any(places.on_page(places[each]) for each in part.names)
        try:
            ended = await build.runs.follow(call, begin)
            stopped = self._stopped(watch, part, ended)
            view = await watch.look_behind(stopped)
        except BaseException:
            if began:
                watch.break_off()
            raise
        finally:
            if works_on_page:
                self.own.lineage = watch.lineage
        if (ended.error or {}).get("code") in GONE:
            await self.close()
        return requests.Setup(
            ids, start, watch.seen, ended, part.held, stopped, view, self._confirmed(watch, ended.run)
        )

    def _confirmed(self, watch: watcher.Watcher, run_id: str) -> frozenset[str]:
        """Return the paths of the actions with a verdict; the log is only read if a node could have one."""
        if not any(isinstance(each.place.node, Leaf) and each.place.node.confirm is not None for each in watch.seen):
            return frozenset()
        past = self._build.runs.past(run_id)
        return frozenset(
            each.call.path for each in (past.all_attempts() if past is not None else ()) if each.verdict is not None
        )

    @staticmethod
    def _stopped(watch: watcher.Watcher, part: excerpt.Excerpt, ended: events.RunEnded) -> watcher.Seen | None:
        """Return the node at which a run stopped. From there on the page belongs to no node, unless nothing was done to it."""
        if ended.status == "passed":
            return None
        error = ended.error or {}
        stopped = watch.failed(error, ended.path)
        untouched = stopped is not None and stopped.at is None and not stopped.place.node.container
        if not (untouched and (part.held is not None or error.get("phase") == "before")):
            watch.break_off()
        return stopped

    def _recording(
        self, judge: Callable[[], FreshnessCheck], reason: str, began: Sequence[str]
    ) -> watcher.RecordingPage:
        async def capture(lineage: Lineage) -> None:
            assert self.browser is not None, "what is captured has a browser"
            # A page that cannot be read (a dialog is open, a popup is tied to another tab) has no state to continue from.
            with contextlib.suppress(SiteError):
                await self.known.states.keep(lineage, await self.browser.capture(), reason)

        return watcher.RecordingPage(
            judge=judge,
            keep=lambda record: self.known.keep(record, reason),
            masks=self._masks,
            run=lambda: began[0] if began else "",
            own=self.own,
            capture=capture,
        )
