"""Evidence of finished runs of a draft: for each side effect the number of runs that really did it. Pure."""

from __future__ import annotations

import dataclasses
from collections.abc import Container, Mapping, Sequence
from typing import Literal

from director.effects import effects
from nodes.base import Leaf
from nodes.values import Json
from runtime.context import briefs
from runtime.engine import attempt
from runtime.language import workflow
from runtime.log import attempts as log_attempts
from runtime.log import history

Outcome = Literal["done", "idle", "held", "failed", "passed by", "not reached"]
"""Outcome of an action in one run. ``idle``: an agent worked and changed nothing. ``passed by``: it failed or was skipped, and the run continued."""

READ = "read on an error page"
"""Beginning of the statement about a leaf that read an error page."""

FULL = "full"
"""The summary of a proof in which every action was done."""


@dataclasses.dataclass(frozen=True, slots=True)
class Ran:
    """A finished run of a whole draft."""

    run: str
    status: str
    """Status of the run: ``passed``, ``failed``, ``paused`` …"""
    actions: dict[str, Outcome]
    """Outcome of each side effect, by its key (``effects.leaves_of``)."""
    held: str | None = None
    """The path of the withheld action at which it stopped."""
    path: str | None = None
    """The path of the step that ended it otherwise."""
    error: dict[str, Json] | None = None
    output: Json = None
    seconds: float = 0.0
    reached: frozenset[str] = frozenset()
    """The keys of the leaves that it reached."""
    ended_well: frozenset[str] = frozenset()
    """The keys of those that succeeded at least once."""
    moot: frozenset[str] = frozenset()
    """The keys of the actions whose ``verify`` already held before each of them: it proves nothing."""
    on_errors: Mapping[str, str] = dataclasses.field(default_factory=dict[str, str])
    """Statements about leaves that worked on error pages of the site, by key, in order of execution (``on_errors``)."""

    @property
    def went_well(self) -> bool:
        """True if it passed, or stopped only before a withheld action."""
        return self.status == "passed" or self.held is not None


@dataclasses.dataclass(frozen=True, slots=True)
class Effect:
    """A side effect of the draft, and its outcome in each run."""

    key: str
    said: str
    """The action as a line."""
    outcomes: tuple[Outcome, ...]
    alone: bool = False
    """True if it was done on the bench alone."""
    moot: bool = False
    """True if its ``verify`` already held before it in each run that did it."""

    @property
    def done(self) -> int:
        """Number of runs that did it."""
        return self.outcomes.count("done")

    @property
    def held(self) -> bool:
        """True if it was prepared and withheld in any run."""
        return "held" in self.outcomes

    def words(self) -> str:
        """Describe its outcomes and in how many of the runs they occurred."""
        of = len(self.outcomes)
        runs = f"{of} run" if of == 1 else f"{of} runs"
        moot = f"; {attempt.VERIFY_HELD_BEFORE}: its `verify` tells nothing of it" if self.moot else ""
        if self.done == of and of:
            return f"done in {of} of {runs}{moot}"
        kinds: tuple[tuple[Outcome, str], ...] = (
            ("done", "done"),
            ("held", "held: ready, not done"),
            ("idle", "at work, and changed nothing"),
            ("failed", "failed"),
            ("passed by", "tried without success"),
        )
        told = [f"{words} in {n} of {runs}" for kind, words in kinds if (n := self.outcomes.count(kind))]
        told = told or ["never reached"]
        if self.alone and not self.done:
            told.append("done by itself on the bench, in no whole run")
        return f"{'; '.join(told)}{moot}"


def actions_of(loaded: workflow.Loaded, past: history.History) -> dict[str, Outcome]:
    """Return the outcome of each side effect in a run of the file."""
    wanted = [path for _leaf, path in effects.actions_of(loaded)]
    found: dict[str, Outcome] = dict.fromkeys(wanted, "not reached")
    for path, attempts in past.attempts.items():
        key = effects.key_of(loaded, path)
        if key in found:
            found[key] = better(found[key], _of(attempts))
    if (held := held_at(past)) is not None and (key := effects.key_of(loaded, held)) in found:
        found[key] = better(found[key], "held")
    return found


def reached(loaded: workflow.Loaded, past: history.History) -> frozenset[str]:
    """Return the keys of the leaves that a run reached, with a withheld one."""
    held = held_at(past)
    return frozenset(effects.key_of(loaded, each) for each in (*past.attempts, *([held] if held is not None else [])))


def ended_well(loaded: workflow.Loaded, past: history.History) -> frozenset[str]:
    """Return the keys of the leaves that succeeded in a run, for at least one item."""
    return frozenset(
        effects.key_of(loaded, path) for path, attempts in past.attempts.items() if _of(attempts) in ("done", "idle")
    )


def moot(loaded: workflow.Loaded, past: history.History) -> frozenset[str]:
    """Return the keys of the actions that a run did, and whose ``verify`` held each time before they were done."""
    held: dict[str, bool] = {}
    for path, attempts in past.attempts.items():
        if _of(attempts) == "done":
            key = effects.key_of(loaded, path)
            held[key] = held.get(key, True) and attempts[-1].call.held_before is True
    return frozenset(key for key, each in held.items() if each)


def on_errors(loaded: workflow.Loaded, past: history.History) -> dict[str, str]:
    """Return statements, by key, about leaves that in a run read an error page of the site, for any item, or received one as an answer.

    Rules may hold there by accident, and lists are empty there.
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


def errors_of(ran: Sequence[Ran]) -> dict[str, str]:
    """Return statements about leaves that worked on error pages, or received one as an answer, in any of these runs.

    A step that only led to such a page is omitted if others read it; a side effect is not.
    """
    return {
        key: said
        for each in ran
        for key, said in each.on_errors.items()
        if said.startswith(READ) or key in each.actions
    }


_RANKS: tuple[Outcome, ...] = ("not reached", "passed by", "failed", "idle", "held", "done")


def better(one: Outcome, other: Outcome) -> Outcome:
    """Return the stronger of two outcomes of an action in a loop."""
    return one if _RANKS.index(one) > _RANKS.index(other) else other


def _of(attempts: Sequence[log_attempts.Attempt]) -> Outcome:
    last = attempts[-1]
    result = last.result
    if result is not None and result.status in ("ok", "recovered") and last.verdict != "skipped":
        return "idle" if last.call.node == log_attempts.AGENT and not last.acted else "done"
    if last.verdict == "done":
        return "done"
    return "passed by" if result is not None and (result.tolerated or result.status == "skipped") else "failed"


def held_at(past: history.History) -> str | None:
    """Return the path of the withheld action at which the run stopped."""
    question = past.question
    return str(question.data["path"]) if question is not None and question.data["reason"] == "held" else None


def of_runs(loaded: workflow.Loaded, ran: Sequence[Ran], alone: Container[str] = ()) -> list[Effect]:
    """Return each side effect of the file with its outcome in these runs, in file order; ``alone`` are those done on the bench."""
    return [
        Effect(
            key,
            leaf.summary(),
            tuple(each.actions.get(key, "not reached") for each in ran),
            key in alone,
            all(key in each.moot for each in ran if each.actions.get(key) == "done")
            and any(key in each.moot for each in ran),
        )
        for leaf, key in effects.actions_of(loaded)
    ]


def headline(every: Sequence[Effect], ran: Sequence[Ran], others: Sequence[str] = ()) -> str:
    """Summarise the proof: ``full`` if all runs passed, each action was done in one, none on an error page, and ``others`` is empty."""
    doubts = [f"{key} ({said})" for key, said in errors_of(ran).items()]
    held = list(dict.fromkeys(briefs.ours(each.held) for each in ran if each.held is not None))
    if held:
        but = f", but {', '.join(doubts)}" if doubts else ""
        return f"up to {' and '.join(held)} (held: ready, not done){but}"
    if not ran or not all(each.status == "passed" for each in ran):
        return "not"
    lacking = [*(f"{each.key} ({each.words()})" for each in every if not each.done), *others]
    named = {each.partition(" (")[0] for each in lacking}
    lacking += [each for each in doubts if each.partition(" (")[0] not in named]
    if not lacking:
        return FULL
    return f"all but {', '.join(lacking)}"


def others(loaded: workflow.Loaded, ran: Sequence[Ran]) -> list[str]:
    """Return what the runs leave unproved besides actions: leaves that none reached or that succeeded in none, and fields that are empty in all."""
    actions = {key for _leaf, key in effects.actions_of(loaded)}
    told: list[str] = []
    for _leaf, key in effects.leaves_of(loaded):
        if key not in actions and not any(key in each.ended_well for each in ran):
            came = any(key in each.reached for each in ran)
            told.append(f"{key} ({'tried without success' if came else 'executed in no run'})")
    empty = empty_names([each.output for each in ran if each.status == "passed"])
    return [*told, *(f"{name} (always empty)" for name in empty)]


def to_be_said(every: Sequence[Effect], ran: Sequence[Ran]) -> list[str]:
    """Return the names of what the runs leave unproved though nothing was withheld, and of outputs that are empty in all of them."""
    held = any(each.held is not None for each in ran)
    lacking = [] if held else [each.key.rpartition("/")[2] for each in every if not each.done and not each.held]
    passed = [each.output for each in ran if each.status == "passed"]
    return list(dict.fromkeys([*lacking, *empty_names(passed)]))


def next_step(every: Sequence[Effect]) -> str:
    """Return the next step if actions were done on the bench and in no whole run; empty if there are none."""
    names = [f"`{each.key.rpartition('/')[2]}`" for each in every if each.alone and not each.done and not each.held]
    if not names:
        return ""
    return (
        f"done on the bench and in no whole run: {', '.join(dict.fromkeys(names))}. The bench may have left nothing to do. A `run_draft` with other inputs, for "
        "which it is still to do, shows it in a whole run; in `finish` name it in `unproved` and say why"
    )


def empty_names(outputs: Sequence[Json]) -> list[str]:
    """Return what is empty in all of these outputs: the names of fields, or ``output`` for the whole."""
    if not outputs or any(not _is_empty(each) for each in outputs if not isinstance(each, dict)):
        return []
    if not all(isinstance(each, dict) and each for each in outputs):
        return ["output"] if all(map(_is_empty, outputs)) else []
    names: list[str] = list(outputs[0])
    return [name for name in names if all(_is_empty(each.get(name)) for each in outputs)]


def _is_empty(value: Json) -> bool:
    return value is None or value in ("", [], {})


def surprise(ran: Sequence[Ran]) -> str:
    """Return an explanation if the first run passed and a later one failed; else empty."""
    if not (ran and ran[0].went_well and not ran[-1].went_well):
        return ""
    return (
        f"Run 1 went well and run {len(ran)} did not: the first may have changed what the next one finds. Have the workflow look at what is there first "
        "(`when`, `route`), or read what it needs in place of what was there before."
    )
