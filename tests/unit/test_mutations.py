"""The tests of windows find faults in the builder: one drawn at each run, all of them by `make mutations`."""

from __future__ import annotations

import random
from pathlib import Path

from tests import mutations


def test_every_fault_fits_the_code(tmp_path: Path) -> None:
    """Ten at least, and each can be put into the builder as it is now: one that cannot proves nothing any more."""
    patches = mutations.patches()
    assert len(patches) >= 10
    whole = (mutations.ROOT / "runtime" / "window.py").read_bytes()
    for patch in patches:
        there = tmp_path / patch.stem / "runtime" / "window.py"
        there.parent.mkdir(parents=True)
        there.write_bytes(whole)
        mutations.apply(patch, tmp_path / patch.stem)
        assert there.read_bytes() != whole


def test_a_fault_is_found(tmp_path: Path) -> None:
    """With it in a copy of the code the tests of windows fail."""
    patch = random.choice(mutations.patches())
    folder = mutations.copy(tmp_path / patch.stem)
    mutations.apply(patch, folder)
    assert not mutations.try_out(folder).passed, patch.name
