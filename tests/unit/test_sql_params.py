"""References in the SQL of a transform: read as parameters and tables where they can be nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from nodes.values import Json
from runtime.language import habits


def read(sql: str, **fields: Json) -> tuple[Any, list[str]]:
    node: dict[str, Json] = {"id": "a", "type": "transform", **fields, "sql": sql}
    now, said = habits.read({"version": 1, "nodes": [node]})
    return now["nodes"], said


@pytest.mark.parametrize(
    ("sql", "meant", "params"),
    [
        ("FROM rows WHERE name = '{{ inputs.text }}'", "FROM rows WHERE name = $text", {"text": "{{ inputs.text }}"}),
        ("FROM rows WHERE name = {{ inputs.text }}", "FROM rows WHERE name = $text", {"text": "{{ inputs.text }}"}),
        ("FROM r WHERE n LIKE '%{{ x }}''s%'", "FROM r WHERE n LIKE ('%' || $x || '''s%')", {"x": "{{ x }}"}),
        ("FROM {{ rows }} LIMIT {{ rows | length }}", "FROM rows LIMIT $rows", {"rows": "{{ rows | length }}"}),
        ("SELECT '{{ a.x }}', '{{ b.x }}', {{ a.x }}", "SELECT $x, $x_2, $x", {"x": "{{ a.x }}", "x_2": "{{ b.x }}"}),
        ("SELECT '\"', {{ 'x}}' }}", "SELECT '\"', $value", {"value": "{{ 'x}}' }}"}),
    ],
)
def test_a_reference_in_sql_becomes_a_parameter_or_a_table(sql: str, meant: str, params: dict[str, Json]) -> None:
    """A reference is a parameter, within a text a part of it, after FROM a table; that is told."""
    [node], said = read(sql)
    assert (node["sql"], node["params"]) == (meant, params)
    assert "is read as `sql: " in said[0]
    assert said[1].startswith("`a`: `params: ")


def test_parameters_that_are_given_keep_their_names() -> None:
    """A new parameter has a name that neither `params` nor the statement uses; a reference that is one already is that one."""
    params: Json = {"day": "{{ inputs.day }}", "text": 1}
    [node], _said = read("SELECT $text, '{{ inputs.text }}', '{{ inputs.day }}'", params=params)
    assert node["sql"] == "SELECT $text, $text_2, $day"
    assert node["params"] == {"day": "{{ inputs.day }}", "text": 1, "text_2": "{{ inputs.text }}"}


@pytest.mark.parametrize(
    "sql",
    [
        "FROM rows ORDER BY {{ inputs.text }}",
        "SELECT t_{{ inputs.text }} FROM rows",
        "SELECT {{ inputs.text }}.x FROM rows",
        'SELECT "{{ inputs.text }}" FROM rows',
        "FROM {{ rows | list }}",
        "SELECT 1 -- {{ inputs.text }}",
        "SELECT {{ inputs.text",
        "FROM rows WHERE day = date '{{ inputs.day }}'",
        "FROM rows WHERE n IN ({{ numbers }})",
    ],
)
def test_a_reference_in_sql_that_may_be_a_name_stays(sql: str) -> None:
    """Where a reference may stand for a column, or cannot be read, nothing is made of it."""
    [node], said = read(sql)
    assert (node["sql"], said) == (sql, [])
