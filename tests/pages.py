"""The pages of the manual, parsed: their files are written, their commands run and the output compared, so that none becomes outdated.

A page is Markdown with fenced blocks. The kinds of blocks:

    ```console          commands after `$ `, and under each its output; `…` is anything on a line, alone on a line any lines
    ```yaml             a whole workflow file (with `version:`), or a piece of one
    ```yaml, python, toml … whose first line is `# NAME`: a file, put into the page's folder before the commands under it are run
    ```text             something to look at

A file called `mistake…` is one that RunOps refuses. `# …` after a command is a remark. A command may continue over lines that begin with `> `.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
RECORDS = ROOT / "docs" / "builds"
"""Contains the records of builds, in a folder for each: unchanged, and not in our words."""

PAGES = [
    ROOT / "README.md",
    *(each for each in sorted((ROOT / "docs").rglob("*.md")) if each.parent.parent != RECORDS),
]

FENCE = re.compile(
    r"^(?P<margin> *)```(?P<language>[\w-]*)[^\n]*\n(?P<text>.*?)^(?P=margin)```$", re.DOTALL | re.MULTILINE
)
NAMED = re.compile(r"# (?P<name>[\w./-]+\.\w+)\n")
COMMAND = re.compile(r"^\$ (?P<text>.*(?:\n> .*)*)\n?", re.MULTILINE)


@dataclasses.dataclass(frozen=True, slots=True)
class Command:
    """A command of a page."""

    text: str
    """As it is typed, over several lines where it is long."""
    wanted: str
    """The output that the page shows."""
    line: int
    """The line of the page, from 1, where the output begins."""


@dataclasses.dataclass(frozen=True, slots=True)
class Block:
    """A fenced block of a page."""

    language: str
    text: str
    line: int
    """The line of the page, from 1, where its text begins."""

    @property
    def file(self) -> str | None:
        """The name of the file that it shows."""
        found = NAMED.match(self.text) if self.language != "console" else None
        return found["name"] if found else None

    def commands(self) -> Iterator[Command]:
        """The commands of a `console` block."""
        found = list(COMMAND.finditer(self.text))
        ends = [each.start() for each in found[1:]] + [len(self.text)]
        for each, end in zip(found, ends, strict=True):
            line = self.line + self.text[: each.end()].count("\n")
            yield Command(each["text"].replace("\n> ", "\n"), self.text[each.end() : end], line)


def blocks(page: Path) -> list[Block]:
    """The fenced blocks of a page, in order."""
    text = page.read_text(encoding="utf-8")
    return [
        Block(
            each["language"],
            re.sub(rf"^{each['margin']}", "", each["text"], flags=re.MULTILINE),
            text[: each.start("text")].count("\n") + 1,
        )
        for each in FENCE.finditer(text)
    ]


def difference(wanted: str, printed: str) -> tuple[int, str] | None:
    """The first difference between page and output: the line of `wanted`, from 0, and both line by line. None where they are the same."""
    left, right = wanted.rstrip("\n").split("\n"), printed.rstrip("\n").split("\n")
    reached: set[tuple[int, int]] = set()
    open_ = [(0, 0)]
    while open_:
        at = open_.pop()
        if at in reached:
            continue
        reached.add(at)
        line, other = at
        if line < len(left) and left[line] == "…":
            open_ += [(line + 1, other), *([(line, other + 1)] if other < len(right) else [])]
        elif line < len(left) and other < len(right) and same(left[line], right[other]):
            open_.append((line + 1, other + 1))
    if (len(left), len(right)) in reached:
        return None
    line, other = max(reached, key=lambda at: (at[0], -at[1]))
    shown = [f"  {each}" for each in left[:line]]
    shown += [f"- {each}" for each in left[line:]] + [f"+ {each}" for each in right[other:]]
    return min(line, len(left) - 1), "\n".join(shown)


def same(wanted: str, printed: str) -> bool:
    """True if an output line matches the line of the page, ignoring blanks at its end."""
    pattern = re.escape(wanted.rstrip()).replace("…", ".*")
    return re.fullmatch(pattern, printed.rstrip()) is not None
