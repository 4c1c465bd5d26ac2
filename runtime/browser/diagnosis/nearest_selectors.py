"""Tells which part of a CSS or XPath selector finds nothing on the page, and which selectors like it find something."""

from __future__ import annotations

import difflib
from collections.abc import Iterator

from playwright.async_api import Locator, Page

from nodes.targets import Target
from runtime.browser import isolated_world
from runtime.browser.diagnosis import selector_parts
from runtime.browser.diagnosis.selector_parts import Selector, Step, Word
from runtime.browser.elements import locators

ALIKE = 0.6  # least similarity of a word to the one that is meant, from 0 to 1
EACH = 3  # most words that may be meant by one

_VALUES = isolated_world.Script[list[str]](
    r"""(elements, {kind, name}) => {
  const found = new Set();
  const of = {
    tag: (element) => [element.localName],
    id: (element) => [element.id],
    class: (element) => Array.from(element.classList),
    attribute: (element) => [element.getAttribute(name)],
    names: (element) => element.getAttributeNames(),
    text: (element) => [(element.innerText ?? element.textContent).replace(/\s+/g, ' ').trim()],
  }[kind];
  for (const element of elements) {
    for (const value of of(element)) if (value && value.length <= 200) found.add(value);
    if (found.size >= 2000) break;
  }
  return Array.from(found);
}""",
    list[str],
)
"""What elements have where a selector has a word of this kind."""


async def why(page: Page, target: Target) -> str:
    """Return how much of a target that finds nothing does find something; empty if no part of it does, or it has no parts."""
    narrowed = [field for field in ("has_text", "nth") if getattr(target, field) is not None]
    if narrowed and (count := await _found(page, target.model_copy(update=dict.fromkeys(narrowed))).count()):
        fields = " and ".join(f"`{each}`" for each in narrowed)
        return f"{_elements(count)} without {fields}"
    apart = _apart(target)
    if len(apart) != 1:
        return ""
    [selector] = apart
    number = await _lacking(page, target, selector)
    if not number:
        return ""
    count = await _located(page, target, selector, selector.head(number - 1)).count()
    return f"{_elements(count)} `{selector.head(number - 1)}`, and `{selector.said(number)}` is not there"


def _elements(count: int) -> str:
    return "one element matches" if count == 1 else f"{count} elements match"


async def alike(page: Page, target: Target, *, more: bool = True) -> list[str]:
    """Return selectors that find something, each with one word of the target's replaced (``more``: or two), the most alike first."""
    found: dict[str, float] = {}
    for selector in _apart(target):
        number = await _lacking(page, target, selector)
        if number is None:
            continue
        step = selector.steps[number]
        ways = await _replaced(page, target, selector, step, alone=False)
        ways = ways or await _replaced(page, target, selector, step, alone=True)
        for text, score in ways.items():
            if await _located(page, target, selector, text, narrowed=True).count():
                found[text] = score
            elif more and text != selector.text:
                found |= dict.fromkeys(await alike(page, _with(target, selector, text), more=False), score / 2)
    return sorted(found, key=lambda text: -found[text])


async def _replaced(page: Page, target: Target, selector: Selector, step: Step, *, alone: bool) -> dict[str, float]:
    """Return the selector with a word of a step replaced by one that the page has. ``alone``: without the other words of the step."""
    text, found = selector.text, dict[str, float]()
    if not alone and step.start < step.first and text[step.start : step.first].strip() == ">":
        # It may be further inside than it was said to be.
        found[f"{text[: step.start]} {text[step.first :]}"] = 1.0
    # A tag alone would say too little.
    for word in [each for each in step.words if not alone or each.kind != "tag"]:
        begin, end = (text[: step.first], "") if alone else (text[: word.start], text[word.end : step.end])
        elements = _located(page, target, selector, begin + word.loose + end)
        values = await _VALUES.of_all(elements, {"kind": word.kind, "name": word.name})
        for value, score in _near(word, values):
            found.setdefault(begin + word.written(value) + end + text[step.end :], score)
    return found


def _near(word: Word, values: list[str]) -> Iterator[tuple[str, float]]:
    meant = {each.casefold(): each for each in reversed(values)}
    for each in difflib.get_close_matches(word.value.casefold(), meant, n=EACH, cutoff=ALIKE):
        if meant[each] != word.value:
            yield meant[each], difflib.SequenceMatcher(None, word.value.casefold(), each).ratio()


async def _lacking(page: Page, target: Target, selector: Selector) -> int | None:
    """Return the number of the first step with which the selector finds nothing; None if each finds something."""
    for number in range(len(selector.steps)):
        if not await _located(page, target, selector, selector.head(number)).count():
            return number
    return None


def _apart(target: Target) -> list[Selector]:
    if target.within is not None and not locators.settled(target.within):
        return []
    if target.css is not None:
        return selector_parts.take_apart("css", target.css)
    return selector_parts.take_apart("xpath", target.xpath) if target.xpath is not None else []


def _with(target: Target, selector: Selector, text: str) -> Target:
    return target.model_copy(update={selector.way: text})


def _located(page: Page, target: Target, selector: Selector, text: str, *, narrowed: bool = False) -> Locator:
    target = _with(target, selector, text)
    return _found(page, target if narrowed else target.model_copy(update={"has_text": None, "nth": None}))


def _found(page: Page, target: Target) -> Locator:
    return locators.locator(page, target, hidden=True)
