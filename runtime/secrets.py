"""Secrets flow one way: into fields marked for them. Everything that a run writes goes through a Masker, and is scanned at the end."""

from __future__ import annotations

import base64
import html
import json
import mmap
import re
import unicodedata
import urllib.parse
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from nodes.values import Json

MASK = "[hidden]"
SHORTEST = 6
"""A shorter secret would be found, and masked, in innocent text."""


CUT = "…"
"""What stands where a text was cut short."""

SHORTEST_BEGINNING = 4
"""Characters of a secret that are masked where the text was cut in the middle of it."""


def forms(secret: str) -> set[str]:
    """The secret as it may stand in what a run writes: plain, as pages and file names change it, URL-encoded, base64 at each alignment, escaped and quoted."""
    found = {secret, html.escape(secret), html.escape(secret, quote=False)}
    changed = {
        " ".join(secret.split()),  # as a page shows it
        re.sub(r'[/\\:*?"<>|]', "_", secret),  # as the name of a file
        *(unicodedata.normalize(form, secret) for form in ("NFC", "NFD")),
    }
    found |= {each for each in changed if len(each) >= SHORTEST and each not in MASK}
    # As CSV and SQL double their quotes, and as Python's messages quote a text, whichever quotes the whole of it takes.
    quoted_by_python = repr(f"'\"{secret}")[4:-1]
    found |= {secret.replace('"', '""'), secret.replace("'", "''")}
    found |= {quoted_by_python, quoted_by_python.replace("\\'", "'")}
    for ascii_only in (True, False):
        once = json.dumps(secret, ensure_ascii=ascii_only)[1:-1]
        found |= {once, json.dumps(once)[1:-1]}
    for quoted in (urllib.parse.quote(secret, safe=""), urllib.parse.quote(secret), urllib.parse.quote_plus(secret)):
        found |= {quoted, re.sub(r"%[0-9A-F]{2}", lambda match: match.group().lower(), quoted)}
    found |= set(_base64_forms(secret.encode()))
    return {form for form in found if form}


def _base64_forms(secret: bytes) -> Iterator[str]:
    """The characters of a base64 text that the secret alone decides, for each of the three places it can start at."""
    for offset in range(3):
        padded = b"\0" * offset + secret
        first = (offset * 8 + 5) // 6
        last = len(padded) * 8 // 6
        for alphabet in (base64.b64encode, base64.urlsafe_b64encode):
            yield alphabet(padded).decode()[first:last]


class Masker:
    """Puts MASK in the place of every form of every secret."""

    def __init__(self, secrets: Mapping[str, str]) -> None:
        """``secrets`` maps names to values; an empty value masks nothing."""
        every = sorted({form for value in secrets.values() if value for form in forms(value)}, key=len, reverse=True)
        self._text = re.compile("|".join(re.escape(form) for form in every)) if every else None
        self._bytes = re.compile(b"|".join(re.escape(form.encode()) for form in every)) if every else None
        self._beginnings = {form[:end] for form in every for end in range(SHORTEST_BEGINNING, len(form))}
        self._longest = max(map(len, every), default=0)

    @property
    def idle(self) -> bool:
        """Whether there is nothing to mask."""
        return self._text is None

    def touches(self, data: bytes | mmap.mmap) -> bool:
        """Whether any form of a secret stands in ``data``."""
        return self._bytes is not None and self._bytes.search(data) is not None

    def text(self, text: str) -> str:
        """``text`` with every secret masked, also one that the text was cut in the middle of."""
        if self._text is None:
            return text
        masked = self._text.sub(MASK, text)
        if CUT not in masked:
            return masked
        *parts, last = masked.split(CUT)
        return CUT.join([*map(self._without_beginning, parts), last])

    def _without_beginning(self, text: str) -> str:
        """``text``, which was cut short, without the beginning of a secret at its end."""
        for length in range(min(self._longest, len(text)), SHORTEST_BEGINNING - 1, -1):
            if text[-length:] in self._beginnings:
                return f"{text[:-length]}{MASK}"
        return text

    def split(self, text: str) -> tuple[str, str]:
        """``text`` as far as no secret can begin in it that goes on behind it, masked; and the rest, as it stands."""
        if self._text is None:
            return text, ""
        end = max(0, len(text) - self._longest + 1)
        for found in self._text.finditer(text):
            if found.start() < end < found.end():
                end = found.end()
        return self._text.sub(MASK, text[:end]), text[end:]

    def json(self, value: Json) -> Json:
        """``value`` with every secret masked in texts and keys; the same object where nothing was."""
        if self._text is None:
            return value
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list):
            masked = [self.json(item) for item in value]
            return masked if masked != value else value
        if isinstance(value, dict):
            masked_map = {self.text(key): self.json(item) for key, item in value.items()}
            return masked_map if masked_map != value else value
        if isinstance(value, int | float) and not isinstance(value, bool):
            return MASK if self.touches(json.dumps(value).encode()) else value
        return value

    def files_with_secrets(self, files: list[Path]) -> list[Path]:
        """Those of ``files`` in which any form of a secret stands."""
        return [file for file in files if self._stands_in(file)]

    def _stands_in(self, file: Path) -> bool:
        if self.idle or file.stat().st_size == 0:
            return False
        # A file that a step kept may be larger than the memory.
        with file.open("rb") as opened, mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return self.touches(data)


class Stream:
    """A text that comes in pieces, handed on with every secret masked: what may be the beginning of one is held back until more has come."""

    def __init__(self, masker: Masker, hear: Callable[[str], None]) -> None:
        """``hear`` is told each piece that is not empty."""
        self._masker, self._hear = masker, hear
        self._held = ""

    def take(self, piece: str) -> None:
        """The next piece."""
        shown, self._held = self._masker.split(self._held + piece)
        if shown:
            self._hear(shown)

    def end(self) -> None:
        """Nothing more comes."""
        if self._held:
            self._hear(self._masker.text(self._held))
        self._held = ""


def masked_json(masker: Masker, text: str) -> str:
    """``text`` with every secret masked, and where it is JSON, also one that is written in it with escapes."""
    plain = masker.text(text)
    if masker.idle or "\\" not in plain:
        return plain
    try:
        value = json.loads(plain)
    except (ValueError, RecursionError):
        return plain
    try:
        masked = masker.json(value)
    except RecursionError:
        # A text nested as deep as that is of no use to anybody, and what stands in it with escapes is not known.
        return json.dumps(MASK)
    return plain if masked == value else json.dumps(masked, ensure_ascii=False)
