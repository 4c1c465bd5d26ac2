"""Values whose names say that they are secret (``password``, ``api_key`` …): hidden from models without being declared.

Unlike a declared secret such a value is not masked in logs: the run uses it, and only the model does not see it.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Collection, Iterator

from nodes.values import Json

MASK = "[hidden]"

NAMES = (
    "password",
    "passwords",
    "passwd",
    "pwd",
    "passphrase",
    "token",
    "api_key",
    "apikey",
    "access_key",
    "private_key",
    "secret",
    "authorization",
    "cookie",
    "cookies",
)
"""Names that say so, each in small letters, its words joined by ``_``."""

_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_A-Za-z]+")
_KEY = re.compile(r"""(\\*)(["'])([^"'\\\n]{1,100})\1\2[ \t]*:[ \t]*""")
_NUMBER = re.compile(r"-?\d[\d.eE+-]*")
_PLAIN = re.compile(r'"(?:[^"\\\n]|\\.)*"?')
_OPEN, _CLOSED = "{[", "}]"


class HiddenNames:
    def __init__(self, names: Collection[str] = NAMES) -> None:
        """Each of ``names`` is a sequence of words: ``api_key`` is found in ``shopApiKey`` and ``API-KEY-2``, not in ``api_keys``."""
        self._names = [_words(each) for each in names]
        self._first = {each[0] for each in self._names if each}

    def named(self, name: str) -> bool:
        words = _words(name)
        return any(
            words[start : start + len(each)] == each
            for start, word in enumerate(words)
            if word in self._first
            for each in self._names
            if each
        )

    def json(self, value: Json, name: str = "") -> Json:
        """Return the value of this name as a model sees it. True, false, null, empty values and references reveal nothing, and stay."""
        if name and self.named(name):
            return value if _is_bare(value) else MASK
        if isinstance(value, dict):
            return {key: self.json(each, str(key)) for key, each in value.items()}
        if isinstance(value, list):
            return [self.json(each) for each in value]
        return self.text(value) if isinstance(value, str) else value

    def text(self, text: str) -> str:
        """Return a text as a model sees it: values of JSON in it are hidden by their keys, also if it is escaped or was cut short."""
        if not self._names or ('"' not in text and "'" not in text):
            return text
        parts: list[str] = []
        done = 0
        for found in _KEY.finditer(text):
            if found.start() < done or not self.named(found[3]):
                continue
            end = _end(text, found.end(), found[1])
            shown = text[found.end() : end]
            bare = shown.strip("\\\"'[] ")
            if end > found.end() and bare.strip("{} ") and not (bare.startswith("{{") and bare.endswith("}}")):
                parts += [text[done : found.end()], f"{found[1]}{found[2]}{MASK}{found[1]}{found[2]}"]
                done = end
        return "".join([*parts, text[done:]]) if parts else text

    def within(self, value: Json, name: str = "") -> Iterator[str]:
        """Yield the texts that ``json`` hides in a value."""
        if name and self.named(name):
            yield from _leaves(value)
        elif isinstance(value, dict):
            for key, each in value.items():
                yield from self.within(each, str(key))
        elif isinstance(value, list):
            for each in value:
                yield from self.within(each)
        elif isinstance(value, str) and value[:1] in ("{", "["):
            try:
                inner: Json = json.loads(value)
            except (ValueError, RecursionError):
                return
            yield from self.within(inner)


def _words(name: str) -> list[str]:
    return [each.casefold() for each in _WORDS.findall(name)]


def _is_bare(value: Json) -> bool:
    if isinstance(value, str):
        return not value or (value.startswith("{{") and value.endswith("}}"))
    return value is None or isinstance(value, bool) or value in ([], {})


def _leaves(value: Json) -> Iterator[str]:
    if isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _leaves(each)
    elif not _is_bare(value):
        yield value if isinstance(value, str) else json.dumps(value)


def _end(text: str, start: int, escape: str) -> int:
    """Return where the JSON value that begins at ``start`` ends; ``start`` itself for a value that reveals nothing."""
    if text.startswith(escape, start) and text[start + len(escape) : start + len(escape) + 1] in ('"', "'"):
        quote = text[start + len(escape)]
        if not escape and quote == '"':
            found = _PLAIN.match(text, start)
            return found.end() if found is not None else start
        closed = re.compile(rf"(?<!\\){re.escape(escape + quote)}|\n|\Z").search(text, start + len(escape) + 1)
        assert closed is not None, "a text has an end"
        return closed.end() if closed[0] != "\n" else closed.start()
    if (number := _NUMBER.match(text, start)) is not None:
        return number.end()
    if text[start : start + 1] not in _OPEN or start == len(text):
        return start
    depth, quoted = 0, False
    for at in range(start, len(text)):
        each = text[at]
        if each == '"' and text[at - len(escape) : at] == escape and (escape or text[at - 1] != "\\"):
            quoted = not quoted
        elif not quoted:
            depth += (each in _OPEN) - (each in _CLOSED)
            if not depth:
                return at + 1
    return len(text)


@functools.lru_cache(maxsize=8)
def of(names: tuple[str, ...]) -> HiddenNames:
    return HiddenNames(names)


DEFAULT = of(NAMES)
