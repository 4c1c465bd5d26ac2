"""Looking whether a rule holds: one look is one evaluation in the page; waiting is looking again."""

from __future__ import annotations

import dataclasses

from playwright.async_api import Locator, Page

from nodes.rules import Rule
from nodes.targets import Target
from nodes.values import Json
from runtime.browser import locators, matching
from runtime.browser.failures import short


@dataclasses.dataclass(frozen=True, slots=True)
class Look:
    """What one look at a rule saw."""

    holds: bool
    wanted: Json
    seen: Json
    """What stands there instead; None where the element is missing."""
    matches: int = 1
    """How many elements match the rule's target."""


STATES = """
  const hasArea = (element) => {
    if (getComputedStyle(element).display === 'contents') return Array.from(element.children).some(visible);
    const {width, height} = element.getBoundingClientRect();
    return width > 0 && height > 0;
  };
  const visible = (element) => element.checkVisibility({visibilityProperty: true}) && hasArea(element);
  const enabled = (element) => !element.matches(':disabled') && !element.closest('[aria-disabled="true"]');
  const checked = (element) =>
    element instanceof HTMLInputElement ? element.checked : element.getAttribute('aria-checked') === 'true';
"""
"""JavaScript: visibility, `enabled` and `checked` as Playwright takes them, so that a rule says the same as a click would find."""

_LOOK = (
    "(elements, {kind, pattern}) => {"
    + matching.SEEN
    + STATES
    + r"""
  if (kind === 'hidden') return {count: elements.length, seen: elements.some(visible) ? 'visible' : 'hidden'};
  if (elements.length !== 1) return {count: elements.length, seen: null};
  const element = elements[0];
  const look = {
    visible: () => (visible(element) ? 'visible' : 'hidden'),
    // The options of a closed list are drawn nowhere, and yet the chosen one is what a person sees in it.
    text: () => ((element.closest('select') ?? element).checkVisibility({visibilityProperty: true}) ? folded(seen(element)) : ''),
    value: () => element.value ?? null,
    checked: () => checked(element),
    enabled: () => enabled(element),
  };
  const what = look[kind]();
  return {count: 1, seen: what, found: kind === 'text' && new RegExp(pattern, 'v').test(what)};
}"""
)

_LOOK_AT_PAGE = (
    "({kind, pattern}) => {"
    + matching.SEEN
    + """
  const text = folded(kind === 'title' ? document.title : document.body ? seen(document.body) : '');
  return {seen: text, found: new RegExp(pattern, 'v').test(text)};
}"""
)


async def look(page: Page, rule: Rule, target: Target | None) -> Look:
    """Look once. ``target`` is the rule's target, settled. Kind ``expr`` is a matter of values, not of the page."""
    kind = rule.kind
    if kind == "url":
        assert rule.url is not None
        return Look(locators.address_matches(rule.url, page.url), rule.url, page.url)
    if kind == "expr":
        return Look(bool(rule.expr), True, bool(rule.expr))
    if target is None:
        wanted = rule.title if kind == "title" else rule.text
        assert wanted is not None
        of_page = await page.evaluate(
            _LOOK_AT_PAGE, {"kind": kind, "pattern": matching.pattern(wanted, exact=rule.exact)}
        )
        return Look(of_page["found"], wanted, short(of_page["seen"], 300))
    return await _look_at(locators.locator(page, target), rule, kind)


async def _look_at(found: Locator, rule: Rule, kind: str) -> Look:
    if kind == "count":
        count = await found.count()
        return Look(count == rule.count, rule.count, count, count)
    pattern = matching.pattern(rule.text, exact=rule.exact) if rule.text is not None else None
    saw = await found.evaluate_all(_LOOK, {"kind": kind, "pattern": pattern})
    seen, count = saw["seen"], saw["count"]
    if kind == "hidden":
        return Look(seen == "hidden", "hidden", seen)
    if kind == "visible":
        return Look(seen == "visible", "visible", seen, count)
    if kind == "text":
        text = None if seen is None else short(seen, 300)
        return Look(bool(saw.get("found")), rule.text, text, count)
    wanted = getattr(rule, kind)
    return Look(count == 1 and seen == wanted, wanted, seen, count)
