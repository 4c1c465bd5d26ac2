"""Finding, reading and validating the workflows that a command line names, before any of them begins."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from nodes import registry
from nodes.errors import RunOpsError, UsageError
from nodes.values import Json
from runtime.language import reader, workflow, yaml_text
from runtime.system import regular_files

SUFFIXES = (".yaml", ".yml")
SKIPPED = frozenset({"node_modules", "__pycache__", "site-packages"})
"""Folders that hold other people's files, or none. Hidden folders and virtual environments are skipped too."""


@dataclasses.dataclass(frozen=True, slots=True)
class Found:
    file: Path  # the path as it was named; for a file of a folder, that folder's name and the relative path
    loaded: workflow.Loaded | None
    error: RunOpsError | None = None  # the reason why it cannot be used; then `loaded` is None


def collect(paths: Sequence[Path]) -> list[Found]:
    """Return the workflows of ``paths`` in order, each file once; those of a folder are sorted by name.

    A folder is searched recursively for ``.yaml`` and ``.yml`` files that are workflows: they have ``version`` and ``nodes``, or one of them and steps. Files with
    ``run: manual`` are left out, and so are files that another workflow found there uses. A named file is always kept, whatever it holds.
    Raises UsageError ``nothing-to-run`` if only folders were named and none holds a workflow; SetupError for a broken node type.
    """
    found: dict[Path, Found] = {}
    left_out: set[Path] = set()
    for path in paths:
        if not path.is_dir():
            found[path.resolve()] = _load(path)
            continue
        for each in filter(None, map(_of_folder, _files(path))):
            found.setdefault(each.file.resolve(), each)
            if each.loaded is not None:
                left_out |= {used.path.resolve() for used in each.loaded.files()[1:]}
                left_out |= {each.file.resolve()} if each.loaded.workflow.run == "manual" else set()
    left_out -= {path.resolve() for path in paths if not path.is_dir()}
    kept = [each for file, each in found.items() if file not in left_out]
    if not kept:
        raise UsageError(
            "nothing-to-run",
            f"there is no workflow to run in {', '.join(map(str, paths))}",
            fix="a folder run takes every YAML file with `version` and `nodes`, but those with `run: manual` and those that others use; name such a file itself",
        )
    return kept


def _load(file: Path) -> Found:
    try:
        return Found(file, reader.load(file))
    except UsageError as error:
        return Found(file, None, error)


def _of_folder(file: Path | OSError) -> Found | None:
    if isinstance(file, OSError):
        error = UsageError("file-not-read", f"{file.filename} cannot be read: {file.strerror}")
        return Found(Path(str(file.filename)), None, error)
    try:
        with regular_files.opened(file) as stream:
            content = stream.read(yaml_text.LARGEST_FILE + 1)
    except OSError:
        return _load(file)
    return _load(file) if is_workflow(content) else None


def is_workflow(content: bytes) -> bool:
    """True if a YAML text is meant as a workflow: a map with ``version`` and ``nodes``, or unreadable YAML with lines that begin so.

    A map that has one of them, and a list of steps, is one in which the other is missing or misspelt.
    """
    words = [word in content for word in (b"version", b"nodes")]
    if not all(words) and not (any(words) and b"type" in content):
        return False
    document = yaml_text.read("", content)
    if document.readable:
        whole: Json = document.data
        data: dict[str, Json] = whole if isinstance(whole, dict) else {}
        found = {"version", "nodes"} & set(data)
        return len(found) == 2 or (bool(found) and any(map(_are_steps, data.values())))
    lines = content.splitlines()
    return all(any(line.startswith(word) for line in lines) for word in (b"version:", b"nodes:"))


def _are_steps(value: Json) -> bool:
    items: list[Json] = value if isinstance(value, list) else []
    maps: list[dict[str, Json]] = [each for each in items if isinstance(each, dict)]
    types = [each.get("type") for each in maps]
    return any(isinstance(each, str) and each in registry.node_types() for each in types)


def _files(folder: Path) -> Iterable[Path | OSError]:
    """Yield the YAML files in a folder, sorted by relative path, then an error for each folder that cannot be read."""
    wrong: list[OSError] = []
    files: list[Path] = []
    for here, folders, names in os.walk(folder, onerror=wrong.append):
        folders[:] = [each for each in folders if not _skipped(Path(here, each))]
        files += [Path(here, name) for name in names if name.endswith(SUFFIXES) and not name.startswith(".")]
    yield from sorted(files)
    yield from wrong


def _skipped(folder: Path) -> bool:
    if folder.name.startswith(".") or folder.name in SKIPPED:
        return True
    try:
        return (folder / "pyvenv.cfg").is_file()
    except OSError:  # it cannot be looked into: reading it reports that later
        return False
