"""Cases of files and rows, and their selection."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from nodes.errors import UsageError
from runtime.batch import cases, selection
from runtime.language import reader
from runtime.runs import collect

NODES = "nodes: [{id: a, type: transform, expr: 1}]\n"


def found(name: str, head: str = "") -> collect.Found:
    return collect.Found(Path(name), reader.parse(f"version: 1\n{head}{NODES}", name))


PAY = found(
    "flows/pay.yaml", "name: Pay orders\ntags: [smoke, slow]\ninputs: {n: {type: integer}, who: {type: string}}\n"
)
TEA = found("flows/tea.yaml", "tags: [Smoke]\ninputs: {who: {type: string, default: me}}\n")
SUM = found("flows/sum.yaml")
BAD = collect.Found(Path("flows/bad.yaml"), None, UsageError("workflow-invalid", "no"))


def ids(outcomes: Any) -> list[str]:
    return [each.case.id for each in outcomes]


def test_a_file_is_a_case_for_each_row() -> None:
    """Rows have their `case` or number as label, in order, and a file gets the columns that it declares. One without any runs once."""
    table = cases.rows(Path("r.csv"), [{"case": "one", "n": "1", "who": "a"}, {"case": "", "n": "2", "who": "b"}])
    outcomes = cases.of([PAY, SUM, TEA, BAD], table)
    assert ids(outcomes) == [
        "flows/pay.yaml[one]", "flows/pay.yaml[2]", "flows/sum.yaml", "flows/tea.yaml[one]", "flows/tea.yaml[2]", "flows/bad.yaml",
    ]  # fmt: skip
    assert [dict(each.case.inputs) for each in outcomes] == [
        {"n": "1", "who": "a"}, {"n": "2", "who": "b"}, {}, {"who": "a"}, {"who": "b"}, {},
    ]  # fmt: skip
    assert outcomes[0].name == "Pay orders [one]"
    assert outcomes[-1].refused is BAD.error


def test_a_column_case_that_is_an_input_is_both() -> None:
    one = found("x.yaml", "inputs: {case: {type: string}}\n")
    (outcome,) = cases.of([one], cases.rows(Path("r.json"), [{"case": "first"}]))
    assert (outcome.case.row, dict(outcome.case.inputs)) == ("first", {"case": "first"})


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ({"n": 1}, "no list of maps"),
        ("n", "no list of maps"),
        ([1], "no list of maps"),
        ([], "no row"),
        ([{"case": "a"}, {"case": "a"}], "two rows are called 'a'; the second is row 2"),
        ([{"n": 1}, {"case": 1}], "two rows are called '1'"),
        ([{"case": "a\nb"}], "one line of text"),
    ],
)
def test_a_table_without_usable_rows_is_refused(content: Any, said: str) -> None:
    with pytest.raises(UsageError, match=said) as caught:
        cases.rows(Path("r.json"), content)
    assert caught.value.code == "rows-invalid"


def test_a_column_that_no_file_declares_is_refused() -> None:
    """The nearest input is named; the label needs no input."""
    files = [each.loaded for each in (PAY, TEA) if each.loaded is not None]
    cases.rows(Path("r"), [{"case": "a", "n": 1}]).refuse_unknown(files)
    with pytest.raises(UsageError, match="column `whom`") as caught:
        cases.rows(Path("r"), [{"whom": "a"}]).refuse_unknown(files)
    assert (caught.value.code, caught.value.fix) == ("unknown-input", "did you mean `who`?")


@pytest.mark.parametrize(
    ("expression", "tags", "kept"),
    [
        (None, [], ["pay", "tea", "sum"]),
        (None, ["smoke"], ["pay"]),
        (None, ["smoke", "Smoke"], ["pay", "tea"]),
        ("smoke", [], ["pay", "tea"]),
        ("smoke and not orders", [], ["tea"]),
        ("flows/s or PAY", [], ["pay", "sum"]),
        ("orders", ["slow"], ["pay"]),
    ],
)
def test_cases_are_selected_by_words_and_tags(expression: str | None, tags: list[str], kept: list[str]) -> None:
    """Words match names, paths and tags in any case of letters, tags match exactly. A file that cannot be read always stays."""
    outcomes = cases.of([PAY, TEA, SUM, BAD])
    selected = selection.Selection(expression, tags).of(outcomes)
    assert ids(selected) == [*(f"flows/{name}.yaml" for name in kept), "flows/bad.yaml"]


def test_rows_are_selected_by_their_label() -> None:
    table = cases.rows(Path("r"), [{"case": "Porto", "who": "a"}, {"case": "Lisbon", "who": "b"}])
    assert ids(selection.Selection("porto").of(cases.of([TEA], table))) == ["flows/tea.yaml[Porto]"]


@pytest.mark.parametrize(
    ("expression", "tags", "fix"),
    [
        (None, ["smok"], "did you mean `smoke`?"),
        (None, ["x"], "the tags are Smoke, slow, smoke"),
        ("none", [], "`--list` alone lists all cases"),
    ],
)
def test_a_selection_of_nothing_is_refused(expression: str | None, tags: list[str], fix: str) -> None:
    """A job that runs nothing must not pass."""
    with pytest.raises(UsageError, match="none of 3 cases is selected by") as caught:
        selection.Selection(expression, tags).of(cases.of([PAY, TEA, SUM]))
    assert (caught.value.code, caught.value.fix) == ("no-case", fix)
