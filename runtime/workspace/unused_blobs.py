"""Large values that no log names, and their deletion while others write.

A writer stores a blob before the entry that names it, and only touches a blob that exists already. So there are always blobs
that no log names *yet*. Three rules keep these:

- A blob that was written or touched since ``Limits`` stays: within the last hour, or since the first of the owned runs was claimed.
- An old one is first renamed (*aside*), and its age is checked again there. A writer that touched it just before is noticed; a later one
  does not find it, and writes it anew.
- Readers of a blob also look for it aside, so it is never missing, even if the process dies between two steps.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from runtime.log.store import file_store

AGE = 3600.0
"""Seconds for which unnamed data is kept."""

SLACK = 2.0
"""Possible difference in seconds between the clocks of files and log."""

_NAME = re.compile(rb"(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])")
_BLOB = re.compile(r"[0-9a-f]{64}")
_ASIDE = re.compile(r"[0-9a-f]{64}\.aside")


@dataclasses.dataclass(frozen=True, slots=True)
class Limits:
    """Latest moments (seconds since 1970) of a blob's last touch at which it is deleted."""

    unnamed: float
    """For a blob that no log names, and perhaps none ever did."""
    just_unnamed: float
    """For a blob named by a run that is deleted along with it."""

    @classmethod
    def at(cls, now: float, claims: Iterable[float]) -> Limits:
        """Compute the limits; ``claims`` are the claim times of all owned runs. An owner may have stored a blob at any time since."""
        first = min(claims, default=now)
        return cls(min(now - AGE, first - SLACK), min(now, first) - SLACK)


def named_in(data: bytes) -> set[str]:
    """Return the blobs that a log may name: everything in it that looks like a hash."""
    return {each.decode() for each in _NAME.findall(data)}


def unnamed(
    kept: file_store.Files, named: set[str], just_unnamed: set[str], limits: Limits
) -> Iterator[tuple[str, Path, float]]:
    """Yield blobs to delete, each with its path (also aside, after a crash) and the latest moment of its last touch."""
    for file in sorted((kept.home / "blobs").glob("??/*")):
        if _BLOB.fullmatch(file.stem) and (file.suffix == "" or _ASIDE.fullmatch(file.name)):
            limit = limits.just_unnamed if file.stem in just_unnamed else limits.unnamed
            if file.stem not in named and touched(file) <= limit:
                yield file.stem, file, limit


def put_back(kept: file_store.Files, named: set[str], limits: Limits) -> None:
    """Rename blobs that a dead process left aside back, if they are named or young: a writer may rely on them."""
    for aside in sorted((kept.home / "blobs").glob("??/*.aside")):
        with contextlib.suppress(FileNotFoundError):
            if not _ASIDE.fullmatch(aside.name):
                continue
            if kept.blob_file(aside.stem).exists():
                os.unlink(aside)  # noqa: PTH108 - the step that tests end a process after
            elif aside.stem in named or touched(aside) > limits.unnamed:
                # If it is written anew just now, this replaces it by the same content, which must not look older.
                os.utime(aside)
                os.rename(aside, kept.blob_file(aside.stem))  # noqa: PTH104


def take(kept: file_store.Files, sha256: str, limit: float) -> bool:
    """Delete a blob unless it was touched since ``limit``; return True if it is gone."""
    file, aside = kept.blob_file(sha256), kept.blob_aside(sha256)
    with contextlib.suppress(FileNotFoundError):
        os.rename(file, aside)  # noqa: PTH104
    if touched(aside) > limit:
        with contextlib.suppress(FileNotFoundError):
            os.rename(aside, file)  # noqa: PTH104
        return False
    with contextlib.suppress(FileNotFoundError):
        os.unlink(aside)  # noqa: PTH108
    return True


def touched(file: Path) -> float:
    """Return when the file was last written or touched; 0 where it is gone."""
    try:
        return file.stat().st_mtime
    except FileNotFoundError:
        return 0.0
