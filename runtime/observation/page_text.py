"""What a model that works on a page is told: our own words, and behind them what the page says, fenced in and marked as data."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any

from nodes.errors import OriginRefused
from runtime.observation.observation import Observation

BEGIN, END = "[page]", "[end of page]"
"""What the page says stands between these lines; in it they are spelt otherwise, so that no page can end its part by itself."""

CLOSED = "the tab that you were on is closed, and you are on another one now"
"""What a model is told whose action closed its tab."""

_SHOWN = re.compile(r'^page (?:"(?:[^"\\]|\\.)*" )?(\S+)$', re.MULTILINE)
_BLANK = "[\\s\u00ad\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]"
_FENCE = re.compile("\\[#*(?:e#*n#*d#+o#*f#+)?p#*a#*g#*e#*\\]".replace("#", _BLANK), re.IGNORECASE)
"""What may be read as one of them, with whatever is seen as nothing between its letters."""

CHANGED = 800
"""Characters of what changed since the last look."""

UNCHANGED = "nothing changed"
"""What a look says that is like the one before."""

OPENED = "a tab opened, called "
"""What the name of a new tab follows."""


def fenced(text: str) -> str:
    """A text of the page as data."""
    inside = _FENCE.sub(lambda found: found[0].replace("[", "(").replace("]", ")"), text)
    return f"{BEGIN}\n{inside}\n{END}"


_CLOCK = re.compile(r"\d+(:\d\d)+|\d+ ?(s|sec|seconds?|min|minutes?)\b")


def known_by(role: str, name: str) -> tuple[str, str]:
    """What tells an element from another one that has its place, or its ref, later. A clock that runs in its name does not."""
    return role, _CLOCK.sub("", " ".join(name.split()))


def refs_in(text: str) -> list[str]:
    """The refs that a text of the page shows."""
    return re.findall(r"\b(?:f\d+)?[ex]\d+\b", text)


def opened_in(told: str) -> list[str]:
    """The names of the tabs that an action opened, as the model was told of them."""
    ours = told.partition(f"\n{BEGIN}\n")[0]
    return re.findall(rf"{re.escape(OPENED)}(\w+)", ours)


def left_on(told: str) -> str | None:
    """The address of the page on which an action that closed its tab left the model; None for an action that closed none."""
    ours, _, theirs = told.partition(f"\n{BEGIN}\n")
    if CLOSED not in ours.split("\n"):
        return None
    shown = _SHOWN.match(theirs)
    return shown[1] if shown is not None else None


def counted(number: int, of: int) -> str:
    """Which turn it is."""
    left = of - number
    return f"turn {number} of {of}" + (", the last one" if left == 0 else "")


def page_now(
    view: Observation, earlier: Observation, most: int, *, whole: bool = False, known: Collection[str] = ()
) -> str:
    """The page after an action: what changed on it; all of it, in ``most`` characters, where it is another document, whose refs a model must see to go on.

    What changed stands before the rest where the document is another one at the same address. What is around the page and ``known`` is not told again.
    """
    changed = view.since(earlier, CHANGED)
    if not whole and (changed == UNCHANGED or view.continues(earlier)):
        return changed
    # More changes than fit: then it is another page, whatever its address.
    another = view.url != earlier.url or changed.rpartition("\n")[2].startswith("… ")
    if whole or another or changed == UNCHANGED:
        return view.render(most, known=known)
    return f"{changed}\n{view.render(most - len(changed) - 1, known=known)}"


def refused_words(error: OriginRefused) -> str:
    """What was not loaded, and what may be."""
    allowed: Any = error.evidence.get("allowed") or []
    kind = {"popup": "a new tab was to be led", "sub frame": "a part of the page was to be led"}
    said = kind.get(str(error.evidence.get("kind")), "the page was to be led")
    return f"{said} to {error.evidence.get('origin')}, which this run may not open (origin-refused); it may open {', '.join(allowed)}"


def from_here(address: str, here: str) -> str:
    """An address of the site that is shown, as it is written on that site: a model needs no more, and a cassette holds wherever the site runs."""
    return address[len(here) :] if here and address.startswith(f"{here}/") else address
