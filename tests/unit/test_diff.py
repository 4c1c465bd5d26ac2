"""`runops diff`: one line for each difference of two runs, and the last green run for one."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from runtime.cli import app
from runtime.report import difference_text
from runtime.report.parts import DifferenceReport

WORKFLOW = """
version: 1
name: Shares
inputs:
  over: {type: list, default: [1, 2, 3]}
  by: {type: integer, default: 2}
nodes:
  - id: each
    type: iterate
    over: "{{ inputs.over }}"
    as: number
    key: "{{ number }}"
    nodes: [{id: half, type: transform, expr: "{{ number / inputs.by }}"}]
  - {id: last, type: transform, expr: "{{ inputs.over | length }}"}
"""


@pytest.fixture
def printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Runs a command in an empty home beside a workflow; returns what it printed."""
    monkeypatch.setenv("RUNOPS_HOME", str(tmp_path / ".runops"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "shares.yaml").write_text(WORKFLOW)

    def run(*arguments: str, code: int = 0) -> str:
        capsys.readouterr()
        assert app.run(list(arguments)) == code
        out, err = capsys.readouterr()
        return err if code == 2 else out

    return run


def begun(printed: Callable[..., str], *inputs: str, code: int = 0) -> str:
    given = [each for pair in inputs for each in ("-i", pair)]
    return json.loads(printed("run", "shares.yaml", *given, "--json", "--quiet", code=code))["runs"][0]["run"]


def lines(text: str) -> list[str]:
    """The lines below the two heads, with single spaces."""
    return [" ".join(line.split()) for line in text.splitlines()[2:]]


def test_two_runs_are_compared_line_by_line(printed: Callable[..., str]) -> None:
    """Each difference is a line with both sides; the exit code tells that there are some only if asked."""
    one, other = begun(printed), begun(printed, "by=0", code=1)
    text = printed("diff", one, other)
    assert text.splitlines()[0].startswith(f"-  {one}  passed")
    assert text.splitlines()[1].startswith(f"+  {other}  failed")
    found = lines(text)
    assert found[:2] == ["run inputs by 2 → 0", "run status passed → failed"]
    assert "each[#1]/half status ok → error" in found
    assert any(line.startswith("each[#1]/half error nothing → expression-failed: ") for line in found)
    assert found[-3:] == [
        "each[#2] missing ok (only the first run has it)",
        "each[#3] missing ok (only the first run has it)",
        "last missing ok (only the first run has it)",
    ]
    assert lines(printed("diff", one, "last", "--at", "each[#2]/half")) == [
        "each[#2] missing ok (only the first run has it)"
    ]
    assert printed("diff", one, other, "--exit-code", code=1) == text
    assert lines(printed("diff", one, one, "--exit-code")) == ["no difference"]
    found = json.loads(printed("diff", one, other, "--json"))
    assert (found["before"], found["after"], found["differences"][0]["within"]) == (one, other, "by")


def test_one_run_is_compared_with_the_last_green_one_of_its_case(printed: Callable[..., str], tmp_path: Path) -> None:
    """That is the last one before it that passed, of the same file with the same inputs: not of another row, not a later one."""
    begun(printed)
    green = begun(printed)
    begun(printed, "by=4")
    (tmp_path / "shares.yaml").write_text(WORKFLOW.replace("number / inputs.by", "number // 0"))
    red = begun(printed, code=1)
    (tmp_path / "shares.yaml").write_text(WORKFLOW)
    later = begun(printed)
    assert printed("diff", red) == printed("diff", green, red)
    assert lines(printed("diff", red))[0].startswith("run file shares.yaml text ")
    assert printed("diff", "last") == printed("diff", green, later)
    alone = begun(printed, "by=9")
    said = printed("diff", alone, code=2)
    assert "error[nothing-to-compare]" in said
    assert "runops runs" in said
    assert "did you mean `each[#1]/half`" in printed("diff", green, red, "--at", "each[#1]/halve", code=2)


def test_a_long_value_shows_the_part_that_differs() -> None:
    """A row is short: of long texts the part around the first difference, of many missing steps the first ones."""
    one, other = ("x" * 300 + letter + "y" * 300 for letter in "ab")
    row = difference_text.rows([DifferenceReport(path="s", what="value", within="a", before=one, after=other)])[0]
    assert row[:2] == ["s", "value a"]
    before, after = row[2].split(difference_text.ARROW)
    assert len(before) == len(after) == difference_text.LONGEST
    assert before.startswith("…xx")
    assert ("xay" in before, "xby" in after) == (True, True)
    missing = [DifferenceReport(path=f"s{number}", what="missing", before="ok") for number in range(20)]
    assert difference_text.rows(missing)[-1] == ["…", "missing", "15 more steps (only the first run has it)"]
    assert len(difference_text.rows(missing[:6])) == 6


def test_a_row_has_no_control_characters() -> None:
    """What a page says cannot move the cursor."""
    escape = DifferenceReport(
        path="a\x1b[2Jb", what="error", before={"code": "c", "message": "m\x1b[1m\nn"}, after=None
    )
    assert not any("\x1b" in cell or "\n" in cell for cell in difference_text.rows([escape])[0])
