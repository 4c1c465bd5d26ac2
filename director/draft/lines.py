"""Lines of a text, by offsets: their beginnings and ends, and the comments around them."""

from __future__ import annotations

import re
from typing import Any

from runtime.language import yaml_text
from runtime.language.diagnostics import Source

_COMMENT = re.compile(r"([ ]*)#.*")
_BEHIND = re.compile(r"[ \t]*(?:[ \t]#[^\r\n]*)?(?=[\r\n]|\Z)")


def data_at(data: Any, path: yaml_text.Path) -> Any:
    """Return the value at a path of some data."""
    for step in path:
        data = data[step]
    return data


def start_of(text: str, offset: int) -> int:
    """Return the start of the line that contains ``offset``."""
    return max(text.rfind("\n", 0, offset), text.rfind("\r", 0, offset)) + 1


def at(text: str, start: int) -> str | None:
    """Return the line that begins there, without its break; None at the end of the text."""
    if start >= len(text):
        return None
    found = Source.BREAKS.search(text, start)
    return text[start : found.start()] if found is not None else text[start:]


def after(text: str, offset: int) -> int:
    """Return the start of the next line, or the end of the text."""
    found = Source.BREAKS.search(text, offset)
    return found.end() if found is not None else len(text)


def end_before(text: str, start: int) -> int:
    """Return the end of the line above the one that begins there; at the beginning of the text, that beginning."""
    return len(without_break(text[:start]))


def without_break(text: str) -> str:
    """Return a text without the line break at its end."""
    return text[:-2] if text.endswith("\r\n") else text[:-1] if text.endswith(("\n", "\r")) else text


def behind(text: str, stop: int) -> int:
    """Return the end of the line if only blanks and a comment follow ``stop``, else ``stop``."""
    found = _BEHIND.match(text, stop)
    return found.end() if found is not None else stop


def end_with_comments(text: str, stop: int, column: int) -> int:
    """Return the end of the line, with the comments right below it that are indented further than ``column``."""
    tail = behind(text, stop)
    while (line := at(text, after(text, tail))) is not None:
        comment = _COMMENT.fullmatch(line)
        if comment is None or len(comment[1]) <= column:
            break
        tail = after(text, tail) + len(line)
    return tail


def comments_above(text: str, own: int, column: int, floor: int) -> int:
    """Return the start of the comments at ``column`` right above a line, at least ``floor``."""
    head = own
    while head > floor:
        above = start_of(text, end_before(text, head))
        found = _COMMENT.fullmatch(at(text, above) or "")
        if above < floor or found is None or len(found[1]) != column:
            break
        head = above
    return head


def is_blank(lines: str) -> bool:
    """Return whether there are lines and all are blank."""
    return bool(lines) and not lines.strip()


def begins_blank(lines: str) -> bool:
    """Return whether the first line is empty."""
    found = Source.BREAKS.search(lines)
    return found is not None and not lines[: found.start()].strip()


def blank_at_end(lines: str) -> int:
    """Return the number of characters in the trailing empty lines."""
    said = lines.rstrip()
    return len(lines) - (after(lines, len(said)) if said else 0)
