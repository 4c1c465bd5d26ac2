"""Dependencies of finished steps: values that they read, and the page on which they worked. If those would differ, the file is refused."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator

from nodes.base import Container, Leaf, Node
from nodes.browser_action import Goto
from nodes.context import Context
from nodes.group import Group
from nodes.values import Json
from runtime.language import workflow
from runtime.language.expressions.names_read import Chain
from runtime.log import attempts as log_attempts
from runtime.recovery.comparison import Comparison
from runtime.recovery.replay_order import ReplayStep

FACTS = ("errors", "taken", "failures")
"""Facts about nodes in ``run``, by their ids."""


@dataclasses.dataclass(frozen=True, slots=True)
class Loss:
    """Names that have no value any more, or another one."""

    path: str
    """Step that gave it; empty for the run's inputs."""
    user: str
    """Path of the group whose file has the names; empty for the run's own."""
    chains: tuple[Chain, ...]


# By reference.


def by_reference(both: Comparison, other_inputs: Iterable[str]) -> None:
    """Refuse changes to the value of a name that something finished has read; note the containers whose value changes with it."""
    losses = list(_losses(both))
    losses += [Loss("", "", tuple(("inputs", name) for name in other_inputs))]
    losses += _other_defaults(both)
    for step in both.new.values():
        for reader, chains in _reading(both, step):
            for loss in losses:
                if loss.user == reader.user and _rests(both, reader.path, loss, chains):
                    _refuse_reader(both, loss, reader)


def _losses(both: Comparison) -> Iterator[Loss]:
    for path in list(both.change.invalidated):
        was, step = both.old.get(path), both.new.get(path)
        seen = both.past.done(path) is not None or path in both.past.scopes
        if seen and (place := step or was) is not None:
            chains = {chain for each in (was, step) if each is not None for chain in _names(each.node)}
            yield Loss(path, place.user, tuple(chains))
            yield from _values_around(both, place)
    for path in list(both.change.reopened):
        yield Loss(path, both.new[path].user, (_own(both.new[path].node),))
        yield from _values_around(both, both.new[path])
    for step in both.added():
        if step.path in both.change.invalidated:
            continue
        if step.over is not None:
            _refuse_added(both, step)
            continue
        yield Loss(step.path, step.user, tuple(_names(step.node)))
        yield from _values_around(both, step)


def _names(node: Node) -> Iterator[Chain]:
    """Yield every name by which the value and the facts of a node, and of those in it, are read."""
    yield _own(node)
    yield from (("run", fact, node.id) for fact in FACTS)
    if isinstance(node, Context):
        yield from (("vars", name) for name in (*node.set, *node.ask))
    for _field, block in node.blocks():
        for inner in block:
            yield from _names(inner)


def _own(node: Node) -> Chain:
    return (node.id,)


def _values_around(both: Comparison, step: ReplayStep) -> Iterator[Loss]:
    """Yield the containers whose value may be that of a step in them."""
    for around in step.above:
        scope = both.past.scopes.get(around.path)
        if scope is not None and scope.committed is not None and around.path not in both.change.invalidated:
            both.change.reopened[around.path] = None
            yield Loss(step.path, around.user, (_own(around.node),))


def _refuse_added(both: Comparison, step: ReplayStep) -> None:
    """Refuse a step added to a block with finished runs if its value would be read: those runs stay as they are."""
    if any(isinstance(each, Context) for each in _all(step.node)) or _value_is_read(step):
        both.refuse(
            step.path,
            f"it is new, and `{step.over}`, in which its value would count, is over",
            "say what the container yields (`value`, `collect`) without it, or start a new run",
        )


def _value_is_read(step: ReplayStep) -> bool:
    """True if the value of a block's last node is read anywhere."""
    for around in reversed(step.above):
        node = around.node
        if around.user != step.user or getattr(node, "value", None) is not None or getattr(node, "collect", None):
            return False
        read = (use.root for template in step.file.templates.values() for use in template.names)
        if node.id in set(read):
            return True
    return False


def _other_defaults(both: Comparison) -> Iterator[Loss]:
    """Yield the inputs of used files whose default has changed."""
    for path, step in both.new.items():
        was, scope = both.old.get(path), both.past.scopes.get(path)
        if was is None or scope is None or not isinstance(step.node, Group) or path in both.change.invalidated:
            continue
        before, now = was.file.callees.get(was.node.id), step.file.callees.get(step.node.id)
        if before is None or now is None:
            continue
        given = step.node.with_ or {}
        inputs = before.workflow.inputs, now.workflow.inputs
        common = [name for name in inputs[0] if name in inputs[1] and name not in given]
        other = [name for name in common if inputs[0][name].default != inputs[1][name].default]
        if other and scope.committed is not None:
            both.refuse(path, f"its file has another default for `{other[0]}`, and it is over")
        yield Loss("", path, tuple(("inputs", name) for name in other))


def _reading(both: Comparison, step: ReplayStep) -> Iterator[tuple[ReplayStep, set[Chain]]]:
    """Yield the names read at a step or container that counts."""
    path, node = step.path, step.node
    scope = both.past.scopes.get(path) if path not in both.change.invalidated else None
    if isinstance(node, Leaf) and both.finished(path):
        yield step, chains(step.file, workflow.plain(node, frozenset({"confirm"})))
    elif scope is not None and scope.decided is not None and scope.decided.node == "when":
        yield step, chains(step.file, workflow.plain(node).get("when"))
    elif scope is not None and isinstance(node, Container):
        ended = scope.committed is not None and path not in both.change.reopened
        but: set[str] = set() if ended else {"value"}
        if not any(each.committed and each.node == "item" for each in _turns(both, path)):
            but.add("collect")
        yield step, chains(step.file, workflow.plain(node, frozenset(but)))


def _turns(both: Comparison, path: str) -> Iterator[log_attempts.ScopeState]:
    return (each for other, each in both.past.scopes.items() if other.startswith(f"{path}["))


def chains(file: workflow.Loaded, value: Json) -> set[Chain]:
    """Return every chain of names that the references in ``value`` (a field of a node of ``file``, as data) read."""
    if isinstance(value, str):
        template = file.templates.get(value)
        return {use.chain for use in template.names} if template is not None else set()
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return set().union(*(chains(file, each) for each in inner))


def _rests(both: Comparison, reader: str, loss: Loss, chains: set[Chain]) -> bool:
    if loss.path and not both.is_later(reader, loss.path):
        return False
    return any(each[: len(lost)] == lost[: len(each)] for each in chains for lost in loss.chains)


def _refuse_reader(both: Comparison, loss: Loss, reader: ReplayStep) -> None:
    what = "what the run is given has changed" if not loss.path else "it would yield something else"
    both.refuse(loss.path or reader.path, f"{what}, and `{reader.path}`, which has run, reads it")


# By the page.


def by_page(both: Comparison) -> None:
    """Refuse changes that would have led finished steps to another page; note if the browser must be rebuilt."""
    pages = _Pages(both)
    for path in both.change.invalidated:
        if path in both.attempts:
            pages.changed(path)
    for step in both.added():
        if step.over is None and works_on_page(step):
            pages.added(step)


def works_on_page(step: ReplayStep) -> bool:
    """True if the step, or one in it, reads the page."""
    return any(_on_page(each) for each in _with_callees(step.file, step.node))


def changes_page(step: ReplayStep) -> bool:
    """True if the step, or one in it, may change the page."""
    return any(each.moves_page for each in _with_callees(step.file, step.node))


def _on_page(leaf: Leaf) -> bool:
    return leaf.touches_page or any(rule.kind != "expr" for rule in leaf.verify)


def _with_callees(file: workflow.Loaded, node: Node) -> Iterator[Leaf]:
    for each in _all(node):
        if isinstance(each, Leaf):
            yield each
        if (callee := file.callees.get(each.id)) is not None:
            for inner in callee.workflow.nodes:
                yield from _with_callees(callee, inner)


def _all(node: Node) -> Iterator[Node]:
    yield node
    for _field, block in node.blocks():
        for inner in block:
            yield from _all(inner)


class _Pages:
    def __init__(self, both: Comparison) -> None:
        self._both = both
        checkpoint = both.past.checkpoint
        self._after = checkpoint.after if checkpoint is not None else 0
        """Last line whose consequences a rebuilt browser would hold."""
        self._kept = [each for each in both.kept() if works_on_page(each)]
        self._traces = [
            attempt for attempts in both.past.attempts.values() for attempt in attempts if attempt.touched_page
        ]

    def changed(self, path: str) -> None:
        """Check a finished step that is done again as something else, or is gone."""
        both = self._both
        was, step, last = both.old[path], both.new.get(path), both.attempts[path][-1]
        on_page = works_on_page(was) or (step is not None and works_on_page(step))
        if not on_page:
            return
        if both.past.done(path) is None:
            both.change.rebuild |= last.touched_page and last.call.seq > self._after
            return
        if changes_page(was) or (step is not None and changes_page(step)):
            later = next((each.path for each in self._kept if both.is_later(each.path, path)), None)
            if later is not None:
                both.refuse(path, f"it changes the page, and `{later}`, which is done, worked on that")
                return
        if step is None and not last.touched_page:
            return
        self._found_again(path, was, step, last)

    def _found_again(self, path: str, was: ReplayStep, step: ReplayStep | None, last: log_attempts.Attempt) -> None:
        """Refuse a step that cannot be done again on the page on which it was done."""
        both = self._both
        line = last.call.seq
        by_address = step is not None and isinstance(was.node, Goto) and isinstance(step.node, Goto)
        since = [each for each in self._traces if each.call.seq > line or each is last]
        held = [each for each in since if each.call.seq <= self._after and not (each is last and by_address)]
        if held:
            moved = (
                "what it did to the page" if held[0] is last else f"what `{held[0].call.path}` did to the page after it"
            )
            both.refuse(path, f"{moved} cannot be taken back: the last checkpoint holds it")
        both.change.rebuild |= any(each.call.seq > self._after for each in since)

    def added(self, step: ReplayStep) -> None:
        """Check an added step: finished steps after it were done without it."""
        both = self._both
        changes = changes_page(step)
        for other in self._kept:
            if both.is_later(other.path, step.path) and (changes or changes_page(other)):
                fix = f"put it behind `{other.path}`, or start a new run"
                both.refuse(step.path, f"it works on the page, and `{other.path}` behind it is done already", fix)
                return
        for trace in self._traces:
            if trace.call.path in both.new and both.is_later(trace.call.path, step.path):
                if trace.call.seq <= self._after:
                    both.refuse(step.path, f"it works on the page, which `{trace.call.path}` behind it has left")
                    return
                both.change.rebuild = True
