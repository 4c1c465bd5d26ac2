"""Plan of the steps to redo after a restore: as few as rebuild the page, and none on which a side effect depends.

A step that only reads the page keeps its value if it came after the last finished `goto`, which loads its page again. It also does if a side
effect that may have happened read the value, directly or through other steps. Otherwise it is read again. A step that touches no page keeps
its value unless it reads one that is made again. A condition that reads such a value is decided again, unless it led to a side effect.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping

from nodes.base import Leaf
from nodes.context import Context
from nodes.handle import Handle
from nodes.iterate import Iterate
from nodes.route import Route
from nodes.values import Json
from runtime.language import workflow
from runtime.language.expressions.names_read import Chain
from runtime.log import attempts as log_attempts
from runtime.log import entries, history, step_states
from runtime.recovery.replay_order import ReplayStep, is_at, owner, steps


@dataclasses.dataclass(frozen=True, slots=True)
class Redo:
    kept: tuple[str, ...]
    anew: tuple[str, ...]  # nodes, branches and loop items whose conditions are decided again
    again: tuple[str, ...]


def plan(loaded: workflow.Loaded, past: history.History, line: int, skipped: Collection[str] = ()) -> Redo:
    """Return what is done again if the restored state holds the log's consequences up to ``line``; never one of the steps ``skipped``."""
    names = _Names(steps(loaded, past))
    order = {path: place for place, path in enumerate(names.steps)}
    undone = _undone(past, line, order, skipped)
    wanted = names.rested_on(path for path, last in undone.items() if last.may_have_happened)
    done = step_states.State.DONE
    loads = [path for path, last in undone.items() if last.call.action == "goto" and last.state is done]
    kept: set[str] = {path for path in skipped if path in past.attempts}
    loaded_page = False
    again: list[str] = []
    for path, last in undone.items():
        step = names.steps.get(path)
        if step is None or last.state is not done or (last.result is not None and last.result.masked):
            stays = False
        elif last.on_page:
            stays = last.only_read and (path in wanted or loaded_page)
        else:
            stays = path in wanted or not names.chains_need(step, names.chains_of(step), again)
        (kept.add if stays else again.append)(path)
        loaded_page = loaded_page or [path] == loads[-1:]
    return Redo(tuple(sorted(kept)), tuple(_anew(names, past, line, again)), tuple(again))


def _undone(
    past: history.History, line: int, order: Mapping[str, int], skipped: Collection[str]
) -> dict[str, log_attempts.Attempt]:
    """Return the steps of the run after ``line`` whose outcome a restore undoes, in the order of the workflow."""
    ended = past.ended_by_error()
    found: dict[str, log_attempts.Attempt] = {}
    for path in past.attempts:
        last = past.last(path)
        if last is None or ended(path) or last.call.thread != entries.RUN_THREAD:
            continue
        if (last.since > line or last.rolled_back) and not last.survives_restore and path not in skipped:
            found[path] = last
    return dict(sorted(found.items(), key=lambda each: order.get(each[0], len(order))))


def _anew(names: _Names, past: history.History, line: int, again: list[str]) -> Iterator[str]:
    """Yield conditions decided, or held, after ``line`` that read what is made again, except those that led to a side effect."""
    if not again:
        return
    acted = [path for path, attempts in past.attempts.items() if any(each.may_have_happened for each in attempts)]
    for path, step in names.steps.items():
        scope = past.scopes.get(path)
        if not (past.begun(path) or scope is not None) or _within(path, acted):
            continue
        decided = scope.decided if scope is not None else None
        if decided is not None and decided.seq <= line:
            continue
        conditions: list[Json] = [step.node.when]
        if decided is not None and isinstance(step.node, Route):
            conditions += [str(each.when) for each in step.node.branches]
        if names.chains_need(step, chains(step.file, conditions), again):
            yield path
    for path, scope in past.scopes.items():
        loop = names.steps.get(owner(scope) or "") if scope.node == "item" else None
        if loop is None or scope.decided is None or scope.decided.seq <= line or _within(loop.path, acted):
            continue
        node = loop.node
        assert isinstance(node, Iterate)
        read = chains(loop.file, [str(each) for each in (node.while_, node.until) if each is not None])
        roots = {root for root, *_rest in read}
        inside = [step for each in again if each.startswith(f"{path}/") and (step := names.steps.get(each)) is not None]
        if any(step.node.id in roots for step in inside) or names.chains_need(loop, read, again):
            yield path


def chains(file: workflow.Loaded, value: Json) -> set[Chain]:
    """Return every chain of names that the references in ``value`` (a field of a node of ``file``, as data) read."""
    if isinstance(value, str):
        template = file.templates.get(value)
        return {use.chain for use in template.names} if template is not None else set()
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return set().union(*(chains(file, each) for each in inner))


def _within(path: str, acted: list[str]) -> bool:
    return any(is_at(each, path) for each in acted)


class _Names:
    def __init__(self, known: dict[str, ReplayStep]) -> None:
        self.steps = known
        self._by_id: dict[tuple[str, str], list[ReplayStep]] = defaultdict(list)
        self._setters: dict[tuple[str, str], list[ReplayStep]] = defaultdict(list)
        for step in known.values():
            self._by_id[step.user, step.node.id].append(step)
            if isinstance(step.node, Context):
                for name in (*step.node.set, *step.node.ask):
                    self._setters[step.user, name].append(step)

    def rested_on(self, effects: Iterable[str]) -> set[str]:
        """Return the steps whose values are read, directly or not, by the steps ``effects`` or on the way to them."""
        queue = [step for path in effects if (step := self.steps.get(path)) is not None]
        found: set[str] = set()
        seen: set[str] = set()
        while queue:
            step = queue.pop()
            for reader in (step, *step.above):
                if reader.path in seen:
                    continue
                seen.add(reader.path)
                for source in self._sources(reader, self.chains_of(reader)):
                    if source.path not in found:
                        found.add(source.path)
                        queue.append(source)
        return found

    def chains_need(self, reader: ReplayStep, chains: set[Chain], paths: Iterable[str]) -> bool:
        """True if one of these steps gave a value that ``chains`` read at ``reader``."""
        wanted = set(paths)
        return any(source.path in wanted for source in self._sources(reader, chains))

    @staticmethod
    def chains_of(step: ReplayStep) -> set[Chain]:
        # The value of a container is computed at its end.
        return chains(step.file, workflow.plain(step.node, frozenset({"confirm", "value", "collect"})))

    def _sources(self, reader: ReplayStep, chains: set[Chain]) -> Iterator[ReplayStep]:
        return itertools.chain.from_iterable(self._of_name(reader, *chain) for chain in chains)

    def _of_name(self, reader: ReplayStep, root: str | int, *rest: str | int) -> Iterator[ReplayStep]:
        name = str(rest[1] if root == "run" and len(rest) > 1 else root)
        if name == "vars":
            named = str(rest[0]) if rest else None
            for (user, variable), setters in self._setters.items():
                if user == reader.user and named in (None, variable):
                    yield from setters
            return
        if name == "inputs" and reader.user:
            group = self.steps[reader.user]
            yield from self._sources(group, self.chains_of(group))
            return
        for source in self._by_id.get((reader.user, name), ()):
            if reader.path.startswith(_item_of(source.path)):
                yield from self._leaves(source)
        for around in reader.above:
            if around.user == reader.user and _binds(around, name):
                yield from self._sources(around, self.chains_of(around))
                if isinstance(around.node, Handle):
                    yield from self._leaves(around)

    def _leaves(self, source: ReplayStep) -> Iterator[ReplayStep]:
        if isinstance(source.node, Leaf):
            yield source
            return
        for each in self.steps.values():
            if isinstance(each.node, Leaf) and is_at(each.path, source.path):
                yield each


def _binds(around: ReplayStep, name: str) -> bool:
    node = around.node
    if isinstance(node, Iterate):
        return name in ("loop", node.as_, f"{node.as_}_loop")
    return isinstance(node, Handle) and name == "error"


def _item_of(path: str) -> str:
    """Return the innermost item of a loop around a step: its value is visible only there."""
    end = path.rpartition("/")[0].rfind("]")
    return path[: end + 1] if end >= 0 else ""
