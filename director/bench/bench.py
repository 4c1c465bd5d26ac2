"""Runs nodes of the draft, alone or in sequence, each with the page and values of a run of the whole draft."""

from __future__ import annotations

import dataclasses
from collections.abc import Awaitable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from typing_extensions import override

from director.bench import browser as browser_module
from director.bench import node_map, plans, report, restore, results, watcher
from director.bench.node_map import NodeMap
from director.bench.records import FreshnessCheck
from director.effects import effects
from director.proving import draft_runs
from director.tools import build_context
from nodes.base import Leaf
from nodes.errors import ModelError, RunOpsError
from nodes.values import Json
from runtime import events
from runtime.browser import port
from runtime.engine import run_state
from runtime.language import prepare
from runtime.log import entries
from runtime.runs import excerpt
from runtime.runs import start as start_run
from runtime.runs.runtime import Run

if TYPE_CHECKING:
    from director.tools.build_context import BuildContext

GONE = frozenset({"page-crashed", "guard-lost"})
"""Errors after which the browser is unusable."""


@dataclasses.dataclass(frozen=True, slots=True)
class BenchRequest:
    nodes: str
    mode: Literal["flow", "isolated"]
    """In sequence, or each alone from its own state."""
    begin: plans.From
    item: str | None
    """A key, or a number from 1; for nested loops one for each, outermost first, with slashes between."""
    reason: str


@dataclasses.dataclass(frozen=True, slots=True)
class _Work:
    call: entries.Call
    wanted: BenchRequest
    places: NodeMap
    given: Mapping[str, str]
    prepared: prepare.Prepared


class Bench(build_context.Bench):
    """Keeps the last good value of each node, and browser states between nodes; implements ``director.tools.build_context.Bench``.

    Values and states are in the session's log and its private folder, so a resumed session has them; the browser does not survive.
    """

    def __init__(self, build: BuildContext) -> None:
        """Nothing is opened or read yet."""
        self._build = build
        self.known = results.Results(build)
        self.own = self._own(build)

    def _own(self, build: BuildContext) -> browser_module.Browser:
        return browser_module.Browser(build, self.known.folder)

    @property
    @override
    def browser(self) -> port.Browser | None:
        return self.own.now

    @override
    def values(self) -> Mapping[str, Json]:
        if (judge := self._judged()) is None:
            return {}
        known = {each.id: judge.value((each.id,), {}) for each in judge.places.in_order if not each.loops}
        return {name: value for name, (counts, value) in known.items() if counts}

    @override
    def marks(self) -> Mapping[str, str]:
        if (judge := self._judged()) is None:
            return {}
        records = {each.id: judge.record(each.id, {}) for each in judge.places.in_order if not each.loops}
        return {
            name: f"stale: {why}" if (why := judge.why(record)) is not None else "done" if record.ran else "passed by"
            for name, record in records.items()
            if record is not None
        }

    def _judged(self) -> FreshnessCheck | None:
        """Return the check of the results for the current draft; None if there is no draft that can run."""
        try:
            return self.known.judge(self.known.places)
        except RunOpsError:
            return None

    @override
    def onlooker(self, prepared: prepare.Prepared, call: entries.Call) -> run_state.Watch:
        reason = str(call.args.get("reason") or call.action)
        recording = watcher.Recording(
            self.known, reason, lambda: next(reversed(self._build.runs.of(call)), ""), prepared.inputs, pins={}
        )
        return watcher.Watcher(recording)

    @override
    async def take_over(self, run: str) -> None:
        await restore.take(self._build, self.known, run)

    @override
    async def close(self) -> None:
        await self.own.close()

    async def execute(self, call: entries.Call, wanted: BenchRequest) -> report.Report:
        """Run the requested nodes, each once, until the first that fails or is withheld.

        Raises ModelError ``draft-missing``, ``reason-missing``, ``node-unknown``, ``value-missing``, ``value-stale``, ``state-missing``,
        ``no-page``, ``origin-not-named``; UsageError ``item-unknown``; SetupError ``secret-missing``; Paused if a person is asked for an
        action.
        """
        if not wanted.reason.strip():
            raise ModelError("reason-missing", "there is no reason for it", fix="say in a sentence why")
        places = self.known.places
        selection = node_map.chosen(wanted.nodes, places)
        prepared = draft_runs.prepared(self._build, places.loaded, self.known.given(places.loaded))
        work = _Work(call, wanted, places, plans.given(selection, wanted.item, places), prepared)
        done = report.Report(places, selection.ids, notes=self.known.pinned(places, selection.ids))
        rows = [[each] for each in selection.ids] if wanted.mode == "isolated" else [list(selection.ids)]
        # Reject impossible requests before a person is asked for anything.
        start = self._plan(work, rows[0]).start
        astray = (
            start.astray or (wanted.begin == "live" and len(rows) > 1) or any(plans.gaps(places, row) for row in rows)
        )
        page = self.own.now.page.url if astray and self.own.now is not None and not start.fresh else None
        within = {each.id for node_id in selection.ids for each in places.below(node_id)}
        actions = effects.actions_of(prepared.loaded)
        actions = [(leaf, path) for leaf, path in actions if path.partition("/")[0] in within]
        holds = await self._build.effects.demand(actions, place=call.path, page=page, astray=astray)
        shown = self.own.shown()
        for row in rows:
            done.notes += plans.gaps(places, row)
            done.trips.append(await self._trip(work, row, holds))
            if done.trips[-1].ended.status != "passed":
                break
        if shown is not None and done.view is not None and self.own.now is not None:
            page_shown, before = shown
            if self.own.now.page is page_shown and report.same(before, done.view):
                done.known = before
        done.around = self.own.around()
        return done

    def _plan(self, work: _Work, ids: Sequence[str]) -> plans.Plan:
        judge = self.known.judge(work.places, work.prepared.inputs)
        planner = plans.Planner(judge, self.known, work.given)
        return planner.plan(ids, work.wanted.begin, self.own.live(work.prepared))

    async def _trip(self, work: _Work, ids: Sequence[str], holds: run_state.Withholds) -> report.Trip:
        plan = self._plan(work, ids)
        start, began = plan.start, list[str]()
        redone = [place.id for place in start.redo]
        if start.fresh:
            await self.close()
        recording = watcher.Recording(
            self.known, work.wanted.reason, lambda: began[0] if began else "", work.prepared.inputs, own=self.own
        )
        watch = watcher.Watcher(recording, start.lineage, redone)
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

            own = dataclasses.replace(options, part=part, browsers=self.own.lender(work.prepared), holds=holds)
            return self._build.carrier.begin(work.prepared, listener=listen, options=own)

        try:
            ended = await self._build.runs.follow(work.call, begin)
            stopped = self._stopped(watch, part, ended)
            view = await watch.look_behind(stopped)
        except BaseException:
            if began:
                watch.break_off()
            raise
        finally:
            if any(work.places.on_page(work.places[each]) for each in part.names):
                self.own.lineage = watch.lineage
        if (ended.error or {}).get("code") in GONE:
            await self.close()
        return report.Trip(start, watch.seen, ended, part.held, stopped, view, self._confirmed(watch, ended.run))

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
