"""Check if a run may continue with its file as it is now: ``compare`` returns the obstacles, and what has to be done again.

One rule decides: up to the last step that stays finished, the run must take the same path in both texts. From the first difference on,
steps are done again. So no side effect is done twice, and none rests on something that the file no longer says.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterable, Iterator

from nodes.base import Leaf, Node
from nodes.browser_action import Goto
from nodes.context import Context
from nodes.group import Group
from nodes.iterate import Iterate
from nodes.route import Route
from nodes.values import Json
from runtime.language import workflow
from runtime.log import attempts as log_attempts
from runtime.log import entries, history
from runtime.recovery.replay_order import ReplayStep, is_at, steps

JUDGED = frozenset({"description", "confirm", "verify", "timeout", "retry", "after_crash", "on_error", "on_redo"})
"""Fields for watching and reconciling a step, not for its action."""

FOUND = JUDGED | {"target"}  # those, and the target: a finished action no longer needs its element

AT_THE_END = frozenset({"value", "collect", "max", "secrets", "branches", "each_error"})
"""Fields of a container that are evaluated later than at its beginning."""

FIX = "put it back as it was, or start a new run"


@dataclasses.dataclass(slots=True)
class Change:
    refusals: dict[str, tuple[str, str]] = dataclasses.field(default_factory=dict[str, tuple[str, str]])
    """Reasons why the file cannot be taken, each with its fix, by step path."""
    invalidated: dict[str, None] = dataclasses.field(default_factory=dict[str, None])
    """Steps and containers that no longer count: they are done again, or are gone."""
    edited: dict[str, None] = dataclasses.field(default_factory=dict[str, None])
    """Changed actions that may have happened: they are reconciled by their nodes as they are now."""
    reopened: dict[str, None] = dataclasses.field(default_factory=dict[str, None])
    """Containers whose value is computed again; their contents count."""
    rebuild: bool = False
    """True if the browser must be rebuilt from the last checkpoint: a step that no longer counts changed its state."""

    def refuse(self, path: str, why: str, fix: str = FIX) -> None:
        self.refusals.setdefault(path, (why, fix))


def compare(
    before: workflow.Loaded, now: workflow.Loaded, past: history.History, other_inputs: Iterable[str] = ()
) -> Change:
    """Compare the texts for a run that takes ``now`` instead of ``before``. ``other_inputs`` have another value in it."""
    both = _Comparison(before, now, past)
    change = both.change
    # The places in both texts, up to the last step that stays finished.
    ran = [path for path in both.old if both.has_run(path)]
    present = [step.path for step in both.new.values() if not both.is_left_out(step)]
    stay = {path for path in ran if both.stays(path)}
    begin, there = (
        side[: max((place for place, path in enumerate(side) if path in stay), default=-1) + 1]
        for side in (ran, present)
    )
    for name in other_inputs if begin else ():
        change.refuse(begin[-1], f"it is done, and the input `{name}` has another value under the file as it is now")
    for path in begin:
        if both.differs(path) and not both.is_action(path) and both.old[path].over is None:
            said = "it was changed" if path in both.new else "it is gone"
            change.refuse(path, f"{said}, and `{begin[-1]}` after it is done")
    for path in there:
        if path not in begin:
            fix = f"put it after `{there[-1]}`, or start a new run"
            change.refuse(path, f"it is new there, and `{there[-1]}` after it is done", fix)
    if not change.refusals and begin != there:
        other = next(path for path, at in zip(there, begin, strict=False) if path != at)
        change.refuse(other, f"it is in another place, and `{begin[-1]}` is done")
    same = itertools.takewhile(
        lambda pair: pair[0] == pair[1] and not both.differs(pair[0]), zip(ran, present, strict=False)
    )
    first = len(list(same))
    again, rest = ran[first:], present[first:]
    for path in again:
        for each in (path, *(each for each in past.scopes if is_at(each, path))):
            change.invalidated[each] = None
    both.containers(again, rest, last=begin[-1] if begin else None)
    both.added_to_what_is_over()
    both.questions()
    both.pages(again, rest)
    change.rebuild |= before.workflow.browser != now.workflow.browser
    return change


def _happened(attempt: log_attempts.Attempt) -> bool:
    """True if it is a side effect that happened, may have, or was skipped by decision."""
    return (
        attempt.call.effect == "effect"
        and not attempt.did_nothing
        and (attempt.may_have_happened or attempt.survives_restore or attempt.settled)
    )


class _Comparison:
    def __init__(self, before: workflow.Loaded, now: workflow.Loaded, past: history.History) -> None:
        self.past = past
        self.change = Change()
        self.old, self.new = steps(before, past), steps(now, past)
        self._attempts = {
            path: attempts
            for path, attempts in past.attempts.items()
            if attempts[-1].call.thread == entries.RUN_THREAD and not attempts[-1].invalidated
        }
        self._differs: dict[str, bool] = {}
        # A step asks about those above it, which come first.
        for path, step in self.old.items():
            self._differs[path] = self.has_run(path) and self._is_other(step)

    def has_run(self, path: str) -> bool:
        return path in self._attempts or path in self.past.scopes

    def differs(self, path: str) -> bool:
        """True if the node at ``path`` is gone, or would act or decide differently."""
        return self._differs.get(path, False)

    def is_action(self, path: str) -> bool:
        return any(_happened(each) for each in self._attempts.get(path, ()))

    def is_left_out(self, step: ReplayStep) -> bool:
        """True if a resumed run never reaches the step: a container around it is over, or was skipped."""
        skipped = any(_skipped(self.past.scopes.get(each.path)) for each in step.above)
        return not self.has_run(step.path) and (step.over is not None or skipped)

    def stays(self, path: str) -> bool:
        """True if the step is finished, and must not be done again."""
        step = self.old[path]
        if self.is_action(path):
            return True
        if any(self.differs(each.path) for each in step.above) or not isinstance(step.node, Leaf):
            return False
        if step.over is not None:
            return True
        return self.past.done(path) is not None and not self.differs(path)

    def _is_other(self, was: ReplayStep) -> bool:
        path, step, scope = was.path, self.new.get(was.path), self.past.scopes.get(was.path)
        if step is None or type(step.node) is not type(was.node):
            differs = True
        elif _skipped(scope):
            differs = _field_differs("when", was.node, step.node)
        elif isinstance(was.node, Leaf):
            return self._leaf_is_other(was, step)
        else:
            differs = scope is not None and self._decides_otherwise(was, step, scope)
        if differs and self.is_action(path):
            self.change.refuse(path, f"{self._how(path)}, and the file no longer has such a step there")
        elif differs:
            self._refuse_over(was)
        return differs

    def _leaf_is_other(self, was: ReplayStep, step: ReplayStep) -> bool:
        path, attempts = was.path, self._attempts.get(was.path, [])
        tolerated = self.past.scopes.get(path) is not None or any(
            each.result is not None and each.result.tolerated for each in attempts[-1:]
        )
        differs = _differ(was.node, step.node, JUDGED - {"on_error"} if tolerated else JUDGED)
        if not self.is_action(path):
            if differs:
                self._refuse_over(was)
            return differs
        settled = attempts[-1].settled
        if not differs:
            if not settled and _field_differs("verify", was.node, step.node):
                self.change.edited[path] = None
        elif settled:
            # A finished item stays as it was; the remaining items find the element where the file says.
            finished_item = was.over is not None and self.past.scopes[was.over].node == "item"
            if not finished_item or _differ(was.node, step.node, FOUND):
                self.change.refuse(path, f"{self._how(path)}, and it is different in the file")
        elif was.over is not None:
            self._refuse_over(was)
        elif _field_differs("when", was.node, step.node):
            fix = "leave its `when` as it was until it is known whether it happened, or start a new run"
            self.change.refuse(path, f"{self._how(path)}, and the file has another `when` for it", fix)
        else:
            self.change.edited[path] = None
        return False

    def _how(self, path: str) -> str:
        return "it is done" if self._attempts[path][-1].settled else "it may have happened"

    def _refuse_over(self, was: ReplayStep) -> None:
        if was.over is not None and not any(self.differs(each.path) for each in was.above if each.over is None):
            said = "it was changed" if was.path in self.new else "it is gone"
            self.change.refuse(was.path, f"{said}, and `{was.over}`, which it belongs to, is over")

    def _decides_otherwise(self, was: ReplayStep, step: ReplayStep, scope: log_attempts.ScopeState) -> bool:
        """True if the container would have decided otherwise, as far as the log shows."""
        before, now = was.node, step.node
        if _differ(before, now, JUDGED | AT_THE_END) or _inputs(was, step) != _inputs(step, was):
            return True
        if scope.failed is not None and _field_differs("on_error", before, now):
            return True
        if isinstance(before, Route) and isinstance(now, Route):
            return scope.decided is not None and _ways(before, scope.decided.value) != _ways(now, scope.decided.value)
        items = [each for path, each in self.past.scopes.items() if path.startswith(f"{scope.path}[")]
        if any(each.committed for each in items) and _field_differs("collect", before, now):
            return True
        given_up = any(each.failed for each in items) or not isinstance(before, Iterate)
        return given_up and _field_differs("each_error", before, now)

    def containers(self, again: list[str], rest: list[str], last: str | None) -> None:
        """Reopen containers around steps that are done again or added, or that yield another value; refuse the latter if it was used."""
        around = [self.old[path].above for path in again[:1]] + [self.new[path].above for path in rest[:1]]
        inside = {each.path for above in around for each in above}
        order = {path: place for place, path in enumerate(self.old)}
        for path, was in self.old.items():
            scope, step = self.past.scopes.get(path), self.new.get(path)
            if scope is None or scope.committed is None or step is None or path in self.change.invalidated:
                continue
            other = _yields_otherwise(was, step)
            if not other and path not in inside:
                continue
            over = was.over or (path if was.node.id in was.file.callees else None)
            if other and over is not None:
                self.change.refuse(path, f"its value is another one, and `{over}` is over")
            elif other and last is not None and order[last] > order[path] and not is_at(last, path):
                self.change.refuse(path, f"its value is another one, and `{last}` after it is done")
            else:
                self.change.reopened[path] = None

    def added_to_what_is_over(self) -> None:
        """Refuse a step added to a scope that is over if its value or its variables would be read: that scope stays as it was."""
        for step in self.new.values():
            if step.over is None or step.path in self.old:
                continue
            if any(isinstance(each, Context) for each in (step.node, *workflow.below(step.node))) or _value_is_read(
                step
            ):
                fix = "write the container's `value` or `collect` without it, or start a new run"
                why = f"it is new, and `{step.over}`, in which its value would count, is over"
                self.change.refuse(step.path, why, fix)

    def questions(self) -> None:
        """Drop answers to questions that have changed since. An answer may be there before the step has run."""
        for path in self.past.answers:
            was, step = self.old.get(path), self.new.get(path)
            if not self.has_run(path) and was is not None and (step is None or _differ(was.node, step.node, JUDGED)):
                self.change.invalidated[path] = None

    def pages(self, again: list[str], rest: list[str]) -> None:
        """Refuse to undo what the last checkpoint holds of the steps ``again``; note if the browser must be rebuilt.

        A page that a `goto` loaded need not be undone if the next step on the page is a `goto` too.
        """
        after = self.past.checkpoint.after if self.past.checkpoint is not None else 0
        traces = [each for path in again for each in self._attempts.get(path, ()) if each.touched_page]
        held = [each for each in traces if each.call.seq <= after]
        self.change.rebuild = len(held) < len(traces)
        following = next((step for path in rest if _works_on_page(step := self.new[path])), None)
        arrives = following is None or isinstance(following.node, Goto)
        for each in held:
            if not (arrives and isinstance(self.old[each.call.path].node, Goto)):
                why = "it changed the page, which cannot be undone: the last checkpoint holds it"
                self.change.refuse(each.call.path, why)


def _skipped(scope: log_attempts.ScopeState | None) -> bool:
    return scope is not None and scope.decided is not None and scope.decided.node == "when"


def _inputs(one: ReplayStep, other: ReplayStep) -> dict[str, Json]:
    """Return the defaults of the inputs that the files used by a group have in common and the group does not give."""
    files = [each.file.callees.get(each.node.id) for each in (one, other)]
    if files[0] is None or files[1] is None or not isinstance(one.node, Group):
        return {}
    given, names = one.node.with_ or {}, files[1].workflow.inputs
    return {
        name: each.default for name, each in files[0].workflow.inputs.items() if name in names and name not in given
    }


def _ways(route: Route, taken: Json) -> list[Json]:
    """Return the conditions that led to the branch, and its name; all conditions if none held."""
    names = [each.name for each in route.branches]
    count = names.index(str(taken)) + 1 if taken in names else len(names)
    otherwise = None if taken in names else route.otherwise is not None
    return [*([each.name, str(each.when)] for each in route.branches[:count]), otherwise]


def _yields_otherwise(was: ReplayStep, step: ReplayStep) -> bool:
    files = was.file.callees.get(was.node.id), step.file.callees.get(step.node.id)
    outputs = [None if each is None else each.workflow.output for each in files]
    return _field_differs("value", was.node, step.node) or outputs[0] != outputs[1]


def _value_is_read(step: ReplayStep) -> bool:
    """True if the value of a block's last node is read anywhere."""
    for around in reversed(step.above):
        node = around.node
        if around.user != step.user or getattr(node, "value", None) is not None or getattr(node, "collect", None):
            return False
        if any(use.root == node.id for template in step.file.templates.values() for use in template.names):
            return True
    return False


def _works_on_page(step: ReplayStep) -> bool:
    leaves = _with_callees(step.file, step.node)
    return any(each.touches_page or any(rule.kind != "expr" for rule in each.verify) for each in leaves)


def _with_callees(file: workflow.Loaded, node: Node) -> Iterator[Leaf]:
    for each in (node, *workflow.below(node)):
        if isinstance(each, Leaf):
            yield each
        if (callee := file.callees.get(each.id)) is not None:
            for inner in callee.workflow.nodes:
                yield from _with_callees(callee, inner)


def _differ(was: Node, now: Node, but: frozenset[str]) -> bool:
    return workflow.plain(was, but) != workflow.plain(now, but)


def _field_differs(field: str, was: Node, now: Node) -> bool:
    return workflow.plain(was).get(field) != workflow.plain(now).get(field)
