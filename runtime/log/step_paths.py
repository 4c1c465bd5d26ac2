"""Facts that a step path shows by itself."""

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
    """A possible run of a block of a handle, around a step; a node may have such a name too."""

    path: str
    name: str
    first: str
    number: int
    rest: str

    @property
    def anywhere(self) -> str:
        """The rest, without the positions in loops without keys and the numbers of other handles' tries."""
        return _TURN.sub("", self.rest)


def blocks(path: str) -> Iterator[Block]:
    for found in _BLOCK.finditer(path):
        first = f"{path[: found.start()]}/{found[1]}"
        yield Block(path[: found.end()], found[1], first, int(found[2] or 1), path[found.end() + 1 :])
