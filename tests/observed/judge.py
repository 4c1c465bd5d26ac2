"""A judgment of its own on what a page shows: which elements one can act on, and what may not be folded away. It shares nothing with the code."""

from __future__ import annotations

import dataclasses
from typing import Any

from playwright.async_api import Page

# Each element that one can act on gets a number that no assistive program is told.
PROBE = """([selector, runs, first]) => {
  const all = (root) => Array.from(root.querySelectorAll('*')).flatMap((each) => [each, ...(each.shadowRoot ? all(each.shadowRoot) : [])]);
  const shown = (each) => {
    const box = each.getBoundingClientRect();
    return each.checkVisibility({visibilityProperty: true}) && box.width > 0 && box.height > 0;
  };
  const said = (each) => (each.innerText || '').replace(/\\s+/g, ' ').trim();
  const found = all(document).filter(shown);
  const probes = found.filter((each) => each.matches(selector));
  probes.forEach((each, number) => each.setAttribute('data-probe', String(first + number)));
  const wrong = (each) => (each.getAttribute('aria-describedby') || '').split(/\\s+/)
    .map((id) => id && document.getElementById(id)).filter(Boolean).map(said);
  return {
    probes: probes.map((each, number) => ({number: first + number, inRun: runs !== '' && each.closest(runs) !== null})),
    loud: [
      ...found.filter((each) => each.matches('h1, h2, h3, h4, h5, h6, [role=heading], [role=alert]')).map(said),
      ...found.filter((each) => each.matches('[aria-invalid=true]')).flatMap(wrong),
      ...found.filter((each) => each.matches('dialog[open], [role=dialog]')).map((each) => said(each).slice(0, 20)),
    ].filter(Boolean),
  };
}"""

ACTING = ", ".join((
    "a[href]", "button", "input:not([type=hidden])", "select", "textarea", "summary", "[onclick]", "[contenteditable]",
    *(f"[role={role}]" for role in ("button", "link", "checkbox", "radio", "switch", "tab", "menuitem", "option", "combobox", "textbox", "slider")),
))  # fmt: skip


@dataclasses.dataclass(frozen=True, slots=True)
class Judged:
    """What a page shows."""

    probes: frozenset[int]
    """The numbers of all elements that one can act on."""
    in_runs: frozenset[int]
    """Of those, the ones in rows that are alike."""
    loud: tuple[str, ...]
    """Texts of headings, alerts, dialogs and field errors."""


async def judged(page: Page, runs: str) -> Judged:
    """Number the elements of all frames, and tell what there is; ``runs`` is the CSS of rows that may be folded."""
    probes: dict[int, bool] = {}
    loud: list[str] = []
    for frame in page.frames:
        told: dict[str, Any] = await frame.evaluate(PROBE, [ACTING, runs, len(probes)])
        probes |= {each["number"]: each["inRun"] for each in told["probes"]}
        loud += told["loud"]
    return Judged(frozenset(probes), frozenset(number for number, among in probes.items() if among), tuple(loud))
