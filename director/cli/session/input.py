"""Sources of a person's messages: the terminal, with a history and Tab, or standard input."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable

from director.cli.session import parsing

PROMPT = "> "


def interactive() -> bool:
    """Return whether a person types, and sees the output."""
    return sys.stdin.isatty() and sys.stdout.isatty()


def terminal(said: Iterable[str]) -> Callable[[], str]:
    """Return a reader of terminal lines; ``said`` is the history for the arrow keys. It raises EOFError at Ctrl-D."""
    _take_any_bytes()
    try:
        import readline
    except ImportError:  # a Python without it still reads lines
        return lambda: input(PROMPT)
    readline.set_completer_delims(" \t\n")
    readline.set_completer(_complete)
    libedit = "libedit" in (readline.__doc__ or "")
    readline.parse_and_bind("bind ^I rl_complete" if libedit else "tab: complete")
    for each in said:
        readline.add_history(each.replace("\n", " "))
    return lambda: input(PROMPT)


def _complete(typed: str, number: int) -> str | None:
    found = parsing.known_names(typed)
    return found[number] if number < len(found) else None


def standard_input() -> Callable[[], str]:
    """Return a reader of lines from a pipe or a file, or typed without visible output."""
    _take_any_bytes()

    def read() -> str:
        line = sys.stdin.readline()
        if not line:
            raise EOFError
        return line.removesuffix("\n").removesuffix("\r")

    return read


def _take_any_bytes() -> None:
    """Accept any bytes: other keyboards and encodings must not end the session."""
    reconfigure = getattr(sys.stdin, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors="replace")
