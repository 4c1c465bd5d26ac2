"""Maps Playwright errors to RunOps errors: a stable code, evidence, and whether the action may have reached the page.

Never passes on a message of Playwright: its call log quotes the typed values.
"""

from __future__ import annotations

import re
from typing import Literal

from playwright.async_api import Error

from nodes.errors import Phase, RunOpsError, SiteError
from nodes.values import Json

Kind = Literal[
    "missing", "ambiguous", "not actionable", "wrong element", "bad target", "gone", "crashed", "navigated", "other"
]

_KINDS: tuple[tuple[Kind, tuple[str, ...]], ...] = (
    ("crashed", ("Target crashed", "Page crashed")),
    ("gone", ("has been closed", "Connection closed", "Browser closed")),
    ("ambiguous", ("strict mode violation",)),
    ("bad target", ("while parsing", "is not a valid selector", "not a valid XPath", "Unknown engine")),
    (
        "navigated",
        ("Frame was detached", "Execution context was destroyed", "because of a navigation", "Cannot find context"),
    ),
)
"""Phrases that name the problem, whatever obstacle came before. The first match counts."""

LOG = "Call log:"  # precedes the call log in a message

_LINE = re.compile(r"\s*(?:\d+ × |- )?(?P<said>.*)")

_WAITED = re.compile(
    r"waiting for (?!scheduled ).+|waiting \d+ms|navigated to \".*\""
    r"|locator resolved to .+|attempting [a-z ]+ action(?: \(trial run\))?|retrying [a-z ]+ action(?: \(trial run\))?|fill\(\".*\"\)"
    r"|element is .+|element was detached from the DOM, retrying|.+ intercepts pointer events"
    r"|did not find some options|option being selected is not enabled"
    r"|scrolling into view if needed|done scrolling"
    r"|found .+, intercepting action to run the handler|locator handler has finished"
    r"|interception handler has finished, continuing"
)
"""Lines of Playwright's call log while an element cannot take the action yet and nothing was sent to the page, except to close overlays."""

_IN_HAND = re.compile(
    r"waiting for element to be visible and enabled|waiting for element to be visible, enabled and editable"
)
"""Lines that `fill` and `select_option` log both before they wait and before they act. The last line of a log leaves open which."""

_RESOLVED = re.compile(r"locator resolved to (?:hidden |visible )?(?P<element><.*)")
_COVERED = re.compile(r"(?P<element><.*>.*) intercepts pointer events")

# Call log lines about an element that cannot take the action, most specific first. The last match in the log counts.
_STATES = (
    (re.compile(r"intercepts pointer events"), "covered", "it is covered by another element"),
    (re.compile(r"element is not visible|resolved to hidden"), "hidden", "it is hidden"),
    (re.compile(r"element is not enabled"), "disabled", "it is disabled"),
    (re.compile(r"element is not editable"), "read-only", "it is read-only"),
    (re.compile(r"element is not stable"), "moving", "it does not stop moving"),
    (re.compile(r"element is outside of the viewport"), "outside", "it is outside the page"),
    (re.compile(r"element was detached|not attached|not connected"), "detached", "it was removed from the page"),
    (re.compile(r"did not find some options"), "no such option", "it has no such option"),
    (re.compile(r"option being selected is not enabled"), "option disabled", "the option is disabled"),
)

_WRONG_ELEMENT = (
    (
        re.compile(r"Cannot type text into input\[type=(\w+)\]"),
        "wrong value",
        "a field of type {} does not take this text",
    ),
    (re.compile(r"Input of type \"?(\w+)\"? cannot be filled"), "wrong element", "a field of type {} cannot be filled"),
    (re.compile(r"is not an <input>|is not a <select>|Not a checkbox"), "wrong element", "it is no such field"),
    (re.compile(r"did not change its state"), "unchanged", "the page did not allow its state to change"),
    (re.compile(r"Cannot uncheck radio"), "wrong element", "a radio button cannot be unchecked"),
)

LATE = re.compile(r"Timeout \d+(?:\.\d+)?ms exceeded")
_DOWNLOAD = re.compile(r"Download is starting")
NO_CHOOSER = re.compile(r"waiting for event \"filechooser\"")
BY_REF = re.compile(r"aria-ref")
ERROR_PAGE = re.compile(r"interrupted by another navigation to \"chrome-error:")

_NET = re.compile(r"net::(ERR_[A-Z0-9_]+)|\b(NS_(?:ERROR|BINDING)_[A-Z0-9_]+)")

NEVER_SENT = frozenset(
    {
        "ERR_NAME_NOT_RESOLVED",
        "ERR_CONNECTION_REFUSED",
        "ERR_ADDRESS_UNREACHABLE",
        "ERR_INTERNET_DISCONNECTED",
        "ERR_UNSAFE_PORT",
        "ERR_INVALID_URL",
        "ERR_UNKNOWN_URL_SCHEME",
        "ERR_PROXY_CONNECTION_FAILED",
        "NS_ERROR_UNKNOWN_HOST",
        "NS_ERROR_CONNECTION_REFUSED",
        "NS_ERROR_MALFORMED_URI",
        "NS_ERROR_UNKNOWN_PROTOCOL",
    }
)
"""Network errors that occur before a request reaches the site. After a redirect they say nothing about the first request."""


def network_error(error: Error) -> str | None:
    """Return the browser's name of the network error, such as ``ERR_CONNECTION_REFUSED`` or ``NS_ERROR_UNKNOWN_HOST``."""
    match = _NET.search(error.message)
    return match.group(1) or match.group(2) if match else None


def says(error: Error, phrase: re.Pattern[str]) -> bool:
    return phrase.search(error.message) is not None


def became_download(error: Error) -> bool:
    """Return True if a navigation delivered a file instead of a document."""
    return network_error(error) == "ERR_ABORTED" or says(error, _DOWNLOAD)


def head(error: Error) -> str:
    return error.message.split(LOG, 1)[0]


def said(error: Error) -> str:
    """Return the message for people: one short line without the call log."""
    return short(head(error).removeprefix("Page.goto: "), 200)


def kind_of(error: Error) -> Kind:
    """Classify an error by its message alone; ``other`` if the message is unknown."""
    words = head(error)
    for kind, phrases in _KINDS:
        if any(each in words for each in phrases):
            return kind
    if any(each.search(words) for each, _problem, _words in _WRONG_ELEMENT):
        return "wrong element"
    if LATE.search(words):
        return "not actionable" if _RESOLVED.search(error.message) else "missing"
    return "other"


def only_waited(error: Error) -> bool:
    """Return True if Playwright's call log proves that nothing was sent to the page: it has waiting lines only.

    Any other line, or no call log, leaves it open. Keys, typed text and chosen files are sent without a log line, so for them
    a call log proves nothing.
    """
    words, _mark, log = error.message.partition(LOG)
    lines = [match["said"] for line in log.splitlines() if line.strip() and (match := _LINE.fullmatch(line))]
    if not lines or not all(map(_WAITED.fullmatch, lines)):
        return False
    return not _IN_HAND.fullmatch(lines[-1]) or any(each.search(words) for each, _problem, _words in _WRONG_ELEMENT)


def obstacle(error: Error) -> tuple[str, str, str | None]:
    """Explain why an element could not take the action: one word, a phrase for people, and the covering element or the element itself."""
    message = error.message
    for expression, problem, words in _WRONG_ELEMENT:
        if match := expression.search(head(error)):
            return problem, words.format(*match.groups()), _element(message)
    states = [
        (match.start(), -rank, problem, words)
        for rank, (expression, problem, words) in enumerate(_STATES)
        for match in expression.finditer(message)
    ]
    _start, _rank, problem, words = max(states, default=(0, 0, "busy", "it was not ready in time"))
    return problem, words, _element(message, _COVERED if problem == "covered" else _RESOLVED)


def _element(message: str, named: re.Pattern[str] = _RESOLVED) -> str | None:
    found = [match["element"] for match in named.finditer(message)]
    return short(found[-1]) if found else None


def short(text: str, length: int = 120) -> str:
    line = " ".join(text.split())
    return line if len(line) <= length else line[: length - 1] + "…"


def gone(error: Error, url: str, phase: Phase) -> RunOpsError:
    crashed = kind_of(error) == "crashed"
    return SiteError(
        "page-crashed",
        "the page crashed" if crashed else "the tab or its browser was closed",
        fix="type runops resume to continue from the last checkpoint",
        phase=phase,
        evidence={"url": url},
    )


def no_address(url: str, seen: str, phase: Phase, evidence: dict[str, Json]) -> SiteError:
    return SiteError(
        "navigation-failed",
        f"{url} could not be loaded: {seen}",
        fix="look whether the site is up and the address right",
        phase=phase,
        evidence=evidence,
    )
