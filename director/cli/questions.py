"""Questions of a build on a terminal: it waits for a line, and a signal ends the wait."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable

from director.session import person
from runtime.display.stream import Talk

PROMPT = "answer> "
"""The prompt."""

LONGEST_LINE = 1 << 16
"""Limit of the bytes read from a terminal at once."""


def possible() -> bool:
    """Return whether a person types, and sees questions."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def person_at(show: Callable[[str], None]) -> person.Person:
    """Return the person at the terminal; ``show`` shows a question."""

    async def prompted() -> str | None:
        talk = Talk(sys.stderr)
        talk.write(PROMPT)
        talk.flush()
        return await line()

    return person.Typing(show, prompted)


async def line() -> str | None:
    """Return the next typed line; None at Ctrl-D. No thread waits for it, so that an interruption takes effect at once."""
    loop = asyncio.get_running_loop()
    typed: asyncio.Future[str | None] = loop.create_future()
    number = sys.stdin.fileno()

    def ready() -> None:
        try:
            found = os.read(number, LONGEST_LINE)
        except OSError:
            found = b""
        if not typed.done():
            typed.set_result(found.decode("utf-8", "replace").rstrip("\r\n") if found else None)

    loop.add_reader(number, ready)
    try:
        return await typed
    finally:
        loop.remove_reader(number)
