"""How a run goes on after its process died, failed, paused or was interrupted. ``docs/crash-recovery.md`` tells it for people.

The walk of the engine is the same as ever. Before it: the surviving browser is taken up again, or the last checkpoint restored; the call that the crash left
open is closed; and what would be done twice is settled.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from nodes.errors import RunOpsError
from nodes.values import Json
from runtime import checkpoints, events, history, judge, steps
from runtime.browser import port
from runtime.engine import ExecutionEngine

Reattach = Callable[[], Awaitable[port.Browser | None]]
"""Takes up the run's surviving browser; None where it is gone."""


async def go_on(engine: ExecutionEngine, reattach: Reattach) -> Json:
    """Settle what the last process left behind, then run what is left; the output. Raises like ``ExecutionEngine.run``."""
    past = engine.history
    reached: judge.Reached | None = None
    more = True
    try:
        reached = await engine.find_open_step()
        more = reached is not None
    except RunOpsError:
        # It fails again in the real walk, which says so.
        pass
    in_hand = reached.before if reached is not None else None
    _close_open_calls(engine, but=in_hand)
    browser = await _surviving_browser(engine, reattach) if _used_a_page(past) else None
    if browser is not None and not more:
        # Nothing is left to be done in it: it ends with the run, as it would have without the crash.
        engine.browser = browser
        engine.checkpoints.opened(browser)
    elif browser is not None:
        _take_up(engine, browser)
        # The page is as the crash left it: the one moment at which `verify` can prove that the deed happened.
        if (
            reached is not None
            and reached.before is not None
            and reached.before.may_have_happened
            and not reached.before.behind
            and not steps.goes_on(engine, reached.node, reached.before)
        ):
            await judge.before_attempt(engine, reached)
    _close_open_calls(engine)
    if browser is None and more and _used_a_page(past):
        await _restore(engine)
    _say(engine, reached)
    return await engine.run()


def _close_open_calls(engine: ExecutionEngine, but: history.Attempt | None = None) -> None:
    """Give every call of the last process, ``but`` one, its result. A deed among them is judged when the run comes to it, with what is before it done again."""
    for attempt in engine.history.open_calls():
        if attempt is but:
            continue
        engine.journal.result(attempt.call, "interrupted")


def _used_a_page(past: history.History) -> bool:
    # An agent has its page before its call is written, also where it has done nothing there yet.
    in_use = any(attempt.on_page or attempt.call.node == history.AGENT for attempt in past.open_calls())
    return past.page is not None or in_use


async def _surviving_browser(engine: ExecutionEngine, reattach: Reattach) -> port.Browser | None:
    """The browser as the last process left it; one that it left half restored, or in a tab that does not answer, is ended."""
    try:
        browser = await reattach()
    except port.GivenUp as given_up:
        engine.tell(events.Said(f"{given_up}. So the browser was ended"))
        return None
    if browser is not None and engine.history.restoring:
        await browser.close()
        return None
    return browser


def _take_up(engine: ExecutionEngine, browser: port.Browser) -> None:
    page = engine.history.page
    lost: list[Json] = [{"name": tab.name, "url": tab.url} for tab in browser.lost_tabs]
    engine.journal.note("restored", mode="attached", **({"lost": lost} if lost else {}))
    for tab in browser.lost_tabs:
        what = f"the tab `{tab.name}`" if tab.name is not None else "a tab"
        where = f" ({tab.url})" if tab.url else ""
        engine.tell(
            events.Said(f"{what}{where} that did not answer, in a dialog or busy or not loaded yet, was closed")
        )
    if page is None or page.pending:
        browser.mark_pending()
    last = engine.history.last_on_page()
    engine.browser, engine.attached, engine.page_at = browser, True, last.call.seq if last is not None else 0
    engine.checkpoints.opened(browser, due=True)
    engine.tell(events.Said("the browser is still there: going on in it"))


async def _restore(engine: ExecutionEngine) -> None:
    """A fresh browser in the state of the last checkpoint."""
    past = engine.history
    checkpoint = past.checkpoint
    file = engine.private / checkpoint.file if checkpoint is not None else None
    if checkpoint is not None and (wrong := checkpoints.unusable(checkpoint, engine.private)) is not None:
        engine.tell(events.Said(f"the last checkpoint's file {wrong} ({file}): going on from the beginning of the run"))
        file = None
    after = checkpoint.after if checkpoint is not None and file is not None else 0
    judge.ask_before_redo(engine, past.behind(after))
    ended = past.ended_by_error()
    again = sum(
        1
        for path in past.order
        if not ended(path) and (last := past.done(path)) is not None and last.since > after and not last.past_recall
    )
    engine.journal.note("restoring", after=after)
    browser = await engine.need_browser()
    what = "a new one begins on a blank page, for no checkpoint was taken"
    if file is not None:
        await browser.restore(file)
        engine.checkpoints.opened(browser)
        what = "a new one has the state of the last checkpoint"
    engine.journal.note("restored", mode="checkpoint", after=after)
    follows = f"; {_steps(again)} behind it {'are' if again != 1 else 'is'} done again" if again else ""
    engine.tell(events.Said(f"the browser is gone: {what}{follows}"))


def _say(engine: ExecutionEngine, reached: judge.Reached | None) -> None:
    done = engine.history.steps_done
    where = ""
    if reached is not None:
        behind = engine.history.done(reached.path) is not None
        where = f", going on {'behind' if behind else 'at'} {reached.path}"
    engine.tell(events.Said(f"{_steps(done)} {'are' if done != 1 else 'is'} done and will not be done again{where}"))


def _steps(count: int) -> str:
    return f"{count} step{'s' if count != 1 else ''}"
