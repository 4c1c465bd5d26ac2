"""Reads references in the ``sql`` of a ``transform``, which takes none, as parameters and tables."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from nodes.template import OPENING
from nodes.values import Json
from runtime.language.expressions import references


class Read(NamedTuple):
    sql: str
    params: dict[str, Json]


_TABLE = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*")
_WORD = re.compile(r"[A-Za-z_]\w*")
_MARK = re.compile("\0([0-9]+)\0")  # stands for a reference
_LEXEME = re.compile("'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|--[^\n]*|/\\*.*?\\*/|\0[0-9]+\0", re.DOTALL)
_OF_TABLE = re.compile(r"\b(?:from|join)\s*$", re.IGNORECASE)
_NO_VALUE = re.compile(r"(?:[\w.$]|\b(?:by|as)\s+)$", re.IGNORECASE)  # before the name of a column
_OF_LITERAL = re.compile(r"\b(?:date|time|timestamp\w*|interval|e|x)\s*$", re.IGNORECASE)  # `date '2026-01-01'`
_OF_LIST = re.compile(r"\bin\s*\(\s*$", re.IGNORECASE)  # `n in ({{ ns }})`: a parameter is one value
_NAME_GOES_ON = re.compile(r"[\w.(]")


def read(sql: str, params: Mapping[str, Json]) -> Read | None:
    """Return the statement with each reference as a parameter, or as a table after FROM; None if one can be neither, or something else."""
    spans = references.spans(sql)
    if "\0" in sql or not spans or len(spans) < sql.count(OPENING):
        return None
    found = _Parameters(sql, params)
    marked, end = "", 0
    for number, (start, stop) in enumerate(spans):
        marked, end = f"{marked}{sql[end:start]}\0{number}\0", stop
    marked += sql[end:]
    written, end = "", 0
    for lexeme in _LEXEME.finditer(marked):
        written += marked[end : lexeme.start()]
        end = lexeme.end()
        if "\0" not in lexeme[0]:
            written += lexeme[0]
        elif (
            said := _as_sql(lexeme[0], found, [sql[start:stop] for start, stop in spans], written, marked[end:])
        ) is None:
            return None
        else:
            written += said
    return Read(written + marked[end:], found.params)


class _Parameters:
    def __init__(self, sql: str, params: Mapping[str, Json]) -> None:
        self.params = dict(params)
        self._used = {*params, *re.findall(r"\$(\w+)", sql)}

    def name(self, reference: str) -> str:
        known = next((f"${name}" for name, each in self.params.items() if each == reference), None)
        if known is not None:
            return known
        words = _WORD.findall(re.sub(r"""'[^']*'|"[^"]*\"""", "", reference[2:-2]).partition("|")[0])
        stem = name = words[-1] if words else "value"
        number = 1
        while name in self._used:
            name = f"{stem}_{(number := number + 1)}"
        self._used.add(name)
        self.params[name] = reference
        return f"${name}"


def _as_sql(lexeme: str, found: _Parameters, written: list[str], before: str, after: str) -> str | None:
    """Return a quoted text, or the mark of a reference alone, as SQL; None where a parameter cannot stand."""
    if (_OF_LITERAL if lexeme[0] == "'" else _OF_LIST).search(before):
        return None
    if lexeme[0] == "'":
        parts = [*_parts(lexeme[1:-1], found, written)]
        return parts[0] if len(parts) == 1 else f"({' || '.join(parts)})"
    if lexeme[0] != "\0":
        return None  # a quoted name, or a comment
    reference = written[int(lexeme.strip("\0"))]
    inside = reference[2:-2].strip()
    if _OF_TABLE.search(before):
        return inside if _TABLE.fullmatch(inside) else None
    return None if _NO_VALUE.search(before) or _NAME_GOES_ON.match(after) else found.name(reference)


def _parts(text: str, found: _Parameters, written: list[str]) -> Iterator[str]:
    for number, part in enumerate(_MARK.split(text)):
        if number % 2:
            yield found.name(written[int(part)])
        elif part:
            yield f"'{part}'"
