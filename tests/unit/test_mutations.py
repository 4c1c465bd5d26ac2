"""The tests find faults that are put into the code: `make test-all` draws one, `make mutations` tries all."""

from __future__ import annotations

import collections
import random
import shutil
from pathlib import Path

import pytest

from tests import mutations
from tests.mutations import __main__ as command


def test_every_fault_fits_the_code(tmp_path: Path) -> None:
    """At least ten faults of windows and four of builds exist, and each applies to the current code; otherwise it proves nothing."""
    faults = mutations.faults()
    of = collections.Counter(each.patch.parent.name for each in faults)
    assert of["window"] >= 10
    assert of["building"] >= 4
    assert len({each.mistake for each in faults}) == len({each.name for each in faults}) == len(faults)
    for fault in faults:
        there = tmp_path / fault.name / fault.file
        there.parent.mkdir(parents=True)
        shutil.copy(mutations.ROOT / fault.file, there)
        mutations.apply(fault, tmp_path / fault.name)
        assert there.read_bytes() != (mutations.ROOT / fault.file).read_bytes()


@pytest.mark.drawn(0)
def test_a_fault_is_found(tmp_path: Path, chance: random.Random) -> None:
    """In a copy of the code with the fault, each test that the fault names fails."""
    fault = chance.choice(mutations.faults())
    folder = mutations.copy(tmp_path / fault.name)
    mutations.apply(fault, folder)
    assert mutations.failing(folder, fault.finders) == {*fault.finders}, fault.name


@pytest.mark.drawn(0)
def test_a_change_that_no_test_notices_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The command fails if no test notices a change of the code, and names the change."""
    file, finder = "director/proving/proofs.py", "test_words_count_every_run"
    first, *after = (mutations.ROOT / file).read_text(encoding="utf-8").splitlines()[:3]
    hunk = "\n".join([f"-{first}", f"+{first[:-3]} Yes.{first[-3:]}", *(f" {line}" for line in after)])
    head = f"mistake: other words of no weight\nfound by: {finder}\n\n--- a/{file}\n+++ b/{file}\n"
    (tmp_path / "01_no_fault.patch").write_text(f"{head}@@ -1,3 +1,3 @@\n{hunk}\n")
    monkeypatch.setattr(mutations, "FOLDERS", (tmp_path,))
    assert command.main([]) == 1
    assert "MISSED  01_no_fault: other words of no weight\n" in capsys.readouterr().out


@pytest.mark.parametrize("head", ["", "mistake: one\n", "found by: one\n"])
def test_a_fault_names_its_mistake_and_its_finders(tmp_path: Path, head: str) -> None:
    """A patch without its mistake or its finders is refused."""
    patch = tmp_path / "01_fault.patch"
    patch.write_text(f"{head}\n--- a/runtime/context/window.py\n+++ b/runtime/context/window.py\n")
    with pytest.raises(ValueError, match="does not say"):
        mutations.read(patch)
