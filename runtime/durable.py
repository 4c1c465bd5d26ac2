"""Private files that are whole or not there: written beside, brought to the disk, then renamed."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def write(path: Path, data: bytes) -> None:
    """Put ``data`` in the place of ``path``, readable by its owner only; file and name are on the disk when this returns. Raises OSError."""
    handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.rename(temporary, path)  # noqa: PTH104 - its target is a path, its source a name
    except BaseException:
        os.unlink(temporary)  # noqa: PTH108 - the same
        raise
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """The names in ``folder`` are on the disk when this returns. Raises OSError."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
