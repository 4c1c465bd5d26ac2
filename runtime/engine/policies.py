"""Policies in the workflow file for a side effect that may have happened, or would be repeated."""

from __future__ import annotations

from typing import Literal

from nodes.base import Leaf
from runtime.engine.run_state import RunState
from runtime.log import attempts, step_states
from runtime.log.step_states import Then


def row(run: RunState, node: Leaf, before: attempts.Attempt, state: step_states.State) -> tuple[Then, ...]:
    """Return the row of the table in ``runtime.log.step_states`` for a step whose last attempt is ``before``."""
    if before.effect_class != "effect":
        return step_states.TABLE[state, before.effect_class, step_states.Configured.NOTHING]
    said = on_redo(run, before) if state is step_states.State.UNDONE else None
    word = step_states.configured(state, confirm=node.confirm is not None, after_crash=node.after_crash, on_redo=said)
    return step_states.TABLE[state, "effect", word]


def redo_policy(run: RunState, attempt: attempts.Attempt) -> Literal["confirm", "redo", "ask"]:
    """Return how to treat an action that would be repeated on purpose: ask the site, repeat it as the author allows, or ask a person."""
    said = on_redo(run, attempt)
    if said == "redo":
        return "redo"
    return "confirm" if said != "ask" and node_of(run, attempt).confirm is not None else "ask"


def node_of(run: RunState, attempt: attempts.Attempt) -> Leaf:
    found = run.loaded.find(attempt.call.path)
    assert found is not None
    assert isinstance(found.node, Leaf)
    return found.node


def on_redo(run: RunState, attempt: attempts.Attempt) -> str | None:
    found = run.loaded.find(attempt.call.path)
    policies = [getattr(each, "on_redo", None) for each in reversed(found.around)] if found is not None else []
    return next((policy for policy in policies if policy is not None), None)
