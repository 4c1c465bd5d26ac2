"""Files of a run, in ``files/<run id>/`` of the home: those that its steps keep, and those that they may read.

A repeated step replaces its own file; another step that uses the same name gets the next number.
"""

from __future__ import annotations

import difflib
import itertools
import os
import re
import unicodedata
from pathlib import Path, PurePath

from typing_extensions import override

from nodes import ports
from nodes.errors import AuthorError
from nodes.values import Json
from runtime.language import workflow
from runtime.log.writer import LogWriter
from runtime.system import files, regular_files

LONGEST_NAME = 120
"""Maximum bytes of a file's name. File systems allow 255, and a number and a mark for unfinished files must fit too."""

LONGEST_SUFFIX = 16

TYPES = {
    ".csv": "text/csv",
    ".docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    ".gif": "image/gif",
    ".html": "text/html",
    ".jpeg": "image/jpeg",
    ".jpg": "image/jpeg",
    ".json": "application/json",
    ".pdf": "application/pdf",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".txt": "text/plain",
    ".xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    ".xml": "application/xml",
    ".zip": "application/zip",
}
"""Media types by ending. Python's table depends on the machine, and types must be the same everywhere."""


class Artifacts(ports.Artifacts):
    """Files that one attempt of a step keeps and reads."""

    def __init__(self, writer: LogWriter, folder: Path, step: str) -> None:
        """``folder`` is that of the workflow file, ``step`` the path of the step."""
        self._writer = writer
        self._own = writer.artifacts
        self._folder = folder
        self._step = step
        self.kept: list[Json] = []  # files that this attempt has kept, for its result

    @override
    async def keep(self, name: str, data: bytes | Path) -> Json:
        free = self._free(safe_name(self._writer.masker.text(name)))
        try:
            kept = await self._writer.put_file(free, data)
        except OSError as error:
            raise files.not_kept("a file of the run", self._own / free, error) from None
        artifact: Json = {**kept, "type": type_of(free)}
        self.kept.append(artifact)
        return artifact

    def _free(self, name: str) -> str:
        """Return the name; with the next number if another file of the run has it."""
        own, past = {str(each["name"]).casefold() for each in self.kept}, self._writer.history
        stem, suffix = PurePath(name).stem, PurePath(name).suffix
        for each in itertools.chain([name], (f"{stem}-{number}{suffix}" for number in itertools.count(2))):
            if each.casefold() not in own and not past.named_elsewhere(each, self._step):
                return each
        raise AssertionError("numbers do not end")

    @override
    def find(self, path: str) -> Path:
        file = self._folder / path
        try:
            if not self._may_read(file):
                raise AuthorError(
                    "file-outside",
                    f"{path} is outside the project of the workflow ({workflow.workspace(self._folder)})",
                    fix="put the file into the project, or name a file that a step of this run has kept by its `path`",
                    evidence={"path": str(file)},
                )
            if self._is_hidden(file):
                raise AuthorError(
                    "file-hidden",
                    f"{path} is a hidden file, or in a hidden folder: such files (`.env`, `.git`, …) are never sent",
                    fix="copy the file to a name without a leading dot, if it is really meant to be sent",
                    evidence={"path": str(file)},
                )
            try:
                os.close(regular_files.descriptor(file))
            except regular_files.NotRegular as error:
                raise AuthorError(
                    "file-not-read",
                    f"{path} cannot be read: {error.strerror}",
                    fix=regular_files.fix(error),
                    evidence={"path": str(file)},
                ) from None
            except OSError:
                raise _not_found(path, file) from None
        except (OSError, ValueError):
            # No file can have this name: it is too long, or contains a NUL.
            raise AuthorError("file-not-found", f"there is no file {path[:200]!r}", fix=_PUT_IT_THERE) from None
        return file

    def _may_read(self, file: Path) -> bool:
        real = _real(file)
        if real.is_relative_to(_real(self._own)):
            return True
        # The home also holds what must never be sent: signed-in states, other runs.
        inside = real.is_relative_to(_real(workflow.workspace(self._folder)))
        return inside and not real.is_relative_to(_real(self._own.parents[1]))

    def _is_hidden(self, file: Path) -> bool:
        """True if a name in the path below the project begins with a dot, before or after links are resolved."""
        root = workflow.workspace(self._folder)
        if _real(file).is_relative_to(_real(self._own)):
            return False
        ways = ((_real(file), _real(root)), (Path(os.path.normpath(file)), root))
        names = [each for way, base in ways if way.is_relative_to(base) for each in way.relative_to(base).parts]
        return any(each.startswith(".") for each in names)


_PUT_IT_THERE = "paths are relative to the folder of the workflow file: correct the path, or put the file there"


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))


def _not_found(path: str, file: Path) -> AuthorError:
    if file.is_dir():
        return AuthorError("file-not-found", f"{path} is a folder", fix="name the file in it")
    if file.exists():
        return AuthorError("file-not-found", f"{path} cannot be read", fix="make the file readable for you")
    folder = file.parent
    names = sorted(each.name for each in folder.iterdir() if each.is_file()) if folder.is_dir() else []
    near = difflib.get_close_matches(file.name, names, 1)
    return AuthorError(
        "file-not-found",
        f"there is no file {path}",
        fix=f"did you mean `{Path(path).parent / near[0]}`?" if near else _PUT_IT_THERE,
        evidence={"looked_for": str(file)},
    )


def safe_name(name: str) -> str:
    """Make ``name`` valid on every file system: no folders, no leading dot, no invisible characters, at most 120 bytes, its ending kept."""
    composed = unicodedata.normalize("NFC", name)
    visible = "".join("_" if unicodedata.category(each)[0] == "C" else each for each in composed)
    plain = re.sub(r'[/\\:*?"<>|]', "_", visible).strip().lstrip(".").rstrip(". ")
    stem, suffix = PurePath(plain).stem, PurePath(plain).suffix
    if len(suffix.encode()) > LONGEST_SUFFIX:
        stem, suffix = plain, ""
    bounded = stem.encode()[: LONGEST_NAME - len(suffix.encode())].decode(errors="ignore").rstrip()
    return f"{bounded or 'file'}{suffix}"


def type_of(name: str) -> str:
    return TYPES.get(PurePath(name).suffix.lower(), "application/octet-stream")
