"""Two passes over the workflow: one that acts, and one that recalls what every step ever yielded.

The pass that only looks for the next step is ``runtime.engine.run_state.Recorder``.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from typing_extensions import override

from runtime import events, logger
from runtime.engine import reconcile
from runtime.engine.run_state import Recorder, RunState, StepReached
from runtime.log import attempts


class Live(Recorder):
    """Writes into the log, passes events on with secrets masked, takes checkpoints."""

    acts = True

    def __init__(self, run: RunState, listener: events.Listener | None) -> None:
        super().__init__()
        self._run = run
        self._listener = listener
        self._count = 0

    @override
    def scope(self, path: str, event: Any, node: str, **fields: Any) -> None:
        self._run.writer.scope(path, event, node, **fields)

    @override
    def emit(self, event: events.Event) -> None:
        if (
            self._listener is None
            and not logger.wanted()
            and not isinstance(event, events.RunEnded | events.StepFinished)
        ):
            return
        writer = self._run.writer
        if isinstance(event, events.StepWaiting):
            event = dataclasses.replace(event, what=writer.masker.text(event.what))
        elif isinstance(event, events.Said):
            event = dataclasses.replace(event, text=writer.masker.text(event.text))
        self._count += 1
        event = dataclasses.replace(event, run=writer.conversation.id, seq=self._count)
        logger.log(event)
        if self._listener is None:
            return
        try:
            self._listener(event)
        except Exception:
            # A display that fails must not end the run.
            logger.LOGGER.exception("the listener of run %s raised on %s", writer.conversation.id, type(event).__name__)

    @override
    def reach(self, step: StepReached) -> None:
        pass

    @override
    async def took(self, step: StepReached) -> None:
        assert step.before is not None
        await reconcile.discard_submitted_input(self._run, step.before.since, [step.before])
        if step.path in self._run.unseen:
            reconcile.expect_page_of(self._run, step, sure=not step.before.was_skipped)

    @override
    async def commit_point(self) -> None:
        run = self._run
        # Not before the replay has reached the page's state, which a crash may have left in the middle of a unit.
        if run.replayed_to >= run.page_at:
            await run.checkpoints.commit(run.browser, run.verified)

    @override
    async def passed(self, state: attempts.ScopeState) -> None:
        await reconcile.skip_committed(self._run, state)


class Recall(Recorder):
    """Also accepts values that a restored state undid, and enters scopes that finished after a line."""

    def __init__(self, line: int) -> None:
        super().__init__()
        self._line = line

    @override
    def enters(self, state: attempts.ScopeState) -> bool:
        return state.committed is not None and state.committed.seq > self._line

    @override
    def recalls(self, before: attempts.Attempt) -> bool:
        return before.settled
