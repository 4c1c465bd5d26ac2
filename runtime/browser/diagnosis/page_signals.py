"""Signals of a page at a glance: its status, alerts, what covers it, and if it asks for a password.

They are evidence for diagnosing a failure, read at once without waiting.
"""

from __future__ import annotations

from playwright.async_api import Page

from nodes.values import Json
from runtime.browser import isolated_world

_SIGNS = isolated_world.Script[dict[str, Json]](
    r"""() => {
  const line = (text, length) => {
    const folded = (text ?? '').replace(/\s+/g, ' ').trim();
    return folded.length > length ? folded.slice(0, length - 1) + '…' : folded;
  };
  const seen = (element) => element.checkVisibility({checkOpacity: true, checkVisibilityCSS: true}) && element.getClientRects().length > 0;
  const all = (css) => Array.from(document.querySelectorAll(css)).filter(seen);
  const loaded = performance.getEntriesByType('navigation')[0];
  const called = all('[role=alert], [aria-live=assertive]').map((each) => line(each.innerText, 200)).filter(Boolean);
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


async def of(page: Page) -> dict[str, Json]:
    """Return ``status`` of the document, its ``alert`` and ``headings``, ``password`` (a password field is shown), ``front``, ``busy``.

    ``front`` covers the page: its ``role``, ``name`` and ``text``, and ``modal`` if it is a dialog; null if nothing does.
    """
    return await _SIGNS.on(page)
