"""The run loop: it goes through a workflow's blocks in order, does what is not done yet, and logs each step before and after.

A resumed run is the same pass. A step that the log has as done yields its recorded value, and the run continues at the first one that it
does not have. So there is no cursor to store and no second way of running.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from nodes import plugins
from nodes.base import Container, Leaf, Node
from nodes.errors import RunOpsError
from nodes.values import Json
from runtime import events
from runtime.engine import blocks, recorders, scopes, steps
from runtime.engine.run_state import Recorder, RunState, Signal, StepReached


class Position(NamedTuple):
    step: StepReached | None  # first step without a value; None if something before it fails, or if none is left
    passed: Sequence[StepReached]  # steps before it that have their recorded values, in order
    more: bool  # true if anything is left to do


class ExecutionEngine:
    """Runs one workflow in one conversation.

    ``run`` starts it, or continues from the history of its log. It is cancelled like any task: the step in hand stays open in the log, and
    the run can be resumed. One engine is used once.
    """

    def __init__(self, state: RunState, listener: events.Listener | None = None) -> None:
        self.state = state
        state.recorder = recorders.Live(state, listener)

    # A workflow is a block; a block is its nodes in order; a node is a leaf that does one thing, or a container that runs blocks.
    # `_node` is the whole order of a node: already decided → when → leaf or container → on_error → commit point.

    async def run(self) -> Json:
        """Run what is left of the workflow and return its output. Raises RunOpsError with the ``path`` of the step that ended it."""
        self.state.begin()
        await self.block(self.state.loaded.workflow.nodes, self.state.root, "", unit=False)
        output = self.state.output(self.state.root, "")
        if (scope := self.state.history.scopes[""]).committed is None:
            self.state.writer.scope("", "committed", scope.node, value=output)
        return output

    async def steps_so_far(self, line: int) -> Sequence[StepReached]:
        """List every step that the run ever reached, in the order of the workflow; those within items and files only if these ended after ``line``."""
        position = await self._position(recorders.Recall(line))
        return [*position.passed, *([position.step] if position.step is not None else [])]

    async def find_open_step(self) -> Position:
        """Replay what is recorded, without acting, up to the first step without a value, or to an error that will come again."""
        return await self._position(Recorder())

    async def _position(self, recorder: Recorder) -> Position:
        self.state.begin()
        with self.state.dry(recorder):
            try:
                await self.block(self.state.loaded.workflow.nodes, self.state.root, "", unit=False)
            except StepReached as reached:
                return Position(reached, recorder.passed_steps, more=True)
            except RunOpsError:
                return Position(None, recorder.passed_steps, more=True)
        return Position(None, recorder.passed_steps, more=False)

    async def block(self, nodes: Sequence[Node], frame: scopes.Scope, parent: str, *, unit: bool) -> Json:
        """Run nodes in order and return the value of the last one that ran. Inside a ``unit`` the end of a leaf is no commit point."""
        value: Json = None
        for node in nodes:
            await self.state.turns.over()
            path = f"{parent}/{node.id}" if parent else node.id
            if self.state.watch is not None:
                await self.state.watch.before(node, frame, path)
            ran, yielded = await self._node(node, frame, path, unit=unit)
            if ran:
                value = yielded
            if self.state.watch is not None:
                await self.state.watch.after(node, frame, path, ran=ran)
        return value

    async def _node(self, node: Node, frame: scopes.Scope, path: str, *, unit: bool) -> tuple[bool, Json]:
        try:
            state = self.state.history.scope(path)
            if state.failed is not None:
                if isinstance(node, Container):
                    await self.state.replay(self._container(node, frame, path, unit=unit))
                    await self.state.recorder.passed(state)
                return self._tolerated(node, frame, state.failed.error or {})
            if node.when is not None and not self._wanted(node, frame, path):
                self.state.emit(events.StepFinished(path, "skipped", 0.0, node.container))
                return False, None
            if isinstance(node, Container):
                value = await self._container(node, frame, path, unit=unit)
            else:
                assert isinstance(node, Leaf), node.type
                value = await steps.run_leaf(self.state, node, frame, path)
                if (last := self.state.history.last(path)) is not None:
                    self.state.replayed_to = max(self.state.replayed_to, last.last_line)
                if isinstance(value, steps.Tolerated):
                    return self._tolerated(node, frame, value.error)
        except RunOpsError as raised:
            error = raised.located(path)
            if not self.state.tolerates(node, error):
                raise error from None
            recorded = self.state.writer.error(error)
            self.state.recorder.scope(path, "failed", node.type, error=recorded, tolerated=True)
            return self._tolerated(node, frame, recorded)
        frame.bind(node.id, value)
        # Nothing on the page follows the last node, so a checkpoint after it would never be used.
        is_last = node is self.state.loaded.workflow.nodes[-1]
        if (node.unit if isinstance(node, Container) else not unit) and not is_last:
            await self.state.recorder.commit_point()
        return True, value

    async def _container(self, node: Container, frame: scopes.Scope, path: str, *, unit: bool) -> Json:
        if path not in self.state.history.scopes:
            self.state.recorder.scope(path, "opened", node.type)
        if node.in_turns:
            frame.program.facts["failures"][node.id] = []
        view = blocks.Blocks(self.state, self.block, node, frame, path, unit=unit or node.unit)
        with self.state.shown(path, node.type, node.description or ""):
            value = await self._run_container(node, view)
            lost = isinstance(value, scopes.UnreadableValue) or view.lost
            value = scopes.UnreadableValue(path) if lost else self.state.normal(value)
            if self.state.history.scope(path).committed is None:
                self.state.recorder.scope(path, "committed", node.type, **blocks.kept(value))
        return value

    @staticmethod
    async def _run_container(node: Container, view: blocks.Blocks) -> object:
        try:
            return await node.run(view)
        except RunOpsError:
            raise
        except Exception as error:
            if "." not in node.type or isinstance(error, Signal):
                raise
            raise plugins.failed(node, error) from error

    def _wanted(self, node: Node, frame: scopes.Scope, path: str) -> bool:
        """True if ``when`` lets the node run. A decision in the log stays."""
        past = self.state.history
        decided = past.scope(path).decided
        if decided is not None and decided.node == "when":
            return False
        # A node that was begun once was wanted: what it did is reconciled, whatever the page shows now.
        if path not in past.anew and (path in past.scopes or past.begun(path)):
            return True
        wanted = self.state.render(node, "when", frame, path)
        if not wanted:
            self.state.recorder.scope(path, "decided", "when", value={"when": False})
        return wanted

    @staticmethod
    def _tolerated(node: Node, frame: scopes.Scope, error: dict[str, Json]) -> tuple[bool, Json]:
        frame.program.facts["errors"][node.id] = error
        return False, None
