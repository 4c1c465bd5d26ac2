"""Typed lines: messages of a chat, from a terminal or a pipe, and answers to questions."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Iterable

from director.session import person
from runtime.display.stream import Talk

PROMPT, ANSWER = "> ", "answer> "

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
    async def prompted() -> str | None:
        talk = Talk(sys.stderr)
        talk.write(ANSWER)
        talk.flush()
        return await answer()

    return person.Typing(show, prompted)


async def answer() -> str | None:
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
