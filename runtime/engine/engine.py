"""The engine: it walks a workflow's blocks, does what is not done yet, and writes down each step before and after.

A resumed run is the same walk. A step that the log knows as done yields its recorded value; the first one that it does not know is where the
run goes on. So there is no cursor to store, and no second way of running.
"""

from __future__ import annotations

import contextlib
import dataclasses
import time
from collections.abc import Awaitable, Callable, Coroutine, Generator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from nodes import plugins
from nodes.base import Container, Leaf, Node
from nodes.errors import AuthorError, RunOpsError, can_be_passed
from nodes.part import Part
from nodes.values import Json, NotJson, normalise
from runtime import events, version
from runtime.browser import port
from runtime.engine import blocks, checkpoints, reconcile, recorders, rendering, scopes, skipped_steps, steps
from runtime.engine import clock as clocks
from runtime.log import history, writer
from runtime.system import tasks

if TYPE_CHECKING:
    from runtime.language import workflow
    from runtime.models import run_models

BrowserFactory = Callable[[], Awaitable[port.Browser]]
"""Opens the run's browser; called at most once, and only where a step needs it."""

Holds = Callable[[Leaf, str], bool]
"""Whether the deed of a step, by its node and its path, is not to be done. It is asked with the node as the file has it, then with its references filled in."""


def nothing(_node: Leaf, _path: str) -> bool:
    """Holds no deed."""
    return False


class Watch(Protocol):
    """Is there before and after each node of a walk, those in blocks too. What it raises ends the run."""

    async def before(self, node: Node, frame: scopes.Frame, path: str) -> None:
        """The node is next; ``frame`` is what it sees."""
        ...

    async def after(self, node: Node, frame: scopes.Frame, path: str, *, ran: bool) -> None:
        """The node is over, and the run goes on; ``ran`` tells whether it has a value, which ``frame`` then holds."""
        ...


@dataclasses.dataclass(frozen=True, slots=True)
class Position:
    """Where a run stands, by its log."""

    step: reconcile.Reached | None
    """The first step without a value; None where something before it fails, or none is left."""
    passed: Sequence[reconcile.Reached]
    """The steps before it that have their recorded values, in order."""
    more: bool
    """Whether anything is left to be done."""


class ExecutionEngine:
    """Runs one workflow in one conversation.

    ``run`` starts it or goes on from what the journal's history holds, and returns how it ended. It is cancelled like any task: the step in
    hand stays open in the log, and the run can be resumed. One engine is used once.
    """

    def __init__(
        self,
        loaded: workflow.Loaded,
        pen: writer.Journal,
        *,
        inputs: Mapping[str, Json],
        secrets: Mapping[str, str],
        open_browser: BrowserFactory,
        private: Path,
        listener: events.Listener | None = None,
        models: run_models.Supply | None = None,
        python_modules: Sequence[str] = (),
    ) -> None:
        """``models`` is needed where a node asks one; ``inputs`` are typed already, ``secrets`` read; ``private`` is the run's private folder.

        Nodes may call functions of ``python_modules``, and of no others.
        """
        self.loaded = loaded
        self.journal = pen
        self.private = private
        self.secrets = secrets
        self.models = models
        self.python_modules = python_modules
        self.browser: port.Browser | None = None
        self.checkpoints = checkpoints.Checkpoints(pen)
        self.attached = False
        """Whether a resumed run has its browser as the last process left it."""
        self.page_at = 0
        """The last line of a call of which a browser that was taken up again has the consequences; 0 where none was."""
        self.recorder: recorders.Recorder = recorders.Live(self, listener)
        """Where the walk leaves what it finds; a dry one while it only looks for the step at which it must go on."""
        self.turns = tasks.Turns()
        self.walked = 0
        """The last line of the log, of a call or of a finished scope, by which the walk has come."""
        self.holds: Holds = nothing
        """Of which steps no deed is done: the first one ends the run with ``attempt.Held``, once everything before it was found ready."""
        self.watch: Watch | None = None
        """Who looks on while nodes are done."""
        self._inputs = dict(inputs)
        self._open_browser = open_browser
        self._plans: dict[int, rendering.Plan] = {}
        self.aftermath: skipped_steps.Aftermath | None = None
        """What the next step that works on the page finds only once it has waited for it."""
        self.load_anew = True
        """Whether the next address is loaded as a new document, also where it differs only behind ``#``: nobody knows what state the present one is in."""
        self.before_redo: Callable[[], Awaitable[None]] | None = None
        """Awaited before a step is done again that may change something on the site."""
        self.unseen: set[str] = set()
        """Side effects that the log knows as done and the restored state does not show: what led to them is done again, and they are passed over."""
        self.verified: skipped_steps.Verified = skipped_steps.NOTHING
        """What held on the page when the last step that changed it was over."""
        self._begin()

    def _begin(self) -> None:
        """Put everything that a walk builds up back to its beginning."""
        self.walked = 0
        own = scopes.Program(self.loaded, self.journal.conversation.id, self.secrets)
        self.root = own.scope(self._inputs)

    @property
    def history(self) -> history.History:
        """What the run has done so far."""
        return self.journal.history

    def tell(self, event: events.Event) -> None:
        """Pass an event on to whoever watches."""
        self.recorder.emit(event)

    # The heart. A workflow is a block; a block is its nodes in order; a node is a leaf that does one thing, or a container that
    # runs blocks. `_node` is the whole order of a node: already decided → when → leaf or container → on_error → commit point.

    async def run(self) -> Json:
        """Run what is left of the workflow; returns its output. Raises RunOpsError (with ``path``) for how else it can end."""
        self._begin()
        await self.block(self.loaded.workflow.nodes, self.root, "", unit=False)
        output = self.output(self.root, "")
        if (scope := self.history.scopes[""]).committed is None:
            self.journal.scope("", "committed", scope.node, value=output)
        return output

    async def steps_so_far(self, line: int) -> Sequence[reconcile.Reached]:
        """Every step to which the run ever came, in the order of the workflow, and those within items and files only if these were finished after ``line``."""
        position = await self._position(recorders.Recall(line))
        return [*position.passed, *([position.step] if position.step is not None else [])]

    async def find_open_step(self) -> Position:
        """Walk through what is recorded, doing nothing, to the first step without a value, or to an error that will come again when the run continues."""
        return await self._position(recorders.Dry())

    async def _position(self, dry: recorders.Dry) -> Position:
        self._begin()
        with self._dry(dry) as recorder:
            try:
                await self.block(self.loaded.workflow.nodes, self.root, "", unit=False)
            except reconcile.Reached as reached:
                return Position(reached, recorder.passed_steps, more=True)
            except RunOpsError:
                return Position(None, recorder.passed_steps, more=True)
        return Position(None, recorder.passed_steps, more=False)

    @contextlib.contextmanager
    def _dry(self, dry: recorders.Dry) -> Generator[recorders.Dry]:
        before = self.recorder
        self.recorder = dry
        try:
            yield dry
        finally:
            self.recorder = before

    async def block(self, nodes: Sequence[Node], frame: scopes.Frame, parent: str, *, unit: bool) -> Json:
        """Run nodes in order; the value of the last one that ran. Inside a ``unit`` a leaf's end is no commit point."""
        value: Json = None
        for node in nodes:
            await self.turns.over()
            path = f"{parent}/{node.id}" if parent else node.id
            if self.watch is not None:
                await self.watch.before(node, frame, path)
            ran, yielded = await self._node(node, frame, path, unit=unit)
            if ran:
                value = yielded
            if self.watch is not None:
                await self.watch.after(node, frame, path, ran=ran)
        return value

    async def _node(self, node: Node, frame: scopes.Frame, path: str, *, unit: bool) -> tuple[bool, Json]:
        try:
            state = self.history.scopes.get(path)
            if state is not None and state.failed is not None:
                if isinstance(node, Container):
                    await self.replay(self._container(node, frame, path, unit=unit))
                    await self.recorder.passed(state)
                return self._tolerated(node, frame, state.failed.error or {})
            if node.when is not None and not self._wanted(node, frame, path):
                self.tell(events.StepFinished(path, "skipped", 0.0, node.container))
                return False, None
            if isinstance(node, Container):
                value = await self._container(node, frame, path, unit=unit)
            else:
                assert isinstance(node, Leaf), node.type
                value = await steps.run(self, node, frame, path)
                if (last := self.history.last(path)) is not None:
                    self.walked = max(self.walked, last.last_line)
                if isinstance(value, steps.Tolerated):
                    return self._tolerated(node, frame, value.error)
        except RunOpsError as raised:
            error = raised.located(path)
            if not self.tolerates(node, error):
                raise error from None
            recorded = self.journal.error(error)
            self.recorder.scope(path, "failed", node.type, error=recorded, tolerated=True)
            return self._tolerated(node, frame, recorded)
        frame.bind(node.id, value)
        # Nothing on the page follows the last node, so nothing would ever be rebuilt for it.
        is_last = node is self.loaded.workflow.nodes[-1]
        if (node.unit if isinstance(node, Container) else not unit) and not is_last:
            await self.recorder.commit_point()
        return True, value

    async def commit_point(self) -> None:
        """Take a checkpoint if one is due; but not while the walk is behind the page, which a crash may have left in the middle of a unit."""
        if self.walked >= self.page_at:
            await self.checkpoints.commit(self.browser, self.verified)

    async def _container(self, node: Container, frame: scopes.Frame, path: str, *, unit: bool) -> Json:
        if path not in self.history.scopes:
            self.recorder.scope(path, "opened", node.type)
        begun = time.monotonic()
        self.tell(events.StepStarted(path, node.type, node.description or "", path.count("/"), container=True))
        if node.in_turns:
            frame.program.facts["failures"][node.id] = []
        view = blocks.Blocks(self, node, frame, path, unit=unit or node.unit)
        try:
            value = await self._run_container(node, view)
            lost = isinstance(value, scopes.Lost) or view.lost
            value = scopes.Lost(path) if lost else self._normal(value)
        except RunOpsError as error:
            seconds, recorded = time.monotonic() - begun, self.journal.error(error)
            self.tell(events.StepFinished(path, events.ended_by(error), seconds, True, recorded))
            raise
        if not self.history.is_committed(path):
            kept = {"masked": True} if isinstance(value, scopes.Lost) else {"value": value}
            self.recorder.scope(path, "committed", node.type, **kept)
        self.tell(events.StepFinished(path, "ok", time.monotonic() - begun, container=True))
        return value

    @staticmethod
    async def _run_container(node: Container, view: blocks.Blocks) -> object:
        try:
            return await node.run(view)
        except RunOpsError:
            raise
        except Exception as error:
            if "." not in node.type or isinstance(error, reconcile.Signal):
                raise
            raise plugins.failed(node, error) from error

    def _wanted(self, node: Node, frame: scopes.Frame, path: str) -> bool:
        """Whether ``when`` lets the node run; what was decided once stays decided."""
        state = self.history.scopes.get(path)
        decided = state.decided if state is not None else None
        if decided is not None and decided.node == "when":
            return False
        # A node that was begun once was wanted: what it did is judged, whatever the page says now.
        if path not in self.history.anew and (state is not None or self.history.begun(path)):
            return True
        wanted = self.render(node, "when", frame, path)
        if not wanted:
            self.recorder.scope(path, "decided", "when", value={"when": False})
        return wanted

    def tolerates(self, node: Node, error: RunOpsError) -> bool:
        """Whether the run goes on after this error of the node."""
        return node.on_error == "continue" and can_be_passed(error)

    def forget(self, nodes: Sequence[Node], frame: scopes.Frame) -> None:
        """Take back what is known of nodes that are about to run again in ``frame``: their facts and their values."""
        for node in nodes:
            for kind in ("errors", "taken", "failures"):
                frame.program.facts[kind].pop(node.id, None)
            frame.names.pop(node.id, None)
            for _field, block in node.blocks():
                self.forget(block, frame)

    async def replay(self, work: Coroutine[None, None, Json]) -> None:
        """Walk through what was done in a block that ended with an error, up to where it ended: its values and facts count."""
        with self._dry(recorders.Dry()), contextlib.suppress(reconcile.Reached, RunOpsError):
            await work

    @staticmethod
    def _tolerated(node: Node, frame: scopes.Frame, error: dict[str, Json]) -> tuple[bool, Json]:
        frame.program.facts["errors"][node.id] = error
        return False, None

    # What blocks and steps ask of the engine.

    def render(
        self, part: Part, field: str, frame: scopes.Frame, path: str, *, clock: clocks.RecordedClock | None = None
    ) -> Json:
        """The value of a field that may hold references, fitted to it."""
        clock = clock or clocks.RecordedClock(self.history.recorded(path))
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
                self.tell(events.StepWaiting(path, "the browser to start"))
            if (word := version.warning()) is not None:
                self.tell(events.Said(word))
            self.browser = await self._open_browser()
            self.checkpoints.opened(self.browser)
        return self.browser

    async def let_go_of_browser(self) -> None:
        """End the run's browser; the next step that needs one has a fresh one."""
        if self.browser is not None:
            browser, self.browser = self.browser, None
            await browser.close()

    def output(self, frame: scopes.Frame, path: str) -> Json:
        """What the file of ``frame`` yields, once its nodes have run; ``path`` is that of the group that uses it, empty for the run's own file."""
        try:
            return self._normal(self.render(frame.program.loaded.workflow, "output", frame, path))
        except RunOpsError as error:
            raise error.located(f"{path}/output" if path else "output") from None

    def _normal(self, value: object) -> Json:
        try:
            return normalise(value)
        except NotJson as error:
            raise AuthorError("value-type", f"the value cannot be kept: {error}") from None
