"""Runs nodes of the draft, alone or in sequence, each with the page and values that a whole run would give it."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from typing_extensions import override

from director.bench import browser as browser_module
from director.bench import node_map, plans, report, restore, results, stage, watcher
from director.bench.records import FreshnessCheck, Record
from director.effects import effects
from director.proving import draft_runs
from director.tools import build_context
from nodes.base import Leaf
from nodes.browser_query import reads
from nodes.errors import ModelError, RunOpsError
from nodes.values import Json
from runtime import events
from runtime.browser import borrowed, origins, port
from runtime.engine import run_state, tried_confirms
from runtime.language import prepare
from runtime.log import entries, history
from runtime.runs import excerpt
from runtime.runs import start as start_run
from runtime.runs.runtime import Run

if TYPE_CHECKING:
    from director.tools.build_context import BuildContext

GONE = frozenset({"page-crashed", "guard-lost"})

A_PLACE = 100  # limit of an address in a line, in characters

Plan = Callable[[], tuple[plans.Start, excerpt.Excerpt]]


@dataclasses.dataclass(frozen=True, slots=True)
class BenchRequest:
    nodes: str
    mode: Literal["flow", "isolated"]
    begin: plans.From
    item: str | None  # a key or a number from 1; for nested loops one per loop, outermost first, separated by slashes
    reason: str


class Bench(build_context.Bench):
    """Keeps the last good value of each node, and browser states between nodes; implements ``director.tools.build_context.Bench``.

    Values and states are in the session's log and its private folder, so a resumed session has them; the browser does not survive.
    """

    def __init__(self, build: BuildContext) -> None:
        self._build = build
        self.results = results.Results(build)
        self.own = self._own(build)

    def _own(self, build: BuildContext) -> browser_module.Browser:
        return browser_module.Browser(build, self.results.folder)

    @property
    @override
    def browser(self) -> port.Browser | None:
        return self.own.now

    @override
    def values(self) -> Mapping[str, Json]:
        if (freshness := self._freshness()) is None:
            return {}
        known = {each.id: freshness.value((each.id,), {}) for each in freshness.places.in_order if not each.loops}
        return {name: value for name, (valid, value) in known.items() if valid}

    @override
    def marks(self) -> Mapping[str, str]:
        marks: dict[str, str] = {}
        if (freshness := self._freshness()) is None:
            return marks
        for each in freshness.places.in_order:
            if not each.loops and (record := freshness.record(each.id, {})) is not None:
                why = freshness.why(record)
                unseen = "" if each.node.container else self._unseen_checks(freshness.places, record)
                done = f"done{unseen}" if record.ran else "passed by"
                marks[each.id] = f"stale: {why}" if why is not None else done
        return marks

    @staticmethod
    def _unseen_checks(places: node_map.NodeMap, record: Record) -> str:
        """Return which checks of a node were written after it ran."""
        new = [field for field, now in places.checks(record.id).items() if record.checks.get(field) != now]
        return f": {' and '.join(new)} {build_context.NOT_LOOKED_AT}" if new else ""

    def _freshness(self) -> FreshnessCheck | None:
        """Return the check of the results for the current draft; None if there is no draft that can run."""
        try:
            return self.results.freshness(self.results.places)
        except RunOpsError:
            return None

    @override
    def executed(self) -> Sequence[str]:
        try:
            known = self.results.places.all
        except RunOpsError:
            return []
        return [each for each in dict.fromkeys(each.id for each in self.results.records.values()) if each in known]

    @property
    @override
    def why_no_page(self) -> str:
        return self.own.why_none

    @override
    def clear(self, ids: Collection[str], reason: str) -> None:
        self.results.clear(ids, reason)

    @override
    def address(self, path: str, *, after: bool) -> build_context.Address | None:
        places = self.results.places
        place = places.all.get(path.rpartition("/")[2].partition("[")[0])
        record = self.results.records.get(place.key(places.items_in(path))) if place is not None else None
        if record is None or not record.at:
            return None
        before, *ended = record.at
        return build_context.Address(ended[-1], len(ended) > 1) if after else build_context.Address(before, False)

    @override
    def onlooker(self, prepared: prepare.Prepared, call: entries.Call) -> run_state.Watch:
        reason = str(call.args.get("reason") or call.action)
        return watcher.Watcher(
            self.results,
            reason,
            lambda: next(reversed(self._build.runs.of(call)), ""),
            inputs=prepared.inputs,
            pins={},
        )

    @override
    def stage(self, prepared: prepare.Prepared, call: entries.Call) -> stage.Stage:
        reason = str(call.args.get("reason") or call.action)
        begun = self._build.runs.of
        return stage.Stage(self.results, self.own, prepared, reason, lambda: next(reversed(begun(call)), ""))

    @override
    async def forget(self, reason: str) -> None:
        await self.close()
        self.own.why_none = reason
        self.results.drop_states()
        self.results.clear({each.id for each in self.results.records.values()}, reason)

    @override
    async def take_over(self, run: str) -> None:
        await restore.take(self._build, self.results, run)

    @override
    async def close(self) -> None:
        await self.own.close()

    async def execute(self, call: entries.Call, request: BenchRequest) -> report.Report:
        """Run the requested nodes, each once, until the first that fails or is withheld.

        Raises ModelError ``draft-missing``, ``reason-missing``, ``node-unknown``, ``value-missing``, ``value-stale``, ``state-missing``,
        ``no-page``, ``origin-not-named``; UsageError ``item-unknown``; SetupError ``secret-missing``; Paused if a person is asked for an
        action.
        """
        if not request.reason.strip():
            raise ModelError("reason-missing", "there is no reason for it", fix="say in a sentence why")
        places = self.results.places
        selection = node_map.select(request.nodes, places)
        prepared = draft_runs.prepared(self._build, places.loaded, draft_runs.declared(self._build, places.loaded))
        items = plans.requested_items(selection, request.item, places)

        def plan(ids: Sequence[str]) -> tuple[plans.Start, excerpt.Excerpt]:
            planner = plans.Planner(self.results.freshness(places, prepared.inputs), self.results, items)
            return planner.plan(ids, request.begin, self.own.live(prepared))

        names = self._build.writer.masker.names
        done = report.Report(places, selection.ids, notes=self.results.pinned(places, selection.ids), names=names)
        done.notes += [selection.left_out] if selection.left_out else []
        rows = [[each] for each in selection.ids] if request.mode == "isolated" else [list(selection.ids)]
        # Reject impossible requests before a person is asked for anything.
        start, _part = plan(rows[0])
        other_page = (
            start.other_page
            or (request.begin == "live" and len(rows) > 1)
            or any(plans.gaps(places, row) for row in rows)
        )
        page = self.own.now.page.url if other_page and self.own.now is not None and not start.fresh else None
        within = {each.id for node_id in selection.ids for each in places.below(node_id)}
        actions = effects.actions_of(prepared.loaded)
        actions = [(leaf, path) for leaf, path in actions if path.partition("/")[0] in within]
        holds = await self._build.effects.demand(actions, place=call.path, page=page, other_page=other_page)
        shown = self.own.shown()
        for row in rows:
            done.notes += plans.gaps(places, row)
            start, part = await self._ready(prepared, functools.partial(plan, row), done.notes)
            done.trips.append(await self._trip(call, request.reason, prepared, start, part, holds))
            if done.trips[-1].ended.status != "passed":
                break
        if shown is not None and done.view is not None and self.own.now is not None:
            page_shown, before = shown
            if self.own.now.page is page_shown and report.same(before, done.view):
                done.known = before
        done.told = self.own.told()
        for seen in done.seen:
            seen.page_errors = done.told.new(seen.page_errors, failed=seen.error is not None)
        return done

    async def _ready(
        self, prepared: prepare.Prepared, plan: Plan, notes: list[str]
    ) -> tuple[plans.Start, excerpt.Excerpt]:
        """Return the plan of a run, with its page ready.

        A kept state that leads to another address now is as if it had not been kept. One whose page is only slow, or was made by scripts, is
        used. Raises as ``Planner.plan``; SiteError if a page of a state does not load.
        """
        lost: list[str] = []
        start, part = plan()
        while start.state is not None and (differs := await self.own.restore(prepared, start.state)) is not None:
            if _address(differs.seen) == _address(differs.expected):
                lost.append(f'the page of {start.how} is not as it was: if it is another one, use `from` "fresh"')
                break
            lost.append(_lost(start, differs))
            self.results.passed_over.add(start.state)
            try:
                start, part = plan()
            except ModelError as error:
                raise ModelError(error.code, "; ".join([*lost, error.message]), fix=error.fix) from None
        if start.state is not None:
            self.own.lineage = start.lineage
        elif start.fresh:
            await self.close()
        notes += lost
        return start, part

    async def _trip(
        self,
        call: entries.Call,
        reason: str,
        prepared: prepare.Prepared,
        start: plans.Start,
        part: excerpt.Excerpt,
        holds: run_state.Withholds,
    ) -> report.Trip:
        places, began = self.results.places, list[str]()
        watch = part.watch = watcher.Watcher(
            self.results,
            reason,
            lambda: began[0] if began else "",
            inputs=prepared.inputs,
            own=self.own,
            lineage=start.lineage,
            redone=[place.id for place in start.redo],
        )

        def begin(listener: events.Listener, options: start_run.Options) -> Awaitable[Run]:
            def listen(event: events.Event) -> None:
                if isinstance(event, events.RunStarted):
                    began.append(event.run)
                listener(event)

            browsers = borrowed.Lender(lambda: self.own.open(prepared))
            own = dataclasses.replace(options, part=part, browsers=browsers, holds=holds, proves=True)
            return self._build.carrier.begin(prepared, listener=listen, options=own)

        try:
            ended = await self._build.runs.follow(call, begin)
            stopped = self._stopped(watch, part, ended)
            view = await watch.look(stopped)
        except BaseException:
            if began:
                watch.break_off()
            raise
        finally:
            if any(places.on_page(places[each]) for each in part.names):
                self.own.lineage = watch.lineage
        if (ended.error or {}).get("code") in GONE:
            await self.close()
        return report.Trip(start, watch.seen, ended, part.withheld, stopped, view, self._log(watch, ended.run))

    def _log(self, watch: watcher.Watcher, run_id: str) -> history.History | None:
        """Return the log of a run; it is only read if a report needs it: for a `confirm`, or for a part that matched nothing."""
        leaves = [each.place.node for each in watch.seen if isinstance(each.place.node, Leaf)]
        if not any(each.confirm is not None or isinstance(each, reads.Exists | reads.Count) for each in leaves):
            return None
        return self._build.runs.past(run_id)

    @staticmethod
    def _stopped(watch: watcher.Watcher, part: excerpt.Excerpt, ended: events.RunEnded) -> watcher.Seen | None:
        """Return the node at which a run stopped. Unless it left the page untouched, the page then belongs to no node."""
        if ended.status == "passed":
            return None
        error = ended.error or {}
        stopped = watch.failed(error, ended.path)
        untouched = stopped is not None and stopped.at is None and not stopped.place.node.container
        already = (ended.question or {}).get("reason") == tried_confirms.DONE_ALREADY
        if not (untouched and (already or part.withheld is not None or error.get("phase") == "before")):
            watch.break_off()
        return stopped


def _address(page: port.Shown) -> str:
    return page.address.partition("?")[0]


def _lost(start: plans.Start, differs: port.Differs) -> str:
    shown, site = _address(differs.seen), origins.origin(differs.expected.address) or ""
    return f"{start.how} is no longer valid (the site shows {shown.removeprefix(site)[:A_PLACE]})"
