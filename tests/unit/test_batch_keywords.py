"""Expressions of ``-k``."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodes.errors import RunOpsError
from runtime.batch import keywords

WORDS: tuple[str, ...] = ("pay", "slow", "tea")

EXPRESSIONS = st.recursive(
    st.sampled_from(WORDS),
    lambda inner: st.one_of(st.tuples(st.just("not"), inner), st.tuples(inner, st.sampled_from(["and", "or"]), inner)),
    max_leaves=8,
)


def written(tree: object) -> str:
    """An expression with all its parentheses, which Python reads as well."""
    return tree if isinstance(tree, str) else f"({' '.join(map(written, tree))})"  # type: ignore[arg-type]


@given(EXPRESSIONS)
def test_expressions_mean_what_they_mean_in_python(tree: object) -> None:
    """For each set of words that a case has, an expression is true as in Python."""
    text = written(tree)
    matches = keywords.read(text)
    for has in itertools.product([False, True], repeat=len(WORDS)):
        names = dict(zip(WORDS, has, strict=True))
        texts = [f"a {word.upper()} x" for word, there in names.items() if there]
        assert matches(texts) is eval(text, {}, names)


@given(st.text("ab ()'\"notrd", max_size=12))
def test_any_text_is_read_or_refused_with_a_place_in_it(text: str) -> None:
    """Nothing but our error is raised, and its caret stands within the text or just after it."""
    wrong: keywords.BadExpression | None = None
    try:
        keywords.read(text)([])
    except keywords.BadExpression as error:
        wrong = error
    if wrong is not None:
        assert 0 <= wrong.at <= len(text)
        assert wrong.render().splitlines()[-1] == f"  {' ' * wrong.at}^"


@pytest.mark.parametrize(
    ("text", "at", "said"),
    [
        ("", 0, "a word is expected"),
        ("pay and", 7, "a word is expected"),
        ("pay tea", 4, "`and`, `or` or the end"),
        ("(pay or tea", 11, "a closing parenthesis"),
        ("pay)", 3, "`and`, `or` or the end"),
        ("not", 3, "a word is expected"),
        ("or pay", 0, "a word is expected"),
        ("pay 'tea", 4, "a quote is not closed"),
        ("(" * 60 + "pay", 50, "more than 50"),
    ],
)
def test_a_mistake_is_shown_at_its_place(text: str, at: int, said: str) -> None:
    with pytest.raises(RunOpsError, match=said) as caught:
        keywords.read(text)
    assert isinstance(caught.value, keywords.BadExpression)
    assert (caught.value.code, caught.value.exit, caught.value.at) == ("usage", 2, at)


def test_precedence_and_quotes() -> None:
    """`not` binds closer than `and`, and that closer than `or`; a word in quotes may have blanks, signs and operators."""
    matches = keywords.read("tea or pay AND NOT slow")
    assert [matches([text]) for text in ("tea slow", "pay", "pay slow", "")] == [True, True, False, False]
    assert keywords.read("\"flows/a (b)\" and 'or'")(["x/flows/a (b)", "ORDER"])
    assert keywords.read(" ".join(["not"] * 2001 + ["x"]))([])
