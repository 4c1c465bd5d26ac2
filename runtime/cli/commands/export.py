"""``runops export``: workflows as plain tests, which need no RunOps."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from nodes.errors import UsageError
from runtime.cli import console, flags
from runtime.display import escapes
from runtime.display.text import count
from runtime.export import pytest_file
from runtime.language import reader
from runtime.system import regular_files


def export(
    files: Annotated[list[Path], flags.argument("FILES...", "Workflow files.")],
    as_pytest: Annotated[
        bool, flags.option("--pytest", "Write tests for pytest and pytest-playwright, in plain Python.")
    ] = False,
    output: Annotated[
        Path | None,
        flags.option("--output, -o PATH", "The file, or a folder for `test_NAME.py`; by default stdout, for one file."),
    ] = None,
    force: Annotated[bool, flags.option("--force", "Write over files that are there.")] = False,
) -> None:
    """Write workflows as plain Playwright tests in Python, which run without RunOps.

    What is left out (models, questions to a person, recovery after a crash, …) is listed on stderr, and is a comment at its place. A step that
    is left out and needed becomes a function to fill in; until then its test is skipped, and never passes.
    """
    if not as_pytest:
        raise UsageError("usage", "`export` needs the form of the files", fix="add `--pytest`")
    if len(files) > 1 and (output is None or output.suffix == ".py"):
        raise UsageError("usage", f"{len(files)} files do not fit into one", fix="name a folder: `--output FOLDER`")
    exported = [pytest_file.export(reader.load(each)) for each in files]
    for file, each in zip(files, exported, strict=True):
        if output is None:
            console.result(each.text.removesuffix("\n"))
        else:
            _write(output if output.suffix == ".py" else output / each.name, each.text, force=force)
        _list(file, each)


def _write(path: Path, text: str, *, force: bool) -> None:
    if path.exists() and not force:
        message = f"{path} is there already, and may have functions that somebody filled in"
        raise UsageError("file-exists", message, fix="name another path with `--output`, or write over it: `--force`")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        regular_files.write(path, text.encode())
    except OSError as error:
        message = f"{path} cannot be written: {error.strerror}"
        raise UsageError("file-not-written", message, fix=regular_files.fix(error)) from None
    console.say(f"wrote {escapes.line(str(path))}")


def _list(file: Path, exported: pytest_file.Exported) -> None:
    """List on stderr what is left out of a file."""
    console.say(f"{escapes.line(str(file))}: {count(len(exported.lost), 'thing')} left out")
    for each in exported.lost:
        console.say(f"  {escapes.line(each.place) + ': ' if each.place else ''}{escapes.line(each.what)}")
