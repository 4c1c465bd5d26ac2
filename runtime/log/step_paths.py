"""Scopes around a step, and runs of handle blocks among them, parsed from its path."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

_BLOCK = re.compile(r"/(try|catch|finally)(?:\[(\d+)\])?(?=/)")
_TURN = re.compile(r"\[\d+\]")


def around(path: str) -> Iterator[str]:
    end = path.rfind("/")
    while end >= 0:
        yield path[:end]
        end = path.rfind("/", 0, end)


class Block(NamedTuple):
    """A run of a `handle` block around a step, as its path shows it; a node may have such a name too."""

    path: str
    name: str
    first: str
    number: int
    rest: str

    @property
    def anywhere(self) -> str:
        """``rest`` without the item numbers of loops without keys and the try numbers of inner handles."""
        return _TURN.sub("", self.rest)


def blocks(path: str) -> Iterator[Block]:
    for found in _BLOCK.finditer(path):
        first = f"{path[: found.start()]}/{found[1]}"
        yield Block(path[: found.end()], found[1], first, int(found[2] or 1), path[found.end() + 1 :])
