"""What the gate finds in the files of a run at its end, and what becomes of it: nothing with a secret stays where it may be sent from."""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Literal, NamedTuple

from nodes.errors import LogError
from nodes.values import Json
from runtime.log import entries
from runtime.log.store import store as log_store
from runtime.secrets import gate, masking
from runtime.system import files, regular_files

FOLDER = "leaked"
"""The folder of a run's private data in which its files with a secret are."""

NAMES = {"node", "thread", "kind", "event", "name", "workflow", "file", "secrets", "callees", "versions"}
PATHS = {"path", "anew", "edited", "invalidated", "reopened", "kept", "answers"}
AUTHORED = NAMES | PATHS
"""Fields of entries and notes that hold names and step paths of the workflow, or fixed words. ``answers`` were checked before."""

_BLOB = re.compile(
    rb'"sha256":"([0-9a-f]{64})","bytes":\d+,"preview":"(?:[^"\\]|\\.)*","path":"@state/[^"/]*/(workflow\.yaml|callees/)?'
)


class Leak(NamedTuple):
    kind: Literal["log", "value", "file"]
    file: Path
    found: gate.Found


class Leaks:
    """The leaks of a conversation whose writes are synced. A store without files has none."""

    def __init__(self, store: log_store.StoreReader, conversation: str, masker: masking.Masker) -> None:
        self._store, self._conversation, self._masker = store, conversation, masker
        self._gate, self._plain = gate.Gate(masker), gate.Gate(masker.but_words)
        self.found = [] if masker.idle else list(self._find())

    def _find(self) -> Iterator[Leak]:
        """A secret that equals an ordinary word is no leak where the author wrote that word: in the workflow's text, in names, keys and paths."""
        (log, *_none) = self._store.files_with(self._conversation, ()) or [None]
        if log is not None:
            yield from self._of("log", log)
            logged = {each[1].decode(): bool(each[2]) for each in _BLOB.finditer(regular_files.read(log))}
            for hashed, authored in logged.items():
                file = self._blob(hashed)
                if file.exists():
                    yield from self._of("value", file, authored=authored)
        kept = self._store.files(self._conversation)
        for each in sorted(kept.iterdir()) if kept.is_dir() else ():
            if each.is_file():
                yield from self._of("file", each)

    def _of(self, kind: Literal["log", "value", "file"], file: Path, *, authored: bool = False) -> Iterator[Leak]:
        found = self._plain.file(file)
        if found is None and not authored:
            found = self._gate.file(file)
            if found is not None and kind != "file":
                found = self._in_words(file)
        if found is not None:
            yield Leak(kind, file, found)

    def _in_words(self, file: Path) -> gate.Found | None:
        data = regular_files.read(file)
        try:
            logged: list[Json] = [json.loads(line) for line in data.splitlines()]
        except ValueError:
            return self._gate.data(data)
        return self._gate.text("\n".join(_said(logged)))

    def _blob(self, hashed: str) -> Path:
        return self._store.files_with(self._conversation, [hashed])[1]

    def take(self) -> list[dict[str, Json]]:
        """Take all of it out of the files that a person may hand on. Return where each was, and where it is now; no secret is in that.

        Files go into a private folder. In the log and its values secrets are painted over: the run can still be shown.
        """
        painted: dict[bytes, bytes] = {}
        taken = [self._taken(each, painted) for each in self.found if each.kind != "log"]
        logs = [each for each in self.found if each.kind == "log"]
        if logs or painted:
            log = self._store.files_with(self._conversation, ())[0]
            self._paint_log(log, painted)
            left = any(self._of("log", log))
            taken += [_described(each, "left there" if left else "painted over") for each in logs]
        return taken

    def _taken(self, leak: Leak, painted: dict[bytes, bytes]) -> dict[str, Json]:
        try:
            data = self._gate.painted(regular_files.read(leak.file)) if leak.kind == "value" else b""
            kept = _free(self._store.private(self._conversation) / FOLDER / leak.file.name)
            files.folder(kept.parent)
            if leak.kind == "value" and self._gate.data(data) is None:
                hashed = hashlib.sha256(data).hexdigest()
                files.folder(self._blob(hashed).parent)
                files.write(self._blob(hashed), data)
                painted[leak.file.name.encode()] = hashed.encode()
            leak.file.rename(kept)
        except OSError as error:
            return _described(leak, f"left there: {error.strerror}")
        return _described(leak, str(kept))

    def _paint_log(self, log: Path, painted: Mapping[bytes, bytes]) -> None:
        """Paint over the secrets, and name the painted values in place of those with a secret.

        A line keeps its length, so the log can be read meanwhile. It stays as it is if it would be no entry.
        """
        at = 0
        handle = regular_files.descriptor(log, os.O_WRONLY)
        try:
            for line in regular_files.read(log).splitlines(keepends=True):
                new = line if self._plain.data(line) is None else self._plain.painted(line)
                for old, hashed in painted.items():
                    new = new.replace(old, hashed)
                if new != line and _is_entry(new := entries.seal(new[: -entries.SUM_LENGTH - 1])):
                    os.pwrite(handle, new, at)
                at += len(line)
            os.fsync(handle)
        finally:
            os.close(handle)


def _is_entry(line: bytes) -> bool:
    try:
        entries.decode(line)
    except (entries.BadLine, LogError):
        return False
    return True


def _described(leak: Leak, now: str) -> dict[str, Json]:
    secrets: list[Json] = [*leak.found.secrets]
    return {"file": str(leak.file), "kind": leak.kind, "secrets": secrets, "inside": [*leak.found.inside], "now": now}


def _free(path: Path) -> Path:
    others = (path.with_stem(f"{path.stem}-{number}") for number in itertools.count(2))
    return next(each for each in itertools.chain([path], others) if not each.exists())


def _said(value: Json) -> Iterator[str]:
    """Yield the texts of an entry that come from pages, models and persons."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from _said(item)
    elif isinstance(value, dict):
        for key, item in value.items():
            # The text of a workflow file is a blob, that of a message is not.
            if key not in AUTHORED and not (key == "text" and isinstance(item, dict)):
                yield from _said(item)
