"""One leaf: its value as recorded, as reconciled, or as its attempts make it now."""

from __future__ import annotations

import asyncio
import dataclasses

from nodes.base import Leaf
from nodes.errors import RunOpsError
from nodes.values import Json
from runtime import events
from runtime.engine import attempt, block_retries, evidence, policies, reconcile, scopes
from runtime.engine.run_state import RunState, StepReached
from runtime.log import attempts, step_states
from runtime.log.step_states import Then

HARMLESS = frozenset({None, "goto", "back", "forward", "reload", "fill", "hover", "scroll", "wait"})
"""Actions that send the site nothing but requests for documents."""


@dataclasses.dataclass(frozen=True, slots=True)
class Tolerated:
    error: dict[str, Json]


async def run_leaf(run: RunState, node: Leaf, frame: scopes.Scope, path: str) -> Json | Tolerated:
    """Return the step's value: recorded, reconciled, or made now."""
    before = run.history.last(path)
    if before is None:
        run.recorder.reach(StepReached(node, frame, path, None))
        return await _first(run, node, frame, path)
    reached = StepReached(node, frame, path, before)
    if _value_pending(run, node, path, before):
        run.recorder.reach(reached)
        return await _attempts(run, node, frame, path, closing=True)
    then = policies.what_then(run, node, before)
    if then == (Then.TAKE,) or run.recorder.recalls(before):
        if (known := _known(run, node, frame, path, before)) is not Nothing:
            await run.recorder.took(reached)
            return known
        if attempt.Step(run, node, frame, path, 1).needs_value():
            return scopes.UnreadableValue(path)
    run.recorder.reach(reached)
    if run.before_redo is not None and before.state is step_states.State.UNDONE and before.call.action not in HARMLESS:
        await run.before_redo()
    # The one rule that nothing may get around: a side effect that may have happened is reconciled before it is attempted again.
    if before.may_have_happened and before.state in step_states.MAY_HAVE_ACTED and not goes_on(run, node, before):
        await reconcile.reconcile_before_retry(run, reached)
        return await _reconciled(run, node, frame, path, before)
    return await _first(run, node, frame, path)


async def _reconciled(
    run: RunState, node: Leaf, frame: scopes.Scope, path: str, before: attempts.Attempt
) -> Json | Tolerated:
    if _value_pending(run, node, path, before):
        return await _attempts(run, node, frame, path, closing=True)
    known = _known(run, node, frame, path, before) if before.state is step_states.State.DONE else Nothing
    return known if known is not Nothing else await _attempts(run, node, frame, path)


async def _first(run: RunState, node: Leaf, frame: scopes.Scope, path: str) -> Json | Tolerated:
    """Return the value of a step that has not acted itself. An earlier run of its block may have."""
    if (action := block_retries.earlier(run, path)) is not None and attempt.Step(run, node, frame, path, 1).is_effect():
        verdict = await block_retries.judged(run, node, frame, path, action)
        if verdict is not None and verdict.found == "done" and node.value_pending and not _yielded(action):
            return await _attempts(run, node, frame, path, closing=True)
        if verdict is not None:
            number = run.history.next_number(path)
            return await attempt.Step(run, node, frame, path, number).pass_over(action, verdict)
    return await _attempts(run, node, frame, path)


def goes_on(run: RunState, node: Leaf, before: attempts.Attempt, *, closing: bool = False) -> bool:
    """True if an `agent` continues the conversation of the attempt that a crash ended, on the page as the crash left it.

    Not in the middle of an action: that is reconciled first. ``closing``: it may do no more actions.
    """
    broke_off = before.result is None or before.result.status == "interrupted"
    return (
        node.asks == "agent"
        and run.attached
        and broke_off
        and not before.rolled_back
        and (closing or not before.unclear)
    )


def _value_pending(run: RunState, node: Leaf, path: str, before: attempts.Attempt) -> bool:
    """True if the step's action is known to have happened and only its value is missing from the log."""
    if not node.value_pending or _yielded(before):
        return False
    return any(each.verdict == "done" and not each.invalidated for each in run.history.attempts[path])


def _yielded(attempt: attempts.Attempt) -> bool:
    return attempt.verdict == "skipped" or (
        attempt.result is not None and attempt.result.status in ("ok", "recovered", "skipped")
    )


class Nothing:
    """No value is known."""


def _known(run: RunState, node: Leaf, frame: scopes.Scope, path: str, before: attempts.Attempt) -> Json:
    """Return the recorded value of a step that is done; Nothing if it held a secret and can be read again."""
    result = before.result
    assert result is not None
    run.emit(events.StepFinished(path, "recorded", 0.0, container=False))
    if result.tolerated and before.verdict != "done":
        return Tolerated(result.error or {})
    if not result.masked:
        judged = result.status in ("interrupted", "error")
        known = before.reconciled_value if judged else run.writer.value_of(result)
        return _bind_effects(node, frame, known)
    still_there = before.only_read and not (node.touches_page and run.history.page_changed_since(result.seq))
    return Nothing if still_there and run.recorder.acts else scopes.UnreadableValue(path)


def _bind_effects(node: Leaf, frame: scopes.Scope, value: Json) -> Json:
    if node.type == "context" and isinstance(value, dict):
        frame.program.variables.update(value)
    return value


def _with_earlier(run: RunState, path: str, error: RunOpsError) -> RunOpsError:
    """Return the error of a step's last attempt, naming an earlier attempt that may have acted and that ``retry.on`` had tried again unasked."""
    for each in run.history.attempts.get(path, [])[:-1]:
        failed = each.result.error if each.result is not None else None
        if each.acted and each.verdict is None and (failed or {}).get("phase") == "after" and failed is not None:
            told = f"attempt {each.call.attempt} may have acted ({failed['code']})"
            return error.replaced(evidence={**error.evidence, "earlier": told})
    return error


async def _attempts(
    run: RunState, node: Leaf, frame: scopes.Scope, path: str, *, closing: bool = False
) -> Json | Tolerated:
    """Make attempts until one succeeds. ``closing``: the action is known to have happened, and only its value is missing."""
    retry, first, before = node.retry, run.history.next_number(path), run.history.last(path)
    last = first + (retry.attempts if retry else 1) - 1
    delay = retry.delay if retry else 0.0
    for number in range(first, last + 1):
        step = attempt.Step(run, node, frame, path, number)
        step.again, step.closing = number < last, closing
        if number == first and before is not None and goes_on(run, node, before, closing=closing):
            step.goes_on_from = before.call
        run.emit(events.StepStarted(path, node.type, step.summary(), path.count("/"), container=False, attempt=number))
        try:
            value = await reconcile.attempt_step(run, step)
        except attempt.ValuePending:
            return await _attempts(run, node, frame, path, closing=True)
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
        else:
            return _bind_effects(node, frame, value)
    raise AssertionError("an attempt returns or raises")
