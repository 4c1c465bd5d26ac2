"""Regular expressions of authors: in Python's syntax, with a fixed time limit.

A backtracking matcher may take too long on an unlucky text, and Python's own cannot be stopped. The library `regex` reads the same syntax
and checks the clock as it runs, on every thread.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import regex

LONGEST_PATTERN = 1_000
"""Limit of a pattern, in characters."""

LONGEST_TEXT = 1 << 20
"""Limit of a text, in characters."""

SECONDS = 2.0
"""Limit of one use of a pattern, in seconds of processor time."""

_PLAIN_BRACE = re.compile(r"(\\N\{[^}]*\}|\\.)|\{(?!\d+(?:,\d*)?\}|,\d*\})", re.DOTALL)
"""A brace that is literal in Python's syntax; the first group is an escape, which stays."""


class PatternRefused(ValueError):
    """The pattern is wrong, or takes too long; the message says which."""


@functools.lru_cache(maxsize=512)
def compiled(pattern: str) -> regex.Pattern[str]:
    """Compile the pattern. Raises PatternRefused if it is wrong or too long."""
    import regex

    if len(pattern) > LONGEST_PATTERN:
        raise PatternRefused(f"a pattern has at most {LONGEST_PATTERN} characters, this one has {len(pattern)}")
    try:
        re.compile(pattern)  # syntax of `regex` beyond Python's is a mistake
        # In `regex` a brace without a count asks for a fuzzy match.
        return regex.compile(_PLAIN_BRACE.sub(lambda found: found[1] or r"\{", pattern))
    except (re.error, regex.error, RecursionError, OverflowError) as error:
        raise PatternRefused(f"{pattern!r} is not a pattern: {error}") from None


def matches(pattern: str, text: str, seconds: float | None = None) -> Iterator[regex.Match[str]]:
    """Yield every match, in order, without overlaps.

    Raises PatternRefused for a wrong pattern, a text that is too long, and if all matches together take more than ``seconds``.
    """
    found = compiled(pattern)
    if len(text) > LONGEST_TEXT:
        raise PatternRefused(f"a text for a pattern has at most {LONGEST_TEXT} characters, this one has {len(text)}")
    try:
        yield from found.finditer(text, timeout=SECONDS if seconds is None else seconds)
    except TimeoutError:
        raise PatternRefused(f"{pattern!r} takes too long on a text of {len(text)} characters") from None


def expanded(match: regex.Match[str], template: str) -> str:
    r"""Return the template with ``\1`` and ``\g<name>`` replaced by the groups of the match. Raises PatternRefused for a missing group."""
    import regex

    try:
        return match.expand(template)
    except (regex.error, IndexError) as error:
        raise PatternRefused(f"{template!r} is no replacement: {error}") from None
