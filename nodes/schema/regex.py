"""Regular expressions of authors: in Python's syntax, and none takes longer than a fixed time.

A matcher that backtracks may take longer than anybody waits on an unlucky text. Python's own cannot be stopped, so these are matched by
the library `regex`, which reads the same syntax and looks at the clock as it goes, on every thread alike.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import regex

LONGEST_PATTERN = 1_000
"""Characters that a pattern may have."""

LONGEST_TEXT = 1 << 20
"""Characters that a text may have."""

SECONDS = 2.0
"""Processor time that one use of a pattern may take."""

_PLAIN_BRACE = re.compile(r"(\\N\{[^}]*\}|\\.)|\{(?!\d+(?:,\d*)?\}|,\d*\})", re.DOTALL)
"""A brace that stands for itself in Python's syntax; the first group is what is passed over."""


class PatternRefused(ValueError):
    """The pattern is wrong, or takes too long; the message says which."""


@functools.lru_cache(maxsize=512)
def compiled(pattern: str) -> regex.Pattern[str]:
    """The pattern, ready to use. Raises PatternRefused for one that is wrong or too long."""
    import regex

    if len(pattern) > LONGEST_PATTERN:
        raise PatternRefused(f"a pattern has at most {LONGEST_PATTERN} characters, this one has {len(pattern)}")
    try:
        re.compile(pattern)  # what `regex` reads beyond Python's syntax is a mistake
        # In `regex` a brace that counts nothing asks for a match that is nearly right.
        return regex.compile(_PLAIN_BRACE.sub(lambda found: found[1] or r"\{", pattern))
    except (re.error, regex.error, RecursionError, OverflowError) as error:
        raise PatternRefused(f"{pattern!r} is not a pattern: {error}") from None


def matches(pattern: str, text: str, seconds: float | None = None) -> Iterator[regex.Match[str]]:
    """Every match, in order, each beginning where the one before ends.

    Raises PatternRefused for a pattern that is wrong, a text that is too long, and where all of them together take more than ``seconds``.
    """
    found = compiled(pattern)
    if len(text) > LONGEST_TEXT:
        raise PatternRefused(f"a text for a pattern has at most {LONGEST_TEXT} characters, this one has {len(text)}")
    try:
        yield from found.finditer(text, timeout=SECONDS if seconds is None else seconds)
    except TimeoutError:
        raise PatternRefused(f"{pattern!r} takes too long on a text of {len(text)} characters") from None


def expanded(match: regex.Match[str], template: str) -> str:
    r"""The template with ``\1`` and ``\g<name>`` replaced by the groups of the match. Raises PatternRefused for a group that is not there."""
    import regex

    try:
        return match.expand(template)
    except (regex.error, IndexError) as error:
        raise PatternRefused(f"{template!r} is no replacement: {error}") from None
