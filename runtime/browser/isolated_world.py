"""Runs our JavaScript in pages, in an isolated world, and validates its answers.

A page may replace built-ins, such as ``Array.prototype.push``, and ``Page.evaluate`` would use the replacements. A selector
engine that is registered as a content script runs in a world with the original built-ins. So such an engine runs our script,
and returns the answer as the text of an element outside any document.
"""

from __future__ import annotations

import base64
import itertools
import json
from typing import Any, Generic, TypeVar

import pydantic
from playwright.async_api import ElementHandle, Error, Frame, Locator, Page

from nodes.errors import SiteError
from nodes.values import Json, sound_json
from runtime.browser import playwright_errors

Answer = TypeVar("Answer")

MILLISECONDS = 30_000.0  # default milliseconds that a page may take to answer

ANOTHER_SHAPE = "it answers in another shape than it was asked for"

NAME, KEEP = "runops-ask", "runops-keep"

ENGINE = """(() => {
  const compiled = new Map(), started = new Map();
  const told = (answer) => {
    const element = Document.prototype.createElement.call(document, 'i');
    element.textContent = JSON.stringify(answer);
    return [element];
  };
  const failed = (error) => ({error: String(error && error.message || error).slice(0, 300), syntax: error instanceof DOMException && error.name === 'SyntaxError'});
  const function_of = (source) => {
    if (!compiled.has(source)) compiled.set(source, (0, eval)(`(${source})`));
    return compiled.get(source);
  };
  const queryAll = (root, body) => {
    const kept = globalThis._runopsKept || [];
    globalThis._runopsKept = [];
    const {number, source, of, argument, held} = JSON.parse(atob(body));
    if (started.has(number)) {
      const [over, answer] = started.get(number);
      if (!over) return [];
      started.delete(number);
      return told(answer);
    }
    try {
      const given = held === null ? argument : (globalThis._runopsHeld || new Map()).get(held) ?? null;
      const found = of === 'page' ? function_of(source)(given) : function_of(source)(of === 'all' ? kept : root, given);
      if (!(found instanceof Promise)) return told({value: found ?? null});
      const wait = [false, null];
      started.set(number, wait);
      found.then((value) => ({value: value ?? null}), failed).then((answer) => { wait[0] = true; wait[1] = answer; });
      return [];
    } catch (error) {
      return told(failed(error));
    }
  };
  return {query: (root, body) => queryAll(root, body)[0] ?? null, queryAll};
})()"""
"""Playwright selector engine that runs a script (base64 of JSON) and returns an element with its answer; none until a promise settles."""

KEEPER = """({
  query: () => null,
  queryAll(root) {
    (globalThis._runopsKept ||= []).push(root);
    return [];
  },
})"""
"""Playwright selector engine that passes all elements matched before it to the script that runs next."""

_HOLD = "(element, name) => { (globalThis._runopsHeld ||= new Map()).set(name, element); }"

_FRAMED = "internal:control=enter-frame"

_numbers = itertools.count(1)


class Script(Generic[Answer]):
    """JavaScript function with the type of its answer.

    Raises SiteError ``page-unreadable`` if the script fails on the page or answers with another type. Raises Playwright's
    Error if the page is gone or silent, lacks the element, or finds a selector invalid. Half a surrogate pair becomes U+FFFD.
    """

    def __init__(self, source: str, shape: Any) -> None:
        self._source = source
        self._shape: pydantic.TypeAdapter[Answer] = pydantic.TypeAdapter(shape)

    async def on(self, where: Page | Frame, argument: Json = None, *, milliseconds: float = MILLISECONDS) -> Answer:
        asked = where.locator(self._asked("page", argument))
        return self._answer(await asked.text_content(timeout=milliseconds), where.url)

    async def of(self, found: Locator, argument: Json = None, *, milliseconds: float = MILLISECONDS) -> Answer:
        """Wait for the one matching element, call the function with it and ``argument``, and return the answer."""
        asked = found.locator(self._asked("one", argument))
        return self._answer(await asked.text_content(timeout=milliseconds), found.page.url)

    async def of_all(
        self, found: Locator, argument: Json = None, *, held: str | None = None, milliseconds: float = MILLISECONDS
    ) -> Answer:
        """Call the function with the elements that match now, and with ``argument`` or the ``held`` element; return the answer."""
        asked = found.page.locator(self._asked("all", argument, held))
        # A missing frame would be waited for; it counts as one without elements.
        if _FRAMED not in repr(found) or await found.count():
            asked = found.locator(f"{KEEP}=all").or_(asked)
        return self._answer(await asked.text_content(timeout=milliseconds), found.page.url)

    async def at(self, handle: ElementHandle, argument: Json = None) -> Answer:
        """Call the function with this element and ``argument``, and return its answer. It must not return a promise."""
        element = await handle.query_selector(self._asked("one", argument))
        try:
            return self._answer(await element.text_content() if element is not None else None, "")
        finally:
            if element is not None:
                await element.dispose()

    def _asked(self, of: str, argument: Json, held: str | None = None) -> str:
        asked = {"number": next(_numbers), "source": self._source, "of": of, "argument": argument, "held": held}
        return f"{NAME}={base64.b64encode(json.dumps(asked).encode()).decode()}"

    def _answer(self, text: str | None, url: str) -> Answer:
        try:
            answer = json.loads(text or "")
            if answer.get("syntax"):
                raise Error(str(answer["error"]))
            if "error" in answer:
                raise unreadable(str(answer["error"]), url)
            return self._shape.validate_python(sound_json(answer["value"]))
        except (ValueError, TypeError, KeyError, RecursionError):
            raise unreadable(ANOTHER_SHAPE, url) from None


async def hold(handle: ElementHandle) -> str:
    """Keep an element in the world of our scripts; return its name there."""
    name = str(next(_numbers))
    await Script[None](_HOLD, None).at(handle, name)
    return name


def unreadable(why: str, url: str) -> SiteError:
    return SiteError(
        "page-unreadable",
        f"the page cannot be read: {playwright_errors.short(why, 200)}",
        fix="the page's scripts or element names may replace built-in functions: load another page, or skip this one with `on_error`",
        evidence={"page": url} if url else None,
    )
