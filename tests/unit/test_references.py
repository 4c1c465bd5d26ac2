"""References: the values they give, the texts they refuse, and no way out of the given data."""

import contextlib
import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from jinja2 import UndefinedError

from nodes.errors import AuthorError
from nodes.values import normalise
from runtime.language.expressions import references
from runtime.language.expressions.limits import Unusable
from runtime.language.expressions.references import ReferenceInvalid
from tests.expressions import Clock, render


def failure(text: str, **values: Any) -> AuthorError:
    """The error of a text when it is rendered."""
    with pytest.raises(AuthorError) as caught:
        render(text, **values)
    return caught.value


def refused(text: str) -> ReferenceInvalid:
    """The error of a text when it is compiled."""
    with pytest.raises(ReferenceInvalid) as caught:
        references.compile(text)
    return caught.value


numbers = st.integers(-(2**63) + 1, 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
nasty = st.sampled_from(
    ["{{ x }}", "{{ secret }}", "{% if %}", "{# #}", "}}", "{{", "__class__", "%s", "{0}", "'", '"', "\\"]
)
json_values = st.recursive(
    st.none() | st.booleans() | numbers | texts | nasty,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=10,
)


class TestValues:
    @given(json_values)
    def test_a_text_that_is_one_expression_gives_the_value_itself(self, value: Any) -> None:
        """Any value comes out unchanged and of the same type, whatever its texts look like."""
        given = render("{{ x }}", x=value, secret="s3cret")
        assert given == normalise(value)
        assert type(given) is type(normalise(value))

    @given(json_values)
    def test_a_value_is_never_read_as_an_expression(self, value: Any) -> None:
        """A text from a value keeps its braces, also beside other texts or when computed."""
        assert render("{{ [x, 'a' ~ 'b'] }}", x=value, secret="s3cret") == [normalise(value), "ab"]

    @given(st.lists(texts | nasty | st.sampled_from(["{{ a }}", "{{ b }}"]), max_size=6))
    def test_mixed_text_is_its_pieces_joined(self, pieces: list[str]) -> None:
        """In any text that compiles, each expression is replaced by its value once, and everything else stays as written."""
        text = "".join(pieces)
        known = {"{{ a }}": "{{ b }}", "{{ b }}": "B"}
        try:
            compiled = references.compile(text)
        except ReferenceInvalid:
            return
        if {use.root for use in compiled.names} - {"a", "b"} or any(
            "{{" in each and each not in known for each in pieces
        ):
            return
        wanted = "".join(known.get(piece, piece) for piece in pieces)
        assert compiled.render({"a": "{{ b }}", "b": "B"}, Clock()) == wanted

    @pytest.mark.parametrize(
        ("text", "value"),
        [
            ("{{ order.number }}", 1007),
            ("{{ order['number'] }}", 1007),
            ("{{ lines[0].sku }}", "a"),
            ("{{ lines[-1].sku }}", "b"),
            ("{{ lines | length }}", 2),
            ("{{ 1 + 1 }}", 2),
            ("{{ 1 ** 100000 + 2 ** 10 }}", 1025),
            ("{{ null }}", None),
            ("{{ {'a': {'b': 1}}}}", {"a": {"b": 1}}),
            ("{{ ('a', 'b') }}", ["a", "b"]),
            ("{{ now() }}", "2026-11-21T03:00:00+00:00"),
            ("no. {{ order.number }}", "no. 1007"),
            ("{{ order.number }} {{ flag }}", "1007 true"),
            ("{{ 'a' ~ 1 ~ true }}", "a1true"),
            ("{{ '{{' }} {# kept #} }}", "{{ {# kept #} }}"),
            ("{{ 'yes' if flag else 'no' }}", "yes"),
            ("{{ result }}", "mine"),
            ("{{ order.items }}", "a key wins over a method"),
            ("{{ lines }}!", '[{"sku": "a"}, {"sku": "b"}]!'),
            ("nothing to do", "nothing to do"),
        ],
    )
    def test_examples(self, text: str, value: Any) -> None:
        """Keys, positions, operators, functions and mixed texts give the values in the manual."""
        values = {"order": {"number": 1007, "items": "a key wins over a method"}, "flag": True, "result": "mine"}
        assert render(text, lines=[{"sku": "a"}, {"sku": "b"}], **values) == value


class TestMissing:
    @pytest.mark.parametrize(
        ("text", "message", "fix"),
        [
            ("{{ orde }}", "`orde` has no value here", "guard"),
            ("{{ order.nmber }}", "`order` has no `nmber`", "did you mean `number`?"),
            ("{{ order.keys }}", "`order` has no `keys`", "| keys"),
            ("{{ order.number.upper }}", '`order.number` is the text "7" and has no `upper`', "order.number | upper"),
            ("{{ list[3] }}", "`list` has no item 3: it has 1", ""),
            ("{{ [orde] }}", "`orde` has no value here", ""),
            ("{{ {'a': [order.nmber]} }}", "`order` has no `nmber`", ""),
            ("a {{ orde }}", "`orde` has no value here", ""),
            ("{{ list | map(attribute='x') }}", "has no `x`", ""),
            ("{{ [] | first }}", "the list is empty", ""),
            ("{{ orde == 1 }}", "`orde` has no value here", ""),
            ("{{ order.nmber | upper }}", "`order` has no `nmber`", ""),
        ],
    )
    def test_a_missing_value_is_an_error(self, text: str, message: str, fix: str) -> None:
        """The error names the name, key or position without a value, wherever the expression uses it."""
        error = failure(text, order={"number": "7"}, list=[{"a": 1}])
        assert error.code == "undefined-value"
        assert message in error.message
        assert fix in (error.fix or "")
        assert error.evidence["expression"] == text

    @pytest.mark.parametrize(
        ("text", "value"),
        [
            ("{{ x | default('d') }}", "d"),
            ("{{ x.y.z | default('d') }}", "d"),
            ("{{ x is defined }}", False),
            ("{{ x.y is defined }}", False),
            ("{{ x.y if x is defined else 'none' }}", "none"),
            ("{{ x is defined and x.y }}", False),
        ],
    )
    def test_default_and_is_defined_accept_missing_values(self, text: str, value: Any) -> None:
        """Only a guard accepts a missing value."""
        assert render(text) == value

    def test_null_has_no_place_in_a_text(self) -> None:
        """A null inside a text is an error, because a text with a gap is never intended."""
        assert failure("Hello {{ name }}", name=None).code == "expression-failed"


class TestRefused:
    @pytest.mark.parametrize(
        ("text", "code", "start", "end"),
        [
            ("{{ a", "expression-syntax", 0, 2),
            ("x {{ }}", "expression-syntax", 4, 5),
            ("{{ a b }}", "expression-syntax", 5, 6),
            ("{{ a | uper }}", "unknown-filter", 7, 11),
            ("{{ [a] | map('uper') }}", "unknown-filter", 13, 14),
            ("{{ a is deffined }}", "unknown-test", 8, 16),
            ("{{ a if b }}", "if-without-else", 3, 4),
            ("{{ a }} {% if a %}", "statement", 8, 10),
            ("{{ a.upper() }}", "no-such-function", 5, 10),
            ("{{ range(3) }}", "no-such-function", 3, 8),
            ("{{ now }}", "not-a-value", 3, 6),
            ("{{ now(1) }}", "wrong-arguments", 6, 7),
            ("{{ a | center(1, 2, 3) }}", "wrong-arguments", 7, 13),
            ("{{ self }}", "not-a-value", 3, 7),
            ("{{- a }}", "expression-syntax", 2, 3),
            ("{{ a -}}", "expression-syntax", 5, 6),
            ("{{ a ? b }}", "expression-syntax", 5, 6),
            ("{{ 'a }}", "expression-syntax", 3, 4),
        ],
    )
    def test_mistakes_have_a_code_and_a_place(self, text: str, code: str, start: int, end: int) -> None:
        """An invalid reference is refused when the file is read, at its place in the text."""
        error = refused(text)
        assert (error.code, error.start) == (code, start)
        assert error.end == end or code in ("unknown-filter", "expression-syntax")

    @pytest.mark.parametrize("name", ["attr", "pprint", "random", "safe", "tojson", "urlize", "xmlattr"])
    def test_missing_filters_of_jinja_have_a_fix(self, name: str) -> None:
        """Filters that reach into objects, are not repeatable or make HTML are missing, and the error has a fix."""
        error = refused(f"{{{{ x | {name} }}}}")
        assert error.code == "unknown-filter"
        assert error.fix

    @pytest.mark.parametrize("piece", ["(", "[", "not ", "-", "a if a else ", "a ~ (", "{'a': ", "a | default("])
    def test_depth_is_bounded(self, piece: str) -> None:
        """An expression that nests too deeply is refused with a reference error, never one of Python."""
        with pytest.raises(ReferenceInvalid):
            references.compile("{{ " + piece * 400 + "a }}")

    @pytest.mark.parametrize(
        ("before", "after"),
        [
            ("a + ", ""),
            ("a and ", ""),
            ("not ", ""),
            ("(", ")"),
            ("", " | default(a)"),
            ("a if a else ", ""),
            ("[", "]"),
            ("", "[a]"),
            ("a == (", ")"),
            ("a ~ (", ")"),
            ("(", " is defined)"),
            ("{'a': ", "}"),
            ("-", ""),
            ("a[", "]"),
        ],
    )
    def test_any_accepted_expression_can_be_computed(self, before: str, after: str) -> None:
        """At the greatest accepted depth, Python's compiler still accepts the code that Jinja generates."""
        depth = 1
        for depth in range(1, 200):
            try:
                compiled = references.compile("{{ " + before * depth + "a" + after * depth + " }}")
            except ReferenceInvalid:
                break
            # `render` would turn a failure of Python's compiler into one of the expression.
            with contextlib.suppress(Unusable, UndefinedError, TypeError):
                compiled._evaluate({"a": 0}, Clock())
        assert depth > 15


class TestBounds:
    @pytest.mark.parametrize(
        "expression",
        [
            "'a' * 10 ** 9",
            "10 ** 1000",
            "2 ** 5000",
            "2 ** 500 * 2 ** 500 * 2 ** 500",
            "[1] * 10 ** 9",
            "'a' | center(10 ** 9)",
            "'a' | indent(10 ** 9, true)",
            "'%1000000000d' | format(1)",
            "'%*d' | format(1000000000, 1)",
            "'%d' % 1000000000",
            "long | replace('', long)",
            "long | wordwrap(1, true, long)",
            "[long] * 1000 | join",
            "many | map('center', 10000) | list | length",
            "[1] | batch(10 ** 9, 0)",
            "[1] | slice(10 ** 9)",
            "many | map('batch', 100000, 0) | list",
            "([many] * 1000) | sum(start=[])",
            "long ~ long ~ long ~ long ~ long ~ long ~ long ~ long ~ long ~ long ~ long",
            "[[long] * 50000, 1]",
            "([long] * 50000) | json",
            "1.5 | round(10 ** 9)",
            "('9' * 5000) | int",
            "long | regex_replace('', long)",
            "'x' | regex('(' * 2000)",
            "'1' | date('%Y' * 1000)",
        ],
    )
    def test_nothing_grows_without_bounds(self, expression: str) -> None:
        """An expression that would fill the memory fails at once with an expression error."""
        error = failure("{{ " + expression + " }}", long="a" * 100_000, many=["x"] * 50_000)
        assert error.code == "expression-failed"
        assert "Traceback" not in error.message

    @given(st.sampled_from(["+", "-", "*", "/", "//", "%", "**", "~", "<", "in", "=="]), json_values, json_values)
    @example("//", 1, 0)
    @example("**", 0, -1)
    @example("**", -8, 0.5)
    @example("**", 10.0, 400)
    def test_operators_give_json_or_an_authors_error(self, sign: str, left: Any, right: Any) -> None:
        """Every operator on any two values gives a JSON value or an error for the author."""
        with contextlib.suppress(AuthorError):
            given = render("{{ x " + sign + " y }}", x=left, y=right)
            assert json.loads(json.dumps(given, allow_nan=False)) == given


DUNDERS = [
    "__class__",
    "__mro__",
    "__subclasses__",
    "__globals__",
    "__init__",
    "__builtins__",
    "__dict__",
    "__getitem__",
]
METHODS = ["format", "format_map", "upper", "items", "append", "pop", "mro", "gi_frame", "func_globals", "environment"]
ROOTS = [
    "x",
    "''",
    "[]",
    "{}",
    "1",
    "x.a",
    "loop",
    "now",
    "cycler",
    "lipsum",
    "namespace",
    "self",
    "dict",
    "config",
    "joiner",
    "range",
]
STEPS = [
    *(f".{name}" for name in [*DUNDERS, *METHODS]),
    *(f"['{name}']" for name in [*DUNDERS, *METHODS]),
    *(f" | attr('{name}')" for name in DUNDERS),
    *(f" | map(attribute='{name}') | list" for name in DUNDERS),
    *(
        "()",
        "(x)",
        "[0]",
        "[x]",
        " | format(x)",
        " | sort(attribute='__class__')",
        " | groupby('__class__')",
        " | join",
        " ~ x",
    ),
]


class TestEscapes:
    @given(st.sampled_from(ROOTS), st.lists(st.sampled_from(STEPS), min_size=1, max_size=4))
    @example("''", [".__class__", ".__mro__", "[1]", ".__subclasses__", "()"])
    @example("x", [".format", "(x)"])
    @example("now", [".__func__", ".__globals__"])
    def test_no_expression_reaches_a_python_object(self, root: str, steps: list[str]) -> None:
        """However attributes, items, filters and calls are chained, they give only data of the values."""
        text = "{{ " + root + "".join(steps) + " }}"
        try:
            shown = json.dumps(render(text, x={"a": "{0.__class__}"}, loop={"index": 1}))
        except (ReferenceInvalid, AuthorError) as error:
            shown = str(error).replace("`<`", "")
        assert "<" not in shown
        assert "0x" not in shown

    @given(st.text("{}%#()[]|.'\"ax_0 =~,:\\", max_size=40))
    def test_any_text_compiles_or_is_refused(self, text: str) -> None:
        """Any text is a reference or raises a reference error, and a rendered text contains no `{{`."""
        given: Any = None
        offset = 0
        try:
            given = render(text, a=1, x={"a": 2}, ax="t")
        except ReferenceInvalid as error:
            offset = error.start
        except AuthorError:
            pass
        assert 0 <= offset <= len(text)
        if isinstance(given, str) and "'" not in text and '"' not in text:
            assert "{{" not in given


class TestUses:
    def test_names_have_their_keys_and_offsets(self) -> None:
        """Each reading is listed with its keys and the place of each part in the whole text."""
        compiled = references.compile("Order {{ order.number }} of {{ run['errors'].login | default(y) }}")
        assert [(use.chain, use.offsets) for use in compiled.names] == [
            (("order", "number"), (9, 15)),
            (("run", "errors", "login"), (31, 35, 45)),
            (("y",), (61,)),
        ]

    @pytest.mark.parametrize(
        ("expression", "guarded"),
        [
            ("x", False),
            ("x.y", False),
            ("x | default(1)", True),
            ("x.y | default(1)", True),
            ("x | length | default(1)", False),
            ("x is defined", True),
            ("x is not defined", True),
            ("x is none", False),
            ("x is defined and x.y", True),
            ("x.y is defined and x.y > 1", True),
            ("x is defined or x", False),
            ("x is not defined or x", True),
            ("x if x is defined else 0", True),
            ("0 if x is not defined else x", True),
            ("x if y is defined else 0", False),
            ("(x is defined and y) and x", True),
            ("(x is defined or y) and x", False),
            ("not (x is not defined) and x", True),
            ("x | default('') == 'a' and x", True),
            # A guard that names the value is enough.
            ("x | default('a') == 'a' and x", True),
            ("x | default(false) and x", True),
        ],
    )
    def test_guards_are_understood(self, expression: str, *, guarded: bool) -> None:
        """A use counts as guarded exactly where the expression itself ensures the value."""
        uses = [use for use in references.compile("{{ " + expression + " }}").names if use.root == "x"]
        assert all(use.sure_of(use.chain[:1]) for use in uses) is guarded

    def test_layout_does_not_change_a_condition(self) -> None:
        """Two conditions that differ in blanks and quotes are the same fact."""
        one, other = references.compile("{{ a=='x' and b }}"), references.compile('{{ a == "x"  and  b }}')
        assert one.parts == other.parts

    def test_a_condition_that_may_change_is_no_fact(self) -> None:
        """A condition that depends on the time is no fact."""
        assert not references.compile("{{ now() > 'x' }}").parts
