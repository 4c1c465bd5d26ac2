"""A pass over the workflow that only reads: it drops what it finds and stops where a step would act."""

from __future__ import annotations

import contextlib
from collections.abc import Coroutine, Generator

from typing_extensions import override

from nodes.errors import RunOpsError
from nodes.values import Json
from runtime.engine.run_state import Recorder, RunState, StepReached
from runtime.log import attempts


class Dry(Recorder):
    """Drops everything. Raises ``StepReached`` at the first step without a value."""

    def __init__(self) -> None:
        self.passed_steps: list[StepReached] = []
        """Every step that has its recorded value, with its scope, in order."""

    @override
    async def took(self, step: StepReached) -> None:
        self.passed_steps.append(step)

    @override
    def reach(self, step: StepReached) -> None:
        raise step


class Recall(Dry):
    """A dry pass that also accepts values that a restored state undid, and enters scopes that finished after a line."""

    def __init__(self, line: int) -> None:
        super().__init__()
        self._line = line

    @override
    def enters(self, state: attempts.ScopeState) -> bool:
        return state.committed is not None and state.committed.seq > self._line

    @override
    def recalls(self, before: attempts.Attempt) -> bool:
        return before.settled


@contextlib.contextmanager
def within(run: RunState, dry: Dry) -> Generator[Dry]:
    before, run.recorder = run.recorder, dry
    try:
        yield dry
    finally:
        run.recorder = before


async def replay(run: RunState, work: Coroutine[None, None, Json]) -> None:
    """Replay a block that ended with an error, up to where it ended: its values and facts count."""
    with within(run, Dry()), contextlib.suppress(StepReached, RunOpsError):
        await work
