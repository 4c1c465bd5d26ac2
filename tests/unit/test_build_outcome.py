"""The report of a finished build."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from director.builds import loop
from director.cli.builds import outcome
from director.draft import output_files
from runtime.log import session


@pytest.mark.parametrize(
    ("becomes", "head", "row"),
    [
        (lambda text: text, "done  proved: full", None),
        (lambda text: text.replace("1001", "1002"), "done  was proved: full", "it has changed since"),
        (lambda _text: None, "done  was proved: full", "it is not there any more"),
    ],
)
def test_a_proof_is_reported_only_for_an_unchanged_file(
    tmp_path: Path, becomes: Callable[[str], str | None], head: str, row: str | None
) -> None:
    """A build counts as proved while its file is unchanged; a later edit or removal is reported."""
    file = tmp_path / "x.yaml"
    left = becomes(output_files.workflow("S", "version: 1\nname: 1001\n", ["proved: full"]))
    if left is not None:
        file.write_text(left)
    ended = loop.Ended(done=True, value={"file": str(file), "proved": "full"}, answer="")
    report = outcome.of_build("S", session.Session(), ended, None, 0)
    assert report.text.splitlines()[0] == head
    assert (row is None and "  now " not in report.text) or f"  now    {row}" in report.text
    assert (report.record.changed is None) is (row is None)
