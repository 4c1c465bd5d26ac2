"""Masking of secrets. Secrets flow only into fields marked for them; everything that a run writes is masked here, and scanned at the end."""

from __future__ import annotations

import base64
import functools
import json
import mmap
import re
import time
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from nodes.values import Json
from runtime.secrets import hidden_names, spellings

MASK = hidden_names.MASK
SHORTEST = 6  # minimum length of a secret: a shorter one would be found, and masked, in innocent text


CUT = "…"  # marks the place where a text was cut short
_LEFT = re.compile(
    rf"(?<={re.escape(MASK)})(?:\\(?:u[0-9a-f]{{0,3}}|x[0-9a-f]?)?|%[0-9a-f]?|=[0-9a-f]?|&#?\w{{0,7}})\Z", re.IGNORECASE
)
"""A part of an escape directly behind a mask, at the end of a text."""

SHORTEST_BEGINNING = 4  # characters of a secret that are masked if the text was cut in the middle of it

WINDOW = 1 << 16
"""Bytes searched for a secret without a pause, which takes a millisecond or two; more for a long secret."""

PAUSE = 0.0001  # seconds between two windows in which other threads run: otherwise they wait for the whole search
_WIDE = ("utf-16-le", "utf-16-be")
LONGEST_WORD = 15  # maximum number of letters of a single word


def is_word(secret: str) -> bool:
    """True if a secret may be an ordinary word: a page that has it in other capitals does not show the secret."""
    return (
        secret.isalpha()
        and len(secret) <= LONGEST_WORD
        and secret in {secret.lower(), secret.upper(), secret.capitalize()}
    )


def found_in(secret: str, *, cased: bool) -> set[spellings.Writing]:
    """Return the texts to search for: the secret as it is, as pages and file names change it, and its base64 at each alignment."""
    changed = {
        " ".join(secret.split()),  # as a page shows it
        re.sub(r'[/\\:*?"<>|]', "_", secret),  # as the name of a file
        *(unicodedata.normalize(form, secret) for form in ("NFC", "NFD")),
    }
    texts = {secret, *(each for each in changed if len(each) >= SHORTEST and each not in MASK)}
    cased = cased or is_word(secret) or secret.casefold() in MASK
    found = {spellings.Writing(each, cased) for each in texts}
    return found | {spellings.Writing(each, encoded=True) for each in _base64_forms(secret.encode()) if each}


def _base64_forms(secret: bytes) -> Iterator[str]:
    """Yield the characters of a base64 text that the secret alone decides, for each of the three places where it can start."""
    for offset in range(3):
        padded = b"\0" * offset + secret
        first = (offset * 8 + 5) // 6
        last = len(padded) * 8 // 6
        for alphabet in (base64.b64encode, base64.urlsafe_b64encode):
            yield alphabet(padded).decode()[first:last]


class Masker:
    """Replaces every secret with MASK, in every spelling."""

    def __init__(
        self,
        secrets: Mapping[str, str],
        names: hidden_names.HiddenNames = hidden_names.DEFAULT,
        passing: frozenset[str] = frozenset(),
    ) -> None:
        """``secrets`` maps names to values; an empty value masks nothing. ``names`` hides further values from models, and masks nothing.

        ``passing`` are further values, which are masked in texts and not searched for in files.
        """
        self.names = names
        self._passing = passing
        self._secrets = {name: value for name, value in secrets.items() if value}
        self._values = sorted({*self._secrets.values(), *passing})
        longest = max(map(len, self._values), default=0)
        self._tail = 2 * spellings.WIDE * longest + 400
        """Characters at the end of a text that may hold the beginning of an incomplete secret."""
        self.reach = spellings.WIDEST * longest  # maximum number of bytes of a secret, in any spelling

    @property
    def codes(self) -> frozenset[str]:
        """One-time codes that are masked, too."""
        return self._passing

    def knowing(self, secrets: Mapping[str, str]) -> Masker:
        """Return a masker of these secrets, too."""
        return Masker({**self._secrets, **secrets}, self.names, self._passing)

    def passing(self, code: str) -> Masker:
        """Return a masker of this one-time code, too. It is worth nothing soon, and innocent files have the same few digits."""
        return Masker(self._secrets, self.names, self._passing | {code})

    def _writings(self, values: Iterable[str], *, cased: bool) -> set[spellings.Writing]:
        return {writing for value in values for writing in found_in(value, cased=cased)}

    @functools.cached_property
    def _text(self) -> Sequence[re.Pattern[str]]:
        return [re.compile(each) for each in spellings.found_by(self._writings(self._values, cased=False))]

    @functools.cached_property
    def _begun(self) -> re.Pattern[str]:
        return re.compile(spellings.begun_by(self._writings(self._values, cased=False), 1))

    @functools.cached_property
    def _cut(self) -> re.Pattern[str]:
        return re.compile(spellings.begun_by(self._writings(self._values, cased=False), SHORTEST_BEGINNING))

    @functools.cached_property
    def _bytes(self) -> Sequence[re.Pattern[bytes]]:
        found = spellings.found_by(self._writings(self._secrets.values(), cased=True), binary=True)
        wide = {value.encode(form, "surrogatepass") for value in self._secrets.values() for form in _WIDE}
        return [*(re.compile(each.encode("latin-1")) for each in found), re.compile(b"|".join(map(re.escape, wide)))]

    @property
    def idle(self) -> bool:
        return not self._values

    @functools.cached_property
    def but_words(self) -> Masker:
        """Masker for text of an author or of ours, where a secret that equals an ordinary word is just that word."""
        return Masker(
            {name: value for name, value in self._secrets.items() if not is_word(value)}, self.names, self._passing
        )

    def words_in(self, text: str) -> list[str]:
        """Return the names of the secrets that equal an ordinary word, and are in ``text`` as a whole word."""
        words = {*re.findall(r"\w+", text)}
        return [name for name, secret in self._secrets.items() if is_word(secret) and secret in words]

    def named(self, value: Json) -> list[str]:
        if self.json(value) == value:
            return []
        return [name for name, secret in self._secrets.items() if Masker({name: secret}).json(value) != value]

    def found(self, data: bytes | mmap.mmap) -> tuple[str, ...]:
        """Return the names of the secrets that ``data`` contains in their own capitals, in any escaping: a name in capitals reveals nothing."""
        if not self._touches(data):
            return ()
        return tuple(name for name, each in self._secrets.items() if Masker({name: each})._touches(data))

    def _touches(self, data: bytes | mmap.mmap) -> bool:
        if not self._secrets:
            return False
        window = max(WINDOW, 4 * self.reach)
        for begin in range(0, len(data), window):
            if begin:
                # While a pattern searches, no other thread of the process runs.
                time.sleep(PAUSE)
            if any(each.search(data, begin, begin + window + self.reach) for each in self._bytes):
                return True
        return False

    def painted(self, data: bytes) -> bytes:
        """Return ``data`` with every secret in its own capitals painted over, in as many bytes."""
        for each in self._bytes if self._secrets else ():
            data = each.sub(_paint, data)
        return data

    def holds(self, text: str) -> bool:
        return self.text(text) != text

    def text(self, text: str) -> str:
        """Return ``text`` with every secret masked, also one that was cut in the middle. Masking the result again changes nothing."""
        if self.idle:
            return text
        masked = self._whole(text)
        if CUT not in masked:
            return masked
        *parts, last = masked.split(CUT)
        return CUT.join([*map(self._without_beginning, parts), last])

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Return the begin and end of each secret in ``text``, in order."""
        if self.idle:
            return []
        escaped, plain = self._text
        found = [each.span() for each in escaped.finditer(text)]
        between = zip([0, *(end for _start, end in found)], [*(start for start, _end in found), len(text)], strict=True)
        return sorted([*found, *(each.span() for start, end in between for each in plain.finditer(text, start, end))])

    def _whole(self, text: str) -> str:
        for pattern in self._text:
            # Masked text is no part of a secret.
            text = (
                pattern.sub(MASK, text)
                if MASK not in text
                else MASK.join(pattern.sub(MASK, part) for part in text.split(MASK))
            )
        return text

    def _without_beginning(self, text: str) -> str:
        """Return ``text``, which was cut short, without the beginning of a secret at its end."""
        cut = self._cut.search(text, max(0, len(text) - self._tail))
        # A blank at the end of a secret may be written as an escape, and be cut in its midst.
        return _LEFT.sub("", text) if cut is None else f"{text[: cut.start()]}{MASK}"

    def split(self, text: str) -> tuple[str, str]:
        """Split ``text`` where a secret may begin that continues after it. Return the part before, masked, and the rest as it is."""
        if self.idle:
            return text, ""
        begun = self._begun.search(text, max(0, len(text) - self._tail))
        end = len(text) if begun is None else begun.start()
        for pattern in self._text:
            for found in pattern.finditer(text):
                if found.start() < end < found.end():
                    end = found.end()
        return self._whole(text[:end]), text[end:]

    def json(self, value: Json) -> Json:
        """Return ``value`` with every secret masked in texts and keys; the same object if nothing was masked."""
        if self.idle:
            return value
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list):
            masked = [self.json(item) for item in value]
            return masked if masked != value else value
        if isinstance(value, dict):
            masked_map = {self._key(key): self.json(item) for key, item in value.items()}
            return masked_map if masked_map != value else value
        if isinstance(value, int | float) and not isinstance(value, bool):
            return MASK if self.holds(json.dumps(value)) else value
        return value

    def _key(self, key: str) -> str:
        """Return a key of a map, masked. In a key that is a name, a secret that equals an ordinary word is just that word."""
        return (self.but_words if key.isidentifier() else self).text(key)


def _paint(found: re.Match[bytes]) -> bytes:
    # A number stays one, and so does the end of a quoted text that ends with a quote.
    end = found[0][-1:] if found[0].endswith((b'""', b"''")) else b""
    return (b"1" if found[0].isdigit() else b"*") * (len(found[0]) - len(end)) + end


class Stream:
    """Passes on a text that arrives in pieces, with every secret masked. A possible beginning of one is withheld until more arrives."""

    def __init__(self, masker: Masker, hear: Callable[[str], None]) -> None:
        self._masker, self._hear = masker, hear
        self._held = ""

    def take(self, piece: str) -> None:
        shown, self._held = self._masker.split(self._held + piece)
        if shown:
            self._hear(shown)

    def end(self) -> None:
        """Pass on the rest: the text is complete."""
        if self._held:
            self._hear(self._masker.text(self._held))
        self._held = ""


def masked_json(masker: Masker, text: str) -> str:
    """Return ``text`` with every secret masked; if it is JSON, also one that is written in it with escapes."""
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
        # A text nested so deeply is of no use, and its escaped content is unknown.
        return json.dumps(MASK)
    return plain if masked == value else json.dumps(masked, ensure_ascii=False)
