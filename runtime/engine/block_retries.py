"""Repeated runs of a block, in another try or another retry of a ``handle``: its side effects are not simply done again.

Each side effect that an earlier run of the block did, or may have done, is reconciled when the run reaches its counterpart. Its
``confirm`` asks the site. ``on_redo: redo`` repeats it, as the author allows. Otherwise the block does not run again within the run,
and a resumed run asks a person.
"""

from __future__ import annotations

from nodes.base import Leaf
from nodes.errors import (
    Paused,
)
from runtime import events
from runtime.engine import attempt, policies, reconcile, scopes
from runtime.engine.run_state import Outcome, RunState, Verdict
from runtime.log import attempts, entries, step_paths


def earlier(run: RunState, path: str) -> attempts.Attempt | None:
    """Return the side effect, from an earlier run of a block of a handle, that the step at ``path`` would repeat."""
    found: list[tuple[bool, int, attempts.Attempt]] = []
    for block in step_paths.blocks(path):
        scope = run.history.scopes.get(block.path)
        if scope is None or scope.node != block.name or block.number == 1:
            continue
        if (effect := run.history.repeated(block)) is not None:
            found.append((effect.call.path.endswith(f"/{block.rest}"), effect.call.seq, effect))
    return max(found, key=lambda each: each[:2])[2] if found else None


async def judged(run: RunState, node: Leaf, frame: scopes.Scope, path: str, action: attempts.Attempt) -> Verdict | None:
    """Return the verdict on the ``action`` that the step would repeat; None if it is to be done now. Raises Paused to ask a person."""
    decision = run.history.decisions.get(path)
    if decision is not None:
        found: Outcome = "done" if decision == "done" else "skipped"
        return None if decision == "not-done" else Verdict(found, entries.PERSON)
    policy = policies.redo_policy(run, action)
    if policy == "redo":
        run.emit(events.Said(f"{path}: done again, as `on_redo: redo` says"))
        return None
    if policy == "ask":
        raise _ask(run, node, frame, path, action, "nothing else can tell")
    verdict = await reconcile.ask_the_site(run, node, frame, path, action.call)
    if verdict.found == "unknown":
        raise _ask(run, node, frame, path, action, verdict.how)
    say = "had happened" if verdict.found == "done" else "had not happened"
    run.emit(events.Said(f"{path}: the {action.call.action or action.call.node} {say} ({verdict.how})"))
    return verdict if verdict.found == "done" else None


def _ask(run: RunState, node: Leaf, frame: scopes.Scope, path: str, action: attempts.Attempt, why: str) -> Paused:
    """Return the question about this one step. The answer is kept with its path: another item may ask about the earlier action too."""
    return Paused(
        "redo-unconfirmed",
        f"the handle begins again, and this may have been done before, as {action.call.path}: {why}",
        fix="say `done` to pass over it, or `not-done` to do it now",
        phase="after",
        evidence={
            "calls": [],
            "step": attempt.Step(run, node, frame, path, 1).summary(),
            "before": {"path": action.call.path, "args": action.call.args},
        },
    ).located(path)
