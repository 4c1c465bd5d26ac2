"""Typed lines: messages of a chat, from a terminal or a pipe, and answers to questions."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections.abc import Callable, Generator, Iterable

from director.session import person
from runtime.display.stream import Talk

PROMPT, ANSWER = "> ", "answer> "

ENDS = ("exit", "quit")  # messages that end a chat
STOP = "/stop"  # ends what works; it is never an answer

LONGEST_LINE = 1 << 16  # limit of the bytes read at once for an answer


def interactive() -> bool:
    return sys.stdin.isatty() and sys.stdout.isatty()


def can_ask() -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty()


def messages(read: Callable[[], str]) -> Callable[[], str]:
    r"""Return a reader of messages: a line that ends with ``\`` continues in the next one.

    ``read`` returns a line, and raises EOFError after the last one. Any other error discards an incomplete message.
    """

    def message() -> str:
        parts: list[str] = []
        while True:
            try:
                line = read()
            except EOFError:
                if parts:
                    return "\n".join(parts)
                raise
            if not line.endswith("\\"):
                return "\n".join([*parts, line])
            parts.append(line[:-1])

    return message


def lines(said: Iterable[str], completed: Callable[[str], list[str]], *, person: bool) -> Callable[[], str]:
    """Return a reader of lines, which raises EOFError after the last or at Ctrl-D.

    A ``person`` types them, with ``said`` as the history and ``completed`` for Tab; else they come from a pipe or a file.
    """
    # Undecodable input must not end the session.
    if (reconfigure := getattr(sys.stdin, "reconfigure", None)) is not None:
        reconfigure(errors="replace")
    if not person:
        return _piped
    try:
        import readline
    except ImportError:  # a Python without it still reads lines
        return lambda: input(PROMPT)
    readline.set_completer_delims(" \t\n")
    readline.set_completer(lambda typed, number: dict(enumerate(completed(typed))).get(number))
    libedit = "libedit" in (readline.__doc__ or "")
    readline.parse_and_bind("bind ^I rl_complete" if libedit else "tab: complete")
    for each in said:
        readline.add_history(each.replace("\n", " "))
    return lambda: input(PROMPT)


def _piped() -> str:
    line = sys.stdin.readline()
    if not line:
        raise EOFError
    return line.removesuffix("\n").removesuffix("\r")


def person_at(show: Callable[[str], None]) -> person.Person:
    return person.Typing(show, prompted)


async def prompted() -> str | None:
    """Return the next typed line like ``answer``, after a prompt."""
    talk = Talk(sys.stderr)
    talk.write(ANSWER)
    talk.flush()
    return await answer()


class Arrivals:
    """Lines that a person types at a terminal while something works."""

    def __init__(self) -> None:
        self._number = sys.stdin.fileno()
        self._wanted: asyncio.Future[str | None] | None = None  # an answer that is awaited

    @contextlib.contextmanager
    def heard(self, loop: asyncio.AbstractEventLoop, hear: Callable[[str | None], None]) -> Generator[None]:
        """Call ``hear`` with each line that comes; with None at Ctrl-D."""

        def ready() -> None:
            line = _typed(self._number)
            if line is None:
                loop.remove_reader(self._number)
            stops = line is not None and line.strip() == STOP
            if self._wanted is not None and not self._wanted.done() and not stops:
                self._wanted.set_result(line)
            else:
                hear(line)

        loop.add_reader(self._number, ready)
        _listening.append(self)
        try:
            yield
        finally:
            _listening.remove(self)
            loop.remove_reader(self._number)

    async def next(self) -> str | None:
        """Return the next line that comes; None at Ctrl-D."""
        self._wanted = asyncio.get_running_loop().create_future()
        try:
            return await self._wanted
        finally:
            self._wanted = None


_listening: list[Arrivals] = []  # what hears standard input now


async def answer() -> str | None:
    """Return the next typed line; None at Ctrl-D. No thread waits for it, so that an interruption takes effect at once."""
    if _listening:
        return await _listening[-1].next()
    loop = asyncio.get_running_loop()
    typed: asyncio.Future[str | None] = loop.create_future()
    number = sys.stdin.fileno()

    def ready() -> None:
        line = _typed(number)
        if not typed.done():
            typed.set_result(line)

    loop.add_reader(number, ready)
    try:
        return await typed
    finally:
        loop.remove_reader(number)


def _typed(number: int) -> str | None:
    """Return the line that a terminal has; None at Ctrl-D."""
    try:
        found = os.read(number, LONGEST_LINE)
    except OSError:
        found = b""
    return found.decode("utf-8", "replace").rstrip("\r\n") if found else None
