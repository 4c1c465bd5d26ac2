"""Did the deed happen? After a crash, a lost answer or a restored state, a deed of class *effect* is **done**, **not done** or **unknown**.

``verify`` holding on the surviving page says *done*, if it did not hold just before the deed; it can never say *not done*. ``confirm`` asks the
site itself, in a fresh tab, and can say either; *not done* is believed when the whole block says so again ``settle`` seconds later. An error
on the way is *unknown*. Unknown pauses the run, unless the author wrote ``after_crash: retry`` or ``skip``.
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Literal

from nodes.base import Leaf
from nodes.errors import AuthorError, Paused, RunOpsError, SetupError, SiteError
from nodes.pages import Page
from nodes.rules import Rule
from nodes.values import Json
from runtime import events
from runtime.browser import origins
from runtime.engine import attempt, scopes, skipped_steps
from runtime.log import attempts, entries, step_states
from runtime.log.step_states import Then
from runtime.secrets import masking

if TYPE_CHECKING:
    from runtime.engine.engine import ExecutionEngine

ANSWER_SECONDS = 10.0
"""How long what an agent sent may take to be answered once its model says that all is done."""

Found = Literal["done", "not-done", "skipped", "unknown"]


class Signal(Exception):
    """Ends a walk on purpose: no error of any node."""


class Reached(Signal):
    """A step of the walk, and where it stands. A dry walk raises it at the first one without a value."""

    def __init__(self, node: Leaf, frame: scopes.Frame, path: str, before: attempts.Attempt | None) -> None:
        """``frame`` is what the step's references see."""
        super().__init__(path)
        self.node = node
        self.frame = frame
        self.path = path
        self.before = before


@dataclasses.dataclass(frozen=True, slots=True)
class Judgement:
    """What was found, and how it is known."""

    found: Found
    how: str
    unanswered: bool = False
    """Whether the site had not answered yet what the action sent."""


STILL_UNANSWERED = Judgement("unknown", "`confirm` shows nothing of it yet, and the site has not answered", True)
"""A *not done* that proves nothing: what was sent may still be on its way."""


def demand_expr(rule: Rule) -> None:
    """Raise SiteError ``verify-failed`` where the condition of an ``expr`` rule is false."""
    if not rule.expr:
        raise SiteError(
            "verify-failed", "the condition of `expr` is false", phase="after", evidence={"rule": "expr", "seen": False}
        )


async def all_hold(rules: Sequence[Rule], page: Page) -> bool:
    """Whether every rule holds now."""
    for rule in rules:
        if not (rule.expr if rule.kind == "expr" else await page.holds(rule)):
            return False
    return True


async def after_error(
    engine: ExecutionEngine,
    node: Leaf,
    frame: scopes.Frame,
    path: str,
    call: entries.Call,
    error: RunOpsError,
    *,
    again: bool,
) -> Literal["done", "not-done", "failed"]:
    """A deed was begun and went wrong in this very process. ``failed``: the site answered, and not as the author wants.

    ``again``: attempts are left, so that the author's ``retry.on`` may say to try again unasked.

    Raises Paused where nobody knows, and then the call stays open.
    """
    word = step_states.configured(
        step_states.State.FAILED_AFTER, confirm=node.confirm is not None, after_crash=node.after_crash, on_redo=None
    )
    then = step_states.TABLE[step_states.State.FAILED_AFTER, "effect", word]
    if error.code not in step_states.LOST:
        # The site has answered: only the site itself can say more, and `after_crash` is for what is unknown.
        if Then.CONFIRM not in then:
            return "failed"
        then = (Then.CONFIRM, Then.ASK)
    if again and node.retry is not None and error.code in (node.retry.on or ()):
        return "failed"
    reached = Reached(node, frame, path, engine.history.attempt_of(call))
    judgement = await _find_out(engine, reached, then, here=True, unanswered=error.code == "timeout")
    if judgement.found == "done":
        return "done"
    if judgement.found == "not-done":
        return "not-done"
    if judgement.found == "skipped":
        engine.tell(events.Said(f"{path}: passed over, as `after_crash: skip` asks"))
        return "done"
    raise unknown(node, engine.history.attempt_of(call), judgement, error)


async def before_attempt(engine: ExecutionEngine, reached: Reached) -> None:
    """A deed that may have happened is about to be attempted again: find out first, and write down what was found.

    Closes the call where it is open. Where nobody knows, raises Paused and leaves it open.
    """
    before = reached.before
    assert before is not None
    call, behind = before.call, before.behind
    judgement = await _find_out(engine, reached, what_then(engine, reached.node, before))
    if judgement.found == "unknown":
        raise unknown(reached.node, before, judgement)
    say = {"done": "had happened", "not-done": "had not happened", "skipped": "is passed over"}[judgement.found]
    engine.tell(events.Said(f"{reached.path}: the {call.action or call.node} {say} ({judgement.how})"))
    settle(engine, reached, judgement)
    if engine.browser is None or judgement.found == "not-done":
        return
    if behind:
        await drop_input(engine, reached.node)
    if judgement.found == "done":
        engine.checkpoints.effect_finished(engine.browser)


def settle(engine: ExecutionEngine, step: Reached, judgement: Judgement) -> None:
    """Write down what was found of a side effect; one that is passed over leaves the next step to come to its page."""
    before, found = step.before, judgement.found
    assert before is not None
    call, value = before.call, None
    if found != "not-done":
        leave(engine, step, sure=found == "done")
        value = value_of_done(engine, step.node, before) if found == "done" else None
    if before.result is not None:
        fields: dict[str, Json] = {"value": value} if value is not None and before.result.status != "ok" else {}
        engine.journal.note("judged", call=call.call, verdict=found, how=judgement.how, **fields)
    elif found == "not-done" or (found == "done" and step.node.owes_value):
        engine.journal.result(call, "interrupted")
        engine.journal.note("judged", call=call.call, verdict=found, how=judgement.how)
    else:
        engine.journal.result(call, "recovered" if found == "done" else "skipped", value=value)


def leave(engine: ExecutionEngine, step: Reached, *, sure: bool = True) -> None:
    """Have the next step on the page wait for what ``step`` would have waited for, on the page to which that led as far as is known.

    Where it is ``sure`` that it happened, another page than that is none on which the run may continue.
    """
    before, node = step.before, step.node
    assert before is not None
    if not node.moves_page:
        return
    try:
        verified = attempt.Step(engine, node, step.frame, step.path, before.call.attempt).holding()
    except RunOpsError:
        verified = skipped_steps.NOTHING
    address = None if engine.attached and not before.behind else led_to(before)
    engine.aftermath = skipped_steps.Aftermath(verified, address, step.frame.program, strict=sure)


def led_to(deed: attempts.Attempt) -> str | None:
    """The address to which a side effect led; of one whose result nobody recorded, that at which it was done."""
    page = deed.result.page if deed.result is not None else None
    url = (page.url if page is not None else None) or deed.call.url
    return url if url is not None and masking.MASK not in url and origins.origin(url) is not None else None


def value_of_done(engine: ExecutionEngine, node: Leaf, deed: attempts.Attempt | None = None) -> str | None:
    """What a step yields of which is known only that it happened: the address of its page. An `agent` yields nothing by itself."""
    if engine.browser is None or node.asks == "agent":
        return None
    known = led_to(deed) if deed is not None and not engine.attached else None
    return known or engine.browser.page.url


async def drop_input(engine: ExecutionEngine, node: Leaf) -> None:
    """What was typed again for a deed was taken up by it once already: it must not go out with the next one."""
    if engine.browser is not None and engine.browser.facts().pending_input:
        engine.browser.bound(node.seconds)
        engine.root.program.confine(engine.browser)  # the page may be one that the caller of the step's file opened
        await engine.browser.page.goto(engine.browser.page.url, anew=True)


async def drop_taken_up(engine: ExecutionEngine, line: int, passed: Iterable[attempts.Attempt]) -> None:
    """The walk passes over deeds that were settled by ``line``: what was typed again for them since then must not go out with the next one."""
    if engine.browser is None or not engine.browser.facts().pending_input:
        return
    typed = engine.history.last_on_page()
    # What stands behind the deeds, in the order of the walk, is still to go out.
    if typed is None or not line < typed.call.seq <= engine.walked:
        return
    for deed in passed:
        happened = deed.past_recall or (deed.result is not None and deed.result.status == "ok")
        if deed.call.effect == "effect" and happened and (node := _node_of(engine, deed)).takes_up_input:
            await drop_input(engine, node)
            return


async def pass_by(engine: ExecutionEngine, state: attempts.ScopeState) -> None:
    """The walk does not go through a scope that is over: its deeds count as passed over."""
    over = state.committed or state.failed
    if over is None:
        return
    await drop_taken_up(engine, over.seq, engine.history.within(state.path))
    engine.walked = max(engine.walked, over.seq)


async def known_done(engine: ExecutionEngine, steps: Sequence[Reached], line: int) -> Reached | None:
    """The newest side effect after ``line`` of which the site, asked now, says that it is done: what led to it is not done again.

    That the site says *not done* proves nothing here: what the answer rests on, such as a sign-in, may have to be done again first. So the
    site is asked too where the log knows the side effect as done; without `confirm` there is only the log.
    """
    asked = [step for step in steps if can_ask_first(engine, step, line)]
    for step in sorted(asked, key=_line_of, reverse=True):
        before = step.before
        assert before is not None
        if before.past_recall and (step.node.confirm is None or await _said_done(engine, step)):
            leave(engine, step, sure=not before.passed_by)
            return step
        if before.past_recall:
            engine.unseen.add(step.path)
        elif await _said_done(engine, step):
            found = Judgement("done", "`confirm` says so")
            engine.tell(
                events.Said(f"{step.path}: the {before.call.action or before.call.node} had happened ({found.how})")
            )
            settle(engine, step, found)
            return step
    return None


def _line_of(step: Reached) -> int:
    return step.before.last_line if step.before is not None else 0


def can_ask_first(engine: ExecutionEngine, step: Reached, line: int) -> bool:
    """Whether ``known_done`` may find out something of the step."""
    before = step.before
    if before is None or before.call.effect != "effect":
        return False
    if before.past_recall:
        # What led to it may have been done again since, and a checkpoint taken there: then its page is none to which the side effect led.
        return max(before.last_line, before.since) > line
    return before.last_line > line and (
        before.may_have_happened and Then.CONFIRM in _rolled_back(engine, step.node, before)
    )


async def _said_done(engine: ExecutionEngine, step: Reached) -> bool:
    assert step.before is not None
    engine.tell(events.StepWaiting(step.path, "confirm: asking the site whether it happened"))
    try:
        return await _look(engine, step.node, step.frame, step.path, step.before.call)
    except (SiteError, AuthorError, SetupError):
        return False


def _rolled_back(engine: ExecutionEngine, node: Leaf, before: attempts.Attempt) -> tuple[Then, ...]:
    """What happens at a step once the state that was restored lies before it."""
    state = step_states.State.UNDONE if before.state is step_states.State.DONE else before.state
    return _row(engine, node, before, state)


async def _surviving(engine: ExecutionEngine, reached: Reached, call: entries.Call) -> Judgement | None:
    """What ``verify`` says on the page as the crash left it: done, or nothing."""
    # After a change of the node, what was looked at before the deed were other rules.
    if (
        call.held_before is not False
        or engine.browser is None
        or (reached.before is not None and reached.before.renewed)
    ):
        return None
    engine.browser.bound(reached.node.seconds)
    reached.frame.program.confine(engine.browser)
    step = attempt.Step(engine, reached.node, reached.frame, reached.path, call.attempt)
    try:
        if await all_hold(step.rules(), engine.browser.tabs.get(reached.node.works_in)):
            return Judgement("done", "`verify` holds on the surviving page")
    except (SiteError, AuthorError):
        return None
    return None


def what_then(engine: ExecutionEngine, node: Leaf, before: attempts.Attempt) -> tuple[Then, ...]:
    """What the table of ``runtime.log.step_states`` says of a step whose last attempt is ``before``."""
    return _row(engine, node, before, before.state)


def _row(engine: ExecutionEngine, node: Leaf, before: attempts.Attempt, state: step_states.State) -> tuple[Then, ...]:
    if before.effect_class != "effect":
        return step_states.TABLE[state, before.effect_class, step_states.Configured.NOTHING]
    on_redo = _on_redo(engine, before) if state is step_states.State.UNDONE else None
    word = step_states.configured(
        state, confirm=node.confirm is not None, after_crash=node.after_crash, on_redo=on_redo
    )
    return step_states.TABLE[state, "effect", word]


async def _find_out(
    engine: ExecutionEngine, reached: Reached, then: Sequence[Then], *, here: bool = False, unanswered: bool = False
) -> Judgement:
    """Do what a row of the table says, until something of it tells what became of the side effect.

    ``here``: this process did it, and knows what of it is on its way. ``unanswered``: something is, as far as is known without looking.
    """
    node, before = reached.node, reached.before
    assert before is not None
    word = "on_redo: redo" if before.state is step_states.State.UNDONE else f"after_crash: {node.after_crash}"
    unanswered = unanswered or before.unanswered
    how = "the node has no `confirm`" if node.confirm is None else "`after_crash: ask` asks no `confirm`"
    for each in then:
        match each:
            case Then.VERIFY:
                attached = engine.attached and not before.behind
                if attached and (seen := await _surviving(engine, reached, before.call)) is not None:
                    return seen
            case Then.CONFIRM:
                ask = ask_once_answered if here else ask_the_site
                said = await ask(engine, node, reached.frame, reached.path, before.call)
                unanswered = said.unanswered if here else unanswered
                if said.found == "not-done" and unanswered:
                    said = STILL_UNANSWERED
                if said.found != "unknown":
                    return said
                how = said.how
            case Then.ACT:
                return Judgement("not-done", f"`{word}` says to do it again")
            case Then.SKIP:
                return Judgement("skipped", f"`{word}` says to go on without it")
            case Then.ASK | Then.TAKE:
                break
    return Judgement("unknown", how, unanswered)


async def ask_once_answered(
    engine: ExecutionEngine, node: Leaf, frame: scopes.Frame, path: str, call: entries.Call
) -> Judgement:
    """Ask the site once it has answered all that the action sent, of an `agent` all its actions; while it has not, that it shows nothing proves nothing.

    Waits for the answers as long as the step may take.
    """
    browser, agent = await engine.need_browser(), node.asks == "agent"
    browser.bound(ANSWER_SECONDS if agent else node.seconds)
    answered = await browser.at_rest(earlier=agent)
    said = await ask_the_site(engine, node, frame, path, call)
    if said.found == "done" or answered:
        return said
    return STILL_UNANSWERED if said.found == "not-done" else dataclasses.replace(said, unanswered=True)


async def ask_the_site(
    engine: ExecutionEngine, node: Leaf, frame: scopes.Frame, path: str, call: entries.Call
) -> Judgement:
    """What the node's ``confirm`` says of a deed: done, not done, or unknown."""
    confirm = node.confirm
    assert confirm is not None
    engine.tell(events.StepWaiting(path, "confirm: asking the site whether it happened"))
    try:
        if await _look(engine, node, frame, path, call):
            return Judgement("done", "`confirm` says so")
        engine.tell(
            events.StepWaiting(path, f"confirm: asking again in {confirm.settle:g} s, in case the site is slow")
        )
        await asyncio.sleep(confirm.settle)
        if await _look(engine, node, frame, path, call):
            return Judgement("done", "`confirm` says so, at the second look")
    except (SiteError, AuthorError, SetupError) as error:
        return Judgement("unknown", f"`confirm` failed: {error.message}")
    return Judgement("not-done", f"`confirm` says so, twice in {confirm.settle:g} s")


async def _look(engine: ExecutionEngine, node: Leaf, frame: scopes.Frame, path: str, call: entries.Call) -> bool:
    """Run the whole block once, in a fresh tab and a thread of its own."""
    from runtime.engine import confirm as engine_confirm  # containers go by what is found out here

    assert node.confirm is not None
    inner = scopes.Frame(frame)
    engine.forget(node.confirm.nodes, inner)
    browser = await engine.need_browser()
    async with browser.fresh_page() as page:
        await engine_confirm.Look(engine, path, call, page).block(node.confirm.nodes, inner, f"{path}/confirm")
        return engine.render(node.confirm, "done", inner, path)


def unknown(node: Leaf, deed: attempts.Attempt, judgement: Judgement, error: RunOpsError | None = None) -> Paused:
    """The pause that asks a person whether the side effect happened; of an `agent`, whether all of it is done.

    ``resume_asks`` in its evidence: a resumed run asks the site again. ``unanswered``: that it shows nothing proves nothing then, either.
    """
    call = deed.call
    failed = error.as_json() if error else deed.result.error if deed.result else None
    known = failed or deed.asked.get("error")
    cut_off = deed.state is step_states.State.OPEN and known is None
    ended = "the run ended while it was on its way, and " if cut_off else ""
    said = f"nobody knows whether the {call.action or call.node} happened: {ended}{judgement.how}"
    evidence: dict[str, Json] = {
        "page": led_to(deed),
        "call": call.call,
        "error": known,
        "args": call.args,
    }
    if deeds := [each for each in deed.deeds if each.may_have_happened]:
        how_many = "1 deed" if len(deeds) == 1 else f"{len(deeds)} deeds"
        open_one = ", and nobody knows of the last one whether it happened" if deed.unclear else ""
        said = (
            f"the agent was ended after {how_many}{open_one}; whether its goal is reached nobody knows: {judgement.how}"
        )
        evidence["deeds"] = [{"deed": each.call.action, "args": each.call.args} for each in deeds]
    mend = "look at the site, and say `done`, `not-done` or `skip`"
    if node.confirm is not None and node.after_crash != "ask":
        evidence["resume_asks"] = True
        mend = f"`runops resume` asks the site again; or {mend}"
    if judgement.unanswered:
        evidence["unanswered"] = True
        mend = f"the site may still be at work, so give it time; then {mend}"
    return Paused("outcome-unknown", said, mend=mend, phase="after", evidence=evidence).located(call.path)


def ask_before_redo(engine: ExecutionEngine, deeds: list[attempts.Attempt]) -> None:
    """Settle how each deed behind the restored state is treated; raises Paused where a person must say so first."""
    if not deeds:
        return
    with_confirm = {each.call.path for each in deeds if _node_of(engine, each).confirm is not None}
    default = "confirm" if len(with_confirm) == len(deeds) else "ask"
    policies = {each.call.path: _on_redo(engine, each) or default for each in deeds}
    asked = [
        each
        for each in deeds
        if policies[each.call.path] == "ask"
        or (policies[each.call.path] == "confirm" and each.call.path not in with_confirm)
    ]
    if asked:
        names = ", ".join(attempt.call.path for attempt in deeds)
        raise Paused(
            "redo-unconfirmed",
            f"the browser is gone, and what follows the last checkpoint would be done again; that holds deeds already done: {names}",
            mend="say `done` to pass over them, or `not-done` to do them again",
            phase="after",
            evidence={"calls": [attempt.call.call for attempt in asked]},
        ).located(asked[0].call.path)


def policy(engine: ExecutionEngine, attempt: attempts.Attempt) -> Literal["confirm", "redo", "ask"]:
    """What to do about a deed that would be repeated on purpose: ask the site, repeat it on the author's word, or ask a person."""
    said = _on_redo(engine, attempt)
    if said == "redo":
        return "redo"
    return "confirm" if said != "ask" and _node_of(engine, attempt).confirm is not None else "ask"


def _node_of(engine: ExecutionEngine, attempt: attempts.Attempt) -> Leaf:
    found = engine.loaded.find(attempt.call.path)
    assert found is not None
    assert isinstance(found.node, Leaf)
    return found.node


def _on_redo(engine: ExecutionEngine, attempt: attempts.Attempt) -> str | None:
    """``on_redo`` of the innermost container or file that has one."""
    found = engine.loaded.find(attempt.call.path)
    policies = [getattr(each, "on_redo", None) for each in reversed(found.around)] if found is not None else []
    return next((policy for policy in policies if policy is not None), None)
