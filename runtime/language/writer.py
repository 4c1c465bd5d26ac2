"""Writes data as the text of a workflow file, which is read back as the same data."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from nodes.values import Json

WIDTH = 120  # longest line in characters for a map or list on one line

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_./-]*(?: [A-Za-z0-9_./-]+)*")
_WORDS = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n"})
_MARKS = re.compile(r"\{\{|\{%|\{#")
"""Marks that begin an expression or would be a mistake."""

BLOCKS = frozenset({"nodes", "branches", "otherwise", "try", "catch", "finally", "confirm"})
"""Fields that contain nodes: each node starts a new line."""


class Comment(str):
    """A comment between the items of a list."""

    __slots__ = ()


def literal(value: Json) -> Json:
    """Return a value for a field that takes references, with anything like a reference escaped as plain text."""
    if isinstance(value, str):
        if "{{" not in value and "{%" not in value:
            return value
        return _MARKS.sub(lambda found: f"{{{{ '{found[0]}' }}}}", value)
    if isinstance(value, list):
        return [literal(each) for each in value]
    if isinstance(value, dict):
        return {key: literal(each) for key, each in value.items()}
    return value


def text(data: dict[str, Json]) -> str:
    """Return the text of a file with this data; a ``Comment`` in a list gets its own lines."""
    lines: list[str] = []
    for key, value in data.items():
        if key == "nodes":
            lines.append("")
        lines += _entry(key, value, "")
    return "\n".join(lines) + "\n"


def inline(value: Json) -> str:
    found = _inline(value)
    assert found is not None, "data holds no comments"
    return found


def _entry(key: str, value: Json, indent: str) -> Iterator[str]:
    head = f"{indent}{_scalar(key)}:"
    if isinstance(value, str) and (block := _literal_block(value, indent)) is not None:
        yield f"{head} {block[0]}"
        yield from block[1:]
        return
    inline = None if key in BLOCKS else _inline(value)
    if inline is not None and len(head) + 1 + len(inline) <= WIDTH:
        yield f"{head} {inline}"
    elif isinstance(value, dict) and value:
        yield head
        for name, each in value.items():
            yield from _entry(name, each, f"{indent}  ")
    elif isinstance(value, list) and value:
        yield head
        yield from _items(value, f"{indent}  ")
    else:
        yield f"{head} {_inline(value) or _scalar(value)}"


def _items(items: Sequence[Any], indent: str) -> Iterator[str]:
    for item in items:
        if isinstance(item, Comment):
            yield from (f"{indent}# {line}" for line in item.splitlines())
            continue
        inline = None if isinstance(item, dict) and BLOCKS & item.keys() else _inline(item)
        if inline is not None and (len(indent) + 2 + len(inline) <= WIDTH or not isinstance(item, dict | list)):
            yield f"{indent}- {inline}"
        elif isinstance(item, dict) and item:
            lines = [line for name, each in item.items() for line in _entry(name, each, f"{indent}  ")]
            yield f"{indent}- {lines[0][len(indent) + 2 :]}"
            yield from lines[1:]
        elif isinstance(item, list):
            yield f"{indent}-"
            yield from _items(item, f"{indent}  ")


def _inline(value: Json) -> str | None:
    if isinstance(value, dict):
        parts = {key: _inline(each) for key, each in value.items()}
        if None in parts.values():
            return None
        return "{" + ", ".join(f"{_scalar(key)}: {each}" for key, each in parts.items()) + "}"
    if isinstance(value, list):
        if any(isinstance(each, Comment) for each in value):
            return None
        inside = [_inline(each) for each in value]
        return None if None in inside else "[" + ", ".join(each or "" for each in inside) + "]"
    return _scalar(value)


def _scalar(value: Json) -> str:
    if not isinstance(value, str):
        return "null" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
    if _PLAIN.fullmatch(value) and value.lower() not in _WORDS:
        return value
    quoted = json.dumps(value, ensure_ascii=False)
    escaped = ((each, f"\\u{ord(each):04x}" if each <= "\uffff" else f"\\U{ord(each):08x}") for each in quoted)
    return "".join(each if each.isprintable() else code for each, code in escaped)


def _literal_block(value: str, indent: str) -> list[str] | None:
    lines = value.removesuffix("\n").split("\n")
    fit = all(line.isprintable() and line == line.rstrip() for line in lines) and not value.startswith((" ", "\n"))
    if len(lines) < 2 or not fit or not lines[-1]:
        return None
    return ["|" if value.endswith("\n") else "|-", *(f"{indent}  {line}" if line else "" for line in lines)]
