"""Selecting, copying and pasting text in a page. The clipboard is the workflow's own: that of the machine stays as it is."""

from __future__ import annotations

from typing import Any

from playwright.async_api import Locator

from nodes.errors import SiteError
from nodes.pointer import STEPS
from nodes.targets import Target
from runtime.browser import isolated_world
from runtime.browser.page.pointer import PAGE, Pointer

EDITOR_SECONDS = 0.15  # seconds for an editor to see what is selected in it

_FIELD = r"""
  // A browser tells nothing of a selection in these, and selects them as a whole only.
  const whole = (field) => field.type === 'email' || field.type === 'number';
  const typed = (element) => element?.matches('input, textarea') && (element.selectionStart !== null || whole(element)) ? element : null;
  const field_of = (element) => typed(element instanceof HTMLLabelElement ? element.control : element);
"""

_PARTS = r"""
  // The text as a person sees it, blanks folded, and for each character the text node and place that it stands at.
  const seen_text = (element) => {
    const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
    const block = (node) => {
      let at = node.parentElement;
      while (at !== element && getComputedStyle(at).display.startsWith('inline')) at = at.parentElement;
      return at;
    };
    let text = '', before = null;
    const places = [];
    const add = (letter, node, offset) => { text += letter; places.push([node, offset]); };
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
      if (!node.parentElement.checkVisibility({visibilityProperty: true})) continue;
      const pre = getComputedStyle(node.parentElement).whiteSpace.startsWith('pre'), own = block(node);
      if (before && own !== before && !text.endsWith(' ') && text) add(' ', node, 0);
      before = own;
      for (let offset = 0; offset < node.data.length; offset++) {
        const letter = /\s/.test(node.data[offset]) ? ' ' : node.data[offset];
        if (letter !== ' ' || pre || (text && !text.endsWith(' '))) add(letter, node, offset);
      }
    }
    return [text, places];
  };
  const folded = (text) => text.replace(/\s+/g, ' ').trim();
  // From where to where, in a text; null if a part of it is not there.
  const span = (text, {text: whole, start, end}) => {
    if (whole !== null) {
      const from = text.indexOf(whole);
      return from < 0 ? null : [from, from + whole.length];
    }
    const from = start === null ? 0 : text.indexOf(start);
    if (from < 0) return null;
    if (end === null) return [from, text.trimEnd().length];
    const to = text.indexOf(end, from + (start === end ? start.length : 0));
    return to < 0 ? null : [from, to + end.length];
  };
"""

_SELECT = isolated_world.Script[Any](
    "(element, wanted) => {"
    + _FIELD
    + _PARTS
    + r"""
  const field = field_of(element);
  if (field && whole(field)) {
    if (wanted.text !== null || wanted.start !== null) return {missing: field.value.slice(0, 300), whole: true};
    field.focus();
    field.select();
    return {selected: field.value};
  }
  if (field) {
    const found = span(field.value, wanted);
    if (!found) return {missing: field.type === 'password' ? '' : field.value.slice(0, 300)};
    field.focus();
    field.setSelectionRange(...found);
    return {selected: field.value.slice(...found)};
  }
  const [text, places] = seen_text(element);
  const found = span(text, Object.fromEntries(Object.entries(wanted).map(([name, each]) => [name, each === null ? null : folded(each)])));
  if (!found || found[0] === found[1]) return {missing: text.slice(0, 300)};
  const range = document.createRange(), last = places[found[1] - 1];
  range.setStart(...places[found[0]]);
  range.setEnd(last[0], last[1] + 1);
  (range.startContainer.parentElement ?? element).scrollIntoViewIfNeeded?.();
  const box = element.getBoundingClientRect(), rects = [...range.getClientRects()].filter((each) => each.width && each.height);
  const here = (x, y) => [x - box.left, y - box.top];
  (globalThis._runopsRange ||= new WeakMap()).set(element, range);
  if (!rects.length) return {missing: text.slice(0, 300)};
  const one = rects[0], end = rects.at(-1);
  return {from: here(one.left + 0.5, one.top + one.height / 2), to: here(end.right - 0.5, end.top + end.height / 2)};
}""",
    Any,
)

_UNHEARD = isolated_world.Script[None](
    """(element, left) => {
  const over = new AbortController(), heard = {capture: true, signal: over.signal};
  globalThis._runopsUnheard?.abort();
  globalThis._runopsUnheard = over;
  let presses = 0;
  const window = element.ownerDocument.defaultView;
  window.addEventListener('pointerdown', () => { if (++presses > 1) over.abort(); }, heard);
  window.addEventListener('click', (event) => {
    // Clicks of keys and scripts have no number.
    if (!event.isTrusted || !event.detail) return;
    event.stopImmediatePropagation();
    event.preventDefault();
    over.abort();
  }, heard);
  setTimeout(() => over.abort(), left);
}""",
    None,
)
"""Keeps the click from the page that the next press of the mouse makes, until ``_EXACT``, the press after that, or the end of the step."""

_EXACT = isolated_world.Script[str](
    """async (element, wait) => {
  globalThis._runopsUnheard?.abort();
  const range = globalThis._runopsRange?.get(element), selection = element.ownerDocument.getSelection();
  if (range) {
    const now = selection.rangeCount ? selection.getRangeAt(0) : null;
    const same = now && now.toString() === range.toString();
    if (!same) selection.setBaseAndExtent(range.startContainer, range.startOffset, range.endContainer, range.endOffset);
    globalThis._runopsRange.delete(element);
  }
  const text = selection.toString(), edits = (node) => (node instanceof Element ? node : node?.parentElement)?.isContentEditable;
  // An editor looks a tenth of a second later at what is selected, and its buttons work on that.
  if (edits(element) || edits(selection.anchorNode)) await new Promise((seen) => setTimeout(seen, wait));
  return text;
}""",
    str,
)
"""Makes the selection exact: a page may have pulled at an element in place of its text, or have taken half a character."""

_ALL = isolated_world.Script[None](
    "(element) => {"
    + _FIELD
    + """
  const field = field_of(element);
  if (field) { field.focus(); field.select(); }
  else {
    document.activeElement?.blur();
    document.getSelection().selectAllChildren(element);
  }
}""",
    None,
)

_COPY = isolated_world.Script[str | None](
    """() => {
  const active = document.activeElement;
  if (!document.hasFocus() || active?.matches('iframe, frame')) return null;
  const field = active?.matches('input, textarea') && active.selectionStart !== null ? active : null;
  const selection = document.getSelection();
  const text = !field ? selection.toString() : field.type === 'password' ? '' : field.value.slice(field.selectionStart, field.selectionEnd);
  const anchor = selection.anchorNode;
  const from = field ?? (anchor instanceof Element ? anchor : anchor?.parentElement) ?? active ?? document.body;
  const data = new DataTransfer();
  const event = new ClipboardEvent('copy', {clipboardData: data, bubbles: true, cancelable: true});
  return from.dispatchEvent(event) ? text : data.getData('text/plain');
}""",
    str | None,
)

_PASTE = isolated_world.Script[bool | None](
    """(text) => {
  const active = document.activeElement;
  if (!document.hasFocus() || active?.matches('iframe, frame')) return null;
  const data = new DataTransfer();
  data.setData('text/plain', text);
  const event = new ClipboardEvent('paste', {clipboardData: data, bubbles: true, cancelable: true});
  return (active ?? document.body).dispatchEvent(event);
}""",
    bool | None,
)
"""Tells the page that a text is pasted; false if the page has taken it itself, null if the focus is in another frame."""


class SelectedText(Pointer):
    async def select_text(self, target: Target, text: str | None, start: str | None, end: str | None) -> str:
        target, found = await self._found(target)
        wanted: dict[str, Any] = {"text": text, "start": start, "end": end}
        async with self._asking(target):
            place = await _SELECT.of(found, wanted, milliseconds=self._deadline.milliseconds())
        if "missing" in place:
            message, fix = f"{target} does not have this text", "write the text as the page shows it, letter by letter"
            if text is None and start is None:
                message, fix = (
                    f"{target} has no text",
                    "point at what shows text; `query: value` reads what a field holds",
                )
            elif "whole" in place:
                message = f"{target} is a field that can be selected only as a whole"
                fix = "leave `text` and `from` out"
            raise SiteError(
                "text-not-found",
                message,
                fix=fix,
                evidence={"wanted": text or start, "to": end, "seen": place["missing"]},
            )
        if "selected" in place:
            return str(place["selected"])
        box = await found.bounding_box(timeout=self._deadline.milliseconds())
        left, top = (box["x"], box["y"]) if box else (0, 0)

        async def select(_found: object, _timeout: float) -> str:
            mouse = self.page.mouse
            await mouse.move(left + place["from"][0], top + place["from"][1])
            milliseconds = self._deadline.milliseconds()
            await _UNHEARD.of(found, milliseconds, milliseconds=milliseconds)
            await mouse.down()
            try:
                await mouse.move(left + place["to"][0], top + place["to"][1], steps=STEPS)
            finally:
                await mouse.up()
            return await _EXACT.of(found, 1000 * EDITOR_SECONDS, milliseconds=self._deadline.milliseconds())

        return await self._do(target, select, sends=True) or ""

    async def copy(self, target: Target | None) -> str:
        if target is not None:
            target, found = await self._found(target)
            async with self._asking(target):
                await _ALL.of(found, milliseconds=self._deadline.milliseconds())
        async with self._asking(target, "after"):
            for frame in self.page.frames:
                if text := await _COPY.on(frame, milliseconds=self._deadline.milliseconds()):
                    return text
        raise SiteError(
            "nothing-selected",
            "nothing is selected that could be copied",
            fix="select it first with `select_text`, or name the field or element by `target`",
            phase="after",
            evidence={"page": self.page.url},
        )

    async def paste(self, target: Target | None, text: str, *, secret: bool = False) -> None:
        await self._refill_changed()
        if target is not None:
            target = await self._attached(target)
        self._secret_begins(secret=secret)

        async def put(found: Locator, timeout: float) -> None:  # noqa: ASYNC109 - it is Playwright's
            if target is not None:
                await found.focus(timeout=timeout)
            # Playwright's messages may quote what a script is given, so a page hears of no secret before it has it.
            if secret or await self._pastes(text):
                await self.page.keyboard.insert_text(text)

        await self._do(target or PAGE, put, sends=True)

    async def _pastes(self, text: str) -> bool:
        """Tell the page of the text; return False if it has taken the text itself."""
        for frame in self.page.frames:
            wanted = await _PASTE.on(frame, text, milliseconds=self._deadline.milliseconds())
            if wanted is not None:
                return wanted
        return True
