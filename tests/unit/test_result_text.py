"""The output of a run, as printed for people."""

from __future__ import annotations

import pytest
import yaml

from nodes.values import Json
from runtime.display import facts, text


@pytest.mark.parametrize(
    "output",
    [
        None,
        "Lindenstraße 8",
        '- main:\n  - button "Go on"',
        {"seen": "one\ntwo\n", "more": ["a\n\n", "  indented\nlines", "trailing \nblank", "tab\there\n", "\n"]},
        {"number": "1001", "total": 12.5, "paid": False, "none": [], "colon": "a: b"},
    ],
)
def test_a_program_reads_what_a_person_sees(output: Json) -> None:
    """The text is YAML of the exact value, also with texts of several lines."""
    assert yaml.safe_load(f"{facts.result_text(output)}\n") == output


def test_lines_stay_lines() -> None:
    """A text of several lines is printed as lines, not as one line with escapes."""
    assert facts.result_text({"page": "- main:\n  - button"}) == "page: |-\n  - main:\n    - button"


def test_an_error_in_evidence_is_a_sentence() -> None:
    """An error in evidence shows its message and code, not its field names."""
    error = {"code": "rule-failed", "message": "no text matches", "who": "site", "phase": "after"}
    assert text.value_text(error) == "no text matches (rule-failed)"
    assert text.value_text([error, "x"]) == "no text matches (rule-failed), x"
    assert text.value_text({"code": 1, "message": "m"}) == "code=1  message=m"


def test_a_long_list_of_evidence_has_a_line_for_each_item() -> None:
    """A long list has a line for each item; a short list and a list in a map stay on one line."""
    long = [f"role=button name=Pay within role=row has_text={number}" for number in (1, 2, 3)]
    assert facts.facts({"candidates": long, "seen": ["a", "b"]}) == [
        "  seen        a, b",
        f"  candidates  {long[0]}",
        f"              {long[1]}",
        f"              {long[2]}",
    ]
