"""The bench: nodes of the draft run here, alone or in a row, each on the page and with the values that it would find in a run of the whole."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Coroutine, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

from typing_extensions import override

from director import effects, eyes, layout, workshop
from director.bench import plans, selections, states, watching
from director.bench.places import Places, written
from director.bench.records import Judge, Lineage, Record
from director.proving import drafts
from nodes.base import Leaf
from nodes.errors import ModelError, RunOpsError, SiteError
from nodes.values import Json
from runtime import clock, engine, events, excerpt, log, preparing, resolve, run, running
from runtime.agents import pages
from runtime.browser import complaints, launching, lent, port
from runtime.browser.options import BrowserOptions, Mode
from runtime.browser.page import Tab
from runtime.browser.session import Session
from runtime.language import workflow
from runtime.models import budgets
from runtime.observation import Observation

if TYPE_CHECKING:
    from director.workshop import Workshop

Row = Literal["flow", "isolated"]
"""Whether the nodes run in a row, or each by itself from its own state."""

GONE = frozenset({"page-crashed", "guard-lost"})
"""Errors after which the browser is of no use."""

FOLDER = "bench"
"""The bench's folder in the session's private one."""


@dataclasses.dataclass(frozen=True, slots=True)
class Wanted:
    """What is to be executed."""

    nodes: str
    mode: Row = "flow"
    begin: plans.From = "before"
    item: str | None = None
    """A key, or a number from 1; of loops in loops one for each, outermost first, with slashes between."""
    reason: str = ""


@dataclasses.dataclass(slots=True)
class Trip:
    """One run of the bench, and what was seen of it."""

    ids: Sequence[str]
    start: plans.Start
    seen: list[watching.Seen]
    ended: events.RunEnded
    held: dict[str, Json] | None
    """What was ready, where a deed was held."""
    stopped: watching.Seen | None
    """The node at which it ended, where that was not the end."""
    confirmed: frozenset[str] = frozenset()
    """The paths of the deeds of which the site was asked whether they were done."""


@dataclasses.dataclass(slots=True)
class Report:
    """What came of a call."""

    places: Places
    wanted: Wanted
    ids: Sequence[str]
    trips: list[Trip] = dataclasses.field(default_factory=list[Trip])
    notes: list[str] = dataclasses.field(default_factory=list[str])


@dataclasses.dataclass(frozen=True, slots=True)
class _Chosen:
    """What the settings say about browsers, for one that is the bench's."""

    browser: Path | None
    browser_mode: Mode | None
    headed: bool
    linger: float = 0.0


class Bench(workshop.Bench):
    """Keeps of each node its last good value, and of the browser the states in between; implements ``director.workshop.Bench``.

    Values and states stand in the session's log and its private folder, so whoever goes on with the session has them; the browser does not live on.
    """

    def __init__(self, shop: Workshop) -> None:
        """Nothing is opened or read yet."""
        self._shop = shop
        self._browser: port.Browser | None = None
        self._made_as: Json = None
        """How the browser was asked for: another one is needed where the draft asks for it otherwise."""
        self._ears: complaints.Complaints | None = None
        self._lineage: Lineage = ()
        """What was done to the page of the browser."""
        self._records: dict[str, Record] | None = None
        self._states: states.States | None = None
        self._places: tuple[str, Places] | None = None

    @property
    @override
    def browser(self) -> port.Browser | None:
        return self._browser

    @override
    def values(self) -> Mapping[str, Json]:
        try:
            places = self.places()
            judge = self._judge(places, places.loaded.check_inputs(self._given(places.loaded)))
        except RunOpsError:
            return {}
        known = {each.id: judge.value((each.id,), {}) for each in places.in_order if not each.loops}
        return {name: value for name, (counts, value) in known.items() if counts}

    def marks(self) -> Mapping[str, str]:
        """How each node outside of loops stands that was executed, by id: ``done``, ``stale``, or ``passed by``."""
        try:
            places = self.places()
            judge = self._judge(places, places.loaded.check_inputs(self._given(places.loaded)))
        except RunOpsError:
            return {}
        records = {each.id: judge.record(each.id, {}) for each in places.in_order if not each.loops}
        return {
            name: "stale" if not judge.holds(record) else "done" if record.ran else "passed by"
            for name, record in records.items()
            if record is not None
        }

    @override
    async def close(self) -> None:
        browser, self._browser, self._ears, self._lineage = self._browser, None, None, ()
        if browser is not None:
            await browser.close()

    def places(self) -> Places:
        """The draft's nodes, as the bench sees them. Raises ModelError ``draft-missing``, WorkflowInvalid."""
        draft = self._shop.desk.draft
        text = draft.text if draft is not None else ""
        if draft is None or self._places is None or self._places[0] != text:
            # Files beside it are those of the place where it will be left.
            loaded = drafts.as_saved(self._shop)
            positions = {each.id: each.position for each in layout.Layout(loaded.document).nodes}
            self._places = (text, Places(loaded, positions))
        return self._places[1]

    @property
    def records(self) -> dict[str, Record]:
        """What came of each node the last time that it ended well, by key."""
        if self._records is None:
            history = self._shop.desk.history
            self._records = {}
            for name in history.names_of("bench"):
                found = history.latest("bench", name)
                if found is not None and not name.startswith(states.MARK):
                    data = self._shop.pen.value_of(found)
                    self._records[name] = Record.of(data, masked=found.masked is True)
        return self._records

    @property
    def states(self) -> states.States:
        """The states that were kept."""
        if self._states is None:
            self._states = states.States(self._shop.desk, self._private)
        return self._states

    # Executing.

    async def execute(self, call: log.Call, wanted: Wanted) -> Report:
        """Run the nodes that are wanted, each once, until the first that fails or is held.

        Raises ModelError ``draft-missing``, ``reason-missing``, ``node-unknown``, ``value-missing``, ``value-stale``, ``state-missing``, ``no-page``,
        ``origin-not-named``; UsageError ``item-unknown``; SetupError ``secret-missing``; Paused where a person is asked for a deed.
        """
        if not wanted.reason.strip():
            raise ModelError("reason-missing", "there is no reason for it", mend="say in a sentence why")
        places = self.places()
        selection = selections.chosen(wanted.nodes, places)
        given = plans.given(selection, wanted.item, places)
        prepared = drafts.prepared(self._shop, places.loaded, self._given(places.loaded))
        report = Report(places, wanted, selection.ids)
        rows = [[each] for each in selection.ids] if wanted.mode == "isolated" else [list(selection.ids)]
        # What cannot be run at all is said before a person is asked for anything.
        self._plan(places, rows[0], given, wanted, prepared)
        report.notes += self._pinned(places, selection.ids)
        holds = await self._demand(call, places, selection.ids, prepared.loaded)
        for row in rows:
            report.notes += plans.gaps(places, row)
            trip = await self._trip(call, places, row, given, wanted, prepared, holds)
            report.trips.append(trip)
            if trip.ended.status != "passed":
                break
        return report

    async def _demand(
        self, call: log.Call, places: Places, ids: Sequence[str], loaded: workflow.Loaded
    ) -> engine.Holds:
        """What of the deeds in these nodes is held."""
        within = {each.id for node_id in ids for each in places.below(node_id)}
        deeds = [(leaf, path) for leaf, path in effects.deeds_of(loaded) if path.partition("/")[0] in within]
        return await self._shop.effects.demand(deeds, place=call.path)

    def _plan(
        self,
        places: Places,
        ids: Sequence[str],
        given: Mapping[str, str],
        wanted: Wanted,
        prepared: preparing.Prepared,
    ) -> tuple[Judge, plans.Plan]:
        judge = self._judge(places, prepared.inputs)
        planner = plans.Planner(places, judge, self.records, self._pins(places), given)
        live = None
        if self._browser is not None:
            live = plans.Live(self._lineage, fits=_said(self._options(prepared)) == self._made_as)
        return judge, planner.plan(ids, wanted.begin, live, self.states)

    async def _trip(
        self,
        call: log.Call,
        places: Places,
        ids: Sequence[str],
        given: Mapping[str, str],
        wanted: Wanted,
        prepared: preparing.Prepared,
        holds: engine.Holds,
    ) -> Trip:
        """One run."""
        shop = self._shop
        judge, plan = self._plan(places, ids, given, wanted, prepared)
        start, began = plan.start, list[str]()
        redone = [place.id for place, _key in start.redo]
        if start.fresh:
            await self.close()
        watch = watching.Watching(places, judge, start.lineage, self._hands(wanted.reason, began), redone)
        part = excerpt.Excerpt(
            pieces=plan.pieces,
            names=[*redone, *ids],
            values=plan.values,
            variables=plan.variables,
            facts=plan.facts,
            state=start.state,
            watch=watch,
        )

        def begin(listener: events.Listener, purse: budgets.Purse | None) -> Coroutine[Any, Any, events.RunEnded]:
            def listen(event: events.Event) -> None:
                if isinstance(event, events.RunStarted):
                    began.append(event.run)
                listener(event)

            return running.begin(
                prepared,
                shop.chosen,
                listen,
                part=part,
                parent=shop.pen.conversation.id,
                purse=purse,
                browsers=_Lender(self, prepared),
                holds=holds,
            )

        works_on_page = any(places.on_page(places[each]) for each in part.names)
        try:
            ended = await shop.runs.follow(call, begin)
            stopped = await self._stopped(watch, part, ended)
        except BaseException:
            if began:
                watch.break_off()
            raise
        finally:
            if works_on_page:
                self._lineage = watch.lineage
        if (ended.error or {}).get("code") in GONE:
            await self.close()
        return Trip(ids, start, watch.seen, ended, part.held, stopped, self._confirmed(watch, ended.run))

    def _confirmed(self, watch: watching.Watching, run_id: str) -> frozenset[str]:
        """The paths of the deeds that have a verdict; the log is only read where a node could have one."""
        if not any(isinstance(each.place.node, Leaf) and each.place.node.confirm is not None for each in watch.seen):
            return frozenset()
        past = self._shop.runs.past(run_id)
        return frozenset(
            each.call.path for each in (past.all_attempts() if past is not None else ()) if each.verdict is not None
        )

    @staticmethod
    async def _stopped(watch: watching.Watching, part: excerpt.Excerpt, ended: events.RunEnded) -> watching.Seen | None:
        """The node at which a run ended that did not pass; from there on the page is that of no node, unless nothing was done to it."""
        if ended.status == "passed":
            return None
        error = ended.error or {}
        stopped = watch.failed(error, ended.path)
        untouched = stopped is not None and stopped.at is None and not stopped.place.node.container
        if not (untouched and (part.held is not None or error.get("phase") == "before")):
            watch.break_off()
        if stopped is not None:
            await watch.look_now(stopped)
        return stopped

    def _hands(self, reason: str, began: Sequence[str]) -> watching.Hands:
        """What a watch takes hold of."""
        masker = self._shop.pen.masker

        def keep(record: Record) -> None:
            self.records[record.done.key] = record
            version = log.Version(of="bench", name=record.done.key, number=0, reason=reason, by="model")
            self._shop.desk.keep(version, record.as_json())

        async def capture(lineage: Lineage) -> None:
            assert self._browser is not None, "what is captured has a browser"
            # A page that cannot be read (a dialog is open, a popup is tied to another tab) has no state to go on from.
            with contextlib.suppress(SiteError):
                self.states.keep(lineage, await self._browser.capture(), reason)

        return watching.Hands(
            keep=keep,
            capture=capture,
            browser=lambda: self._browser,
            ears=lambda: self._ears,
            status=self._status,
            masks=lambda value: masker.json(value) != value,
            look=self._look,
            run=lambda: began[0] if began else "",
        )

    async def _look(self, browser: port.Browser) -> Observation:
        """A look that the eyes of the build remember: what a model is told of it, it may point at."""
        page, seeing = browser.page, self._shop.eyes
        if isinstance(page, Tab) and isinstance(seeing, eyes.Eyes):
            return await seeing.look_at(page)
        return (await cast("pages.Page", page).look()).masked(self._shop.pen.masker.text)

    def told(self, text: str) -> None:
        """The model of the build is told this of the page as the last nodes left it; where it is all of it, it is not shown it again."""
        page, seeing = self._browser.page if self._browser is not None else None, self._shop.eyes
        if isinstance(page, Tab) and isinstance(seeing, eyes.Eyes):
            seeing.told(page, text, log.SESSION_THREAD)

    # The browser.

    async def open(self, prepared: preparing.Prepared) -> port.Browser:
        """The browser in which a run works: the one that is there, or a new one."""
        origins = prepared.loaded.origins(prepared.inputs)
        if self._browser is not None:
            if isinstance(self._browser, Session):
                self._browser.allow(origins)
            return self._browser
        options = self._options(prepared)
        self._browser = await self.make(options, origins)
        self._made_as = _said(options)
        if isinstance(self._browser, Session):
            self._ears = complaints.Complaints(self._browser.page.page.context)
        return self._browser

    def _status(self) -> int | None:
        if self._ears is None or not isinstance(self._browser, Session):
            return None
        return self._ears.status(self._browser.page.page)

    async def make(self, options: BrowserOptions | None, origins: Sequence[str]) -> port.Browser:
        """A new browser. Raises SetupError."""
        chosen = self._shop.chosen
        self._private.mkdir(mode=0o700, parents=True, exist_ok=True)
        # A part of a browser that is there already costs a tenth of a new one; what it cannot do needs its own.
        mode: Mode = "shared" if options is None or options.unfit("shared") is None else "own"
        own = options.model_copy(update={"mode": mode}) if options is not None else None
        settled = _Chosen(chosen.browser, mode, chosen.headed)
        return await launching.open_browser(own, origins=origins, private=self._private, chosen=settled)

    @property
    def _private(self) -> Path:
        return self._shop.kept.private(self._shop.pen.conversation.id) / FOLDER

    @staticmethod
    def _options(prepared: preparing.Prepared) -> BrowserOptions | None:
        wanted = prepared.loaded.workflow.browser
        if wanted is None:
            return None
        values = {"inputs": prepared.inputs, "secrets": prepared.secrets}
        return resolve.filled(wanted, prepared.loaded.templates, values, clock.RecordedClock([]))

    # What a run is made of.

    def _judge(self, places: Places, inputs: Mapping[str, Json]) -> Judge:
        return Judge(places, self.records, inputs, self._pins(places))

    def _pins(self, places: Places) -> dict[str, Json]:
        """The session's variables that are called like something that a node reads."""
        items = {loop.as_ for place in places.in_order for loop in place.loops if loop.as_}
        return {
            name: value
            for name, value in self._shop.desk.variables.all().items()
            if name in places.all or name in items or name == "error" or name.startswith("vars.")
        }

    def _pinned(self, places: Places, ids: Sequence[str]) -> list[str]:
        """What is said of pins that these nodes read."""
        read = {written(each.chain) for node_id in ids for each in places.reads(node_id)}
        names = [f"`{each}`" for each in self._pins(places) if each in read]
        return [f"pinned by a variable of the session: {', '.join(names)}"] if names else []

    def _given(self, loaded: workflow.Loaded) -> dict[str, Json]:
        """The inputs that the person gave, as far as the draft declares them."""
        declared = loaded.workflow.inputs
        return {name: each for name, each in self._shop.wish.inputs.items() if name in declared}


class _Lender(run.Browsers):
    """Lends a run the browser of the bench."""

    def __init__(self, bench: Bench, prepared: preparing.Prepared) -> None:
        self._bench, self._prepared = bench, prepared

    @override
    async def open(self) -> port.Browser:
        return lent.Lent(await self._bench.open(self._prepared))

    @override
    async def reattach(self) -> port.Browser | None:
        return None


def _said(options: BrowserOptions | None) -> Json:
    return options.model_dump(mode="json") if options is not None else None
