"""Report of ``execute_nodes`` for the model: each node with its status, value, addresses, error and page changes, in a bounded text."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence

from director.bench.node_map import NodeMap, transparent
from director.bench.plans import Start
from director.bench.watcher import Seen
from director.effects import effects
from director.proving import report as proving_report
from nodes.base import Leaf
from nodes.iterate import Iterate
from nodes.values import Json
from runtime import events
from runtime.context import briefs
from runtime.log import attempts as log_attempts
from runtime.log import history
from runtime.observation import page_text
from runtime.observation.observation import Observation

LONGEST = 5_000
"""Limit of the whole, in characters."""

AN_ERROR, A_PAGE, A_COMPLAINT = 900, 3_000, 160
"""Limits in characters: of an error's details, of a page, and of an error that a page reports."""

A_VALUE, AN_ITEM = 600, 250
"""Limits in characters: of a value shown whole, and of an item of a longer one."""

A_CHANGE = 350
"""Limit of a page's changes after one node, in characters; twice that after the last one."""

MOST_PAGE_ERRORS = 5
"""Limit of the page errors reported for one node."""

NOT_SHOWN = "page not shown: nothing changed on it since you saw it"
"""Text if nothing else is to be shown of the page."""

_LOOK = re.compile(r"(: )look\((?:ref=(\w+))?\)$", re.MULTILINE)
"""Mention of the tool that shows the rest of a page."""


@dataclasses.dataclass(frozen=True, slots=True)
class Trip:
    start: Start
    seen: list[Seen]
    ended: events.RunEnded
    held: dict[str, Json] | None
    """The prepared action, if it was withheld."""
    stopped: Seen | None
    """The node at which it ended early, if it did."""
    view: Observation | None
    """The page after it; None if no node worked on one, or it could not be observed."""
    confirmed: frozenset[str]
    """The paths of the actions that the site has confirmed or denied."""


@dataclasses.dataclass(slots=True)
class Report:
    places: NodeMap
    ids: Sequence[str]
    trips: list[Trip] = dataclasses.field(default_factory=list[Trip])
    notes: list[str] = dataclasses.field(default_factory=list[str])
    known: Observation | None = None
    """The same page as last shown to the model; None if it never was."""
    around: Collection[str] = ()
    """The site frames shown to the model, which need not be repeated."""

    @property
    def view(self) -> Observation | None:
        return self.trips[-1].view if self.trips else None

    @property
    def seen(self) -> list[Seen]:
        return [seen for trip in self.trips for seen in trip.seen]


def told(report: Report) -> str:
    lines = [_head(report)]
    lines += [f"note: {each}" for each in report.notes]
    ending = next((seen for seen in reversed(report.seen) if not seen.inner), None)
    for trip in report.trips:
        for seen in trip.seen:
            lines += _node(trip, seen, last=seen is ending)
    lines += _end(report)
    lines += (_LOOK.sub(_inspect, each) for each in behind(report))
    return _fitted(lines)


def _head(report: Report) -> str:
    """Return what was executed, how far, and on what page it began."""
    done = [seen for seen in report.seen if seen.over and not seen.redone and not seen.inner]
    first, last = report.trips[0], report.trips[-1]
    doubts = _doubts(report)
    if last.held is not None:
        said = "stopped before an action that is held"
    elif last.ended.status == "passed":
        said = "not all well" if doubts else "all done"
    else:
        said = {"failed": "stopped at the first failure", "paused": "stopped"}.get(last.ended.status, last.ended.status)
    parts = [f"{said}: {len(done)} of {_number(report)} nodes ran (run {last.ended.run})"]
    if first.start.how:
        parts.append(f"began on {first.start.how}")
    redone = dict.fromkeys(place.id for trip in report.trips for place in trip.start.redo)
    if redone:
        parts.append(f"redone first, to come there: {', '.join(redone)}")
    return "\n".join([*doubts, "; ".join(parts)])


def _doubts(report: Report) -> list[str]:
    """Return the first warning: pages on which the site answered with an error. Rules may hold there by accident, and values there prove nothing."""
    shown = [seen for seen in report.seen if seen.status is not None and not seen.inner]
    met = [seen for seen in shown if _meets(seen)]
    if shown and not met:
        return [f"`{shown[0].place.id}` worked on an error page of the site ({shown[0].status})"]
    return [f"the site answered {seen.status} behind `{seen.place.id}`{_ask(report, seen)}" for seen in met]


def _meets(seen: Seen) -> bool:
    """Return whether this node received the error page, and not one before it."""
    return seen.place.node.container or (isinstance(seen.place.node, Leaf) and seen.place.node.moves_page)


def _ask(report: Report, seen: Seen) -> str:
    does = any(map(effects.changes, report.places.leaves(seen.place)))
    return ": look whether it was done" if does and not seen.redone else ""


def _number(report: Report) -> int:
    """Return the number of requested nodes, with those in groups counted one by one."""
    found = 0
    for node_id in report.ids:
        for each in report.places.below(node_id):
            outer = each.around[len(report.places[node_id].around) :]
            found += all(map(transparent, outer))
    return found


def _node(trip: Trip, seen: Seen, *, last: bool) -> Iterator[str]:
    """Yield one node: our own text, then the page's, fenced."""
    place = seen.place
    stopped = seen is trip.stopped
    if not (seen.over or stopped):
        return
    words = [f"{place.position} {briefs.ours(seen.path)}", f"{_status(trip, seen)}{_answered(seen)}"]
    if seen.redone:
        words.append("(redone)")
    if seen.seconds >= 1:
        words.append(f"{seen.seconds:.1f} s")
    yield "  ".join(words)
    if seen.redone and not stopped:
        return
    theirs = [*_values(seen), *_error(trip, seen), *of_node(seen, last=stopped or last)]
    if theirs:
        yield page_text.fenced(_LOOK.sub(_inspect, "\n".join(theirs)))
    if seen is trip.stopped and seen.error is not None and trip.held is None and (fix := seen.error.get("fix")):
        yield f"fix: {fix}"


def _inspect(found: re.Match[str]) -> str:
    return f"{found[1]}inspect_tab tab=bench{f' ref={found[2]}' if found[2] else ''}"


def _answered(seen: Seen) -> str:
    if seen.status is None:
        return ""
    but = ", but" if seen.ran else ","
    return f"{but} the site answered {seen.status}" if _meets(seen) else f"{but} on an error page ({seen.status})"


def _status(trip: Trip, seen: Seen) -> str:
    if seen is trip.stopped:
        if trip.held is not None:
            return "held: ready, not done"
        error = seen.error or (trip.ended.question or {})
        where = f" in {briefs.ours(seen.at)}" if seen.at else ""
        phase = {"before": ", before its action", "after": ", after its action: it may have happened"}
        said = phase.get(str(error.get("phase")), "")
        status = "failed" if trip.ended.status == "failed" else trip.ended.status
        return f"{status}{where} ({error.get('code') or error.get('reason') or trip.ended.status}{said})"
    if not seen.ran:
        return "no value: its error was passed over" if seen.tolerated else "skipped: its `when` is false"
    node = seen.place.node
    if not isinstance(node, Leaf):
        return "ok"
    held = [", verify held"] if node.verify else []
    if node.confirm is not None:
        held.append(", confirm says that it was done" if seen.path in trip.confirmed else ", confirm was not needed")
    return f"ok{''.join(held)}"


def _values(seen: Seen) -> Iterator[str]:
    if seen.ran and seen.hidden:
        yield f"{seen.place.id} = [holds a secret: not shown]"
    elif seen.ran and not (seen.value is None or seen.value == seen.url_after or transparent(seen.place.node)):
        yield _value(seen)


def _value(seen: Seen) -> str:
    """Return a node's value: whole, or its beginning (of a loop also its end) and the path of the whole."""
    name, value = seen.place.id, seen.value
    text = json.dumps(value, ensure_ascii=False)
    if len(text) <= A_VALUE:
        return f"{name} = {text}{' (empty)' if value == [] else ''}"
    if isinstance(value, list):
        items: list[Json] = value
        begins = _short(items[0], AN_ITEM)
        ends = [_short(items[-1], AN_ITEM)] if isinstance(seen.place.node, Iterate) and len(items) > 1 else []
        more = ["…"] if len(items) > 1 + len(ends) else []
        text = f"[{', '.join([begins, *more, *ends])}] ({len(items)})"
    elif isinstance(value, dict):
        fields: dict[str, Json] = value
        wide = max(20, A_VALUE // len(fields) - 20)
        text = _short(
            ", ".join(f"{json.dumps(key, ensure_ascii=False)}: {_short(each, wide)}" for key, each in fields.items()),
            A_VALUE,
        )
        text = f"{{{text}}} ({len(fields)} keys)"
    else:
        text = f"{_short(value, A_VALUE)} ({len(str(value)):,} characters)"
    # Values of a loop's items are not kept under the id of the node.
    where = "" if seen.place.loops else f"; whole: get_workflow_variables key={name}"
    return f"{name} = {text}{where}"


def _error(trip: Trip, seen: Seen) -> Iterator[str]:
    """Yield the details of the error: the nearest candidates, the address, the expected and actual values."""
    if seen is not trip.stopped:
        return
    if trip.held is not None:
        args: Mapping[str, Json] = trip.held.get("args") or {}
        action: Json = {name: each for name, each in args.items() if name not in ("verify", "confirm")}
        matched = ", ".join(map(str, trip.held.get("matched") or ()))
        yield f"would do: {_short(action, 400)}{f' on {matched}' if matched else ''}"
        return
    error: Mapping[str, Json] = seen.error or trip.ended.question or {}
    yield f"error: {_short(error.get('message'), 400)}"
    left = AN_ERROR
    for name, text in proving_report.evidence_of(error):
        line = f"{name}: {_short(text, 400)}"
        if name not in ("screenshot", "observation", "signs") and len(line) <= left:
            left -= len(line)
            yield line


def _end(report: Report) -> Iterator[str]:
    last = report.trips[-1]
    ended = last.ended
    if last.held is not None:
        yield "what comes behind it was not executed; the action is done once a person allows it"
    elif ended.status == "failed" and last.stopped is None:
        error = ended.error or {}
        when = "behind the last node" if last.seen else "before the first node"
        yield f"{when} ({error.get('code')})"
        yield page_text.fenced(_short(error.get("message"), AN_ERROR))
        if fix := error.get("fix"):
            yield f"fix: {fix}"
    elif ended.status == "paused" and (ended.question or {}).get("reason") != "question":
        yield "nobody knows whether the action was done: look at the site before it is done again"
    elif ended.status == "paused":
        yield "it asks a person: pin what they would answer (`set_variable` vars.NAME), and execute what comes behind it"
    elif ended.status == "out-of-budget":
        yield "the budget of the session does not allow what a model was to be asked"
    done = {seen.place.id for seen in report.seen}
    left = [each for each in report.ids if each not in done]
    if left:
        yield f"not executed: {', '.join(left[:20])}{' …' if len(left) > 20 else ''}"


def _short(value: Json, longest: int) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    text = " ".join(text.split())
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def _fitted(lines: list[str]) -> str:
    """Return the lines in at most ``LONGEST`` characters: nodes in the middle are reduced to their status, the first ones first."""
    fenced = [number for number, each in enumerate(lines) if each.startswith(page_text.BEGIN)]
    for number in fenced[:-1]:
        if sum(map(len, lines)) + len(lines) <= LONGEST:
            break
        lines[number] = ""
    text = "\n".join(each for each in lines if each)
    if len(text) <= LONGEST:
        return text
    # Only the names of many nodes are that long. Fenced text is one line here, and is kept or omitted as a whole.
    kept, left = list[str](), LONGEST - len(lines[0]) - 10
    for each in reversed([each for each in lines[1:] if each]):
        left -= len(each) + 1
        if left < 0:
            break
        kept.append(each)
    return "\n".join([lines[0], "…", *reversed(kept)])


def found_out(runs: Mapping[str, history.History | None]) -> str:
    """Return the text for a call that the session's end interrupted: the state of each step by the logs of its runs."""
    lines = ["interrupted: the session ended while these nodes ran; nothing was done again"]
    if not runs:
        return "interrupted before any node ran: nothing was done"
    for run, past in runs.items():
        if past is None:
            lines.append(f"run {run}: nothing is known of it")
            continue
        for path, attempts in past.attempts.items():
            last = log_attempts.deciding(attempts)
            lines.append(f"{briefs.ours(path)}: {_became(last)}")
        names: list[Json] = (past.header.trial or {}).get("nodes", []) if past.header is not None else []
        begun = {each for path in past.order for each in path.replace("[", "/[").split("/")}
        if left := [str(each) for each in names if each not in begun]:
            lines.append(f"not begun: {', '.join(left[:20])}")
    lines.append('the page is gone: `from` "before" continues from the last state that was kept')
    return "\n".join(lines)[:LONGEST]


def _became(attempt: log_attempts.Attempt) -> str:
    if attempt.result is None or attempt.result.status == "interrupted":
        effect = attempt.call.effect == "effect"
        return "open: it may have happened; look at the site before it is done again" if effect else "open"
    error = attempt.result.error or {}
    return "done" if attempt.result.status == "ok" else f"{attempt.result.status} ({error.get('code')})"


def of_node(seen: Seen, *, last: bool) -> Iterator[str]:
    """Yield the address after a node, its page errors and page changes. For a new document only the address: the last one is shown at the end."""
    moved = seen.url_before is not None and seen.url_after is not None and seen.url_after != seen.url_before
    if moved and not proving_report.by_address(seen.error or {}):
        yield f"url: {seen.url_before} -> {seen.url_after}"
    for each in seen.page_errors[:MOST_PAGE_ERRORS]:
        yield f"page complains: {each[:A_COMPLAINT]}"
    if seen.unseen is not None:
        yield f"the page cannot be looked at: {seen.unseen[:200]}"
    if changed := _changed(seen, last=last):
        yield changed


def _changed(seen: Seen, *, last: bool) -> str:
    if seen.before is None or seen.after is None or not same(seen.before, seen.after):
        return ""
    changed = seen.after.since(seen.before, 2 * A_CHANGE if last else A_CHANGE)
    if seen.after.title == seen.before.title:
        # Its address is above already.
        changed = "\n".join(each for each in changed.split("\n") if not each.startswith("now: page "))
    return changed if changed != page_text.UNCHANGED else ""


def same(one: Observation, other: Observation) -> bool:
    """Return whether two observations are of one document, or of one reloaded at its address."""
    return one.url.partition("#")[0] == other.url.partition("#")[0] or other.continues(one)


def behind(report: Report) -> Iterator[str]:
    """Yield the page after the last node: whole if its document was never shown, else the changes that no node's report has."""
    view, known = report.view, report.known
    if view is None:
        return
    if known is None:
        yield "page behind it:"
        yield page_text.fenced(whole(report, A_PAGE))
        return
    if any(_changed(seen, last=False) for seen in report.trips[-1].seen):
        return
    changed = view.since(known, 2 * A_CHANGE)
    if changed == page_text.UNCHANGED:
        yield NOT_SHOWN
    else:
        yield "page behind it, what changed since you saw it:"
        yield page_text.fenced(changed)


def whole(report: Report, budget: int) -> str:
    """Return the page, with the site's frame only if it was not shown yet; if only the address was wrong, its beginning."""
    assert report.view is not None, "there is a page"
    stopped = report.trips[-1].stopped
    glance = stopped is not None and proving_report.by_address(stopped.error or {})
    return report.view.render(proving_report.A_GLANCE if glance else budget, known=report.around)


def is_whole(report: Report, told: str) -> bool:
    if report.view is None or report.known is not None:
        return False
    page = report.view.render(10 * A_PAGE, known=report.around)
    return page == whole(report, A_PAGE) and all(line in told for line in page.split("\n"))
