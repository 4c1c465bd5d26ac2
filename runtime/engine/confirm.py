"""One check of the site with a node's ``confirm``: its block runs in a fresh tab and a separate thread, and does no side effect.

Only its calls and their results are kept: the next check reuses nothing from it. Any error ends it: a list that lacks a page would say
*not done* about the content of that page.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from typing_extensions import override

from nodes.base import Container, Leaf, Node
from nodes.errors import AuthorError, RunOpsError
from nodes.pages import Page
from nodes.ports import Ended, Item, Iteration
from nodes.values import Json
from runtime.engine import attempt, blocks, scopes
from runtime.engine.run_state import RunState
from runtime.log import entries


class ConfirmCheck:
    def __init__(self, run: RunState, path: str, asked: str, page: Page) -> None:
        """``asked`` is the call of the side effect, or the step's path if it has none yet."""
        self._run = run
        self._path = path
        self._thread = f"{entries.CONFIRM}{asked}"
        self._page = page

    async def block(self, nodes: Sequence[Node], frame: scopes.Scope, parent: str, *, unit: bool = True) -> Json:
        """Run nodes in order and return the value of the last one that ran. Nothing here is a commit point."""
        value: Json = None
        for node in nodes:
            if node.when is None or self._run.render(node, "when", frame, self._path):
                value = await self._value(node, frame, f"{parent}/{node.id}")
                frame.bind(node.id, value)
        return value

    async def _value(self, node: Node, frame: scopes.Scope, path: str) -> Json:
        if isinstance(node, Container):
            frame.program.facts["failures"][node.id] = []
            return await node.run(_Part(self, self._run, node, frame, path))
        assert isinstance(node, Leaf)
        number = self._run.history.next_number(path)
        step = attempt.Step(self._run, node, frame, path, number, self._thread)
        try:
            if step.is_effect():
                raise AuthorError(
                    "effect-in-confirm",
                    f"`{node.id}` is an action that may change something on the site, and a `confirm` only finds out",
                    fix="let it read: no address that is a script",
                )
            if node.reads_at_once or getattr(node, "min", None) == 0:
                # A page that is not drawn yet has no sign of the action: it would be done twice.
                (await self._run.need_browser()).bound(node.seconds)
                await self._page.drawn()
            return await step.attempt(self._page)
        except RunOpsError as error:
            step.failed(error)
            raise


class _Part(blocks.Blocks):
    """View of the engine for a container in a ``confirm``. It decides anew each time, and writes nothing."""

    def __init__(self, look: ConfirmCheck, run: RunState, node: Container, frame: scopes.Scope, path: str) -> None:
        super().__init__(run, look.block, node, frame, path, unit=True)
        self._look = look

    @override
    def decide(self, evaluate: Callable[[], Json]) -> Json:
        return evaluate()

    @override
    def goes_on(self, condition: str) -> bool:
        return self._said(condition, self._frame, self._path, "", keep=False)

    @override
    async def turn(
        self,
        nodes: Sequence[Node],
        item: Item,
        *,
        collect: str | None = None,
        condition: str | None = None,
        give_up: bool = False,
    ) -> Iteration:
        path, frame = self._path_of(item), scopes.Scope(self._frame, item.bound)
        self._run.forget(nodes, frame)
        value = await self._look.block(nodes, frame, path)
        if collect is not None:
            value = self._run.render(self._node, collect, frame, path)
        return Iteration(value, go_on=self._another(condition, frame, item, path, keep=False))

    @override
    async def part(
        self,
        nodes: Sequence[Node],
        name: str,
        number: int,
        *,
        keep: Callable[[RunOpsError, bool], bool],
        again: Callable[[RunOpsError], bool] | None = None,
        caught: RunOpsError | None = None,
    ) -> Ended:
        """Run a block, whose error only another run of it may follow. Caught, it would be taken for an answer."""
        path, frame = blocks.part_path(self._path, name, number), scopes.Scope(self._frame)
        self._run.forget(nodes, self._frame)
        try:
            value = await self._look.block(nodes, frame, path)
        except RunOpsError as error:
            if again is None or not again(error):
                raise
            return Ended(error=error, again=True)
        self._frame.names.update(frame.names)
        return Ended(value)
