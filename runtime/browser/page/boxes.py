"""Finds what a person clicks of a field that takes no clicks itself: libraries draw a box in its label, and put a part of its control in the place of others."""

from __future__ import annotations

import asyncio

from playwright.async_api import Locator

from nodes.targets import Target
from runtime.browser import isolated_world
from runtime.browser.deadline import Deadline
from runtime.browser.elements import visibility
from runtime.observation.tree import FIELDS

ROLES = frozenset({"checkbox", "radio", "switch"}) | FIELDS

PAUSE = 0.05
LEFT_SECONDS = 1.0  # seconds that are left for the action when the wait for a label ends

_SHOWN = isolated_world.Script[str | None](
    "(input) => {"
    + visibility.DRAWN
    + """
  const around = (field) => {
    if (!field.matches('input, select, textarea') || field.matches(':disabled')) return '';
    if (!drawn(field)) return null;
    const {left, top, width, height} = field.getBoundingClientRect();
    const hit = field.getRootNode().elementFromPoint(left + width / 2, top + height / 2);
    if (!hit || field.contains(hit)) return '';
    const larger = () => hit.matches('td, form, fieldset, body, html') || hit.getBoundingClientRect().height > 3 * height + 20;
    // A click on that part is one on its middle, where nothing else may take it.
    const box = hit.getBoundingClientRect(), middle = field.getRootNode().elementFromPoint(box.left + box.width / 2, box.top + box.height / 2);
    const other = middle !== hit && !(middle && middle.contains(field));
    return hit.contains(field) && !larger() && !other && hit.querySelectorAll('input:not([type=hidden]), select, textarea').length < 2 ? wayTo(field, hit) : null;
  };
  if (!(input instanceof HTMLInputElement) || !['checkbox', 'radio'].includes(input.type)) return around(input);
  const up = (node) => node.assignedSlot || node.parentElement || node.getRootNode().host;
  const has = (around, node) => { for (; node; node = up(node)) if (node === around) return true; return false; };
  const labels = Array.from(input.labels || []).sort((one, other) => other.contains(input) - one.contains(input));
  if (drawn(input)) {
    const top = () => {
      const {left, top, width, height} = input.getBoundingClientRect();
      return input.getRootNode().elementFromPoint(left + width / 2, top + height / 2);
    };
    if (!top()) input.scrollIntoView({block: 'center', inline: 'center', behavior: 'instant'});
    const over = top();
    if (!over || over === input || !labels.some((each) => has(each, over))) return '';
  }
  // A press on these is their own.
  const PRESSED = 'a[href], button, input, select, textarea, summary, [role=button], [role=link]';
  const takes = (node) => drawn(node) && node.checkVisibility({opacityProperty: true}) && !node.matches(PRESSED);
  const free = (node) => takes(node) && !node.querySelector(PRESSED);
  const within = (label) => {
    for (let node = input; node !== label; node = node.parentElement) {
      const all = Array.from(node.parentElement.children), place = all.indexOf(node);
      const beside = [...all.slice(place + 1), ...all.slice(0, place).reverse()].find(free);
      if (beside) return beside;
    }
    return null;
  };
  const others = (label) => Array.from(label.querySelectorAll(PRESSED)).some((each) => each !== input);
  const outside = (label) => Array.from(label.querySelectorAll('*')).find(free);
  const of = (label) => (label.contains(input) && within(label)) || (!others(label) ? (takes(label) ? label : null) : outside(label)) || null;
  const found = labels.map(of).find(Boolean);
  if (!found) return labels.length && !drawn(input) ? null : '';
  return wayTo(input, found);
}""",
    str | None,
)
"""XPath from an input to what is seen in its place; empty if a click on the input itself will do, None if neither is seen yet."""


def may_be(target: Target) -> bool:
    """Return whether the target may be a field, as far as its words tell."""
    return target.role in ROLES or bool(target.label or target.placeholder) or "input" in (target.css or "")


async def seen(found: Locator, deadline: Deadline) -> Locator | None:
    """Return what takes a click in place of a field now: the field itself or a part of its control; None if nothing of it does."""
    way = await _SHOWN.of(found, milliseconds=deadline.milliseconds())
    return None if way is None else found.locator(way) if way else found


async def shown(found: Locator, deadline: Deadline) -> Locator:
    """Return what takes a click in place of the input: the input itself, its label, the control that is drawn in that, or the one around it."""
    place = await seen(found, deadline)
    while place is None and deadline.left() > LEFT_SECONDS:
        await asyncio.sleep(PAUSE)
        place = await seen(found, deadline)
    return place or found
