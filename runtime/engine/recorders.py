"""What a pass over the workflow leaves behind: a live one writes, shows and takes checkpoints, a dry one drops all of it and stops where a step would act."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from typing_extensions import override

from runtime import events, logger
from runtime.engine import reconcile
from runtime.log import attempts

if TYPE_CHECKING:
    from runtime.engine.engine import ExecutionEngine


class Recorder(Protocol):
    """Where the engine's pass over the workflow puts what it finds on its way."""

    acts: ClassVar[bool]
    """Whether steps without a value are done."""

    def scope(self, path: str, event: Any, node: str, **fields: Any) -> None:
        """A container opened, decided, committed or failed."""
        ...

    def emit(self, event: events.Event) -> None:
        """Something happened that the listener may show."""
        ...

    async def took(self, step: reconcile.Reached) -> None:
        """The step has its recorded value."""
        ...

    def reach(self, step: reconcile.Reached) -> None:
        """The step has no value that counts: it is next."""
        ...

    async def commit_point(self) -> None:
        """A unit is over."""
        ...

    async def passed(self, state: attempts.ScopeState) -> None:
        """A scope that is over is not gone through again."""
        ...

    def enters(self, state: attempts.ScopeState) -> bool:
        """Whether a scope that has its value is gone through all the same."""
        ...

    def recalls(self, before: attempts.Attempt) -> bool:
        """Whether a value counts though a restored state undid it."""
        ...


class Live(Recorder):
    """Writes into the log, passes events on with secrets masked, takes checkpoints."""

    acts = True

    def __init__(self, engine: ExecutionEngine, listener: events.Listener | None) -> None:
        self._engine = engine
        self._listener = listener
        self._told = 0

    @override
    def scope(self, path: str, event: Any, node: str, **fields: Any) -> None:
        self._engine.journal.scope(path, event, node, **fields)

    @override
    def emit(self, event: events.Event) -> None:
        if (
            self._listener is None
            and not logger.wanted()
            and not isinstance(event, events.RunEnded | events.StepFinished)
        ):
            return
        journal = self._engine.journal
        if isinstance(event, events.StepWaiting):
            event = dataclasses.replace(event, what=journal.masker.text(event.what))
        elif isinstance(event, events.Said):
            event = dataclasses.replace(event, text=journal.masker.text(event.text))
        self._told += 1
        event = dataclasses.replace(event, run=journal.conversation.id, seq=self._told)
        logger.tell(event)
        if self._listener is None:
            return
        try:
            self._listener(event)
        except Exception:
            # The run is the caller's orders; its display is not worth one of them.
            logger.LOGGER.exception(
                "the listener of run %s raised on %s", journal.conversation.id, type(event).__name__
            )

    @override
    async def took(self, step: reconcile.Reached) -> None:
        assert step.before is not None
        await reconcile.drop_taken_up(self._engine, step.before.since, [step.before])
        if step.path in self._engine.unseen:
            reconcile.leave(self._engine, step, sure=not step.before.passed_by)

    @override
    def reach(self, step: reconcile.Reached) -> None:
        pass

    @override
    async def commit_point(self) -> None:
        await self._engine.commit_point()

    @override
    async def passed(self, state: attempts.ScopeState) -> None:
        await reconcile.pass_by(self._engine, state)

    @override
    def enters(self, state: attempts.ScopeState) -> bool:
        return False

    @override
    def recalls(self, before: attempts.Attempt) -> bool:
        return False


class Dry(Recorder):
    """Drops everything. Raises ``judge.Reached`` at the first step without a value."""

    acts = False

    def __init__(self) -> None:
        self.passed_steps: list[reconcile.Reached] = []
        """Every step that has its recorded value, with the scope in which it stands, in order."""

    @override
    def scope(self, path: str, event: Any, node: str, **fields: Any) -> None:
        pass

    @override
    def emit(self, event: events.Event) -> None:
        pass

    @override
    async def took(self, step: reconcile.Reached) -> None:
        self.passed_steps.append(step)

    @override
    def reach(self, step: reconcile.Reached) -> None:
        raise step

    @override
    async def commit_point(self) -> None:
        pass

    @override
    async def passed(self, state: attempts.ScopeState) -> None:
        pass

    @override
    def enters(self, state: attempts.ScopeState) -> bool:
        return False

    @override
    def recalls(self, before: attempts.Attempt) -> bool:
        return False


class Recall(Dry):
    """A dry pass that also takes what a restored state undid, and goes through what was finished after a line."""

    def __init__(self, line: int) -> None:
        super().__init__()
        self._line = line

    @override
    def enters(self, state: attempts.ScopeState) -> bool:
        return state.committed is not None and state.committed.seq > self._line

    @override
    def recalls(self, before: attempts.Attempt) -> bool:
        return before.settled
