"""Integrity of a log file: its entries, and after them a torn end, which may be cut, or a damaged one, which nothing may touch.

A side effect begins only once its call is synced. So a line left incomplete by an interrupted append or a power cut announces none that
has begun, and it is safe to cut it. A line that was complete and has changed may be the call of a side effect that happened: cutting it
would do that twice. ``is_torn`` tells the two apart by the ways in which each can arise.
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
"""Bytes that a disk writes as one. Sectors lost in a power cut read as zeros, which begin and end at a sector, or with the appended data."""

_ZEROS = re.compile(rb"\0+")


@contextlib.contextmanager
def uncollected() -> Generator[None]:
    """Disable garbage collection while a log is read: its objects all stay, and scanning them repeatedly takes longer than making them."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            if not gc.get_freeze_count():
                # All of it counts as old at once; otherwise the first collection would scan it.
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
    """Return the entries of a log, and the bytes of a torn end. Raises LogError ``log-damaged`` and ``log-too-new`` with ``path`` and line.

    ``known``: the entries before ``position``, which were read already. ``data`` begins at byte ``offset`` of the log, after line ``after``.
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


def offset_after(file: BinaryIO, number: int) -> int:
    """Return the offset of the line after line ``number``, or of the log's end. A binary search leaves most of the log unread."""
    low, high = 0, file.seek(0, os.SEEK_END)
    while low < high:
        middle = (low + high) // 2
        _seek_line(file, middle)
        found = _NUMBER.match(file.readline())
        # Bytes that are no line count as after all lines: the reader from there reports them.
        if found is None or int(found[1]) > number:
            high = middle
        else:
            low = middle + 1
    return _seek_line(file, low)


def _seek_line(file: BinaryIO, position: int) -> int:
    if position == 0:
        return file.seek(0)
    file.seek(position - 1)
    file.readline()
    return file.tell()


def last_entry(lines: Iterable[bytes]) -> log_entries.AnyEntry | None:
    """Return the last entry of a log with these lines; None if only reading all of it shows what it holds.

    Every line is checked against its checksum and its number, which reveals all damage. Only the last one is decoded.
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
    """Return the entry in line ``number`` of a log. Raises like ``entries.decode``."""
    entry = log_entries.decode(line)
    if entry.seq != number:
        raise log_entries.BadLine(f"it says line {entry.seq}")
    return entry


def is_copying(entries: Iterable[log_entries.AnyEntry]) -> bool:
    """True if these are the first entries of a fork that has not taken over everything: then only its first line was ever synced."""
    copying = False
    for entry in entries:
        copying = still_copying(entry, copying)
        if not copying:
            break
    return copying


def still_copying(entry: log_entries.AnyEntry, before: bool) -> bool:
    """True if the fork still copies after ``entry``; ``before``: it did before."""
    match entry:
        case log_entries.Scope(session=log_entries.SessionHeader(forked=log_entries.Forked())):
            return True
        case log_entries.Note(name="claimed"):
            return False
        case _:
            return before


def is_torn(tail: bytes, offset: int, *, copying: bool = False) -> bool:
    """True if no part of ``tail`` was ever known to be synced, so it may be cut. It begins with the first incomplete line, at ``offset``.

    ``copying``: it is that of a fork that has not taken over everything.

    - A line without its end is torn, unless it is all there and only its newline is another byte.
    - A power cut may leave zeros in place of a sector that was not written in time, although later sectors were. Everything from there on is
      torn, unless it contains a line that the run waits to be synced before it continues.
    - A whole line that does not fit its checksum is not torn: an interrupted append leaves no such thing.
    """
    line, newline, _rest = tail.partition(b"\n")
    placeholder = _placeholder(line, offset, is_last=not newline)
    if newline:
        return placeholder is not None and not _holds_synced(tail[placeholder:], copying=copying)
    whole = _whole(line)
    return whole is None or whole == len(line) or placeholder == whole


def _placeholder(line: bytes, offset: int, *, is_last: bool) -> int | None:
    """Return the start of missing sectors in a line at ``offset``; None if there are none. ``is_last``: the file ends with the line."""
    for zeros in _ZEROS.finditer(line):
        begins = zeros.start() == 0 or (offset + zeros.start()) % SECTOR == 0
        ends = (is_last and zeros.end() == len(line)) or (offset + zeros.end()) % SECTOR == 0
        if begins and ends:
            return zeros.start()
    return None


def _whole(line: bytes) -> int | None:
    """Return the length of the complete line in ``line``, without its newline; None if there is none."""
    found = line.find(log_entries.SUM)
    while found >= 0:
        end = found + log_entries.SUM_LENGTH
        if line[found:end] == b'%b%08x"}' % (log_entries.SUM, zlib.crc32(line[:found])):
            return end
        found = line.find(log_entries.SUM, found + 1)
    return None


def _holds_synced(tail: bytes, *, copying: bool) -> bool:
    """True if it has a line that was synced before the run continued: the call of a side effect, a request, an answer, a pause, an end.

    Lines that a fork takes over are not synced one by one.
    """
    for line in tail.split(b"\n"):
        try:
            entry = log_entries.decode(line)
        except log_entries.BadLine:
            continue
        if copying:
            copying = still_copying(entry, copying)
            continue
        synced_notes = ("requested", "submitted", "paused", "ended")
        if (
            (isinstance(entry, log_entries.Call) and entry.effect == "effect")
            or isinstance(entry, log_entries.Assistant)
            or (isinstance(entry, log_entries.Note) and entry.name in synced_notes)
        ):
            return True
    return False


def damaged(path: Path, line: int, why: str) -> LogError:
    return LogError(
        "log-damaged",
        f"{path}:{line}: this line of the log is damaged: {why}",
        fix="put the file back from a copy; nothing was changed, and other runs are not concerned",
        evidence={"file": str(path), "line": line},
    )
