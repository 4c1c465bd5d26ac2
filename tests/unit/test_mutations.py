"""The properties of windows find faults in the builder: one drawn at each run, all of them by `make mutations`."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest

from tests import mutations
from tests.mutations import __main__ as command

BUILDER = ("window", "pieces", "framing", "summaries")
"""What the faults are put into."""


def test_every_fault_fits_the_code(tmp_path: Path) -> None:
    """Ten at least, and each can be put into the builder as it is now: one that cannot proves nothing any more."""
    faults = mutations.faults()
    assert len(faults) >= 10
    assert len({each.mistake for each in faults}) == len(faults)
    for fault in faults:
        there = tmp_path / fault.name / "runtime"
        there.mkdir(parents=True)
        for name in BUILDER:
            shutil.copy(mutations.ROOT / "runtime" / f"{name}.py", there)
        mutations.apply(fault, there.parent)
        changed = [
            name
            for name in BUILDER
            if (there / f"{name}.py").read_bytes() != (mutations.ROOT / "runtime" / f"{name}.py").read_bytes()
        ]
        assert len(changed) == 1


@pytest.mark.drawn(1, of="mutations")
def test_a_fault_is_found(tmp_path: Path) -> None:
    """With it in a copy of the code each property fails that the fault names."""
    fault = random.choice(mutations.faults())
    folder = mutations.copy(tmp_path / fault.name)
    mutations.apply(fault, folder)
    assert mutations.failing(folder, fault.finders) == {*fault.finders}, fault.name


@pytest.mark.drawn(1, of="mutations")
def test_what_is_no_fault_is_not_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The command fails where a change of the builder goes unseen, and says which."""
    word = '"""How large something is in a request: an upper bound of its tokens."""'
    lines = (mutations.ROOT / "runtime" / "window.py").read_text(encoding="utf-8").splitlines()
    number = next(number for number, line in enumerate(lines, 1) if word in line)
    finder = "test_the_newest_word_is_told_whole"
    head = (
        f"mistake: other words of no weight\nfound by: {finder}\n\n--- a/runtime/window.py\n+++ b/runtime/window.py\n"
    )
    told = [lines[number - 2], f"-{lines[number - 1]}", f"+{lines[number - 1][:-3]} Yes.{word[-3:]}", lines[number]]
    hunk = "\n".join(f" {line}" if line[:1] not in ("-", "+") else line for line in told)
    (tmp_path / "01_no_fault.patch").write_text(f"{head}@@ -{number - 1},3 +{number - 1},3 @@\n{hunk}\n")
    monkeypatch.setattr(mutations, "WINDOW", tmp_path)
    assert command.main([]) == 1
    assert "MISSED  01_no_fault: other words of no weight\n" in capsys.readouterr().out


@pytest.mark.parametrize("head", ["", "mistake: one\n", "found by: one\n"])
def test_a_fault_says_what_it_is_and_what_finds_it(tmp_path: Path, head: str) -> None:
    """A patch that does not is none."""
    patch = tmp_path / "01_fault.patch"
    patch.write_text(f"{head}\n--- a/runtime/window.py\n+++ b/runtime/window.py\n")
    with pytest.raises(ValueError, match="does not say"):
        mutations.read(patch)
