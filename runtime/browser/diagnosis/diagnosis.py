"""Diagnoses failures on a page: turns a Playwright error and one more check of the page into an error for people."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

from playwright.async_api import Error, Page

from nodes.errors import AuthorError, Phase, RunOpsError, SiteError
from nodes.pages import FieldSource
from nodes.rules import Rule
from nodes.targets import Target
from nodes.values import Json
from runtime.browser import http_sign_in, isolated_world, playwright_errors
from runtime.browser.diagnosis import nearest, nearest_selectors
from runtime.browser.elements import locators, rules
from runtime.browser.page_errors import CLIENT_ERROR
from runtime.browser.run_pages import RunPages

Answer = TypeVar("Answer")

ENDING_SECONDS = 0.2  # seconds that a browser may need to end after it closed its tabs

_BUSY = (408, 429)

EVIDENCE_SECONDS = 1.0  # seconds for gathering evidence after an action failed
CANDIDATES_SECONDS = 3.0  # seconds for finding a target for each of several elements


_SIGNS = isolated_world.Script[dict[str, Json]](
    r"""() => {
  const line = (text, length) => {
    const folded = (text ?? '').replace(/\s+/g, ' ').trim();
    return folded.length > length ? folded.slice(0, length - 1) + '…' : folded;
  };
  const seen = (element) => element.checkVisibility({checkOpacity: true, checkVisibilityCSS: true}) && element.getClientRects().length > 0;
  const all = (css) => Array.from(document.querySelectorAll(css)).filter(seen);
  const loaded = performance.getEntriesByType('navigation')[0];
  // Many pages only style their messages. What holds fields is a form with an error, and not the message itself.
  const says = /(^|[\s_-])(alert|errors?|errorlist|errornote|danger|flash|toast|snackbar|invalid-feedback)(?=$|[\s_-])/i;
  const styled = all('[class*=alert i], [class*=error i], [class*=danger i], [class*=flash i], [class*=toast i], [class*=snackbar i], [class*=invalid i]').filter(
    (each) => says.test((each.getAttribute('class') ?? '').replace(/([a-z])([A-Z])/g, '$1-$2')) && !each.querySelector('input, select, textarea') && each.innerText.length <= 400);
  const messages = [...all('[role=alert], [aria-live=assertive]'), ...styled];
  const outer = messages.filter((each, place) => !messages.some((other, index) => other !== each && other.contains(each)) && messages.indexOf(each) === place);
  const called = outer.map((each) => line(each.innerText, 200)).filter(Boolean);
  const headings = all('h1, h2, [role=heading]').slice(0, 5).map((each) => line(each.innerText, 80)).filter(Boolean);
  const named = (element) => {
    const by = element.getAttribute('aria-labelledby');
    const label = element.getAttribute('aria-label') || (by && document.getElementById(by.split(' ')[0])?.innerText) || '';
    return line(label, 80);
  };
  const modal = all('dialog, [role=dialog], [role=alertdialog], [aria-modal=true]')[0];
  // What lies over the page: fixed to the window, or at the top of the stack, and wide.
  const over = new Set();
  for (const [x, y] of [[.5, .5], [.5, .08], [.5, .94], [.2, .5], [.8, .5]]) {
    const top = document.elementFromPoint(innerWidth * x, innerHeight * y);
    for (let each = top; each && each !== document.body; each = each.parentElement) {
      const style = getComputedStyle(each), box = each.getBoundingClientRect();
      const lies = style.position === 'fixed' || (style.position === 'absolute' && Number(style.zIndex) > 0);
      if (lies && box.width >= innerWidth * .5 && box.height >= 20) over.add(each);
    }
  }
  const front = modal ?? Array.from(over)[0];
  const busy = document.readyState !== 'complete' || all('[aria-busy=true], [role=progressbar], progress').length > 0;
  return {
    status: loaded ? loaded.responseStatus || null : null,
    alert: line(called.join(' | '), 200) || null,
    headings,
    password: all('input[type=password]').length > 0,
    front: front ? {role: front.getAttribute('role') || front.tagName.toLowerCase(), name: named(front), text: line(front.innerText, 160), modal: !!modal} : null,
    busy,
  };
}""",
    dict[str, Json],
)

_KNOWN = isolated_world.Script[list[str]](locators.KNOWN, list[str])


_FIXES = {
    "covered": "close what covers it with a step before this one; a `click` may also name a place of it that is free: `at: {x: 5, y: 5}`",
    "moving": "wait with `verify` on the step before until it rests; what never rests takes a key: `press` with `key: Enter` and this target",
    "disabled": "do first what enables it, or wait for that: `verify: [{enabled: true, target: …}]` on the step before",
    "hidden": "have the step before show it, or point at the element that is seen in its place",
}
"""What to do about an element that cannot take an action, by the problem."""


class Diagnosis:
    def __init__(self, page: Page, run: RunPages, settle: Callable[[Target], Awaitable[Target | None]]) -> None:
        self.page = page
        self._run = run
        self._deadline = run.deadline
        self._settle = settle
        self.asked_credentials = (
            False  # true if the present document is the answer of a site that asks for HTTP credentials
        )

    @property
    def sign_in_fix(self) -> str | None:
        """How to sign in, if the present document asks for HTTP credentials."""
        return self._run.sign_in_fix() if self.asked_credentials else None

    def page_error(self, code: str, message: str, fix: str, phase: Phase = "before", **evidence: Any) -> SiteError:
        """Return an error whose evidence also has the address of the page and the seconds waited."""
        known = {"page": self.page.url, "waited": self._deadline.waited()}
        return SiteError(code, message, fix=fix, phase=phase, evidence={**known, **evidence})

    async def not_loaded(self, error: Error, url: str) -> RunOpsError:
        if refused := self._run.refusal():
            return refused
        kind = playwright_errors.kind_of(error)
        if kind in ("gone", "crashed"):
            return await self._gone(error, "after")
        if playwright_errors.says(error, playwright_errors.LATE):
            return SiteError(
                "timeout",
                f"{url} was not loaded in time (waited {self._deadline.waited():g} s)",
                fix="give the step a larger `timeout`, or check what the page is still loading",
                phase="after",
                evidence={"url": url, "waited": self._deadline.waited()},
            )
        seen = playwright_errors.network_error(error)
        phase: Phase = "before" if seen in playwright_errors.NEVER_SENT and not self._run.answers.reached else "after"
        said = seen or playwright_errors.said(error)
        found = playwright_errors.no_address(url, said, phase, {"url": url, "seen": said})
        return found.replaced(fix=self._run.sign_in_fix()) if seen == http_sign_in.NO_ANSWER else found

    async def closed_alone(self, error: Error) -> bool:
        """Return True if only the tab was closed. A browser that ends closes its tabs first, so it gets a moment."""
        if playwright_errors.kind_of(error) != "gone" or not self.page.is_closed():
            return False
        await asyncio.sleep(ENDING_SECONDS)
        return bool(self.page.context.pages) and await self._evidence(self.page.context.cookies, None) is not None

    async def _gone(self, error: Error, phase: Phase) -> RunOpsError:
        if await self.closed_alone(error):
            return SiteError(
                "tab-closed",
                "the tab was closed while the step worked in it",
                fix="look at which step closes it, and work in another tab after that",
                phase=phase,
                evidence={"page": self.page.url},
            )
        return playwright_errors.gone(error, self.page.url, phase)

    def no_dialog(self) -> SiteError:
        return self.page_error(
            "no-dialog",
            f"the page opened no dialog (waited {self._deadline.waited():g} s)",
            "look whether the step before opens one at all; if it does so late, give this one a larger `timeout`",
        )

    async def failed(self, error: Error, target: Target | None, phase: Phase) -> RunOpsError:
        found = await self._failed(error, target, phase)
        # Whatever the state is now, something may have been sent.
        return found.replaced(phase=phase) if phase == "after" else found

    async def _failed(self, error: Error, target: Target | None, phase: Phase) -> RunOpsError:
        if refused := self._run.refusal():
            return refused
        kind = playwright_errors.kind_of(error)
        if kind in ("gone", "crashed"):
            return await self._gone(error, phase)
        said = playwright_errors.said(error)
        if target is None and kind == "other":
            return isolated_world.unreadable(said, self.page.url)
        if target is None or kind == "navigated":
            return self.silent(phase, said)
        if kind == "bad target":
            why = playwright_errors.short(playwright_errors.head(error).strip().split(": ", 1)[-1], 200)
            return AuthorError("bad-target", f"{target} cannot be read: {why}", fix="correct the css or xpath")
        if kind in ("ambiguous", "missing") and (in_frame := await self._frame_trouble(target)) is not None:
            return in_frame
        if kind == "ambiguous":
            return await self.ambiguous(target, phase)
        if kind == "missing":
            return await self.missing(target, fills=playwright_errors.head(error).startswith("Locator.fill"))
        if kind == "other":
            return self.not_actionable(target, "refused", f"the browser refused: {said}", None, phase)
        problem, words, element = playwright_errors.obstacle(error)
        if problem == "busy" and phase == "after":
            return self.page_error(
                "timeout",
                f"{target} took the action, and the page did not answer in time (waited {self._deadline.waited():g} s)",
                "give the step a larger `timeout`, and a `confirm` that tells whether it was carried out",
                "after",
            )
        found = self.not_actionable(target, problem, words, element, phase)
        if problem in ("hidden", "covered"):
            # The time of the look is the evidence's, not the step's.
            field = locators.locator(self.page, target)
            seen = await self._evidence(lambda: nearest.in_place(self.page, field), "", CANDIDATES_SECONDS)
            return found.replaced(fix=f"point at what is seen in its place: {seen}") if seen else found
        return found

    def silent(self, phase: Phase = "before", said: str | None = None) -> SiteError:
        message = "the page does not answer" + (f": {said}" if said else "")
        return self.page_error("timeout", message, "look whether a script or a dialog of the page blocks it", phase)

    def not_actionable(self, target: Target, problem: str, words: str, element: str | None, phase: Phase) -> SiteError:
        fix = _FIXES.get(
            problem, "wait for the state you need with `verify` on the step before, or point at another element"
        )
        if problem == "covered" and element is not None:
            words = f"it is covered by {element}"
        message = f"{target} is there, but {words}"
        return self.page_error("target-not-actionable", message, fix, phase, problem=problem, element=element)

    async def ambiguous(self, target: Target, phase: Phase = "before") -> SiteError:
        found = locators.locator(self.page, target)
        candidates = list[str]()
        await self._evidence(lambda: nearest.distinguish(self.page, found, candidates), None, CANDIDATES_SECONDS)
        count = await self._evidence(found.count, len(candidates))
        whole = target.model_copy(update={"exact": True})
        fix = "take one of the candidates, or narrow the target with `within`, `has_text` or `nth`"
        if str(whole) != str(target) and await self._evidence(locators.locator(self.page, whole).count, 0) == 1:
            fix = "add `exact: true`: one of them has just this text"
        return SiteError(
            "target-ambiguous",
            f"{count} elements match {target}",
            fix=fix,
            phase=phase,
            evidence={"count": count, "candidates": list[Json](candidates), "page": self.page.url},
        )

    async def missing(self, target: Target, *, wanted: int = 1, seen: int = 0, fills: bool = False) -> SiteError:
        """Return the error for no matching element, or too few; ``fills``: of a field."""
        if (in_frame := await self._frame_trouble(target)) is not None:
            return in_frame
        waited = self._deadline.waited()
        lacking = await self._evidence(lambda: self._lacking(target), target)
        if not seen and await self._evidence(lambda: self._there(target), False):
            return self.page_error(
                "timeout",
                f"{target} is there, but the step's time was already over  (waited {waited:g} s)",
                "give the step a larger `timeout`, or wait with `verify` on the step before until it is there",
            )
        what = "no element matches" if not seen else f"only {seen} of at least {wanted} elements match"
        why = "" if seen else await self._evidence(lambda: nearest_selectors.why(self.page, lacking), "")
        said = await self.says()
        fix = "look at the page, and correct the target or what comes before it"
        if "status" in said:
            fix = (
                f"the page is an error of the server ({said['status']}): look at why, or at the address that led to it"
            )
        return self.page_error(
            "target-not-found",
            f"{what} {lacking}{f': {why}' if why else ''}  (waited {waited:g} s)",
            self.sign_in_fix or fix,
            waited=waited,
            title=await self._evidence(self.page.title, ""),
            nearest=await self._evidence(
                lambda: nearest.candidates(self.page, lacking, fills=fills and lacking is target), []
            ),
            **said,
        )

    async def missing_part(self, target: Target) -> str | None:
        """Return the frame, or the part around the target, that matches nothing; None if that is the target itself."""
        if (in_frame := await self._frame_trouble(target)) is not None:
            return f"frame {in_frame.evidence['frame']}"
        lacking = await self._evidence(lambda: self._lacking(target), target)
        return None if lacking is target else f"within {lacking}"

    async def all_hidden(self, target: Target, count: int) -> SiteError:
        return self.page_error(
            "target-not-found",
            f"{count} elements match {target}, and none of them is visible  (waited {self._deadline.waited():g} s)",
            "correct the target, or have the step before show them",
            **await self.says(),
        )

    async def _there(self, target: Target) -> bool:
        settled = await self._settle(target)
        return settled is not None and await locators.locator(self.page, settled).count() == 1

    async def says(self) -> dict[str, Json]:
        """Return the obvious signals of a failure: an error status of the server, and alerts of the page."""
        signs: dict[str, Any] = await self._evidence(self.signs, {})
        said: dict[str, Json] = {"alert": signs["alert"]} if signs.get("alert") else {}
        return said | ({"status": signs["status"]} if (signs.get("status") or 0) >= CLIENT_ERROR else {})

    async def signs(self) -> dict[str, Json]:
        """Return ``status`` of the document, its ``alert`` and ``headings``, ``password`` (a password field is shown), ``front``, ``busy``.

        ``front`` covers the page: its ``role``, ``name`` and ``text``, and ``modal`` if it is a dialog; null if nothing does.
        """
        return await _SIGNS.on(self.page)

    async def demand_answer(self, what: object) -> None:
        """Raise SiteError ``error-page`` if the document is an error of the server: it proves nothing about what is missing on it."""
        status = await self.broken()
        if status is not None:
            raise SiteError(
                "error-page",
                f"the page is an error of the server ({status}), which proves nothing about {what}",
                fix="look at why the server fails, or try the page again later",
                evidence={"page": self.page.url, **await self.says()},
            )

    async def broken(self) -> int | None:
        """Return the document's status if the server failed or was busy; None otherwise."""
        status = (await self.says()).get("status")
        return status if isinstance(status, int) and (status >= 500 or status in _BUSY) else None

    async def _frame_trouble(self, target: Target) -> SiteError | None:
        """Return an error for the first frame on the way to the target that is missing or ambiguous."""
        way = target.frames
        for depth, wanted in enumerate(way):
            around = locators.document(self.page, way[:depth]).locator(":root")
            found = around.locator(locators.frame_selector(wanted))
            count = await self._evidence(found.count, 1)
            if count == 1:
                continue
            known: list[str] = await self._evidence(functools.partial(_KNOWN.of, around), [])
            where = f" in frame {way[depth - 1]}" if depth else ""
            waited = self._deadline.waited()
            return self.page_error(
                "target-ambiguous" if count else "target-not-found",
                f"{count or 'no'} frame{'s match' if count else ' matches'} {wanted}{where}  (waited {waited:g} s)",
                "correct `frame`: a name, a CSS selector of the frame element, or a glob of its address",
                frame=wanted,
                frames=known,
            )
        return None

    async def _lacking(self, target: Target) -> Target:
        """Return the outermost part of the target that matches nothing: often the row is missing, not the button in it."""
        if target.within is not None:
            outer = await self._lacking(target.within)
            settled = await self._settle(outer)
            if settled is None or not await locators.locator(self.page, settled).count():
                return outer
        return target

    async def rule_failed(self, rule: Rule, look: rules.RuleCheck) -> RunOpsError:
        subject = subject_of(rule)
        if subject is not None and look.matches > 1 and rule.kind != "count":
            settled = await self._evidence(lambda: self._settle(subject), None)
            return await self.ambiguous(settled or subject, "after")
        evidence: dict[str, Any] = {
            "rule": str(rule),
            "wanted": look.wanted,
            "seen": look.seen,
            "page": self.page.url,
            "waited": self._deadline.waited(),
        }
        seen = f"seen: {look.seen!r}"
        if subject is not None and look.matches == 0 and rule.kind != "count":
            lacking = await self._evidence(lambda: self._lacking(subject), subject)
            seen = f"no element matches {lacking}"
            evidence["nearest"] = await self._evidence(lambda: nearest.candidates(self.page, lacking), [])
        says = await self.says()
        fix = _url_fix(rule.url, self.page.url) if rule.url is not None else None
        if "alert" in says:
            seen, fix = f"{seen}; the page says {says['alert']!r}", None
        fix = self.sign_in_fix or fix
        message = f"{rule} does not hold; {seen}"
        if self._deadline.quiet is not None and not self._deadline.over():
            message += f"; the page did nothing more for {self._deadline.quiet:g} s: if it takes longer, give the node a `timeout`"
        return SiteError("rule-failed", message, fix=fix, phase="after", evidence={**evidence, **says})

    async def _evidence(
        self, gather: Callable[[], Awaitable[Answer]], otherwise: Answer, seconds: float = EVIDENCE_SECONDS
    ) -> Answer:
        """Return evidence gathered in a moment, or ``otherwise``: evidence must not hide the error that it supports."""
        try:
            async with asyncio.timeout(seconds):
                return await gather()
        except (Error, TimeoutError, RunOpsError):
            return otherwise


def _url_fix(pattern: str, url: str) -> str:
    asked = locators.counts_query(pattern)
    counted = {"?": asked, "#": "#" in pattern}
    parts = [name for mark, name in (("?", "query"), ("#", "fragment")) if mark in url and not counted[mark]]
    if parts:
        marks = {"query": "?", "fragment": "#"}
        left = " and ".join(f"the {each} (no `{marks[each]}` in the glob)" for each in parts)
        return f"correct the glob, which is for the whole address; {left} did not count"
    if asked:
        return "correct the glob, which is for the whole address with its query; without `?`, `=` and `&` in it the query does not count"
    return "if the address should be another one, correct what comes before; else the glob: it is for the whole address, `**` is anything, `*` anything but a slash"


def subject_of(rule: Rule) -> Target | None:
    return rule.visible or rule.hidden or rule.target


def field_ambiguous(fields: Sequence[FieldSource], cell: dict[str, int]) -> SiteError:
    css, row = fields[cell["index"]].css, cell["number"] + 1
    return SiteError(
        "field-ambiguous",
        f"{css} matches {cell['ambiguous']} times in row {row}",
        fix="make the css of the field more exact, or choose one with `nth`",
        evidence={"css": css, "row": row, "count": cell["ambiguous"]},
    )
