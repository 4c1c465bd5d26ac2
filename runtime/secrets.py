"""Secrets flow one way: into fields marked for them. Everything that a run writes goes through a Masker, and is scanned at the end."""

from __future__ import annotations

import base64
import functools
import html
import html.entities
import json
import mmap
import re
import unicodedata
import urllib.parse
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from nodes.values import Json
from runtime import regular

MASK = "[hidden]"
SHORTEST = 6
"""A shorter secret would be found, and masked, in innocent text."""


CUT = "…"
"""What stands where a text was cut short."""

SHORTEST_BEGINNING = 4
"""Characters of a secret that are masked where the text was cut in the middle of it."""


KEPT = "!~*'()"
"""What browsers do not escape in a part of an address, beside letters and digits."""

DEEP = 7
"""Backslashes before one character: those of JSON in JSON in JSON."""

_ESCAPES = re.compile(r"[\\%&]")
"""What an escaped character begins with."""

_NAMED = {"\n": "n", "\t": "t", "\r": "r", "\b": "b", "\f": "f"}


def forms(secret: str) -> set[str]:
    """The secret as it may stand in what a run writes: plain, as pages and file names change it, URL-encoded, base64 at each alignment, escaped and quoted."""
    found = {secret, html.escape(secret), html.escape(secret, quote=False)}
    changed = {
        " ".join(secret.split()),  # as a page shows it
        re.sub(r'[/\\:*?"<>|]', "_", secret),  # as the name of a file
        *(unicodedata.normalize(form, secret) for form in ("NFC", "NFD")),
    }
    if not secret.isalpha():
        # A style may show any text so. Of a single word nobody could tell the secret from the word.
        changed |= {secret.upper(), secret.lower(), secret.title(), f"{secret[:1].upper()}{secret[1:]}"}
    found |= {each for each in changed if len(each) >= SHORTEST and each not in MASK}
    # As CSV and SQL double their quotes, and as Python's messages quote a text, whichever quotes the whole of it takes.
    quoted_by_python = repr(f"'\"{secret}")[4:-1]
    found |= {secret.replace('"', '""'), secret.replace("'", "''")}
    found |= {quoted_by_python, quoted_by_python.replace("\\'", "'")}
    for ascii_only in (True, False):
        once = json.dumps(secret, ensure_ascii=ascii_only)[1:-1]
        found |= {once, json.dumps(once)[1:-1]}
    quote = urllib.parse.quote
    addresses = (quote(secret, safe=""), quote(secret), urllib.parse.quote_plus(secret), quote(secret, safe=KEPT))
    for quoted in addresses:
        found |= {quoted, re.sub(r"%[0-9A-F]{2}", lambda match: match.group().lower(), quoted)}
    found |= set(_base64_forms(secret.encode()))
    return {form for form in found if form}


def _written(secret: str) -> Iterator[str]:
    """Patterns of the secret where each of its characters may be escaped by itself, as addresses, HTML, JSON and Markdown have it, each after rules of its own.

    Each begins with a letter, so that `re` need only look where one of these stands.
    """
    first, *others = map(_ways, secret)
    rest = "".join(each[0] if len(each) == 1 else f"(?:{'|'.join(each)})" for each in others)
    return (f"{each}{rest}" for each in first)


A_WAY = 40
"""Characters of an escaped one, at most, but for escapes of escapes."""


def _longest(secret: str) -> int:
    """How long its patterns may find it to be."""
    return sum(1 if _is_plain(each) else A_WAY for each in secret)


def _is_plain(character: str) -> bool:
    """Whether nobody escapes it."""
    return character.isascii() and character.isalnum()


@functools.cache
def _entities() -> Mapping[str, Sequence[str]]:
    """The names that characters have in HTML."""
    names: dict[str, list[str]] = {}
    for name, character in html.entities.html5.items():
        if name.endswith(";"):
            names.setdefault(character, []).append(name[:-1])
    return names


@functools.cache
def _ways(character: str) -> tuple[str, ...]:
    """Patterns of one character, as it stands and escaped."""
    if _is_plain(character):
        return (character,)
    code, more = ord(character), rf"\\\\{{0,{DEEP - 1}}}"
    plain = re.escape(character)
    # The longer one first: no half of an escape stays behind at the end.
    ways = [rf"{more}\\" if character == "\\" else f"{more}{plain}", plain]
    if character in "\"'":
        # CSV and SQL double them.
        ways = [rf"{each}(?:\\{{0,{DEEP}}}{plain})?" for each in ways]
    units = character.encode("utf-16-be", "surrogatepass").hex()
    ways.append("".join(rf"{more}u(?i:{units[at : at + 4]})" for at in range(0, len(units), 4)))
    ways.append("".join(f"%(?:25)*(?i:{byte:02x})" for byte in character.encode(errors="surrogatepass")))
    numbers = (f"#0*{code}", f"#[xX]0*(?i:{code:x})")
    ways.append(f"&(?:amp;)*(?:{'|'.join([*numbers, *_entities().get(character, ())])});")
    ways += [f"{more}{_NAMED[character]}"] if character in _NAMED else []
    ways += [rf"{more}x(?i:{code:02x})"] if code < 256 else []
    ways += [r"\+"] if character == " " else []
    return tuple(ways)


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
        values = {value for value in secrets.values() if value}
        every = {form for value in values for form in forms(value)}
        # Of two secrets of which one begins with the other, the longer one is meant, in whichever form.
        patterns = [(len(form), re.escape(form)) for form in every]
        patterns += [(_longest(value), each) for value in values for each in _written(value)]
        self._pattern = "|".join(each for _length, each in sorted(patterns, reverse=True))
        self._text = re.compile(self._pattern) if every else None
        self._beginnings = {form[:end] for form in every for end in range(SHORTEST_BEGINNING, len(form))}
        self._longest = max((length for length, _pattern in patterns), default=0)
        self._unescaped = max([*map(len, every), *(2 * len(value) for value in values)], default=0)
        """How long a secret may be in whose text no escape stands: a quote that is doubled has two characters."""

    @functools.cached_property
    def _bytes(self) -> re.Pattern[bytes]:
        return re.compile(self._pattern.encode())

    @property
    def idle(self) -> bool:
        """Whether there is nothing to mask."""
        return self._text is None

    def touches(self, data: bytes | mmap.mmap) -> bool:
        """Whether any form of a secret stands in ``data``."""
        return bool(self._pattern) and self._bytes.search(data) is not None

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
        far, end = (max(0, len(text) - length + 1) for length in (self._longest, self._unescaped))
        if (escape := _ESCAPES.search(text, far)) is not None:
            end = min(end, max(far, escape.start() - self._unescaped))
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
        with regular.opened(file) as opened, mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as data:
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
