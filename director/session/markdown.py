"""Writes the Markdown of a conversation to a file."""

from __future__ import annotations

from pathlib import Path

from nodes.errors import UsageError
from runtime.report.markdown import HEAD
from runtime.system import files, regular_files


def save(path: Path, text: str) -> None:
    """Write the text atomically. Raises UsageError ``file-not-written``, also if the file there is not a saved session."""
    try:
        if path.exists() and not _is_ours(path):
            raise UsageError(
                "file-not-written",
                f"{path} is there already, and is no saved session",
                fix="name another file: /save FILE.md",
            )
        files.write(path, text.encode())
    except OSError as error:
        raise UsageError(
            "file-not-written",
            f"{path} could not be written: {error.strerror}",
            fix="name another file: /save FILE.md",
        ) from None


def _is_ours(path: Path) -> bool:
    if not path.is_file():
        return False
    with regular_files.opened(path) as file:
        return file.read(len(HEAD)) == HEAD.encode()
