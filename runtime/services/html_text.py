"""The text of an HTML document, as a person reads it."""

from __future__ import annotations

import re
from html.parser import HTMLParser

from typing_extensions import override

UNSEEN = frozenset({"script", "style", "template", "title"})
_NAMES = (
    "a abbr b bdi bdo big cite code em font i img ins kbd mark q s samp small span strike strong sub sup tt u var wbr"
)
INLINE = frozenset(_NAMES.split())
"""Elements that break no word; every other begins and ends a line."""


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []
        self._unseen: list[str] = []

    @override
    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in UNSEEN:
            self._unseen.append(tag)
        elif tag not in INLINE:
            self.parts.append("\n")

    @override
    def handle_endtag(self, tag: str) -> None:
        if tag in self._unseen:
            del self._unseen[self._unseen.index(tag) :]
        elif tag not in INLINE:
            self.parts.append("\n")

    @override
    def handle_data(self, data: str) -> None:
        if not self._unseen:
            self.parts.append(re.sub(r"\s+", " ", data))


def read(html: str) -> str:
    """Return what is shown, in lines without blanks around them; empty ones are left out."""
    reader = _Reader()
    reader.feed(html)
    reader.close()
    lines = (re.sub(r"[ \xa0\u200b\u200c\ufeff]+", " ", line).strip() for line in "".join(reader.parts).split("\n"))
    return "\n".join(line for line in lines if line)
