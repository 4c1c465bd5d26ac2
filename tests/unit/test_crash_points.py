"""The crash points of a run: log and disk at each, and their rows in the documentation."""

from __future__ import annotations

import re
import typing
from pathlib import Path

import pytest

from runtime.log import entries as log_entries
from runtime.log.store import file_store
from runtime.system import crash_points
from runtime.system.crash_points import CrashPoint
from tests.rig import Rig

PAGE = Path(__file__).parents[2] / "docs" / "crash-recovery.md"

TWO_ACTIONS = """
version: 1
name: Two actions
nodes:
  - id: unit
    type: group
    nodes:
      - {id: open, type: browser_action, action: goto, url: "http://shop.test/"}
      - {id: first, type: browser_action, action: click, target: {css: one}}
      - {id: second, type: browser_action, action: click, target: {css: two}}
  - {id: end, type: browser_query, query: url}
"""


def test_the_page_lists_each_crash_point() -> None:
    """docs/crash-recovery.md has one row for each crash point of the code, and no other."""
    listed = set(re.findall(r"^\| `([a-z-]+)` \|", PAGE.read_text(), re.MULTILINE))
    policies, actions = {"confirm", "redo", "ask"}, {"dialog"}
    assert listed - policies - actions == set(CrashPoint)


def test_each_note_is_a_crash_point() -> None:
    """A run may die after each kind of note; a torn line is cut before a run can die, and a fork dies after what it has copied."""
    assert set(typing.get_args(log_entries.NoteName)) - {"tail-truncated", "left-out"} <= set(CrashPoint)


async def test_the_log_of_an_action_at_each_crash_point(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The call is synced before the action, the result is written after it, and is synced with the next action's call."""
    rig = Rig(tmp_path, TWO_ACTIONS)
    synced = 0
    seen: list[tuple[str, str, bool, int]] = []
    barrier = file_store.OpenFile.barrier

    async def counted(conversation: file_store.OpenFile) -> None:
        nonlocal synced
        await barrier(conversation)
        synced = len(rig.store.read(rig.id).entries)

    def look(point: CrashPoint) -> None:
        assert rig.open_writer is not None
        conversation = rig.open_writer.conversation
        assert isinstance(conversation, file_store.OpenFile)
        # Lines after the text of the workflow wait for it.
        conversation._submit(lambda: None).result()
        entries = rig.store.read(rig.id).entries
        seen.append((point, entries[-1].kind if entries else "", synced == len(entries), len(rig.site.actions)))

    monkeypatch.setattr(file_store.OpenFile, "barrier", counted)
    monkeypatch.setattr(crash_points, "hook", look)
    await rig.start()
    at = [number for number, (point, *_rest) in enumerate(seen) if point == CrashPoint.BEFORE_CALL]
    assert len(at) == 2
    first = seen[at[0] : at[0] + 5]
    assert first == [
        ("before-call", first[0][1], False, 0),
        ("call-appended", "call", False, 0),
        ("call-synced", "call", True, 0),
        ("effect-done", "call", True, 1),
        ("result-appended", "result", False, 1),
    ]
    assert seen[at[1] : at[1] + 3] == [
        ("before-call", "result", False, 1),
        ("call-appended", "call", False, 1),
        ("call-synced", "call", True, 1),
    ]


def test_a_run_has_no_hook() -> None:
    """Outside tests no hook is set at the crash points."""
    assert crash_points.hook is None
    crash_points.crash_point(CrashPoint.ENDED)
