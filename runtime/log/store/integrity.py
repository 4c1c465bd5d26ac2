"""What a log file holds: its entries, and whether what follows them is torn, which may be cut, or damaged, which nobody may touch.

An action begins only once its call is on the disk. So a line that an interrupted append, or a power cut, kept from getting there in one piece
announces no action that has begun, and it is safe to cut it. A line that was there, and is another one now, may be the call of an action that
happened: to cut that would be to do the action twice. What tells the two apart is how each of them can come to be.
"""

from __future__ import annotations

import contextlib
import gc
import os
import re
import zlib
from collections.abc import Generator, Iterable, Sequence
from pathlib import Path
from typing import BinaryIO

from nodes.errors import LogError
from runtime.log import entries as log_entries

SECTOR = 512
"""Bytes that a disk writes as one. What a power cut kept from it reads as zeros, and begins and ends with a sector, or with what was appended."""

_ZEROS = re.compile(rb"\0+")


@contextlib.contextmanager
def uncollected() -> Generator[None]:
    """No collection of garbage while a log is read: what is made of it all stays, and to look at it again and again takes longer than making it."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            if not gc.get_freeze_count():
                # What was made counts as old at once; else the first collection would look at all of it.
                gc.freeze()
                gc.unfreeze()
            gc.enable()


@uncollected()
def parse(
    path: Path,
    data: bytes,
    known: Sequence[log_entries.AnyEntry] = (),
    position: int = 0,
    *,
    after: int = 0,
    offset: int = 0,
) -> tuple[list[log_entries.AnyEntry], int]:
    """The entries of a log, and how many bytes of a torn end follow them. Raises LogError ``log-damaged`` and ``log-too-new`` with ``path`` and line.

    ``known``: what stands before ``position``, which was read already. ``data`` begins at byte ``offset`` of the log, behind line ``after``.
    """
    entries = [*known]
    why = "it was cut before its end"
    while (end := data.find(b"\n", position)) >= 0:
        try:
            entries.append(entry_of(data[position:end], after + len(entries) + 1))
        except log_entries.BadLine as error:
            why = str(error)
            break
        except LogError as error:
            line = after + len(entries) + 1
            raise LogError(
                error.code,
                f"{path}:{line}: {error.message}",
                fix=error.fix,
                evidence={"file": str(path), "line": line},
            ) from None
        position = end + 1
    left = data[position:]
    if left and not is_torn(left, offset + position, copying=not after and is_copying(entries)):
        raise damaged(path, after + len(entries) + 1, why if b"\n" in left else "what ends it is no newline")
    return entries, len(left)


_NUMBER = re.compile(rb'\{"v":\d+,"seq":(\d+),')


def offset_behind(file: BinaryIO, number: int) -> int:
    """Where the line behind line ``number`` of a log begins, or the log ends; found by halves, so that most of it is not read."""
    low, high = 0, file.seek(0, os.SEEK_END)
    while low < high:
        middle = (low + high) // 2
        _seek_line(file, middle)
        found = _NUMBER.match(file.readline())
        # What is no line is behind all of them: whoever reads from there says so.
        if found is None or int(found[1]) > number:
            high = middle
        else:
            low = middle + 1
    return _seek_line(file, low)


def _seek_line(file: BinaryIO, position: int) -> int:
    """Go to the first line that begins at ``position`` or behind it."""
    if position == 0:
        return file.seek(0)
    file.seek(position - 1)
    file.readline()
    return file.tell()


def last_entry(lines: Iterable[bytes]) -> log_entries.AnyEntry | None:
    """The last entry of a log with these lines; None where anything but reading all of it tells what it holds.

    Every line is held against its checksum and its number, which is all by which damage comes to light; only the last one is read.
    """
    number, line = 0, b""
    for number, line in enumerate(lines, 1):
        if not (log_entries.is_sealed(line) and line.startswith(log_entries.beginning(number))):
            return None
    try:
        return log_entries.decode(line) if number else None
    except (log_entries.BadLine, LogError):
        return None


def entry_of(line: bytes, number: int) -> log_entries.AnyEntry:
    """The entry that stands in line ``number`` of a log. Raises like ``log.decode``."""
    entry = log_entries.decode(line)
    if entry.seq != number:
        raise log_entries.BadLine(f"it says line {entry.seq}")
    return entry


def is_copying(entries: Iterable[log_entries.AnyEntry]) -> bool:
    """Whether these are the first entries of a fork that has not taken over everything, so that nothing but its first line was ever synced."""
    copying = False
    for entry in entries:
        copying = goes_on_copying(entry, copying)
        if not copying:
            break
    return copying


def goes_on_copying(entry: log_entries.AnyEntry, before: bool) -> bool:
    """The same behind ``entry``, by what it was before."""
    match entry:
        case log_entries.Scope(session=log_entries.SessionHeader(forked=log_entries.Forked())):
            return True
        case log_entries.Note(name="claimed"):
            return False
        case _:
            return before


def is_torn(tail: bytes, offset: int, *, copying: bool = False) -> bool:
    """Whether no part of ``tail`` was ever known to be on the disk, so that it may be cut. It begins with the first line that is not whole, at ``offset`` of its file.

    ``copying``: it is that of a fork that has not taken over everything.

    - A line without its end is torn, unless it is all there and only its newline is another byte.
    - A power cut may leave zeros where a sector did not get to the disk in time, and later sectors all the same. Everything from there on is
      torn, unless a line stands in it that the run goes on from only once it is on the disk.
    - A whole line that does not fit its checksum is not torn: an append that is interrupted leaves no such thing.
    """
    line, newline, _rest = tail.partition(b"\n")
    placeholder = _placeholder(line, offset, is_last=not newline)
    if newline:
        return placeholder is not None and not _holds_synced(tail[placeholder:], copying=copying)
    whole = _whole(line)
    return whole is None or whole == len(line) or placeholder == whole


def _placeholder(line: bytes, offset: int, *, is_last: bool) -> int | None:
    """Where sectors are missing in a line that begins at ``offset``; None where none is. ``is_last``: the file ends with the line."""
    for zeros in _ZEROS.finditer(line):
        begins = zeros.start() == 0 or (offset + zeros.start()) % SECTOR == 0
        ends = (is_last and zeros.end() == len(line)) or (offset + zeros.end()) % SECTOR == 0
        if begins and ends:
            return zeros.start()
    return None


def _whole(line: bytes) -> int | None:
    """How many bytes of ``line`` are a whole one without its newline; None where it holds none."""
    found = line.find(log_entries.SUM)
    while found >= 0:
        end = found + log_entries.SUM_LENGTH
        if line[found:end] == b'%b%08x"}' % (log_entries.SUM, zlib.crc32(line[:found])):
            return end
        found = line.find(log_entries.SUM, found + 1)
    return None


def _holds_synced(tail: bytes, *, copying: bool) -> bool:
    """Whether a line in it was brought to the disk before anything else was done: the call of an action, a request to a model or its answer, a pause, an end.

    What a fork takes over is not synced line by line.
    """
    for line in tail.split(b"\n"):
        try:
            entry = log_entries.decode(line)
        except log_entries.BadLine:
            continue
        if copying:
            copying = goes_on_copying(entry, copying)
            continue
        match entry:
            case (
                log_entries.Call(effect="effect")
                | log_entries.Assistant()
                | log_entries.Note(name="requested" | "submitted" | "paused" | "ended")
            ):
                return True
            case _:
                pass
    return False


def damaged(path: Path, line: int, why: str) -> LogError:
    """What to say of a log with a damaged line."""
    return LogError(
        "log-damaged",
        f"{path}:{line}: this line of the log is damaged: {why}",
        fix="put the file back from a copy; nothing was changed, and other runs are not concerned",
        evidence={"file": str(path), "line": line},
    )
