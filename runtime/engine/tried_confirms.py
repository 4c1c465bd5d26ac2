"""Trial of a ``confirm``: a run that proves something asks it before its side effect, and again once the side effect is done.

Else it is asked only after a crash or a lost answer, and decides then whether the side effect is done twice. A trial decides nothing: a
*done* before the side effect ends the run, and all else is noted. In a loop the first ``MOST`` items are tried.
"""

from __future__ import annotations

from typing import Literal

from nodes.base import Leaf
from nodes.errors import Paused
from nodes.values import Json
from runtime import events
from runtime.engine import attempt, reconcile
from runtime.engine.run_state import RunState, StepReached, Verdict

MOST = 2  # steps of a node whose `confirm` is tried: the first items of a loop

DONE_ALREADY = "done-already"


async def before(run: RunState, reached: StepReached, step: attempt.Step) -> None:
    """Ask the ``confirm`` of a side effect that no earlier attempt can have done. Raises Paused ``done-already`` if it says *done*."""
    node = reached.node
    if not run.proves or node.confirm is None or not step.is_effect():
        return
    tried = run.tried.setdefault(id(node), set())
    if len(tried) >= MOST:
        return
    tried.add(reached.path)
    said = await reconcile.ask_the_site(run, reached, once=True)
    _note(run, reached, "before", said)
    if said.found == "done":
        raise Paused(
            DONE_ALREADY,
            f"`confirm` says that the {_action(node)} is done already, so it was not done again",
            fix="if the site has it, let `when` or a `route` pass over it, or run on data without it; if not, correct `confirm`",
        )


async def after(run: RunState, step: attempt.Step) -> None:
    """Ask it again once the side effect is done, as far as its ``verify`` can tell. That result is in the log already."""
    call = step.call
    if call is None or step.path not in run.tried.get(id(step.node), ()):
        return
    done = run.history.attempt_of(call)
    if done.status == "ok":
        reached = StepReached(step.node, step.frame, step.path, done)
        _note(run, reached, "after", await reconcile.ask_the_site(run, reached))


def _note(run: RunState, reached: StepReached, when: Literal["before", "after"], said: Verdict) -> None:
    fix: dict[str, Json] = {"fix": said.fix} if said.fix is not None else {}
    run.writer.note("confirm-tried", path=reached.path, when=when, found=said.found, how=said.how, **fix)
    does = _action(reached.node)
    if said.found == "unknown":
        run.emit(events.Said(f"{reached.path}: {when} the {does}: {said.how}"))
    elif when == "after" and said.found == "not-done":
        run.emit(events.Said(f"{reached.path}: the {does} is done, and `confirm` says that it is not"))


def _action(node: Leaf) -> str:
    return getattr(node, "action", None) or node.type
