"""The patch that `runops repair` leaves next to a run, as run commands see it."""

from __future__ import annotations

import json
from pathlib import Path

from nodes.values import Json
from runtime.log.store import store
from runtime.system import regular_files

VERSION = 1


def file_of(kept: store.Kept, run: str) -> Path:
    return kept.files(run) / f"{run}.patch.json"


def read(kept: store.Kept, run: str) -> dict[str, Json] | None:
    try:
        patch: dict[str, Json] = json.loads(regular_files.read(file_of(kept, run)))
    except (OSError, ValueError):
        return None
    return patch if patch.get("version") == VERSION else None


def waits(kept: store.Kept, run: str) -> bool:
    """True if the run has a patch that can be applied and is not applied yet."""
    patch = read(kept, run)
    try:
        return patch is not None and any(
            regular_files.read(Path(each["file"])) == each["before"].encode() for each in patch["files"]
        )
    except (OSError, KeyError):
        return False
