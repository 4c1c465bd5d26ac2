"""Checks rules: one check is one evaluation in the page; waiting repeats the check."""

from __future__ import annotations

import dataclasses

from playwright.async_api import Page

from nodes.rules import Rule
from nodes.targets import Target
from nodes.values import Json
from runtime.browser import isolated_world
from runtime.browser.elements import locators, text_match, visibility
from runtime.browser.playwright_errors import short


@dataclasses.dataclass(frozen=True, slots=True)
class RuleCheck:
    holds: bool
    wanted: Json
    seen: Json  # value on the page; None if the element is missing
    matches: int = 1  # number of elements that match the rule's target


STATES = (
    visibility.VISIBLE
    + """
  const enabled = (element) => !element.matches(':disabled') && !element.closest('[aria-disabled="true"]');
  const checked = (element) =>
    element instanceof HTMLInputElement ? element.checked : element.getAttribute('aria-checked') === 'true';
"""
)
"""JavaScript: visibility, `enabled` and `checked` as Playwright defines them, so that a rule agrees with a click."""

_LOOK = isolated_world.Script[tuple[int, str | bool | None, bool]](
    "(elements, {kind, pattern}) => {"
    + text_match.SEEN
    + STATES
    + r"""
  if (kind === 'hidden') return [elements.length, elements.some(visible) ? 'visible' : 'hidden', false];
  if (elements.length !== 1) return [elements.length, null, false];
  const element = elements[0];
  const look = {
    visible: () => (visible(element) ? 'visible' : 'hidden'),
    // The options of a closed list are drawn nowhere, and yet the chosen one is what a person sees in it.
    text: () => ((element.closest('select') ?? element).checkVisibility({visibilityProperty: true}) ? folded(seen(element)) : ''),
    value: () => (element.value === undefined ? null : String(element.value)),
    checked: () => checked(element),
    enabled: () => enabled(element),
  };
  const what = look[kind]();
  return [1, what, kind === 'text' && new RegExp(pattern, 'v').test(what)];
}""",
    tuple[int, str | bool | None, bool],
)

COUNT = isolated_world.Script[int](
    f"(elements) => {{{visibility.COUNTS} return elements.filter(counts).length; }}", int
)

_LOOK_AT_PAGE = isolated_world.Script[tuple[str, bool]](
    "({kind, pattern}) => {"
    + text_match.SEEN
    + """
  const text = folded(kind === 'title' ? Document.prototype.__lookupGetter__('title').call(document) : document.body ? seen(document.body) : '');
  return [text, new RegExp(pattern, 'v').test(text)];
}""",
    tuple[str, bool],
)


async def look(page: Page, rule: Rule, target: Target | None) -> RuleCheck:
    """Check the rule once. ``target`` is the rule's target, settled. Kind ``expr`` depends on values only, not on the page."""
    kind = rule.kind
    if kind == "url":
        assert rule.url is not None
        return RuleCheck(locators.address_matches(rule.url, page.url), rule.url, page.url)
    if kind == "expr":
        return RuleCheck(bool(rule.expr), True, bool(rule.expr))
    if target is None:
        wanted = rule.title if kind == "title" else rule.text
        assert wanted is not None
        asked: Json = {"kind": kind, "pattern": text_match.pattern(wanted, exact=rule.exact)}
        text, holds = await _LOOK_AT_PAGE.on(page, asked)
        return RuleCheck(holds, wanted, short(text, 300))
    if kind == "count":
        count = await COUNT.of_all(locators.locator(page, target, hidden=True))
        return RuleCheck(count == rule.count, rule.count, count, count)
    found = locators.locator(page, target)
    pattern = text_match.pattern(rule.text, exact=rule.exact) if rule.text is not None else None
    count, seen, holds = await _LOOK.of_all(found, {"kind": kind, "pattern": pattern})
    if kind in ("hidden", "visible"):
        return RuleCheck(seen == kind, kind, seen, 1 if kind == "hidden" else count)
    if kind == "text":
        return RuleCheck(holds, rule.text, None if seen is None else short(str(seen), 300), count)
    wanted = getattr(rule, kind)
    return RuleCheck(count == 1 and seen == wanted, wanted, seen, count)
