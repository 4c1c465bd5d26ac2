"""Refusal of tool calls whose arguments contain secrets, references to secrets, or masks."""

from __future__ import annotations

import base64
import binascii
import html
import re
import unicodedata
import urllib.parse
from collections.abc import Iterator

from nodes.values import Json
from runtime.secrets.masking import MASK, Masker

_REFERENCE = re.compile(r"\{\{.*\bsecrets\b", re.DOTALL)
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{8,}={0,2}")

DEEPEST = 3  # times that a text is decoded: finds text that is encoded twice, and limits the work on deeper encoding


def refusal(arguments: Json, masker: Masker) -> str | None:
    """Return the reason to refuse a call with these arguments; None if there is none."""
    for text in _texts(arguments):
        if any(_REFERENCE.search(each) for each in _unwrapped(text)):
            return "references to secrets are for the author of the workflow: a model types none"
        if any(masker.text(each) != each for each in _unwrapped(text)):
            return "a secret of the run is in the arguments: a model types none"
        if MASK in text:
            return f"{MASK} is the place of something hidden from you, and is no value"
    return None


def _texts(value: Json) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for item in (each for pair in value.items() for each in pair) if isinstance(value, dict) else value:
            yield from _texts(item)


def _unwrapped(text: str) -> set[str]:
    """Return the text, and its decoded forms: of URLs, HTML and base64, with look-alike letters replaced and invisible characters removed."""
    found, fresh = {text}, {text}
    for _time in range(DEEPEST):
        fresh = {other for each in fresh for other in _once(each)} - found
        found |= fresh
    return found


def _once(text: str) -> Iterator[str]:
    yield urllib.parse.unquote(text)
    yield urllib.parse.unquote_plus(text)
    yield html.unescape(text)
    yield "".join(each for each in unicodedata.normalize("NFKC", text) if unicodedata.category(each) != "Cf")
    for found in _BASE64.finditer(text):
        padded = found[0].rstrip("=").replace("-", "+").replace("_", "/")
        try:
            yield base64.b64decode(padded + "=" * (-len(padded) % 4)).decode()
        except (binascii.Error, UnicodeDecodeError):
            continue
