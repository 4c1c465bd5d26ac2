"""Text for a model that works on a page: our own words, then the page's text, fenced and marked as data."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from nodes.errors import OriginRefused
from runtime.observation.observation import Observation

BEGIN, END = "[page]", "[end of page]"
"""Fence lines around the page's text. Inside it they are altered, so that no page can close the fence."""

CLOSED = "the tab that you were on is closed, and you are on another one now"

_SHOWN = re.compile(r'^page (?:"(?:[^"\\]|\\.)*" )?(\S+)$', re.MULTILINE)
_BLANK = "[\\s\u00ad\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]"
_FENCE = re.compile("\\[#*(?:e#*n#*d#+o#*f#+)?p#*a#*g#*e#*\\]".replace("#", _BLANK), re.IGNORECASE)
"""Matches anything readable as a fence line, even with invisible characters between its letters."""

CHANGED = 800  # most characters of the changes since the last observation
UNCHANGED = "nothing changed"  # text of an observation without changes

OPENED = "a tab opened, called "


def fenced(text: str) -> str:
    inside = _FENCE.sub(lambda found: found[0].replace("[", "(").replace("]", ")"), text)
    return f"{BEGIN}\n{inside}\n{END}"


def unfenced(text: str) -> str:
    """Return a text without its fence lines, for a person."""
    return "\n".join(line for line in text.split("\n") if line not in (BEGIN, END))


def parts(text: str) -> list[str]:
    """Split a text into our words and texts of pages, in turns; the first is ours."""
    return _PAGE.split(text)


_PAGE = re.compile(rf"{re.escape(BEGIN)}\n(.*?)(?:\n{re.escape(END)}|\Z)", re.DOTALL)
_CLOCK = re.compile(r"\d+(:\d\d)+|\d+ ?(s|sec|seconds?|min|minutes?)\b")


def known_by(role: str, name: str) -> tuple[str, str]:
    """Return what identifies an element even if another gets its place or ref later; a running clock in its name is ignored."""
    return role, _CLOCK.sub("", " ".join(name.split()))


def refs_in(text: str) -> list[str]:
    return re.findall(r"\b(?:f\d+)?[ex]\d+\b", text)


def opened_in(text: str) -> list[str]:
    """Return the names of the tabs that an action opened, from the text shown to the model."""
    ours = text.partition(f"\n{BEGIN}\n")[0]
    return re.findall(rf"{re.escape(OPENED)}(\w+)", ours)


def left_on(text: str) -> str | None:
    """Return the address of the page shown after an action that closed its tab; None if the action closed none."""
    ours, _, theirs = text.partition(f"\n{BEGIN}\n")
    if CLOSED not in ours.split("\n"):
        return None
    shown = _SHOWN.match(theirs)
    return shown[1] if shown is not None else None


def counted(number: int, of: int) -> str:
    left = of - number
    return f"turn {number} of {of}" + (", the last one" if left == 0 else "")


def page_now(view: Observation, earlier: Observation, page: Callable[[int], str], most: int) -> tuple[str, bool]:
    """Return the changes after an action in ``most`` characters, and False; if they show another page, only that, and True.

    ``page`` returns its text in a number of characters. Another document has new refs even if it looks the same.
    """
    if view.moved(earlier) or not view.continues(earlier):
        return page(most), True
    changed = view.since(earlier, CHANGED, most)
    if len(changed) <= CHANGED / 2:
        return changed, False
    # Where nearly everything changed, the page tells more.
    whole = page(most)
    another = len(whole) <= len(view.since(earlier, most))
    return (whole if another else changed), another


def refused_words(error: OriginRefused) -> str:
    allowed: Any = error.evidence.get("allowed") or []
    kinds = {"popup": "a new tab", "sub frame": "a part of the page"}
    kind = kinds.get(str(error.evidence.get("kind")), "the page")
    return f"{kind} was to be led to {error.evidence.get('origin')}, which this run may not open (origin-refused); it may open {', '.join(allowed)}"


def from_here(address: str, here: str) -> str:
    """Return an address of the present site relative to it: enough for a model, and a cassette stays valid on other hosts."""
    return address[len(here) :] if here and address.startswith(f"{here}/") else address
