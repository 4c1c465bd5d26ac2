"""Stores a fix next to its run: as a patch for people, and as data for ``--apply`` with the files that were checked."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from director.draft import output_files
from director.repair import patches
from nodes.errors import UsageError
from nodes.values import Json
from runtime.log.store import store
from runtime.runs import patches as runs_patches
from runtime.system import files as system_files

if TYPE_CHECKING:
    from director.repair import repair


def patches_of(made: Sequence[repair.Patch], run: str) -> list[patches.Patch]:
    """Return the change of each file, with all its fixes; proofs claimed before ``run`` are marked as outdated. Raises OSError."""
    last = {fix.file: output_files.patched(fix.text, run) for fix in made}
    return [patches.Patch.of(file, text) for file, text in last.items()]


def unified(changes: Sequence[patches.Patch], folder: Path) -> str:
    """Return the changes as one patch, with names relative to ``folder`` for files below it."""
    return "".join(each.unified(_named(each.file, folder)) for each in changes)


def _named(file: Path, folder: Path) -> str:
    name = os.path.relpath(file, folder)
    return file.name if name.startswith("..") else name


def keep(kept: store.Kept, run: str, known: KnownPatch, patch: str) -> Path:
    """Store a fix next to its run; return the file of the patch. Raises LogError if it cannot be written."""
    folder = kept.files(run)
    file = folder / f"{run}.patch"
    files = [{"file": str(each.file.absolute()), "before": each.before, "after": each.after} for each in known.changes]
    told: dict[str, Json] = {
        "version": runs_patches.VERSION,
        "verdict": known.verdict,
        "proof": known.proof,
        "done": list[Json](known.done),
        "files": list[Json](files),
    }
    try:
        system_files.folder(folder.parent)
        system_files.folder(folder)
        system_files.write(file, patch.encode())
        system_files.write(runs_patches.file_of(kept, run), json.dumps(told).encode())
    except OSError as error:
        raise system_files.not_kept("the patch", file, error) from None
    return file


@dataclasses.dataclass(frozen=True, slots=True)
class KnownPatch:
    """A stored fix."""

    verdict: str
    changes: Sequence[patches.Patch]
    done: Sequence[str]
    """The actions that its proof did on the site."""
    proof: str
    """The copy of the run that proved it; for a fix by a model the last whole run."""


def known(kept: store.Kept, run: str) -> KnownPatch | None:
    """Return the latest fix of the run; None if there is none."""
    told = runs_patches.read(kept, run)
    if told is None:
        return None
    changes = [patches.Patch(Path(each["file"]), each["before"], each["after"]) for each in told["files"]]
    return KnownPatch(str(told["verdict"]), changes, told["done"], str(told["proof"]))


def apply(changes: Sequence[patches.Patch]) -> None:
    """Write all changes, or none; those already in their files are skipped. Raises UsageError ``file-changed``, ``file-not-written``."""
    try:
        left = [each for each in changes if not each.stands]
        for each in left:
            each.check()
        for each in left:
            each.apply()
    except OSError as error:
        raise UsageError(
            "file-not-written", f"{error.filename}: {error.strerror or error}", fix="make it writable"
        ) from None
