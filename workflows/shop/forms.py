"""Reads the body of a form: its fields and files."""

from __future__ import annotations

from email.message import Message
from email.parser import HeaderParser
from urllib.parse import parse_qsl

from workflows.shop.web import Upload


def read(content_type: str, body: bytes) -> tuple[dict[str, str], tuple[Upload, ...]]:
    """Return the fields and the files of a form; empty for a body that is no form.

    A file field without a chosen file yields no file. Text is read as UTF-8, with replacement characters for invalid
    bytes.
    """
    kind = Message()
    kind["Content-Type"] = content_type
    match kind.get_content_type():
        case "application/x-www-form-urlencoded":
            return dict(parse_qsl(body.decode(errors="replace"), keep_blank_values=True)), ()
        case "multipart/form-data":
            return _parts(body, f"--{kind.get_boundary('')}".encode())
        case _:
            return {}, ()


def _parts(body: bytes, boundary: bytes) -> tuple[dict[str, str], tuple[Upload, ...]]:
    fields: dict[str, str] = {}
    files: list[Upload] = []
    # Text before the first boundary and after the last is no part.
    for part in (b"\r\n" + body).split(b"\r\n" + boundary)[1:-1]:
        head, _, content = part.removeprefix(b"\r\n").partition(b"\r\n\r\n")
        disposition = HeaderParser().parsestr(head.decode(errors="replace"))
        field = str(disposition.get_param("name", "", header="content-disposition"))
        name = disposition.get_filename()
        if name:
            # Browsers write a quotation mark in a name as %22.
            files.append(Upload(field, name.replace("%22", '"'), content))
        elif name is None:
            fields[field] = content.decode(errors="replace")
    return fields, tuple(files)
