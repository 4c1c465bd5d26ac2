"""The state of a folder after a power cut: exactly what was synced.

A file keeps the bytes of its last sync, and its name if the folder was synced after it got it; so does a folder. The kernel mostly keeps more, but a
program must not rely on it.
"""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

Report = Callable[[dict[str, Any]], None]
"""Receives one event as a JSON object."""


def watch(report: Report) -> None:
    """Report everything that this process syncs from now on, once it is synced."""
    _watch_syncs("fsync", report)
    _watch_syncs("fdatasync", report)
    _watch_names("rename", report)
    _watch_names("replace", report)
    _watch_names("link", report)


def _watch_syncs(name: str, report: Report) -> None:
    real = getattr(os, name)

    def watched(handle: int) -> None:
        path = Path(f"/proc/self/fd/{handle}").readlink()
        # Later additions need not be in it.
        within = sorted(each.name for each in path.iterdir()) if path.is_dir() else None
        size = os.fstat(handle).st_size
        real(handle)
        report({"sync": str(path), "size": size, "within": within})

    setattr(os, name, watched)


def _watch_names(name: str, report: Report) -> None:
    real = getattr(os, name)

    def watched(source: Any, target: Any, **more: Any) -> None:
        real(source, target, **more)
        report({"linked" if name == "link" else "moved": [os.fspath(source), os.fspath(target)]})

    setattr(os, name, watched)


@dataclasses.dataclass
class Disk:
    """The synced state of everything within ``root``."""

    root: Path
    sizes: dict[str, int] = dataclasses.field(default_factory=dict)
    """Synced bytes of each file, by its path."""
    names: set[str] = dataclasses.field(default_factory=set)
    """Paths whose names are synced in their folder."""

    def learn(self, events: Iterable[dict[str, Any]]) -> None:
        """Apply the events of ``watch``, in order."""
        for each in events:
            if "sync" in each:
                self._synced(each["sync"], each["size"], each["within"])
            elif "linked" in each:
                source, target = each["linked"]
                self.sizes[target] = self.sizes.get(source, 0)
            elif "moved" in each:
                source, target = each["moved"]
                self.sizes[target] = self.sizes.pop(source, 0)
                self.names.discard(target)

    def _synced(self, path: str, size: int, within: list[str] | None) -> None:
        if within is None:
            self.sizes[path] = size
        else:
            self.names |= {f"{path}/{name}" for name in within}

    def cut(self) -> list[str]:
        """Remove everything that a power cut would lose; returns the paths that are gone or shorter."""
        lost: list[str] = []
        for folder, folders, files in os.walk(self.root):
            for name in list(folders):
                path = f"{folder}/{name}"
                if path not in self.names:
                    folders.remove(name)
                    shutil.rmtree(path, ignore_errors=True)
                    lost.append(path)
            lost += [f"{folder}/{name}" for name in files if self._cut_file(Path(folder, name))]
        return [os.path.relpath(path, self.root) for path in lost]

    def _cut_file(self, path: Path) -> bool:
        """True if any part of the file is lost."""
        size = self.sizes.get(str(path), 0)
        if str(path) not in self.names:
            path.unlink()
            return True
        if path.stat().st_size > size:
            os.truncate(path, size)
            return True
        return False


def read(record: Path) -> list[dict[str, Any]]:
    """All recorded events, oldest first."""
    return [json.loads(line) for line in record.read_text().splitlines()] if record.exists() else []
