"""Random workflows, killed at random points and resumed; the site's record shows whether each action happened once. ``python -m tests.crashes`` runs more."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from runtime.engine import blocks, reconcile
from runtime.engine.run_state import Verdict
from runtime.log import entries, history
from runtime.log.writer import LogWriter
from tests.crashes import trial

SEEDS = range(1, 41)


async def test_no_action_is_lost_or_done_twice(tmp_path: Path) -> None:
    """A run that dies any number of times has the same actions, each once, and the same output. A failing seed is reported."""
    reports = [await trial.examine(seed, tmp_path / str(seed)) for seed in SEEDS]
    assert [report for report in reports if not report.fine] == []
    assert sum(len(report.kills) for report in reports) > len(SEEDS)
    assert sum(report.pauses for report in reports) > 0


def no_barrier(patched: pytest.MonkeyPatch) -> None:
    """Lets an action begin before its call is synced."""

    async def unsynced(self: LogWriter, each: entries.Call) -> entries.Call:
        return self.call(each)

    patched.setattr(LogWriter, "announce", unsynced)


def deaf(patched: pytest.MonkeyPatch) -> None:
    """Ignores the result of `confirm`."""

    async def ask(*_given: Any) -> Verdict:
        return Verdict("not-done", "nobody was asked")

    async def look(*_given: Any) -> bool:
        return False

    patched.setattr(reconcile, "ask_the_site", ask)
    patched.setattr(reconcile, "_look", look)


def nothing_in_the_way(patched: pytest.MonkeyPatch) -> None:
    """Repeats a `try` whatever it did."""
    patched.setattr(blocks.Blocks, "_in_the_way", lambda *_given: [])


def forgetting(node: str) -> Callable[[pytest.MonkeyPatch], None]:
    """Forgets finished blocks of this type."""

    def patch(patched: pytest.MonkeyPatch) -> None:
        fold = history.History._scope

        def forget(self: history.History, entry: entries.Scope) -> None:
            fold(self, entry)
            if entry.node == node and entry.event in ("committed", "failed"):
                self.scopes[entry.path].committed = self.scopes[entry.path].failed = None
                for path in [each for each in self.attempts if each.startswith(f"{entry.path}/")]:
                    del self.attempts[path]

        patched.setattr(history.History, "_scope", forget)

    return patch


@pytest.mark.drawn(1)
@pytest.mark.parametrize(
    ("breaks", "seeds"),
    [
        pytest.param(no_barrier, [55, 62], id="no-barrier"),
        pytest.param(deaf, [5, 9], id="deaf"),
        pytest.param(nothing_in_the_way, [3], id="nothing-in-the-way"),
        pytest.param(forgetting("item"), [3, 17], id="turns-forgotten"),
        pytest.param(forgetting("try"), [52, 56], id="tries-forgotten"),
    ],
)
async def test_a_broken_rule_is_detected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, breaks: Callable[[pytest.MonkeyPatch], None], seeds: list[int]
) -> None:
    """An engine that breaks one of its rules fails for seeds that pass with the rule."""
    for seed in seeds:
        assert (await trial.examine(seed, tmp_path / f"kept-{seed}")).fine
    breaks(monkeypatch)
    assert [(await trial.examine(seed, tmp_path / f"broken-{seed}")).fine for seed in seeds] == [False] * len(seeds)
