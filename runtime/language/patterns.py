"""Regular expressions that cannot hang the run.

Python's matcher backtracks, so an unlucky pattern on an unlucky text takes longer than anybody waits. On the main thread
it gets a budget of processor time. On other threads Python cannot stop it, so what could take long is not begun.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import math
import re
import signal
import threading
from collections.abc import Callable, Generator
from typing import Any, TypeVar

LONGEST_PATTERN = 1_000
"""Characters that a pattern may have."""

LONGEST_TEXT = 1 << 20
"""Characters that a text may have."""

SECONDS = 2.0
"""Processor time that one use of a pattern may take on the main thread."""

STEPS = 1e9
"""What the worst case may come to on other threads: about as long as SECONDS."""

# The standard library's own parser of patterns has no stubs.
opcodes: Any = importlib.import_module("re._constants")
parser: Any = importlib.import_module("re._parser")

Found = TypeVar("Found")


class PatternRefused(ValueError):
    """The pattern is wrong, could run away, or did; the message says which."""


@functools.lru_cache(maxsize=512)
def compiled(pattern: str) -> re.Pattern[str]:
    """The pattern, ready to use. Raises PatternRefused for one that is wrong or too long."""
    if len(pattern) > LONGEST_PATTERN:
        raise PatternRefused(f"a pattern has at most {LONGEST_PATTERN} characters, this one has {len(pattern)}")
    try:
        return re.compile(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        raise PatternRefused(f"{pattern!r} is not a pattern: {error}") from None


def use(pattern: str, text: str, look: Callable[[re.Pattern[str]], Found]) -> Found:
    """What ``look`` finds in ``text`` with the compiled pattern. Raises PatternRefused where that takes too long."""
    found = compiled(pattern)
    if len(text) > LONGEST_TEXT:
        raise PatternRefused(f"a text for a pattern has at most {LONGEST_TEXT} characters, this one has {len(text)}")
    if threading.current_thread() is threading.main_thread():
        with _limited(pattern):
            return look(found)
    if worst_case(pattern, len(text)) > STEPS:
        raise PatternRefused(f"{pattern!r} could take too long on a text of {len(text)} characters")
    return look(found)


def worst_case(pattern: str, length: int) -> float:
    """An upper bound on the steps that a search in a text of ``length`` takes: a power of it, or exponential."""
    degree = 1 + _degree(parser.parse(pattern), repeated=False)
    if math.isinf(degree):
        return 2.0 ** min(length, 1_000)
    return float(length) ** degree


def _degree(tree: Any, *, repeated: bool) -> float:
    """How many repetitions multiply with each other; infinite where one stands within another, or alternatives do."""
    degree = 0.0
    for code, argument in tree:
        if code in (opcodes.MAX_REPEAT, opcodes.MIN_REPEAT, opcodes.POSSESSIVE_REPEAT):
            least, most, body = argument
            if repeated and most != least:
                return math.inf
            degree += (most != least) + _degree(body, repeated=repeated or most > 1)
        elif code is opcodes.BRANCH and repeated:
            return math.inf
        elif code is opcodes.BRANCH:
            degree += sum(_degree(way, repeated=False) for way in argument[1])
        elif isinstance(argument, tuple):
            degree += sum(_degree(part, repeated=repeated) for part in argument if isinstance(part, parser.SubPattern))
        elif isinstance(argument, parser.SubPattern):
            degree += _degree(argument, repeated=repeated)
    return degree


@contextlib.contextmanager
def _limited(pattern: str) -> Generator[None]:
    """Stop the matcher after SECONDS of processor time: it looks for signals as it goes, which only the main thread gets."""

    def stop(_number: int, _frame: object) -> None:
        raise PatternRefused(f"{pattern!r} takes too long on this text")

    former = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, former)
