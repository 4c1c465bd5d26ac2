"""Expressions that select cases: words with ``and``, ``or``, ``not`` and parentheses, as ``smoke and not (slow or pay)``.

A word holds for a case if one of the case's texts contains it, in any case of letters. A word in quotes may contain anything.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from nodes.errors import UsageError
from runtime.display import escapes
from runtime.display.text import width_of

DEEPEST = 50  # maximum depth of parentheses

Matches = Callable[[Sequence[str]], bool]
"""True for the texts of a case that the expression selects."""

TOKEN = re.compile(r"""(?P<sign>[()])|"(?P<double>[^"]*)"|'(?P<single>[^']*)'|(?P<word>[^\s()"']+)|(?P<wrong>\S)""")
OPERATORS = ("and", "or", "not", "(", ")")


class BadExpression(UsageError):
    """An expression that cannot be read. ``at`` is the offset of the mistake."""

    def __init__(self, text: str, at: int, message: str) -> None:
        fix = "write words with `and`, `or`, `not` and parentheses; put a word with blanks or other signs in quotes"
        super().__init__("usage", message, fix=fix, evidence={"expression": text, "column": at + 1})
        self.text, self.at = text, at

    def render(self, *, colour: bool = False) -> str:
        sign = escapes.styled("error[usage]", 1, 31) if colour else "error[usage]"
        before = escapes.line(self.text[: self.at])
        caret = escapes.styled("^", 1, 31) if colour else "^"
        lines = [
            f"{sign}: {escapes.line(self.message)}",
            f"  {escapes.line(self.text)}",
            f"  {' ' * width_of(before)}{caret}",
        ]
        return "\n".join(lines)


def read(text: str) -> Matches:
    """Return the test of an expression. Raises BadExpression."""
    parser = _Parser(text)
    found = parser.either(0)
    if parser.token != "":
        raise parser.wrong("`and`, `or` or the end is expected here")
    return found


class _Parser:
    """Recursive descent; ``token`` is the next operator, ``word`` for a word, and empty at the end."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = TOKEN.finditer(text)
        self.token = self._word = ""
        self._at = 0
        self._next()

    def wrong(self, message: str) -> BadExpression:
        return BadExpression(self._text, self._at, message)

    def _next(self) -> None:
        match = next(self._tokens, None)
        if match is None:
            self.token, self._at = "", len(self._text)
            return
        self._at = match.start()
        text = match.group()
        if match["wrong"] is not None:
            raise self.wrong("a quote is not closed")
        bare = match["sign"] or match["word"]
        self.token = bare.lower() if bare is not None and bare.lower() in OPERATORS else "word"
        self._word = text if bare is not None else text[1:-1]

    def _takes(self, token: str) -> bool:
        if self.token != token:
            return False
        self._next()
        return True

    def either(self, depth: int) -> Matches:
        parts = [self._all(depth)]
        while self._takes("or"):
            parts.append(self._all(depth))
        return lambda texts: any(part(texts) for part in parts)

    def _all(self, depth: int) -> Matches:
        parts = [self._one(depth)]
        while self._takes("and"):
            parts.append(self._one(depth))
        return lambda texts: all(part(texts) for part in parts)

    def _one(self, depth: int) -> Matches:
        holds = True
        while self._takes("not"):
            holds = not holds
        part = self._group(depth) if self.token == "(" else self._word_part()  # noqa: S105 — a sign of the expression
        return lambda texts: part(texts) is holds

    def _group(self, depth: int) -> Matches:
        if depth >= DEEPEST:
            raise self.wrong(f"more than {DEEPEST} parentheses are open here")
        self._next()
        found = self.either(depth + 1)
        if not self._takes(")"):
            raise self.wrong("a closing parenthesis is expected here")
        return found

    def _word_part(self) -> Matches:
        if self.token != "word":  # noqa: S105
            raise self.wrong("a word is expected here")
        word = self._word.casefold()
        self._next()
        return lambda texts: any(word in text.casefold() for text in texts)
