"""References: texts with ``{{ expression }}``, compiled once and rendered for each step.

A text that is exactly one expression yields its value of any type; any other text yields text. An inserted value is never
read as an expression again.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Protocol

import jinja2
from jinja2 import nodes

from nodes import errors
from nodes.errors import AuthorError
from nodes.values import Json, NotJson, as_text, normalise
from runtime.language.expressions import limits, names_read, sandbox
from runtime.language.expressions.limits import Unusable
from runtime.language.expressions.names_read import Chain, Fact, Use
from runtime.language.expressions.sandbox import ReferenceInvalid

OPENING, CLOSING = "{{", "}}"
STATEMENT = "{%"

PLAIN = frozenset({str, int, bool, type(None)})
"""Types of value that need no deep check."""


class Clock(Protocol):
    """Source of ``now()`` and ``uuid()``. The engine records their values, so that a resumed run repeats them."""

    def now(self) -> str:
        """Return the time as ISO 8601 with its zone."""
        ...

    def uuid(self) -> str: ...


class Compiled:
    """A text with parsed expressions, created by ``compile``. It may be rendered any number of times, from any thread."""

    __slots__ = ("_chains", "_inputs", "_pieces", "_program", "exact", "names", "text", "trees")

    def __init__(self, text: str, pieces: list[str | int], trees: list[nodes.Expr], starts: list[int]) -> None:
        self.text = text
        self.trees = trees
        self.exact = pieces == [0]
        """True if the text is exactly one expression."""
        self.names: list[Use] = [
            use for tree, start in zip(trees, starts, strict=True) for use in names_read.uses(tree, start)
        ]
        """Every name that is read, with the keys after it, its offset in the text, and the facts known there."""
        self._pieces = pieces
        self._inputs = sorted({use.root for use in self.names})
        # Most references are a name and a few keys, which need no program.
        self._chains = [_simple(tree) for tree in trees]
        self._program: jinja2.Template | None = None

    def facts(self, *, truth: bool) -> frozenset[Fact]:
        return names_read.facts_of(self.trees[0], truth=truth) if self.exact else names_read.NOTHING

    @property
    def parts(self) -> frozenset[Fact]:
        return names_read.parts_of(self.trees[0]) if self.exact else names_read.NOTHING

    def render(self, values: Mapping[str, Json], clock: Clock) -> Json:
        """Evaluate with the names in ``values``; return the result as JSON.

        Raises AuthorError: ``undefined-value`` if a name or key has no value, ``expression-failed`` if an expression cannot
        be computed or its result is no JSON or too large.
        """
        try:
            results = self._evaluate(values, clock)
            if self.exact:
                return self._exact(results[0], values)
            texts = [
                piece if isinstance(piece, str) else self._in_text(results[piece], values) for piece in self._pieces
            ]
            limits.check_text(sum(map(len, texts)))
        except jinja2.UndefinedError as error:
            raise self._undefined(values, str(error)) from None
        except (Unusable, NotJson) as error:
            raise self._failed(str(error)) from None
        except AuthorError:
            raise
        except Exception as error:  # noqa: BLE001 - whatever a filter or operator raises is the expression's failure
            raise self._failed(_in_words(error)) from None
        return "".join(texts)

    def _evaluate(self, values: Mapping[str, Json], clock: Clock) -> list[Any]:
        if None not in self._chains:
            return [_walk(values, chain) for chain in self._chains if chain is not None]
        if self._program is None:
            result = nodes.Assign(nodes.Name("result", "store", lineno=1), nodes.List(self.trees, lineno=1), lineno=1)
            self._program = sandbox.SANDBOX.from_string(nodes.Template([result], lineno=1))
        known: dict[str, Any] = {name: values[name] for name in self._inputs if name in values}
        known |= {"now": clock.now, "uuid": clock.uuid}
        context = self._program.new_context(known, shared=True)
        for _nothing in self._program.root_render_func(context):
            pass
        return context.vars["result"]

    def _exact(self, value: Any, values: Mapping[str, Json]) -> Json:
        if type(value) not in PLAIN:
            if isinstance(value, sandbox.Missing):
                raise self._undefined(values, value.why)
            if self._chains[0] is None:
                limits.check_weight(value)
        return normalise(value)

    def _in_text(self, value: Any, values: Mapping[str, Json]) -> str:
        value = self._exact(value, values)
        if value is None:
            raise Unusable("null has no text: give it one with `| default('…', true)`")
        return as_text(value)

    def _undefined(self, values: Mapping[str, Json], message: str) -> AuthorError:
        evidence: dict[str, Json] = {"expression": self.text}
        fix: str | None = (
            "look at the value it reads (`runops show`), and correct the name, or say what holds without it: `… | default(…)`"
        )
        for use in self.names:
            if not use.tolerant and (missing := _first_missing(values, use.chain)):
                message, fix = missing
                evidence["name"] = written(use.chain)
                break
        return AuthorError("undefined-value", message, fix=fix, evidence=evidence)

    def _failed(self, message: str) -> AuthorError:
        return AuthorError(
            "expression-failed",
            f"`{_short(self.text)}` cannot be computed: {message}",
            fix="look at the values it works on (`runops show`), and correct it, or guard it: `{{ … if … else … }}`",
            evidence={"expression": self.text},
        )


def compile(text: str) -> Compiled:
    """Parse the expressions in ``text``. Raises ReferenceInvalid for the first mistake, with its offsets."""
    pieces: list[str | int] = []
    trees: list[nodes.Expr] = []
    starts: list[int] = []
    end = 0
    while (opening := text.find(OPENING, end)) >= 0:
        _literal(text, end, opening, pieces)
        start = opening + len(OPENING)
        closing = _closing(text, start)
        if closing is None:
            message = "`{{` is never closed by `}}`"
            raise ReferenceInvalid("expression-syntax", message, opening, start, _why_open(text, start))
        trees.append(_expression(text, start, closing))
        starts.append(start)
        pieces.append(len(trees) - 1)
        end = closing + len(CLOSING)
    _literal(text, end, len(text), pieces)
    return Compiled(text, pieces, trees, starts)


def holds_reference(text: str) -> bool:
    """Return True if ``text`` must be compiled: it contains an expression, or a statement mark, which is refused."""
    return OPENING in text or STATEMENT in text


def written(chain: Chain) -> str:
    """Return a chain as a person writes it: ``order.lines[0]``."""
    line = str(chain[0])
    for key in chain[1:]:
        line += f".{key}" if isinstance(key, str) and key.isidentifier() else f"[{key!r}]"
    return line


def _literal(text: str, start: int, end: int, pieces: list[str | int]) -> None:
    statement = text.find(STATEMENT, start, end)
    if statement >= 0:
        fix = "write a choice as `{{ a if condition else b }}`, a loop as an `iterate` node, and the two characters as `{{ '{%' }}`"
        raise ReferenceInvalid("statement", "`{%` statements are not part of references", statement, statement + 2, fix)
    if end > start:
        pieces.append(text[start:end])


TOKEN = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|[{}]""", re.DOTALL)


def _closing(text: str, start: int) -> int | None:
    depth = 0
    position = start
    while found := TOKEN.search(text, position):
        position = found.end()
        if found[0] == "{":
            depth += 1
        elif found[0] == "}" and depth:
            depth -= 1
        elif found[0] == "}" and text.startswith(CLOSING, found.start()):
            return found.start()
    return None


def _why_open(text: str, start: int) -> str:
    if text.count('"', start) % 2 or text.count("'", start) % 2:
        return "a quotation mark in it is not closed either"
    return "close it; for the two characters themselves write `{{ '{{' }}`"


def _expression(text: str, start: int, end: int) -> nodes.Expr:
    source = text[start:end]
    for sign, at in ((source[:1], start), (source[-1:], end - 1)):
        if sign and sign in "-+" and (at != start or source[1:2] == " "):
            message = f"`{sign}` at the border does nothing here"
            raise ReferenceInvalid("expression-syntax", message, at, at + 1, "leave it out")
    try:
        return sandbox.parse(source)
    except ReferenceInvalid as error:
        error.start += start
        error.end += start
        raise


def _simple(tree: nodes.Expr) -> Chain | None:
    found, _places, rest = names_read.chain_of(tree)
    return found if found and not rest else None


def _walk(values: Mapping[str, Json], chain: Chain) -> Any:
    root = chain[0]
    value = values[str(root)] if root in values else sandbox.Missing(name=str(root))
    for key in chain[1:]:
        value = sandbox.SANDBOX.getitem(value, key)
    return value


def _first_missing(values: Mapping[str, Json], chain: Chain) -> tuple[str, str | None] | None:
    """Return the missing part with its fix; None if the whole chain has a value."""
    root = str(chain[0])
    if root not in values:
        fix = f"its step did not run: guard it (`{root} is defined`, `{root} | default(…)`)"
        return f"`{root}` has no value here", fix
    value = values[root]
    for length in range(1, len(chain)):
        inner = sandbox.SANDBOX.getitem(value, chain[length])
        if isinstance(inner, sandbox.Missing):
            return _what_it_has(value, written(chain[:length]), chain[length])
        value = inner
    return None


def _what_it_has(value: Json, name: str, key: str | int) -> tuple[str, str | None]:
    if isinstance(value, Mapping):
        fix = f"it has {', '.join(list(value)[:10])}" if value else "it is empty"
        if close := errors.near(str(key), value):
            fix = f"did you mean `{close}`?"
        elif key in sandbox.SANDBOX.filters:
            fix = f"for the filter write `| {key}`"
        return f"`{name}` has no `{key}`", fix
    if isinstance(value, list | str) and isinstance(key, int):
        return f"`{name}` has no item {key}: it has {len(value)}", None
    fix = f"for the filter write `{name} | {key}`" if key in sandbox.SANDBOX.filters else None
    if isinstance(value, list):
        fix = fix or f"for one item write `{name}[0].{key}`, for all `{name} | map(attribute='{key}')`"
    return f"`{name}` is {limits.shown(value)} and has no `{key}`", fix


def _in_words(error: Exception) -> str:
    message = str(error)
    if found := re.match(r"'(\S+)' not supported between instances of '(\w+)' and '(\w+)'", message):
        return f"`{found[1]}` does not compare {_kind(found[2])} and {_kind(found[3])}"
    if "is not iterable" in message or "requires string as left operand" in message:
        return "`in` looks into a list, a map or a text (a text only for text)"
    if isinstance(error, RecursionError | MemoryError):
        return "it is too large"
    return message.splitlines()[0] if message else type(error).__name__


KINDS = {
    "str": "text",
    "int": "a number",
    "float": "a number",
    "bool": "true or false",
    "NoneType": "null",
    "dict": "a map",
    "list": "a list",
}


def _kind(name: str) -> str:
    return KINDS.get(name, name)


def _short(text: str) -> str:
    return text if len(text) <= 80 else text[:77] + "…"
