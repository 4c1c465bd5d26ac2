"""Counts for each side effect of a draft the finished runs that really did it. Pure."""

from __future__ import annotations

import dataclasses
from collections.abc import Container, Iterator, Mapping, Sequence
from typing import Literal

from director.effects import effects, requests
from director.proving import guards
from nodes.base import Leaf
from nodes.iterate import Iterate
from nodes.values import Json
from runtime.context import briefs
from runtime.engine import attempt, tried_confirms
from runtime.language import hints, workflow
from runtime.log import attempts as log_attempts
from runtime.log import history

Outcome = Literal["not reached", "passed by", "failed", "idle", "held", "done", "there already"]
"""Outcome of a leaf in one run. ``idle``: an agent that changed nothing. ``passed by``: failed or skipped, and the run continued.

``there already``: its ``confirm`` found it done before the run did it, and the run stopped.
"""

WEAKEST_FIRST: Sequence[Outcome] = ("not reached", "passed by", "failed", "idle", "held", "done", "there already")
"""The strongest outcome counts for a leaf in a loop."""

WELL: Container[Outcome] = ("idle", "done")

LEAFING = "leafing was never tried: each list had one page"
READ = "read on an error page"  # beginning of the statement about a leaf that read an error page

FULL = "full"

MOST_GIVEN = 2  # limit of the other inputs that are reported with an action


@dataclasses.dataclass(frozen=True, slots=True)
class Ran:
    run: str
    status: str
    outcomes: Mapping[str, Outcome]  # outcome of each leaf, by its key (``effects.leaves_of``)
    withheld: str | None = None  # the path of the withheld action at which it stopped
    already: str | None = None  # the path of the action before which it stopped, as the site had it
    path: str | None = None  # the path of the step that ended it otherwise
    error: dict[str, Json] | None = None
    output: Json = None
    seconds: float = 0.0
    moot: frozenset[str] = frozenset()
    """The keys of the actions whose ``verify`` held every time before they were done, so that it proves nothing."""
    on_errors: Mapping[str, str] = dataclasses.field(default_factory=dict[str, str])
    """Statements about leaves that worked on error pages of the site, by key, in order of execution (``on_errors``)."""
    disagreed: Mapping[str, str] = dataclasses.field(default_factory=dict[str, str])
    """Statements about actions whose ``verify`` and ``confirm`` disagreed, by key (``checks.disagreed``)."""
    short: Sequence[str] = ()  # hints about values that the bench has read in a longer form (``short_values``)
    past: history.History | None = None  # its log; None if it cannot be read any more
    reset: bool = False  # True if the site's data were put back right before it
    page: str | None = None  # the page that it has left on the bench, as it is shown; None if there is none
    passed: frozenset[str] = frozenset()  # the keys of the leaves that a condition passed by (``guards.passed_by``)
    aside: bool = False  # True if it ran with other inputs than the goal's, so that the bench took nothing from it
    given: Mapping[str, Json] = dataclasses.field(default_factory=dict[str, Json])
    """Its inputs that are not the goal's: what only such a run reaches counts, and is reported with them."""

    @property
    def went_well(self) -> bool:
        """True if it passed, or stopped only before an action that was withheld, or that data which nobody put back had already."""
        return self.status == "passed" or self.stopped is not None

    @property
    def stopped(self) -> str | None:
        """The path of the action before which it stopped, if nothing is wrong with that."""
        return self.withheld or (None if self.reset else self.already)

    def became(self, key: str) -> Outcome:
        return self.outcomes.get(key, "not reached")


@dataclasses.dataclass(frozen=True, slots=True)
class Effect:
    """A side effect of the draft, and its outcome in each run."""

    key: str
    said: str
    outcomes: tuple[Outcome, ...]
    alone: bool = False
    in_each: bool = False  # True if each run must do it: the site's data were put back before each
    moot: bool = False  # True if its ``verify`` already held before it in each run that did it
    elsewhere: tuple[str, ...] = ()  # the other inputs of the runs that did it with such
    repeatable: bool = False  # True if it counts as no side effect: to do it twice is as good as once

    @property
    def done(self) -> int:
        return self.outcomes.count("done")

    @property
    def withheld(self) -> bool:
        """True if it was prepared and withheld in any run."""
        return "held" in self.outcomes

    @property
    def there_already(self) -> bool:
        return "there already" in self.outcomes

    @property
    def proved(self) -> bool:
        """True if as many runs did it as must: one, or each if each had the same data. If none did, one with other inputs is enough."""
        if not self.done:
            return bool(self.elsewhere) and "failed" not in self.outcomes
        return self.done == len(self.outcomes) if self.in_each else True

    @property
    def missing(self) -> bool:
        """True if it is not proved, and no run stopped before it."""
        return not self.proved and not self.withheld

    @property
    def name(self) -> str:
        return self.key.rpartition("/")[2]

    def describe(self) -> str:
        """Describe its outcomes, each with the number of runs."""
        of = len(self.outcomes)
        runs = f"{of} run" if of == 1 else f"{of} runs"
        moot = f"; {attempt.VERIFY_HELD_BEFORE}: its `verify` does not prove it" if self.moot else ""
        kinds: dict[Outcome, str] = {
            "done": "done",
            "held": "held: ready, not done",
            "idle": "at work, and changed nothing",
            "failed": "failed",
            "passed by": "tried without success",
            "there already": "there already, and not done again",
        }
        parts = [f"{words} in {n} of {runs}" for kind, words in kinds.items() if (n := self.outcomes.count(kind))]
        if self.elsewhere and not self.done:
            parts.append(f"done with {' and with '.join(self.elsewhere[:MOST_GIVEN])}")
        parts = parts or ["never reached"]
        if self.alone and not self.done and not self.elsewhere:
            parts.append("done by itself on the bench, in no whole run")
        return f"{'; '.join(parts)}{'; idempotent' if self.repeatable else ''}{moot}"


def outcomes_of(loaded: workflow.Loaded, past: history.History) -> dict[str, Outcome]:
    found: dict[str, Outcome] = {key: "not reached" for _leaf, key in effects.leaves_of(loaded)}

    def note(path: str, outcome: Outcome) -> None:
        if (key := effects.key_of(loaded, path)) in found:
            stronger = WEAKEST_FIRST.index(outcome) > WEAKEST_FIRST.index(found[key])
            found[key] = outcome if stronger else found[key]

    for path, attempts in past.attempts.items():
        note(path, _outcome(attempts))
    if (withheld := withheld_at(past)) is not None:
        note(withheld, "held")
    if (already := already_at(past)) is not None:
        note(already, "there already")
    return found


def _outcome(attempts: Sequence[log_attempts.Attempt]) -> Outcome:
    last = attempts[-1]
    result = last.result
    if result is not None and result.status in ("ok", "recovered") and last.verdict != "skipped":
        return "idle" if last.call.node == log_attempts.AGENT and not last.acted else "done"
    if last.verdict == "done":
        return "done"
    return "passed by" if result is not None and (result.tolerated or result.status == "skipped") else "failed"


def moot(loaded: workflow.Loaded, past: history.History) -> frozenset[str]:
    """Return the keys of the actions that a run did, and whose ``verify`` held every time before they were done."""
    held: dict[str, bool] = {}
    for path, attempts in past.attempts.items():
        if _outcome(attempts) == "done":
            key = effects.key_of(loaded, path)
            held[key] = held.get(key, True) and attempts[-1].call.held_before is True
    return frozenset(key for key, each in held.items() if each)


def on_errors(loaded: workflow.Loaded, past: history.History) -> dict[str, str]:
    """Return statements, by key, about leaves that read an error page of the site or received one, for any item.

    Rules may hold there by accident, and lists may be empty.
    """
    found: dict[str, str] = {}
    documents = 0
    for path in past.order:
        last = past.last(path)
        page = last.result.page if last is not None and last.result is not None else None
        step = loaded.find(path)
        if page is None or step is None or not isinstance(step.node, Leaf):
            continue
        if page.status is not None:
            key = effects.key_of(loaded, path)
            if not step.node.moves_page:
                found.setdefault(key, f"{READ}, {page.status}")
            elif page.documents != documents:
                found.setdefault(key, f"the site answered {page.status}")
        documents = page.documents
    return found


def withheld_at(past: history.History) -> str | None:
    """Return the path of the withheld action at which the run stopped."""
    return _paused_at(past, "held")


def already_at(past: history.History) -> str | None:
    """Return the path of the action before which the run stopped because the site had it."""
    return _paused_at(past, tried_confirms.DONE_ALREADY)


def _paused_at(past: history.History, reason: str) -> str | None:
    question = past.question
    return str(question.data["path"]) if question is not None and question.data["reason"] == reason else None


def reset(ran: Sequence[Ran]) -> bool:
    """Return whether the site's data were put back before each of these runs."""
    return bool(ran) and all(each.reset for each in ran)


def of_runs(
    loaded: workflow.Loaded, ran: Sequence[Ran], alone: Container[str] = (), elsewhere: Sequence[Ran] = ()
) -> list[Effect]:
    """Return each side effect of the file with its outcomes in these runs, in file order.

    Those in ``alone`` were done on the bench; the runs ``elsewhere`` had other inputs.
    """
    return list(_effects(effects.actions_of(loaded), ran, alone, elsewhere))


def repeatable(loaded: workflow.Loaded, ran: Sequence[Ran], elsewhere: Sequence[Ran] = ()) -> list[Effect]:
    """Return what may change something on the site though it counts as no side effect, with its outcomes in these runs."""
    return [
        dataclasses.replace(each, repeatable=True)
        for each in _effects(effects.repeatable_of(loaded), ran, (), elsewhere)
    ]


def _effects(
    leaves: Sequence[tuple[Leaf, str]], ran: Sequence[Ran], alone: Container[str], elsewhere: Sequence[Ran]
) -> Iterator[Effect]:
    for leaf, key in leaves:
        moot = [key in each.moot for each in (*ran, *elsewhere) if each.became(key) == "done"]
        yield Effect(
            key,
            leaf.summary(),
            tuple(each.became(key) for each in ran),
            alone=key in alone,
            in_each=reset(ran),
            moot=bool(moot) and all(moot),
            elsewhere=tuple(_written(each.given) for each in elsewhere if each.became(key) == "done"),
        )


def _written(given: Mapping[str, Json]) -> str:
    return ", ".join(f"{name}={requests.one_line(value)}" for name, value in given.items())


def errors_of(every: Sequence[Effect], ran: Sequence[Ran]) -> dict[str, str]:
    """Return statements about leaves that read error pages, and side effects that received one, in any of these runs.

    Other steps that only led to such a page are omitted.
    """
    actions = {each.key for each in every}
    return {
        key: said for each in ran for key, said in each.on_errors.items() if said.startswith(READ) or key in actions
    }


def doubts_of(every: Sequence[Effect], ran: Sequence[Ran], before: Sequence[Ran] = ()) -> dict[str, str]:
    """Return what errors_of says, and statements about actions whose checks disagreed, also in the runs ``before``."""
    found = errors_of(every, ran)
    for each in (*before, *ran):
        for key, said in each.disagreed.items():
            found.setdefault(key, said)
    return found


def headline(
    every: Sequence[Effect], ran: Sequence[Ran], others: Sequence[str] = (), before: Sequence[Ran] = ()
) -> str:
    """Summarise the proof: ``full`` if all runs passed, each action is proved, there are no doubts, and ``others`` is empty."""
    doubts = {key: f"{key} ({said})" for key, said in doubts_of(every, ran, before).items()}
    withheld = list(dict.fromkeys(briefs.ours(each.withheld) for each in ran if each.withheld is not None))
    if withheld:
        but = f", but {', '.join(doubts.values())}" if doubts else ""
        return f"up to {' and '.join(withheld)} (held: ready, not done){but}"
    if not ran or not all(each.went_well for each in ran):
        return "not"
    undone = [f"{each.key} ({each.describe()})" for each in every if each.there_already or not each.proved]
    undone += others
    named = {each.partition(" (")[0] for each in undone}
    undone += [each for key, each in doubts.items() if key not in named]
    return f"all but {', '.join(undone)}" if undone else FULL


def others(loaded: workflow.Loaded, ran: Sequence[Ran]) -> list[str]:
    """Return what the runs leave unproved besides actions: leaves that succeeded in none, and outputs that are empty in all.

    Without guards that each run passed by (``guards.of``).
    """
    actions = {key for _leaf, key in effects.actions_of(loaded)}
    leaves = list(effects.leaves_of(loaded))
    tried = {key for _leaf, key in leaves if any(each.became(key) != "not reached" for each in ran)}
    worked = {key: leaf.id for leaf, key in leaves if any(each.became(key) in WELL for each in ran)}
    failed = [key for _leaf, key in leaves if key in tried and key not in worked]
    unproved = [f"{key} (tried without success)" for key in failed if key not in actions]
    left = {key: leaf for leaf, key in leaves if key not in tried}
    leafing = [key for key, leaf in left.items() if key not in actions and _leafs(loaded, leaf, worked.values())]
    unproved += [f"{key} ({LEAFING})" for key in leafing]
    guarding = guards.of(loaded, [each.passed for each in ran])
    missed = effects.together(loaded, set(left) - {*leafing, *guarding})
    unproved += [f"{each} (executed in no run)" for each in missed if each not in actions]
    # A draft without `output` leaves nothing empty.
    yields = loaded.workflow.output is not None
    empty = empty_names([each.output for each in ran if each.status == "passed"]) if yields else []
    return [*unproved, *(f"{name} (always empty)" for name in empty)]


def _leafs(loaded: workflow.Loaded, leaf: Leaf, worked: Container[str]) -> bool:
    """Return whether a node goes from page to page of a list, in a loop in which others ``worked``."""
    _node, around = loaded.index.get(leaf.id, (leaf, ()))
    loop = next((each for each in reversed(around) if isinstance(each, Iterate) and each.over is None), None)
    return loop is not None and hints.turns_page(leaf) and any(each.id in worked for each in workflow.below(loop))


def without_reset(every: Sequence[Effect], ran: Sequence[Ran]) -> str:
    """Return which actions some run did not do, as the data were not put back before each, and what would change that; else empty."""
    undone = [each for each in every if each.done < len(each.outcomes) and not each.withheld]
    if reset(ran) or not undone or any(each.withheld is not None for each in ran):
        return ""
    return (
        f"not in each run: {', '.join(f'{each.key} ({each.describe()})' for each in undone)}. `--reset CMD` puts the site's data back before each run, "
        "so that each must do it"
    )


def to_be_said(every: Sequence[Effect], ran: Sequence[Ran]) -> dict[str, str]:
    """Return the names of actions that are not proved, unless one was withheld, and of outputs that are empty in all runs, with the reason."""
    withheld = any(each.withheld is not None for each in ran)
    undone = {each.name: each.describe() for each in every if each.missing and not withheld}
    empty = empty_names([each.output for each in ran if each.status == "passed"])
    return {**undone, **dict.fromkeys(empty, "always empty")}


def next_step(every: Sequence[Effect]) -> str:
    """Return advice on actions that were done on the bench, but in no whole run; empty if there are none."""
    names = dict.fromkeys(f"`{each.name}`" for each in every if each.alone and each.missing)
    if not names:
        return ""
    if any(each.in_each for each in every):
        return (
            f"done on the bench and not in each whole run: {', '.join(names)}. The data are put back before each run, so each must do it: look at "
            "`when`, `route` and what leads there; if that is right, name it in `unproved` of `finish` and say why"
        )
    return (
        f"done on the bench and in no whole run: {', '.join(names)}. The bench may have left nothing to do. A `run_draft` with other inputs, for "
        "which it is still to do, proves it; else name it in `unproved` of `finish` and say why"
    )


def empty_names(outputs: Sequence[Json]) -> list[str]:
    """Return the names of the fields that are empty in all of these outputs, or ``output`` for the whole."""
    if outputs and all(map(_is_empty, outputs)):
        return ["output"]
    if not outputs or not all(isinstance(each, dict) and each for each in outputs):
        return []
    return [name for name in outputs[0] if all(_is_empty(each.get(name)) for each in outputs)]


def _is_empty(value: Json) -> bool:
    return value is None or value in ("", [], {})


def surprise(ran: Sequence[Ran]) -> str:
    """Return an explanation if the first run passed and a later one failed; else empty."""
    if not (ran and ran[0].went_well and not ran[-1].went_well):
        return ""
    if ran[-1].reset:
        return f"Run 1 went well and run {len(ran)} did not, though the site was reset before each: the reset may not put back all that a run changes."
    return (
        f"Run 1 went well and run {len(ran)} did not: the first may have changed what the next one finds. Have the workflow look at what is there first "
        "(`when`, `route`), or read what it needs in place of what was there before."
    )
