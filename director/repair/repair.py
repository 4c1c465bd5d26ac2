"""Fixes a failed run: candidates of a fresh inspection are tried in copies of the run until one is proved.

A proof resumes a copy of the run before the failed step, with the changed file, to the end of the workflow. A fix that gets there may still
find the wrong element. So it counts only if the step's `verify` confirms it, or the element's name identifies it. Any other fix is
reported as a guess, with the alternatives.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Literal

from director.effects import effects
from director.repair import candidates, failure_kinds, failures, inspection, patches
from director.repair import effects as repair_effects
from nodes.errors import RunOpsError, UsageError
from nodes.targets import Target
from nodes.values import Json
from runtime import events
from runtime.context import briefs
from runtime.engine import run_state
from runtime.language import callees, reader, workflow
from runtime.log import history
from runtime.runs import start
from runtime.runs.runtime import Runtime
from runtime.workspace import host, run_index

MOST_TRIES = 4
MOST_STEPS = 6  # limit of the steps fixed in one repair: a site often changes in several places

LEAST_SECONDS, MOST_SECONDS = 5.0, 60.0  # bounds of the new timeout of a step whose duration is unknown

CLEAR = 0.08  # least lead of a candidate in ``worth`` to count as better than the others

Verdict = Literal["proved", "held", "guess"]
"""Result of a proof: the copy reached the end, it reached a withheld action, or nothing proves that the element is the right one."""


@dataclasses.dataclass(frozen=True, slots=True)
class Patch:
    path: str
    what: str
    file: Path
    text: str
    named: bool
    shares: bool = True  # True if at least half of the found element's name is the one that was meant
    verified: bool = False  # True if the step's `verify` did not hold before it, so that it can prove the step
    clear: bool = True  # True if no other candidate is nearly as good
    others: Sequence[str] = ()  # the alternatives, if nothing distinguishes them

    @property
    def evident(self) -> bool:
        """True if there is, or will be, evidence that the right element is found."""
        return self.named or self.verified


@dataclasses.dataclass(frozen=True, slots=True)
class Proof:
    verdict: Verdict
    repairs: Sequence[Patch]
    loaded: workflow.Loaded
    run: str  # the id of the copy
    reached: str | None  # the withheld action at which it stopped; None if it reached the end
    done: Sequence[str]  # the side effects that the copy did on the site


@dataclasses.dataclass(frozen=True, slots=True)
class Outcome:
    case: failures.Case
    found: failure_kinds.Found
    proof: Proof | None
    tried: Sequence[str] = ()
    looked: str | None = None  # the copy of the run that was inspected
    works_now: bool = False  # True if the inspection found the step done or ready, so that resuming is enough
    refused: bool = False  # True if a person has refused an action of a proof


class Repair:
    def __init__(
        self,
        here: host.Host,
        allowed: repair_effects.Effects,
        say: Callable[[str], None],
        listener: Callable[[events.Event], None] | None = None,
    ) -> None:
        """``allowed`` decides which actions a proof may do; ``say`` reports progress; ``listener`` receives the events of copies."""
        self._carrier = Runtime.of(here)
        self._store = here.reader
        self._actions = allowed
        self._say = say
        self._listener = listener
        self._tried: list[str] = []
        self._lines = 0  # lines of the run's log; a copy's log begins with these
        self._inputs: Mapping[str, Json] = {}

    async def repair(self, run: str, loaded: workflow.Loaded) -> Outcome:
        """Explain why the run failed, and find a fix. Raises UsageError ``not-failed``, and errors that prevent the file from running."""
        past, reading = run_index.load_history(self._store, run)
        run_index.refuse_trial(past, run)
        self._lines = len(reading.entries)
        self._inputs = past.header.inputs if past.header is not None else {}
        case = failures.read(run, past, self._store, loaded)
        at_once = failure_kinds.classify(case.failure, case.then, None)
        if at_once.kind in ("finding", "workflow"):
            return Outcome(case, at_once, None)
        return await self._found(case, loaded, ())

    async def _found(self, case: failures.Case, loaded: workflow.Loaded, before: Sequence[Patch]) -> Outcome:
        """Inspect the step, and find a fix on top of those made ``before``."""
        seen, copy = await self._look(case, loaded)
        look = seen.look if seen is not None else None
        found = failure_kinds.classify(case.failure, case.then, look)
        proof: Proof | None = None
        if found.kind in failure_kinds.PATCHED and seen is not None:
            proof = await self._find_patch(case, loaded, found, seen, before)
        works_now = look is not None and look.code is None
        return Outcome(case, found, proof, self._tried, copy, works_now, self._actions.refused)

    async def _look(
        self, case: failures.Case, loaded: workflow.Loaded
    ) -> tuple[inspection.Inspection | None, str | None]:
        """Inspect the step's page once; None if the run cannot be resumed with the current file."""
        self._say(f"looking at {briefs.ours(case.failure.path)} again, in a copy of run {case.run}")
        looker = inspection.Looker(case, self._say)
        try:
            ended = await self._copied(case, loaded, "look", looker.holds, looker.ended)
        except UsageError as error:
            self._tried.append(f"no fresh look: {error.message}")
            return None, None
        if looker.seen is None and ended.status == "passed":
            return inspection.Inspection(failure_kinds.PageLook(failure_kinds.PageGlance(), None, None)), ended.run
        if looker.seen is not None:
            self._tried += looker.seen.left_out
        return looker.seen, ended.run

    async def _find_patch(
        self,
        case: failures.Case,
        loaded: workflow.Loaded,
        found: failure_kinds.Found,
        seen: inspection.Inspection,
        before: Sequence[Patch],
    ) -> Proof | None:
        """Return the first proved fix, on top of those made ``before``; else the best guess."""
        guess: Proof | None = None
        for fix in _repairs(case, found, seen)[:MOST_TRIES]:
            if not fix.evident and not fix.shares and not fix.clear:
                self._tried.append(f"{fix.what}: and nothing distinguishes it from others")
                continue
            proof = await self._try(case, loaded, fix, before)
            if proof is None:
                continue
            if proof.verdict != "guess" or self._actions.refused:
                # A person who has refused is not asked again for the next candidate.
                return proof
            guess = guess or proof
        return guess

    async def _copied(
        self,
        case: failures.Case,
        loaded: workflow.Loaded,
        purpose: str,
        holds: run_state.Withholds,
        ended: start.Ended | None = None,
    ) -> events.RunEnded:
        about: dict[str, Json] = {"node": case.failure.path, "copy": case.run, "for": purpose}
        options = start.Options(holds=holds, parent=case.run)
        carried = await self._carrier.copy(
            case.run, loaded, about=about, ended=ended, options=options, listener=self._listener
        )
        return await carried.to_its_end()

    async def _try(
        self, case: failures.Case, loaded: workflow.Loaded, fix: Patch, before: Sequence[Patch]
    ) -> Proof | None:
        """Return the proof of how far the run gets with the fix; None if it does not get past the fixed step."""
        self._say(f"trying to {fix.what}")
        try:
            patched = _patched(loaded, fix)
            page = case.then.url if case.then is not None else None
            wanted = repair_effects.after(patched, fix.path)
            holds = await self._actions.demand(patched, wanted, inputs=self._inputs, at=fix.path, page=page)
            ended = await self._copied(
                case,
                patched,
                "proof",
                # The action of a guess is never done.
                lambda leaf, path: (
                    holds(leaf, path) or (not fix.evident and path == fix.path and effects.changes(leaf))
                ),
            )
        except UsageError as error:
            self._tried.append(f"{fix.what}: {error.message}")
            return None
        repairs = (*before, fix)
        past = run_index.load_history(self._store, ended.run)[0]
        withheld = ended.status == "paused" and (ended.question or {}).get("reason") == "held"
        if withheld or ended.status == "passed":
            # If the fixed step itself was withheld, its `verify` has proved nothing.
            at_step = withheld and ended.path == fix.path
            sure = all(each.named if at_step else each.evident for each in repairs)
            verdict: Verdict = "guess" if not sure else "held" if withheld else "proved"
            reached = ended.path if withheld else None
            return Proof(verdict, repairs, patched, ended.run, reached, self._done(past))
        if effects.static(ended.path or "") == effects.static(fix.path) or past.done(fix.path) is None:
            self._tried.append(f"{fix.what}: {(ended.error or ended.question or {}).get('message')}")
            return None
        # A later step failed: it may have drifted, too, or the fix was wrong.
        proof: Proof | None = None
        why = (ended.error or ended.question or {}).get("code") or (ended.question or {}).get("reason")
        if ended.status == "failed" and len(repairs) < MOST_STEPS and all(each.evident for each in repairs):
            later = failures.read(ended.run, past, self._store, patched)
            outcome = await self._found(later, patched, repairs)
            proof, why = outcome.proof, outcome.found.kind
        if proof is None:
            self._tried.append(f"{fix.what}: then {briefs.ours(ended.path or '')} failed ({why})")
        return proof

    def _done(self, past: history.History) -> list[str]:
        """Return the side effects that a copy did, or may have done."""
        return [
            attempt.call.path
            for attempt in past.all_attempts()
            if attempt.call.seq > self._lines and attempt.call.effect == "effect" and attempt.may_have_happened
        ]


def _patched(loaded: workflow.Loaded, fix: Patch) -> workflow.Loaded:
    own = fix.file == loaded.path
    texts = loaded.texts() if own else {**loaded.texts(), os.path.relpath(fix.file, loaded.path.parent): fix.text}
    text = fix.text if own else loaded.text
    return reader.parse(text, str(loaded.path), callees.Texts(texts, str(loaded.path.parent)))


def _repairs(case: failures.Case, found: failure_kinds.Found, seen: inspection.Inspection) -> list[Patch]:
    if case.found is None or case.leaf is None:
        return []
    if found.kind == "slow page" and seen.look.came_after is not None:
        return [_slower(case, case.found, seen.look.came_after * 3 + 0.5)]
    if found.kind == "slow page" and case.failure.code == "timeout" and seen.look.code is not None:
        # The needed time is unknown: the proof shows whether this is enough.
        return [_slower(case, case.found, min(MOST_SECONDS, max(LEAST_SECONDS, 4 * case.failure.seconds)))]
    if found.kind == "overlay" and seen.closer is not None:
        return [_closing(case, case.found, seen.closer)]
    if found.kind == "drift" and case.failure.code == "column-not-found":
        return _columns(case, case.found)
    return _targets(case, case.found, case.raw, seen) if found.kind == "drift" and case.raw is not None else []


def _slower(case: failures.Case, found: workflow.Found, seconds: float) -> Patch:
    seconds = float(round(seconds))
    text = patches.with_timeout(found.file, found.node.id, seconds)
    return Patch(case.failure.path, f"give it {seconds:g} s", found.file.path, text, named=True)


def _closing(case: failures.Case, found: workflow.Found, closer: inspection.Closer) -> Patch:
    """Return the patch that adds a step before the failed one, which closes an overlay if there is one."""
    names = ("close_overlay", *(f"close_overlay_{number}" for number in range(2, 100)))
    fields: dict[str, Json] = {
        "id": next(each for each in names if each not in found.file.index),
        "type": "browser_action",
        "action": "click",
        "target": closer.target.model_dump(mode="json", by_alias=True, exclude_none=True),
        "timeout": 3,
        "on_error": "continue",
    }
    if closer.harmless:
        fields["effect"] = "idempotent"
    text = patches.with_node_before(found.file, found.node.id, fields)
    what = f'press "{closer.name}" before it, where that is there'
    return Patch(case.failure.path, what, found.file.path, text, named=True)


def _targets(case: failures.Case, found: workflow.Found, raw: Target, seen: inspection.Inspection) -> list[Patch]:
    """Return replacements of the broken target: first those identified by name, then similar ones."""
    made: list[Patch] = []
    ordered = sorted(seen.candidates, key=lambda each: (not each.named, not each.shares, -each.worth))
    for each in ordered:
        others = [other for other in ordered if other is not each]
        file = found.file
        try:
            text = patches.with_target(file, found.node.id, case.field, raw, each.target)
            reader.parse(text, str(file.path), callees.Texts(file.texts(), str(file.path.parent)))
        except RunOpsError:
            # The page has a name that a file cannot contain.
            continue
        if text == file.text or any(text == known.text for known in made):
            continue
        fix = Patch(
            case.failure.path,
            f"find it as {each.target}: {each.why}",
            file.path,
            text,
            named=each.named,
            shares=each.shares,
            verified=bool(case.rules) and seen.look.proves,
            clear=all(each.worth - other.worth >= CLEAR or (each.shares and not other.shares) for other in others),
            others=[str(other.target) for other in others if other.shares or not each.shares],
        )
        made.append(fix)
    return made


def _columns(case: failures.Case, found: workflow.Found) -> list[Patch]:
    """Return a patch for each header that no other column reads, likeliest first."""
    if case.column is None:
        return []
    name, typed, scores = case.column
    return [
        Patch(
            case.failure.path,
            f'read `{name}` from the column "{each.seen.name}"{": it is called alike" if each.shares else ""}',
            found.file.path,
            patches.with_column(found.file, found.node.id, name, each.seen.name),
            named=candidates.named(each, scores),
            shares=each.shares,
            clear=typed,
            others=[f'the column "{other.seen.name}"' for other in scores if other is not each],
        )
        for each in scores
    ]
