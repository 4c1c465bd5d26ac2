"""What a model is told of pages: of each node what it changed, and of the page behind the last one all, where it was not shown that document yet."""

from __future__ import annotations

from collections.abc import Iterator

from director.bench.requests import Report
from director.bench.watcher import Seen
from director.proving import report as proving_report
from runtime.observation import page_text
from runtime.observation.observation import Observation

A_PAGE, A_CHANGE = 3_000, 350
"""Characters of a page, and of what changed on it behind one node; behind the last one twice that."""

MOST_COMPLAINTS = 5
"""Complaints of a page that are told of one node."""

A_COMPLAINT = 160

NOT_SHOWN = "page not shown: nothing changed on it since you saw it"
"""What is told where there is nothing else to tell of the page."""


def of_node(seen: Seen, *, last: bool) -> Iterator[str]:
    """Where a node has led, what the page complains of, and what changed on it. Of another document only its address: the last one is shown behind all nodes."""
    moved = seen.url_before is not None and seen.url_after is not None and seen.url_after != seen.url_before
    if moved and not proving_report.by_address(seen.error or {}):
        yield f"url: {seen.url_before} -> {seen.url_after}"
    for each in seen.complaints[:MOST_COMPLAINTS]:
        yield f"page complains: {each[:A_COMPLAINT]}"
    if seen.unseen is not None:
        yield f"the page cannot be looked at: {seen.unseen[:200]}"
    if changed := _changed(seen, last=last):
        yield changed


def _changed(seen: Seen, *, last: bool) -> str:
    """What changed of one document."""
    if seen.before is None or seen.after is None or not same(seen.before, seen.after):
        return ""
    changed = seen.after.since(seen.before, 2 * A_CHANGE if last else A_CHANGE)
    if seen.after.title == seen.before.title:
        # Its address stands above already.
        changed = "\n".join(each for each in changed.split("\n") if not each.startswith("now: page "))
    return changed if changed != page_text.UNCHANGED else ""


def same(one: Observation, other: Observation) -> bool:
    """Whether two looks show one document, or one that was loaded again at its address."""
    return one.url.partition("#")[0] == other.url.partition("#")[0] or other.continues(one)


def behind(report: Report) -> Iterator[str]:
    """The page as the last node left it: whole where its document was never shown, else what changed and was not told of a node."""
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
    """All of the page, the frame of the site only where it was not told yet; of one where only the address was not meant how it begins."""
    assert report.view is not None, "there is a page"
    stopped = report.trips[-1].stopped
    glance = stopped is not None and proving_report.by_address(stopped.error or {})
    return report.view.render(proving_report.A_GLANCE if glance else budget, known=report.around)


def is_whole(report: Report, told: str) -> bool:
    """Whether all that there is to see of the page stands in what was told."""
    if report.view is None or report.known is not None:
        return False
    page = report.view.render(10 * A_PAGE, known=report.around)
    return page == whole(report, A_PAGE) and all(line in told for line in page.split("\n"))
