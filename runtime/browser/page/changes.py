"""Tells whether an action changed anything: the page, its address, a value, the focus, or what it asks of the site.

It says that nothing changed only where that is sure. What is drawn on a canvas, played, shown in a frame or in a shadow tree,
or shown by a style sheet alone is not seen here, so a page with any of these is never said to be unchanged.
"""

from __future__ import annotations

import asyncio
import dataclasses

from playwright.async_api import Error, Page

from nodes.errors import RunOpsError
from runtime.browser import isolated_world
from runtime.browser.dialogs import Dialogs
from runtime.browser.run_pages import RunPages

WAIT_SECONDS = 0.3  # seconds that a page may take to begin to change
ANSWER_SECONDS = 1.0  # seconds that a page may take to answer beyond that

KEEP_SECONDS = 5.0  # seconds after a rest during which elements that go are remembered, for the look that follows

OBSERVED = """
  let rest = globalThis._runopsRest;
  if (!rest) {
    rest = globalThis._runopsRest = {changed: performance.now(), gone: null, since: 0};
    new MutationObserver((records) => {
      rest.changed = performance.now();
      // What goes while the page is looked at; if nobody looks, none of it is kept.
      if (rest.gone && rest.changed - rest.since > KEEP) rest.gone = null;
      if (rest.gone) rest.gone.push(...records.flatMap((record) => Array.from(record.removedNodes)).filter((node) => node.nodeType === Node.ELEMENT_NODE));
    }).observe(document, {subtree: true, childList: true, attributes: true, characterData: true});
  }
""".replace("KEEP", str(1000 * KEEP_SECONDS))
"""JavaScript: ``rest.changed`` is the time of the document's last change. It is kept in our world, from one question to the next."""

_STATE = """
  const state = (keys) => {
    let active = document.activeElement;
    const edits = (each) => each && (/^(INPUT|TEXTAREA|SELECT)$/.test(each.tagName) || each.isContentEditable);
    const picked = getSelection(), shows = edits(active) || !picked.isCollapsed;
    const fields = Array.from(document.querySelectorAll('input, textarea, select'), (each) =>
      each.tagName === 'SELECT' ? Array.from(each.selectedOptions, (one) => one.index).join() : `${each.checked}${each.indeterminate}${each.value}`);
    const caret = /^(INPUT|TEXTAREA)$/.test(active?.tagName) ? [active.selectionStart, active.selectionEnd] : [];
    // A mouse gives the focus to any button that it presses, and that alone is nothing.
    const moved = keys || edits(active) || (rest.pressed && active && !active.contains(rest.pressed));
    // Animations of style sheets only follow the mouse.
    const animated = document.getAnimations().filter((each) => each.constructor === Animation).length;
    return [location.href, history.length, document.title, document.fullscreenElement, animated, moved ? active : null,
      ...(shows ? [picked.anchorNode, picked.anchorOffset, picked.focusNode, picked.focusOffset] : []), ...caret, fields.join('\\n')];
  };
"""

_MARK = isolated_world.Script[None](
    "(keys) => {"
    + OBSERVED
    + _STATE
    + """
  if (!rest.listens) {
    rest.listens = true;
    window.addEventListener('mousedown', (event) => { rest.pressed = event.target; }, {capture: true, passive: true});
    for (const type of ['input', 'change', 'reset', 'scroll', 'toggle', 'cancel', 'close', 'fullscreenchange', 'copy', 'cut', 'paste'])
      window.addEventListener(type, () => { rest.heard = performance.now(); }, {capture: true, passive: true});
  }
  rest.mark = {changed: rest.changed, heard: rest.heard, keys, state: state(keys)};
}""",
    None,
)

_UNCHANGED = isolated_world.Script[bool](
    "(wait) => {"
    + _STATE
    + r"""
  const rest = globalThis._runopsRest, mark = rest?.mark;
  if (!mark) return false;
  rest.mark = null;
  const changed = () => {
    if (rest.changed !== mark.changed || rest.heard !== mark.heard) return true;
    const now = state(mark.keys);
    return now.length !== mark.state.length || now.some((each, number) => each !== mark.state[number]);
  };
  const unseen = () => {
    if (document.querySelector('canvas, video, audio, iframe, frame, object, embed, input[type=file]')) return true;
    return Array.prototype.some.call(document.getElementsByTagName('*'), (each) => each.shadowRoot || each.localName.includes('-'));
  };
  const SHOWS = ['display', 'visibility', 'height', 'max-height', 'content'];
  const ELSEWHERE = [...SHOWS, 'opacity', 'width', 'max-width', 'transform', 'clip', 'clip-path', 'left', 'right', 'top', 'bottom', 'z-index'];
  // What a style sheet shows while the mouse is over an element, or while it has the focus.
  const styled = (rules) => Array.prototype.some.call(rules, (rule) => {
    if (rule.cssRules?.length && styled(rule.cssRules)) return true;
    if (!rule.selectorText || !/:(hover|focus|active|target)/.test(rule.selectorText)) return false;
    return rule.selectorText.split(/,(?![^(]*\))/).some((each) => {
      const part = /:(?:hover|focus|active|target)[\w-]*(.*)$/.exec(each);
      const element = each.replace(/::?(before|after)\s*$/, '');
      const far = part && (element !== each || /[\s>+~]\s*\S/.test(part[1].trim()) || /^[\s>+~]/.test(part[1]));
      if (!part || !(far ? ELSEWHERE : SHOWS).some((name) => rule.style.getPropertyValue(name))) return false;
      try { return document.querySelector(element) !== null; } catch { return true; }
    });
  });
  const shown = () => {
    // Style sheets of other origins may not be read.
    try { return [...document.styleSheets, ...document.adoptedStyleSheets].some((sheet) => styled(sheet.cssRules)); } catch { return true; }
  };
  if (changed() || unseen() || shown()) return false;
  const began = performance.now();
  return new Promise((done) => {
    const look = () => {
      if (changed()) done(false);
      else if (performance.now() - began >= wait) done(true);
      else setTimeout(look, 30);
    };
    look();
  });
}""",
    bool,
)


@dataclasses.dataclass(slots=True)
class _Before:
    page: Page
    requests: int
    tabs: int
    dialogs: int


class Changes:
    """What one tab shows, before an action and after it."""

    def __init__(self, run: RunPages, dialogs: Dialogs) -> None:
        self._run = run
        self._dialogs = dialogs
        self._before: _Before | None = None
        self._talks = False  # true if the document talks with the site by a socket

    def watch(self, page: Page) -> None:
        page.on("websocket", self._connected)

    def new_document(self) -> None:
        self._talks = False

    def _connected(self, _socket: object) -> None:
        self._talks = True

    async def begin(self, page: Page, *, keys: bool) -> None:
        """Remember what the page shows. ``keys``: also which element has the focus, whatever it is."""
        self._before = None
        if self._talks:
            return
        before = self._outside(page)
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                await _MARK.on(page, keys)
        except (Error, TimeoutError, RunOpsError):
            return
        self._before = before

    async def none(self) -> bool:
        """Return True if it is sure that nothing changed since ``begin``; wait a moment for that. False without a ``begin`` since the last call."""
        before, self._before = self._before, None
        if before is None or self._other(before):
            return False
        try:
            async with asyncio.timeout(WAIT_SECONDS + ANSWER_SECONDS):
                unchanged = await _UNCHANGED.on(before.page, 1000 * WAIT_SECONDS)
        except (Error, TimeoutError, RunOpsError):
            return False
        return unchanged and not self._other(before)

    def _other(self, before: _Before) -> bool:
        """Return True if something happened outside the document."""
        if before.page.is_closed() or self._talks:
            return True
        return self._outside(before.page) != before

    def _outside(self, page: Page) -> _Before:
        return _Before(page, self._run.answers.requests, len(page.context.pages), self._dialogs.appeared_so_far)
