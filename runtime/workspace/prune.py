"""Implementation of ``runops prune``: deletes unused data. It may die at any point, and may run beside any other process.

A run is deleted under its own lock, so that no process resumes it meanwhile. The order is: browser, key, log, all other data. If prune dies
in between, a run remains, or data without a run, which the next prune deletes. The id of such data is locked too, so that no run is
created with it. Blobs that no log names are deleted only while no process has a log open: it may be about to name one.
"""

from __future__ import annotations

import contextlib
import dataclasses
import datetime as dt
import os
import re
import shutil
import time
from collections.abc import Generator
from pathlib import Path
from typing import Literal

from nodes.errors import LogError, UsageError
from runtime.browser.chromium import launch, survivors
from runtime.log.store import file_store, integrity
from runtime.log.store import store as log_store
from runtime.system import files as system_files
from runtime.system import locks, regular_files
from runtime.workspace import retention

Kind = Literal["run", "session", "browser", "private", "files", "key", "log", "value", "temporary"]

AGE = 3600.0
"""Seconds for which prune keeps a key without a run, an untouched session, and an unfinished file in a shared folder."""

_TEMPORARY = re.compile(r"\..+\.[a-z0-9_]{8}")  # names of files during writing (`runtime.system.files`)

_HASH = re.compile(rb"(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])")


@dataclasses.dataclass(frozen=True, slots=True)
class Deleted:
    kind: Kind
    run: str | None  # the run that it belongs to, or belonged to
    path: str  # path below the home; of a run its log, of a browser the file that locates it
    bytes: int
    state: str | None = None  # only for a whole run or session, like the next two
    workflow: str | None = None
    ended: str | None = None
    process: int | None = None  # process of a browser


@dataclasses.dataclass(frozen=True, slots=True)
class Left:
    run: str | None
    why: str
    failed: bool = False  # true if it should have been deleted


@dataclasses.dataclass(slots=True)
class Report:
    gone: list[Deleted] = dataclasses.field(default_factory=list[Deleted])
    left: list[Left] = dataclasses.field(default_factory=list[Left])

    @property
    def bytes(self) -> int:
        return sum(each.bytes for each in self.gone)


class Pruning:
    def __init__(self, store: file_store.Files, *, dry_run: bool) -> None:
        self._store = store
        self._home = store.home
        self._dry = dry_run
        # Set before anything is read: everything touched from now on stays.
        self._now = time.time()
        self._report = Report()
        self._known: dict[str, retention.KnownConversation] = {}
        self._empty: list[str] = []
        self._unreadable = False
        self._removed: set[str] = set()

    def carry_out(self, selection: retention.Selection) -> Report:
        """Delete unused data, and the runs or sessions in ``selection``; with ``dry_run`` only report them.

        The report lists what cannot be deleted. Raises LogError if the home itself cannot be read.
        """
        for run in self._store.ids():
            self._survey(run)
        keys = self._keys()
        selected = selection.choose(self._known.values(), self._now)
        # A session without any content is not missed.
        selected += [each for each in self._known.values() if each.untouched and self._now - each.ended >= AGE]
        for each in dict.fromkeys(selected):
            self._whole_run(each, keys.get(each.run, []))
        for run in self._empty:
            self._empty_log(run, keys.get(run, []))
        for each in self._known.values():
            if each.run not in self._removed:
                self._leftovers_of(each)
        private, files = map(log_store.named_after_conversations, self._folders(""))
        for run in sorted(
            {*(folder.name for folder in (*private, *files)), *keys} - {*self._store.ids()} - self._removed
        ):
            self._of_no_run(run, keys.get(run, []))
        self._half_written()
        self._blobs()
        return self._report

    def _survey(self, run: str) -> None:
        file = self._store.conversation_file(run)
        try:
            if self._holds_nothing(run, regular_files.read(file)) and not self._store.owned(run):
                self._empty.append(run)
                return
            reading = self._store.read(run)
        except (FileNotFoundError, UsageError):
            # Another process deleted it after its name was read.
            return
        except (LogError, OSError) as error:
            self._unreadable = True
            why = error.message if isinstance(error, LogError) else f"its log cannot be read: {error.strerror}"
            self._report.left.append(Left(run, why))
            return
        if not reading.owned and (known := retention.known(reading)) is not None:
            self._known[run] = known

    def _holds_nothing(self, run: str, data: bytes) -> bool:
        """True if the log has no complete entry, or is an unfinished fork."""
        try:
            entries = integrity.parse(self._store.conversation_file(run), data)[0]
        except LogError:
            return False
        return not entries or integrity.is_copying(entries)

    def _keys(self) -> dict[str, list[Path]]:
        found: dict[str, list[Path]] = {}
        for file in sorted((self._home / "keys").glob("[!.]*")):
            with contextlib.suppress(OSError):
                if (run := log_store.run_of_key(regular_files.read(file))) is not None:
                    found.setdefault(run, []).append(file)
        return found

    def _folders(self, run: str) -> list[Path]:
        return [self._home / "private" / run, self._home / "files" / run]

    def _is_old(self, file: Path) -> bool:
        """True if it is older than ``AGE``. A younger key may belong to a run that is about to be created."""
        try:
            return file.stat().st_mtime <= self._now - AGE
        except FileNotFoundError:
            return False

    def _whole_run(self, each: retention.KnownConversation, keys: list[Path]) -> None:
        with self._attempt(each.run), self._owned(each.run) as data:
            if data is None:
                self._report.left.append(Left(each.run, "a process has taken it"))
            elif self._is_still(each):
                ended = dt.datetime.fromtimestamp(each.ended, dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
                about = Deleted(each.kind, each.run, "", 0, str(each.state), each.workflow, ended)
                self._remove_run(each.run, keys, about)

    def _is_still(self, each: retention.KnownConversation) -> bool:
        """True if the run is as it was when it was surveyed, so not resumed since."""
        try:
            return retention.known(self._store.read(each.run)) == each
        except (LogError, UsageError):
            return False

    def _empty_log(self, run: str, keys: list[Path]) -> None:
        """Delete a log whose creator died before the first entry was complete. A creator that waits for the lock creates it again."""
        with self._attempt(run), self._owned(run) as data:
            if data is not None and self._holds_nothing(run, data):
                self._remove_run(run, list(filter(self._is_old, keys)), Deleted("log", run, "", 0))

    def _remove_run(self, run: str, keys: list[Path], about: Deleted) -> None:
        """Delete a locked run, in the order that the module describes."""
        file = self._store.conversation_file(run)
        folders = self._folders(run)
        total = sum(_size(each) for each in (file, *keys, *folders))
        self._end_browser(run)
        self._delete(keys)
        self._delete([file])
        self._removed.add(run)
        self._delete(folders)
        self._report.gone.append(dataclasses.replace(about, path=self._named(file), bytes=total))

    def _leftovers_of(self, each: retention.KnownConversation) -> None:
        private, files = self._folders(each.run)
        halves = [*_temporaries(private), *_temporaries(files)]
        over = each.over and private.is_dir()
        if not (halves or over):
            return
        with self._attempt(each.run), self._owned(each.run) as data:
            if data is None:
                return
            if over:
                self._end_browser(each.run)
                self._take("private", each.run, private)
            for file in halves:
                if file.exists():
                    self._take("temporary", each.run, file)

    def _of_no_run(self, run: str, keys: list[Path]) -> None:
        found: list[tuple[Kind, Path]] = [("key", each) for each in keys if self._is_old(each)]
        kinds: tuple[Kind, ...] = ("private", "files")
        found += [each for each in zip(kinds, self._folders(run), strict=True) if each[1].is_dir()]
        if not found:
            return
        with self._attempt(run), self._no_run(run) as mine:
            if mine:
                self._end_browser(run)
                for kind, path in found:
                    self._take(kind, run, path)

    def _end_browser(self, run: str) -> None:
        """End the run's browser, if it still runs; its folders go too. Raises OSError if it does not end."""
        private = self._home / "private" / run
        alive = survivors.remembered(private)
        if alive is None:
            return
        lived = alive.lives()
        if not self._dry and not survivors.end(alive):
            raise OSError(None, f"its browser (process {alive.chromium}) does not end")
        if lived:
            path = self._named(private / launch.STATE)
            self._report.gone.append(Deleted("browser", run, path, 0, process=alive.chromium))

    def _half_written(self) -> None:
        """Delete unfinished files in shared folders. Young ones may still be in use."""
        blobs = sorted((self._home / "blobs").glob("??"))
        for folder in (*blobs, self._home / "keys", self._home / "private" / "sessions"):
            for file in filter(self._is_old, _temporaries(folder)):
                with self._attempt(None):
                    self._take("temporary", None, file)

    def _blobs(self) -> None:
        if self._unreadable:
            why = "all large values: a log that cannot be read may name any of them; fix it, or delete it"
            self._report.left.append(Left(None, why))
        elif self._unnamed():
            handle = locks.hold(self._store.writers, make=True)
            if handle is None:
                why = "large values that no log names: a process works here, and may be about to name one; prune once it is done"
                self._report.left.append(Left(None, why))
                return
            try:
                for blob in self._unnamed():
                    with self._attempt(None):
                        self._take("value", None, blob)
            finally:
                os.close(handle)

    def _unnamed(self) -> list[Path]:
        """Return the blobs that no log names. Any 64 hexadecimal digits in a log count as a name."""
        named: set[str] = set()
        for run in self._store.ids():
            if run not in self._removed:
                with contextlib.suppress(FileNotFoundError):
                    named |= named_in(regular_files.read(self._store.conversation_file(run)))
        blobs = sorted((self._home / "blobs").glob("??/*"))
        return [each for each in blobs if _HASH.fullmatch(each.name.encode()) and each.name not in named]

    def _take(self, kind: Kind, run: str | None, path: Path) -> None:
        gone = Deleted(kind, run, self._named(path), _size(path))
        self._delete([path])
        self._report.gone.append(gone)

    def _delete(self, paths: list[Path]) -> None:
        """Delete files and folders, unless this is a dry run."""
        if self._dry:
            return
        files = [each for each in paths if not each.is_dir()]
        for each in paths:
            (_unlink if each in files else _remove)(each)
        for folder in {file.parent for file in files if file.parent.is_dir()}:
            system_files.sync_folder(folder)

    def _named(self, path: Path) -> str:
        return str(path.relative_to(self._home))

    @contextlib.contextmanager
    def _owned(self, run: str) -> Generator[bytes | None]:
        """Lock the run, and yield its log's content; None if another process owns it, or it is gone. A dry run only checks the lock."""
        path = self._store.conversation_file(run)
        with contextlib.ExitStack() as stack:
            try:
                if self._dry:
                    mine = not locks.is_held(path)
                elif mine := (handle := locks.hold(path)) is not None:
                    stack.callback(os.close, handle)
            except FileNotFoundError:
                mine = False
            yield regular_files.read(path) if mine else None

    @contextlib.contextmanager
    def _no_run(self, run: str) -> Generator[bool]:
        """Keep new runs from taking the id meanwhile; yield True if no run has it."""
        path = self._store.conversation_file(run)
        with contextlib.ExitStack() as stack:
            mine = not path.exists()
            if mine and not self._dry:
                self._store.make()
                handle = locks.hold(path, make=True)
                mine = handle is not None and os.fstat(handle).st_size == 0
                if handle is not None:
                    stack.callback(os.close, handle)
                if mine:
                    stack.callback(_unlink, path)
            yield mine

    @contextlib.contextmanager
    def _attempt(self, run: str | None) -> Generator[None]:
        """Report what cannot be deleted, and continue with the rest."""
        try:
            yield
        except OSError as error:
            place = f" ({error.filename})" if error.filename else ""
            self._report.left.append(Left(run, f"it could not be removed: {error.strerror}{place}", failed=True))


def named_in(data: bytes) -> set[str]:
    return {each.decode() for each in _HASH.findall(data)}


def _temporaries(folder: Path) -> list[Path]:
    return sorted(each for each in folder.glob(".*") if _TEMPORARY.fullmatch(each.name)) if folder.is_dir() else []


def _size(path: Path) -> int:
    """Return the bytes of a file, or of all files in a folder; 0 if it is gone."""
    inside = (Path(folder) / name for folder, _folders, names in os.walk(path) for name in names)
    total = 0
    for file in inside if path.is_dir() else (path,):
        with contextlib.suppress(FileNotFoundError):
            total += file.lstat().st_size
    return total


def _unlink(file: Path) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(file)  # noqa: PTH108 - the step that tests end a process after


def _remove(folder: Path) -> None:
    with contextlib.suppress(FileNotFoundError):
        shutil.rmtree(folder)
