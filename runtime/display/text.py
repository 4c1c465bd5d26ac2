"""Text for a terminal: escaped, measured in columns, cut to fit."""

from __future__ import annotations

import datetime as dt
import re
from pathlib import Path

from rich.cells import cell_len, split_graphemes

from nodes.values import Json, as_text
from runtime.display import escapes

_SPACES = re.compile(r"[\s\u2028\u2029]+")
_WIDTHLESS = re.compile("[\u00ad\u200b-\u200d\u2060\ufeff]")
"""Terminals disagree on the width of text with these characters, so they are removed."""

ELLIPSIS = "…"


def one_line(text: str) -> str:
    """Return ``text`` on one line: white space folded, and control characters escaped."""
    if not text.isprintable():
        text = escapes.line(_WIDTHLESS.sub("", _SPACES.sub(" ", text)))
    return text.strip()


def harmless(text: str) -> str:
    """Return ``text`` with its lines kept and control characters escaped."""
    return "\n".join(escapes.line(line.expandtabs(4)) for line in text.split("\n"))


def width_of(text: str) -> int:
    return cell_len(text)


def cut(text: str, width: int) -> str:
    if cell_len(text) <= width:
        return text
    if width <= 0:
        return ""
    room, end = width - cell_len(ELLIPSIS), 0
    for _, stop, columns in split_graphemes(text)[0]:
        if columns > room:
            break
        room -= columns
        end = stop
    return text[:end] + ELLIPSIS


def fit(left: str, right: str, width: int) -> str:
    """Return ``left``, two spaces and ``right`` in at most ``width`` columns; ``left`` is cut if necessary."""
    if not right:
        return cut(left, width)
    room = width - cell_len(right) - 2
    return f"{cut(left, room)}  {right}" if room > 0 else cut(right, width)


def joined(*parts: str) -> str:
    """Join the parts that are not empty by two spaces."""
    return "  ".join(filter(None, parts))


def duration(seconds: float | None) -> str:
    """Format a time: ``0.3 s``, ``42 s``, ``3 min 05 s``, ``1 h 02 min``; empty for None."""
    if seconds is None:
        return ""
    if seconds < 9.95:
        return f"{max(seconds, 0.0):.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    return f"{minutes} min {rest:02} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02} min"


def when(at: str) -> str:
    return dt.datetime.fromisoformat(at).astimezone().strftime("%Y-%m-%d %H:%M:%S") if at else ""


def from_here(path: str) -> str:
    """Return the path from the current folder if it is below it: so a report fits beside its files wherever they are copied."""
    found = Path(path)
    return str(found.relative_to(Path.cwd())) if found.is_relative_to(Path.cwd()) else path


def size(number: int) -> str:
    """Format an amount of bytes: ``0 B``, ``812 B``, ``4.1 kB``, ``120 MB``."""
    amount, units = float(number), ["B", "kB", "MB", "GB", "TB"]
    while amount >= 999.5 and len(units) > 1:
        amount, units = amount / 1000, units[1:]
    return f"{amount:.0f} {units[0]}" if units[0] == "B" or amount >= 99.95 else f"{amount:.1f} {units[0]}"


def count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def value_text(value: Json) -> str:
    if isinstance(value, dict):
        if {"code", "message", "who"} <= value.keys():
            return f"{one_line(as_text(value['message']))} ({one_line(as_text(value['code']))})"
        return "  ".join(f"{key}={_within(item)}" for key, item in value.items() if item is not None)
    if isinstance(value, list):
        return ", ".join(value_text(item) for item in value)
    return "none" if value is None else one_line(as_text(value))


def described(action: str, args: Json) -> str:
    """Describe a call on one line: the action, the element, and its other arguments, except ``verify``."""
    given: dict[str, Json] = args if isinstance(args, dict) else {}
    target = given.get("target")
    others = {key: value for key, value in given.items() if key not in ("target", "verify") and value != action}
    return one_line(joined(action, value_text(target) if target else "", value_text(others)))


def _within(value: Json) -> str:
    text = value_text(value)
    return f"({text})" if isinstance(value, dict) else text
