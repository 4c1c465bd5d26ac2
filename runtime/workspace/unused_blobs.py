"""Large values that no log names, and how they are taken away while others write.

A writer puts a blob before the entry that names it, and a blob that is there already it only touches. So at any moment there are blobs
that no log names *yet*. Three things keep these:

- A blob that was written or touched since ``Limits`` stays: within the last hour, or since the first of the runs that are held was claimed.
- What is old is given another name first (*aside*), and its age is looked at again there. A writer that touched it just before is seen; one
  that comes later does not find it, and writes it anew.
- Whoever reads a blob looks for it aside too, so it is never missing, not even where the process dies between two steps.
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
"""Seconds for which what nobody names is left alone."""

SLACK = 2.0
"""Seconds by which two clocks of a machine may differ: that of the files, and that of the log."""

_NAME = re.compile(rb"(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])")
_BLOB = re.compile(r"[0-9a-f]{64}")
_ASIDE = re.compile(r"[0-9a-f]{64}\.aside")


@dataclasses.dataclass(frozen=True, slots=True)
class Limits:
    """Up to which moment (seconds since 1970) a blob must have been touched last, to go."""

    unnamed: float
    """One that no log names, and perhaps none ever did."""
    just_unnamed: float
    """One that a run named which is removed along with it."""

    @classmethod
    def at(cls, now: float, claims: Iterable[float]) -> Limits:
        """``claims``: since when each of the runs is held that are held. Its holder may have put a blob at any moment since."""
        first = min(claims, default=now)
        return cls(min(now - AGE, first - SLACK), min(now, first) - SLACK)


def named_in(data: bytes) -> set[str]:
    """The blobs that a log may name: whatever looks like a hash in it, wherever it stands."""
    return {each.decode() for each in _NAME.findall(data)}


def unnamed(
    kept: file_store.Files, named: set[str], just_unnamed: set[str], limits: Limits
) -> Iterator[tuple[str, Path, float]]:
    """Blobs that may go: each with where it stands (also aside, where a process died), and up to when it may have been touched."""
    for file in sorted((kept.home / "blobs").glob("??/*")):
        if _BLOB.fullmatch(file.stem) and (file.suffix == "" or _ASIDE.fullmatch(file.name)):
            limit = limits.just_unnamed if file.stem in just_unnamed else limits.unnamed
            if file.stem not in named and touched(file) <= limit:
                yield file.stem, file, limit


def put_back(kept: file_store.Files, named: set[str], limits: Limits) -> None:
    """Give blobs that a process left aside their place again, where they are named or young: a writer may count on them."""
    for aside in sorted((kept.home / "blobs").glob("??/*.aside")):
        with contextlib.suppress(FileNotFoundError):
            if not _ASIDE.fullmatch(aside.name):
                continue
            if kept.blob_file(aside.stem).exists():
                os.unlink(aside)  # noqa: PTH108 - the step that tests end a process after
            elif aside.stem in named or touched(aside) > limits.unnamed:
                # One that is written anew just now is replaced by its like, and must not look older by that.
                os.utime(aside)
                os.rename(aside, kept.blob_file(aside.stem))  # noqa: PTH104


def take(kept: file_store.Files, sha256: str, limit: float) -> bool:
    """Take a blob away unless somebody has touched it since ``limit``; whether it is gone."""
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
    """When the file was written or touched last; 0 where it is gone."""
    try:
        return file.stat().st_mtime
    except FileNotFoundError:
        return 0.0
