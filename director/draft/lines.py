"""Lines of a text, by offsets: where they begin and end, and the comments around them."""

from __future__ import annotations

import re
from typing import Any

from runtime.language import yaml_text
from runtime.language.diagnostics import Source

_COMMENT = re.compile(r"([ ]*)#.*")
_BEHIND = re.compile(r"[ \t]*(?:[ \t]#[^\r\n]*)?(?=[\r\n]|\Z)")


def data_at(data: Any, path: yaml_text.Path) -> Any:
    """What stands at a path of some data."""
    for step in path:
        data = data[step]
    return data


def start_of(text: str, offset: int) -> int:
    """Where the line begins in which something stands."""
    return max(text.rfind("\n", 0, offset), text.rfind("\r", 0, offset)) + 1


def at(text: str, start: int) -> str | None:
    """The line that begins there, without its break; None at the end of the text."""
    if start >= len(text):
        return None
    found = Source.BREAKS.search(text, start)
    return text[start : found.start()] if found is not None else text[start:]


def after(text: str, offset: int) -> int:
    """Where the next line begins, or the text ends."""
    found = Source.BREAKS.search(text, offset)
    return found.end() if found is not None else len(text)


def end_before(text: str, start: int) -> int:
    """Where the line ends that stands above the one that begins there; at the beginning of the text that."""
    return len(without_break(text[:start]))


def without_break(text: str) -> str:
    """A text without the line break at its end."""
    return text[:-2] if text.endswith("\r\n") else text[:-1] if text.endswith(("\n", "\r")) else text


def behind(text: str, stop: int) -> int:
    """The end of the line on which something ends, if nothing but blanks and a comment comes behind it; else where it ends."""
    found = _BEHIND.match(text, stop)
    return found.end() if found is not None else stop


def end_with_comments(text: str, stop: int, column: int) -> int:
    """The end of the line on which something ends, and of the comments right below it that are further to the right than ``column``."""
    tail = behind(text, stop)
    while (line := at(text, after(text, tail))) is not None:
        comment = _COMMENT.fullmatch(line)
        if comment is None or len(comment[1]) <= column:
            break
        tail = after(text, tail) + len(line)
    return tail


def comments_above(text: str, own: int, column: int, floor: int) -> int:
    """Where the comments at ``column`` begin that stand right above a line; none that begins before ``floor``."""
    head = own
    while head > floor:
        above = start_of(text, end_before(text, head))
        found = _COMMENT.fullmatch(at(text, above) or "")
        if above < floor or found is None or len(found[1]) != column:
            break
        head = above
    return head


def is_blank(lines: str) -> bool:
    """Whether there are lines, and nothing stands in them."""
    return bool(lines) and not lines.strip()


def begins_blank(lines: str) -> bool:
    """Whether the first of some lines is empty."""
    found = Source.BREAKS.search(lines)
    return found is not None and not lines[: found.start()].strip()


def blank_at_end(lines: str) -> int:
    """How many characters the empty lines have with which some lines end."""
    said = lines.rstrip()
    return len(lines) - (after(lines, len(said)) if said else 0)
