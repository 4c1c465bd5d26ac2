"""Resume of a run after its process died, failed, paused or was interrupted. ``docs/crash-recovery.md`` explains it for users.

Before the engine's usual pass, the surviving browser is reattached or the last checkpoint restored. The call that the crash left open is
closed, and side effects that would be done twice are settled.
"""

from __future__ import annotations

import asyncio
import dataclasses
import itertools
from collections.abc import Awaitable, Callable, Sequence

from nodes import errors
from nodes.errors import Paused, RunOpsError, SetupError, SiteError, UsageError
from nodes.values import Json
from runtime import events
from runtime.browser import port
from runtime.engine import checkpoints, reconcile, skipped_steps, steps
from runtime.engine.engine import ExecutionEngine
from runtime.engine.run_state import RunState, Signal, StepReached
from runtime.log import attempts, entries, history
from runtime.recovery import redo
from runtime.recovery.replay_order import is_at

Reattach = Callable[[], Awaitable[port.Browser | None]]
"""Reattaches the run's surviving browser; returns None if it is gone."""


async def resume_workflow(engine: ExecutionEngine, reattach: Reattach, from_step: str | None = None) -> Json:
    """Settle what the last process left open, run what is left, and return the output. Raises like ``ExecutionEngine.run``.

    If the browser is gone, nothing before ``from_step`` is done again, even if the page needs it. Raises UsageError ``step-not-reached``.
    """
    run = engine.state
    past = run.history
    position = await engine.find_open_step()
    reached, more = position.step, position.more
    in_hand = reached.before if reached is not None else None
    _close_open_calls(run, but=in_hand)
    browser = await _surviving_browser(run, reattach, reached) if _used_a_page(past) else None
    if browser is not None and not more:
        # Nothing is left to do in it: it ends with the run, as it would have without the crash.
        run.take(browser)
        run.checkpoints.opened(browser)
    elif browser is not None:
        _reattach(run, browser)
        # The page is as the crash left it: only now can `verify` prove that the action happened.
        if (
            reached is not None
            and in_hand is not None
            and in_hand.must_be_reconciled
            and not in_hand.rolled_back
            and not steps.continues(run, reached)
        ):
            await reconcile.reconcile_before_retry(run, reached)
    _close_open_calls(run)
    rebuilt = Rebuilt()
    if browser is None and more and _used_a_page(past):
        rebuilt = await _restore(engine, reached, from_step)
    elif from_step is not None:
        run.emit(events.Said("nothing is done again, because no browser has to be rebuilt: `--from` changes nothing"))
    where = ""
    if reached is not None:
        where = f", continuing {'after' if past.done(reached.path) is not None else 'at'} {reached.path}"
    if past.steps_done:
        run.emit(events.Said(f"{_steps(past.steps_done)} done and will not be done again{where}"))
    while True:
        try:
            return await engine.run()
        except FoundDone as found:
            run.before_redo = None
            run.writer.note("restored", mode="here", kept=sorted(found.before))
        except RunOpsError as error:
            raise _with_way_out(run, error, rebuilt, reached) from None


def _close_open_calls(run: RunState, but: attempts.Attempt | None = None) -> None:
    """Close every open call of the last process, except ``but``. An action among them is reconciled when the run reaches it."""
    for attempt in run.history.open_calls():
        if attempt is not but:
            run.writer.result(attempt.call, "interrupted")


def _used_a_page(past: history.History) -> bool:
    # An agent has its page before its call is written, even if it has done nothing there yet.
    in_use = any(attempt.on_page or attempt.call.node == attempts.AGENT for attempt in past.open_calls())
    return past.page is not None or in_use


async def _surviving_browser(run: RunState, reattach: Reattach, reached: StepReached | None) -> port.Browser | None:
    """Return the browser as the last process left it.

    It is closed if it was left half restored, has a tab that does not answer, or is where the step ``reached`` cannot begin.
    """
    midway = False
    if reached is not None and run.is_midway(reached.node):
        midway = True
        run.emit(events.Said(f"{reached.path} had read a part of its list, and begins anew: the page is restored"))
    try:
        browser = await reattach()
    except port.GivenUp as given_up:
        run.emit(events.Said(f"{given_up}. So the browser was ended"))
        return None
    if browser is not None and (run.history.restoring or midway):
        await browser.close()
        return None
    return browser


def _reattach(run: RunState, browser: port.Browser) -> None:
    page = run.history.page
    lost: list[Json] = [{"name": tab.name, "url": tab.url} for tab in browser.lost_tabs]
    run.writer.note("restored", mode="attached", **({"lost": lost} if lost else {}))
    for tab in browser.lost_tabs:
        what = f"the tab `{tab.name}`" if tab.name is not None else "a tab"
        where = f" ({tab.url})" if tab.url else ""
        run.emit(events.Said(f"{what}{where} that did not answer, in a dialog or busy or not loaded yet, was closed"))
    if page is None or page.pending:
        browser.mark_pending()
    last = run.history.last_on_page()
    since = last is not None and (last.result is None or last.result.page is None)
    if page is None or page.posted or since:
        # An action without a recorded outcome may have sent a form.
        browser.mark_posted()
    run.take(browser)
    run.attached = True
    run.page_at = last.call.seq if last is not None else 0
    run.checkpoints.opened(browser, due=True)
    run.emit(events.Said("the browser is still there: continuing in it"))


@dataclasses.dataclass(slots=True)
class Rebuilt:
    again: Sequence[str] = ()
    done: StepReached | None = None
    """Side effect that is known to have happened: the steps before it are not done again."""
    left_out: Sequence[str] = ()  # steps on the page that led to it, in order


async def _restore(engine: ExecutionEngine, reached: StepReached | None, from_step: str | None) -> Rebuilt:
    run = engine.state
    past = run.history
    checkpoint = await _usable(run, past.checkpoint)
    if from_step is not None:
        checkpoint = _taken_before(past, checkpoint, from_step)
    line = checkpoint.after if checkpoint is not None else 0
    steps = await engine.steps_so_far(line)
    skipped = _before(past, steps, from_step)
    if not any(reconcile.can_ask_first(run, each, line) for each in steps):
        reconcile.ask_before_redo(run, past.undone_after(line, skipped))
    run.writer.note("restoring", after=line)
    checkpoint = await _in_state_of(run, checkpoint, from_step)
    line = checkpoint.after if checkpoint is not None else 0
    where = "the last checkpoint" if checkpoint is past.checkpoint else "the checkpoint before the last"
    begins = "begins on a blank page" + (", because no checkpoint was taken" if past.checkpoint is None else "")
    begins = f"has the state of {where}" if checkpoint is not None else begins
    run.emit(events.Said(f"the browser is gone: a new one {begins}"))
    if checkpoint is not None:
        run.verified = skipped_steps.Verified.read(checkpoint.verified)
        run.aftermath = skipped_steps.ExpectedPage(run.verified)
    rebuilt = Rebuilt()

    def led_to(found: StepReached) -> set[str]:
        before = _before_step(steps, found)
        rebuilt.done = found
        rebuilt.left_out = [each.path for each in before if _on_page_after(each, line) and each.path not in skipped]
        return {each.path for each in before}

    # A person who names the first step has said what is done again.
    asked = steps if from_step is None else [each for each in steps if each.path in skipped]
    if (done := await reconcile.known_done(run, asked, line)) is not None:
        skipped |= led_to(done)
        if from_step is not None and run.aftermath is not None:
            run.aftermath = dataclasses.replace(run.aftermath, strict=False)
    reconcile.ask_before_redo(run, past.undone_after(line, skipped))
    todo = redo.plan(run.loaded, past, line, skipped)
    rebuilt.again = todo.again
    lists = {"kept": list[Json](todo.kept), "anew": list[Json](todo.anew)}
    run.writer.note("restored", mode="checkpoint", after=line, **{name: each for name, each in lists.items() if each})
    if count := len([each for each in todo.again if reached is None or each != reached.path]):
        run.emit(events.Said(f"{_steps(count)} done again, to return to the page"))
    unsure = [each for each in asked if reconcile.can_ask_first(run, each, line)]
    if unsure:

        async def ask_again() -> None:
            if (found := await reconcile.known_done(run, unsure, line)) is not None:
                raise FoundDone(led_to(found))

        run.before_redo = ask_again
    return rebuilt


def _taken_before(past: history.History, checkpoint: entries.Checkpoint | None, step: str) -> entries.Checkpoint | None:
    """Return the last checkpoint taken before ``step``: a person who passes ``--from`` wants the step done again."""
    begun = min((each[0].call.seq for path, each in past.attempts.items() if is_at(path, step)), default=past.last_seq)
    for each in (checkpoint, past.checkpoint_before):
        if each is not None and each.after < begun:
            return each
    return None


def _on_page_after(step: StepReached, line: int) -> bool:
    before = step.before
    return before is not None and before.last_line > line and before.on_page and not before.survives_restore


def _before_step(steps: Sequence[StepReached], last: StepReached) -> list[StepReached]:
    """Return the steps that led to ``last``, in the order of the workflow."""
    return list(itertools.takewhile(lambda each: each is not last, steps))


class FoundDone(Signal):
    """Raised while steps are done again, if the site reports that the side effect to which they lead is done. It ends these steps."""

    def __init__(self, before: set[str]) -> None:
        """``before`` are the steps that led to it; they keep their values."""
        super().__init__()
        self.before = before


async def _usable(run: RunState, checkpoint: entries.Checkpoint | None) -> entries.Checkpoint | None:
    try:
        if checkpoint is not None:
            await _content(run, checkpoint)
    except checkpoints.Unusable as wrong:
        file = run.private / checkpoint.file if checkpoint is not None else run.private
        run.emit(events.Said(f"the last checkpoint's file {wrong} ({file}): continuing from the beginning of the run"))
        return None
    return checkpoint


async def _content(run: RunState, checkpoint: entries.Checkpoint) -> bytes:
    writer = run.writer
    return await asyncio.to_thread(checkpoints.content, checkpoint, writer.store, writer.conversation.id)


async def _in_state_of(
    run: RunState, last: entries.Checkpoint | None, from_step: str | None
) -> entries.Checkpoint | None:
    """Restore the last checkpoint, or the one before it if a page of the last one differs. Returns the one that was restored.

    Raises Paused ``page-differs`` if pages of both differ. A person who passes ``from_step`` has seen the page, and accepts it as it is.
    """
    if last is None:
        await run.need_browser()
        return None
    before = run.history.checkpoint_before
    first: port.Differs | None = None
    for checkpoint in (last, before) if before is not None else (last,):
        try:
            data = await _content(run, checkpoint)
        except checkpoints.Unusable as wrong:
            if checkpoint is before:
                continue
            message = f"the checkpoint {checkpoint.file} {wrong}"
            raise SetupError("checkpoint-unreadable", message, fix="continue again: `runops resume`") from None
        browser = await run.need_browser()
        differs = await browser.restore(data)
        run.checkpoints.opened(browser)
        if differs is None or from_step is not None:
            return checkpoint
        first = first or differs
        run.emit(events.Said(_said(run, differs)))
        await run.let_go_of_browser()
    assert first is not None
    pages = {"expected": first.expected, "seen": first.seen}
    evidence: dict[str, Json] = {name: {"address": each.address, "title": each.title} for name, each in pages.items()}
    fix = "look at the site; then `runops resume RUN --from STEP` continues at a step such as a `goto`, on the page as it is"
    raise Paused("page-differs", _said(run, first), fix=fix, phase="after", evidence={**evidence, "calls": []})


def _said(run: RunState, differs: port.Differs) -> str:
    mask = run.writer.masker.text
    expected, seen = differs.expected, differs.seen
    now = f"now shows {mask(seen.title)!r} at {mask(seen.address)}"
    if (seen.title, seen.address) == (expected.title, expected.address):
        now = "another page of that name is there now"
    return f"the page of a checkpoint has changed: it showed {mask(expected.title)!r} at {mask(expected.address)}, and {now}"


def _before(past: history.History, steps: Sequence[StepReached], step: str | None) -> set[str]:
    """Return the paths of ``steps`` before the step or container at ``step``. Raises UsageError ``step-not-reached``."""
    if step is None:
        return set()
    first = next((each for each in steps if is_at(each.path, step)), None)
    if first is not None:
        return {each.path for each in _before_step(steps, first)}
    known = [path for path in past.order if path]
    if any(is_at(path, step) for path in known):
        # It is before the checkpoint.
        return set()
    fix = errors.did_you_mean(step, known, "`runops show RUN` lists the steps; take one of them")
    raise UsageError("step-not-reached", f"the run has not reached a step `{step}`", fix=fix)


def _with_way_out(run: RunState, error: RunOpsError, rebuilt: Rebuilt, reached: StepReached | None) -> RunOpsError:
    """Return the error. If the rebuilt page may be its cause, add a way around it."""
    if not isinstance(error, SiteError):
        return error
    name = run.writer.conversation.id
    if error.path is not None and _is_preparation(run, error.path, rebuilt.again, reached):
        step = _first_needed(run, error.path, rebuilt.again, reached)
        way = (
            "it was done before the browser was lost, and is done again only to reach the page; if the site has changed since,"
            f" `runops resume {name} --from {step}` leaves such steps out"
        )
        evidence: dict[str, Json] = {"preparation": list[Json](rebuilt.again), "from": step}
    elif rebuilt.left_out and rebuilt.done is not None and rebuilt.done.path == _last_effect(run.history):
        step, done = rebuilt.left_out[0], rebuilt.done.path
        way = (
            f"{done} has happened, so the steps that led to it were not done again; if the page needs them, such as a sign-in,"
            f" `runops resume {name} --from {step}` does them again, but not {done}"
        )
        evidence = {"left_out": list[Json](rebuilt.left_out), "from": step}
    else:
        return error
    return error.replaced(fix=f"{error.fix}; {way}" if error.fix else way, evidence={**error.evidence, **evidence})


def _is_preparation(run: RunState, path: str, again: Sequence[str], reached: StepReached | None) -> bool:
    """True if the step at ``path`` was done before the browser was lost, and is done again only to reach the page."""
    if path not in again:
        return False
    if reached is None or path != reached.path:
        return True
    # An earlier resume may have ended while it did the step again: then the run continues at it, but had come further.
    before = run.history.attempts[path][:-1]
    return path != again[-1] and any(each.settled and each.rolled_back for each in before)


def _first_needed(run: RunState, path: str, again: Sequence[str], reached: StepReached | None) -> str:
    """Return the step at which to continue without the preparation that contains the step at ``path``."""
    rest = again[again.index(path) + 1 :]
    gotos = (each for each in rest if run.history.attempts[each][-1].call.action == "goto")
    last = reached.path if reached is not None and reached.path != path else rest[-1] if rest else path
    return next(gotos, last)


def _last_effect(past: history.History) -> str | None:
    return next((each.call.path for each in past.steps_backwards() if each.call.effect == "effect"), None)


def _steps(count: int) -> str:
    return f"{count} step is" if count == 1 else f"{count} steps are"
