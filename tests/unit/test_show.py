"""`runops show` and `runops runs` for people and programs."""

import json
from pathlib import Path
from typing import Any

import pytest

from runtime.cli import app
from runtime.runs import start

WORKFLOW = """
version: 1
name: Odd and even
inputs:
  numbers: {type: list, default: [1, 2, 3, 4, 5, 6, 7]}
  last: {type: integer, default: 2}
nodes:
  - id: each
    type: iterate
    over: "{{ inputs.numbers }}"
    as: number
    key: "n-{{ number }}"
    nodes:
      - {id: half, type: transform, expr: "{{ 10 // (number - 4) }}", on_error: continue}
  - {id: never, type: transform, expr: "{{ 1 }}", when: "{{ false }}"}
  - id: end
    type: group
    nodes:
      - {id: share, type: transform, expr: "{{ 10 // inputs.last }}"}
output: "{{ share }}"
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty store that the command uses too."""
    folder = tmp_path / ".runops"
    monkeypatch.setenv("RUNOPS_HOME", str(folder))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "odd.yaml").write_text(WORKFLOW)
    return folder


def ran(**inputs: Any) -> str:
    return start.run_workflow("odd.yaml", inputs).run


def printed(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> str:
    capsys.readouterr()
    assert app.run(list(arguments)) == code
    return capsys.readouterr().out


def test_show_is_the_tree_of_what_ran(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each step is below its block with status and value; successful loop items are counted, others shown."""
    ran()
    lines = printed(capsys, "show", "last").splitlines()
    assert [line.split("  transform")[0].split(": ")[0] for line in lines[3:]] == [
        "ok  each",
        "  ok  6 turns, shown one by one with --at each",
        "  ok  [#n-4]",
        "    tolerated  half",
        "        expression-failed",
        "          expression  {{ 10 // (number - 4) }}",
        "skipped  never",
        "ok  end",
        "  ok  share",
        "  output",
        "    5",
        "passed",
    ]
    assert "  = 5  " in lines[-4]


def test_a_transform_is_shown_with_its_expression(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A `transform` stands with the expression of the file, followed by its value, in the tree and alone."""
    ran()
    assert "  ok  share  transform  expr={{ 10 // inputs.last }}  = 5  " in printed(capsys, "show", "last")
    assert "\n    transform  expr={{ 10 // inputs.last }}  (read)\n" in printed(
        capsys, "show", "last", "--at", "end/share"
    )


def test_show_at_a_path_has_everything_below_it(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`--at` shows attempts, the whole value, and all items of a loop."""
    ran()
    text = printed(capsys, "show", "last", "--at", "each")
    assert [f"[#n-{number}]" in text for number in range(1, 8)] == [True] * 7
    one = printed(capsys, "show", "last", "--at", "each[#n-7]/half")
    assert one.splitlines()[0] == "each[#n-7]/half  ok"
    assert one.splitlines()[-2:] == ["  value", "    3"]


def test_a_step_that_is_not_there_names_the_nearest(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A mistyped path is a usage error with a suggestion."""
    ran()
    capsys.readouterr()
    assert app.run(["show", "last", "--at", "end/shar"]) == 2
    assert "did you mean `end/share`?" in capsys.readouterr().err


def test_a_failed_run_shows_its_error_and_the_next_command(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The failed step and its blocks are marked with the error, and the last line is the command to resume."""
    run = ran(last=0)
    text = printed(capsys, "show", run)
    assert "\nerror  end\n  error  share" in text
    assert text.splitlines()[-2:] == ["failed", f"  again  runops resume {run}"]
    found = json.loads(printed(capsys, "show", run, "--json"))
    assert (found["version"], found["state"], found["path"], found["open"]) == (1, "failed", "end/share", [])
    steps = {step["path"]: step for step in found["steps"]}
    assert steps["end/share"]["attempts"][0]["error"]["code"] == found["error"]["code"]
    assert steps["each[#n-7]/half"]["value"] == 3
    assert steps["each[#n-4]/half"]["status"] == "tolerated"


def test_a_part_of_an_id_names_a_run(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The beginning or the end of an id names a run, in any case; an ambiguous or unknown part is a usage error."""
    first, second = ran(), ran()
    assert second in printed(capsys, "show", second[-6:].lower())
    assert first in printed(capsys, "show", first)
    assert printed(capsys, "show", first[:4], code=2) == ""
    assert printed(capsys, "show", "ZZZZ", code=2) == ""


def test_a_damaged_log_is_named_by_file_and_line_and_harms_no_other(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`show` of a damaged log ends 2 with file and line; `runs` lists it as damaged and others normally."""
    broken, sound = ran(), ran()
    file = home / "conversations" / f"{broken}.jsonl"
    lines = file.read_bytes().split(b"\n")
    lines[2] = lines[2].replace(b"a", b"b", 1)
    file.write_bytes(b"\n".join(lines))
    capsys.readouterr()
    assert app.run(["show", broken]) == 2
    assert f"{file}:3" in capsys.readouterr().err.replace("\n", "")
    listed = {run["id"]: run["state"] for run in json.loads(printed(capsys, "runs", "--json"))["runs"]}
    assert listed == {broken: "damaged", sound: "passed"}
    table = printed(capsys, "runs").splitlines()
    assert table[0].split() == ["run", "state", "started", "took", "steps", "workflow"]
    assert f"{file}:3" in table[1]


def test_values_in_a_log_cannot_move_the_cursor(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Escape sequences and direction marks in a value and an input are escaped."""
    evil = "\x1b[2J\x1b]0;owned\x07 \u202etxet"
    Path("evil.yaml").write_text(
        "version: 1\nname: Evil\ninputs:\n  text: {type: string}\nnodes:\n"
        '  - {id: seen, type: transform, expr: "{{ inputs.text }}"}\n'
    )
    start.run_workflow("evil.yaml", {"text": evil})
    for arguments in (["show", "last"], ["show", "last", "--at", "seen"], ["runs"]):
        assert not set(printed(capsys, *arguments)) & {"\x1b", "\x07", "\u202e"}


HANDLED = """
version: 1
name: Handled
nodes:
  - id: clean
    type: handle
    attempts: 2
    try: [{id: half, type: transform, expr: "{{ 1 // 0 }}"}]
    catch: [{id: told, type: transform, expr: "{{ error.code }}"}]
    finally: [{id: swept, type: transform, expr: 1}]
"""


def test_the_blocks_of_a_handle_are_shown_below_it(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each try, the catch and the finally are separate steps, with their own steps below them."""
    (home.parent / "handled.yaml").write_text(HANDLED)
    start.run_workflow("handled.yaml")
    lines = printed(capsys, "show", "last").splitlines()
    shown = [line.split("  = ")[0].rstrip() for line in lines if line.lstrip().startswith(("ok", "error"))]
    assert [" ".join(line.split()[:2]) if line.strip() else "" for line in shown] == [
        "ok clean",
        "error try",
        "error half",
        "error try[2]",
        "error half",
        "ok catch",
        "ok told",
        "ok finally",
        "ok swept",
    ]
    depths = [len(line) - len(line.lstrip()) for line in shown]
    assert depths == [0, 2, 4, 2, 4, 2, 4, 2, 4]
