"""Ends a build: checks the requirements, proves the draft by runs, and writes its files."""

from __future__ import annotations

import contextlib
import dataclasses
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from director.draft import output_files
from director.editing import lint, unused_values
from director.effects import effects
from director.proving import checks, draft_runs, guards, notes, performed, proofs, repair_builds, report
from director.tools import begin
from director.tools.build_context import NOT_LOOKED_AT
from director.tools.toolbox import FINISH
from nodes.errors import ModelError, RunOpsError
from nodes.values import Json
from runtime.context import briefs
from runtime.engine import run_state
from runtime.language import diagnostics, prepare, workflow
from runtime.log import entries
from runtime.secrets import masking

if TYPE_CHECKING:
    from director.tools.build_context import BuildContext


CHANGED = ModelError(
    "not-proved",
    "not done: a file that the draft uses was changed while it was proved, so the runs prove nothing about its present content",
    fix="call `finish` again",
)

MOST_OTHERS = 8


@dataclasses.dataclass(frozen=True, slots=True)
class MissingProof:
    what: str
    fix: str

    def __str__(self) -> str:
        return f"- {self.what}\n  {self.fix}"


@dataclasses.dataclass(frozen=True, slots=True)
class FinishRequest:
    summary: str
    unproved: str  # the parts that stay unproved or empty, with reasons

    def names(self, name: str) -> bool:
        return re.search(rf"(?<!\w){re.escape(name)}(?!\w)", self.unproved) is not None


@dataclasses.dataclass(frozen=True, slots=True)
class Proof:
    """Runs of one text of the draft, one after the other, up to the first that did not go well."""

    text: str
    loaded: workflow.Loaded
    runs: tuple[proofs.Ran, ...]
    before: tuple[proofs.Ran, ...] = ()  # earlier passed runs of the same text with the same inputs
    elsewhere: tuple[proofs.Ran, ...] = ()  # earlier passed runs of the same text with other inputs
    alone: frozenset[str] = frozenset()  # the keys of the actions that were done on the bench

    @property
    def every(self) -> list[proofs.Ran]:
        return [*self.before, *self.runs]

    @property
    def effects(self) -> list[proofs.Effect]:
        return proofs.of_runs(self.loaded, self.every, self.alone, self.elsewhere)

    @property
    def listed(self) -> list[proofs.Effect]:
        """Every action as it is reported: the side effects, then what may change something without counting as one."""
        return [*self.effects, *proofs.repeatable(self.loaded, self.every, self.elsewhere)]

    @property
    def reset(self) -> bool:
        return proofs.reset(self.runs)

    @property
    def without_reset(self) -> str:
        return proofs.without_reset(self.effects, self.every)

    @property
    def head(self) -> list[str]:
        """The lines for the head of the file: how far it is proved, and each side effect."""
        passed = sum(each.status == "passed" for each in self.every)
        fresh = f"fresh browsers{', the site reset before each' if self.reset else ''}"
        return [
            f"{output_files.PROVED}{self.headline}; {passed} of {len(self.every)} runs passed in {fresh}",
            *(f"{each.key}: {each.describe()}" for each in self.listed),
        ]

    @property
    def short(self) -> list[str]:
        """Hints about values that a run read in part, once each."""
        return list(dict.fromkeys(hint for each in self.runs for hint in each.short))

    @property
    def doubts(self) -> dict[str, str]:
        return proofs.doubts_of(self.effects, self.runs, self.before)

    @property
    def not_looked_at(self) -> list[str]:
        return checks.not_looked_at(self.loaded, self.every)

    @property
    def not_executed(self) -> list[str]:
        """The keys of the leaves that none of the runs reached."""
        keys = [key for _leaf, key in effects.leaves_of(self.loaded)]
        every = [*self.every, *self.elsewhere]
        return [key for key in keys if all(each.became(key) == "not reached" for each in every)]

    @property
    def unreached(self) -> list[str]:
        """Those leaves without guards, by the name of their container where no run reached any of it."""
        return effects.together(self.loaded, set(self.not_executed) - set(self._guarding))

    @property
    def guards(self) -> list[str]:
        """The guards that each run passed by (``guards.of``), by the name of their container, with the number of runs."""
        runs = len([*self.every, *self.elsewhere])
        named = effects.together(self.loaded, self._guarding)
        return [f"{each}: condition did not hold in {runs} of {runs} runs" for each in named]

    @property
    def _guarding(self) -> list[str]:
        keys = guards.of(self.loaded, [each.passed for each in (*self.every, *self.elsewhere)])
        return [key for key in self.not_executed if key in keys]

    @property
    def headline(self) -> str:
        others = proofs.others(self.loaded, [*self.every, *self.elsewhere])
        more = [f"{len(others) - MOST_OTHERS} more"] if len(others) > MOST_OTHERS else []
        return proofs.headline(self.effects, self.runs, [*others[:MOST_OTHERS], *more], self.before)


def missing(build: BuildContext, said: FinishRequest) -> Iterator[MissingProof]:
    """Yield all missing requirements that are visible without a run."""
    if not said.summary.strip():
        yield MissingProof("`summary` says nothing", "say what the workflow does and what its output is")
    draft = build.state.draft
    if draft is None:
        yield MissingProof("there is no draft", "begin it with `create_nodes`")
        return
    goal, known = build.goal, masking.Masker(build.known())
    if not (
        goal.force
        or output_files.may_write(goal.save, build.writer.conversation.id)
        or begin.is_unchanged(build, goal.save)
    ):
        yield MissingProof(
            f"{goal.save} is there already, and this build has not left it so",
            "ask the person to move it away, or to continue with `--force`",
        )
    plain = [each for each in lint.hints(draft, goal, build.known()) if each.level == "error"]
    yield from (MissingProof(known.text(f"{each.node}: {each.text}"), each.fix) for each in plain)
    if known.text(draft.text) != draft.text and not plain:
        yield MissingProof(
            "the draft itself contains a secret",
            "write `{{ secrets.NAME }}` in a field that takes secrets, and the name under `secrets:`",
        )
    file = draft.loaded.workflow
    for name in goal.inputs:
        if name not in file.inputs:
            yield MissingProof(
                f"the person gave the input `{name}`, and the draft declares none of that name",
                f"declare it under `inputs:` and read `{{{{ inputs.{name} }}}}` where its value is used",
            )
    yield from _hollow(build, draft.loaded, said)
    if repair_builds.unchanged(build):
        yield MissingProof("the draft says what the file says: there is nothing to review", repair_builds.UNCHANGED)
    if file.output is None and goal.repairs is None and not said.names("output"):
        yield MissingProof(
            "the draft has no `output`",
            "say what a run yields (`update_node` of `workflow`, key `output`), or, where nothing was asked for, why none, with the word `output`, in `unproved`",
        )
    try:
        loaded = draft_runs.as_saved(build)
        draft_runs.prepared(build, loaded, draft_runs.declared(build, loaded))
    except diagnostics.WorkflowInvalid as invalid:
        for each in invalid.diagnostics:
            place = f" (line {each.mark.line}, column {each.mark.column})" if each.mark is not None else ""
            yield MissingProof(f"{each.message}{place} ({each.code})", "; ".join(each.help) or "fix it in the draft")
    except RunOpsError as error:
        yield MissingProof(f"{error.message} ({error.code})", error.fix or "fix it in the draft")


def _hollow(build: BuildContext, loaded: workflow.Loaded, said: FinishRequest) -> Iterator[MissingProof]:
    """Yield inputs that nothing reads and outputs that never change, unless mentioned. A draft may leave those of its file."""
    if build.goal.repairs is not None:
        return
    unread = unused_values.unread(loaded, [each for each in build.goal.inputs if each in loaded.workflow.inputs])
    for name in unread:
        if not said.names(name):
            fix = f"read `{{{{ inputs.{name} }}}}` where its value is used, or name it in `unproved` and say why"
            yield MissingProof(f"nothing reads the input `{name}`, which the person gave", fix)
    file = begin.first_of_file(build)
    was = unused_values.constant_outputs(file.loaded) if file is not None else ()
    for name in unused_values.constant_outputs(loaded):
        if name not in was and not said.names(name):
            fix = "yield what a node reads, or name it in `unproved` and say why"
            yield MissingProof(unused_values.constant(name), fix)


def foreseen(build: BuildContext, said: FinishRequest) -> str:
    """Return what else ``finish`` would refuse, by earlier runs, so that the model can fix all at once."""
    with contextlib.suppress(RunOpsError):
        if names := _expected(build, draft_runs.as_saved(build), said):
            return f"\n- in earlier runs of this draft: {_reasons(names, '; ')}\n  fix the draft, or name each in `unproved` and say why"
    return ""


def _expected(build: BuildContext, loaded: workflow.Loaded, said: FinishRequest) -> dict[str, str]:
    """Return what ``finish`` would have to mention (``unsaid``), by earlier runs of this draft; empty if there were none."""
    fit = draft_runs.prepared(build, loaded, draft_runs.declared(build, loaded))
    before, elsewhere = draft_runs.passed_before(build, fit)
    return unsaid(Proof(_text(build), loaded, (), before, elsewhere), said) if before else {}


def ahead(build: BuildContext, fit: prepare.Prepared, ran: proofs.Ran, more: str) -> str:
    """Return the requirements of ``finish`` as a line, after a run that went well; ``more`` is the report on actions so far."""
    times = "once" if build.goal.runs == 1 else f"{build.goal.runs} times"
    reset = ", the site reset before each" if build.resets else ""
    lines = [f"`finish` runs this draft {times} more with the goal's inputs{reset}."]
    still_missing = "; ".join(each.what for each in missing(build, FinishRequest(summary="-", unproved="")))
    lines += [f"Missing for it: {still_missing}."] if still_missing else []
    with contextlib.suppress(RunOpsError):
        if fit.loaded.check_inputs(draft_runs.declared(build, fit.loaded)) != fit.inputs:
            return " ".join([*lines, "This run, with other inputs, counts there for what those do not reach."])
        lines[0] = f"This run counts; {lines[0]}" if ran.status == "passed" else lines[0]
        names = [each for each in _expected(build, fit.loaded, FinishRequest("", "")) if f"`{each}`" not in more]
        lines += (
            [
                f"Unless {'each' if build.resets else 'a'} run does or yields it, name in `unproved`, with why: {_listed(names)}."
            ]
            if names
            else []
        )
    return " ".join(lines)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{each}`" for each in names)


def _reasons(names: Mapping[str, str], between: str) -> str:
    return between.join(f"`{name}`: {why}" for name, why in names.items())


def better(build: BuildContext) -> list[str]:
    return [*_unseen(build), *map(str, _hints(build))]


def hints(build: BuildContext) -> str:
    found = [*_unseen(build), *lint.shown(_hints(build))]
    return "".join(["\nit could say better:", *(f"\n- {each}" for each in found)]) if found else ""


def _unseen(build: BuildContext) -> list[str]:
    marks: Mapping[str, str] = build.bench.marks() if build.state.draft is not None else {}
    new = {name: said.partition(": ")[2] for name, said in marks.items() if said.endswith(NOT_LOOKED_AT)}
    return [f"{name}: {said}, as it was written after the node ran; `run_draft` tries it" for name, said in new.items()]


def _hints(build: BuildContext) -> list[lint.Hint]:
    draft = build.state.draft
    return lint.hints(draft, build.goal, build.known()) if draft is not None else []


async def prove(build: BuildContext, call: entries.Call, loaded: workflow.Loaded, holds: run_state.Withholds) -> Proof:
    """Run the draft as often as the goal requires, with the person's inputs, until a run does not go well."""
    fit = draft_runs.prepared(build, loaded, build.goal.inputs)
    before, elsewhere = draft_runs.passed_before(build, fit)
    runs: list[proofs.Ran] = []
    while len(runs) < max(1, build.goal.runs) and all(each.went_well for each in runs):
        runs.append(await draft_runs.run(build, call, loaded, fit, holds))
    alone = frozenset(draft_runs.done_alone(build, loaded))
    return Proof(_text(build), loaded, tuple(runs), before, elsewhere, alone)


def is_current(build: BuildContext, proof: Proof) -> bool:
    """Return whether the draft and every file that it uses or uploads are unchanged since the proof. Raises WorkflowInvalid."""
    fit = draft_runs.prepared(build, draft_runs.as_saved(build), build.goal.inputs)
    return proof.text == _text(build) and all(
        each.past is not None and draft_runs.counts(build, fit, each.past) for each in proof.runs
    )


def _text(build: BuildContext) -> str:
    draft = build.state.draft
    return draft.text if draft is not None else ""


def unsaid(proof: Proof, said: FinishRequest) -> dict[str, str]:
    """Return the names of what the runs leave unproved or empty and the model did not mention, each with the reason."""
    # Outputs of earlier runs count: the proof may find nothing left to do.
    names = proofs.to_be_said(proof.effects, [*proof.every, *proof.elsewhere])
    if proof.loaded.workflow.output is None:
        names.pop("output", None)
    described = {each.name: each.describe() for each in proof.effects}
    names |= {each: described[each] for each in _sign_ins(proof)}
    for key, why in proof.doubts.items():
        name = key.rpartition("/")[2]
        names[name] = f"{names[name]}; {why}" if name in names else why
    return {name: why for name, why in names.items() if not said.names(name)}


def _sign_ins(proof: Proof) -> list[str]:
    """Return the withheld actions that seem only to sign in: everything after them is unproved."""
    withheld = {
        each.withheld for each in proof.runs if each.withheld and effects.only_signs_in(proof.loaded, each.withheld)
    }
    return sorted(effects.key_of(proof.loaded, each).rpartition("/")[2] for each in withheld)


def refusal(build: BuildContext, proof: Proof) -> tuple[str, str]:
    last, number = proof.runs[-1], len(proof.runs)
    why = f"not done: proof run {number} of {build.goal.runs} did not pass: {report.head(last)}"
    ours = "\n".join(filter(None, [why, proofs.surprise(proof.runs)]))
    more = [ours, report.text_of(last, proof.loaded), draft_runs.differs(build, last)]
    return ours, "\n".join(filter(None, more))


def say_more(proof: Proof, names: Mapping[str, str]) -> str:
    alone = proofs.next_step(proof.effects)
    return (
        f"not done: nothing failed, but this is open:\n- {_reasons(names, f'{chr(10)}- ')}\n"
        "Fix the draft, or, where it is right so, name it in `unproved` and say why; as long as the draft stays as it is, these runs then count."
        f"{f' {report.SIGNS_IN}' if _sign_ins(proof) else ''}{f' {alone[:1].upper()}{alone[1:]}.' if alone else ''}"
    )


@dataclasses.dataclass(frozen=True, slots=True)
class Finished:
    value: dict[str, Json]
    is_older: bool  # True if the draft has changed since


def last(build: BuildContext) -> Finished | None:
    """Return the last accepted ``finish`` of the session, also one that says that it cannot be done."""
    history = build.writer.history
    drafts = history.versions("draft")
    for action in reversed(history.actions.values()):
        result = action.result
        if result is not None and result.status == "ok" and action.call.action == FINISH:
            value = build.writer.value_of(result)
            older = bool(drafts) and drafts[-1].seq > result.seq
            return Finished(value if isinstance(value, dict) else {}, older)
    return None


def saved(build: BuildContext) -> Path | None:
    """Return the file as which the draft was proved and saved; None if it was not, or has changed since."""
    found = last(build)
    if found is None or found.is_older or not found.value.get("done"):
        return None
    file = Path(str(found.value["file"]))
    unchanged = found.value.get("fix") is not None or output_files.changed(file, build.writer.conversation.id) is None
    return file if unchanged else None


def accepted(build: BuildContext, proof: Proof, said: FinishRequest) -> dict[str, Json]:
    """Complete the plan, write the workflow and its notes; return the value of ``finish``. Raises UsageError ``file-not-written``."""
    _complete_plan(build)
    goal, session = build.goal, build.writer.conversation.id
    file, beside = goal.save, output_files.notes_of(goal.save)
    every, headline, done = proof.effects, proof.headline, performed.of_build(build)
    lines = [*proof.head, f"{output_files.BUILT}{beside.name}"]
    # An existing page of notes by another stays; these go next to it.
    beside = beside if goal.force else output_files.free_name(beside, session)
    declared = proof.loaded.workflow.inputs
    needed = {name: value for name, value in goal.inputs.items() if name in declared and declared[name].required}
    command = notes.run_command(file, needed)
    next_command = repair_builds.command(goal) or command
    text = notes.page(
        build, file, said.summary, next_command, done=done, unproved=said.unproved, proof=proof, better=better(build)
    )
    _write(build, file, beside, proof.text, lines, text)
    fix = repair_builds.leave(build, every, proof.runs, summary=said.summary)
    return {
        "done": True,
        **({"fix": fix} if fix is not None else {}),
        "file": str(file),
        "notes": str(beside),
        "proved": headline,
        "reset": proof.reset,
        **({"without_reset": proof.without_reset} if proof.without_reset else {}),
        "runs": [
            {
                "run": each.run,
                "status": each.status,
                "held": briefs.ours(each.withheld) if each.withheld is not None else None,
                **({"already": briefs.ours(each.already)} if each.already is not None else {}),
                "output": each.output,
            }
            for each in proof.runs
        ],
        "not_executed": list[Json](proof.not_executed),
        "effects": [{"node": each.key, "action": each.said, "what": each.describe()} for each in proof.listed],
        "left": _left(done),
        "output": proof.runs[-1].output,
        "summary": said.summary,
        "unproved": said.unproved or None,
        "inputs": needed,
        "command": command,
    }


def _complete_plan(build: BuildContext) -> None:
    """Complete the open tasks of the plan: the model has said that all is done. Blocked ones stay."""
    plan = build.state.plan
    left = [each.task_id for each in plan.tasks() if each.status in ("pending", "in_progress")] if plan else []
    if plan is None or not left:
        return
    for task in left:
        plan = plan.patch(task, status="completed")
    build.state.set_plan(plan, reason="`finish` was accepted")
    build.listener.changed("plan", "")


def leave_partial(build: BuildContext, why: str) -> dict[str, Json]:
    """Write the unfinished draft, with the step at which it fails, and its notes; return the report.

    ``file`` is None if there is no draft. An unfinished draft overwrites no existing file, even if the person allowed it: it is written
    next to that, and ``stays`` names the file that is kept. Raises UsageError ``file-not-written``.
    """
    draft, session = build.state.draft, build.writer.conversation.id
    left: dict[str, Json] = {"done": False, "file": None, "notes": None, "proved": "not", "summary": why}
    done = performed.of_build(build)
    left["left"] = _left(done)
    if draft is None:
        return left
    failure = draft_runs.last_failure(build)
    file = output_files.partial_name(build.goal.save, session)
    beside = output_files.free_name(output_files.notes_of(file), session)
    step = briefs.ours(failure[0]) if failure is not None else ""
    failing = f"it fails at {step or 'no step'} ({failure[1].get('code')})" if failure else "no run of it failed"
    lines = [f"NOT FINISHED: {failing}", f"{output_files.STOPPED}{beside.name}"]
    text = notes.page(build, file, why, f"runops build --resume {session}", done=done, failure=failure)
    _write(build, file, beside, draft.text, lines, text)
    stays = {"stays": str(build.goal.save)} if file != build.goal.save else {}
    return {**left, "file": str(file), "notes": str(beside), "failing": step or None, **stays}


def _left(done: Sequence[performed.Performed]) -> list[Json]:
    return [
        {
            "step": each.step,
            "action": each.said,
            "inputs": dict(each.inputs),
            "tools": list[Json](each.tools),
            "undone": each.undone,
            "uncertain": each.uncertain,
            "what": each.describe(),
        }
        for each in done
    ]


def _write(build: BuildContext, file: Path, beside: Path, text: str, head: Sequence[str], page: str) -> None:
    session = build.writer.conversation.id
    masked = [build.writer.masker.text(each) for each in head]
    output_files.write(file, output_files.workflow(session, text, masked))
    output_files.write(beside, output_files.notes(session, page))
