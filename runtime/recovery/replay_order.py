"""Steps of a file in replay order: the containers that a resumed run enters, and those that are over for it."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Iterable, Iterator

from nodes.base import Container, Node
from nodes.handle import Handle
from nodes.route import Route
from runtime.language import workflow
from runtime.log import attempts, history

PARTS = frozenset({"try", "catch", "finally"})


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class ReplayStep:
    path: str
    file: workflow.Loaded
    user: str  # path of the group that uses the file; empty for the run's own file
    node: Node
    over: str | None
    """The scope around it that is over and is not entered again: a finished item, a used file, a block that ended with an error."""
    above: tuple[ReplayStep, ...]  # containers around it, outermost first


def steps(loaded: workflow.Loaded, past: history.History) -> dict[str, ReplayStep]:
    """Return every step of ``loaded`` that has run in ``past``, or that a resumed run can reach, by path and in order."""
    walk = _Walk(past)
    return {each.path: each for each in walk.block(loaded, "", loaded.workflow.nodes, "", None, ())}


class _Walk:
    def __init__(self, past: history.History) -> None:
        self._past = past
        self._inner: dict[str, list[attempts.ScopeState]] = defaultdict(list)
        for scope in past.scopes.values():
            if (container := owner(scope)) is not None:
                self._inner[container].append(scope)

    def block(
        self,
        file: workflow.Loaded,
        user: str,
        nodes: Iterable[Node],
        parent: str,
        over: str | None,
        above: tuple[ReplayStep, ...],
    ) -> Iterator[ReplayStep]:
        for node in nodes:
            step = ReplayStep(f"{parent}/{node.id}" if parent else node.id, file, user, node, over, above)
            yield step
            if isinstance(node, Container):
                yield from self._inside(step)

    def _inside(self, step: ReplayStep) -> Iterator[ReplayStep]:
        node, path, above = step.node, step.path, (*step.above, step)
        scope = self._past.scopes.get(path)
        over = step.over or (path if scope is not None and scope.failed is not None else None)
        callee = step.file.callees.get(node.id)
        if callee is not None:
            ended = over or (path if scope is not None and scope.committed is not None else None)
            yield from self.block(callee, path, callee.workflow.nodes, path, ended, above)
            return
        for inner in sorted(self._inner[path], key=lambda each: each.opened):
            nodes = _blocks(node, inner.node if isinstance(node, Handle) else None)
            yield from self.block(step.file, step.user, nodes, inner.path, over or _is_over(inner), above)
        if not isinstance(node, Handle) and not getattr(node, "in_turns", False):
            taken = _blocks(node, None) if not isinstance(node, Route) else _branch(node, scope)
            yield from self.block(step.file, step.user, taken, path, over, above)


def is_at(path: str, container: str) -> bool:
    """True if ``path`` is that of the container or inside it."""
    return path == container or path.startswith((f"{container}/", f"{container}["))


def owner(scope: attempts.ScopeState) -> str | None:
    """Return the path of the container whose item or block the scope is; None if it is a container itself."""
    around, slash, last = scope.path.rpartition("/")
    if scope.node == "item":
        return around + slash + last.partition("[")[0]
    return around if scope.node in PARTS else None


def _is_over(scope: attempts.ScopeState) -> str | None:
    """Return its path if it is not entered again. An item is over once its condition was decided."""
    turn = scope.node == "item" and (scope.committed or scope.decided)
    return scope.path if turn or scope.failed is not None else None


def _blocks(node: Node, name: str | None) -> list[Node]:
    """Return the nodes of all blocks, or of the one in the field ``name``."""
    return [each for field, block in node.blocks() if name is None or field[0] == name for each in block]


def _branch(node: Route, scope: attempts.ScopeState | None) -> list[Node]:
    """Return the nodes of the taken branch; of all branches if the record is masked, of none before the decision."""
    if scope is None or scope.decided is None or scope.decided.node == "when":
        return []
    if scope.decided.masked:
        return _blocks(node, None)
    taken = scope.decided.value
    for branch in node.branches:
        if branch.name == taken:
            return branch.nodes
    return node.otherwise or [] if taken == "otherwise" else []
