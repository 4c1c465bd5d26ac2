"""Patterns of a workflow: they have Python's meaning, and none takes longer than its limit."""

from __future__ import annotations

import json
import re
import signal
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodes.errors import AuthorError
from nodes.schema import regex
from nodes.schema.answers import Mismatch
from nodes.schema.output import Output
from tests.expressions import value_of

ENDLESS = [r"(a+)+[!?]", r"^(\w+\s?)*[!?]", r"(a|aa)*[!?]", r"(?i)(A+)+$", r"(?:a{1,99}){1,99}[!?]"]
"""Patterns that would take practically forever to find no match."""

TEXT = "a" * 5000 + "."


def here(use: Callable[[], Any]) -> Any:
    """Its value on this thread, or its error."""
    try:
        return use()
    except AuthorError as error:
        return error.code, error.message


def elsewhere(use: Callable[[], Any]) -> Any:
    """Its value on another thread, or its error."""
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(here(use)))
    thread.start()
    thread.join()
    return found[0]


@pytest.mark.parametrize("pattern", [r"(a+)+b", r"^(\w+\s?)*$", r"(\d|a)*(a|b)*", "a*b*c*d*e*"])
def test_a_pattern_means_the_same_on_every_thread(pattern: str) -> None:
    """A pattern finds the same on the main thread and on another."""
    values = {"x": "a" * 500 + "b", "p": pattern}
    assert elsewhere(lambda: value_of("x | regex(p)", **values)) == here(lambda: value_of("x | regex(p)", **values))


@pytest.mark.parametrize("pattern", ENDLESS)
@pytest.mark.parametrize("thread", [here, elsewhere])
@pytest.mark.parametrize("use", ["regex(p)", "regex_all(p)", "regex_replace(p, '-')"])
def test_a_pattern_that_would_run_for_ever_is_stopped(
    use: str, thread: Callable[[Callable[[], Any]], Any], pattern: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On every thread the filter fails after its time limit."""
    monkeypatch.setattr(regex, "SECONDS", 0.05)
    code, message = thread(lambda: value_of(f"x | {use}", x=TEXT, p=pattern))
    assert code == "expression-failed"
    assert "takes too long on a text of 5001 characters" in message


def test_many_matches_share_the_time_of_one_use() -> None:
    """Many quick matches share one time limit."""
    began = time.process_time()
    with pytest.raises(regex.PatternRefused, match="takes too long"):
        for _match in regex.matches("(?:a|aa)+[!?]|b", ("a" * 16 + "b") * 5000, 0.2):
            pass
    assert time.process_time() - began < 5


def test_matching_leaves_signals_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """A filter sets no signal handler and no timer: those belong to the program."""
    touched: list[str] = []
    for name in ("signal", "setitimer", "set_wakeup_fd", "alarm"):
        monkeypatch.setattr(signal, name, lambda *_args, name=name: touched.append(name))
    assert value_of(r"x | regex('\\d+')", x="Order 12") == "12"
    assert touched == []


PIECES = [
    *("a", "b", "é", ".", r"\d", r"\w", r"\s", r"\W", r"\b", "^", "$", r"\Z", "[^a]", "[]a]", "(a)", "(?:a|b)"),
    *("(b|ab)", "(?=a)", "(?!b)", "(?<=a)", "(?<!b)", "(?>ab?)", "(?i:A)", "{", "}", "{}", "{e}", "{e<=1}", "{i<=2,d}", "a{,}", r"\{e}"),
    *("[{e}]", "a{,2}", "b{1}", "{ 2}", r"\N{BULLET}", r"\\{s}"),
]  # fmt: skip
"""Parts of patterns, some of which mean more to `regex` than to Python."""

OFTEN = ["", "", "", "*", "+", "?", "*?", "+?", "{1,2}", "*+"]


@given(
    st.lists(st.tuples(st.sampled_from(PIECES), st.sampled_from(OFTEN)).map("".join), min_size=1, max_size=4),
    st.text("abé1 .A{}e•\\\n", max_size=10),
)
def test_a_pattern_finds_what_python_finds(parts: list[str], text: str) -> None:
    """A pattern finds the same places and groups as Python's `re`."""
    pattern = "".join(parts)
    try:
        meant = re.compile(pattern)
    except re.error:
        with pytest.raises(regex.PatternRefused, match="is not a pattern"):
            regex.compiled(pattern)
        return
    found = [(each.span(), each.groups()) for each in regex.matches(pattern, text)]
    assert found == [(each.span(), each.groups()) for each in meant.finditer(text)]


@pytest.mark.parametrize("pattern", [r"\p{L}", r"(?|a|b)", r"\X", r"(?<a>b)", r"(?e)a", "("])
def test_syntax_of_the_library_is_no_pattern(pattern: str) -> None:
    """Syntax that only the `regex` library accepts is refused."""
    with pytest.raises(regex.PatternRefused, match="is not a pattern"):
        regex.compiled(pattern)


SCHEMAS: list[tuple[dict[str, Any], Any]] = [
    ({"type": "string", "pattern": ENDLESS[0]}, TEXT),
    ({"not": {"pattern": ENDLESS[0]}}, TEXT),
    ({"type": "array", "items": {"anyOf": [{"type": "string", "pattern": ENDLESS[0]}, {"type": "string"}]}}, [TEXT]),
    ({"type": "object", "patternProperties": {ENDLESS[0]: True}}, {TEXT: 1}),
    ({"type": "object", "patternProperties": {ENDLESS[0]: True}, "additionalProperties": False}, {TEXT: 1}),
]


@pytest.mark.parametrize(("schema", "value"), SCHEMAS)
def test_a_value_whose_pattern_takes_too_long_does_not_fit(
    schema: dict[str, Any], value: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A value that cannot be checked in time does not fit, wherever the pattern is in the schema."""
    monkeypatch.setattr(regex, "SECONDS", 0.05)
    output = Output.of({"json_schema": schema})
    with pytest.raises(Mismatch, match="takes too long on a text of 5001 characters"):
        output.read(_answer(output, value))


def test_all_patterns_of_a_schema_share_the_time_of_one_use(monkeypatch: pytest.MonkeyPatch) -> None:
    """A value is checked or refused after a fixed time, however many texts it has."""
    monkeypatch.setattr(regex, "SECONDS", 0.05)
    output = Output.of({"json_schema": {"type": "array", "items": {"type": "string", "pattern": "(?:a|aa)+[!?]|b"}}})
    began = time.process_time()
    with pytest.raises(Mismatch, match=r"takes? too long"):
        output.read(_answer(output, ["a" * 16 + "b"] * 20_000))
    assert time.process_time() - began < 5


@pytest.mark.parametrize(("text", "fits"), [("two words", True), ("two  words", False), ("w" * 5000, True)])
def test_a_schema_accepts_any_pattern_of_python(text: str, fits: bool) -> None:
    """A schema accepts a pattern whose repeated part fits in several ways, and a text of any length."""
    output = Output.of({"json_schema": {"type": "string", "pattern": r"^(\w+\s?)*$"}})
    if fits:
        assert output.read(_answer(output, text)) == text
    else:
        with pytest.raises(Mismatch, match="does not fit pattern"):
            output.read(_answer(output, text))


def test_names_by_pattern_and_no_others() -> None:
    """Values whose names fit a pattern must fit its schema, and other names are refused."""
    schema = {"type": "object", "patternProperties": {"^x_": {"type": "integer"}}, "additionalProperties": False}
    output = Output.of({"json_schema": schema})
    assert output.read(_answer(output, {"x_a": 1})) == {"x_a": 1}
    with pytest.raises(Mismatch) as caught:
        output.read(_answer(output, {"x_a": "1", "y": 1}))
    assert caught.value.problems == ("$.x_a: is text, and a whole number is wanted", "$.y: is not asked for")


def _answer(output: Output, value: Any) -> str:
    """The text of a model that answers with the value."""
    return json.dumps({"value": value} if output.wrapped else value)
