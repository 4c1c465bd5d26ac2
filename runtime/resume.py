"""How a run goes on after its process died, failed, paused or was interrupted. ``docs/crash-recovery.md`` tells it for people.

The walk of the engine is the same as ever. Before it: the surviving browser is taken up again, or the last checkpoint restored; the call that the crash left
open is closed; and what would be done twice is settled.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from nodes.errors import RunOpsError
from nodes.values import Json
from runtime import events, history, judge, log
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
    for attempt in past.open_calls():
        if attempt.call.thread != log.RUN_THREAD:
            engine.journal.result(attempt.call, "interrupted")
    if more and _used_a_page(past):
        engine.attached = await _bring_back(engine, reattach, reached)
    if reached is not None:
        await judge.settle(engine, reached)
    _say(engine, reached)
    return await engine.run()


def _used_a_page(past: history.History) -> bool:
    return past.page is not None or any(attempt.call.node.startswith("browser_") for attempt in past.open_calls())


async def _bring_back(engine: ExecutionEngine, reattach: Reattach, reached: judge.Reached | None) -> bool:
    """The browser as it was (true), or a fresh one in the state of the last checkpoint (false)."""
    past = engine.history
    browser = await reattach()
    if browser is not None:
        engine.journal.note("restored", mode="attached")
        if past.page is None or past.page.pending:
            browser.mark_pending()
        engine.browser = browser
        engine.checkpoints.opened(browser, due=True)
        engine.tell(events.Said("the browser is still there: going on in it"))
        return True
    checkpoint = past.checkpoint
    file = engine.private / checkpoint.file if checkpoint is not None else None
    if file is not None and not file.exists():
        engine.tell(events.Said("the last checkpoint's file is missing: going on from the beginning of the run"))
        file = None
    after = checkpoint.after if checkpoint is not None and file is not None else 0
    judge.ask_before_redo(
        engine, [each for each in past.behind(after) if reached is None or each is not reached.before]
    )
    again = sum(
        1
        for path in past.order
        if (last := past.done(path)) is not None and last.since > after and not last.past_recall
    )
    engine.journal.note("restored", mode="checkpoint", after=after)
    browser = await engine.need_browser()
    what = "a new one begins on a blank page, for no checkpoint was taken"
    if file is not None:
        await browser.restore(file)
        engine.checkpoints.opened(browser)
        what = "a new one has the state of the last checkpoint"
    follows = f"; {_steps(again)} behind it {'are' if again != 1 else 'is'} done again" if again else ""
    engine.tell(events.Said(f"the browser is gone: {what}{follows}"))
    return False


def _say(engine: ExecutionEngine, reached: judge.Reached | None) -> None:
    done = sum(1 for path in engine.history.order if engine.history.done(path) is not None)
    where = ""
    if reached is not None:
        behind = engine.history.done(reached.path) is not None
        where = f", going on {'behind' if behind else 'at'} {reached.path}"
    engine.tell(events.Said(f"{_steps(done)} {'are' if done != 1 else 'is'} done and will not be done again{where}"))


def _steps(count: int) -> str:
    return f"{count} step{'s' if count != 1 else ''}"
