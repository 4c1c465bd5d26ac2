"""The time that an attempt of a step may take: its own, its file's, that of the run's file, the setting's, else 30 seconds."""

from __future__ import annotations

from pathlib import Path

import pytest

from nodes.base import Leaf
from runtime.language import reader
from runtime.settings import settings
from tests.fakes import FakeBrowser
from tests.rig import Rig

PART = "version: 1\n{head}nodes:\n  - {{id: inner, type: browser_action, action: hover, target: {{css: a}}}}\n"
FILE = """version: 1
{head}nodes:
  - {{id: plain, type: browser_action, action: hover, target: {{css: a}}}}
  - {{id: own, type: browser_action, action: hover, target: {{css: a}}, timeout: 3}}
  - {{id: thinks, type: cognition, instruction: Hm?, output: string}}
  - {{id: part, type: group, use: part.yaml}}
"""


@pytest.mark.parametrize(
    ("head", "part", "setting", "seconds"),
    [
        ("", "", None, {"plain": 30, "own": 3, "thinks": 120, "inner": 30}),
        ("", "", 45, {"plain": 45, "own": 3, "thinks": 120, "inner": 45}),
        ("timeout: 7\n", "", 45, {"plain": 7, "own": 3, "thinks": 120, "inner": 7}),
        ("timeout: 7\n", "timeout: 9\n", 45, {"plain": 7, "own": 3, "thinks": 120, "inner": 9}),
    ],
)
def test_a_step_has_the_nearest_limit(
    head: str, part: str, setting: float | None, seconds: dict[str, float], tmp_path: Path
) -> None:
    """The nearest of step, file, the run's file and setting counts; a model has its own time."""
    (tmp_path / "part.yaml").write_text(PART.format(head=part))
    (tmp_path / "file.yaml").write_text(FILE.format(head=head))
    loaded = reader.load(tmp_path / "file.yaml")
    loaded.limit_steps(setting)
    leaves = [each for file in loaded.files() for each in file.nodes() if isinstance(each, Leaf)]
    assert {each.id: each.seconds for each in leaves} == seconds


@pytest.mark.anyio
async def test_the_setting_holds_in_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The page is waited for as long as the setting says."""
    bounds: list[float] = []
    monkeypatch.setattr(FakeBrowser, "bound", lambda _browser, each: bounds.append(each))
    node = "version: 1\nnodes:\n  - {id: over, type: browser_action, action: hover, target: {css: a}}\n"
    rig = Rig(tmp_path, node, settings=settings.load(step_timeout=12))
    assert (await rig.start()).status == "passed"
    assert bounds[0] == 12
