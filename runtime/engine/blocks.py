"""View of the engine for container nodes: runs blocks, keeps decisions, opens the items of a loop, ends the blocks of a ``handle``."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from nodes.base import Container, Node
from nodes.errors import (
    AssertFailed,
    AuthorError,
    CassetteMiss,
    ModelError,
    OriginRefused,
    RunOpsError,
    SetupError,
    SiteError,
    can_be_passed,
)
from nodes.part import Part
from nodes.ports import Ended, Item, Iteration, escaped
from nodes.values import Json
from runtime import events
from runtime.engine import policies, rendering, scopes
from runtime.engine.run_state import RunBlock, RunState
from runtime.log import attempts, entries

GO_ON, STOP = "go on", "stop"  # decision of a loop's condition

CAUGHT: tuple[type[RunOpsError], ...] = (AssertFailed, AuthorError, SiteError, ModelError)
"""Errors that a ``handle`` catches."""

UNCAUGHT: dict[str, type[RunOpsError]] = {"origin-refused": OriginRefused, "cassette-miss": CassetteMiss}
"""Errors with a separate class that nothing may catch, by code."""


class Blocks:
    """View of the engine for one container (``nodes.ports.BlockContext``)."""

    def __init__(
        self, run: RunState, run_block: RunBlock, node: Container, frame: scopes.Scope, path: str, *, unit: bool
    ) -> None:
        """``unit``: leaves in the container's blocks are not commit points."""
        self._run = run
        self._run_block = run_block
        self._node = node
        self._frame = frame
        self._path = path
        self._unit = unit
        self.lost = False  # true if the value of a finished item held a secret and is no longer known
        self._clock = rendering.RecordedClock(run.history.recorded(path))
        self._ran: set[int] = set()

    def render(self, part: Part, field: str, /, **bound: Json) -> Json:
        frame = scopes.Scope(self._frame, bound) if bound else self._frame
        return self._run.render(part, field, frame, self._path, clock=self._clock)

    def decide(self, evaluate: Callable[[], Json]) -> Json:
        """Return the recorded decision, or make it now. One that held a secret is made again: a mask is never used as a value."""
        run = self._run
        state = run.history.scope(self._path)
        if state.decided is not None and not state.decided.masked:
            return run.writer.value_of(state.decided)
        if state.stale is not None and not state.stale.masked:
            old = run.writer.value_of(state.stale)
            decision = self._edited(old, evaluate) if any(key is not None for key in old["keys"]) else old
        else:
            decision = evaluate()
        run.recorder.scope(self._path, "decided", self._node.type, value=decision, recorded=self._clock.given or None)
        return decision

    def _edited(self, old: Json, evaluate: Callable[[], Json]) -> Json:
        """Return the list of a loop whose source is done again. Begun items stay as they were, even if the site no longer lists them."""
        run, new = self._run, evaluate()
        begun = [
            (item, key)
            for item, key in zip(old["items"], old["keys"], strict=True)
            if run.history.begun(f"{self._path}[#{escaped(key)}]")
        ]
        kept = {str(key) for _item, key in begun}
        listed = {str(key) for key in new["keys"]}
        if gone := sorted(kept - listed):
            run.emit(events.Said(f"{self._path}: no longer listed, and kept as they were begun: {', '.join(gone)}"))
        rest = [(item, key) for item, key in zip(new["items"], new["keys"], strict=True) if str(key) not in kept]
        # A limit counts the items that were begun, and leaves room only for the rest.
        items = begun + rest[: max(0, new["limit"] - len(begun)) if "limit" in new else None]
        return {**new, "items": [item for item, _key in items], "keys": [key for _item, key in items]}

    async def block(self, nodes: Sequence[Node]) -> Json:
        if id(nodes) in self._ran:
            raise SetupError(
                "node-type-broken",
                f"the node type `{self._node.type}` runs one block twice, and the second time nothing would be done",
                fix="a block that runs again needs turns: `ctx.turn(nodes, Item(…), …)`",
            )
        self._ran.add(id(nodes))
        return await self._run_block(nodes, self._frame, self._path, unit=self._unit)

    async def turn(
        self,
        nodes: Sequence[Node],
        item: Item,
        *,
        collect: str | None = None,
        condition: str | None = None,
        give_up: bool = False,
    ) -> Iteration:
        """Run a block for one item. A finished item yields its recorded outcome."""
        run, path = self._run, self._path_of(item)
        run.emit(events.LoopItem(self._path, item.index, item.length, item.key))
        state = run.history.scope(path)
        if (state.committed or state.failed) is not None and not run.recorder.enters(state):
            await run.turns.over()
            await run.recorder.passed(state)
            return self._finished(state, item)
        if path not in run.history.scopes:
            run.recorder.scope(path, "opened", "item")
        frame = scopes.Scope(self._frame, item.bound)
        run.forget(nodes, frame)
        try:
            value = await self._run_block(nodes, frame, path, unit=True)
            if collect is not None:
                value = run.render(self._node, collect, frame, path)
        except RunOpsError as raised:
            error = raised.located(path)
            if not give_up or not can_be_passed(error):
                raise error from None
            return await self._given_up(item, path, error, self._another(condition, frame, item, path, keep=False))
        go_on = self._another(condition, frame, item, path)
        self.lost = self.lost or isinstance(value, scopes.UnreadableValue)
        run.recorder.scope(path, "committed", "item", **kept(value))
        await run.recorder.commit_point()
        return Iteration(value, go_on=go_on)

    def _path_of(self, item: Item) -> str:
        """Return the path of an item. Raises AuthorError ``secret-in-key``."""
        if self._run.writer.masker.holds(item.segment):
            raise AuthorError(
                "secret-in-key",
                "the `key` of an item holds a secret",
                fix="choose another key: it is in every step path of the item",
            )
        return f"{self._path}{item.segment}"

    def _finished(self, state: attempts.ScopeState, item: Item) -> Iteration:
        """Return the outcome of an item that need not run again, and restore the variables that it set."""
        run, program = self._run, self._frame.program
        for attempt in run.history.set_within(state.path):
            assert attempt.result is not None
            found = run.loaded.find(attempt.call.path)
            # A file that is used in the item has separate variables.
            if found is not None and found.user == program.path:
                program.variables.update(run.writer.value_of(attempt.result))
        if state.failed is not None:
            self._note_failure(item, state.failed.error or {})
            return Iteration(given_up=True, go_on=state.failed.value != STOP)
        assert state.committed is not None
        go_on = state.decided is None or state.decided.value != STOP
        self.lost = self.lost or bool(state.committed.masked)
        return Iteration(None if state.committed.masked else run.writer.value_of(state.committed), go_on=go_on)

    async def _given_up(self, item: Item, path: str, error: RunOpsError, go_on: bool) -> Iteration:
        """Record that the item failed and the loop continues. The condition's decision is in the same entry, so no crash separates them."""
        run, recorded = self._run, self._as_recorded(error)
        self._note_failure(item, recorded)
        run.recorder.scope(path, "failed", "item", value=GO_ON if go_on else STOP, error=recorded, tolerated=True)
        run.emit(events.Said(f"{path}: given up, as `each_error: continue` asks: {error.message}"))
        await run.recorder.commit_point()
        return Iteration(given_up=True, go_on=go_on)

    def _note_failure(self, item: Item, error: dict[str, Json]) -> None:
        failures: list[Json] = self._frame.program.facts["failures"][self._node.id]
        fields = {name: error.get(name) for name in ("step", "code", "message")}
        failures.append({"index": item.index, "key": item.key, **fields})

    def goes_on(self, condition: str) -> bool:
        """True if the condition lets a first item begin. A decision in the log stays."""
        return self._said(condition, self._frame, self._path, condition.removesuffix("_"))

    def _another(self, condition: str | None, turn: scopes.Scope, item: Item, path: str, *, keep: bool = True) -> bool:
        """True if the condition asks for another item after the one at ``path``."""
        if condition is None:
            return True
        # `while` is evaluated from outside, so that it reads the same names before the first item and later.
        names = turn.names if condition == "until" else {k: v for k, v in turn.names.items() if k not in item.bound}
        return self._said(condition, scopes.Scope(self._frame, names), path, "item", keep=keep)

    def _said(self, condition: str, frame: scopes.Scope, path: str, node: str, *, keep: bool = True) -> bool:
        run = self._run
        if (decided := run.history.scope(path).decided) is not None:
            return decided.value == GO_ON
        clock = rendering.RecordedClock(run.history.recorded(path))
        go_on = bool(run.render(self._node, condition, frame, path, clock=clock)) != (condition == "until")
        if keep:
            run.recorder.scope(path, "decided", node, value=GO_ON if go_on else STOP, recorded=clock.given or None)
        return go_on

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
        """Run a block in a separate scope. A block whose error was kept does not run again."""
        run, path = self._run, part_path(self._path, name, number)
        frame = scopes.Scope(self._frame)
        if caught is not None:
            frame.bind("error", as_bound(run.writer.error(caught), caught.path))
        run.forget(nodes, self._frame)
        state = run.history.scope(path)
        try:
            if state.failed is not None:
                await run.replay(self._run_block(nodes, frame, path, unit=True))
                await run.recorder.passed(state)
                error = rebuilt(state.failed.error or {})
                return Ended(error=error, again=again is not None and again(error) and not self._in_the_way(number))
            value = await self._opened(nodes, frame, path, name)
        except (AuthorError, SiteError, ModelError) as raised:
            error: RunOpsError = raised.located(path)
            may = again is not None and again(error)
            if may and (actions := self._in_the_way(number)):
                error, may = not_tried_again(error, actions), False
            if not keep(error, may):
                raise error from None
            run.recorder.scope(path, "failed", name, error=self._as_recorded(error))
            await run.recorder.commit_point()
            return Ended(error=error, again=may)
        finally:
            # The values of a block are visible after it, and in the blocks that follow.
            self._frame.names.update({name: known for name, known in frame.names.items() if name != "error"})
        if state.committed is None:
            run.recorder.scope(path, "committed", name, **kept(value))
        return Ended(value)

    async def finish(self, nodes: Sequence[Node], name: str, number: int, outcome: RunOpsError | None) -> bool:
        """Run a block at the end, and record with it the outcome of this retry."""
        run, path = self._run, part_path(self._path, name, number)
        run.forget(nodes, self._frame)
        state = run.history.scope(path)
        if state.failed is not None:
            await run.replay(self._run_block(nodes, self._frame, path, unit=True))
            await run.recorder.passed(state)
            return run.history.failed_at > state.failed.seq
        try:
            await self._opened(nodes, self._frame, path, name)
        except (AuthorError, SiteError, ModelError) as error:
            if outcome is None:
                raise
            first = as_bound(outcome.as_json(), outcome.path)
            raise error.replaced(evidence={**error.evidence, "first": first}) from None
        if outcome is not None:
            run.recorder.scope(path, "failed", name, error=self._as_recorded(outcome))
        elif state.committed is None:
            run.recorder.scope(path, "committed", name)
        return False

    def _as_recorded(self, error: RunOpsError) -> dict[str, Json]:
        return {**self._run.writer.error(error), "step": error.path}

    async def _opened(self, nodes: Sequence[Node], frame: scopes.Scope, path: str, name: str) -> Json:
        if path not in self._run.history.scopes:
            self._run.recorder.scope(path, "opened", name)
        with self._run.shown(path, name):
            return await self._run_block(nodes, frame, path, unit=True)

    def _in_the_way(self, number: int) -> list[attempts.Attempt]:
        """Return the side effects of the tries up to ``number`` that have no policy for running ``try`` again."""
        return [
            effect
            for each in range(1, number + 1)
            for effect in self._run.history.effects_within(f"{self._path}/try", each)
            if effect.call.thread == entries.RUN_THREAD and policies.redo_policy(self._run, effect) == "ask"
        ]

    def note_taken(self, branch: str | None) -> None:
        self._frame.program.facts["taken"][self._node.id] = branch

    async def callee(self, part: Part, inputs: str, secrets: Sequence[str]) -> Json:
        """Run the file that the container uses. If it is done, return its recorded output."""
        run, node, path = self._run, self._node, self._path
        state = run.history.scope(path)
        if state.committed is not None and not run.recorder.enters(state):
            await run.recorder.passed(state)
            # Only the output of a used file is visible outside, so there is nothing to replay.
            return scopes.UnreadableValue(path) if state.committed.masked else run.writer.value_of(state.committed)
        given = self._frame.program.inputs_of(node.id, self.render(part, inputs) or {})
        known = run.writer.value_of(state.decided) if state.decided is not None else None
        if known != given:
            run.recorder.scope(path, "decided", node.type, value=given, recorded=self._clock.given or None)
        program = self._frame.program.callee(node.id, path, given, secrets)
        frame = program.scope(given)
        await self._run_block(program.loaded.workflow.nodes, frame, path, unit=True)
        return run.output(frame, path)


def kept(value: Json) -> dict[str, Json]:
    return {"masked": True} if isinstance(value, scopes.UnreadableValue) else {"value": value}


def part_path(handle: str, name: str, number: int) -> str:
    return f"{handle}/{name}" if number == 1 else f"{handle}/{name}[{number}]"


def as_bound(error: dict[str, Json], step: str | None) -> dict[str, Json]:
    """Return the error as nodes read it in ``error``."""
    fields = {name: error.get(name) for name in ("code", "message", "phase", "who")}
    return {**fields, "step": step, "evidence": error.get("evidence") or {}}


def rebuilt(error: dict[str, Json]) -> RunOpsError:
    kind = UNCAUGHT.get(error["code"]) or next(each for each in CAUGHT if each.who == error["who"])
    made = kind(
        error["code"], error["message"], fix=error.get("fix"), phase=error["phase"], evidence=error.get("evidence")
    )
    step: str | None = error.get("step")
    return made.located(step) if step is not None else made


def not_tried_again(error: RunOpsError, actions: list[attempts.Attempt]) -> RunOpsError:
    fix = "to let `try` run again after an action, give that a `confirm` or `effect: idempotent`, or the handle `on_redo: redo`"
    return error.replaced(
        evidence={**error.evidence, "not_tried_again": [action.call.path for action in actions]},
        fix=f"{error.fix}; {fix}" if error.fix else fix,
    )
