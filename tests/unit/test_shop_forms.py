"""The shop parses the forms that browsers send, files included."""

from __future__ import annotations

import hypothesis
from hypothesis import strategies as st

from workflows.shop import forms, web

BOUNDARY = "----WebKitFormBoundaryxYz12"
KIND = f"multipart/form-data; boundary={BOUNDARY}"


def sent(*parts: tuple[str, bytes]) -> bytes:
    """A body as Chromium writes it: each part's disposition and content."""
    written = b"".join(
        f"--{BOUNDARY}\r\nContent-Disposition: form-data; {disposition}\r\n".encode()
        + (b"Content-Type: application/octet-stream\r\n" if "filename" in disposition else b"")
        + b"\r\n"
        + content
        + b"\r\n"
        for disposition, content in parts
    )
    return written + f"--{BOUNDARY}--\r\n".encode()


@hypothesis.given(st.lists(st.binary(max_size=60), max_size=3))
def test_files_arrive_to_the_byte(contents: list[bytes]) -> None:
    """Uploaded files arrive byte for byte and in order, beside the fields."""
    parts = [(f'name="files"; filename="{place}.bin"', content) for place, content in enumerate(contents)]
    fields, files = forms.read(KIND, sent(('name="request_id"', b"r1"), *parts))
    assert fields == {"request_id": "r1"}
    assert files == tuple(web.Upload("files", f"{place}.bin", content) for place, content in enumerate(contents))


def test_file_names_and_empty_uploads() -> None:
    """A file name may have quotes and any letters; an empty file name means no file; texts are UTF-8."""
    body = sent(
        ('name="files"; filename="Größe %22L%22.txt"', b"x"),
        ('name="more"; filename=""', b""),
        ('name="note"', "é".encode()),
    )
    assert forms.read(KIND, body) == ({"note": "é"}, (web.Upload("files", 'Größe "L".txt', b"x"),))


def test_other_bodies() -> None:
    """An urlencoded body has fields and no files; JSON has neither."""
    assert forms.read("application/x-www-form-urlencoded; charset=utf-8", b"a=1&b=%C3%A9&c=") == (
        {"a": "1", "b": "é", "c": ""},
        (),
    )
    assert forms.read("application/json", b'{"a": 1}') == ({}, ())
