"""The gate: finds secrets in what was written, in every spelling, also in what is packed or encoded.

Masking comes before it and leaves nothing to find. What the gate finds was written past a mask, or came from a site as a file.
"""

from __future__ import annotations

import binascii
import contextlib
import dataclasses
import io
import mmap
import re
import tempfile
import time
import zipfile
import zlib
from collections.abc import Generator, Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple, cast

from runtime.secrets.masking import PAUSE, WINDOW, Masker
from runtime.system import regular_files

UNPACKED = 256 << 20
"""Most bytes that are unpacked of one file: a small archive may hold more than a disk does."""

PIECE = 16 << 20
"""Bytes of an unpacked part that are in memory; a larger one is searched in a file without a name."""

STEP = 1 << 20  # bytes that are unpacked at once

DEPTH = 3  # an archive, in base64, in an archive: what is packed deeper is not unpacked

SHORTEST_BASE64 = 40

_BREAK = rb"(?:\r?\n|\\r\\n|\\n)"
_BASE64 = re.compile(rb"(?:[A-Za-z0-9+/_-]{%d,}+%b?+)++" % (SHORTEST_BASE64, _BREAK))
_BREAKS = re.compile(_BREAK)
_BEGUN_BREAK = re.compile(rb"(?:\r|\\(?:r\\?)?)\Z")
_LAST_LINE = re.compile(rb"(?<=n|\n)[A-Za-z0-9+/_-]{1,%d}" % SHORTEST_BASE64)
_HEXADECIMAL = re.compile(rb"[0-9a-f]+")
_STREAM = re.compile(rb"stream\r?\n")

Data = bytes | mmap.mmap


class Found(NamedTuple):
    secrets: tuple[str, ...]
    """Names of the secrets."""

    inside: tuple[str, ...] = ()
    """The parts in which they are, from outside in: members of archives, texts in base64."""

    def __str__(self) -> str:
        return f"{', '.join(self.secrets)}{''.join(f', in {each}' for each in self.inside)}"


@dataclasses.dataclass
class _Budget:
    left: int

    def taken(self, unpacked: Iterable[bytes]) -> Iterator[bytes]:
        """Yield the unpacked bytes as far as there is room."""
        for each in unpacked:
            yield each
            self.left -= len(each)
            if self.left <= 0:
                break


@contextlib.contextmanager
def _held(unpacked: Iterable[bytes]) -> Generator[tuple[Data, BinaryIO]]:
    """Hold the unpacked bytes, and a file of them: in memory, or else in a file without a name. Raises OSError."""
    with tempfile.SpooledTemporaryFile(max_size=PIECE) as file:
        for each in unpacked:
            file.write(each)
        opened = cast("BinaryIO", file)
        if file.tell() < PIECE:
            file.seek(0)
            yield file.read(), opened
        else:
            file.rollover()
            file.flush()
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
                yield data, opened


class Gate:
    def __init__(self, masker: Masker) -> None:
        self._masker = masker

    def file(self, path: Path) -> Found | None:
        """Return the secrets that the file, or its name, contains in their own capitals. Raises OSError."""
        if self._masker.idle:
            return None
        if found := self._masker.but_words.found(path.name.encode(errors="surrogateescape")):
            return Found(found, ("its name",))
        if path.stat().st_size == 0:
            return None
        # A file that a step kept may be larger than the memory.
        with regular_files.opened(path) as opened, mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return self._find(data, opened, DEPTH, _Budget(UNPACKED))

    def data(self, data: bytes) -> Found | None:
        return None if self._masker.idle else self._find(data, io.BytesIO(data), DEPTH, _Budget(UNPACKED))

    def text(self, text: str) -> Found | None:
        return self.data(text.encode(errors="surrogatepass"))

    def painted(self, data: bytes) -> bytes:
        """Return ``data`` with the secrets painted over, in as many bytes; of a text in base64 that holds one the whole."""
        painted = bytearray(self._masker.painted(data))
        for begin, end in _base64(bytes(painted)):
            with _held(_decoded(painted, begin, end)) as (decoded, opened):
                if self._find(decoded, opened, DEPTH - 1, _Budget(UNPACKED)) is not None:
                    painted[begin:end] = b"*" * (end - begin)
        return bytes(painted)

    def _find(self, data: Data, opened: BinaryIO, depth: int, budget: _Budget) -> Found | None:
        if found := self._masker.found(data):
            return Found(found)
        if depth:
            for name, unpacked in _parts(data, opened):
                with _held(budget.taken(unpacked)) as held:
                    inner = self._find(*held, depth - 1, budget)
                if inner is not None:
                    return Found(inner.secrets, (self._masker.text(name), *inner.inside))
        return None


def _parts(data: Data, opened: BinaryIO) -> Iterator[tuple[str, Iterable[bytes]]]:
    """Yield what is packed or encoded in ``data``, each with its name. What cannot be unpacked is left out."""
    begin = data[:8]
    if begin.startswith(b"PK\3\4"):
        yield from _members(opened)
    elif begin.startswith(b"\x1f\x8b"):
        yield "gzip", _inflated(_windows(data), zlib.MAX_WBITS | 16)
    elif begin.startswith(b"\x89PNG\r\n\x1a\n"):
        yield from _texts_of_picture(data)
    elif begin.startswith(b"%PDF"):
        yield from _streams(data)
    elif begin[:1] == b"x" and len(begin) > 1 and not (begin[0] << 8 | begin[1]) % 31:
        yield "deflate", _inflated(_windows(data), zlib.MAX_WBITS)
    for first, end in _base64(data):
        yield f"base64 at byte {first}", _decoded(data, first, end)


def _members(opened: BinaryIO) -> Iterator[tuple[str, Iterable[bytes]]]:
    with contextlib.suppress(zipfile.BadZipFile, OSError, ValueError), zipfile.ZipFile(opened) as archive:
        for each in archive.infolist():
            yield each.filename, _read(archive, each)


def _read(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> Iterator[bytes]:
    # An encrypted one, one packed in an unknown way, a damaged one: RuntimeError, NotImplementedError, several others.
    with contextlib.suppress(Exception), archive.open(member) as file:
        while piece := file.read(WINDOW):
            yield piece


def _windows(data: Data | bytearray, begin: int = 0, end: int | None = None) -> Iterator[bytes]:
    end = len(data) if end is None else end
    for at in range(begin, end, WINDOW):
        yield bytes(data[at : min(at + WINDOW, end)])


def _inflated(packed: Iterable[bytes], form: int) -> Iterator[bytes]:
    """Unpack until the end, or until it is damaged; several packed parts may follow each other."""
    with contextlib.suppress(zlib.error):
        unpacker = zlib.decompressobj(form)
        for each in packed:
            rest = each
            while rest:
                yield unpacker.decompress(rest, STEP)
                rest = unpacker.unconsumed_tail or unpacker.unused_data
                if unpacker.eof:
                    unpacker = zlib.decompressobj(form)


def _texts_of_picture(data: Data) -> Iterator[tuple[str, Iterable[bytes]]]:
    """Yield the packed texts of a PNG: title, comment, and so on."""
    at = 8
    while len(header := data[at : at + 8]) == 8:
        size = int.from_bytes(header[:4], "big")
        if header[4:] in (b"zTXt", b"iTXt"):
            text = data[at + 8 : at + 8 + size]
            end = (
                text.find(b"\0") + 2
                if header[4:] == b"zTXt"
                else text.find(b"\0", text.find(b"\0", text.find(b"\0") + 3) + 1) + 1
            )
            yield "a text of the picture", _inflated([text[end:]], zlib.MAX_WBITS)
        at += size + 12


def _streams(data: Data) -> Iterator[tuple[str, Iterable[bytes]]]:
    for number, each in enumerate(_STREAM.finditer(data), 1):
        yield f"stream {number}", _inflated(_windows(data, each.end()), zlib.MAX_WBITS)


def _base64(data: Data) -> Iterator[tuple[int, int]]:
    """Yield where a text in base64 begins and ends, its lines and those of a text in JSON included."""
    at = 0
    while at < len(data):
        found = _BASE64.search(data, at, at + WINDOW)
        if found is None:
            # One may begin at the end of the window.
            at += WINDOW - SHORTEST_BASE64
            time.sleep(PAUSE if at < len(data) else 0)
            continue
        begin = found.start()
        if found.end() >= at + WINDOW - SHORTEST_BASE64 - len("\\r\\n"):
            # The window may end in the midst of a line.
            found = _BASE64.match(data, begin) or found
        last = _LAST_LINE.match(data, found.end())
        at = last.end() if last is not None else found.end()
        # After a backslash the letter is that of an escape, such as a line break in JSON.
        begin += data[begin - 1 : begin] == b"\\"
        if _HEXADECIMAL.fullmatch(data, begin, at) is None:  # else it is the number of something
            yield begin, at


def _decoded(data: Data | bytearray, begin: int, end: int) -> Iterator[bytes]:
    rest, half = b"", b""
    for window in _windows(data, begin, end):
        text = half + window
        broken = _BEGUN_BREAK.search(text)
        text, half = (text[: broken.start()], broken[0]) if broken is not None else (text, b"")
        rest += _BREAKS.sub(b"", text).replace(b"-", b"+").replace(b"_", b"/")
        whole = len(rest) // 4 * 4
        yield binascii.a2b_base64(rest[:whole])
        rest = rest[whole:]
    if len(rest) > 1:
        # Base64 fills up its last group of four characters.
        yield binascii.a2b_base64(rest.ljust(4, b"="))
