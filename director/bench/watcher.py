"""Observes nodes while they run: values, addresses, page changes, page errors, and the states between."""

from __future__ import annotations

import contextlib
import dataclasses
import time
from collections.abc import Callable, Mapping, Sequence

from typing_extensions import override

from director.bench import browser
from director.bench.node_map import FACTS, NodePlace, digest, transparent, written
from director.bench.records import BROKEN, FreshnessCheck, Lineage, Record, link
from director.bench.results import Results
from nodes.base import Leaf, Node
from nodes.errors import AuthorError, SiteError
from nodes.group import Group
from nodes.iterate import Iterate
from nodes.route import Route
from nodes.values import Json
from runtime.browser import port
from runtime.engine import run_state, scopes
from runtime.observation.observation import Observation

LOOK_SECONDS = 5.0  # limit of an observation of the page; a longer one is reported as failed


@dataclasses.dataclass(slots=True)
class Seen:
    place: NodePlace
    path: str
    redone: bool  # True if it was not requested, but leads to the first page of the requested nodes
    reads: Mapping[str, str]
    begun: float = dataclasses.field(default_factory=time.monotonic)
    seconds: float = 0.0
    over: bool = False
    ran: bool = False
    tolerated: bool = False  # True if it failed, and the run continued
    value: Json = None
    hidden: bool = False  # True if the value contains a secret
    url_before: str | None = None
    url_after: str | None = None
    drifted: tuple[str, str] | None = None
    """The node before it after which the address changed by itself, and the address that it had."""
    before: Observation | None = None
    after: Observation | None = None
    unseen: str | None = None  # reason why the page could not be observed
    page_errors: list[str] = dataclasses.field(default_factory=list[str])
    status: int | None = None
    sign_in_fix: str | None = None  # how to sign in, if the page asks for HTTP credentials
    error: dict[str, Json] | None = None
    at: str | None = None  # the failed step in it, if it is not the node itself
    inner: bool = False  # True for an unrequested node in a branch that was taken; its container reports the page


class Watcher(run_state.Watch):
    def __init__(
        self,
        results: Results,
        reason: str,
        run: Callable[[], str],
        *,
        inputs: Mapping[str, Json] | None = None,
        pins: Mapping[str, Json] | None = None,
        own: browser.Browser | None = None,
        lineage: Lineage = (),
        redone: Sequence[str] = (),
        only_records: bool = False,
    ) -> None:
        """``run`` returns the run's id; ``inputs`` and ``pins`` default to the session's; ``lineage`` is that of the page before the run.

        Without the bench's ``own`` browser only values are recorded; with ``only_records`` also addresses, and no page is observed.
        Nodes in ``redone`` were not requested.
        """
        self.is_on_the_way = False  # True if the last node that changed the page left it as the draft makes it
        self.lineage = lineage
        self.seen: list[Seen] = []
        self._results, self._reason, self._run, self._own = results, reason, run, own
        self._inputs, self._pins, self._only_records = inputs, pins, only_records
        self._places, self._redone = results.places, set(redone)
        self._open: list[Seen] = []  # the nodes that have begun and not ended, the innermost last
        self._last_look: Observation | None = None
        self._looked = False  # True if that observation followed the last node that worked on the page

    def _freshness(self) -> FreshnessCheck:
        return self._results.freshness(self._places, self._inputs, self._pins)

    def _browser(self, place: NodePlace) -> tuple[browser.Browser, port.Browser] | None:
        """Return the bench's browser, if the node works on its page."""
        if self._own is None or self._own.now is None or not self._places.on_page(place):
            return None
        return None if transparent(place.node) else (self._own, self._own.now)

    @override
    async def before(self, node: Node, frame: scopes.Scope, path: str) -> None:
        place = self._place(node, path)
        if place is None:
            return
        # The engine does not report nodes that an error has ended.
        while self._open and not path.startswith((f"{self._open[-1].path}/", f"{self._open[-1].path}[")):
            self._open.pop()
        reads = self._reads(place, frame) if self._alone(place) else {}
        seen = Seen(place, path, place.id in self._redone, reads)
        self._open.append(seen)
        if self._inside(place):
            return
        self.seen.append(seen)
        if (found := self._browser(place)) is None:
            return
        own, now = found
        seen.url_before = now.page.url
        if not self._only_records:
            self._note_drift(seen, own)
        if own.page_errors is not None:
            own.page_errors.take()
        if self._last_look is None and not self._only_records:
            self._last_look, _why = await look(own, now)
        seen.before = self._last_look

    @override
    async def after(self, node: Node, frame: scopes.Scope, path: str, *, ran: bool) -> None:
        place = self._place(node, path)
        if place is None:
            return
        while (seen := self._open.pop()).path != path:
            pass
        seen.seconds, seen.over, seen.ran = time.monotonic() - seen.begun, True, ran
        if not self._alone(place):
            return
        record = self._record(seen, frame)
        seen.value = record.value
        seen.hidden = record.masked or self._results.is_secret(record.value)
        seen.tolerated = not ran and "errors" in record.facts
        self._results.keep(record, self._reason)
        if self._inside(place):
            if all(isinstance(each, Route | Group) for each in self._running(place)):
                seen.inner = True
                self.seen.append(seen)
            return
        # A container around the node that is not being run counts only with the node's block or item.
        running = self._running(place)
        unit = self._places.is_unit(place, [each for each in place.around if each not in running])
        if unit:
            self.lineage = (*self.lineage, link(record.key, record.print, record.reads))
        await self._look_after(seen)
        now = self._own.now if self._own is not None else None
        if not unit or now is None:
            return
        self.is_on_the_way = self.lineage == self._freshness().way(place, record.items, after=True)
        if self.is_on_the_way and not self._only_records and not now.facts().pending_input:
            # The state of some pages cannot be captured: a dialog is open, or a popup is tied to another tab.
            with contextlib.suppress(SiteError):
                await self._results.keep_state(self.lineage, await now.capture())

    def failed(self, error: dict[str, Json], path: str | None) -> Seen | None:
        """Note the error that ended the run; return the node in progress, if there is one."""
        seen = self._in_progress()
        if self._own is not None:
            self._own.left = None
        if seen is not None:
            seen.seconds, seen.error = time.monotonic() - seen.begun, error
            if path is not None and path != seen.path:
                seen.at = path
        return seen

    def break_off(self) -> None:
        """Mark the page as belonging to no node: the node in progress may have left it in any state."""
        seen = self._in_progress()
        # With no node in progress, the run ended while a state was restored or a node placed.
        if seen is None or self._places.changes_page(seen.place):
            self.lineage = (*self.lineage, BROKEN)

    def _in_progress(self) -> Seen | None:
        return next((each for each in reversed(self._open) if not self._inside(each.place)), None)

    async def look(self, stopped: Seen | None) -> Observation | None:
        """Return the page after the ``stopped`` or the last node; None if no node worked on one, or it cannot be observed."""
        if stopped is not None:
            await self._look_after(stopped)
        own = self._own
        if own is None or own.now is None or not any(self._places.on_page(each.place) for each in self.seen):
            return None
        if not self._looked:
            self._last_look, _why = await look(own, own.now)
        return self._last_look

    # Internals.

    def _note_drift(self, seen: Seen, own: browser.Browser) -> None:
        """Note it if the address has changed since the last node was over, as when a page saves itself."""
        if own.left is None or seen.url_before in (None, own.left[1]):
            return
        if (record := self._results.records.get(own.left[0])) is not None and record.at:
            seen.drifted = record.id, own.left[1]
            self._results.keep(dataclasses.replace(record, at=[*record.at[:2], seen.url_before]), self._reason)

    def _place(self, node: Node, path: str) -> NodePlace | None:
        """Return the node's place in the draft; None for a node of a file that it uses."""
        found = self._places.loaded.find(path)
        place = self._places.all.get(node.id)
        if found is None or found.user or place is None or place.confirms:
            return None
        return place

    def _running(self, place: NodePlace) -> list[Node]:
        """Return the containers around it that run as a whole."""
        running = {each.place.id for each in self._open}
        return [each for each in place.around if each.id in running]

    def _inside(self, place: NodePlace) -> bool:
        """Return whether a container that runs as a whole around the node does more than group."""
        return not all(map(transparent, self._running(place)))

    def _alone(self, place: NodePlace) -> bool:
        """Return whether no loop runs as a whole around the node: then its value is kept separately."""
        return not any(isinstance(each, Iterate) for each in self._running(place))

    def _reads(self, place: NodePlace, frame: scopes.Scope) -> dict[str, str]:
        found: dict[str, str] = {}
        for chain in self._freshness().chains(place):
            try:
                value: Json = frame
                for step in chain:
                    value = value[step]
            except (KeyError, TypeError, IndexError, AuthorError):
                continue
            found[written(chain)] = digest(dict(value) if chain == ("inputs",) else value)
        return found

    def _record(self, seen: Seen, frame: scopes.Scope) -> Record:
        program, place = frame.program, seen.place
        value: Json = None
        lost = False
        if seen.ran:
            try:
                value = frame[place.id]
            except AuthorError:
                lost = True
        below = {each.id for each in self._places.below(place.id)}
        names = [name for name, setters in self._places.setters.items() if below & set(setters)]
        items = self._places.items_in(seen.path)
        return Record(
            key=place.key(items),
            id=place.id,
            items=items,
            print=self._places.action_digest(place.id),
            reads=seen.reads,
            way=self._freshness().way(place, items) if self._places.on_page(place) else (),
            run=self._run(),
            ran=seen.ran,
            value=value,
            sets={name: program.variables[name] for name in names if name in program.variables},
            facts={kind: program.facts[kind][place.id] for kind in FACTS if place.id in program.facts[kind]},
            checks=self._places.checks(place.id) if seen.ran else {},
            masked=lost,
            at=self._addresses(seen, place.key(items)),
        )

    def _addresses(self, seen: Seen, key: str) -> Sequence[str]:
        record = self._results.records.get(key)
        known = record.at if record is not None else ()
        if (found := self._browser(seen.place)) is None or seen.url_before is None:
            return known
        own, now = found
        own.left = key, now.page.url
        # A whole run is compared with the bench.
        return known if known and self._only_records else [seen.url_before, now.page.url]

    async def _look_after(self, seen: Seen) -> None:
        if (found := self._browser(seen.place)) is None:
            return
        own, now = found
        seen.url_after, seen.status, seen.sign_in_fix = now.page.url, own.status(), own.sign_in_fix()
        if own.page_errors is not None:
            seen.page_errors = own.page_errors.take()
        self._looked = not isinstance(seen.place.node, Leaf) or seen.place.node.moves_page or seen.error is not None
        if self._looked and not self._only_records:
            seen.after, seen.unseen = await look(own, now)
            self._last_look = seen.after


async def look(own: browser.Browser, now: port.Browser) -> tuple[Observation | None, str | None]:
    now.bound(LOOK_SECONDS)
    with contextlib.suppress(TimeoutError):
        try:
            return await own.look(now), None
        except SiteError as error:
            return None, error.message
    return None, "it does not answer"
