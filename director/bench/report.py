"""Report of ``execute_nodes`` for the model: each node with its status, value, addresses, error and page changes, in a bounded text."""

from __future__ import annotations

import dataclasses
import json
import urllib.parse
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from director.bench.node_map import NodeMap, transparent
from director.bench.plans import Start
from director.bench.watcher import Seen
from director.effects import effects
from director.proving import checks
from director.proving import report as proving_report
from director.scouting.shown import Shown, by_tool
from director.subjects import run_report
from nodes.base import Leaf
from nodes.values import Json
from runtime import events
from runtime.browser import origins
from runtime.context import briefs
from runtime.engine import tried_confirms
from runtime.log import attempts as log_attempts
from runtime.log import history
from runtime.observation import page_text
from runtime.observation.observation import Observation
from runtime.secrets import hidden_names

LONGEST = 5_000  # limit of the whole, in characters

AN_ERROR, A_PAGE, A_VALUE, A_COMPLAINT = 900, 3_000, 600, 160
"""Limits in characters: of an error's details, of a page, of a value, and of an error that a page reports."""

AN_ADDRESS = 120  # most characters of an address in a line of its change
A_CHANGE = 350  # limit of a page's changes after one node, in characters; twice that after the last one

CONTROLS = 2_000  # the same limit of what one can act on, which is not cut before


class _Room(NamedTuple):
    value: int = A_VALUE  # limit of a value, in characters
    page: int = A_PAGE  # limit of the page after the last node
    changes: bool = True  # whether the changes after earlier nodes are reported


ROOMS = (
    _Room(),
    _Room(changes=False),
    _Room(200, changes=False),
    _Room(200, A_PAGE // 2, changes=False),
    _Room(80, A_PAGE // 4, changes=False),
)
"""What a report has room for: the first with which it is short enough. Values of the nodes that ran go before what a page says."""

MOST_PAGE_ERRORS = 5
NOT_SHOWN = "page not shown: nothing changed on it since you saw it"


@dataclasses.dataclass(frozen=True, slots=True)
class Trip:
    start: Start
    seen: list[Seen]
    ended: events.RunEnded
    withheld: dict[str, Json] | None  # the prepared action, if it was withheld
    stopped: Seen | None  # the node at which it ended early, if it did
    view: Observation | None  # the page after it; None if no node worked on one, or it could not be observed
    past: history.History | None  # its log; None if nothing of it is needed, or it cannot be read


@dataclasses.dataclass(slots=True)
class Report:
    places: NodeMap
    ids: Sequence[str]
    trips: list[Trip] = dataclasses.field(default_factory=list[Trip])
    notes: list[str] = dataclasses.field(default_factory=list[str])
    known: Observation | None = None  # the same page as last shown to the model; None if it never was
    names: hidden_names.HiddenNames = hidden_names.DEFAULT
    told: Shown = dataclasses.field(default_factory=Shown)
    """What the model was shown of any page, and need not be repeated."""

    @property
    def view(self) -> Observation | None:
        return self.trips[-1].view if self.trips else None

    @property
    def seen(self) -> list[Seen]:
        return [seen for trip in self.trips for seen in trip.seen]


def text_of(report: Report) -> str:
    lines: list[str] = []
    for room in ROOMS:
        lines = _lines(report, room)
        if _size(lines) <= LONGEST:
            break
    return _fitted(lines)


def _size(lines: Collection[str]) -> int:
    return sum(map(len, lines)) + len(lines)


def _lines(report: Report, room: _Room) -> list[str]:
    fixes = (fix for trip in report.trips if trip.past is not None for fix in checks.fixes(trip.past))
    lines = [_head(report), *(f"note: {each}" for each in report.notes), *dict.fromkeys(fixes)]
    ending = next((seen for seen in reversed(report.seen) if not seen.inner), None)
    for trip in report.trips:
        for seen in trip.seen:
            lines += _node(report, trip, seen, room, last=seen is ending)
    lines += _end(report)
    return [*lines, *map(inspectable, page_after(report, room.page))]


def _head(report: Report) -> str:
    done = [seen for seen in report.seen if seen.over and not seen.redone and not seen.inner]
    first, last = report.trips[0], report.trips[-1]
    doubts = [*_disagreed(report), *_doubts(report), *_sign_ins(report)]
    if last.withheld is not None:
        said = "stopped before an action that is held"
    elif last.ended.status == "passed":
        said = "not all well" if doubts else "all done"
    else:
        said = {"failed": "stopped at the first failure", "paused": "stopped"}.get(last.ended.status, last.ended.status)
    parts = [f"{said}: {len(done)} of {_number(report)} nodes ran (run {last.ended.run})"]
    if first.start.how:
        parts.append(f"began on {first.start.how}")
    if redone := dict.fromkeys(place.id for trip in report.trips for place in trip.start.redo):
        parts.append(f"redone first, to get there: {', '.join(redone)}")
    return "\n".join([*doubts, "; ".join(parts)])


def _doubts(report: Report) -> list[str]:
    """Return warnings of pages that the site answered with an error: rules may hold there by accident, and values prove nothing."""
    shown = [seen for seen in report.seen if seen.status is not None and not seen.inner]
    warnings: list[str] = []
    for seen in filter(_receives, shown):
        acted = not seen.redone and any(map(effects.changes, report.places.leaves(seen.place)))
        look = ": look whether it was done" if acted else ""
        warnings.append(f"the site answered {seen.status} after `{seen.place.id}`{look}")
    if shown and not warnings:
        return [f"`{shown[0].place.id}` worked on an error page of the site ({shown[0].status})"]
    return warnings


def _sign_ins(report: Report) -> Collection[str]:
    """Return how to sign in to a site that asks for HTTP credentials, unless an error says it."""
    fixes = dict.fromkeys(seen.sign_in_fix for seen in report.seen if seen.sign_in_fix is not None)
    said = [seen.error.get("fix") for seen in report.seen if seen.error is not None]
    return [each for each in fixes if each not in said]


def _disagreed(report: Report) -> list[str]:
    """Return warnings of actions whose ``verify`` and ``confirm`` disagreed."""
    pasts = [trip.past for trip in report.trips if trip.past is not None]
    found = {
        effects.static(briefs.ours(path)): said for past in pasts for path, said in checks.statements(past).items()
    }
    return [f"`{path}`: {said}: correct the one that is wrong" for path, said in found.items()]


def _receives(seen: Seen) -> bool:
    """Return whether this node, and not an earlier one, received the error page."""
    return seen.place.node.container or (isinstance(seen.place.node, Leaf) and seen.place.node.moves_page)


def _number(report: Report) -> int:
    """Return the number of requested nodes, with those in groups counted one by one."""
    found = 0
    for node_id in report.ids:
        for each in report.places.below(node_id):
            outer = each.around[len(report.places[node_id].around) :]
            found += all(map(transparent, outer))
    return found


def _node(report: Report, trip: Trip, seen: Seen, room: _Room, *, last: bool) -> Iterator[str]:
    """Yield one node: our own text, then the page's, fenced."""
    place = seen.place
    stopped = seen is trip.stopped
    if not (seen.over or stopped):
        return
    line = f"{place.position} {briefs.ours(seen.path)}  {_status(trip, seen)}{_site_error(seen)}"
    line += "  (redone)" if seen.redone else ""
    yield f"{line}  {seen.seconds:.1f} s" if seen.seconds >= 1 else line
    if seen.redone and not stopped:
        return
    value = _value(trip, seen, report.names, room.value)
    theirs = [*_confirms(trip, seen), *value, *(_error(trip, seen) if stopped else ())]
    final = stopped or last
    changes = (room.changes or final) and (seen.after is not report.view or not shows_page(report))
    theirs += _page_of(seen, last=final, changes=changes)
    if theirs:
        yield page_text.fenced(inspectable("\n".join(theirs)))
    if stopped and seen.error is not None and trip.withheld is None and (fix := run_report.fix_of(seen.error)[0]):
        yield f"fix: {fix}"


def inspectable(page: str) -> str:
    """Return a text of the bench's page that names our tool where it says how to see more."""
    return by_tool(page, " tab=bench")


def _site_error(seen: Seen) -> str:
    if seen.status is None:
        return ""
    but = ", but" if seen.ran else ","
    return f"{but} the site answered {seen.status}" if _receives(seen) else f"{but} on an error page ({seen.status})"


def _status(trip: Trip, seen: Seen) -> str:
    if seen is trip.stopped:
        if trip.withheld is not None:
            return "held: ready, not done"
        error = seen.error or (trip.ended.question or {})
        where = f" in {briefs.ours(seen.at)}" if seen.at else ""
        if (trip.ended.question or {}).get("reason") == tried_confirms.DONE_ALREADY:
            return "not done: confirm says that it is done already"
        phase = {"before": ", before its action", "after": ", after its action: it may have happened"}
        said = phase.get(str(error.get("phase")), "")
        status = "failed" if trip.ended.status == "failed" else trip.ended.status
        return f"{status}{where} ({error.get('code') or error.get('reason') or trip.ended.status}{said})"
    if not seen.ran:
        return "no value: its error was tolerated" if seen.tolerated else "skipped: its `when` is false"
    node = seen.place.node
    if not isinstance(node, Leaf):
        return "ok"
    return f"ok{_checked(trip, seen)}"


def _checked(trip: Trip, seen: Seen) -> str:
    """Return what the checks of a leaf said, unless they disagreed: the head says that."""
    node, past = seen.place.node, trip.past
    if past is not None and seen.path in checks.statements(past):
        return ""
    said = ", verify held" if isinstance(node, Leaf) and node.verify else ""
    last = past.last(seen.path) if past is not None else None
    if last is not None and last.status == "recovered":
        return ", confirm says that it was done"
    tried = [each["found"] for each in past.confirms_tried if each["path"] == seen.path] if past is not None else []
    if "unknown" in tried:
        return f"{said}, confirm says done after it, and failed before it: it can never say not done"
    return f"{said}, confirm agrees" if tried else said


def _confirms(trip: Trip, seen: Seen) -> Iterator[str]:
    said = proving_report.by_confirm(trip.past) if trip.past is not None else {}
    for path, each in said.items():
        if path == seen.path or path.startswith(f"{seen.path}["):
            yield each


def _unmatched(trip: Trip, seen: Seen) -> str:
    last = trip.past.last(seen.path) if trip.past is not None else None
    part = last.result.unmatched if last is not None and last.result is not None else None
    return f", as nothing matches {part}" if part is not None else ""


def _value(trip: Trip, seen: Seen, names: hidden_names.HiddenNames, longest: int) -> Iterator[str]:
    name, value = seen.place.id, names.json(seen.value, seen.place.id)
    if seen.ran and seen.hidden:
        yield f"{name} = [holds a secret: not shown]"
    elif seen.ran and not (value is None or value == seen.url_after or transparent(seen.place.node)):
        whole = json.dumps(value, ensure_ascii=False)
        shown = proving_report.in_short(value, longest)
        # Values of a loop's items are not kept under the id of the node.
        where = "" if shown == whole or seen.place.loops else f"; whole: get_workflow_variables key={name}"
        yield f"{name} = {shown}{' (empty)' if value == [] else where}{_unmatched(trip, seen)}"


def _error(trip: Trip, seen: Seen) -> Iterator[str]:
    if trip.withheld is None:
        yield from proving_report.details(seen.error or trip.ended.question or {}, AN_ERROR)
        return
    args: Mapping[str, Json] = trip.withheld.get("args") or {}
    action: Json = {name: each for name, each in args.items() if name not in ("verify", "confirm")}
    matched = ", ".join(map(str, trip.withheld.get("matched") or ()))
    shown = proving_report.cut(json.dumps(action, ensure_ascii=False), proving_report.A_DETAIL)
    yield f"would do: {shown}{f' on {matched}' if matched else ''}"


def _end(report: Report) -> Iterator[str]:
    last = report.trips[-1]
    ended, question = last.ended, last.ended.question or {}
    if last.withheld is not None:
        yield "later nodes were not executed; the action is done once a person allows it"
    elif ended.status == "failed" and last.stopped is None:
        error = ended.error or {}
        yield f"{'after the last node' if last.seen else 'before the first node'} ({error.get('code')})"
        yield page_text.fenced(proving_report.cut(str(error.get("message")), AN_ERROR))
        if fix := error.get("fix"):
            yield f"fix: {fix}"
    elif question.get("reason") == tried_confirms.DONE_ALREADY:
        yield f"fix: {question.get('fix')}"
    elif ended.status == "paused" and question.get("reason") == "question":
        yield "it asks a person: pin what they would answer (`set_variable` vars.NAME), and execute the later nodes"
    elif ended.status == "paused":
        yield "it is unknown whether the action was done: look at the site before you repeat it"
    elif ended.status == "out-of-budget":
        yield "the budget of the session does not allow this request to a model"
    done = {seen.place.id for seen in report.seen}
    left = [each for each in report.ids if each not in done]
    if left:
        yield f"not executed: {', '.join(left[:20])}{' …' if len(left) > 20 else ''}"


def _fitted(lines: list[str]) -> str:
    """Return the lines in at most ``LONGEST`` characters: the details of earlier nodes are omitted first, then whole lines, top down.

    The first line stays. Fenced text counts as one line, and is kept or omitted as a whole.
    """
    fenced = [number for number, each in enumerate(lines) if each.startswith(page_text.BEGIN)]
    kept = dict(enumerate(lines))
    for number in dict.fromkeys([*fenced[:-1], *range(1, len(lines))]):
        if _size(kept.values()) <= LONGEST:
            break
        del kept[number]
    return "\n".join(kept.values())


def interrupted(runs: Mapping[str, history.History | None]) -> str:
    """Return the text for a call that the session's end interrupted: the state of each step, from the logs of its runs."""
    lines = ["interrupted: the session ended while these nodes ran; nothing was done again"]
    if not runs:
        return "interrupted before any node ran: nothing was done"
    for run, past in runs.items():
        if past is None:
            lines.append(f"run {run}: its log cannot be read")
            continue
        for path, attempts in past.attempts.items():
            lines.append(f"{briefs.ours(path)}: {_outcome(log_attempts.deciding(attempts))}")
        names: list[Json] = (past.header.trial or {}).get("nodes", []) if past.header is not None else []
        begun = {each for path in past.order for each in path.replace("[", "/[").split("/")}
        if left := [str(each) for each in names if each not in begun]:
            lines.append(f"not begun: {', '.join(left[:20])}")
    lines.append('the page is gone: `from` "before" continues from the last state that was kept')
    return "\n".join(lines)[:LONGEST]


def _outcome(attempt: log_attempts.Attempt) -> str:
    if attempt.result is None or attempt.result.status == "interrupted":
        effect = attempt.call.effect == "effect"
        return "open: it may have happened; look at the site before it is done again" if effect else "open"
    error = attempt.result.error or {}
    return "done" if attempt.result.status == "ok" else f"{attempt.result.status} ({error.get('code')})"


def _page_of(seen: Seen, *, last: bool, changes: bool) -> Iterator[str]:
    """Yield the address after a node, its page errors and ``changes``. A new document yields no changes: the report ends with the page."""
    if seen.drifted is not None and not alike(seen.drifted[1], seen.url_before or ""):
        yield f"url, by itself after `{seen.drifted[0]}`: {led(seen.drifted[1], seen.url_before or '')}"
    old, new = seen.url_before, seen.url_after
    if old is not None and new is not None and old != new and not proving_report.by_address(seen.error or {}):
        yield f"url: {led(old, new)}"
    for each in seen.page_errors[:MOST_PAGE_ERRORS]:
        yield f"page complains: {each[:A_COMPLAINT]}"
    if seen.unseen is not None:
        yield f"the page cannot be looked at: {seen.unseen[:200]}"
    if changes and (changed := _changed(seen, last=last)):
        yield changed


def led(old: str, new: str) -> str:
    """Return both addresses, the new one without the origin that they share, and neither in all its length."""
    here = page_text.from_here(new, origins.origin(old) or "")
    return " -> ".join(each if len(each) <= AN_ADDRESS else f"{each[: AN_ADDRESS - 1]}…" for each in (old, here))


def alike(old: str, new: str) -> bool:
    """Return whether two addresses differ in their encoding alone."""
    return urllib.parse.unquote_plus(old) == urllib.parse.unquote_plus(new)


def _changed(seen: Seen, *, last: bool) -> str:
    if seen.before is None or seen.after is None or not same(seen.before, seen.after):
        return ""
    changed = seen.after.since(seen.before, 2 * A_CHANGE if last else A_CHANGE, CONTROLS)
    if seen.after.title == seen.before.title:
        # The address was yielded already.
        changed = "\n".join(each for each in changed.split("\n") if not each.startswith("now: page "))
    return changed if changed != page_text.UNCHANGED else ""


def same(one: Observation, other: Observation) -> bool:
    """Return whether two observations are of the same document, or of the same address reloaded."""
    return one.url.partition("#")[0] == other.url.partition("#")[0] or other.continues(one)


def shows_page(report: Report) -> bool:
    """Return whether the report ends with the page, because it was never shown or is another one now."""
    view, known = report.view, report.known
    if view is None or known is None:
        return view is not None
    return page_text.page_now(view, known, lambda most: whole(report, most), A_PAGE)[1]


def page_after(report: Report, budget: int) -> Iterator[str]:
    """Yield the page after the last node: whole if it is another one, else the changes not reported with a node."""
    view, known = report.view, report.known
    if view is None:
        return
    if known is None or shows_page(report):
        yield "page after it:"
        yield page_text.fenced(whole(report, budget))
        return
    if any(_changed(seen, last=False) for seen in report.trips[-1].seen):
        return
    changed = view.since(known, 2 * A_CHANGE, CONTROLS)
    if changed == page_text.UNCHANGED:
        yield NOT_SHOWN
    else:
        yield "page after it, what changed since you saw it:"
        yield page_text.fenced(changed)


def whole(report: Report, budget: int) -> str:
    """Return the page, or its beginning if only the address was wrong. What was shown already is left out."""
    assert report.view is not None, "there is a page"
    return report.told.page(report.view, proving_report.A_GLANCE if _glances(report) else budget)


def _glances(report: Report) -> bool:
    stopped = report.trips[-1].stopped
    return stopped is not None and proving_report.by_address(stopped.error or {})


def shown_budget(report: Report, text: str) -> int:
    """Return the limit in which the whole page was shown in the report's text; 0 if it was not."""
    if report.view is None or _glances(report) or not shows_page(report):
        return 0
    budgets = dict.fromkeys(each.page for each in ROOMS)
    return next((each for each in budgets if all(line in text for line in whole(report, each).split("\n"))), 0)
