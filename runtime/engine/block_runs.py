"""Blocks of a ``handle`` as they run, once or again: their paths, and the errors with which they ended."""

from __future__ import annotations

from typing import TypeVar

from nodes.errors import AssertFailed, AuthorError, CassetteMiss, ModelError, OriginRefused, RunOpsError, SiteError
from nodes.values import Json
from runtime.engine import policies
from runtime.engine.run_state import RunState
from runtime.log import attempts, entries

Caught = TypeVar("Caught", bound=RunOpsError)

CLASSES: tuple[type[RunOpsError], ...] = (AssertFailed, AuthorError, SiteError, ModelError)

UNCAUGHT: dict[str, type[RunOpsError]] = {"origin-refused": OriginRefused, "cassette-miss": CassetteMiss}
"""Errors with a separate class that nothing may catch, by code."""


def part_path(handle: str, name: str, number: int) -> str:
    """Return the path of a block of a handle, in its ``number``-th run."""
    return f"{handle}/{name}" if number == 1 else f"{handle}/{name}[{number}]"


def as_bound(error: dict[str, Json], step: str | None) -> dict[str, Json]:
    told = {name: error.get(name) for name in ("code", "message", "phase", "who")}
    return {**told, "step": step, "evidence": error.get("evidence") or {}}


def rebuilt(error: dict[str, Json]) -> RunOpsError:
    kind = next(each for each in CLASSES if each.who == error["who"])
    kind = UNCAUGHT.get(error["code"], kind)
    made = kind(
        error["code"], error["message"], fix=error.get("fix"), phase=error["phase"], evidence=error.get("evidence")
    )
    step: str | None = error.get("step")
    return made.located(step) if step is not None else made


def in_the_way(run: RunState, handle: str, number: int) -> list[attempts.Attempt]:
    """Return the side effects of a handle's tries up to ``number`` that have no policy for running ``try`` again."""
    return [
        effect
        for each in range(1, number + 1)
        for effect in run.history.effects_within(part_path(handle, "try", 1), each)
        if effect.call.thread == entries.RUN_THREAD and policies.redo_policy(run, effect) == "ask"
    ]


def not_tried_again(error: Caught, actions: list[attempts.Attempt]) -> Caught:
    """Return the error, listing the side effects that kept ``try`` from running again."""
    fix = "to let `try` run again after an action, give that a `confirm` or `effect: idempotent`, or the handle `on_redo: redo`"
    return error.replaced(
        evidence={**error.evidence, "not_tried_again": [action.call.path for action in actions]},
        fix=f"{error.fix}; {fix}" if error.fix else fix,
    )
