"""Classifies a failure by the log, the page at that time, and one fresh inspection. Pure: it asks no model and opens nothing.

Only a drifted target, a slow page and an overlay have a fix in the file. Everything else is for others to fix, and a target changed until it
finds something would hide it.
"""

from __future__ import annotations

import dataclasses
import re
import urllib.parse
from collections.abc import Mapping, Sequence
from typing import Literal

from nodes.targets import Target
from nodes.values import Json

Kind = Literal[
    "drift",
    "slow page",
    "overlay",
    "signed out",
    "data changed",
    "site error",
    "finding",
    "workflow",
    "unknown",
]

PATCHED = frozenset({"drift", "slow page", "overlay"})
"""Kinds that a change of the file may fix."""

FOUND_NOTHING = frozenset(
    {"target-not-found", "target-ambiguous", "field-ambiguous", "field-not-found", "not-a-table", "column-not-found"}
)
"""Codes of a step that did not find its target."""

NOT_LOADED = frozenset({"navigation-failed", "page-crashed", "answer-lost", "download-failed"})
"""Codes of a site that did not answer."""

RULES = frozenset({"verify-failed", "rule-failed"})
"""Codes of a page that did not meet a rule."""

_EXPIRED = re.compile(
    r"session (?:has |is |was )?(?:expired|timed out|ended)|(?:please )?(?:sign|log) in (?:again|to continue)|not (?:signed|logged) in",
    re.IGNORECASE,
)
_BROKEN = re.compile(
    r"internal server error|service unavailable|bad gateway|gateway time-?out|under maintenance|something (?:broke|went wrong)|temporarily unavailable",
    re.IGNORECASE,
)

_EMPTY = re.compile(
    r"\b(?:no|0) (?:\w+ )?(?:orders|results?|entries|items|records|rows|data|matches|invoices|messages|users|products)\b|nothing (?:here|found|to show)|(?:list|table|cart|basket) is empty",
    re.IGNORECASE,
)
READS_ROWS = frozenset({"extract", "table", "count"})
"""Queries that read repeated items."""

NO_FIX: Mapping[Kind, str] = {
    "drift": "none was found: look at what the page showed, and correct the target",
    "slow page": "none was found: give the step a larger `timeout`, or continue with `runops resume` once the site is faster",
    "overlay": "none was found: put a step before it that closes what lies over the page",
    "signed out": "look at the steps that sign in, at the account and its password, or sign in anew and start again",
    "data changed": "look at the data: what the step is about is not there any more; give other inputs, or let the file allow for it (`when`, `min: 0`)",
    "site error": "wait until the site works, then continue with `runops resume`",
    "finding": "nothing is to be fixed in the file: the workflow found what it was made to find",
    "workflow": "fix the file where the error says",
    "unknown": "none was found: look at what the page showed",
}
"""Advice if no fix is proposed."""


@dataclasses.dataclass(frozen=True, slots=True)
class PageGlance:
    """Signals of a page."""

    url: str = ""
    words: str = ""
    """Its text, as far as it was kept."""
    status: int | None = None
    alert: str = ""
    password: bool = False
    front: Mapping[str, Json] | None = None
    """Overlay of the page (``runtime.browser.diagnosis.page_signals``)."""
    busy: bool = False
    dialog: str | None = None

    @classmethod
    def of(cls, kept: Mapping[str, Json] | None, words: str = "") -> PageGlance | None:
        """Parse the result of ``runtime.engine.evidence``; None if it kept nothing."""
        if kept is None:
            return None
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
    """The failed step, from the log."""

    path: str
    code: str
    who: str
    message: str
    evidence: Mapping[str, Json]
    phase: str = "before"
    target: Target | None = None
    """With references resolved."""
    action: str = ""
    seconds: float = 10.0
    asked_for: str | None = None
    """The address that the run had last opened before it."""
    signed_in: bool = False
    """True if the run had typed a secret, or loaded a signed-in state, before it."""


@dataclasses.dataclass(frozen=True, slots=True)
class PageLook:
    """The current page, after the run was repeated up to the step."""

    glance: PageGlance
    path: str | None
    """The step at which it ended this time."""
    code: str | None
    """The error code; None if the step was done, or was ready."""
    parts: Sequence[tuple[str, int]] = ()
    """The parts of the target, outermost first, each with its number of matches."""
    came_after: float | None = None
    """Seconds after which the target appeared, if that exceeds the step's time."""
    behind: bool = False
    """True if the target is in the document, below an overlay."""
    already: bool = False
    """True if the rules of `verify` held before the step."""
    proves: bool = False
    """True if a rule of `verify` does not hold yet, so that it can prove the step."""
    near: bool = False
    """True if anything on the page has a name like the missing one."""
    rows: int | None = None
    """For a step that reads rows: 0 if their container exists and is empty; None if unknown."""


@dataclasses.dataclass(frozen=True, slots=True)
class Found:
    """Kind of a failure."""

    kind: Kind
    why: Sequence[str]
    """Its reasons, each in a sentence."""
    fix: str


def classify(failure: Failure, then: PageGlance | None, now: PageLook | None) -> Found:
    """Return the kind of the failure. ``then`` is the page at that time, ``now`` the fresh inspection; each may be missing."""
    for rule in (_finding, _site, _signed_out, _workflow, _covered, _slow, _gone, _drifted):
        found = rule(failure, then, now)
        if found is not None:
            return found
    return _found("unknown", f"the step failed with {failure.code}")


def _found(kind: Kind, *why: str) -> Found:
    return Found(kind, [each for each in why if each], NO_FIX[kind])


def _finding(failure: Failure, _then: PageGlance | None, _now: PageLook | None) -> Found | None:
    if failure.who == "finding":
        return _found("finding", f"an `assert` of the workflow does not hold: {failure.message}")
    return None


def _site(failure: Failure, then: PageGlance | None, now: PageLook | None) -> Found | None:
    if failure.code in NOT_LOADED:
        return _found("site error", failure.message)
    answered = failure.evidence.get("answered") or failure.evidence.get("status") or (then.status if then else None)
    told = [("when the run failed", answered, then)]
    if now is not None and now.code is not None:
        told.append(("now", now.glance.status, now.glance))
    for when, status, glance in told:
        if isinstance(status, int) and (status >= 500 or status == 429):
            return _found("site error", f"the page was answered with {status} {when}")
        if isinstance(status, int) and status in (404, 410):
            return _found("data changed", f"the site says that there is no such page ({status}) {when}")
        said = _BROKEN.search(f"{glance.alert}\n{glance.words[:2000]}") if glance is not None else None
        if said is not None and failure.code in FOUND_NOTHING | RULES:
            return _found("site error", f'the page says "{said[0]}" {when}')
    if now is not None and now.code in NOT_LOADED:
        return _found("site error", "the site does not answer now")
    return None


def _signed_out(failure: Failure, then: PageGlance | None, now: PageLook | None) -> Found | None:
    if failure.who not in ("site", "model", "author"):
        return None
    glances = [("", then)]
    if now is not None and now.code is not None:
        glances.append((" now, too", now.glance))
    for when, glance in glances:
        if glance is None:
            continue
        if glance.status in (401, 403):
            return _found("signed out", f"the page was answered with {glance.status}{when}")
        elsewhere = failure.asked_for is not None and _place(glance.url) != _place(failure.asked_for)
        if glance.password and (failure.signed_in or elsewhere) and not _at_sign_in(failure, glance):
            led = (
                f"{failure.asked_for} led to {glance.url}"
                if elsewhere
                else f"the run had signed in, and is at {glance.url}"
            )
            return _found("signed out", f"the page asks for a password{when}: {led}")
        said = _EXPIRED.search(f"{glance.alert}\n{glance.words[:2000]}")
        if said is not None and failure.code in FOUND_NOTHING | RULES | {"timeout"}:
            return _found("signed out", f'the page says "{said[0]}"{when}')
    return None


def _at_sign_in(failure: Failure, glance: PageGlance) -> bool:
    """Return whether the step itself belongs to a sign-in: it was opened there on purpose, and its action was not done."""
    opened = failure.asked_for is not None and _place(failure.asked_for) == _place(glance.url)
    return opened and failure.code not in RULES


def _place(url: str) -> str:
    parts = urllib.parse.urlsplit(url)
    return f"{parts.netloc}{parts.path.rstrip('/')}"


def _workflow(failure: Failure, _then: PageGlance | None, _now: PageLook | None) -> Found | None:
    if failure.who in ("author", "usage"):
        return _found("workflow", failure.message)
    return None


def _covered(failure: Failure, then: PageGlance | None, now: PageLook | None) -> Found | None:
    if failure.code == "dialog-open":
        return _found(
            "overlay", f"the page shows a dialog: {failure.evidence.get('message') or (then.dialog if then else '')}"
        )
    if failure.code == "target-not-actionable" and failure.evidence.get("problem") == "covered":
        return _found("overlay", f"something lies over it: {failure.evidence.get('element') or 'another element'}")
    glance = now.glance if now is not None and now.code is not None else then
    if (
        glance is None
        or glance.front is None
        or failure.code not in FOUND_NOTHING | {"target-not-actionable", "timeout"}
    ):
        return None
    wanted_in_dialog = failure.target is not None and "dialog" in str(failure.target)
    hidden = now is not None and now.behind
    if (glance.front.get("modal") or hidden) and not wanted_in_dialog:
        said = str(glance.front.get("name") or glance.front.get("text") or "")[:80]
        return _found("overlay", f'a {glance.front.get("role")} lies over the page: "{said}"')
    return None


def _slow(failure: Failure, then: PageGlance | None, now: PageLook | None) -> Found | None:
    if now is not None and now.came_after is not None:
        return _found(
            "slow page",
            f"what the step looks for was there after {now.came_after:.1f} s, and it may take {failure.seconds:g} s",
        )
    otherwise = now is not None and now.path == failure.path and now.code not in (None, "timeout")
    if failure.code == "timeout" and not otherwise:
        return _found("slow page", failure.message)
    waits = failure.code in FOUND_NOTHING | RULES | {"target-not-actionable"}
    if now is not None and waits and now.code is None:
        more = "the page was still loading then" if then is not None and then.busy else "the page was not ready then"
        return _found("slow page", f"the step finds what it looks for now, in its own time: {more}")
    return None


def _gone(failure: Failure, then: PageGlance | None, now: PageLook | None) -> Found | None:
    if failure.code not in FOUND_NOTHING or failure.code == "target-ambiguous":
        return None
    words = now.glance.words if now is not None else then.words if then is not None else ""
    if failure.target is not None and failure.target.within is not None:
        anchor = _said(failure.target.within)
        missing = not now.parts or now.parts[0][1] == 0 if now is not None else True
        if anchor and words and missing and not says(words, anchor):
            return _found("data changed", f"{anchor!r} stands nowhere on the page any more")
    own = _said(failure.target) if failure.target is not None else ""
    if own and words and not says(words, own) and failure.target is not None and failure.target.has_text:
        return _found("data changed", f"{own!r} stands nowhere on the page any more")
    if now is not None and now.already and not now.near:
        return _found("data changed", "what `verify` waits for holds already, before the step: it may be done")
    empty = _EMPTY.search(words[:4000]) if failure.action in READS_ROWS else None
    if empty is not None:
        return _found("data changed", f'the page says "{empty[0]}"')
    if now is not None and now.rows == 0 and now.path == failure.path:
        return _found("data changed", "the place of the list is there, and it holds nothing now")
    return None


def _said(target: Target) -> str:
    """Return the text of the data that distinguishes an element."""
    return target.has_text or (_said(target.within) if target.within is not None else "")


def says(words: str, text: str) -> bool:
    """Return whether ``words`` contains ``text`` as whole words."""
    return re.search(rf"(?<!\w){re.escape(' '.join(text.split()))}(?!\w)", " ".join(words.split())) is not None


def _drifted(failure: Failure, _then: PageGlance | None, now: PageLook | None) -> Found | None:
    if failure.code in FOUND_NOTHING:
        lost = [name for name, count in now.parts if count == 0] if now is not None else []
        first = f"nothing on the page matches {lost[0]}" if lost else failure.message
        return _found("drift", first)
    if failure.code == "target-not-actionable":
        return _found("unknown", failure.message)
    if failure.code in RULES:
        alert = failure.evidence.get("alert")
        if alert:
            return _found("unknown", f'the action was done, and the page says "{alert}"')
        return _found(
            "drift", f"the action was done, and the page does not say what `verify` waits for: {failure.message}"
        )
    return None
