"""One leaf: its value as recorded, as reconciled, or as its attempts make it now."""

from __future__ import annotations

import asyncio
import dataclasses

from nodes.base import Leaf
from nodes.errors import Paused, RunOpsError
from nodes.values import Json
from runtime import events
from runtime.engine import attempt, evidence, policies, reconcile, scopes, tried_confirms
from runtime.engine.run_state import RunState, StepReached, Verdict
from runtime.log import attempts, entries, step_paths
from runtime.log.step_states import State

HARMLESS = frozenset({None, "goto", "back", "forward", "reload", "fill", "hover", "scroll", "wait"})
"""Actions that send the site nothing but requests for documents."""


@dataclasses.dataclass(frozen=True, slots=True)
class Tolerated:
    error: dict[str, Json]


class Nothing:
    """Marker: no value is known."""


async def run_leaf(run: RunState, node: Leaf, frame: scopes.Scope, path: str) -> Json | Tolerated:
    """Return the step's value: recorded, reconciled, or made now.

    The state of its last attempt decides (``runtime.log.step_states``). A dry pass ends at ``reach``.
    """
    before = run.history.last(path)
    step = StepReached(node, frame, path, before)
    pending = _value_pending(run, step)
    if before is not None and not pending and (before.state is State.DONE or run.recorder.recalls(before)):
        if (known := _recorded(run, step, before)) is not Nothing:
            await run.recorder.took(step)
            return known
        if _step(run, step).needs_value():
            return scopes.UnreadableValue(path)
    run.recorder.reach(step)
    if pending:
        return await _attempts(run, step, closing=True)
    if before is not None:
        if run.before_redo is not None and before.state is State.UNDONE and before.call.action not in HARMLESS:
            await run.before_redo()
        # The one rule that nothing may get around: a side effect that may have happened is reconciled before it is attempted again.
        if before.must_be_reconciled and not continues(run, step):
            await reconcile.reconcile_before_retry(run, step)
            if _value_pending(run, step):
                return await _attempts(run, step, closing=True)
            known = _recorded(run, step, before) if before.state is State.DONE else Nothing
            return known if known is not Nothing else await _attempts(run, step)
    return await _unless_done_before(run, step)


async def _unless_done_before(run: RunState, step: StepReached) -> Json | Tolerated:
    """Do the step, unless it repeats a side effect that an earlier run of its block did."""
    node, path = step.node, step.path
    if (action := _earlier_run(run, path)) is not None and _step(run, step).is_effect():
        verdict = await _judge_repetition(run, step, action)
        if verdict is not None and verdict.found == "done" and node.value_pending and not action.yielded:
            return await _attempts(run, step, closing=True)
        if verdict is not None:
            return await _step(run, step, run.history.next_number(path)).pass_over(action, verdict)
    elif step.before is None:
        await tried_confirms.before(run, step, _step(run, step))
    return await _attempts(run, step)


def _step(run: RunState, step: StepReached, number: int = 1) -> attempt.Step:
    return attempt.Step(run, step.node, step.frame, step.path, number)


def continues(run: RunState, step: StepReached, *, closing: bool = False) -> bool:
    """True if an `agent` continues the conversation of the attempt that a crash ended, on the page as the crash left it.

    Not in the middle of an action: that is reconciled first. ``closing``: it may do no more actions.
    """
    before = step.before
    return (
        before is not None
        and step.node.asks == "agent"
        and run.attached
        and (before.result is None or before.result.status == "interrupted")
        and not before.rolled_back
        and (closing or not before.unclear)
    )


def _value_pending(run: RunState, step: StepReached) -> bool:
    """True if the step's action is known to have happened and only its value is missing from the log."""
    if step.before is None or not step.node.value_pending or step.before.yielded:
        return False
    return any(each.verdict == "done" and not each.invalidated for each in run.history.attempts[step.path])


def _recorded(run: RunState, step: StepReached, before: attempts.Attempt) -> Json:
    """Return the recorded value of a step that is done; Nothing if it held a secret and can be read again."""
    result = before.result
    run.emit(events.StepFinished(step.path, "recorded", 0.0, container=False))
    if result is None or result.status == "interrupted":
        # Without a result, a person decided, and the process that wrote the decision died right after it.
        return _bind_effects(step, before.reconciled_value)
    if result.tolerated and before.verdict != "done":
        return Tolerated(result.error or {})
    if not result.masked:
        return _bind_effects(step, before.reconciled_value if result.status == "error" else run.writer.value_of(result))
    moved_on = step.node.touches_page and run.history.page_changed_since(result.seq)
    return Nothing if before.only_read and not moved_on and run.recorder.acts else scopes.UnreadableValue(step.path)


def _bind_effects(step: StepReached, value: Json) -> Json:
    if step.node.type == "context" and isinstance(value, dict):
        step.frame.program.variables.update(value)
    return value


def _with_earlier(run: RunState, path: str, error: RunOpsError) -> RunOpsError:
    """Return the error. Its evidence names an earlier attempt that may have acted and that ``retry.on`` repeated without a check."""
    for each in run.history.attempts.get(path, [])[:-1]:
        failed = each.result.error if each.result is not None else None
        if failed is not None and failed.get("phase") == "after" and each.acted and each.verdict is None:
            earlier = f"attempt {each.call.attempt} may have acted ({failed['code']})"
            return error.replaced(evidence={**error.evidence, "earlier": earlier})
    return error


async def _attempts(run: RunState, reached: StepReached, *, closing: bool = False) -> Json | Tolerated:
    """Make attempts until one succeeds. ``closing``: the action is known to have happened, and only its value is missing."""
    node, path = reached.node, reached.path
    retry, first, before = node.retry, run.history.next_number(path), run.history.last(path)
    last = first + (retry.attempts if retry else 1) - 1
    delay = retry.delay if retry else 0.0
    resumed = before is not None and continues(run, StepReached(node, reached.frame, path, before), closing=closing)
    broken_off = before.call if before is not None and resumed else None
    for number in range(first, last + 1):
        step = _step(run, reached, number)
        step.again, step.closing = number < last, closing
        step.continued_call = broken_off if number == first else None
        run.emit(events.StepStarted(path, node.type, step.summary(), path.count("/"), container=False, attempt=number))
        try:
            value = _bind_effects(reached, await reconcile.attempt_step(run, step))
            if run.tracing.all:
                await run.tracing.settled()
            await tried_confirms.after(run, step)
            return value
        except attempt.ValuePending:
            return await _attempts(run, reached, closing=True)
        except RunOpsError as raised:
            again = number < last and step.may_try_again(raised)
            error = raised if again else _with_earlier(run, path, raised)
            tolerated = not again and run.tolerates(node, error)
            recorded = step.failed(error, tolerated=tolerated)
            if tolerated:
                await evidence.keep(run, error.located(path), tolerated=True)
                return Tolerated(recorded)
            if not again:
                raise error from raised.__cause__
            run.emit(events.StepWaiting(path, f"{delay:g} s before attempt {number + 1}: {error.message}"))
            await asyncio.sleep(delay)
            delay *= retry.backoff if retry else 1.0
    raise AssertionError("an attempt returns or raises")


# When a block of a `handle` runs again (a retry, or the next try), its side effects are not simply repeated. Each that an earlier run of
# the block did, or may have done, is reconciled when the run reaches its counterpart.


def _earlier_run(run: RunState, path: str) -> attempts.Attempt | None:
    """Return the side effect, from an earlier run of a block of a handle, that the step at ``path`` would repeat."""
    found: list[tuple[bool, int, attempts.Attempt]] = []
    for block in step_paths.blocks(path):
        scope = run.history.scopes.get(block.path)
        if scope is None or scope.node != block.name or block.number == 1:
            continue
        if (effect := run.history.repeated(block)) is not None:
            found.append((effect.call.path.endswith(f"/{block.rest}"), effect.call.seq, effect))
    return max(found, key=lambda each: each[:2])[2] if found else None


async def _judge_repetition(run: RunState, step: StepReached, action: attempts.Attempt) -> Verdict | None:
    """Return the verdict on the ``action`` that the step would repeat; None if it is to be done now. Raises Paused to ask a person."""
    decision = run.history.decisions.get(step.path)
    if decision is not None:
        return None if decision == "not-done" else Verdict("done" if decision == "done" else "skipped", entries.PERSON)
    policy = policies.redo_policy(run, action)
    if policy == "redo":
        run.emit(events.Said(f"{step.path}: done again, as `on_redo: redo` says"))
        return None
    verdict = Verdict("unknown", "nothing else can tell")
    if policy == "confirm":
        verdict = await reconcile.ask_the_site(run, StepReached(step.node, step.frame, step.path, action))
    if verdict.found == "unknown":
        # The answer is kept with the path of this step: another item may ask about the earlier action too.
        raise Paused(
            "redo-unconfirmed",
            f"the handle begins again, and this may have been done before, as {action.call.path}: {verdict.how}",
            fix="say `done` to pass over it, or `not-done` to do it now",
            phase="after",
            evidence={
                "calls": [],
                "step": _step(run, step).summary(),
                "before": {"path": action.call.path, "args": action.call.args},
            },
        ).located(step.path)
    reconcile.say_verdict(run, step.path, action.call, verdict)
    return verdict if verdict.found == "done" else None
