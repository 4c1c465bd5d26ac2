"""Shared state of a run's engine: the file, the log, the browser, and the progress of the run.

The engine is the loop over it. Steps, blocks, reconciliation and checkpoints work on it.
"""

from __future__ import annotations

import contextlib
import dataclasses
import time
from collections.abc import Awaitable, Callable, Coroutine, Generator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

from nodes import ports
from nodes.base import Leaf, Node
from nodes.errors import AuthorError, RunOpsError, can_be_passed
from nodes.part import Part
from nodes.values import Json, NotJson, normalise
from runtime import events, version
from runtime.browser import port
from runtime.engine import checkpoints, rendering, scopes, skipped_steps, tracing
from runtime.log import attempts, entries, history
from runtime.log.writer import LogWriter
from runtime.system import tasks

if TYPE_CHECKING:
    from runtime.engine import opened_parts
    from runtime.language import workflow

BrowserFactory = Callable[[], Awaitable[port.Browser]]
"""Opens the run's browser; called at most once, and only if a step needs it."""

Withholds = Callable[[Leaf, str], bool]
"""True if the action of a step, by its node and path, is to be withheld. Called with the node as in the file, then with values filled in."""


def withholds_nothing(_node: Leaf, _path: str) -> bool:
    return False


def hides_for_nobody(_code: str) -> None:
    pass


class Watch(Protocol):
    """Called before and after every node, nested ones included. An exception ends the run."""

    async def before(self, node: Node, frame: scopes.Scope, path: str) -> None:
        """Called before the node runs; ``frame`` is what it sees."""

    async def after(self, node: Node, frame: scopes.Scope, path: str, *, ran: bool) -> None:
        """Called after the node, if the run continues. ``ran``: the node has a value, and ``frame`` holds it."""


class Signal(Exception):
    """Ends a pass on purpose; not an error of any node."""


class StepReached(Signal):
    """A step of the pass, with its scope and path. A dry pass raises it at the first step without a value."""

    def __init__(self, node: Leaf, frame: scopes.Scope, path: str, before: attempts.Attempt | None) -> None:
        super().__init__(path)
        self.node = node
        self.frame = frame
        self.path = path
        self.before = before

    @property
    def last(self) -> attempts.Attempt:
        assert self.before is not None, f"{self.path} was never begun"
        return self.before


Outcome = Literal["done", "not-done", "skipped", "unknown"]


class Verdict(NamedTuple):
    """Verdict on a side effect; ``how`` it is known is a text for people."""

    found: Outcome
    how: str
    unanswered: bool = False  # true if the site had not yet answered what the action sent
    fix: str | None = None  # if `confirm` read in a part of the page that may be closed again


class Recorder:
    """Receives what the engine's pass over the workflow finds.

    This one is for a dry pass: it drops everything, and ends the pass at the first step without a value.
    """

    acts = False  # true if steps without a value are done

    def __init__(self) -> None:
        self.passed_steps: list[StepReached] = []  # every step that has its recorded value, in order

    def scope(self, path: str, event: Any, node: str, **fields: Any) -> None:
        """Called when a container opened, decided, committed or failed."""

    def emit(self, event: events.Event) -> None:
        pass

    async def took(self, step: StepReached) -> None:
        """Called when the step has its recorded value."""
        self.passed_steps.append(step)

    def reach(self, step: StepReached) -> None:
        """Called when the step has no value that counts: it is next."""
        raise step

    async def commit_point(self) -> None:
        """Called when a unit is over."""

    async def passed(self, state: attempts.ScopeState) -> None:
        """Called when a scope that is over is not entered again."""

    def enters(self, state: attempts.ScopeState) -> bool:
        """True if a scope that has its value is entered all the same."""
        return False

    def recalls(self, before: attempts.Attempt) -> bool:
        """True if a value counts although a restored state undid it."""
        return False


class RunBlock(Protocol):
    def __call__(
        self, nodes: Sequence[Node], frame: scopes.Scope, parent: str, *, unit: bool
    ) -> Coroutine[None, None, Json]: ...


class LeafView(Protocol):
    node: Leaf
    frame: scopes.Scope
    path: str
    call: entries.Call | None
    closing: bool

    @property
    def left(self) -> float: ...


class StepServices(ports.Services, Protocol):
    @property
    def kept(self) -> Sequence[Json]: ...


Services = Callable[["RunState", LeafView], StepServices]  # returns the services for an attempt of a leaf


@dataclasses.dataclass(eq=False)
class RunState:
    """State that the parts of one run's engine share. One state is used once."""

    loaded: workflow.Loaded
    writer: LogWriter
    _: dataclasses.KW_ONLY
    inputs: Mapping[str, Json]  # typed already
    secrets: Mapping[str, str]
    open_browser: BrowserFactory
    services: Services
    private: Path  # private folder of the run
    step_timeout: float | None = None  # default time limit of a step, in seconds
    browser: port.Browser | None = None
    attached: bool = False  # true if a resumed run has its browser as the last process left it
    page_at: int = 0  # last line of a call whose consequences a reattached browser has; 0 if none was reattached
    turns: tasks.Turns = dataclasses.field(default_factory=tasks.Turns)
    replayed_to: int = 0  # last line of the log, of a call or of a finished scope, that the pass has reached
    holds: Withholds = withholds_nothing
    """Selects steps whose action is withheld. The first one, once ready, ends the run with ``attempt.EffectWithheld``."""
    proves: bool = False
    """True for a run that proves what is being built: each ``confirm`` is asked before its side effect, and after it, and a rule is not waited
    for on a page that is quiet."""
    tried: dict[int, set[str]] = dataclasses.field(default_factory=dict[int, set[str]])
    """Paths of the steps whose ``confirm`` was tried, by their node."""
    watch: Watch | None = None
    hides: Callable[[str], None] = hides_for_nobody
    """Called with each one-time code that is masked from now on."""
    tracing: tracing.Tracing = dataclasses.field(default_factory=tracing.Tracing)
    aftermath: skipped_steps.ExpectedPage | None = None
    """Page and rules for which the next step on the page must wait first."""
    load_anew: bool = True
    """True if the next address loads as a new document, even if only its ``#`` part differs: the present state is unknown."""
    before_redo: Callable[[], Awaitable[None]] | None = None
    """Awaited before a step is done again that may change something on the site."""
    unseen: set[str] = dataclasses.field(default_factory=set[str])
    """Paths of side effects that the log has as done but the restored state lacks. Steps before these run again; these do not."""
    verified: skipped_steps.Verified = skipped_steps.NOTHING
    """Rules that held on the page when the last step that changed it was over."""
    opened: dict[str, opened_parts.Opened | None] = dataclasses.field(
        default_factory=dict[str, "opened_parts.Opened | None"]
    )
    """By thread: what the last step that changed the page opened there, if it did nothing else."""
    recorder: Recorder = dataclasses.field(init=False)
    """Receiver of what the pass finds; a dry one while the pass only searches for the step at which the run continues."""
    root: scopes.Scope = dataclasses.field(init=False)  # outermost scope of the run's own file

    def __post_init__(self) -> None:
        self.checkpoints = checkpoints.Checkpoints(self.writer)
        self._plans: dict[int, rendering.Plan] = {}
        self.loaded.limit_steps(self.step_timeout)
        self.begin()

    def begin(self) -> None:
        self.replayed_to = 0
        own = scopes.Program(self.loaded, self.writer.conversation.id, self.secrets)
        self.root = own.scope(self.inputs)

    @property
    def history(self) -> history.History:
        return self.writer.history

    def emit(self, event: events.Event) -> None:
        self.recorder.emit(event)

    @contextlib.contextmanager
    def dry(self, recorder: Recorder) -> Generator[None]:
        before, self.recorder = self.recorder, recorder
        try:
            yield
        finally:
            self.recorder = before

    async def replay(self, work: Coroutine[None, None, Json]) -> None:
        """Replay a block that ended with an error, up to where it ended: its values and facts count."""
        with self.dry(Recorder()), contextlib.suppress(StepReached, RunOpsError):
            await work

    @contextlib.contextmanager
    def shown(self, path: str, node: str, description: str = "") -> Generator[None]:
        begun = time.monotonic()
        self.emit(events.StepStarted(path, node, description, path.count("/"), container=True))
        try:
            yield
        except RunOpsError as error:
            seconds, recorded = time.monotonic() - begun, self.writer.error(error)
            self.emit(events.StepFinished(path, events.ended_by(error), seconds, True, recorded))
            raise
        self.emit(events.StepFinished(path, "ok", time.monotonic() - begun, container=True))

    def render(
        self, part: Part, field: str, frame: scopes.Scope, path: str, *, clock: rendering.RecordedClock | None = None
    ) -> Json:
        clock = clock or rendering.RecordedClock(self.history.recorded(path))
        value = rendering.render_deep(getattr(part, field), frame.program.loaded.templates, frame, clock)
        return rendering.coerce_field(part, field, value)

    def plan(self, node: Leaf) -> rendering.Plan:
        if id(node) not in self._plans:
            self._plans[id(node)] = rendering.plan(node)
        return self._plans[id(node)]

    async def need_browser(self, path: str | None = None) -> port.Browser:
        if self.browser is None:
            if path is not None:
                self.emit(events.StepWaiting(path, "the browser to start"))
            if (word := version.warning()) is not None:
                self.emit(events.Said(word))
            browser = self.take(await self.open_browser())
            self.checkpoints.opened(browser)
            return browser
        return self.browser

    def take(self, browser: port.Browser) -> port.Browser:
        """Work in ``browser`` from now on; it dismisses the overlays of the file."""
        self.browser = browser
        browser.name_secrets(list(self.secrets))
        if not self.tracing.idle:
            browser.hear(self.writer.masker.text)
        values, clock = {"inputs": self.inputs}, rendering.RecordedClock([])
        wanted = self.loaded.workflow.dismiss
        browser.dismiss([rendering.filled(each, self.loaded.templates, values, clock) for each in wanted])
        return browser

    @property
    def hide(self) -> Callable[[str], bool] | None:
        """True for a text that holds a secret of the run; None if the run has none."""
        mask = self.writer.masker
        return None if mask.idle else lambda text: mask.text(text) != text

    async def let_go_of_browser(self) -> None:
        if self.browser is not None:
            browser, self.browser = self.browser, None
            await browser.close()

    def is_midway(self, node: Leaf) -> bool:
        """True if the page is where a failed or cut off attempt of the node left it, and a new one cannot begin there."""
        last = self.history.last_on_page() if node.begins_once else None
        return last is not None and last.status != "ok" and last.call.path.rpartition("/")[2] == node.id

    def tolerates(self, node: Node, error: RunOpsError) -> bool:
        return node.on_error == "continue" and can_be_passed(error)

    def forget(self, nodes: Sequence[Node], frame: scopes.Scope) -> None:
        """Remove the facts and values of nodes that are about to run again in ``frame``."""
        for node in nodes:
            for kind in ("errors", "taken", "failures"):
                frame.program.facts[kind].pop(node.id, None)
            frame.names.pop(node.id, None)
            for _field, block in node.blocks():
                self.forget(block, frame)

    def output(self, frame: scopes.Scope, path: str) -> Json:
        """Return the output of the file of ``frame``, once its nodes have run. ``path`` is that of its group, empty for the run's own file."""
        try:
            return self.normal(self.render(frame.program.loaded.workflow, "output", frame, path))
        except RunOpsError as error:
            raise error.located(f"{path}/output" if path else "output") from None

    @staticmethod
    def normal(value: object) -> Json:
        """Return ``value`` as a JSON value. Raises AuthorError ``value-type``."""
        try:
            return normalise(value)
        except NotJson as error:
            raise AuthorError("value-type", f"the value cannot be kept: {error}") from None
