"""The patch that `runops repair` leaves next to a run, as run commands see it."""

from __future__ import annotations

import json
from pathlib import Path

from nodes.values import Json
from runtime.log.store import store as log_store
from runtime.system import regular_files

VERSION = 1


def file_of(store: log_store.StoreReader, run: str) -> Path:
    return store.files(run) / f"{run}.patch.json"


def read(store: log_store.StoreReader, run: str) -> dict[str, Json] | None:
    try:
        patch: dict[str, Json] = json.loads(regular_files.read(file_of(store, run)))
    except (OSError, ValueError):
        return None
    return patch if patch.get("version") == VERSION else None


def waits(store: log_store.StoreReader, run: str) -> bool:
    """True if the run has a patch that can be applied and is not applied yet."""
    patch = read(store, run)
    try:
        return patch is not None and any(
            regular_files.read(Path(each["file"])) == each["before"].encode() for each in patch["files"]
        )
    except (OSError, KeyError):
        return False
