"""The parts of a condition: what its comparisons, and its ``and``, ``or`` and ``not``, join."""

from __future__ import annotations

from runtime.language.expressions.sandbox import SANDBOX

COMPARISONS = frozenset({"eq", "ne", "lt", "lteq", "gt", "gteq"})
WORDS = frozenset({"and", "or", "not", "in"})
OPENING = frozenset({"lparen", "lbracket", "lbrace"})
CLOSING = frozenset({"rparen", "rbracket", "rbrace"})


def operands(source: str) -> list[str]:
    """Return the parts of a valid expression in order, as it has them; those of a part in parentheses too.

    A choice (``a if b else c``) and a list without brackets are one part.
    """
    parts: list[str] = []
    start = depth = 0
    before = ""
    closed: list[int] = []
    for token in SANDBOX.tokens(source):
        depth += (token.type in OPENING) - (token.type in CLOSING)
        if token.type in CLOSING and not depth:
            closed.append(token.lineno)
        if not depth:
            word = token.value if token.type == "name" and before not in ("is", ".") else ""
            if token.type == "comma" or word in ("if", "else"):
                return [source.strip()]
            if token.type in COMPARISONS or word in WORDS:
                parts.append(source[start : token.lineno])
                start = token.lineno + len(token.value)
        before = token.value
    parts.append(source[start:])
    if len(parts) == 1:
        whole = source.rstrip()
        enclosed = whole.lstrip().startswith("(") and closed == [len(whole) - 1]
        return operands(whole.lstrip()[1:-1]) if enclosed else [whole.strip()]
    return [each for part in parts if part.strip() for each in operands(part)]
