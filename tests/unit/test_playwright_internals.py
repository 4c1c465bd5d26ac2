"""Private names and wording of the installed Playwright that RunOps relies on and Playwright does not promise."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import playwright
import pytest
from playwright._impl import (
    _async_base,
    _impl_to_api_mapping,
    _sync_base,
    browser_context,
    channel_owner,
    event_emitter,
    frame,
    network,
)
from playwright._impl import transport as transports
from playwright.async_api import Page, Request

from runtime.browser import lent, playwright_errors, playwright_internals, shared
from runtime.browser.elements import selectors
from runtime.browser.options import BrowserOptions, Geolocation

ROOT = Path(__file__).parents[2]
PACKAGE = Path(playwright.__file__).parent
DRIVER = (PACKAGE / "driver/package/lib/coreBundle.js").read_text(encoding="utf-8")
CLIENT = "\n".join(each.read_text(encoding="utf-8") for each in sorted((PACKAGE / "_impl").glob("*.py")))


def test_a_public_object_has_its_private_one() -> None:
    """Every public object is made with the private one, and keeps it as `_impl_obj`."""
    base: Any = Page.__mro__[-2]
    assert issubclass(Request, base)
    assert issubclass(Page, base)
    assert "self._impl_obj = " in inspect.getsource(inspect.getmodule(base) or base)


def test_a_frame_emits_its_documents() -> None:
    """A frame's emitter emits `navigated` with the driver's event: the document with its request, the error and the address."""
    source = inspect.getsource(frame)
    assert "self._event_emitter = EventEmitter()" in source
    assert 'self._event_emitter.emit("navigated", event)' in source
    assert {"on", "remove_listener"} <= set(dir(event_emitter.EventEmitter))
    event = DRIVER.split("scheme.FrameNavigatedEvent = tObject({")[1].split("});")[0]
    assert [
        each in event for each in ("url: tString", "newDocument: tOptional", "request: tOptional", "error: tOptional")
    ] == [True] * 4


def test_a_channel_has_its_object() -> None:
    """A request arrives from the driver as a channel that has the request as `_object`, with its method."""
    assert "self._object = object" in inspect.getsource(channel_owner)
    assert isinstance(inspect.getattr_static(network.Request, "method"), property)


def test_a_driver_is_started_by_the_event_loop() -> None:
    """Playwright starts its driver through asyncio, with the argument by which RunOps recognizes its command line."""
    source = inspect.getsource(transports)
    assert f'"{playwright_internals.DRIVER}"' in source
    assert "await asyncio.create_subprocess_exec(" in source


def test_the_driver_keeps_refs_in_elements() -> None:
    """The snapshot writes each ref into its element, where the selector engine of RunOps reads it."""
    assert f"element.{playwright_internals.ARIA_REF} = ariaRef" in DRIVER
    assert "ref: (" in DRIVER.split("ariaRef = {")[1].split("}")[0]
    assert f".{playwright_internals.ARIA_REF}.ref" in selectors.ENGINE


def test_private_names_are_in_one_module() -> None:
    """No other module uses private names of Playwright."""
    private = re.compile(r"\b_impl_obj\b|\b_event_emitter\b|(?<!self)\._object\b|playwright\._impl|\bsubprocess_exec\b")
    files = [each for folder in ("runtime", "director", "nodes") for each in (ROOT / folder).rglob("*.py")]
    found = [each.name for each in files if private.search(each.read_text(encoding="utf-8"))]
    assert found == [Path(playwright_internals.__file__).name]


WORDING = [
    ('Timeout 9ms exceeded while waiting for event "filechooser"', 'ms exceeded while waiting for event "{event}"'),
    ("Timeout 9ms exceeded.", "`Timeout ${timeout}ms exceeded.`"),
    ("Target crashed ", '"Target crashed "'),
    ("Page crashed", 'TargetClosedError("Page crashed")'),
    ("has been closed", '"Target page, context or browser has been closed"'),
    ("Connection closed", "Connection closed"),
    ("Browser closed", '"Browser closed"'),
    ("strict mode violation: ", "`strict mode violation: ${"),
    (" while parsing css selector", " while parsing css selector"),
    ('Unknown engine "x" while parsing', '`Unknown engine "${'),
    ("Frame was detached", '"Frame was detached"'),
    (
        "Execution context was destroyed, most likely because of a navigation",
        '"Execution context was destroyed, most likely because of a navigation"',
    ),
    ("waiting for get_by_role()", "`waiting for ${this._asLocator("),
    ("waiting for scheduled navigations to finish", '"  waiting for scheduled navigations to finish"'),
    ("waiting for element to be visible and enabled", "`  waiting for element to be visible and enabled`"),
    (
        "waiting for element to be visible, enabled and editable",
        '"  waiting for element to be visible, enabled and editable"',
    ),
    ("waiting 20ms", "`  waiting ${timeout}ms`"),
    ('navigated to "http://a.test/"', '`  navigated to "${'),
    ("locator resolved to <a>A</a>", "`  locator resolved to ${injected.previewNode("),
    ("locator resolved to hidden <a>A</a>", '`  locator resolved to ${visible3 ? "visible" : "hidden"} ${injected'),
    ("attempting click action", "`attempting ${actionName} action${"),
    ("retrying click action", "`retrying ${actionName} action${"),
    ('fill("a")', '`  fill("${'),
    ("element is not visible", '"  element is not visible"'),
    ("element is not enabled", "`  element is not ${result2.missingState}`"),
    ("element is not editable", "`  element is not ${result2.missingState}`"),
    ("element is not stable", 'missingState: "stable"'),
    ("element is outside of the viewport", '"  element is outside of the viewport"'),
    ("element was detached from the DOM, retrying", '"element was detached from the DOM, retrying"'),
    ("Element is not attached to the DOM", '"Element is not attached to the DOM"'),
    ("Element is not connected", '"Element is not connected"'),
    ("<p>A</p> intercepts pointer events", "`  ${result2.hitTargetDescription} intercepts pointer events`"),
    ("did not find some options", '"  did not find some options"'),
    ("option being selected is not enabled", '"  option being selected is not enabled"'),
    ("scrolling into view if needed", '"  scrolling into view if needed"'),
    ("done scrolling", '"  done scrolling"'),
    ("found get_by_role(), intercepting action to run the handler", ", intercepting action to run the handler`"),
    ("locator handler has finished", "`  locator handler has finished`"),
    ("interception handler has finished, continuing", "`  interception handler has finished, continuing`"),
    ("Cannot type text into input[type=number]", '"Cannot type text into input[type=number]"'),
    ('Input of type "x" cannot be filled', '`Input of type "${type}" cannot be filled`'),
    ("Element is not an <input>, <textarea>", '"Element is not an <input>, <textarea> or [contenteditable] element"'),
    ("Element is not a <select> element", '"Element is not a <select> element"'),
    ("Not a checkbox or radio button", '"Not a checkbox or radio button"'),
    ("Clicking the checkbox did not change its state", '"Clicking the checkbox did not change its state"'),
    ("Cannot uncheck radio button.", '"Cannot uncheck radio button. '),
    ("Download is starting", '"Download is starting"'),
    ("aria-ref", "`aria-ref=${ref}`"),
    ('interrupted by another navigation to "chrome-error:', ' is interrupted by another navigation to "${event.url}"`'),
    ("2 × retrying click action", r"`${block.count} \xD7 `"),
    ("Call log:", "Call log:"),
]
"""Messages of Playwright as they arrive, and as they are written in the driver or the client."""

BROWSERS = {
    "is not a valid selector",
    "not a valid XPath",
    "Cannot find context",
    r"net::(ERR_[A-Z0-9_]+)|\b(NS_(?:ERROR|BINDING)_[A-Z0-9_]+)",
}
"""Messages of the browsers."""


@pytest.mark.parametrize("text", [*dict.fromkeys(written for _message, written in WORDING)])
def test_playwright_still_has_this_wording(text: str) -> None:
    """Phase, code and retry of an error depend on these words."""
    # The driver has the code that is injected into pages as a string.
    assert text in DRIVER or text.replace('"', '\\"') in DRIVER or text in CLIENT


def _alternatives(value: object) -> Iterator[str]:
    """Every pattern of the module that parses the wording, split into its alternatives."""
    if isinstance(value, re.Pattern):
        alternatives: list[str] = str(value.pattern).split("|")
        # A group with a choice in it is one alternative.
        for each in alternatives if all(_is_whole(each) for each in alternatives) else [str(value.pattern)]:
            yield each
    elif isinstance(value, tuple):
        for each in value:
            yield from _alternatives(each)


def _is_whole(pattern: str) -> bool:
    try:
        re.compile(pattern)
    except re.error:
        return False
    return True


PHRASES = [
    *(each for value in vars(playwright_errors).values() for each in _alternatives(value) if each not in BROWSERS),
    *(each for _kind, phrases in playwright_errors._KINDS for each in phrases if each not in BROWSERS),
]


@pytest.mark.parametrize("phrase", [*dict.fromkeys(PHRASES)])
def test_every_phrase_is_a_message_of_playwright(phrase: str) -> None:
    """Every phrase that classifies an error is one of Playwright's messages, which are checked here."""
    assert any(re.search(phrase, message) for message, _written in WORDING)


def test_faces_of_one_inner_object_stand_side_by_side() -> None:
    """Both APIs make their public object from the inner one, and keep it there: by an attribute whose name the mapping reads from its module."""
    source = inspect.getsource(_impl_to_api_mapping)
    assert "api_instance = getattr(obj, API_ATTR, None)" in source
    assert "setattr(obj, API_ATTR, api_instance)" in source
    assert isinstance(_async_base.mapping, _impl_to_api_mapping.ImplToApiMapping)
    assert "mapping.wrap_handler(handler)" in inspect.getsource(_async_base)


def test_an_object_of_the_sync_api_lends_its_loop() -> None:
    """It has `_loop`, and `_sync` waits for an awaitable there."""
    source = inspect.getsource(_sync_base)
    assert "self._loop: asyncio.AbstractEventLoop = impl_obj._loop" in source
    assert "def _sync(self, awaitable: Awaitable[Any]) -> Any:" in source


def test_a_context_keeps_the_options_of_its_making() -> None:
    """The driver tells them again by their names in the protocol."""
    assert 'initializer["options"]' in inspect.getsource(browser_context.BrowserContext.__init__)
    source = inspect.getsource(browser_context.prepare_browser_context_params)
    named = {lent.in_protocol(name) for name in shared.for_playwright(EVERYTHING)}
    assert [name for name in named if f'"{name}"' not in source] == []


EVERYTHING = BrowserOptions(
    device="iPhone 13",
    locale="de-DE",
    timezone="Europe/Berlin",
    geolocation=Geolocation(latitude=1, longitude=2),
    headers={"x-a": "b"},
)
