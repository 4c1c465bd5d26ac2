"""Check if a run may continue with its file as it is now: ``compare`` returns the obstacles, and what has to be done again.

Nothing done may be done twice, and nothing that counts may depend on what the file no longer says. So the author may change an unfinished
step freely. A finished step is done again if nothing finished depends on it: by a reference, or by the page on which it worked. A side
effect that happened, or may have, keeps its action and its place; how it is reconciled may be changed.
"""

from __future__ import annotations

from collections.abc import Iterable

from nodes.base import Leaf, Node
from nodes.iterate import Iterate
from nodes.route import Route
from nodes.values import Json
from runtime.language import workflow
from runtime.log import attempts as log_attempts
from runtime.log import history
from runtime.recovery import dependents
from runtime.recovery.comparison import Change, Comparison, happened
from runtime.recovery.replay_order import ReplayStep

JUDGED = frozenset({"description", "confirm", "verify", "timeout", "retry", "after_crash", "on_error", "on_redo"})
"""Fields for watching and reconciling a step, not for its action."""

FOUND = JUDGED | {"target"}
"""Those, and the target: a finished action no longer needs its element."""

BOUNDS = frozenset({"max", "secrets"})
"""Fields of a container that are evaluated anew each time."""

YIELDED = frozenset({"value", "collect"})
"""Fields of a container that are evaluated at its end, or at the end of its items."""


def compare(
    before: workflow.Loaded, now: workflow.Loaded, past: history.History, other_inputs: Iterable[str] = ()
) -> Change:
    """Compare the texts for a run with this history that takes ``now`` instead of ``before``. ``other_inputs`` have another value in it."""
    both = Comparison(before, now, past)
    for path, scope in past.scopes.items():
        if path in both.old and path not in both.change.invalidated:
            _scope(both, both.old[path], scope)
    for path, attempts in both.attempts.items():
        if path not in both.change.invalidated:
            _leaf(both, both.old[path], attempts)
    _questions(both)
    _order(both)
    dependents.by_reference(both, other_inputs)
    dependents.by_page(both)
    both.change.rebuild |= before.workflow.browser != now.workflow.browser
    return both.change


def _leaf(both: Comparison, was: ReplayStep, attempts: list[log_attempts.Attempt]) -> None:
    path, step, last = was.path, both.new.get(was.path), attempts[-1]
    action = any(happened(each) for each in attempts)
    if step is None or not isinstance(step.node, Leaf):
        if action:
            both.refuse(path, f"{_how(last)}, and the file has no such step there any more")
        elif was.over is not None:
            both.refuse(path, f"it is gone, and `{was.over}`, which it belongs to, is over")
        else:
            both.void(path)
        return
    tolerated = last.result is not None and bool(last.result.tolerated)
    changed = _differ(was.node, step.node, JUDGED) or (tolerated and _differs("on_error", was.node, step.node))
    if not changed:
        if action and not last.settled and _differs("verify", was.node, step.node):
            both.change.edited[path] = None
    elif action and last.settled and _in_finished_turn(both, was) and not _differ(was.node, step.node, FOUND):
        # The item stays as it was; the remaining items find the element where the file says. If this one is entered
        # again with a new browser, it is reconciled like any other action.
        pass
    elif action and last.settled:
        both.refuse(path, f"{_how(last)}, and the file says something else of it")
    elif was.over is not None:
        both.refuse(path, f"it was changed, and `{was.over}`, which it belongs to, is over")
    elif action and _differs("when", was.node, step.node):
        fix = "leave its `when` as it was until it is known whether it happened, or start a new run"
        both.refuse(path, f"{_how(last)}, and the file has another `when` for it", fix)
    elif action:
        both.change.edited[path] = None
    else:
        both.void(path)


def _in_finished_turn(both: Comparison, was: ReplayStep) -> bool:
    return was.over is not None and both.past.scopes[was.over].node == "item"


def _how(last: log_attempts.Attempt) -> str:
    return "it is done" if last.settled else "it may have happened"


def _questions(both: Comparison) -> None:
    """Drop answers to questions that have changed since. An answer may be there before the step has run."""
    for path in both.past.answers:
        was, step = both.old.get(path), both.new.get(path)
        if path in both.attempts or was is None:
            continue
        if step is None or _differ(was.node, step.node, JUDGED):
            both.void(path)


def _scope(both: Comparison, was: ReplayStep, scope: log_attempts.ScopeState) -> None:
    path, step = was.path, both.new.get(was.path)
    passed_over = scope.decided is not None and scope.decided.node == "when"
    if step is None or type(step.node) is not type(was.node):
        changed = True
    elif passed_over:
        changed = _differs("when", was.node, step.node)
    elif isinstance(was.node, Leaf):
        changed = _differ(was.node, step.node, JUDGED - {"on_error"})
    else:
        _container(both, was, step, scope)
        return
    if changed and was.over is not None:
        both.refuse(path, f"it was changed, and `{was.over}`, which it belongs to, is over")
    elif changed:
        for each in [path, *_scopes_within(both, path)]:
            both.void(each)


def _container(both: Comparison, was: ReplayStep, step: ReplayStep, scope: log_attempts.ScopeState) -> None:
    path = was.path
    if _decides_otherwise(both, was.node, step.node, scope):
        _void_all(both, was)
    elif scope.committed is not None and _yields_otherwise(was, step):
        over = was.over or (path if was.node.id in was.file.callees else None)
        if over is not None:
            both.refuse(path, f"it yields something else, and `{over}` is over")
        else:
            both.change.reopened[path] = None


def _decides_otherwise(both: Comparison, was: Node, now: Node, scope: log_attempts.ScopeState) -> bool:
    """True if the container would have decided otherwise, as far as is known."""
    if _differ(was, now, JUDGED | BOUNDS | YIELDED | {"branches", "each_error"}):
        return True
    if scope.failed is not None and _differs("on_error", was, now):
        return True
    if isinstance(was, Route) and isinstance(now, Route):
        return scope.decided is not None and _ways(was, scope.decided.value) != _ways(now, scope.decided.value)
    turns = [both.past.scopes[each] for each in _scopes_within(both, scope.path) if each.startswith(f"{scope.path}[")]
    if any(each.committed for each in turns) and _differs("collect", was, now):
        return True
    given_up = any(each.failed for each in turns) or not isinstance(was, Iterate)
    return given_up and _differs("each_error", was, now)


def _ways(route: Route, taken: Json) -> list[Json]:
    """Return the conditions that led to the branch, and its name; all conditions if none held."""
    names = [each.name for each in route.branches]
    count = names.index(str(taken)) + 1 if taken in names else len(names)
    otherwise = None if taken in names else route.otherwise is not None
    return [*([each.name, str(each.when)] for each in route.branches[:count]), otherwise]


def _yields_otherwise(was: ReplayStep, step: ReplayStep) -> bool:
    files = was.file.callees.get(was.node.id), step.file.callees.get(step.node.id)
    outputs = [None if each is None else each.workflow.output for each in files]
    return _differs("value", was.node, step.node) or outputs[0] != outputs[1]


def _void_all(both: Comparison, was: ReplayStep) -> None:
    """Restart a container that would have decided otherwise, unless it holds an action that must not be done twice."""
    path = was.path
    inside = [each for each in both.attempts if _is_within(each, path)]
    action = next((each for each in inside if any(happened(attempt) for attempt in both.attempts[each])), None)
    if was.over is not None:
        both.refuse(path, f"it was changed, and `{was.over}`, which it belongs to, is over")
    elif action is not None:
        both.refuse(path, f"it was changed, and `{action}` in it is done, or may be")
    else:
        for each in [path, *_scopes_within(both, path), *inside]:
            both.void(each)


def _is_within(path: str, container: str) -> bool:
    return path.startswith((f"{container}/", f"{container}["))


def _scopes_within(both: Comparison, path: str) -> list[str]:
    return [each for each in both.past.scopes if _is_within(each, path)]


def _order(both: Comparison) -> None:
    """Refuse finished steps that changed places: one of them may have seen what another had left."""
    now = [each.path for each in both.kept()]
    before = [path for path in both.old if path in set(now)]
    for one, other in zip(before, now, strict=True):
        if one != other:
            both.refuse(other, f"it is done, and stands in another place to `{one}`, which is done too")
            return


def _differ(was: Node, now: Node, but: frozenset[str]) -> bool:
    """True if two nodes differ, apart from the fields ``but``."""
    return workflow.plain(was, but) != workflow.plain(now, but)


def _differs(field: str, was: Node, now: Node) -> bool:
    return workflow.plain(was).get(field) != workflow.plain(now).get(field)
