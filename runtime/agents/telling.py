"""What a model that works on a page is told: our own words, and behind them what the page says, fenced in and marked as data."""

from __future__ import annotations

import re

BEGIN, END = "[page]", "[end of page]"
"""What the page says stands between these lines; in it they are spelt otherwise, so that no page can end its part by itself."""

_FENCE = re.compile(r"\[\s*(end\s+of\s+)?page\s*\]", re.IGNORECASE)

CHANGED = 800
"""Characters of what changed since the last look."""

OPENED = "a tab opened, called "
"""What the name of a new tab follows."""


def fenced(text: str) -> str:
    """A text of the page as data."""
    inside = _FENCE.sub(lambda found: found[0].replace("[", "(").replace("]", ")"), text)
    return f"{BEGIN}\n{inside}\n{END}"


def refs_in(text: str) -> list[str]:
    """The refs that a text of the page shows."""
    return re.findall(r"\b(?:f\d+)?[ex]\d+\b", text)


def opened_in(told: str) -> list[str]:
    """The names of the tabs that a deed opened, as the model was told of them."""
    ours = told.partition(f"\n{BEGIN}\n")[0]
    return re.findall(rf"{re.escape(OPENED)}(\w+)", ours)


def counted(number: int, of: int) -> str:
    """Which turn it is."""
    left = of - number
    return f"turn {number} of {of}" + (", the last one" if left == 0 else "")
