"""Suggests alternatives on the page when no element matches: accessible roles and names, or selectors, spelled most alike."""

from __future__ import annotations

import asyncio
import contextlib
import difflib
import re

from playwright.async_api import Locator, Page

from nodes.errors import SiteError
from nodes.targets import Target
from nodes.values import sound
from runtime.browser import isolated_world
from runtime.browser.diagnosis import nearest_selectors
from runtime.browser.elements import locators, pointed, targets, visibility
from runtime.browser.playwright_errors import short
from runtime.observation import tree

MOST, MOST_UNLIKE = 5, 3  # most elements to list, and most of those that only share the place

# A line of Playwright's accessibility snapshot: `- button "Sign in" [disabled]`, in quotes if it contains a colon. A name may
# also be a `/pattern/`, which is left out.
_LINE = re.compile(r"""^\s*-\s+(?P<quote>'?)(?P<role>[a-z]+)\s+"(?P<name>(?:[^"\\]|\\.)*)\"""")

_ROLE = re.compile(r"\s*-\s+'?([a-z]+)")

TYPED_INTO = frozenset({"textbox", "searchbox", "combobox", "spinbutton"})

ALIKE = 0.4  # least similarity of a name's spelling, from 0 to 1

_TEST_IDS = isolated_world.Script[list[str]](
    "(root) => Array.from(root.querySelectorAll('[data-testid]'), (each) => each.getAttribute('data-testid'))",
    list[str],
)

_DESCRIBE = isolated_world.Script[list[str]](
    r"""(elements, most) => elements.slice(0, most).map((element) => {
  const line = (text, length) => {
    const folded = (text ?? '').replace(/[\s\p{Co}]+/gu, ' ').trim();
    return folded.length > length ? folded.slice(0, length - 1) + '…' : folded;
  };
  const tag = element.tagName.toLowerCase();
  const marks = ['id', 'name', 'type', 'role', 'aria-label', 'data-testid', 'href']
    .filter((name) => element.getAttribute(name)).map((name) => ` ${name}="${line(element.getAttribute(name), 40)}"`);
  const around = element.closest('tr, li, [role=row], [role=listitem], article, fieldset, form, dialog, section');
  const text = line(element.innerText, 40);
  const near = around && around !== element ? line(around.innerText, 60) : '';
  return `<${tag}${marks.join('')}>${text}` + (near && near !== text ? ` in "${near}"` : '');
})""",
    list[str],
)


def goal(target: Target) -> str:
    """Return the text that identifies the target on the page; empty for css, xpath and a bare role."""
    return target.name or target.label or target.placeholder or target.text or target.alt or target.title or ""


def parse(snapshot: str) -> list[tuple[str, str]]:
    """Return role and name of every element of an accessibility snapshot whose name can be read, in order."""
    elements: list[tuple[str, str]] = []
    for line in snapshot.splitlines():
        if match := _LINE.match(line):
            name = tree.readable(re.sub(r"\\(.)", r"\1", match["name"]))
            if name:
                elements.append((match["role"], name.replace("''", "'") if match["quote"] else name))
    return elements


def ranked(target: Target, elements: list[tuple[str, str]]) -> list[str]:
    """Return at most five of ``elements`` as one-line targets, the most alike first, preferring the wanted role."""
    text = goal(target).casefold()
    scores: dict[str, float] = {}
    for role, name in elements:
        alike = difflib.SequenceMatcher(None, text, name.casefold()).ratio() if text else 0.0
        if alike >= ALIKE if text else role == target.role:
            score = alike + (0.25 if role == target.role else 0.0)
            [line] = _lines([(role, name)])
            scores[line] = max(score, scores.get(line, 0.0))
    return sorted(scores, key=lambda line: -scores[line])[:MOST]


def _lines(elements: list[tuple[str, str]]) -> list[str]:
    return [f'role={role} name="{short(name, 60)}"' for role, name in elements]


async def candidates(page: Page, target: Target, *, fills: bool = False) -> list[str]:
    """Return the elements of the page, or of the target's frame, most alike to the target: at most five one-line targets.

    Elements within the same row or card come first, and among them those of the wanted role, whatever their name. If it ``fills``,
    fields come first.
    """
    root = locators.document(page, target.frames).locator(":root")
    elements = parse(sound(await root.locator("body").aria_snapshot())) if fills else []
    same = [(role, name) for role, name in elements if role in TYPED_INTO]
    fields = ranked(target, same) + _lines(same)[:MOST_UNLIKE]
    return list(dict.fromkeys([*fields, *await _alike(page, target, root)]))[:MOST]


async def _alike(page: Page, target: Target, root: Locator) -> list[str]:
    if target.test_id is not None:
        known = await _TEST_IDS.of(root)
        alike = difflib.get_close_matches(target.test_id, dict.fromkeys(known), n=MOST, cutoff=0.5)
        return [f'test_id="{short(each, 60)}"' for each in alike]
    if target.css is not None or target.xpath is not None:
        way = "css" if target.css is not None else "xpath"
        return [f"{way}={each}" for each in (await nearest_selectors.alike(page, target))[:MOST]]
    if not goal(target) and target.role is None:
        return []
    snapshot = sound(await root.locator("body").aria_snapshot())
    found = [*await _called(page, target), *ranked(target, parse(snapshot))]
    if target.within is not None and locators.settled(target.within):
        around = locators.locator(page, target.within).first
        inside = parse(sound(await around.aria_snapshot()))
        same = [(role, name) for role, name in inside if role == target.role]
        # An element of that role in that place may be the right one, whatever its name.
        found = ranked(target, same) + _lines(same)[:MOST_UNLIKE] + ranked(target, inside) + found
    return found


async def _called(page: Page, target: Target) -> list[str]:
    """Return targets of elements that have a missing text as their title, description or label, each alone: an observation shows it so."""
    if target.text is None or not locators.settled(target):
        return []
    found: list[str] = []
    for field in ("title", "alt", "label"):
        other = {"text": None, "has_text": None, "nth": None, "exact": True, field: target.text}
        named = target.model_copy(update=other)
        if await locators.locator(page, named).count() == 1:
            found.append(str(named))
    return found[:1]


_IN_PLACE = isolated_world.Script[str](
    "(element) => {"
    + visibility.DRAWN
    + r"""
  if (drawn(element)) {
    if (!element.matches('input, select, textarea')) return '';
    // What takes the clicks of a field, if it is a part of the same control: around it, over it, or its label.
    const {x, y, width, height} = element.getBoundingClientRect();
    let hit = element.getRootNode().elementFromPoint(x + width / 2, y + height / 2);
    if (!hit && getComputedStyle(element).pointerEvents === 'none')
      for (hit = element.parentElement; hit && getComputedStyle(hit).pointerEvents === 'none';) hit = hit.parentElement;
    if (!hit || element.contains(hit)) return '';
    const label = hit.closest('label');
    let around = hit;
    while (around && !around.contains(element)) around = around.parentElement;
    const apart = !around || around.matches('td, form, fieldset, body, html') || around.querySelectorAll('input:not([type=hidden]), select, textarea').length > 1
      || around.getBoundingClientRect().height > 3 * height + 20;
    return around && (!apart || (label && label.control === element)) ? wayTo(element, hit) : '';
  }
  const PRESSED = 'button, a[href], summary, [role], [tabindex], [onclick]';
  const takes = (node) => drawn(node) && (node.matches(PRESSED) || getComputedStyle(node).cursor === 'pointer') && !node.querySelector('input, select, textarea');
  for (let node = element; node.parentElement && !node.matches('td, li, form, fieldset, body'); node = node.parentElement) {
    const around = node.parentElement;
    if (around.querySelectorAll('input, select, textarea').length > 1) break;
    const all = Array.from(around.children), place = all.indexOf(node);
    const found = [...all.slice(place + 1), ...all.slice(0, place).reverse()].flatMap((each) => [each, ...each.querySelectorAll('*')]).find(takes);
    if (found) return wayTo(element, found);
  }
  return '';
}""",
    str,
)
"""XPath from a field that is hidden, or takes no clicks, to what is pressed in its place; empty if it is neither, or nothing is."""


async def in_place(page: Page, found: Locator) -> str:
    """Return a target of what a person presses in place of a field that is hidden or covered by its own control; empty if there is none."""
    candidates: list[str] = []
    if way := await _IN_PLACE.of(found, milliseconds=1000):
        await distinguish(page, found.locator(way), candidates)
    return candidates[0] if candidates else ""


async def distinguish(page: Page, found: Locator, candidates: list[str]) -> None:
    """Add to ``candidates``, for at most five matching elements, a target that finds only that one.

    If only its index does, or nothing, the line describes the element and its row or card.
    """
    candidates += await _DESCRIBE.of_all(found, MOST)

    async def improve(number: int) -> None:
        one, words = found.nth(number), candidates[number]
        handle = await one.element_handle()
        try:
            snapshot = sound(await one.aria_snapshot())
            role = _ROLE.match(snapshot)
            name = next((name for _role, name in parse(snapshot.partition("\n")[0])), "")
            element = await pointed.of(page, handle)
            with contextlib.suppress(SiteError):
                target = await targets.target_of(element, role[1] if role else "", name, lambda _text: True)
                candidates[number] = f"{target}  {words}" if target.nth is not None else str(target)
        finally:
            await handle.dispose()

    await asyncio.gather(*map(improve, range(len(candidates))))
