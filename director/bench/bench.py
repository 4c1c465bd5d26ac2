"""The bench: nodes of the draft run here, alone or in a row, each on the page and with the values that it would find in a run of the whole."""

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
"""Errors after which the browser is of no use."""

FOLDER = "bench"
"""The bench's folder in the session's private one."""


class Bench(build_context.Bench):
    """Keeps of each node its last good value, and of the browser the states in between; implements ``director.tools.build_context.Bench``.

    Values and states stand in the session's log and its private folder, so whoever goes on with the session has them; the browser does not live on.
    """

    def __init__(self, build: BuildContext) -> None:
        """Nothing is opened or read yet."""
        self._build = build
        private = build.here.kept.private(build.writer.conversation.id) / FOLDER
        self.known = results.Results(build, private)
        """What is known of the draft's nodes."""
        self.own = self._own(build, private)
        """Its browser."""

    def _own(self, build: BuildContext, private: Path) -> browser_module.Browser:
        """The browser that it keeps."""
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
        """How each node outside of loops stands that was executed, by id: ``done``, ``passed by``, or ``stale: `` and of what."""
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
        """The draft as it stands, with what is known of it; None where there is none that can be tried."""
        try:
            return self.known.places, self.known.judge(self.known.places)
        except RunOpsError:
            return None

    @override
    def onlooker(self, prepared: prepare.Prepared, call: entries.Call) -> run_state.Watch:
        places, reason = self.known.places, str(call.args.get("reason") or call.action)
        recording = watcher.RecordingPage(
            # Pins are the bench's: the whole reads what its own nodes yield.
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
        """Whether a secret stands in a value."""
        return self._build.writer.masker.json(value) != value

    @override
    async def close(self) -> None:
        await self.own.close()

    def told(self, report: requests.Report, text: str) -> None:
        """The model of the build is told this of what came of a call."""
        if report.view is not None:
            self.own.told(report.view, text, whole=bench_report.is_whole(report, text))

    # Executing.

    async def execute(self, call: entries.Call, wanted: requests.BenchRequest) -> requests.Report:
        """Run the nodes that are wanted, each once, until the first that fails or is held.

        Raises ModelError ``draft-missing``, ``reason-missing``, ``node-unknown``, ``value-missing``, ``value-stale``, ``state-missing``, ``no-page``,
        ``origin-not-named``; UsageError ``item-unknown``; SetupError ``secret-missing``; Paused where a person is asked for an action.
        """
        if not wanted.reason.strip():
            raise ModelError("reason-missing", "there is no reason for it", fix="say in a sentence why")
        places = self.known.places
        selection = node_map.chosen(wanted.nodes, places)
        given = plans.given(selection, wanted.item, places)
        prepared = draft_runs.prepared(self._build, places.loaded, self.known.given(places.loaded))
        report = requests.Report(places, wanted, selection.ids)
        rows = [[each] for each in selection.ids] if wanted.mode == "isolated" else [list(selection.ids)]
        # What cannot be run at all is said before a person is asked for anything.
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
        """What of the actions in these nodes is held."""
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
        """One run."""
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
        """The paths of the actions that have a verdict; the log is only read where a node could have one."""
        if not any(isinstance(each.place.node, Leaf) and each.place.node.confirm is not None for each in watch.seen):
            return frozenset()
        past = self._build.runs.past(run_id)
        return frozenset(
            each.call.path for each in (past.all_attempts() if past is not None else ()) if each.verdict is not None
        )

    @staticmethod
    def _stopped(watch: watcher.Watcher, part: excerpt.Excerpt, ended: events.RunEnded) -> watcher.Seen | None:
        """The node at which a run ended that did not pass; from there on the page is that of no node, unless nothing was done to it."""
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
        """What a watch takes hold of."""

        async def capture(lineage: Lineage) -> None:
            assert self.browser is not None, "what is captured has a browser"
            # A page that cannot be read (a dialog is open, a popup is tied to another tab) has no state to go on from.
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
