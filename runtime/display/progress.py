"""Progress of a running workflow, computed from its events: a tree of running steps, with counts of finished ones."""

from __future__ import annotations

import dataclasses
import time
from collections import Counter
from collections.abc import Callable

from nodes.values import Json
from runtime import events
from runtime.display.text import one_line

KEPT = 60  # finished steps of a block kept by name; no screen shows more


@dataclasses.dataclass(slots=True)
class Step:
    path: str
    label: str
    summary: str
    container: bool
    since: float  # its start, by the clock of the progress
    attempt: int = 1
    status: events.StepStatus | None = None  # None while it runs
    seconds: float = 0.0
    error: dict[str, Json] | None = None
    waiting: str = ""
    turn: events.LoopItem | None = None  # for a loop, its current iteration
    children: list[Step] = dataclasses.field(default_factory=list["Step"])
    """Children of a running container, the newest last."""
    forgotten: Counter[events.StepStatus] = dataclasses.field(default_factory=Counter[events.StepStatus])
    """Finished leaves below it that are no longer among ``children``, by status."""

    def tally(self) -> Counter[events.StepStatus]:
        """Count the finished leaves by status: those below a container, or the leaf itself."""
        if not self.container:
            return Counter([self.status] if self.status is not None else [])
        return sum((child.tally() for child in self.children), Counter(self.forgotten))

    def forget(self, keep: int = 0) -> None:
        """Replace all children but the last ``keep`` by counts."""
        gone = self.children[: len(self.children) - keep]
        self.forgotten = sum((child.tally() for child in gone), self.forgotten)
        del self.children[: len(gone)]


class Progress:
    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock
        self.since = clock()
        self.run = ""
        self.workflow = ""
        self.ended: events.RunEnded | None = None
        self.root = Step("", "", "", True, self.since)
        self.open: list[Step] = [self.root]  # running steps from the root inwards

    def __call__(self, event: events.Event) -> None:
        match event:
            case events.StepStarted():
                self._started(event)
            case events.StepFinished():
                self._finished(event)
            case events.StepWaiting():
                step = self.running(event.path) or self._reopened(event.path)
                if step is not None:
                    step.waiting = event.what
            case events.LoopItem():
                loop = self.running(event.path)
                if loop is not None:
                    self._close_below(loop)
                    loop.forget()
                    loop.turn = event
            case events.RunStarted():
                self.run, self.workflow = event.run, event.name
            case events.RunEnded():
                self.ended = event
            case events.Said():
                pass

    @property
    def current(self) -> Step:
        return self.open[-1]

    def running(self, path: str) -> Step | None:
        return next((step for step in reversed(self.open) if step.path == path), None)

    def place(self) -> str:
        """Return the position in the loops around the current step, outermost first: ``37/200``."""
        return " ".join(turn_text(step.turn) for step in self.open if step.turn is not None)

    def _started(self, event: events.StepStarted) -> None:
        again = self.running(event.path) or self._reopened(event.path)
        if again is not None:
            again.attempt, again.waiting, again.summary = event.attempt, "", event.summary
            return
        parent = self._owner_of(event.path)
        self._close_below(parent)
        self.open.append(self._add(parent, event, event.summary, event.attempt))
        if len(parent.children) > 2 * KEPT:
            parent.forget(KEPT)

    def _add(
        self, parent: Step, event: events.StepStarted | events.StepFinished, summary: str = "", attempt: int = 1
    ) -> Step:
        label = one_line(event.path.rsplit("/", 1)[-1])
        parent.children.append(Step(event.path, label, summary, event.container, self.clock(), attempt))
        return parent.children[-1]

    def _finished(self, event: events.StepFinished) -> None:
        step = self.running(event.path)
        if step is None:
            step = self._add(self._owner_of(event.path), event)
        else:
            self._close_below(step)
            self.open.pop()
        step.status, step.seconds, step.error, step.waiting = event.status, event.seconds, event.error, ""
        if step.container:
            step.forget()

    def _reopened(self, path: str) -> Step | None:
        """Return the step at ``path`` if it just failed and is retried: it counts as running, even while it waits for its next attempt."""
        siblings = self._owner_of(path).children
        if not siblings or siblings[-1].path != path or siblings[-1].status != "error":
            return None
        step = siblings[-1]
        step.status = step.error = None
        self.open.append(step)
        return step

    def _owner_of(self, path: str) -> Step:
        """Return the innermost running container around ``path``. Keys in paths may have any text, so paths are compared, never split."""
        for step in reversed(self.open[1:]):
            if step.container and path.startswith((f"{step.path}/", f"{step.path}[")):
                return step
        return self.root

    def _close_below(self, step: Step) -> None:
        while self.open[-1] is not step:
            self.open.pop().forget()


def turn_text(turn: events.LoopItem) -> str:
    """Format the position in a loop: ``37/200``, or ``37`` if the number of iterations is unknown."""
    return f"{turn.index}" if turn.length is None else f"{turn.index}/{turn.length}"
