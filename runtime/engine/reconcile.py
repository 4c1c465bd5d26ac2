"""Reconciliation: after a crash, a lost answer or a restored state, a side effect is **done**, **not done** or **unknown**.

``verify`` that holds on the surviving page means *done*, if it did not hold just before the action. It never means *not done*. ``confirm``
asks the site itself in a fresh tab and can say either. *Not done* counts once the whole block says so again ``settle`` seconds later. An
error on the way is *unknown*. Unknown pauses the run, unless the author wrote ``after_crash: retry`` or ``skip``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence

from nodes.errors import AuthorError, Paused, RunOpsError, SetupError, SiteError
from nodes.values import Json
from runtime import events
from runtime.engine import attempt, confirm, leaf_context, opened_parts, policies, scopes, skipped_steps
from runtime.engine.run_state import RunState, StepReached, Verdict
from runtime.log import attempts, entries, step_states
from runtime.log.step_states import Then

ANSWER_SECONDS = 10.0  # seconds to wait for answers to an agent's requests once its model reports that all is done

STILL_UNANSWERED = Verdict("unknown", "`confirm` shows nothing of it yet, and the site has not answered", True)
"""A *not done* that proves nothing: the request may still be on its way."""


async def attempt_step(run: RunState, step: attempt.Step) -> Json:
    """Attempt a step. If it fails and its side effect may have happened, reconcile it.

    Raises Paused if the outcome is unknown, and then the call stays open.
    """
    try:
        return await step.attempt()
    except RunOpsError as raised:
        if not step.may_have_acted(raised):
            raise
        error = await step.with_lost_answer(raised)
        verdict = await _verdict_after_error(run, step, error)
        if verdict is None:
            raise error from raised.__cause__
        if verdict.found == "not-done":
            raise step.did_not_happen(error) from raised.__cause__
        return step.recovered(error)


async def _verdict_after_error(run: RunState, step: attempt.Step, error: RunOpsError) -> Verdict | None:
    """Return the verdict on a side effect that ended with ``error``; None if the site has answered, and not as the author wants.

    Also None if attempts are left and the author's ``retry.on`` has them made without a check.
    """
    node, call = step.node, step.call
    assert call is not None
    reached = StepReached(node, step.frame, step.path, run.history.attempt_of(call))
    then = policies.row(run, node, reached.last, step_states.State.FAILED_AFTER)
    if error.code not in step_states.LOST:
        # The site has answered: only the site itself can say more, and `after_crash` is for what is unknown.
        if Then.CONFIRM not in then:
            return None
        then = (Then.CONFIRM, Then.ASK)
    if step.again and node.retry is not None and error.code in (node.retry.on or ()):
        return None
    verdict = await _follow_row(run, reached, then, here=True, unanswered=error.code == "timeout")
    if verdict.found == "unknown":
        raise unknown(reached, verdict, error)
    if verdict.found == "skipped":
        run.emit(events.Said(f"{step.path}: skipped, as `after_crash: skip` asks"))
    return verdict


async def reconcile_before_retry(run: RunState, step: StepReached) -> None:
    """Reconcile an action that may have happened before it is attempted again, and log the verdict.

    Closes the call if it is open. If the outcome is unknown, raises Paused and leaves it open.
    """
    rolled_back = step.last.rolled_back
    verdict = await _follow_row(run, step, policies.row(run, step.node, step.last, step.last.state))
    if verdict.found == "unknown":
        raise unknown(step, verdict)
    say_verdict(run, step.path, step.last.call, verdict)
    settle(run, step, verdict)
    if run.browser is None or verdict.found == "not-done":
        return
    if rolled_back:
        await leaf_context.drop_input(run, step.node)
    if verdict.found == "done":
        run.checkpoints.effect_finished(run.browser)


def say_verdict(run: RunState, path: str, call: entries.Call, verdict: Verdict) -> None:
    said = {"done": "had happened", "not-done": "is done again", "skipped": "is skipped"}[verdict.found]
    run.emit(events.Said(f"{path}: the {call.action or call.node} {said} ({verdict.how})"))


def settle(run: RunState, step: StepReached, verdict: Verdict) -> None:
    """Log the verdict on a side effect. If the step is skipped, the next step must first reach its page."""
    before, found = step.last, verdict.found
    call, value = before.call, None
    if found != "not-done":
        expect_page_of(run, step, sure=found == "done")
        value = leaf_context.value_of_done(run, step.node, before) if found == "done" else None
    pending = found == "not-done" or (found == "done" and step.node.value_pending)
    if before.result is None and not pending:
        run.writer.result(call, "recovered" if found == "done" else "skipped", value=value)
        return
    fields: dict[str, Json] = {}
    if before.result is None:
        run.writer.result(call, "interrupted")
    elif value is not None and before.status != "ok":
        fields = {"value": value}
    run.writer.note("reconciled", call=call.call, verdict=found, how=verdict.how, **fields)


def expect_page_of(run: RunState, step: StepReached, *, sure: bool = True) -> None:
    """Make the next step on the page wait for what ``step`` would have waited for. It waits on the page to which ``step`` led, if known.

    ``sure``: the action is known to have happened, so the run may not continue on another page.
    """
    before, node = step.last, step.node
    if not node.moves_page:
        return
    try:
        verified = attempt.Step(run, node, step.frame, step.path, before.call.attempt).holding()
    except RunOpsError:
        verified = skipped_steps.NOTHING
    survived = run.attached and not before.rolled_back
    recorded = before.result is not None and before.result.page is not None and before.result.page.url is not None
    address = None if survived else leaf_context.led_to(before)
    run.aftermath = skipped_steps.ExpectedPage(
        verified, address, step.frame.program, strict=sure, lost=_may_act(before), guessed=not (survived or recorded)
    )


def _may_act(action: attempts.Attempt) -> bool:
    """True if loading the page to which a side effect led could do it again: its address acts, and did not lead on to another one."""
    if action.call.action != "goto" or action.call.effect != "effect":
        return False
    result = action.result
    return result is None or result.status != "ok" or result.page is None or bool(result.page.posted)


async def discard_submitted_input(run: RunState, line: int, passed: Iterable[attempts.Attempt]) -> None:
    """Drop input typed again since ``line`` for actions in ``passed`` that took it up before: the next action must not submit it."""
    if run.browser is None or not run.browser.facts().pending_input:
        return
    typed = run.history.last_on_page()
    # Input that follows the actions in replay order must still go out.
    if typed is None or not line < typed.call.seq <= run.replayed_to:
        return
    for action in passed:
        happened = action.survives_restore or (action.result is not None and action.result.status == "ok")
        if action.call.effect == "effect" and happened and (node := policies.node_of(run, action)).takes_up_input:
            await leaf_context.drop_input(run, node)
            return


async def skip_committed(run: RunState, state: attempts.ScopeState) -> None:
    over = state.committed or state.failed
    if over is None:
        return
    await discard_submitted_input(run, over.seq, run.history.within(state.path))
    run.replayed_to = max(run.replayed_to, over.seq)


async def known_done(run: RunState, steps: Sequence[StepReached], line: int) -> StepReached | None:
    """Return the newest side effect after ``line`` that the site, asked now, says is done. The steps before it are not done again.

    A *not done* of the site proves nothing here: its answer may depend on a step that must be done again first, such as a sign-in. So the
    site is asked even if the log has the side effect as done. Without `confirm` there is only the log.
    """
    may_be_done = [each for each in steps if can_ask_first(run, each, line)]
    for step in sorted(may_be_done, key=lambda each: each.last.last_line, reverse=True):
        before = step.last
        if before.survives_restore:
            if step.node.confirm is None or await _said_done(run, step):
                expect_page_of(run, step, sure=not before.was_skipped)
                return step
            run.unseen.add(step.path)
        elif await _said_done(run, step):
            verdict = Verdict("done", "`confirm` says so")
            say_verdict(run, step.path, before.call, verdict)
            settle(run, step, verdict)
            return step
    return None


def can_ask_first(run: RunState, step: StepReached, line: int) -> bool:
    """True if ``known_done`` may learn something about the step."""
    before = step.before
    if before is None or before.call.effect != "effect":
        return False
    if before.survives_restore:
        # Steps that led to it may have been done again since, and a checkpoint taken there: that one lacks the side effect's page.
        return max(before.last_line, before.since) > line
    # The restored state has undone the step.
    state = step_states.State.UNDONE if before.state is step_states.State.DONE else before.state
    row = policies.row(run, step.node, before, state)
    return before.last_line > line and before.may_have_happened and Then.CONFIRM in row


async def _said_done(run: RunState, step: StepReached) -> bool:
    return (await ask_the_site(run, step, once=True)).found == "done"


async def _holds_on_surviving_page(run: RunState, step: StepReached) -> bool:
    # After a change of the node, other rules were checked before the action.
    if step.last.call.held_before is not False or run.browser is None or step.last.edited:
        return False
    run.browser.bound(step.node.seconds)
    step.frame.program.confine(run.browser)
    try:
        rules = attempt.Step(run, step.node, step.frame, step.path, step.last.call.attempt).rules()
        return await leaf_context.all_hold(rules, run.browser.tabs.get(step.node.works_in))
    except (SiteError, AuthorError):
        return False


async def _follow_row(
    run: RunState, step: StepReached, then: Sequence[Then], *, here: bool = False, unanswered: bool = False
) -> Verdict:
    """Follow a row of the table of `step_states` until it gives a verdict. Only *not-done* has the side effect attempted again.

    ``here``: this process did it, and can check which requests are unanswered. ``unanswered``: some may be, until that is checked.
    """
    node, before = step.node, step.last
    policy = "on_redo: redo" if before.state is step_states.State.UNDONE else f"after_crash: {node.after_crash}"
    unanswered = unanswered or before.unanswered
    how = "the node has no `confirm`" if node.confirm is None else "`after_crash: ask` asks no `confirm`"
    for each in then:
        match each:
            case Then.VERIFY:
                if run.attached and not before.rolled_back and await _holds_on_surviving_page(run, step):
                    return Verdict("done", "`verify` holds on the surviving page")
            case Then.CONFIRM:
                said = await (ask_once_answered if here else ask_the_site)(run, step)
                unanswered = said.unanswered if here else unanswered
                if said.found == "not-done" and unanswered:
                    said = STILL_UNANSWERED
                if said.found != "unknown":
                    return said
                how = said.how
            case Then.ACT:
                return Verdict("not-done", f"`{policy}` says to do it again")
            case Then.SKIP:
                return Verdict("skipped", f"`{policy}` says to continue without it")
            case Then.ASK | Then.TAKE:
                break
    return Verdict("unknown", how, unanswered)


async def ask_once_answered(run: RunState, step: StepReached) -> Verdict:
    """Ask the site once it has answered all that the action sent (all actions of an `agent`). Before that, *not done* proves nothing.

    Waits for the answers as long as the step may take.
    """
    browser, agent = await run.need_browser(), step.node.asks == "agent"
    browser.bound(ANSWER_SECONDS if agent else step.node.seconds)
    answered = await browser.at_rest(earlier=agent)
    said = await ask_the_site(run, step)
    if said.found == "done" or answered:
        return said
    return STILL_UNANSWERED if said.found == "not-done" else said._replace(unanswered=True)


async def ask_the_site(run: RunState, step: StepReached, *, once: bool = False) -> Verdict:
    """Return the verdict of the node's ``confirm`` on the action of the step: done, not done, or unknown.

    ``once``: a *not done* is not asked again, so it proves nothing about an action that may be on its way.
    """
    confirm = step.node.confirm
    assert confirm is not None
    run.emit(events.StepWaiting(step.path, "confirm: asking the site whether it happened"))
    try:
        if await _look(run, step):
            return Verdict("done", "`confirm` says so")
        if once:
            return Verdict("not-done", "`confirm` says so")
        again = f"confirm: asking again in {confirm.settle:g} s, in case the site is slow"
        run.emit(events.StepWaiting(step.path, again))
        await asyncio.sleep(confirm.settle)
        if await _look(run, step):
            return Verdict("done", "`confirm` says so, at the second look")
    except (SiteError, AuthorError, SetupError) as error:
        fix = error.fix if opened_parts.OPENED_BY in error.evidence else None
        return Verdict("unknown", f"`confirm` failed: {error.message}", fix=fix)
    return Verdict("not-done", f"`confirm` says so, twice in {confirm.settle:g} s")


async def _look(run: RunState, step: StepReached) -> bool:
    """Run the whole ``confirm`` once, in a fresh tab and a separate thread; True if it says *done*."""
    asking = step.node.confirm
    assert asking is not None
    inner = scopes.Scope(step.frame)
    run.forget(asking.nodes, inner)
    browser = await run.need_browser()
    async with browser.fresh_page() as page:
        # Before its side effect is announced, a step has no call.
        asked = step.before.call.call if step.before is not None else step.path
        check = confirm.ConfirmCheck(run, step.path, asked, page)
        await check.block(asking.nodes, inner, f"{step.path}/confirm")
        return run.render(asking, "done", inner, step.path)


def unknown(step: StepReached, verdict: Verdict, error: RunOpsError | None = None) -> Paused:
    """Return the pause that asks a person if the side effect happened; for an `agent`, if all of it is done.

    ``resume_asks`` in its evidence: a resumed run asks the site again. ``unanswered``: even then, *not done* proves nothing.
    """
    node, action = step.node, step.last
    call = action.call
    failed = error.as_json() if error else action.result.error if action.result else None
    known = failed or action.asked.get("error")
    cut_off = action.state is step_states.State.OPEN and known is None
    ended = "the run ended while it was on its way, and " if cut_off else ""
    said = f"it is unknown whether the {call.action or call.node} happened: {ended}{verdict.how}"
    evidence: dict[str, Json] = {
        "page": leaf_context.led_to(action),
        "call": call.call,
        "error": known,
        "args": call.args,
    }
    if actions := [each for each in action.actions if each.may_have_happened]:
        how_many = "1 action" if len(actions) == 1 else f"{len(actions)} actions"
        open_one = ", and it is unknown whether the last one happened" if action.unclear else ""
        said = (
            f"the agent was ended after {how_many}{open_one}; it is unknown whether its goal is reached: {verdict.how}"
        )
        evidence["actions"] = [{"action": each.call.action, "args": each.call.args} for each in actions]
    fix = "look at the site, and say `done`, `not-done` or `skip`"
    if node.confirm is not None and node.after_crash != "ask":
        evidence["resume_asks"] = True
        fix = f"`runops resume` asks the site again; or {fix}"
    if verdict.unanswered:
        evidence["unanswered"] = True
        fix = f"the site may still be at work, so give it time; then {fix}"
    return Paused("outcome-unknown", said, fix=fix, phase="after", evidence=evidence).located(call.path)


def ask_before_redo(run: RunState, actions: list[attempts.Attempt]) -> None:
    """Raise Paused if a person must decide about a side effect that the restored state lacks."""
    if not actions:
        return

    def cannot_tell(action: attempts.Attempt) -> bool:
        return policies.node_of(run, action).confirm is None

    default = "ask" if any(map(cannot_tell, actions)) else "confirm"
    policy_of = {each.call.path: policies.on_redo(run, each) or default for each in actions}
    asked = [
        each
        for each in actions
        if policy_of[each.call.path] == "ask" or (policy_of[each.call.path] == "confirm" and cannot_tell(each))
    ]
    if asked:
        names = ", ".join(each.call.path for each in actions)
        raise Paused(
            "redo-unconfirmed",
            f"the browser is gone, and what follows the last checkpoint would be done again; that holds actions already done: {names}",
            fix="say `done` to pass over them, or `not-done` to do them again",
            phase="after",
            evidence={"calls": [each.call.call for each in asked]},
        ).located(asked[0].call.path)
