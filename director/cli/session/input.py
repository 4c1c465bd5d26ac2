"""Where the words of a person come from: the terminal, with a history and Tab, or standard input."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable

from director.cli.session import parsing

PROMPT = "> "


def interactive() -> bool:
    """Whether a person types, and sees what is printed."""
    return sys.stdin.isatty() and sys.stdout.isatty()


def terminal(said: Iterable[str]) -> Callable[[], str]:
    """Lines from the terminal; ``said`` is what the arrows bring back. Each raises EOFError at Ctrl-D."""
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
    """Lines from a pipe or a file, or typed where nobody sees what is printed."""
    _take_any_bytes()

    def read() -> str:
        line = sys.stdin.readline()
        if not line:
            raise EOFError
        return line.removesuffix("\n").removesuffix("\r")

    return read


def _take_any_bytes() -> None:
    """A key of another keyboard, or a file in another encoding, is no reason to end."""
    reconfigure = getattr(sys.stdin, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors="replace")
