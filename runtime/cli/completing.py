"""Answers a shell that completes a command line. It imports little and never raises, since a person waits at the prompt.

The shell calls ``runops`` with ``VARIABLE`` set and the words of the line, the one at the cursor last. Each line of the answer is a
candidate and, after a tab, what it is; or one of ``FILES``, which the shell itself completes.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from runtime.settings import homes
from runtime.system import regular_files

VARIABLE = "_RUNOPS_COMPLETE"
TABLE = Path(__file__).with_name("completions.json")
FILES = {"files": ":files", "folders": ":folders", "workflows": ":workflows"}
LISTED = 30  # runs, the newest
HEAD = 4096  # bytes of a log that tell what it is

Spec = dict[str, Any]


def answer(words: list[str]) -> int:
    with contextlib.suppress(Exception):
        text = "\n".join("\t".join(filter(None, each)) for each in candidates(words))
        sys.stdout.write(f"{text}\n" if text else "")
        sys.stdout.flush()
    return 0


def candidates(words: list[str]) -> Iterator[tuple[str, str]]:
    """Yield the words that may stand at the cursor, each with what it is."""
    *before, current = words or [""]
    table: Spec = json.loads(TABLE.read_text(encoding="utf-8"))
    if not before:
        yield from _starting(_first(table, current), current)
        return
    command = table["commands"].get(before[0]) or _of_package(before[0])
    if command is None:
        return
    rest, prefix = before[1:], ""
    if current == "=":  # bash makes a word of it
        current = ""
    elif rest and rest[-1] == "=":
        rest = rest[:-1]
    elif current.startswith("--") and "=" in current:
        option, _, current = current.partition("=")
        rest, prefix = [*rest, option], f"{option}="
    elif current.startswith("-"):
        yield from _starting(_options(command), current)
        return
    takes = _option(command, rest[-1]) if rest else None
    if takes is None or takes["flag"]:
        takes = _argument(command, rest)
    for value, text in _starting(_values(takes, table), current):
        yield (value if value in FILES.values() else f"{prefix}{value}"), text


def _starting(found: Iterator[tuple[str, str]], current: str) -> Iterator[tuple[str, str]]:
    return ((value, text) for value, text in found if value in FILES.values() or value.startswith(current))


def _first(table: Spec, current: str) -> Iterator[tuple[str, str]]:
    if current.startswith("-"):
        yield from (("--help", "Show what there is."), ("--version", "Print the version."))
        return
    yield from ((name, each["help"]) for name, each in table["commands"].items())
    if current and any(name.startswith(current) for name in table["commands"]):
        return  # to look for those of other packages takes as long again
    from runtime.cli import command_table

    yield from ((each.name, each.help) for each in command_table.offered() if each.name not in table["commands"])


def _of_package(name: str) -> Spec | None:
    """Describe a command of another package; it has to be imported for that."""
    from runtime.cli import command_table, completion_table

    command = command_table.find(name)
    return completion_table.described(command) if command is not None else None


def _options(command: Spec) -> Iterator[tuple[str, str]]:
    for each in command["options"]:
        yield from ((name, each["help"]) for name in (*each["names"], *each["off"]) if name.startswith("--"))
    yield "--help", "Show what the command does and takes."


def _option(command: Spec, word: str) -> Spec | None:
    return next((each for each in command["options"] if word in (*each["names"], *each["off"])), None)


def _argument(command: Spec, words: list[str]) -> Spec | None:
    """Return the argument that comes after the words."""
    given, skip = 0, False
    for word in words:
        option = None if skip else _option(command, word)
        if not skip and not word.startswith("-"):
            given += 1
        skip = option is not None and not option["flag"]
    arguments: list[Spec] = command["arguments"]
    if given < len(arguments):
        return arguments[given]
    return arguments[-1] if arguments and arguments[-1]["many"] else None


def _values(takes: Spec | None, table: Spec) -> Iterator[tuple[str, str]]:
    if takes is None:
        return
    yield from ((value, "") for value in takes["choices"])
    for kind in takes["kinds"]:
        if kind in FILES:
            yield FILES[kind], ""
        elif kind == "settings":
            yield from table["settings"].items()
        else:
            if kind == takes["kinds"][0]:  # of two kinds the first is meant
                yield "last", f"the last {kind.removesuffix('s')}"
            yield from _conversations(kind)


def _conversations(kind: str) -> Iterator[tuple[str, str]]:
    """Yield the newest runs or sessions."""
    files = sorted((_home() / "conversations").glob("*.jsonl"), key=lambda each: each.name, reverse=True)
    for file in files[:LISTED]:
        head = regular_files.read(file, HEAD).partition(b"\n")[0].decode("utf-8", "replace")
        if _said(head, "thread") == kind.removesuffix("s"):
            about = (_said(head, "at")[:16].replace("T", " "), _said(head, "workflow"))
            yield file.stem, "  ".join(filter(None, about))


def _said(head: str, name: str) -> str:
    """Return the first text of that name in a beginning of JSON, without characters that a terminal may obey."""
    found = re.search(rf'"{name}":("(?:[^"\\]|\\.)*")', head)
    return "".join(each for each in json.loads(found[1]) if each.isprintable()) if found else ""


def _home() -> Path:
    """Return the folder that keeps the runs: a simple reading of the places that settings come from."""
    given = os.environ.get("RUNOPS_HOME")
    if not given:
        with contextlib.suppress(OSError):
            found = re.search(r"^(?:export\s+)?RUNOPS_HOME=(.*)$", regular_files.read_text(".env"), re.MULTILINE)
            given = found[1].strip().strip("'\"") if found else None
    return Path(given).expanduser() if given else _of_project() or homes.find_home()


def _of_project() -> Path | None:
    here = Path.cwd()
    file = next(
        (each / "pyproject.toml" for each in (here, *here.parents) if (each / "pyproject.toml").is_file()), None
    )
    if file is None or "tool.runops" not in (text := regular_files.read_text(file)):
        return None
    import tomllib

    home = tomllib.loads(text)["tool"]["runops"].get("home")
    return file.parent / Path(home).expanduser() if home else None
