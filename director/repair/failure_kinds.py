"""Classifies a failure by the log, the page at that time, and one fresh inspection. Pure: it asks no model and opens nothing.

Only a drifted target, a slow page and an overlay are fixed in the file. After any other failure, a target changed until it finds
something would hide the cause.
"""

from __future__ import annotations

import dataclasses
import urllib.parse
from collections.abc import Mapping, Sequence
from typing import Literal

from director.repair.candidates import is_in
from nodes.targets import Target
from nodes.values import Json

Kind = Literal[
    "drift", "slow page", "overlay", "signed out", "data changed", "site error", "finding", "workflow", "unknown"
]

PATCHED = frozenset({"drift", "slow page", "overlay"})
FOUND_NOTHING = frozenset(
    {"target-not-found", "target-ambiguous", "field-ambiguous", "field-not-found", "not-a-table", "column-not-found"}
)

NOT_LOADED = frozenset({"navigation-failed", "page-crashed", "answer-lost", "download-failed"})
RULES = frozenset({"verify-failed", "rule-failed"})
NO_FIX: Mapping[Kind, str] = {
    "drift": "none was found: look at what the page showed, and correct the target",
    "slow page": "none was found: give the step a larger `timeout`, or continue with `runops resume` once the site is faster",
    "overlay": "none was found: put a step before it that closes the overlay",
    "signed out": "look at the steps that sign in, at the account and its password, or sign in again and start again",
    "data changed": "look at the data: the step's item is not there any more; give other inputs, or let the file allow for it (`when`, `min: 0`)",
    "site error": "wait until the site works, then continue with `runops resume`",
    "finding": "fix nothing in the file: the workflow found what it was made to find",
    "workflow": "fix the file where the error says",
    "unknown": "none was found: look at what the page showed",
}


@dataclasses.dataclass(frozen=True, slots=True)
class PageGlance:
    url: str = ""
    words: str = ""  # its text, as far as that was stored
    status: int | None = None
    alert: str = ""
    password: bool = False
    front: Mapping[str, Json] | None = None  # overlay of the page (``runtime.browser.diagnosis.diagnosis``)
    busy: bool = False
    dialog: str | None = None

    @classmethod
    def of(cls, kept: Mapping[str, Json], words: str) -> PageGlance:
        """Parse the result of ``runtime.engine.evidence``."""
        signs: Mapping[str, Json] = kept.get("signs") or {}
        return cls(
            url=str(kept.get("url") or ""),
            words=words,
            status=signs.get("status"),
            alert=str(signs.get("alert") or ""),
            password=bool(signs.get("password")),
            front=signs.get("front"),
            busy=bool(signs.get("busy")),
            dialog=kept.get("dialog"),
        )


@dataclasses.dataclass(frozen=True, slots=True)
class Failure:
    path: str
    code: str
    who: str
    message: str
    evidence: Mapping[str, Json]
    target: Target | None = None  # with references resolved
    action: str = ""
    seconds: float = 10.0
    asked_for: str | None = None  # the last address that the run had opened
    signed_in: bool = False  # True if the run had typed a secret, or loaded a signed-in state, before it


@dataclasses.dataclass(frozen=True, slots=True)
class PageLook:
    """The page of a copy of the run that was repeated up to the step."""

    glance: PageGlance
    path: str | None  # the step at which it ended this time
    code: str | None  # the error code; None if the step was done or ready
    parts: Sequence[tuple[str, int]] = ()  # the parts of the target, outermost first, each with its number of matches
    came_after: float | None = None  # seconds until the target appeared, if longer than the step allows
    hidden: bool = False  # True if the target is in the document, but hidden
    already: bool = False  # True if the rules of `verify` held before the step
    proves: bool = False  # True if some rule of `verify` does not hold yet, so that it can prove the step
    near: bool = False  # True if anything on the page has a name like the missing one
    rows: int | None = None  # for a step that reads rows: 0 if their container exists and is empty; None if unknown


@dataclasses.dataclass(frozen=True, slots=True)
class Found:
    kind: Kind
    why: str

    @property
    def advice(self) -> str:
        """Advice if no fix is proposed."""
        return NO_FIX[self.kind]


def classify(failure: Failure, then: PageGlance | None, now: PageLook | None) -> Found:
    """Return the kind of the failure, by the page ``then`` and the fresh inspection ``now``, if there are such."""
    if failure.who == "finding":
        return Found("finding", f"an `assert` of the workflow does not hold: {failure.message}")
    # If the step went well this time, the page now explains nothing.
    pages = [("when the run failed", then)] if then is not None else []
    pages += [("now", now.glance)] if now is not None and now.code is not None else []
    kind, why = (
        _site(failure, pages, now)
        or _signed_out(failure, pages)
        or (("workflow", failure.message) if failure.who in ("author", "usage") else None)
        or _covered(failure, then, now)
        or _slow(failure, then, now)
        or _gone(failure, then, now)
        or _drifted(failure, now)
    )
    return Found(kind, why)


_Pages = Sequence[tuple[str, PageGlance]]


def _site(failure: Failure, pages: _Pages, now: PageLook | None) -> tuple[Kind, str] | None:
    if failure.code in NOT_LOADED:
        return "site error", failure.message
    answered = failure.evidence.get("answered") or failure.evidence.get("status")
    answers = [("when the run failed", answered)] if answered else []
    for when, status in [*answers, *((when, page.status) for when, page in pages)]:
        if isinstance(status, int) and (status >= 500 or status == 429):
            return "site error", f"the page was answered with {status} {when}"
        if status in (404, 410):
            return "data changed", f"the site says that there is no such page ({status}) {when}"
    if now is not None and now.code in NOT_LOADED:
        return "site error", "the site does not answer now"
    return None


def _signed_out(failure: Failure, pages: _Pages) -> tuple[Kind, str] | None:
    if failure.who not in ("site", "model", "author"):
        return None
    asked_for = _place(failure.asked_for) if failure.asked_for is not None else None
    for when, page in pages:
        if page.status in (401, 403):
            return "signed out", f"the page was answered with {page.status} {when}"
        elsewhere = asked_for is not None and asked_for != _place(page.url)
        # A step that failed before its action, on a page that the run had opened, belongs to a sign-in itself.
        signs_in = asked_for is not None and not elsewhere and failure.code not in RULES
        if page.password and (failure.signed_in or elsewhere) and not signs_in:
            led = f"{failure.asked_for} led to" if elsewhere else "the run had signed in, and is at"
            return "signed out", f"the page asks for a password {when}: {led} {page.url}"
    return None


def _place(url: str) -> str:
    parts = urllib.parse.urlsplit(url)
    return f"{parts.netloc}{parts.path.rstrip('/')}"


def _covered(failure: Failure, then: PageGlance | None, now: PageLook | None) -> tuple[Kind, str] | None:
    if failure.code == "dialog-open":
        shown = failure.evidence.get("message") or (then.dialog if then else "")
        return "overlay", f"the page shows a dialog: {shown}"
    if failure.code == "target-not-actionable" and failure.evidence.get("problem") == "covered":
        return "overlay", f"it is covered by {failure.evidence.get('element') or 'another element'}"
    page = now.glance if now is not None and now.code is not None else then
    front = page.front if page is not None else None
    if front is None or failure.code not in FOUND_NOTHING | {"target-not-actionable", "timeout"}:
        return None
    wanted_in_dialog = failure.target is not None and "dialog" in str(failure.target)
    if (front.get("modal") or (now is not None and now.hidden)) and not wanted_in_dialog:
        name = str(front.get("name") or front.get("text") or "")[:80]
        return "overlay", f'a {front.get("role")} covers the page: "{name}"'
    return None


def _slow(failure: Failure, then: PageGlance | None, now: PageLook | None) -> tuple[Kind, str] | None:
    if now is not None and now.came_after is not None:
        limit = f"and it may take {failure.seconds:g} s"
        return "slow page", f"what the step looks for was there after {now.came_after:.1f} s, {limit}"
    otherwise = now is not None and now.path == failure.path and now.code not in (None, "timeout")
    if failure.code == "timeout" and not otherwise:
        return "slow page", failure.message
    if now is not None and now.code is None and failure.code in FOUND_NOTHING | RULES | {"target-not-actionable"}:
        more = "the page was still loading then" if then is not None and then.busy else "the page was not ready then"
        return "slow page", f"the step finds what it looks for now, in its own time: {more}"
    return None


def _gone(failure: Failure, then: PageGlance | None, now: PageLook | None) -> tuple[Kind, str] | None:
    if failure.code not in FOUND_NOTHING or failure.code == "target-ambiguous":
        return None
    target, words = failure.target, now.glance.words if now is not None else then.words if then is not None else ""
    text = data_of(target) if target is not None else ""
    missing = now is None or not now.parts or now.parts[0][1] == 0
    if text and words and not is_in(text, words) and (missing or (target is not None and target.has_text)):
        return "data changed", f"{text!r} is nowhere on the page any more"
    if now is not None and now.already and not now.near:
        return "data changed", "what `verify` waits for holds already, before the step: it may be done"
    if now is not None and now.rows == 0 and now.path == failure.path:
        return "data changed", "the place of the list is there, and it holds nothing now"
    return None


def data_of(target: Target) -> str:
    """Return the text from the data by which the target selects its row or card."""
    return target.has_text or (data_of(target.within) if target.within is not None else "")


def _drifted(failure: Failure, now: PageLook | None) -> tuple[Kind, str]:
    if failure.code in FOUND_NOTHING:
        lost = next((name for name, count in now.parts if count == 0), None) if now is not None else None
        return "drift", f"nothing on the page matches {lost}" if lost else failure.message
    if failure.code in RULES:
        if alert := failure.evidence.get("alert"):
            return "unknown", f'the action was done, and the page says "{alert}"'
        return "drift", f"the action was done, and the page does not say what `verify` waits for: {failure.message}"
    return "unknown", f"the step failed with {failure.code}: {failure.message}"
