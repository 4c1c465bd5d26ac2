"""`transform`: exactly one way to make a value, and the files that it writes."""

import csv
import io
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodes import csv_text
from runtime.language import reader
from runtime.language.diagnostics import Diagnostic, WorkflowInvalid
from tests.rig import Rig


def problem(fields: str) -> Diagnostic:
    """The one mistake of a transform with these fields."""
    with pytest.raises(WorkflowInvalid) as caught:
        reader.parse(f"version: 1\nnodes:\n  - {{id: made, type: transform, {fields}}}\n", "test.yaml")
    assert len(caught.value.diagnostics) == 1
    return caught.value.diagnostics[0]


@pytest.mark.parametrize(
    ("fields", "code", "said"),
    [
        ("description: x", "invalid", "exactly one of"),
        ("expr: 1, sql: SELECT 1", "invalid", "exactly one of"),
        ("expr: 1, params: {a: 1}", "invalid", "`params` goes with `sql`"),
        ("sql: SELECT 1, args: {a: 1}", "invalid", "`args` goes with `python`"),
        ("sql: ''", "out-of-bounds", "must not be empty"),
        ("python: os.system", "invalid", "module:function"),
        ("python: 'os:path.join'", "invalid", "module:function"),
        ("expr: 1, save_as: rows.xlsx", "invalid", ".csv, .json, .txt"),
    ],
)
def test_a_transform_has_one_way_and_matching_fields(fields: str, code: str, said: str) -> None:
    """Conflicting or missing fields are reported when the file is read."""
    found = problem(fields)
    assert found.code == code
    assert said in found.message


def test_sql_takes_no_references() -> None:
    """References in a statement are refused with a fix that names params."""
    found = problem("""sql: "SELECT * FROM orders WHERE name = '{{ inputs.name }}'" """)
    assert found.code == "no-reference-here"
    assert "params" in found.help[0]


WORKFLOW = """
version: 1
inputs: {ending: {type: string}}
nodes:
  - {id: rows, type: transform, expr: "{{ [{'a': 1, 'b': 'x'}, {'c': none, 'a': 2}] }}"}
  - {id: kept, type: transform, expr: "{{ rows }}", save_as: "rows.{{ inputs.ending }}"}
output: "{{ kept }}"
"""


@pytest.mark.parametrize(("ending", "content"), [("csv", b"a,b,c\r\n1,x,\r\n2,,\r\n"), ("json", None)])
async def test_a_value_is_saved_as_a_file(ending: str, content: bytes | None, tmp_path: Path) -> None:
    """The node's value describes the file: name, path, size and hash."""
    ended = await Rig(tmp_path, WORKFLOW, inputs={"ending": ending}).start()
    kept = ended.output
    data = Path(kept["path"]).read_bytes()
    assert (kept["name"], kept["size"]) == (f"rows.{ending}", len(data))
    assert data == content or json.loads(data) == [{"a": 1, "b": "x"}, {"c": None, "a": 2}]


@pytest.mark.parametrize(("ending", "code"), [("txt", "value-mismatch"), ("pdf", "bad-file-name")])
async def test_a_value_that_a_file_cannot_hold_fails_the_step(ending: str, code: str, tmp_path: Path) -> None:
    """Only text is written to .txt, and an extension from a reference is checked too."""
    ended = await Rig(tmp_path, WORKFLOW, inputs={"ending": ending}).start()
    assert ended.error is not None
    assert ended.error["code"] == code


@given(
    st.lists(
        st.dictionaries(
            st.text(min_size=1, max_size=3).filter(lambda text: not text.startswith("\ufeff")),
            st.text(max_size=6).filter(lambda text: "\0" not in text),
            max_size=3,
        ),
        max_size=4,
    )
)
def test_csv_is_read_back_as_it_was(rows: list[dict[str, str]]) -> None:
    """Quotes, commas and line breaks survive; a field missing in a row is an empty cell; a leading byte-order mark is dropped."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    found = list(csv.reader(io.StringIO(csv_text.written(rows), newline="")))
    assert found == ([names, *([row.get(name, "") for name in names] for row in rows)] if names else [])
    assert csv_text.read(csv_text.written(rows)) == (
        [{name: row.get(name, "") for name in names} for row in rows] if names else []
    )


@pytest.mark.parametrize("value", [{"a": 1}, [1], "text", None])
def test_csv_holds_a_list_of_maps_only(value: object) -> None:
    """Any value other than a list of maps is refused."""
    with pytest.raises(csv_text.NoSheet, match="list of maps"):
        csv_text.written(value)
