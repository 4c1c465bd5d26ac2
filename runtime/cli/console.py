"""Output of commands: the result on stdout, everything else on stderr, and every error in one form.

An error shows what happened, where, its evidence, the fix, and the next command to type.
"""

from __future__ import annotations

import contextlib
import os
import select
import shlex
import sys
from collections.abc import Generator, Iterator
from typing import TextIO

from nodes.errors import LogError, RunOpsError, SetupError, UsageError
from nodes.values import Json
from runtime.browser import origins
from runtime.display import escapes, facts
from runtime.display.stream import NO_ROOM, Talk, coloured, drain, put
from runtime.display.text import cut, width_of

BROWSER_URL = "--browser-url"
VERSION = 1  # version of every JSON object that a command prints


def say(text: str) -> None:
    Talk(sys.stderr).line(text)


def ask(text: str) -> str:
    import typer  # only a question needs it here

    return str(typer.prompt(escapes.shown(text), err=True))


def result(text: str) -> None:
    """Print the command's result, or a part of it.

    A closed reader (``| head``) is no failure. Raises SetupError ``output-not-written`` if the disk is full.
    """
    with writing():
        put(sys.stdout, f"{text}\n")


@contextlib.contextmanager
def writing() -> Generator[None]:
    try:
        yield
    except BrokenPipeError:
        drain(sys.stdout)
    except OSError as error:
        if not disk_full(error):
            raise
        raise not_written(error) from None


def disk_full(error: OSError) -> bool:
    """True if a stream could not be written because the disk is full; the error of a file names the file."""
    return error.errno in NO_ROOM and error.filename is None


def not_written(error: OSError) -> SetupError:
    drain(sys.stdout)
    return SetupError(
        "output-not-written",
        f"the output could not be written: {error.strerror}",
        fix="make room, then give the command again",
    )


def gone(stream: TextIO) -> bool:
    try:
        poll = select.poll()
        poll.register(stream.fileno(), 0)
        return any(seen & (select.POLLERR | select.POLLHUP) for _, seen in poll.poll(0))
    except (OSError, ValueError):
        return True


def columns() -> int | None:
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns or None
    except (OSError, ValueError):
        return None


def table(rows: list[list[str]]) -> list[str]:
    """Align rows in columns; on a terminal the last column is cut to fit, elsewhere nothing is."""
    wide = [max(map(width_of, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join(cell + " " * (room - width_of(cell)) for cell, room in zip(cells, wide, strict=True)).rstrip()
        for cells in rows
    ]
    most = columns()
    return [cut(line, most) for line in lines] if most else lines


def as_json(**fields: Json) -> str:
    return escapes.as_json({"version": VERSION, **fields}, indent=2)


def error_json(error: RunOpsError, code: int) -> str:
    return as_json(status="error", exit=code, error=error.as_json())


def paint(text: str, *codes: int, stream: TextIO | None = None) -> str:
    """Colour ``text``, if ``stream`` (stderr) is a terminal with colours and ``NO_COLOR`` is not set."""
    return escapes.styled(text, *codes) if coloured(Talk(stream or sys.stderr)) else text


BOLD, RED, YELLOW = 1, 31, 33


def failure(error: RunOpsError, next_command: str | None = None, *, place: str | None = None) -> str:
    render = getattr(error, "render", None)
    if callable(render):  # a file with mistakes shows each at its place
        lines = [str(render(colour=coloured(Talk(sys.stderr)))), ""]
    else:
        where = error.path or place
        named = f" {escapes.line(where)}:" if where else ""
        lines = [f"{paint(f'error[{error.code}]', BOLD, RED)}:{named} {escapes.line(error.message)}"]
        lines += facts.facts(error.evidence)
    if error.fix:
        lines.append(f"  = {escapes.line(error.fix)}")
    if next_command:
        lines.append(f"  next: {escapes.line(next_command)}")
    return "\n".join(lines)


def next_command(error: RunOpsError, arguments: list[str]) -> str | None:
    """Return the command to type after ``error`` of the command ``arguments``; None if the fix names one already."""
    if "runops " in (error.fix or "") or "type: " in (error.fix or ""):
        return None
    match error:
        case LogError():
            return "runops runs"
        case SetupError():
            return shlex.join(["runops", *_without_password(arguments)])
        case UsageError():
            known = arguments and not arguments[0].startswith("-") and error.code != "unknown-command"
            return f"runops {arguments[0]} --help" if known else "runops --help"
        case _:
            return None


def _without_password(arguments: list[str]) -> Iterator[str]:
    """Yield the arguments, of a browser's address only what may be shown."""
    for before, each in zip(["", *arguments], arguments, strict=False):
        name, equals, value = each.partition("=")
        if before == BROWSER_URL:
            yield origins.place(each)
        else:
            yield f"{name}={origins.place(value)}" if equals and name == BROWSER_URL else each
