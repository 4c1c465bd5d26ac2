"""The gate finds secrets in what was written, however it is packed, and takes the files of a run with a secret away."""

from __future__ import annotations

import base64
import gzip
import io
import json
import random
import tracemalloc
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from runtime.secrets import gate
from runtime.secrets.gate import Found, Gate
from runtime.secrets.masking import WINDOW, Masker
from tests import breadth

SECRET = 'tr0ub4dor & "3" ünd'
GATE = Gate(Masker({"OTHER": "something else", "SHOP_PASSWORD": SECRET}))


def zipped(data: bytes, name: str = "trace.network") -> bytes:
    """A zip archive with this member."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("first", b"innocent" * 50)
        archive.writestr(name, data)
    return out.getvalue()


def picture(kind: bytes, head: bytes) -> Callable[[bytes], bytes]:
    """Make a PNG with a packed text chunk of this kind, and this head before the packed data."""

    def made(data: bytes) -> bytes:
        def chunk(name: bytes, content: bytes) -> bytes:
            return len(content).to_bytes(4, "big") + name + content + zlib.crc32(name + content).to_bytes(4, "big")

        parts = [(b"IHDR", bytes(13)), (kind, head + zlib.compress(data)), (b"IEND", b"")]
        return b"\x89PNG\r\n\x1a\n" + b"".join(chunk(*each) for each in parts)

    return made


def in_pdf(data: bytes) -> bytes:
    return b"%PDF-1.7\n1 0 obj <</Filter/FlateDecode>> stream\r\n" + zlib.compress(data) + b"\nendstream\nendobj"


def as_lines(data: bytes) -> bytes:
    return b"Content-Transfer-Encoding: base64\r\n\r\n" + base64.encodebytes(data).replace(b"\n", b"\r\n")


PACKINGS: dict[str, Callable[[bytes], bytes]] = {
    "a member of a zip": zipped,
    "gzip": gzip.compress,
    "two gzips": lambda data: gzip.compress(b"first") + gzip.compress(data),
    "deflate": zlib.compress,
    "a text of a picture": picture(b"zTXt", b"Comment\0\0"),
    "an international text of a picture": picture(b"iTXt", b"Comment\0\1\0en\0Comment\0"),
    "a PDF": in_pdf,
    "base64": lambda data: b"<img src='data:image/svg+xml;base64," + base64.b64encode(data + b" " * 40) + b"'>",
    "base64 for addresses": lambda data: b"?q=" + base64.urlsafe_b64encode(data + b"\xff" * 40).rstrip(b"="),
    "base64 in lines": lambda data: as_lines(data + b" " * 40),
    "base64 in lines of JSON": lambda data: json.dumps(as_lines(data + b" " * 50).decode()).encode(),
}


def spelled(secret: str) -> dict[str, bytes]:
    """The secret as files have it, made without our code."""
    return {
        "plain": secret.encode(),
        "JSON": json.dumps(secret).encode(),
        "UTF-16": secret.encode("utf-16"),
        "UTF-16, most significant first": secret.encode("utf-16-be"),
    }


@pytest.mark.parametrize("spelling", spelled(SECRET))
@pytest.mark.parametrize("packing", PACKINGS)
def test_a_packed_secret_is_found(packing: str, spelling: str) -> None:
    """A secret in archives, packed texts and base64 is found by name, and nothing is found in the same file without it."""
    found = GATE.data(PACKINGS[packing](spelled(SECRET)[spelling]))
    assert found is not None
    assert found.secrets == ("SHOP_PASSWORD",)
    assert GATE.data(PACKINGS[packing](spelled("another thing")[spelling])) is None


@settings(max_examples=breadth.of(10, 200))
@given(
    packings=st.lists(st.sampled_from(sorted({*PACKINGS} - {"two gzips"})), min_size=1, max_size=gate.DEPTH),
    before=st.binary(max_size=60),
    after=st.binary(max_size=60),
)
@example(packings=["gzip", "base64 in lines", "a member of a zip"], before=b"", after=b"")
def test_a_secret_is_found_in_packings_of_packings(packings: list[str], before: bytes, after: bytes) -> None:
    """Three packings in each other hide no secret, and the find says in which parts it is."""
    data = before + b" " + SECRET.encode() + after
    for each in packings:
        data = PACKINGS[each](data)
    found = GATE.data(data)
    assert found is not None
    assert SECRET not in str(found)


def test_a_find_says_where(tmp_path: Path) -> None:
    """The find names the member and the text within it; of a file its name counts, too."""
    data = zipped(b'{"body": "' + base64.b64encode(gzip.compress(SECRET.encode())) + b'"}')
    file = tmp_path / "trace.zip"
    file.write_bytes(data)
    assert GATE.file(file) == Found(("SHOP_PASSWORD",), ("trace.network", "base64 at byte 10", "gzip"))
    named = tmp_path / f"{SECRET.replace('/', '_')}.txt"
    named.write_bytes(b"")
    assert GATE.file(named) == Found(("SHOP_PASSWORD",), ("its name",))


def test_a_member_named_after_the_secret_is_not_quoted() -> None:
    """The name of a part that contains a secret is masked in the find."""
    found = GATE.data(gzip.compress(zipped(SECRET.encode(), f"of {SECRET}.txt")))
    assert found is not None
    assert SECRET not in str(found)


@pytest.mark.parametrize("offset", [-40, -20, -1, 0])
def test_a_secret_across_pieces_is_found(offset: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is unpacked piece by piece is searched across the pieces."""
    monkeypatch.setattr(gate, "PIECE", 1 << 16)
    data = b"." * (2 * (1 << 16) + offset) + SECRET.encode() + b"." * (1 << 17)
    assert GATE.data(gzip.compress(data)) == Found(("SHOP_PASSWORD",), ("gzip",))


@pytest.mark.drawn(4)
@pytest.mark.parametrize("inner", ["a member of a zip", "gzip", "a PDF", "deflate"])
@pytest.mark.parametrize("outer", ["a member of a zip", "gzip", "base64"])
def test_a_large_archive_in_an_archive_is_unpacked(outer: str, inner: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that is larger than what is held in memory is searched as a small one is."""
    monkeypatch.setattr(gate, "PIECE", 1 << 16)
    noise = random.Random(5).randbytes(1 << 19).hex().encode()
    found = GATE.data(PACKINGS[outer](PACKINGS[inner](noise + SECRET.encode() + noise)))
    assert found is not None
    assert found.secrets == ("SHOP_PASSWORD",)


@pytest.mark.parametrize("lines", [False, True])
def test_a_long_text_in_base64_is_not_held_whole(lines: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is decoded piece by piece, and a secret anywhere in it is found."""
    monkeypatch.setattr(gate, "PIECE", 1 << 16)
    for place in (WINDOW * 3 // 4 - 9, 4 << 20):
        raw = b" " * place + SECRET.encode("utf-16-le") + b" " * ((4 << 20) - place)
        data = base64.encodebytes(raw) if lines else base64.b64encode(raw)
        if lines:
            data = data.replace(b"\n", b"\\r\\n")
        tracemalloc.start()
        found = GATE.data(data)
        _now, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert found == Found(("SHOP_PASSWORD",), ("base64 at byte 0",))
        assert most < 2 << 20, "of 5 MB"


TEXTS = ("base64", "base64 for addresses", "base64 in lines", "base64 in lines of JSON")


@settings(max_examples=breadth.of(30, 500))
@given(
    packings=st.lists(st.sampled_from(TEXTS), max_size=2),
    spelling=st.sampled_from(sorted(spelled(SECRET))),
    before=st.text(max_size=30),
    after=st.text(max_size=70),
    broken=st.booleans(),
)
@example(packings=["base64"], spelling="plain", before="", after="", broken=True)
@example(packings=["base64 in lines of JSON"], spelling="plain", before="", after="x" * 3, broken=True)
def test_nothing_is_found_in_what_is_painted(
    packings: list[str], spelling: str, before: str, after: str, broken: bool
) -> None:
    """A line of a log has no secret after it was painted over, is as long as it was, and still is JSON."""
    data = before.encode() + b" " + spelled(SECRET)[spelling] + after.encode()
    for each in packings:
        data = PACKINGS[each](data)
    line = json.dumps({"said": ("one line\n" if broken else "") + data.decode(errors="replace"), "n": 1}).encode()
    painted = GATE.painted(line)
    assert (GATE.data(painted), len(painted)) == (None, len(line))
    assert json.loads(painted)["n"] == 1


def test_an_archive_that_never_ends_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """Unpacking stops at the limit: what is behind it is not searched."""
    monkeypatch.setattr(gate, "UNPACKED", 1 << 20)
    assert GATE.data(gzip.compress(bytes(1 << 24) + SECRET.encode())) is None
    assert GATE.data(gzip.compress(bytes(1 << 18) + SECRET.encode())) is not None


@settings(max_examples=breadth.of(10, 300))
@given(packing=st.sampled_from(sorted(PACKINGS)), data=st.data())
def test_damaged_files_are_searched_as_they_are(packing: str, data: st.DataObject) -> None:
    """A damaged or incomplete archive raises nothing."""
    whole = bytearray(PACKINGS[packing](b"nothing of interest"))
    for _ in range(data.draw(st.integers(0, 4))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    assert GATE.data(bytes(whole[: data.draw(st.integers(0, len(whole)))])) is None
