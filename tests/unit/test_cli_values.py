"""Values from the command line and from files."""

from __future__ import annotations

from pathlib import Path

import pytest

from nodes.errors import UsageError
from nodes.values import Json
from runtime.cli import values
from runtime.language import reader

FLOW = "version: 1\ninputs: {%s}\nnodes: [{id: a, type: transform, expr: 1}]\n"


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("a.json", '{"n": [1, 2.5, "x"], "none": null}', {"n": [1, 2.5, "x"], "none": None}),
        ("a.JSON", '\ufeff"\\ud83d\\ude00\\/"', "😀/"),
        ("a.yaml", "on: no\nn: 012\n", {"on": "no", "n": "012"}),
        ("a.yml", "- 1\n- 2\n", [1, 2]),
        ("a.csv", 'no,name\r\n1,"Müller, ""X"""\r\n\r\n2,\r\n', [{"no": "1", "name": 'Müller, "X"'}, {"no": "2", "name": ""}]),
        ("empty.csv", "", []),
        ("a.txt", "two\nlines\n", "two\nlines\n"),
        ("none", '{"a": 1}', '{"a": 1}'),
    ],
)  # fmt: skip
def test_the_suffix_sets_the_format_of_a_file(tmp_path: Path, name: str, text: str, value: Json) -> None:
    """JSON, YAML as in a workflow, CSV as a list of maps of text, and any other file as its text."""
    file = tmp_path / name
    file.write_text(text, newline="")
    assert values.inputs([f"x=@{file}"]).values == {"x": value}


@pytest.mark.parametrize(
    ("name", "data", "place"),
    [
        ("a.json", b'{"a": 1,\n  b}', "a.json:2:3"),
        ("a.json", b'{"a": NaN}', "a.json:"),
        ("a.json", b"[" * 100_000, "a.json:"),
        ("a.yaml", b"a: 1\nb: [\n", "a.yaml:3:1"),
        ("a.csv", b"a,b\n1,2\n1,2,3\n", "a.csv:3"),
        ("a.csv", b"a,a\n", "a.csv:1"),
        ("a.csv", b'a\n"x', "a.csv:2"),
        ("a.txt", b"ok\n\xff", "a.txt:2"),
        ("list.yaml", b"- 1\n", "list.yaml"),
    ],
)
def test_a_file_that_cannot_be_read_names_the_place(tmp_path: Path, name: str, data: bytes, place: str) -> None:
    """The error has the line, and the column if there is one."""
    file = tmp_path / name
    file.write_bytes(data)
    with pytest.raises(UsageError) as caught:
        values.inputs([], file) if name == "list.yaml" else values.inputs([f"x=@{file}"])
    assert caught.value.code == "input-file-invalid"
    assert f"{tmp_path}/{place}" in caught.value.message
    assert caught.value.fix


def test_a_missing_file_is_answered_with_the_nearest(tmp_path: Path) -> None:
    """A misspelt name gets the nearest existing one, and a folder its reason."""
    (tmp_path / "prices.json").write_text("1")
    with pytest.raises(UsageError, match="there is no file") as caught:
        values.inputs([f"x=@{tmp_path}/price.json"])
    assert caught.value.fix == f"did you mean {tmp_path}/prices.json?"
    with pytest.raises(UsageError, match="cannot be read: Is a directory"):
        values.inputs([f"x=@{tmp_path}"])


def test_a_text_wins_over_the_file_and_two_at_signs_are_one(tmp_path: Path) -> None:
    """The command line overrides the file, and `@@x` is the text `@x`."""
    file = tmp_path / "inputs.yaml"
    file.write_text("a: 1\nb: {c: 2}\n")
    found = values.inputs(["a=@@me", "d=x=y"], file)
    assert found.values == {"a": "@me", "b": {"c": 2}, "d": "x=y"}
    assert found.places == {"b": f"{file}:2:1"}


@pytest.mark.parametrize("pair", ["a", "=1", ""])
def test_a_pair_without_a_name_is_refused(pair: str) -> None:
    """The fix shows the form of an input."""
    with pytest.raises(UsageError) as caught:
        values.inputs([pair])
    assert (caught.value.code, "NAME=@FILE" in str(caught.value.fix)) == ("bad-input", True)


def test_an_input_goes_to_the_files_that_declare_it(tmp_path: Path) -> None:
    """An input that no file declares is refused with its place and the nearest name."""
    one = reader.parse(FLOW % "user: {type: string}, base_url: {type: string}", "one.yaml")
    two = reader.parse(FLOW % "base_url: {type: string}", "two.yaml")
    found = values.inputs(["user=me", "base_url=x"])
    found.refuse_unknown([one, two])
    assert [found.of(each) for each in (one, two)] == [{"user": "me", "base_url": "x"}, {"base_url": "x"}]
    texts = {"in.yaml": ("user: me\nbase_ulr: x\n", ":2:1"), "in.json": ('{"user": "me", "base_ulr": "x"}', "")}
    for name, (text, place) in texts.items():
        (tmp_path / name).write_text(text)
        with pytest.raises(UsageError) as caught:
            values.inputs([], tmp_path / name).refuse_unknown([one, two])
        assert caught.value.code == "unknown-input"
        assert caught.value.message.startswith(f"{tmp_path}/{name}{place}: none of the 2 workflows has")
        assert caught.value.fix == "did you mean `base_url`?"


def test_a_pin_is_read_as_in_a_workflow_file() -> None:
    """Numbers, lists and maps are read as YAML; invalid text is refused, not guessed."""
    texts = ["a=12", "b=no", "c=[1, {x: y}]", 'd={"n": 1.5}', "e=two words", "f=", "g='12'"]
    assert values.pins(texts) == {
        "a": 12, "b": "no", "c": [1, {"x": "y"}], "d": {"n": 1.5}, "e": "two words", "f": "", "g": "12",
    }  # fmt: skip
    with pytest.raises(UsageError) as caught:
        values.pins(["a=x: y: z"])
    assert (caught.value.code, caught.value.exit) == ("bad-input", 2)
