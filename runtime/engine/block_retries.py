"""A block that runs again, in another try or another round of a ``handle``: what it had done is not simply done once more.

Each deed of class *effect* that an earlier run of the block did, or may have done, is judged when the walk reaches its counterpart. Its
``confirm`` asks the site; ``on_redo: redo`` repeats it on the author's word; otherwise the block does not run again within the run,
and a resumed run asks a person.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from nodes.base import Leaf
from nodes.errors import (
    AssertFailed,
    AuthorError,
    CassetteMiss,
    ModelError,
    OriginRefused,
    Paused,
    RunOpsError,
    SiteError,
)
from nodes.values import Json
from runtime import events
from runtime.engine import attempt, reconcile, scopes
from runtime.log import attempts, entries, step_paths

if TYPE_CHECKING:
    from runtime.engine.engine import ExecutionEngine

Caught = TypeVar("Caught", bound=RunOpsError)

CLASSES: tuple[type[RunOpsError], ...] = (AssertFailed, AuthorError, SiteError, ModelError)

UNCAUGHT: dict[str, type[RunOpsError]] = {"origin-refused": OriginRefused, "cassette-miss": CassetteMiss}
"""Errors of a class of their own, which nothing may catch, by code."""


def part_path(handle: str, name: str, number: int) -> str:
    """The path of a block of a handle, in its ``number``-th run."""
    return f"{handle}/{name}" if number == 1 else f"{handle}/{name}[{number}]"


def as_bound(error: dict[str, Json], step: str | None) -> dict[str, Json]:
    """What ``error`` is inside a ``catch``."""
    told = {name: error.get(name) for name in ("code", "message", "phase", "who")}
    return {**told, "step": step, "evidence": error.get("evidence") or {}}


def rebuilt(error: dict[str, Json]) -> RunOpsError:
    """The error that an entry holds, as it was raised."""
    kind = next(each for each in CLASSES if each.who == error["who"])
    kind = UNCAUGHT.get(error["code"], kind)
    made = kind(
        error["code"], error["message"], mend=error.get("mend"), phase=error["phase"], evidence=error.get("evidence")
    )
    step: str | None = error.get("step")
    return made.located(step) if step is not None else made


def in_the_way(engine: ExecutionEngine, handle: str, number: int) -> list[attempts.Attempt]:
    """The side effects of a handle's tries up to ``number`` for which nothing says what to do about them if ``try`` ran again."""
    return [
        effect
        for each in range(1, number + 1)
        for effect in engine.history.effects_within(part_path(handle, "try", 1), each)
        if effect.call.thread == entries.RUN_THREAD and reconcile.policy(engine, effect) == "ask"
    ]


def not_tried_again(error: Caught, deeds: list[attempts.Attempt]) -> Caught:
    """The error, with the side effects that kept ``try`` from running again."""
    mend = "to let `try` run again after a deed, give that a `confirm` or `effect: idempotent`, or the handle `on_redo: redo`"
    return error.replaced(
        evidence={**error.evidence, "not_tried_again": [deed.call.path for deed in deeds]},
        mend=f"{error.mend}; {mend}" if error.mend else mend,
    )


def earlier(engine: ExecutionEngine, path: str) -> attempts.Attempt | None:
    """The side effect of an earlier run of a block of a handle that the step at ``path`` would repeat."""
    found: list[tuple[bool, int, attempts.Attempt]] = []
    for block in step_paths.blocks(path):
        scope = engine.history.scopes.get(block.path)
        if scope is None or scope.node != block.name or block.number == 1:
            continue
        if (effect := engine.history.repeated(block)) is not None:
            found.append((effect.call.path.endswith(f"/{block.rest}"), effect.call.seq, effect))
    return max(found, key=lambda each: each[:2])[2] if found else None


async def judged(
    engine: ExecutionEngine, node: Leaf, frame: scopes.Frame, path: str, deed: attempts.Attempt
) -> reconcile.Judgement | None:
    """What was found about the ``deed`` that the step would repeat; None where it is to be done now. Raises Paused where a person must say so."""
    decision = engine.history.decisions.get(path)
    if decision is not None:
        found: reconcile.Found = "done" if decision == "done" else "skipped"
        return None if decision == "not-done" else reconcile.Judgement(found, entries.PERSON)
    policy = reconcile.policy(engine, deed)
    if policy == "redo":
        engine.tell(events.Said(f"{path}: done again, as `on_redo: redo` says"))
        return None
    if policy == "ask":
        raise _ask(engine, node, frame, path, deed, "nothing else can tell")
    judgement = await reconcile.ask_the_site(engine, node, frame, path, deed.call)
    if judgement.found == "unknown":
        raise _ask(engine, node, frame, path, deed, judgement.how)
    say = "had happened" if judgement.found == "done" else "had not happened"
    engine.tell(events.Said(f"{path}: the {deed.call.action or deed.call.node} {say} ({judgement.how})"))
    return judgement if judgement.found == "done" else None


def _ask(
    engine: ExecutionEngine, node: Leaf, frame: scopes.Frame, path: str, deed: attempts.Attempt, why: str
) -> Paused:
    """The question about this one step. The answer is kept with its path, not with the earlier deed: another turn may ask about that too."""
    return Paused(
        "redo-unconfirmed",
        f"the handle begins again, and this may have been done before, as {deed.call.path}: {why}",
        mend="say `done` to pass over it, or `not-done` to do it now",
        phase="after",
        evidence={
            "calls": [],
            "step": attempt.Step(engine, node, frame, path, 1).summary(),
            "before": {"path": deed.call.path, "args": deed.call.args},
        },
    ).located(path)
