"""Diagnostics of a file: one for each mistake, shown with its line.

error[unknown-reference]: `serach` is not defined here
  --> workflows/shop.yaml:42:15
   |
42 |     over: "{{ serach.rows }}"
   |               ^^^^^^ no node above this one has that id
   = did you mean `search`?
"""

from __future__ import annotations

import bisect
import dataclasses
import re
import sys
from collections.abc import Sequence
from typing import Literal

from nodes.errors import UsageError
from nodes.values import Json
from runtime.display import escapes
from runtime.display.stream import Talk, coloured
from runtime.display.text import width_of

WIDEST = 160  # most columns shown of a source line: a longer one is cut around the mistake

BOLD, RED, BLUE = 1, 31, 34


@dataclasses.dataclass(frozen=True, slots=True)
class Mark:
    """A place in a text, on one line: line and columns from 1, and offsets ``start`` and ``stop``. ``end`` and ``stop`` are exclusive."""

    line: int
    column: int
    end: int
    start: int
    stop: int


@dataclasses.dataclass(frozen=True, slots=True)
class Diagnostic:
    code: str
    message: str  # the mistake, in one sentence without a final stop
    file: str
    mark: Mark | None = None
    source: str = ""
    label: str = ""
    help: tuple[str, ...] = ()  # help for the author: the nearest name, the choices, the other place
    level: Literal["error", "hint"] = "error"

    def as_json(self) -> dict[str, Json]:
        """Return it as JSON: code, message, file, and if known, line, column, end (column after the last), label, help."""
        place = {} if self.mark is None else {"line": self.mark.line, "column": self.mark.column, "end": self.mark.end}
        more: dict[str, Json] = {"label": self.label} if self.label else {}
        if self.help:
            more["help"] = list(self.help)
        return {"code": self.code, "message": self.message, "file": self.file, **place, **more}

    def render(self, *, colour: bool = False) -> str:

        def paint(text: str, *codes: int) -> str:
            return escapes.styled(text, *codes) if colour and text else text

        own = RED if self.level == "error" else BLUE
        lines = [f"{paint(f'{self.level}[{self.code}]', BOLD, own)}: {escapes.line(self.message)}"]
        number = "" if self.mark is None else str(self.mark.line)
        margin = " " * max(len(number), 1)
        arrow, bar, equals = (paint(sign, BLUE) for sign in ("-->", "|", "="))
        if self.mark is None:
            lines.append(f"{margin} {arrow} {escapes.line(self.file)}")
        else:
            shown, before, width = excerpt(self.source, self.mark)
            carets = paint("^" * width, BOLD, own)
            lines += [
                f"{margin}{arrow} {escapes.line(self.file)}:{number}:{self.mark.column}",
                f"{margin} {bar}",
                f"{paint(number, BLUE)} {bar} {shown}".rstrip(),
                f"{margin} {bar} {' ' * before}{carets} {escapes.line(self.label)}".rstrip(),
            ]
        return "\n".join(lines + [f"{margin} {equals} {escapes.line(each)}" for each in self.help])


def excerpt(source: str, mark: Mark) -> tuple[str, int, int]:
    """Return the line as a terminal can show it, the columns before the mark, and the columns of the mark (at least one)."""
    start, end = mark.column - 1, max(mark.end - 1, mark.column)
    head = tail = ""
    if len(source) > WIDEST:
        left = max(0, min(start - WIDEST // 3, len(source) - WIDEST))
        head, tail = ("…" if left else ""), ("…" if left + WIDEST < len(source) else "")
        source = source[left : left + WIDEST]
        start, end = start - left, min(end - left, WIDEST)
    before, marked = head + visible(source[:start]), visible(source[start:end])
    return before + marked + visible(source[end:]) + tail, width_of(before), max(width_of(marked), 1)


def visible(text: str) -> str:
    text = re.sub("[\u200b-\u200d\u2060\ufeff]", lambda found: f"\\u{ord(found[0]):04x}", text)
    return escapes.line(text.replace("\t", "    "))


class FileInvalid(UsageError):
    """Invalid files, with every mistake in them, in the order of each file."""

    def __init__(self, code: str, diagnostics: Sequence[Diagnostic], *, fix: str, message: str = "") -> None:
        """``message`` is by default that of the first mistake, with its file."""
        self.diagnostics = tuple(diagnostics)
        first = self.diagnostics[0]
        problems: list[Json] = [each.as_json() for each in self.diagnostics]
        super().__init__(code, message or f"{first.file}: {first.message}", fix=fix, evidence={"problems": problems})

    def render(self, *, colour: bool | None = None) -> str:
        if colour is None:
            colour = coloured(Talk(sys.stderr))
        return "\n\n".join(each.render(colour=colour) for each in self.diagnostics)


class WorkflowInvalid(FileInvalid):
    """An invalid workflow file, with every mistake in it and in the files that it uses, in the order of each file."""

    def __init__(self, diagnostics: Sequence[Diagnostic], file: str | None = None) -> None:
        first, count = diagnostics[0], len(diagnostics)
        file = file or first.file
        has = "has" if all(each.file == file for each in diagnostics) else "and the files that it uses have"
        super().__init__(
            "workflow-invalid",
            diagnostics,
            message=f"{file} {has} {count} mistakes" if count > 1 else "",
            fix=f"fix {'the file' if has == 'has' else 'them'}; `runops validate {file}` checks it again",
        )


BREAKS = re.compile(r"\r\n|\r|\n")


class Source:
    """A text with its lines: converts offsets to places and places to diagnostics."""

    def __init__(self, name: str, text: str) -> None:
        self.name = name
        self.text = text
        self._starts = [0, *(found.end() for found in BREAKS.finditer(text))]

    def mark(self, start: int, stop: int) -> Mark:
        """Return the place from one offset to another; its ``end`` column is cut at the end of the first line."""
        line = bisect.bisect_right(self._starts, start)
        first = self._starts[line - 1]
        ends = first + len(self.line(line))
        return Mark(line, start - first + 1, max(min(stop, ends), min(start + 1, ends + 1)) - first + 1, start, stop)

    def line(self, number: int) -> str:
        start = self._starts[number - 1]
        stop = self._starts[number] if number < len(self._starts) else len(self.text)
        return self.text[start:stop].rstrip("\r\n")

    def diagnostic(
        self, code: str, message: str, mark: Mark | None, *, label: str = "", help: Sequence[str | None] = ()
    ) -> Diagnostic:
        line = "" if mark is None else self.line(mark.line)
        return Diagnostic(code, message, self.name, mark, line, label, tuple(each for each in help if each))
