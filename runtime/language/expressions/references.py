"""References: texts with ``{{ expression }}``, compiled once and rendered for each step.

A text that is exactly one expression yields its value of any type; any other text yields text. An inserted value is never
read as an expression again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from types import EllipsisType
from typing import Any, Protocol

import jinja2
from jinja2 import nodes

from nodes import errors
from nodes.errors import AuthorError
from nodes.values import Json, NotJson, as_text, normalise
from runtime.display.text import cut
from runtime.language.expressions import limits, names_read, sandbox
from runtime.language.expressions.limits import Unusable
from runtime.language.expressions.names_read import Chain, Fact, Use
from runtime.language.expressions.sandbox import ReferenceInvalid

OPENING, CLOSING = "{{", "}}"
STATEMENT = "{%"

PLAIN = frozenset({str, int, bool, type(None)})  # types of value that need no deep check


class Clock(Protocol):
    """Source of ``now()``, ISO 8601 with its zone, and ``uuid()``. The engine records the values, so that a resumed run repeats them.

    ``totp()`` is the present one-time code of a secret. It is never recorded.
    """

    def now(self) -> str: ...

    def uuid(self) -> str: ...

    def totp(self, secret: str) -> str: ...


class Compiled:
    """A text with parsed expressions. Any thread may render it."""

    __slots__ = ("_chains", "_inputs", "_pieces", "_program", "exact", "names", "text", "trees")

    def __init__(self, text: str, pieces: list[str | int], trees: list[nodes.Expr], starts: list[int]) -> None:
        self.text = text
        self.trees = trees
        self.exact = pieces == [0]  # true if the text is exactly one expression
        self.names: list[Use] = [
            use for tree, start in zip(trees, starts, strict=True) for use in names_read.uses(tree, start)
        ]
        self._pieces = pieces
        self._inputs = sorted({use.root for use in self.names})
        # Most references are a name and a few keys, which need no program.
        chains = [names_read.chain_of(tree) for tree in trees]
        self._chains = [chain if chain and not computed else None for chain, _places, computed in chains]
        self._program: jinja2.Template | None = None

    @property
    def pieces(self) -> list[str | nodes.Expr]:
        """The parts of the text in order: what is literal, and the expressions."""
        return [each if isinstance(each, str) else self.trees[each] for each in self._pieces]

    def facts(self, *, truth: bool) -> frozenset[Fact]:
        return names_read.facts_of(self.trees[0], truth=truth) if self.exact else names_read.NOTHING

    @property
    def plain(self) -> bool:
        """True if it is a name, or a name and keys that are spelt out."""
        return self.exact and self._chains[0] is not None

    @property
    def calls(self) -> bool:
        """True if it calls a function, so each evaluation may give another value."""
        return any(isinstance(tree, nodes.Call) or tree.find(nodes.Call) is not None for tree in self.trees)

    @property
    def one_time(self) -> bool:
        """True if it has a one-time code."""
        return "totp" in self.text and any(
            isinstance(call.node, nodes.Name) and call.node.name == "totp"
            for tree in self.trees
            for call in (*([tree] if isinstance(tree, nodes.Call) else []), *tree.find_all(nodes.Call))
        )

    @property
    def parts(self) -> frozenset[Fact]:
        return names_read.parts_of(self.trees[0]) if self.exact else names_read.NOTHING

    def values_read(self, values: Mapping[str, Json]) -> Iterator[tuple[str, Json | EllipsisType]]:
        """Yield each name that it reads, with its keys as a person writes them, and the value; ``...`` for one without a value."""
        for chain in dict.fromkeys(use.chain for use in self.names):
            value = ... if _first_missing(values, chain) else _look_up(values, chain)
            yield written(chain), value

    def render(self, values: Mapping[str, Json], clock: Clock) -> Json:
        """Return the result as JSON.

        Raises AuthorError: ``undefined-value`` if a name or key has no value, ``expression-failed`` for any other reason.
        """
        try:
            results = self._evaluate(values, clock)
            if self.exact:
                return self._exact(results[0])
            texts = [each if isinstance(each, str) else self._in_text(results[each]) for each in self._pieces]
            limits.check_text(sum(map(len, texts)))
        except jinja2.UndefinedError as error:
            raise self._undefined(values, str(error)) from None
        except (Unusable, NotJson) as error:
            raise self._failed(str(error)) from None
        except (AuthorError, errors.SetupError):
            raise
        except Exception as error:  # noqa: BLE001 - whatever a filter or operator raises is the expression's failure
            raise self._failed(_explain(error)) from None
        return "".join(texts)

    def _evaluate(self, values: Mapping[str, Json], clock: Clock) -> list[Any]:
        if None not in self._chains:
            return [_look_up(values, chain) for chain in self._chains if chain is not None]
        if self._program is None:
            result = nodes.Assign(nodes.Name("result", "store", lineno=1), nodes.List(self.trees, lineno=1), lineno=1)
            self._program = sandbox.SANDBOX.from_string(nodes.Template([result], lineno=1))
        known: dict[str, Any] = {name: values[name] for name in self._inputs if name in values}
        known |= {"now": clock.now, "uuid": clock.uuid, "totp": clock.totp}
        context = self._program.new_context(known, shared=True)
        for _nothing in self._program.root_render_func(context):
            pass
        return context.vars["result"]

    def _exact(self, value: Any) -> Json:
        if type(value) not in PLAIN:
            if isinstance(value, sandbox.Missing):
                value.fail()
            if self._chains[0] is None:
                limits.check_weight(value)
        return normalise(value)

    def _in_text(self, value: Any) -> str:
        value = self._exact(value)
        if value is None:
            raise Unusable("null has no text: give it one with `| default('…', true)`")
        return as_text(value)

    def _undefined(self, values: Mapping[str, Json], message: str) -> AuthorError:
        evidence: dict[str, Json] = {"expression": self.text}
        fix: str | None = (
            "look at the value it reads (`runops show`), and correct the name, or give another value: `… | default(…)`"
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
            f"`{cut(self.text, 78)}` cannot be computed: {message}",
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
            odd = text.count('"', start) % 2 or text.count("'", start) % 2
            fix = "a quotation mark in it is not closed" if odd else "close it; for the characters write `{{ '{{' }}`"
            raise ReferenceInvalid("expression-syntax", "`{{` is never closed by `}}`", opening, start, fix)
        trees.append(_expression(text, start, closing))
        starts.append(start)
        pieces.append(len(trees) - 1)
        end = closing + len(CLOSING)
    _literal(text, end, len(text), pieces)
    return Compiled(text, pieces, trees, starts)


def holds_reference(text: str) -> bool:
    """Return True if the text has an expression, or a statement mark (which is refused)."""
    return OPENING in text or STATEMENT in text


def spans(text: str) -> list[tuple[int, int]]:
    """Return the offsets of each expression that is closed, with its braces."""
    found: list[tuple[int, int]] = []
    end = 0
    while (start := text.find(OPENING, end)) >= 0 and (closing := _closing(text, start + len(OPENING))) is not None:
        end = closing + len(CLOSING)
        found.append((start, end))
    return found


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


def _expression(text: str, start: int, end: int) -> nodes.Expr:
    source = text[start:end]
    for sign, at in ((source[:1], start), (source[-1:], end - 1)):
        if sign and sign in "-+" and (at != start or source[1:2] == " "):
            message = f"`{sign}` at the border does nothing here"
            raise ReferenceInvalid("expression-syntax", message, at, at + 1, "leave it out")
    try:
        return sandbox.parse(source)
    except ReferenceInvalid as error:
        places = error.start + start, error.end + start
        raise ReferenceInvalid(error.code, error.message, *places, error.fix) from None


def _look_up(values: Mapping[str, Json], chain: Chain) -> Any:
    root = chain[0]
    value = values[str(root)] if root in values else sandbox.Missing(name=str(root))
    for key in chain[1:]:
        value = sandbox.SANDBOX.getitem(value, key)
    return value


def _first_missing(values: Mapping[str, Json], chain: Chain) -> tuple[str, str | None] | None:
    """Return a message about the first missing part, and its fix; None if the whole chain has a value."""
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


def _explain(error: Exception) -> str:
    message = str(error)
    if found := re.match(r"'(\S+)' not supported between instances of '(\w+)' and '(\w+)'", message):
        left, right = (KINDS.get(each, each) for each in found.group(2, 3))
        return f"`{found[1]}` does not compare {left} and {right}"
    if "is not iterable" in message or "requires string as left operand" in message:
        return "`in` looks into a list, a map or a text (a text only for text)"
    if isinstance(error, RecursionError | MemoryError):
        return "it is too large"
    return message.splitlines()[0] if message else type(error).__name__


NUMBERS = {"int": "a number", "float": "a number", "bool": "true or false"}
KINDS = {**NUMBERS, "str": "text", "NoneType": "null", "dict": "a map", "list": "a list"}
