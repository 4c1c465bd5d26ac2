"""The time that an attempt of a step may take: its own, its file's, that of the run's file, the setting's, else 30 seconds."""

from __future__ import annotations

from pathlib import Path

import pytest

from nodes.base import Leaf
from runtime.language import reader
from runtime.language.diagnostics import WorkflowInvalid
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


HOLDING = """version: 1
nodes:
  - {{id: a, type: browser_action, action: {action}}}
"""


@pytest.mark.parametrize(
    ("action", "seconds"),
    [
        ("hover, target: {css: a}, hold: 40", 70),
        ("dblclick, target: {css: a}, hold: 4", 38),
        ("click, target: {css: a}, hold: 10, count: 3", 60),
        ("press, key: [a, b], hold: 10, count: 3", 90),
        ("press, key: a, hold: 10, timeout: 12", 12),
        ('press, key: a, hold: "{{ 20 + 20 }}", count: 3', 30),
        ("click, target: {css: a}", 30),
    ],
)
def test_what_is_held_has_its_time(action: str, seconds: float) -> None:
    """The time for which a button, a key or the mouse is held comes on top of the limit that a step has by default."""
    (node,) = reader.parse(HOLDING.format(action=action), "x.yaml").nodes()
    assert isinstance(node, Leaf)
    assert node.seconds == seconds


@pytest.mark.parametrize(
    "action", ["click, target: {css: a}, count: 2", "dblclick, target: {css: a}", "press, key: [a, b]"]
)
def test_a_limit_that_is_too_short_to_hold_is_refused(action: str) -> None:
    """The file shows that the step cannot end in its time: how long it holds in all, its limit and the fix are told."""
    with pytest.raises(WorkflowInvalid) as invalid:
        reader.parse(HOLDING.format(action=f"{action}, hold: 2, timeout: 4"), "x.yaml")
    assert "holds for 4 s in all, and `timeout: 4` leaves no time for that: write a longer `timeout`" in str(
        [each.message for each in invalid.value.diagnostics]
    )


@pytest.mark.anyio
@pytest.mark.parametrize("action", ["click, target: {css: a}", "hover, target: {css: a}", "press, key: a"])
@pytest.mark.parametrize("more", [", timeout: 35", ""])
async def test_a_time_to_hold_that_comes_too_late_is_refused_before_anything_is_sent(
    action: str, more: str, tmp_path: Path
) -> None:
    """A reference that asks for more time than the step has is the author's mistake, found before the action."""
    rig = Rig(tmp_path, HOLDING.format(action=f'{action}, hold: "{{{{ 20 + 20 }}}}"{more}'))
    ended = await rig.start()
    assert ended.error is not None
    assert (ended.error["code"], ended.error["who"], ended.error["phase"]) == ("hold-too-long", "author", "before")
    assert "40 s" in ended.error["message"]
    assert rig.site.actions == []


@pytest.mark.anyio
async def test_the_setting_holds_in_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The page is waited for as long as the setting says."""
    bounds: list[float] = []
    monkeypatch.setattr(FakeBrowser, "bound", lambda _browser, each, **_: bounds.append(each))
    node = "version: 1\nnodes:\n  - {id: over, type: browser_action, action: hover, target: {css: a}}\n"
    rig = Rig(tmp_path, node, settings=settings.load(step_timeout=12))
    assert (await rig.start()).status == "passed"
    assert bounds[0] == 12
