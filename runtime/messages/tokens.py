"""Upper bound of a text's tokens, without the network and without the two megabytes of a tokenizer.

OpenAI's tokenizer (o200k_base) cuts a text into pieces by a pattern, and joins their bytes by 200,000 merges, the most common first. This
module has that pattern and the first 50,000 merges (``merges.bin``, from ``scripts/model_merges.py``): more would make fewer tokens.
"""

from __future__ import annotations

import functools
import heapq
import re
import unicodedata
import zlib
from collections.abc import Mapping
from pathlib import Path

MERGES = Path(__file__).with_name("merges.bin")

BLANKS = {
    *map(chr, range(0x09, 0x0E)),
    *map(chr, range(0x2000, 0x200B)),
    *" \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000",
}
"""White space by Unicode; ``str.isspace`` accepts four control characters more."""

LONGEST = 2_000
"""Maximum bytes of a piece whose parts are joined. A longer one counts one token per byte, which is an upper bound."""

STAND_INS = {"Lu": "A", "Lt": "A", "Ll": "a", "Lm": "o", "Lo": "o", "M": "~", "N": "1"}
"""One character for each class of the pattern: upper-case, lower-case and other letters, marks, digits."""


class _Kinds(dict[int, str]):
    def __missing__(self, code: int) -> str:
        kind = self[code] = _kind(chr(code))
        return kind


def _kind(character: str) -> str:
    if character in "\r\n/ '" or character in "strevmldSTREVMLD":
        # The pattern has these characters themselves.
        return character
    if character in BLANKS:
        return "\t"
    category = unicodedata.category(character)
    return STAND_INS.get(category) or STAND_INS.get(category[0]) or "."


_KINDS = _Kinds()
_LETTERS = "ASTREVMLDastrevmldo"
_LARGE, _SMALL = "ASTREVMLDo~", "astrevmldo~"
_ENDING = "(?:'[sStTmMdD]|'[rR][eE]|'[vV][eE]|'[lL][lL])?"
_PIECE = re.compile(
    rf"[^\r\n{_LETTERS}1]?[{_LARGE}]*[{_SMALL}]+{_ENDING}"
    rf"|[^\r\n{_LETTERS}1]?[{_LARGE}]+[{_SMALL}]*{_ENDING}"
    r"|1{1,3}"
    rf"| ?[^ \t\r\n{_LETTERS}1]+[\r\n/]*"
    r"|[ \t\r\n]*[\r\n]+"
    r"|[ \t\r\n]+(?![^ \t\r\n])"
    r"|[ \t\r\n]+"
)
"""The pattern of o200k_base over ``STAND_INS``, as Python's ``re`` has no Unicode classes."""


def pieces(text: str) -> list[str]:
    return [text[found.start() : found.end()] for found in _PIECE.finditer(text.translate(_KINDS))]


def count(text: str) -> int:
    return sum(map(_counted, pieces(text)))


@functools.lru_cache(maxsize=1 << 14)
def _counted(piece: str) -> int:
    ranks, text = _ranks(), piece.encode("utf-8", "surrogatepass")
    if len(text) > LONGEST:
        return len(text)
    return 1 if text in ranks else joined(text, ranks)


@functools.cache
def _ranks() -> dict[bytes, int]:
    return {token: rank for rank, token in enumerate(unpacked(MERGES.read_bytes()))}


def packed(tokens: list[bytes]) -> bytes:
    return zlib.compress(b"".join(bytes([len(each)]) + each for each in tokens), 9)


def unpacked(data: bytes) -> list[bytes]:
    raw, at, tokens = zlib.decompress(data), 0, list[bytes]()
    while at < len(raw):
        end = at + 1 + raw[at]
        tokens.append(raw[at + 1 : end])
        at = end
    return tokens


def joined(piece: bytes, ranks: Mapping[bytes, int]) -> int:
    """Join neighbours that form a token, the lowest rank first; return the number of parts left, in O(n log n)."""
    size = left = len(piece)
    ends = list(range(1, size + 1))  # end of the part that starts here; 0 where none starts
    before = list(range(-1, size))  # start of the part before the one that starts here
    waiting = [(ranks[piece[at : at + 2]], at, at + 2) for at in range(size - 1) if piece[at : at + 2] in ranks]
    heapq.heapify(waiting)

    def offer(start: int, end: int) -> None:
        rank = ranks.get(piece[start:end])
        if rank is not None:
            heapq.heappush(waiting, (rank, start, end))

    while waiting:
        _, start, end = heapq.heappop(waiting)
        middle = ends[start]
        if not 0 < middle < end or ends[middle] != end:
            continue  # one of the two has been joined with another part since
        ends[start], ends[middle] = end, 0
        before[end] = start
        left -= 1
        if end < size:
            offer(start, ends[end])
        if start > 0:
            offer(before[start], end)
    return left
