"""What a step path says by itself."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

_BLOCK = re.compile(r"/(try|catch|finally)(?:\[(\d+)\])?(?=/)")
_TURN = re.compile(r"\[\d+\]")


def around(path: str) -> Iterator[str]:
    """The paths of all that stands around ``path``, the nearest first."""
    end = path.rfind("/")
    while end >= 0:
        yield path[:end]
        end = path.rfind("/", 0, end)


class Block(NamedTuple):
    """What may be a run of a block of a handle, around a step; a node may have such a name too."""

    path: str
    name: str
    """``try``, ``catch`` or ``finally``."""
    first: str
    """The path of the block's first run."""
    number: int
    """Which run of the block it is."""
    rest: str
    """The path of the step from there on."""

    @property
    def anywhere(self) -> str:
        """The rest, whichever turns of loops without keys and tries of other handles it passes."""
        return _TURN.sub("", self.rest)


def blocks(path: str) -> Iterator[Block]:
    """The blocks of handles around the step at ``path``, the outermost first."""
    for found in _BLOCK.finditer(path):
        first = f"{path[: found.start()]}/{found[1]}"
        yield Block(path[: found.end()], found[1], first, int(found[2] or 1), path[found.end() + 1 :])
