"""Written workflow files read back as the data they were made of."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runtime.language import writer, yaml_text
from runtime.language.expressions import references
from tests import breadth
from tests.pages import ROOT

TEXTS = st.text(max_size=30) | st.sampled_from(
    [
        "{{ a }}",
        "{% x",
        "{#",
        "on",
        "No",
        "a\nb",
        "a\n\nb\n",
        "a\n b \n",
        "1e3",
        "012",
        "1:30",
        " x",
        "null",
        "#a",
        "a: b",
        "- x",
    ]
)
VALUES = st.recursive(
    TEXTS | st.integers(-(2**60), 2**60) | st.booleans() | st.none(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)


class Clock:
    """A clock that must not be used."""

    def now(self) -> str:
        """Never called."""
        raise AssertionError

    def uuid(self) -> str:
        """Never called."""
        raise AssertionError

    def totp(self, secret: str) -> str:
        """Never called."""
        raise AssertionError


@settings(max_examples=breadth.of(100, 200))
@given(st.dictionaries(st.sampled_from(["nodes", "name", "confirm", "x y", "on"]), VALUES, min_size=1))
def test_written_data_is_read_back(data: dict[str, Any]) -> None:
    """Any data written as a workflow file is read back unchanged."""
    read = yaml_text.read("written.yaml", writer.text(data))
    assert read.problems == []
    assert read.data == data


@given(st.text(alphabet="{}%#a '\"-\\\n", max_size=12))
def test_text_that_looks_like_a_reference_is_written_literally(text: str) -> None:
    """A literal renders to the original text."""
    written = writer.literal(text)
    if references.holds_reference(written):
        assert references.compile(written).render({}, Clock()) == text
    else:
        assert written == text


def test_a_comment_is_a_separate_line() -> None:
    """A comment is written as separate lines, and is not part of the data."""
    written = writer.text({"nodes": [{"id": "a"}, writer.Comment("left out:\n- {id: b}")]})
    assert "  # left out:\n  # - {id: b}\n" in written
    assert yaml_text.read("written.yaml", written).data == {"nodes": [{"id": "a"}]}


@pytest.mark.parametrize("file", sorted((ROOT / "workflows").glob("**/*.yaml")), ids=lambda file: file.name)
def test_the_examples_are_read_back(file: Any) -> None:
    """Every example workflow is written and read back unchanged."""
    data: Any = yaml_text.read(file.name, file.read_text(encoding="utf-8")).data
    assert yaml_text.read(file.name, writer.text(data)).data == data
