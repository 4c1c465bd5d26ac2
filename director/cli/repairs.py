"""A repair in the foreground: how it is followed, and what is told of it."""

from __future__ import annotations

import asyncio
import dataclasses
import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from director import effects as deeds_of_builds
from director import person
from director.cli import interrupts, typing_in
from director.repairing import deeds, kept, mending
from nodes.errors import UsageError
from nodes.values import Json
from runtime import briefs, events, evidence, history, runs, settings, store
from runtime.cli import console, execution, signals
from runtime.display.text import harmless, one_line
from runtime.language import workflow

if TYPE_CHECKING:
    from director.workshop import Policy


READY = 6
"""The exit code where a mend is ready for review."""

SAID = {
    "proved": "proved: a copy of the run went on from there to its end",
    "held": "proved up to a deed that was held",
    "guess": "not proved: nothing but its place tells that this is what was meant",
}


@dataclasses.dataclass(frozen=True, slots=True)
class Wish:
    """What was typed."""

    file: Path | None
    """None for that of the run."""
    run: str
    effects: Policy | None
    apply: bool
    yes: bool

    @property
    def named(self) -> str:
        """The file as it is typed, with a blank behind it; empty where it need not be."""
        return f"{shlex.quote(str(self.file))} " if self.file is not None else ""


def carry_out(wish: Wish, chosen: settings.Settings, *, as_json: bool, quiet: bool) -> None:
    """Repair a run; always raises ``typer.Exit``, or RunOpsError for what could not begin."""
    execution.hush()
    home = store.FileStore(chosen.home)
    run = runs.find(chosen, wish.run)
    past, reading = runs.load_history(chosen, run)
    if reading.held:
        raise UsageError("not-failed", f"run {run} is going on", mend="wait for its end, or stop it")
    if past.status == "passed":
        _passed(run, as_json=as_json, quiet=quiet)
    loaded = workflow.load(wish.file or runs.workflow_file(past))
    _refuse_other_file(loaded, past, run)
    before = kept.known(home, run) if wish.apply else None
    if before is not None:
        _apply(wish, run, before, as_json=as_json)
    policy = _policy(wish, loaded, past)
    outcome, code = _followed(wish, chosen, run, loaded, policy, quiet=quiet)
    if outcome is None:
        raise typer.Exit(code)
    changes = kept.patches_of(outcome.proof.mends) if outcome.proof is not None else []
    patch = kept.unified(changes, Path.cwd())
    place: Path | None = None
    if outcome.proof is not None:
        place = kept.keep(home, run, outcome.proof, changes, patch)
    code = READY if outcome.proof is not None else 1
    console.say("\n".join(_told(wish, outcome, place, past)))
    if as_json:
        console.result(console.as_json(**_json(outcome, code, patch, place)))
    elif patch:
        console.result(patch.rstrip("\n"))
    if wish.apply and (made := kept.known(home, run)) is not None and outcome.proof is not None:
        _apply(wish, run, made, as_json=False)
    raise typer.Exit(code)


def _passed(run: str, *, as_json: bool, quiet: bool) -> None:
    if not quiet:
        console.say(f"run {run} passed: there is nothing to repair")
    if as_json:
        console.result(console.as_json(run=run, status="passed", exit=0, kind=None))
    raise typer.Exit(0)


def _refuse_other_file(loaded: workflow.Loaded, past: history.History, run: str) -> None:
    """The file need not be where it was, but it must be of that run."""
    assert past.header is not None
    same = Path(past.header.file).resolve() == loaded.path.resolve()
    if not same and loaded.workflow.name != past.header.workflow:
        raise UsageError(
            "other-workflow",
            f"run {run} is one of {past.header.file}, and not of {loaded.path}",
            mend=f"`runops repair {shlex.quote(past.header.file)} --run {run}`",
        )


def _policy(wish: Wish, loaded: workflow.Loaded, past: history.History) -> Policy:
    """What becomes of the deeds of a proof. Raises UsageError ``effects-not-local``."""
    if wish.effects == "allow":
        assert past.header is not None
        known = {name: value for name, value in past.header.inputs.items() if name in loaded.workflow.inputs}
        deeds_of_builds.refuse_allow(loaded.origins(loaded.check_inputs(known)))
    if wish.effects == "ask" and (wish.yes or not typing_in.possible()):
        return "hold"
    if wish.effects is not None:
        return wish.effects
    asked = typing_in.possible() and not wish.yes and not os.environ.get("CI")
    return "ask" if asked else "hold"


def _followed(
    wish: Wish, chosen: settings.Settings, run: str, loaded: workflow.Loaded, policy: Policy, *, quiet: bool
) -> tuple[mending.Outcome | None, int]:
    """What it came to; without that the exit code of an interruption."""

    def say(text: str) -> None:
        if not quiet:
            console.say(f"..  {one_line(text)}")

    copies: list[str] = []

    def listen(event: events.Event) -> None:
        if isinstance(event, events.RunStarted):
            copies.append(event.run)

    who = typing_in.person_at(console.say) if typing_in.possible() and not wish.yes else person.Nobody()
    one = mending.Mending(chosen, deeds.Deeds(policy, who), say, listen)
    again = f"again  runops repair {wish.named}--run {run}"
    with asyncio.Runner() as runner:
        clear = lambda: [execution.end_browser(chosen.home / "private" / each) for each in copies]  # noqa: E731
        signalled = interrupts.Interrupts(runner, lambda: again, clear)
        with signals.handled_by(signalled.handle):
            try:
                return signalled.run(one.repair(run, loaded)), 0
            except signals.Interrupted as interrupted:
                console.say(f"interrupted; nothing is changed\n  {again}")
                return None, interrupted.exit


def _apply(wish: Wish, run: str, known: kept.Known, *, as_json: bool) -> None:
    """Write the mend into its files, and end."""
    if known.verdict == "guess" and not wish.yes:
        raise UsageError(
            "mend-not-proved",
            f"the mend of run {run} is a guess: nothing tells that what it finds is what was meant",
            mend="look at it; with `--apply --yes` it is written all the same",
        )
    kept.apply(known.changes)
    files = [str(each.file) for each in known.changes]
    console.say(f"applied to {', '.join(files)}\n  {_next(run, known)}")
    if as_json:
        told: dict[str, Json] = {"status": "applied", "exit": 0, "verdict": known.verdict, "files": list[Json](files)}
        console.result(console.as_json(run=run, **told, done=list[Json](known.done)))
    raise typer.Exit(0)


def _next(run: str, known: kept.Known) -> str:
    """What to type once the file is mended. What the proof has done on the site must not be done again."""
    if not known.done:
        return f"again  runops resume {run} --allow-changed"
    if known.verdict == "proved":
        return f"done   run {known.proof} went on to the end in its place: {run} is not to be resumed"
    deeds = ", ".join(briefs.ours(each) for each in known.done)
    return f"look   runops show {known.proof}   (it did {deeds} on the site: resuming {run} would do that again)"


def _told(wish: Wish, outcome: mending.Outcome, place: Path | None, past: history.History) -> list[str]:
    """What a person reads: of what the run failed, what speaks for it, the mend, and what to type next."""
    failure, found, proof = outcome.case.failure, outcome.found, outcome.proof
    lines = [f"{console.paint(found.kind, console.BOLD, console.YELLOW)}  {one_line(failure.path)}"]
    rows: list[tuple[str, str]] = [("why", one_line(each)) for each in found.why]
    seen = evidence.of(past, failure.path) or {}
    rows += [("page", str(seen["url"]))] if seen.get("url") else []
    rows += [("kept", str(seen[name]["path"])) for name in ("screenshot",) if seen.get(name)]
    rows += [("tried", one_line(each)) for each in outcome.tried]
    if proof is None:
        rows.append(("mend", found.mend))
        rows.append(("look", f"runops show {outcome.run} --at {shlex.quote(failure.path)}"))
        if found.kind in ("site error", "slow page", "signed out"):
            rows.append(("again", f"runops resume {outcome.run}"))
    else:
        rows += [("mend", f"{one_line(each.path)}: {one_line(each.what)}") for each in proof.mends]
        rows.append(("proof", _proved(proof)))
        rows += [("done", f"{one_line(each)}, in the proof: it is done on the site") for each in proof.done]
        rows.append(("patch", str(place)))
        guess = " --yes" if proof.verdict == "guess" else ""
        rows.append(("apply", f"runops repair {wish.named}--run {outcome.run} --apply{guess}"))
        if not proof.done:
            rows.append(("then", f"runops resume {outcome.run} --allow-changed"))
    wide = max(len(name) for name, _ in rows)
    return [*lines, *(f"  {name:<{wide}}  {harmless(text)}" for name, text in rows)]


def _proved(proof: mending.Proof) -> str:
    said = SAID[proof.verdict]
    where = f": {briefs.ours(proof.reached)}" if proof.reached else ""
    return f"{said}{where}  (run {proof.run})"


def _json(outcome: mending.Outcome, code: int, patch: str, place: Path | None) -> dict[str, Json]:
    failure, found, proof = outcome.case.failure, outcome.found, outcome.proof
    mend: dict[str, Json] | None = None
    if proof is not None:
        mend = {
            "verdict": proof.verdict,
            "steps": [{"path": each.path, "what": each.what, "file": str(each.file)} for each in proof.mends],
            "run": proof.run,
            "reached": proof.reached,
            "done": list[Json](proof.done),
            "patch": patch,
            "kept": str(place),
        }
    return {
        "run": outcome.run,
        "status": "mend-ready" if proof is not None else "not-mended",
        "exit": code,
        "path": failure.path,
        "code": failure.code,
        "kind": found.kind,
        "why": list[Json](found.why),
        "next": found.mend,
        "mend": mend,
        "tried": list[Json](outcome.tried),
        "looked": outcome.looked,
    }
