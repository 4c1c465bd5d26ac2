"""Files that ``runops init`` and ``runops new`` write: templates, the schema for editors, and lines of files that may exist."""

from __future__ import annotations

import dataclasses
import os
from importlib import resources
from pathlib import Path
from typing import Literal

from nodes.errors import UsageError
from runtime.display import escapes
from runtime.language.schema import workflow_schema
from runtime.system import regular_files

SCHEMA = "workflow.schema.json"
MODELINE = "# yaml-language-server: $schema="

State = Literal["created", "kept", "replaced", "added"]


@dataclasses.dataclass(frozen=True, slots=True)
class Written:
    """A file, and what was done to it; ``note`` says more."""

    file: Path
    state: State
    note: str = ""


def template(name: str) -> str:
    return (resources.files("runtime.cli") / "templates" / name).read_text(encoding="utf-8")


def schema_text() -> str:
    """Return the schema of workflow files, as ``runops schema`` prints it."""
    return f"{escapes.as_json(workflow_schema(), indent=2)}\n"


def put(file: Path, text: str, *, force: bool = False, differs: str = "") -> Written:
    """Write a file that is not there; one that is there stays, unless ``force``, with the note ``differs`` if it has another text."""
    found = _read(file)
    if found is not None and (not force or found == text):
        return Written(file, "kept", differs if found != text else "")
    _write(file, text)
    return Written(file, "created" if found is None else "replaced")


def add_lines(file: Path, wanted: tuple[str, ...]) -> Written:
    """Add the lines that the file lacks to its end."""
    found = _read(file)
    lines = [] if found is None else [each.strip().strip("/") for each in found.splitlines()]
    missing = [each for each in wanted if each.strip("/") not in lines]
    if not missing:
        return Written(file, "kept")
    before = "" if not found else found if found.endswith("\n") else f"{found}\n"
    _write(file, before + "".join(f"{each}\n" for each in missing))
    return Written(file, "created" if found is None else "added", " ".join(missing))


def schema_for(folder: Path, top: Path) -> Path | None:
    """Return the schema in the folder, or in the nearest one above up to ``top``."""
    for each in (folder, *folder.parents):
        if (each / SCHEMA).is_file():
            return each / SCHEMA
        if each == top:
            break
    return None


def modeline(file: Path, schema: Path) -> str:
    return f"{MODELINE}{Path(os.path.relpath(schema, file.parent)).as_posix()}\n"


def _read(file: Path) -> str | None:
    try:
        return regular_files.read(file).decode("utf-8", "surrogateescape")
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _not_written(file, error) from None


def _write(file: Path, text: str) -> None:
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        regular_files.write(file, text.encode("utf-8", "surrogateescape"))
    except OSError as error:
        raise _not_written(file, error) from None


def _not_written(file: Path, error: OSError) -> UsageError:
    return UsageError("file-not-written", f"{file} cannot be written: {error.strerror}", fix=regular_files.fix(error))
