"""SQL of transforms, checked without a run: one SELECT over tables in scope."""

from __future__ import annotations

import pytest

from runtime.language import reader
from runtime.language.checks import sql

FLOW = """\
version: 1
inputs: {{prices: {{type: list}}, password: {{type: string}}}}
nodes:
  - {{id: orders, type: transform, expr: "{{{{ [{{'total': 1}}] }}}}"}}
  - id: each
    type: iterate
    over: "{{{{ orders }}}}"
    as: order
    nodes:
      - {{id: parts, type: transform, expr: "{{{{ [{{'n': 1}}] }}}}"}}
      - {{id: inside, type: transform, sql: "{inside}"}}
  - {{id: total, type: transform, sql: "{after}", params: {{least: 1}}}}
"""


def problems(inside: str = "SELECT 1 AS a", after: str = "SELECT 1 AS a") -> list[tuple[str, str, str]]:
    """Code, message and first fix of each mistake in the file."""
    loaded = reader.parse(FLOW.format(inside=inside, after=after), "flow.yaml")
    return [(each.code, each.message, each.help[0]) for each in sql.check(loaded)]


@pytest.mark.parametrize(
    "after",
    [
        "SELECT * FROM orders JOIN inputs.prices USING (total) WHERE total > $least",
        "WITH big AS (SELECT * FROM Orders) SELECT * FROM big",
        "SELECT * FROM generate_series(1, 3)",
        "SELECT * FROM vars.kept",
    ],
)
def test_a_select_over_known_tables_is_valid(after: str) -> None:
    """Tables are earlier nodes, inputs, variables, common table expressions and table functions."""
    assert problems(after=after) == []


def test_a_loop_sees_its_item_and_its_nodes() -> None:
    """In a loop its item and earlier nodes are tables; after the loop they are not."""
    assert problems(inside="SELECT * FROM parts, order_loop.things, orders") == []
    assert [each[:2] for each in problems(after="SELECT * FROM parts")] == [
        ("sql-unknown-table", "there is no table `parts` here")
    ]


@pytest.mark.parametrize(
    ("after", "code", "message", "fix"),
    [
        ("SELECT 1; SELECT 2", "sql-refused", "2 statements", "one SELECT"),
        ("DROP TABLE orders", "sql-refused", "something else", "one SELECT"),
        ("SELECT * FROM read_csv('x')", "sql-refused", "`read_csv`", "list of maps"),
        ("SELEC 1", "sql-failed", "syntax error", "line 1, column 1"),
        ("SELECT 'é' AS a GROP BY a", "sql-failed", "GROP", "line 1, column 17"),
        ("SELECT * FROM ordrs", "sql-unknown-table", "`ordrs`", "did you mean `orders`?"),
        ("SELECT * FROM prices", "sql-unknown-table", "`prices`", "did you mean `inputs.prices`?"),
        ("SELECT * FROM inputs.password", "sql-not-a-table", "`string`", "make maps of it"),
        ("SELECT * FROM total", "sql-unknown-table", "`total`", "name a list of maps"),
        ("SELECT $most AS a", "sql-failed", "`most`", "give each"),
    ],
)
def test_a_mistake_is_reported_with_its_fix(after: str, code: str, message: str, fix: str) -> None:
    """Several statements, a statement that is no SELECT, wrong syntax, and unknown tables and params are refused."""
    ((found, text, help_),) = problems(after=after)
    assert found == code
    assert message in text
    assert fix in help_


def test_each_mistake_has_its_place() -> None:
    """The mistake has its line and column, and lists the possible tables: no input of another type than `list`."""
    loaded = reader.parse(FLOW.format(inside="SELECT 1 AS a", after="SELECT 1 AS a GROP BY a"), "flow.yaml")
    (found,) = sql.check(loaded)
    assert "flow.yaml:12:54" in found.render()
    assert found.help[1] == "names that may be tables here: orders, each, inputs.prices"
