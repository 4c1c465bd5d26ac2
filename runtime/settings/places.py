"""Places of settings: variables of the environment, lines of ``.env``, lines of ``[tool.runops]`` in the nearest pyproject.toml."""

from __future__ import annotations

import dataclasses
import difflib
import io
import os
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Literal

from dotenv.parser import parse_stream

from nodes.errors import UsageError, did_you_mean
from runtime.secrets import sources
from runtime.system import regular_files

PREFIX = "RUNOPS_"
OTHERS = ("RUNOPS_MODEL_KEY", "RUNOPS_TRACEBACK")
"""Variables that are read and are no settings."""
CLOSE = 0.85  # similarity from which a variable is a misspelt setting, and no name of somebody else's

Kind = Literal["environment", ".env", "pyproject.toml", "default"]


@dataclasses.dataclass(frozen=True, slots=True)
class Place:
    """Where a value is set."""

    kind: Kind
    name: str = ""  # the variable, or the name in the table
    file: Path | None = None
    line: int | None = None

    def __str__(self) -> str:
        """Return the variable of the environment, or the file with its line."""
        if self.file is None:
            return self.name or self.kind
        folder = Path.cwd()
        file = self.file.relative_to(folder) if self.file.is_relative_to(folder) else self.file
        return f"{file}:{self.line}" if self.line is not None else str(file)

    @property
    def named(self) -> str:
        """Return the name and its place, for a message."""
        match self.kind:
            case ".env":
                return f"{self.name} in {self.file}:{self.line}"
            case "pyproject.toml":
                return f"`{self.name}` of [tool.runops] in {self.file}:{self.line}"
            case _:
                return self.name or self.kind


def given(variable: str) -> Iterator[tuple[Place, str]]:
    """Yield the values of a variable, whatever its case, the one that counts first: of the environment, then of ``.env``."""
    for name, value in os.environ.items():
        if name.upper() == variable and value:
            yield Place("environment", name), value
    file = Path(".env").absolute()
    for name, value in sources.read_env_file(file).items():
        if name.upper() == variable and value:
            yield Place(".env", name, file, _line_of_variable(file, name)), value


def misspelt(settings: Iterable[str]) -> list[tuple[Place, str]]:
    """Return the variables that are nearly those of a setting, each with the intended one."""
    return [(place, close) for place, close in _unknown(settings) if close is not None]


def strange(settings: Iterable[str]) -> list[Place]:
    """Return the other variables with our prefix. They may belong to another program, or be secrets."""
    return [place for place, close in _unknown(settings) if close is None]


def _unknown(settings: Iterable[str]) -> Iterator[tuple[Place, str | None]]:
    known = {f"{PREFIX}{name}".upper() for name in settings} | {*OTHERS}
    file = Path(".env").absolute()
    for of, names in ((None, [*os.environ]), (file, [*sources.read_env_file(file)])):
        for name in sorted(names):
            if name.upper().startswith(PREFIX) and name.upper() not in known:
                place = Place(".env", name, of, _line_of_variable(of, name)) if of else Place("environment", name)
                yield place, next(iter(difflib.get_close_matches(name.upper(), known, 1, CLOSE)), None)


def _line_of_variable(file: Path, name: str) -> int | None:
    found = None
    for each in parse_stream(io.StringIO(regular_files.read_text(file))):
        if each.key == name:  # the last one counts
            before = each.original.string[: -len(each.original.string.lstrip()) or None]
            found = each.original.line + before.count("\n")
    return found


def project_file() -> Path | None:
    here = Path.cwd()
    files = [folder / "pyproject.toml" for folder in (here, *here.parents)]
    return next((file for file in files if file.exists() and not file.is_dir()), None)


def project_table(settings: Iterable[str]) -> dict[str, Any]:
    """Return ``[tool.runops]`` as written. Raises UsageError ``bad-setting`` for an unreadable file and an unknown setting."""
    file = project_file()
    if file is None:
        return {}
    try:
        table = _table(regular_files.read_text(file))
    except (OSError, ValueError) as error:
        reason = (error.strerror or error) if isinstance(error, OSError) else error
        fix = regular_files.fix(error) or "fix the file"
        raise UsageError("bad-setting", f"{file} cannot be read: {reason}", fix=fix) from None
    if not isinstance(table, dict):
        raise UsageError("bad-setting", f"`tool.runops` in {file} is not a table", fix="write it as `[tool.runops]`")
    known = [*settings]
    for name in table:
        if name not in known:
            raise UsageError(
                "bad-setting",
                f"[tool.runops] has an unknown setting `{name}`: {in_project(name)}",
                fix=did_you_mean(name, known, f"known settings: {', '.join(known)}"),
            )
    return {**table}


def _table(text: str) -> Any:
    return tomllib.loads(text).get("tool", {}).get("runops", {})


def in_project(name: str) -> Place:
    """Return the place of a setting that the table has."""
    file = project_file()
    assert file is not None
    return Place("pyproject.toml", name, file, _line_of_key(regular_files.read_text(file), name))


def _line_of_key(text: str, name: str) -> int | None:
    """Return the line that brings the setting: the last with its name before which the file lacks it."""
    lines = text.splitlines(keepends=True)
    for number in range(len(lines), 0, -1):
        if name in lines[number - 1]:
            try:
                before = _table("".join(lines[: number - 1]))
            except ValueError:  # within a text or a list of several lines
                continue
            if not isinstance(before, dict) or name not in before:
                return number
    return None
