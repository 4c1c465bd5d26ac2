"""Jinja2 as the language of references: expressions only, over plain data, without access to Python objects.

Jinja's sandbox restricts attributes; here there are none: ``a.b`` and ``a['b']`` are keys of maps and positions of lists. The
``lineno`` of each node of a syntax tree is its offset in the expression.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NoReturn

from jinja2 import TemplateSyntaxError, UndefinedError, nodes
from jinja2.lexer import TokenStream
from jinja2.parser import Parser
from jinja2.runtime import StrictUndefined
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.utils import missing

from nodes import errors
from runtime.language.expressions import builtins, filters, limits

DEEPEST = 40  # deepest nesting of an expression: Python's own compiler fails at about 100 parentheses
LONGEST = 10_000  # most characters of an expression
CALLS = ("now", "uuid", "totp")  # functions; there are no others
ONLY = "only `now()`, `uuid()` and `totp(secrets.NAME)` can be called"

WORDS = frozenset(
    ("and", "else", "false", "False", "if", "in", "is", "none", "None", "not", "null", "or", "true", "True")
)

RESERVED = WORDS | frozenset(CALLS) | {"self"}  # names that no node, loop or variable may have

KNOWN = (
    *(nodes.Name, nodes.Const, nodes.List, nodes.Tuple, nodes.Dict, nodes.Pair),
    *(nodes.Getattr, nodes.Getitem, nodes.Slice),
    *(nodes.Filter, nodes.Test, nodes.Call, nodes.Keyword, nodes.CondExpr, nodes.Concat, nodes.Compare, nodes.Operand),
    *(nodes.And, nodes.Or, nodes.Not, nodes.Neg, nodes.Pos),
    *(nodes.Add, nodes.Sub, nodes.Mul, nodes.Div, nodes.FloorDiv, nodes.Mod, nodes.Pow),
)


class ReferenceInvalid(ValueError):
    """A text is no valid reference. ``start`` and ``end`` are the offsets of the mistake in it."""

    def __init__(self, code: str, message: str, start: int, end: int | None = None, fix: str | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.start = start
        self.end = start + 1 if end is None else end
        self.fix = fix


class Missing(StrictUndefined):
    """Result of a name or key without a value. ``default`` and ``is defined`` accept it; everything else raises UndefinedError."""

    __slots__ = ()

    def fail(self) -> NoReturn:
        raise UndefinedError(self._undefined_message)

    @property
    def _undefined_message(self) -> str:
        if self._undefined_hint:
            return "there is no such item: the list is empty"
        name = self._undefined_name
        if self._undefined_obj is missing:
            return f"`{name}` has no value here"
        return f"{limits.shown(self._undefined_obj)} has no {f'`{name}`' if isinstance(name, str) else f'item {name}'}"


class Sandbox(ImmutableSandboxedEnvironment):
    intercepted_binops = frozenset(limits.OPERATORS)
    intercepted_unops = frozenset("+-")

    def __init__(self) -> None:
        # Delimiters do not matter: only expressions are parsed.
        super().__init__(undefined=Missing, optimized=False, autoescape=False, cache_size=0)
        self.globals.clear()
        self.filters.clear()
        self.filters.update(builtins.FILTERS)
        self.filters[builtins.CONCATENATE] = filters.join
        self.tests.clear()
        self.tests.update(builtins.TESTS)

    def getitem(self, obj: Any, argument: Any) -> Any:
        """Return a key of a map or a position in a list or text, else Missing. A key of a missing value is missing too."""
        if isinstance(obj, Missing):
            return obj
        try:
            if isinstance(argument, str):
                if isinstance(obj, Mapping):
                    return obj[argument]
            elif isinstance(argument, int) and isinstance(obj, list | tuple | str):
                return obj[argument]
        except LookupError:
            pass
        return Missing(obj=obj, name=argument)  # pyright: ignore[reportArgumentType]  # Jinja passes positions too

    def getattr(self, obj: Any, attribute: str) -> Any:
        return self.getitem(obj, attribute)

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        for each in (left, right):
            if isinstance(each, Missing):
                each.fail()
        return limits.operate(operator, left, right)

    def call_unop(self, context: Any, operator: str, arg: Any) -> Any:
        if isinstance(arg, Missing):
            arg.fail()
        if not isinstance(arg, int | float):
            raise limits.Unusable(f"`{operator}` does not work on {limits.shown(arg)}")
        return -arg if operator == "-" else arg

    def tokens(self, source: str) -> TokenStream:
        return TokenStream(self.lexer.wrap(self._placed(source)), None, None)

    def _placed(self, source: str) -> Iterator[tuple[int, str, str]]:
        offset = 0
        try:
            for _line, token, value in self.lexer.tokeniter(source, None, None, "variable"):
                yield offset, token, value
                offset += len(value)
        except TemplateSyntaxError as error:
            raise TemplateSyntaxError(error.message or "", offset, None, None) from None


SANDBOX = Sandbox()


def parse(source: str) -> nodes.Expr:
    """Return the checked syntax tree of one expression. Raises ReferenceInvalid for the first mistake."""
    if len(source) > LONGEST:
        message = f"an expression has at most {LONGEST} characters, this one {len(source)}"
        raise ReferenceInvalid("expression-too-long", message, 0)
    try:
        parser = Parser(SANDBOX, "")
        parser.stream = SANDBOX.tokens(source)
        if parser.stream.eos:
            raise ReferenceInvalid("expression-syntax", "there is no expression between `{{` and `}}`", 0, len(source))
        tree = parser.parse_expression()
        if not parser.stream.eos:
            rest = parser.stream.current
            message = f"`{rest.value}` does not belong to the expression before it"
            raise ReferenceInvalid("expression-syntax", message, rest.lineno, rest.lineno + len(str(rest.value)))
    except TemplateSyntaxError as error:
        raise _syntax(error, source) from None
    except ReferenceInvalid:
        raise
    except (RecursionError, ValueError, OverflowError):
        message = "the expression cannot be read: it nests too deeply or holds too large a number"
        raise ReferenceInvalid("expression-syntax", message, 0, len(source)) from None
    tree = _checked(tree, source, 0)
    tree.set_environment(SANDBOX)
    return tree


def _syntax(error: TemplateSyntaxError, source: str) -> ReferenceInvalid:
    message = error.message or "the expression cannot be read"
    if message.startswith("unexpected char"):
        character = source[error.lineno : error.lineno + 1]
        unknown = f"`{character}` means nothing in an expression"
        message = "this text is never closed" if character in ("'", '"') else unknown
    elif "end of template" in message or "end of print statement" in message:
        return ReferenceInvalid("expression-syntax", "the expression ends too early", max(len(source.rstrip()) - 1, 0))
    else:
        message = message.replace("end of print statement", "the end").replace("got ", "and not ")
    return ReferenceInvalid("expression-syntax", message, min(error.lineno, max(len(source) - 1, 0)))


def _checked(tree: Any, source: str, depth: int) -> Any:
    """Correct what Jinja would do differently; raise ReferenceInvalid for anything outside the language."""
    at = tree.lineno
    if depth > DEEPEST:
        message = f"the expression nests deeper than {DEEPEST} levels: make a step of a part of it"
        raise ReferenceInvalid("expression-too-deep", message, at)
    if not isinstance(tree, KNOWN):
        raise ReferenceInvalid("expression-syntax", "this is not part of an expression", at)
    if isinstance(tree, nodes.Name):
        return _name(tree)
    if isinstance(tree, nodes.CondExpr) and tree.expr2 is None:
        raise ReferenceInvalid("if-without-else", "`if` needs an `else`: without one the value may be missing", at)
    if isinstance(tree, nodes.Call):
        return _call(tree, source)
    if isinstance(tree, nodes.Filter | nodes.Test):
        _check_use(tree, source)
    for field in tree.fields:
        value = getattr(tree, field)
        if isinstance(value, nodes.Node):
            setattr(tree, field, _checked(value, source, depth + 1))
        elif isinstance(value, list):
            inner = [_checked(each, source, depth + 1) if isinstance(each, nodes.Node) else each for each in value]
            setattr(tree, field, inner)
    if isinstance(tree, nodes.Concat):
        return nodes.Filter(nodes.List(tree.nodes, lineno=at), builtins.CONCATENATE, [], [], None, None, lineno=at)
    return tree


def _name(tree: nodes.Name) -> nodes.Expr:
    if tree.name == "null":
        return nodes.Const(None, lineno=tree.lineno)
    if tree.name in (*CALLS, "self"):
        fix = f"write `{tree.name}()`" if tree.name in CALLS else None
        raise ReferenceInvalid(
            "not-a-value", f"`{tree.name}` is not a value", tree.lineno, tree.lineno + len(tree.name), fix
        )
    return tree


def _call(tree: nodes.Call, source: str) -> nodes.Expr:
    called = tree.node
    if isinstance(called, nodes.Name) and called.name in CALLS:
        _check_arguments(tree, called.name)
        return tree
    if isinstance(called, nodes.Name):
        word, at = called.name, called.lineno
    elif isinstance(called, nodes.Getattr):
        word, at = called.attr, _after(source, called.lineno, called.attr)
    else:
        raise ReferenceInvalid("no-such-function", ONLY, tree.lineno)
    fix = METHODS.get(word, "values have no methods: use a filter (`… | upper`)")
    fix = f"write `… | {word}`: it is a filter" if word in builtins.FILTERS else fix
    raise ReferenceInvalid("no-such-function", f"`{word}` cannot be called: {ONLY}", at, at + len(word), fix)


def _check_arguments(tree: nodes.Call, name: str) -> None:
    starred = tree.kwargs or tree.dyn_args is not None or tree.dyn_kwargs is not None
    if name != "totp":
        if tree.args or starred:
            raise ReferenceInvalid("wrong-arguments", f"`{name}()` takes nothing", tree.lineno)
        return
    given = tree.args[0] if len(tree.args) == 1 and not starred else None
    part = given.node if isinstance(given, nodes.Getattr | nodes.Getitem) else None
    if not (isinstance(part, nodes.Name) and part.name == "secrets"):
        fix = "write `totp(secrets.NAME)`, and put NAME into `secrets` at the head of the file"
        raise ReferenceInvalid("wrong-arguments", "`totp` takes one secret", tree.lineno, tree.lineno + len(name), fix)


METHODS = {
    "append": "join lists with `+`",
    "endswith": "take the end: `x[-3:] == 'abc'`",
    "find": "use `'abc' in x`, or `x | index('abc')` for its position",
    "get": "use `x.key | default(…)`",
    "range": "use `n | range`",
    "startswith": "take the beginning: `x[:3] == 'abc'`",
    "len": "use `x | length`",
    "str": "use `x | string`",
    "strip": "use `x | trim`",
    "strftime": "use `x | date('%d.%m.%Y')`",
}
"""Replacements for methods and functions that people know from Python and Jinja."""


def _check_use(tree: nodes.Filter | nodes.Test, source: str) -> None:
    test = isinstance(tree, nodes.Test)
    at = _after(source, tree.lineno, tree.name) if test else tree.lineno
    if tree.dyn_args is not None or tree.dyn_kwargs is not None:
        message = f"`{tree.name}`: arguments are written out, without `*`"
        raise ReferenceInvalid("wrong-arguments", message, at, at + len(tree.name))
    _check_known(tree.name, "test" if test else "filter", at)
    if tree.name in builtins.WITH_PATTERN:
        _check_pattern(tree, at)
    if test:
        return
    takes = builtins.signature(tree.name)
    try:
        takes.bind(*tree.args, **{str(each.key): each.value for each in tree.kwargs})
    except TypeError as error:
        fix = f"it takes `{builtins.usage(tree.name)}`" if takes.parameters else "it takes nothing"
        raise ReferenceInvalid("wrong-arguments", f"`{tree.name}`: {error}", at, at + len(tree.name), fix) from None
    inner = tree.args[1 if tree.name in ("selectattr", "rejectattr") else 0 :] if tree.name in APPLYING else []
    if inner and isinstance(inner[0], nodes.Const) and isinstance(inner[0].value, str):
        _check_known(inner[0].value, "filter" if tree.name == "map" else "test", inner[0].lineno)


def _check_pattern(tree: nodes.Filter | nodes.Test, at: int) -> None:
    """Raise ReferenceInvalid if an escape of the pattern was already read by YAML or by the expression."""
    pattern = tree.args[0].value if tree.args and isinstance(tree.args[0], nodes.Const) else None
    if isinstance(pattern, str) and (lost := next((each for each in pattern if each in LOST_ESCAPES), None)):
        escape = LOST_ESCAPES[lost]
        raise ReferenceInvalid(
            "pattern-escape",
            f"the pattern has a control character where `{escape}` was meant: a text reads `{escape}` itself",
            at,
            at + len(tree.name),
            f"write `\\{escape}` if the text of the file is in single quotes, `\\\\\\{escape}` if it is in double quotes",
        )


LOST_ESCAPES = {"\a": r"\a", "\b": r"\b", "\v": r"\v", "\f": r"\f"}
"""Control characters that no pattern means, with what was written."""


APPLYING = ("map", "select", "reject", "selectattr", "rejectattr")
"""Filters that take the name of another filter, or of a test."""


def _check_known(name: str, what: str, at: int) -> None:
    known = builtins.FILTERS if what == "filter" else builtins.TESTS
    if name in known:
        return
    names = sorted(filter(str.isidentifier, known))
    fix = errors.did_you_mean(name, names, f"the {what}s are {', '.join(names)}")
    if what == "filter":
        fix = builtins.INSTEAD.get(name, fix)
    raise ReferenceInvalid(f"unknown-{what}", f"there is no {what} `{name}`", at, at + len(name), fix)


def _after(source: str, offset: int, word: str) -> int:
    """Return the offset of ``word`` at or after ``offset``; ``offset`` if it is not found."""
    found = source.find(word, offset)
    return offset if found < 0 else found
