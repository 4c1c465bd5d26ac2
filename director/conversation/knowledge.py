"""Knowledge of a session: sections of Markdown files, selected for a request by its question.

They are ranked by BM25: a word counts more the rarer it is among the sections, the more often a section has it, and the shorter that is. SQLite's
full-text search does it: it comes with Python and weighs the title, while the libraries for it bring numpy or are not kept any more.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import os
import re
import sqlite3
from collections.abc import Iterable, Iterator
from pathlib import Path

from nodes.errors import UsageError
from runtime.context import window
from runtime.system import regular_files

TITLE, TEXT = 3.0, 1.0  # weights of a word of the question in a section's title and in its text

MOST_FILES = 200
LARGEST_FILE = 1 << 20  # limit in bytes
LONGEST = 8_000  # limit of a section, in characters; the rest is omitted
MOST_WORDS = 200  # limit of the different words of a question that are searched for
FILLER = "·"  # no word of a question
SHORTEST = 3  # least length of a word that counts; shorter words are in every text

_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|[^\W_]+")
"""A word, or one character of a script without blanks between words."""

_HEADING = re.compile(r" {0,3}(#{1,6})(?:[ \t]+(.*?))?(?:[ \t]+#+)?[ \t]*")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")


@dataclasses.dataclass(frozen=True, slots=True)
class Section:
    file: str
    title: str  # the heading; before the first one, the name of the file
    text: str


class Knowledge:
    def __init__(self, sections: Iterable[Section] = ()) -> None:
        self.sections = tuple(sections)

    @classmethod
    def read(cls, paths: Iterable[Path]) -> Knowledge:
        """Read these files and the Markdown files of these folders. Raises UsageError if one cannot be read or is too large."""
        files = [file for path in paths for file in _files(path)]
        if len(files) > MOST_FILES:
            raise UsageError(
                "knowledge-too-large",
                f"the knowledge has {len(files)} files, and may have {MOST_FILES}",
                fix="name the folder that is meant",
            )
        return cls(section for file in files for section in split(_name(file), _content(file)))

    @functools.cached_property
    def _index(self) -> sqlite3.Connection:
        index = sqlite3.connect(":memory:", check_same_thread=False)
        # The words are separated by blanks already: for this tokenizer every other character beyond ASCII is part of one.
        index.execute("CREATE VIRTUAL TABLE sections USING fts5(title, text, tokenize = 'ascii')")
        rows = [(" ".join(words_of(each.title)), " ".join(words_of(each.text))) for each in self.sections]
        # SQLite gives no weight to a word that more than half of the rows have. In a few sections that may be the only word that matters, so
        # as many rows of the same length without any word are put behind them.
        average = sum(text.count(" ") + 1 for _title, text in rows) // max(1, len(rows))
        rows += [("", " ".join([FILLER] * average))] * (len(rows) + 1)
        numbered = ((number, *row) for number, row in enumerate(rows))
        index.executemany("INSERT INTO sections (rowid, title, text) VALUES (?, ?, ?)", numbered)
        return index

    def best(self, question: str, top_k: int) -> list[Section]:
        """Return at most ``top_k`` sections that share a word with the question, best first; equal ones in file order."""
        words = dict.fromkeys(words_of(question))
        if not words or not self.sections:
            return []
        wanted = " OR ".join(f'"{word}"' for word in itertools.islice(words, MOST_WORDS))
        ranked = "SELECT rowid FROM sections WHERE sections MATCH ? ORDER BY bm25(sections, ?, ?), rowid LIMIT ?"
        found = self._index.execute(ranked, (wanted, TITLE, TEXT, top_k))
        return [self.sections[number] for (number,) in found]

    def parts(self, question: str, top_k: int) -> tuple[window.Part, ...]:
        found = self.best(question, top_k)
        return tuple(window.Part(f"{section.file}: {section.title}", section.text) for section in found)


def words_of(text: str) -> list[str]:
    return [
        word for word in _WORD.findall(text.casefold()) if len(word) >= SHORTEST or not word.isascii() or word.isdigit()
    ]


def split(file: str, text: str) -> Iterator[Section]:
    """Yield the sections of a Markdown text. A line with `#` in a code block is no heading."""
    title, lines, fence = Path(file).stem, list[str](), ""
    for line in text.splitlines():
        marked = _FENCE.match(line)
        heading = _HEADING.fullmatch(line) if not fence else None
        if heading is not None:
            yield from _section(file, title, lines)
            title, lines = (heading[2] or "").strip(), []
            continue
        lines.append(line)
        if marked is not None and not fence:
            fence = marked[1]
        elif marked is not None and marked[1].startswith(fence) and not line[marked.end() :].strip():
            fence = ""
    yield from _section(file, title, lines)


def _section(file: str, title: str, lines: list[str]) -> Iterator[Section]:
    text = "\n".join(lines).strip()
    if text:
        yield Section(file, title, text if len(text) <= LONGEST else f"{text[:LONGEST]}\n… (cut)")


def _files(path: Path) -> list[Path]:
    if path.is_dir():
        found = (each for each in path.rglob("*.md") if each.is_file())
        return sorted(each for each in found if not any(name.startswith(".") for name in each.relative_to(path).parts))
    return [path]


def _name(file: Path) -> str:
    """Return the name of a file for a request, with bytes that are not UTF-8 replaced."""
    return os.fsencode(file.name).decode(errors="replace")


def _content(file: Path) -> str:
    if not file.exists():
        raise UsageError("file-not-found", f"there is no file {file}", fix="name a Markdown file, or a folder")
    if not {file.suffix, file.resolve().suffix} == {".md"} or file.is_dir():
        # Knowledge is sent to a model: no other file may be sent by mistake or through a link.
        raise UsageError(
            "file-not-read", f"{file} is no Markdown file", fix="knowledge is in files whose names end with .md"
        )
    try:
        with regular_files.opened(file) as opened:
            data = opened.read(LARGEST_FILE + 1)
    except OSError as error:
        raise UsageError(
            "file-not-read", f"{file} cannot be read: {error.strerror}", fix=regular_files.fix(error)
        ) from None
    if len(data) > LARGEST_FILE:
        raise UsageError(
            "knowledge-too-large", f"{file} has more than {LARGEST_FILE >> 20} MiB", fix="divide it, or leave it out"
        )
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise UsageError("file-not-read", f"{file} is not in UTF-8", fix="save it as UTF-8") from None
