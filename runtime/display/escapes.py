r"""Escapes text for a terminal: escaped text cannot move a cursor, colour, hide or reverse anything, nor command a CI server.

Control characters become ``\x1b`` and the like, characters that change the writing direction ``\u202e`` and the like.
``runtime.display.stream`` passes all text for people through ``shown``. A random mark exempts our own colours and commands.
"""

from __future__ import annotations

import json
import os
import re
import secrets
from collections.abc import Mapping

from nodes.values import Json

CONTROLS = "\x00-\x08\x0b-\x1f\x7f-\x9f"
TURNING = "\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069"
HALVES = "\ud800-\udfff"

_UNSAFE = re.compile(f"[{CONTROLS}{TURNING}{HALVES}]")
_UNSAFE_IN_LINE = re.compile(f"[\t\n{CONTROLS}{TURNING}{HALVES}]")

_MARK = f"\x1b<{secrets.token_hex(8)}>"
"""Marks our own sequences; random for each process, so that no page and no name can contain it."""

_OURS = re.compile(rf"(?:{_MARK}([0-9;]*m|K|::)|\r(?=\n))")

_COMMAND = re.compile(r"^(\s*):(?=:|\Z)|#(?=#(?:\[|\Z))|\A#(?=\[)", re.MULTILINE)
"""What GitHub's runner takes for a command, in a line of either stream: ``::error::…`` at its beginning, ``##[error]…`` anywhere.

A text may also end or begin in the midst of one.
"""

_COMMAND_IN_JSON = re.compile(r"##(?=\[)")

ERASED = f"{_MARK}K"  # clears the cursor's line


def shown(text: str) -> str:
    """Escape ``text`` for a terminal: only its line breaks, tabs and our own colours stay. In GitHub Actions commands are escaped, too."""
    if in_github():
        text = _COMMAND.sub(_escape_command, text)
    if text.isprintable():
        return text
    kept, end = [], 0
    for ours in _OURS.finditer(text):
        kept += [_UNSAFE.sub(_escape, text[end : ours.start()]), _sequence(ours)]
        end = ours.end()
    return "".join([*kept, _UNSAFE.sub(_escape, text[end:])])


def in_github() -> bool:
    """True if GitHub's runner reads what is printed."""
    return os.environ.get("GITHUB_ACTIONS") == "true"


def line(text: str) -> str:
    """Escape ``text`` on one line, as for a name: line breaks and tabs too."""
    return text if text.isprintable() else _UNSAFE_IN_LINE.sub(_escape, text)


def is_safe(text: str) -> bool:
    """True if nothing in ``text`` is escaped when it is shown."""
    if in_github() and _COMMAND.search(text) is not None:
        return False
    return text.isprintable() or _UNSAFE.search(text) is None


def as_json(value: Json, *, indent: int | None = None) -> str:
    """Format ``value`` as JSON, with unsafe characters as JSON escapes, which mean the same."""
    return in_json(json.dumps(value, ensure_ascii=False, indent=indent))


def in_json(text: str) -> str:
    return _COMMAND_IN_JSON.sub(r"#\\u0023", _UNSAFE.sub(_escape_json, text))


def command(name: str, properties: Mapping[str, str], message: str) -> str:
    """Return a line that GitHub's runner takes for a command; no text in it can be another one."""
    given = ",".join(f"{key}={_in_property(value)}" for key, value in properties.items())
    return f"{_MARK}::{name}{f' {given}' if given else ''}::{_in_message(message)}"


def _in_message(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _in_property(text: str) -> str:
    return _in_message(text).replace(":", "%3A").replace(",", "%2C")


def styled(text: str, *codes: int) -> str:
    return f"{_MARK}{';'.join(map(str, codes))}m{text}{_MARK}0m"


def _sequence(ours: re.Match[str]) -> str:
    if ours[1] is None:
        return ours[0]
    if ours[1] == "::":
        return ours[1]
    return "\r\x1b[K" if ours[1] == "K" else f"\x1b[{ours[1]}"


def _escape(found: re.Match[str]) -> str:
    number = ord(found[0])
    return f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}"


def _escape_command(found: re.Match[str]) -> str:
    return r"\x23" if found[1] is None else rf"{found[1]}\x3a"


def _escape_json(found: re.Match[str]) -> str:
    return f"\\u{ord(found[0]):04x}"
