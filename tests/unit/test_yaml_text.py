"""YAML text as plain data: scalars, positions, and refusals."""

import json
import re
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from runtime.display import escapes
from runtime.language import yaml_text
from runtime.language.diagnostics import Diagnostic, Source, excerpt
from runtime.language.yaml_text import Document


def read(content: str | bytes) -> Document:
    """The document of a text."""
    return yaml_text.read("file.yaml", content)


def problem(content: str | bytes) -> Diagnostic:
    """The one mistake of a text."""
    (found,) = read(content).problems
    return found


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("true", True),
        ("False", False),
        ("null", None),
        ("~", None),
        ("", None),
        ("12", 12),
        ("-3", -3),
        ("+3", 3),
        ("1.5", 1.5),
        (".5", 0.5),
        ("1e3", 1000.0),
        ("on", "on"),
        ("no", "no"),
        ("1:30", "1:30"),
        ("012", "012"),
        ("0x1f", "0x1f"),
        ("1_000", "1_000"),
        ("2026-11-21", "2026-11-21"),
        (".inf", ".inf"),
        ("1e999", "1e999"),
        ("9223372036854775808", "9223372036854775808"),
        ("'12'", "12"),
        ("!!str 12", "12"),
        ("!!int '12'", 12),
        ("<<", "<<"),
        ("=", "="),
    ],
)
def test_scalars_are_those_of_yaml_1_2(written: str, value: Any) -> None:
    """A scalar that is no boolean, null or decimal number stays text as written."""
    data = read(f"a: {written}\n").data
    assert data == {"a": value}
    assert type(data["a"]) is type(value)


@pytest.mark.parametrize(
    ("content", "code", "line", "column"),
    [
        ("a: 1\nb: 2\na: 3\n", "duplicate-key", 3, 1),
        ("b:\n  - {x: 1, y: 2, x: 3}\n", "duplicate-key", 2, 18),
        ("1: x\n", "key-not-text", 1, 1),
        ("a: {{ x }}\n", "key-not-text", 1, 5),
        ("? [a]\n: b", "key-not-text", 1, 3),
        ("a: !!python/object:os.system x\n", "tag", 1, 4),
        ("a: !mine x\n", "tag", 1, 4),
        ("a: &x [*x]\n", "recursive-alias", 1, 8),
        ("a: *y\n", "unknown-anchor", 1, 4),
        ("a: [1, 2\n", "yaml-syntax", 2, 1),
        ("a: b: c\n", "yaml-syntax", 1, 5),
        ("a:\n\t- 1\n", "yaml-syntax", 2, 1),
        ("", "empty-file", 1, 1),
        ("# only a comment\n", "empty-file", 1, 1),
        ("a: 1\n---\nb: 2\n", "several-documents", 2, 1),
        ("a: 1\nb: '\x07'\n", "not-text", 2, 5),
        (b"a: 1\nb: \xff\n", "not-text", 2, 4),
        ("[" * 1000, "too-deep", 1, 65),
        ("a: " + "x" * (300 << 10), "text-too-long", 1, 4),
    ],
)
def test_ambiguous_yaml_is_refused_at_its_position(content: str | bytes, code: str, line: int, column: int) -> None:
    """Each mistake has its code, its line and its column."""
    found = problem(content)
    assert found.mark is not None
    assert (found.code, found.mark.line, found.mark.column) == (code, line, column)


@pytest.mark.parametrize("content", [b"\x00\x01\x02", b"a" * (2 << 20)])
def test_a_file_that_is_no_text_is_refused_as_a_whole(content: bytes) -> None:
    """A binary file, and one that is too large, are refused without a position."""
    assert problem(content).mark is None


def test_a_duplicate_key_names_both_places() -> None:
    """The mistake at the second key names the position of the first."""
    assert "line 1, column 1" in problem("a: 1\nb: 2\na: 3\n").help[0]


def test_a_value_with_braces_outside_quotes_says_how_to_write_it() -> None:
    """A reference outside quotes gets a fix that names quotes."""
    assert "quotes" in problem("a: {{ x }}\n").help[0]


def test_reading_continues_after_mistakes_that_leave_the_rest_clear() -> None:
    """Duplicate keys, keys that are no text, and tags are all reported, and the rest is read."""
    document = read("a: 1\na: 2\n3: x\nb: !t y\nc: {d: 1, d: 2}\n")
    assert [each.code for each in document.problems] == ["duplicate-key", "key-not-text", "tag", "duplicate-key"]
    assert document.data == {"a": 1, "b": "y", "c": {"d": 1}}


def test_aliases_have_the_value_of_their_anchor() -> None:
    """An alias has its own position, and its content has the positions at the anchor."""
    document = read("a: &x {k: [1, 2]}\nb: *x\n")
    assert document.data == {"a": {"k": [1, 2]}, "b": {"k": [1, 2]}}
    alias, inside = document.mark(("b",)), document.mark(("b", "k", 1))
    assert alias is not None
    assert inside is not None
    assert (alias.line, alias.column) == (2, 4)
    assert (inside.line, inside.column) == (1, 15)


def test_aliases_cannot_grow_without_bounds() -> None:
    """Aliases that expand to a billion values are refused."""
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 10)]
    assert problem("\n".join(lines)).code == "too-many-values"


def test_places_count_characters_as_an_editor_does() -> None:
    """Each letter beyond ASCII is one column, a byte-order mark none; only line feeds and carriage returns break lines."""
    document = read("\ufeffä: 'ü\u2028'\r\nb: x\rc: y\n".encode())
    places = [document.mark((key,)) for key in ("ä", "b", "c")]
    assert [(each.line, each.column) for each in places if each] == [(1, 4), (2, 4), (3, 4)]


@pytest.mark.parametrize(
    "content",
    [
        'over: "{{ serach.rows }}"\n',
        "over: '{{ serach.rows }}'\n",
        "over: |\n  {{ serach.rows }}\n",
        "over: >-\n  some words\n  {{ serach.rows }}\n",
        'over: "a \\"quote\\" \\u00e4 {{ serach.rows }}"\n',
        "over: 'it''s {{ serach.rows }}'\n",
        'over: "folded\n  over lines {{ serach.rows }}"\n',
        'over: "{{ serach.a }} {{ serach.rows }}"\n',
    ],
)
def test_a_word_in_a_text_is_found_in_the_file(content: str) -> None:
    """A word in a text is found at its position, however the text is quoted, escaped or folded."""
    document = read(content)
    value = document.data["over"]
    start = value.rindex("serach")
    mark = document.within(("over",), value, start, start + 6)
    assert mark is not None
    assert mark.start == content.rindex("serach")
    assert document.source.line(mark.line)[mark.column - 1 : mark.end - 1] == "serach"


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63) + 1, 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"]), max_size=8), inner, max_size=4),
    max_leaves=12,
)  # fmt: skip


@given(json_values)
def test_json_is_read_as_json(value: Any) -> None:
    """Any JSON value written as JSON is read back unchanged."""
    text = json.dumps({"a": value})  # escapes everything that YAML has no way to write
    text = text.replace("\\/", "/")
    document = read(text)
    if "\\ud" in text:
        return  # pairs of halves are JSON's, not YAML's
    assert document.problems == []
    assert document.data == {"a": value}


@given(st.text(st.sampled_from("ab:-[]{}&*!|>'\"%@`#,? \n\t\r\0\ufeff\x85é😀1."), max_size=60) | st.binary(max_size=60))
def test_no_text_ends_in_an_error_of_python(content: str | bytes) -> None:
    """Any text is readable, or has mistakes with positions inside it."""
    document = read(content)
    assert document.readable or document.problems
    for each in document.problems:
        assert each.render()
        if each.mark is not None:
            assert 1 <= each.mark.column <= len(each.source) + 1
            assert each.mark.column < each.mark.end


@given(st.text(st.sampled_from("ab:-[]{}&*!|>'\"#,? \n1"), max_size=40))
def test_texts_are_read_as_pyyaml_reads_them(content: str) -> None:
    """A text that both can read has the same content as with PyYAML's base loader."""
    document = read(content)
    try:
        theirs = yaml.load(content, Loader=yaml.BaseLoader)
    except yaml.YAMLError:
        return
    if document.problems or not document.readable:
        return

    def strings(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: strings(item) for key, item in value.items()}
        if isinstance(value, list):
            return [strings(item) for item in value]
        return "" if value in (None, "~") else str(value)

    assert strings(document.data) == strings(theirs)
    for mark in document.values.values():
        assert 0 <= mark.start <= mark.stop <= len(content)


class TestDiagnostics:
    def test_the_rendering_shows_the_line_and_underlines_the_mistake(self) -> None:
        """The plain form has code, message, position, line, carets and help."""
        source = Source("shop.yaml", 'nodes:\n  - over: "{{ serach }}"\n')
        mark = source.mark(21, 27)
        given = source.diagnostic(
            "unknown-reference",
            "`serach` is not defined here",
            mark,
            label="no such id",
            help=["did you mean `search`?"],
        )
        assert given.render() == (
            "error[unknown-reference]: `serach` is not defined here\n"
            " --> shop.yaml:2:15\n"
            "  |\n"
            '2 |   - over: "{{ serach }}"\n'
            "  |               ^^^^^^ no such id\n"
            "  = did you mean `search`?"
        )

    def test_colours_change_nothing_but_colours(self) -> None:
        """Without its escape codes the coloured form is the plain one."""
        source = Source("f", "a: b\n")
        given = source.diagnostic("c", "m", source.mark(3, 4), help=["h"])
        coloured = escapes.shown(given.render(colour=True))
        assert "\x1b[" in coloured
        assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == given.render()

    @given(
        st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\n"), min_size=1, max_size=400),
        st.integers(0, 399),
        st.integers(1, 50),
    )
    def test_any_line_is_shown_safely(self, line: str, start: int, length: int) -> None:
        """An excerpt of any line contains no control or direction characters, and stays short."""
        start = min(start, len(line) - 1)
        source = Source("f", line)
        shown, before, width = excerpt(line, source.mark(start, min(start + length, len(line))))
        assert not any(ord(each) < 32 or 0x7F <= ord(each) < 0xA0 or each in "\u202e\u2066\u200f" for each in shown)
        assert len(shown) <= 4 * 162
        assert width >= 1
        assert before >= 0

    def test_carets_align_with_wide_letters(self) -> None:
        """A letter that takes two columns moves the carets by two."""
        line = "a: 日本 x"
        _shown, before, width = excerpt(line, Source("f", line).mark(3, 5))
        assert (before, width) == (3, 4)
