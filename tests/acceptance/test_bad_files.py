"""Invalid files, as processes: each mistake is reported with a stable code, its place and a fix, and nothing starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.acceptance import bad_files
from tests.command import Project


@pytest.mark.drawn(share=0.4)
@pytest.mark.parametrize("case", bad_files.ALL, ids=lambda case: case.name)
def test_a_mistake_is_reported_with_its_place_and_its_fix(case: bad_files.BadFile, tmp_path: Path) -> None:
    """A mistake exits 2 with one error: its code, line, column and fix. No traceback appears, stdout is empty, and no run begins."""
    project = Project(tmp_path)
    (tmp_path / "pyproject.toml").touch()
    for name, content in case.files.items():
        (tmp_path / name).write_bytes(content)
    done = project.here("run", "bad.yaml")
    said = done.stderr.splitlines()
    places = [line.partition("--> ")[2] for line in said if "--> " in line]
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    assert [line.partition("]")[0] for line in said if line.startswith("error[")] == [f"error[{case.code}"], done.stderr
    assert places == [case.place], done.stderr
    assert case.fix in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / ".runops").exists()


def test_the_names_of_the_cases_differ() -> None:
    """Case names are unique."""
    names = [case.name for case in bad_files.ALL]
    assert len(names) == len(set(names))
