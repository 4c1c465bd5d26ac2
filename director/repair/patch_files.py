"""Stores a fix next to its run: as a patch for people, and for ``--apply`` as data with the files before and after."""

from __future__ import annotations

import dataclasses
import difflib
import errno
import json
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from director.draft import output_files
from nodes.errors import UsageError
from nodes.values import Json
from runtime.log.store import store as log_store
from runtime.runs import patches as run_patches
from runtime.system import files as system_files
from runtime.system import regular_files

if TYPE_CHECKING:
    from director.repair import repair


MARK = "\ufeff"


@dataclasses.dataclass(frozen=True, slots=True)
class Patch:
    """Old and new text of a file; a byte order mark is a part of both."""

    file: Path
    before: str
    after: str

    @classmethod
    def of(cls, file: Path, text: str) -> Patch:
        """Return the change of the file to ``text``; a byte order mark is kept. Raises OSError."""
        before = regular_files.read(file).decode()
        return cls(file, before, f"{MARK if before.startswith(MARK) else ''}{text}")

    def unified(self, name: str) -> str:
        """Return the change for ``git apply`` and ``patch -p1``, with the file called ``name``."""
        lines = difflib.unified_diff(_lines(self.before), _lines(self.after), f"a/{name}", f"b/{name}")
        return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)

    def check(self) -> None:
        """Raise UsageError ``file-changed`` if the file has changed. Raises OSError, also if it is not writable."""
        if not self.file.stat().st_mode & 0o222:
            # Root and the owner of the folder could write it all the same: respect its mode.
            raise PermissionError(errno.EACCES, "it is read-only", str(self.file))
        if regular_files.read(self.file).decode() != self.before:
            raise UsageError(
                "file-changed",
                f"{self.file} has changed since the fix was made",
                fix="run the same without `--apply` to make it again",
            )

    def apply(self) -> None:
        """Write the file and keep its mode and owner; a link is followed. Raises OSError."""
        output_files.overwrite(self.file, self.after)


def _lines(text: str) -> list[str]:
    return re.findall(r"[^\n]*\n|[^\n]+", text)


def patches_of(made: Sequence[repair.Patch], run: str) -> list[Patch]:
    """Return the change of each file with all its fixes; proofs claimed in its head are marked as outdated. Raises OSError."""
    last = {fix.file: output_files.patched(fix.text, run) for fix in made}
    return [Patch.of(file, text) for file, text in last.items()]


def unified(changes: Sequence[Patch], folder: Path) -> str:
    """Return the changes as one patch, with names relative to ``folder`` for files below it."""
    names = [os.path.relpath(each.file, folder) for each in changes]
    return "".join(
        each.unified(each.file.name if name.startswith("..") else name)
        for each, name in zip(changes, names, strict=True)
    )


@dataclasses.dataclass(frozen=True, slots=True)
class KnownPatch:
    verdict: str
    changes: Sequence[Patch]
    done: Sequence[str]  # the actions that its proof did on the site
    proof: str  # the copy of the run that proved it; for a fix by a model the last whole run


def keep(
    store: log_store.StoreReader, run: str, known: KnownPatch, steps: Sequence[Mapping[str, Json]], reached: str | None
) -> dict[str, Json]:
    """Store a fix of these steps next to its run; return its report (``endings.PatchReport``). Raises LogError."""
    folder = store.files(run)
    file = folder / f"{run}.patch"
    patch = unified(known.changes, Path.cwd())
    files = [{"file": str(each.file.absolute()), "before": each.before, "after": each.after} for each in known.changes]
    shared: dict[str, Json] = {"verdict": known.verdict, "done": list[Json](known.done)}
    stored = {"version": run_patches.VERSION, **shared, "proof": known.proof, "files": list[Json](files)}
    try:
        system_files.folder(folder.parent)
        system_files.folder(folder)
        system_files.write(file, patch.encode())
        system_files.write(run_patches.file_of(store, run), json.dumps(stored).encode())
    except OSError as error:
        raise system_files.not_kept("the patch", file, error) from None
    place: dict[str, Json] = {"run": known.proof, "reached": reached, "patch": patch, "kept": str(file)}
    return {**shared, "steps": list[Json](map(dict, steps)), **place}


def known(store: log_store.StoreReader, run: str) -> KnownPatch | None:
    stored = run_patches.read(store, run)
    if stored is None:
        return None
    changes = [Patch(Path(each["file"]), each["before"], each["after"]) for each in stored["files"]]
    return KnownPatch(str(stored["verdict"]), changes, stored["done"], str(stored["proof"]))


def apply(changes: Sequence[Patch]) -> None:
    """Write all changes, or none; those already in their files are skipped. Raises UsageError ``file-changed``, ``file-not-written``."""
    try:
        left = [each for each in changes if regular_files.read(each.file) != each.after.encode()]
        for each in left:
            each.check()
        for each in left:
            each.apply()
    except OSError as error:
        raise UsageError(
            "file-not-written", f"{error.filename}: {error.strerror or error}", fix="make it writable"
        ) from None
