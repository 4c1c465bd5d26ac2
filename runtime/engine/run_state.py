"""What every part of a run's engine shares: the file, the log, the browser, and how far the run has come.

The engine is the loop over it; steps, blocks, reconciliation and checkpoints work on it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol

from nodes.base import Leaf, Node
from nodes.errors import AuthorError, RunOpsError, can_be_passed
from nodes.part import Part
from nodes.ports import Agent, Artifacts, Model, Python, Sessions, Sql
from nodes.values import Json, NotJson, normalise
from runtime import events, version
from runtime.browser import port
from runtime.engine import checkpoints, rendering, scopes, skipped_steps
from runtime.log import attempts, entries, history
from runtime.log.writer import LogWriter
from runtime.system import tasks

if TYPE_CHECKING:
    from runtime.language import workflow

BrowserFactory = Callable[[], Awaitable[port.Browser]]
"""Opens the run's browser; called at most once, and only where a step needs it."""

Withholds = Callable[[Leaf, str], bool]
"""Whether the action of a step, by its node and its path, is not to be done. It is asked with the node as the file has it, then with its references filled in."""


def withholds_nothing(_node: Leaf, _path: str) -> bool:
    """Holds no action."""
    return False


class Watch(Protocol):
    """Called before and after every node, nested ones included. An exception ends the run."""

    async def before(self, node: Node, frame: scopes.Scope, path: str) -> None:
        """The node is next; ``frame`` is what it sees."""
        ...

    async def after(self, node: Node, frame: scopes.Scope, path: str, *, ran: bool) -> None:
        """The node is over, and the run continues; ``ran`` tells whether it has a value, which ``frame`` then holds."""
        ...


class Signal(Exception):
    """Ends a walk on purpose: no error of any node."""


class StepReached(Signal):
    """A step of the walk, and where it stands. A dry walk raises it at the first one without a value."""

    def __init__(self, node: Leaf, frame: scopes.Scope, path: str, before: attempts.Attempt | None) -> None:
        """``frame`` is what the step's references see."""
        super().__init__(path)
        self.node = node
        self.frame = frame
        self.path = path
        self.before = before


Outcome = Literal["done", "not-done", "skipped", "unknown"]


@dataclasses.dataclass(frozen=True, slots=True)
class Verdict:
    """What was found, and how it is known."""

    found: Outcome
    how: str
    unanswered: bool = False
    """Whether the site had not answered yet what the action sent."""


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

    async def took(self, step: StepReached) -> None:
        """The step has its recorded value."""
        ...

    def reach(self, step: StepReached) -> None:
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


class RunBlock(Protocol):
    """Runs nodes in order."""

    def __call__(
        self, nodes: Sequence[Node], frame: scopes.Scope, parent: str, *, unit: bool
    ) -> Coroutine[None, None, Json]:
        """The value of the last node that ran. Inside a ``unit`` a leaf's end is no commit point."""
        ...


class LeafView(Protocol):
    """What services see of the attempt of a leaf that asks for them."""

    node: Leaf
    frame: scopes.Scope
    path: str
    call: entries.Call | None
    closing: bool

    @property
    def left(self) -> float:
        """Seconds that the attempt has left."""
        ...


class StepServices(Protocol):
    """What one attempt of a leaf may use beyond the page; see ``nodes.ports.LeafContext``."""

    @property
    def artifacts(self) -> Artifacts:
        """The files of the run."""
        ...

    @property
    def kept(self) -> Sequence[Json]:
        """The files that this attempt kept, as the log names them."""
        ...

    @property
    def sql(self) -> Sql:
        """SQL over the names that the step sees."""
        ...

    @property
    def python(self) -> Python:
        """The functions that the configuration allows."""
        ...

    @property
    def model(self) -> Model:
        """A model, for this attempt."""
        ...

    @property
    def agent(self) -> Agent:
        """A model that works on the page, for this attempt."""
        ...

    @property
    def sessions(self) -> Sessions:
        """The signed-in states of the project."""
        ...

    def answers(self, questions: Mapping[str, dict[str, Json]]) -> dict[str, Json]:
        """What a person answered to the step's questions; raises Paused where nobody has."""
        ...


Services = Callable[["RunState", LeafView], StepServices]
"""Gives an attempt of a leaf its services."""


class RunState:
    """What the parts of one run's engine share. One state is used once."""

    recorder: Recorder
    """Where the walk leaves what it finds; a dry one while it only looks for the step at which it must go on."""
    root: scopes.Scope
    """The outermost scope of the run's own file."""

    def __init__(
        self,
        loaded: workflow.Loaded,
        writer: LogWriter,
        *,
        inputs: Mapping[str, Json],
        secrets: Mapping[str, str],
        open_browser: BrowserFactory,
        services: Services,
        private: Path,
    ) -> None:
        """``inputs`` are typed already, ``secrets`` read; ``private`` is the run's private folder."""
        self.loaded = loaded
        self.writer = writer
        self.private = private
        self.secrets = secrets
        self.services = services
        self.browser: port.Browser | None = None
        self.checkpoints = checkpoints.Checkpoints(writer)
        self.attached = False
        """Whether a resumed run has its browser as the last process left it."""
        self.page_at = 0
        """The last line of a call of which a browser that was taken up again has the consequences; 0 where none was."""
        self.turns = tasks.Turns()
        self.replayed_to = 0
        """The last line of the log, of a call or of a finished scope, by which the walk has come."""
        self.holds: Withholds = withholds_nothing
        """Of which steps no action is done: the first one ends the run with ``attempt.Held``, once everything before it was found ready."""
        self.watch: Watch | None = None
        """Who looks on while nodes are done."""
        self._inputs = dict(inputs)
        self._open_browser = open_browser
        self._plans: dict[int, rendering.Plan] = {}
        self.aftermath: skipped_steps.ExpectedPage | None = None
        """What the next step that works on the page finds only once it has waited for it."""
        self.load_anew = True
        """Whether the next address is loaded as a new document, also where it differs only behind ``#``: nobody knows what state the present one is in."""
        self.before_redo: Callable[[], Awaitable[None]] | None = None
        """Awaited before a step is done again that may change something on the site."""
        self.unseen: set[str] = set()
        """Side effects that the log knows as done and the restored state does not show: what led to them is done again, and they are passed over."""
        self.verified: skipped_steps.Verified = skipped_steps.NOTHING
        """What held on the page when the last step that changed it was over."""
        self.begin()

    def begin(self) -> None:
        """Put everything that a walk builds up back to its beginning."""
        self.replayed_to = 0
        own = scopes.Program(self.loaded, self.writer.conversation.id, self.secrets)
        self.root = own.scope(self._inputs)

    @property
    def history(self) -> history.History:
        """What the run has done so far."""
        return self.writer.history

    def emit(self, event: events.Event) -> None:
        """Pass an event on to whoever watches."""
        self.recorder.emit(event)

    def render(
        self, part: Part, field: str, frame: scopes.Scope, path: str, *, clock: rendering.RecordedClock | None = None
    ) -> Json:
        """The value of a field that may hold references, fitted to it."""
        clock = clock or rendering.RecordedClock(self.history.recorded(path))
        value = rendering.render_deep(getattr(part, field), frame.program.loaded.templates, frame, clock)
        return rendering.coerce_field(part, field, value)

    def plan(self, node: Leaf) -> rendering.Plan:
        """The node's plan, made once."""
        found = self._plans.get(id(node))
        if found is None:
            found = self._plans[id(node)] = rendering.plan(node)
        return found

    async def need_browser(self, path: str | None = None) -> port.Browser:
        """The run's browser, opened when the first step (at ``path``) needs it."""
        if self.browser is None:
            if path is not None:
                self.emit(events.StepWaiting(path, "the browser to start"))
            if (word := version.warning()) is not None:
                self.emit(events.Said(word))
            self.browser = await self._open_browser()
            self.checkpoints.opened(self.browser)
        return self.browser

    async def let_go_of_browser(self) -> None:
        """End the run's browser; the next step that needs one has a fresh one."""
        if self.browser is not None:
            browser, self.browser = self.browser, None
            await browser.close()

    def tolerates(self, node: Node, error: RunOpsError) -> bool:
        """Whether the run continues after this error of the node."""
        return node.on_error == "continue" and can_be_passed(error)

    def forget(self, nodes: Sequence[Node], frame: scopes.Scope) -> None:
        """Take back what is known of nodes that are about to run again in ``frame``: their facts and their values."""
        for node in nodes:
            for kind in ("errors", "taken", "failures"):
                frame.program.facts[kind].pop(node.id, None)
            frame.names.pop(node.id, None)
            for _field, block in node.blocks():
                self.forget(block, frame)

    def output(self, frame: scopes.Scope, path: str) -> Json:
        """What the file of ``frame`` yields, once its nodes have run; ``path`` is that of the group that uses it, empty for the run's own file."""
        try:
            return self.normal(self.render(frame.program.loaded.workflow, "output", frame, path))
        except RunOpsError as error:
            raise error.located(f"{path}/output" if path else "output") from None

    @staticmethod
    def normal(value: object) -> Json:
        """``value`` as a JSON value. Raises AuthorError ``value-type``."""
        try:
            return normalise(value)
        except NotJson as error:
            raise AuthorError("value-type", f"the value cannot be kept: {error}") from None
