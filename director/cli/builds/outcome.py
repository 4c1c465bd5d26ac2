"""Outcome of a build, for people and for programs."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from director.builds import loop
from director.cli import foreground
from director.draft import output_files
from director.draft.goal import Goal
from director.proving import finish, performed
from director.tools.build_context import BuildContext
from nodes.errors import BudgetReached, Paused, RunOpsError
from nodes.values import Json
from runtime.cli import console
from runtime.display import costs
from runtime.display.text import harmless, one_line
from runtime.log import session as log_session
from runtime.report import endings, of_session
from runtime.report.parts import Costs, ErrorReport

READY = 6  # the exit code if a fix is ready for review
MOST_OUTPUT = 400  # limit of a workflow's output as shown to a person, in characters
MOST_LEFT = 8  # limit of the actions that stay on the site, as shown to a person
MOST_OUTPUTS = 3  # limit of the runs of a proof whose output is shown


@dataclasses.dataclass(frozen=True, slots=True)
class Outcome:
    record: endings.BuildRecord
    text: str  # the end and the next command, for a person
    ended: loop.Ended | None  # None if it did not end by itself

    @property
    def fix(self) -> dict[str, Json] | None:
        return self.ended.value.get("fix") if self.ended is not None and self.ended.done else None


def of_build(
    session: str,
    past: log_session.Session,
    ended: loop.Ended | None,
    error: RunOpsError | None,
    code: int,
    again: str = "",
    goal: Goal | None = None,
    *,
    done: Sequence[performed.Performed] = (),
) -> Outcome:
    """Return the outcome; ``done`` is what a build that was broken off did on the site. After an interruption by a signal ``ended`` and ``error`` are None, and ``code`` is its exit code."""
    left = ended.value if ended is not None else {}
    file, fix = left.get("file"), left.get("fix")
    changed: str | None = None
    status: endings.BuildStatus = foreground.STATES.get(code, "failed")
    if ended is not None:
        status = "done" if ended.done else "given-up"
        code = (READY if fix else 0) if ended.done else 1
        # A fix is for another file, which the build does not write.
        changed = output_files.changed(Path(str(file)), session) if ended.done and file and not fix else None
    record = endings.BuildRecord(
        session=session,
        status=status,
        exit=code,
        goal=goal.goal if goal is not None else None,
        file=file,
        proved=left.get("proved"),
        output=left.get("output"),
        changed=changed,
        finish=left or None,
        error=ErrorReport.raised(error),
        costs=Costs.maybe(past.ledger.totals()),
        runs=of_session.costs_of_runs(past),
        questions=of_session.questions_of(past),
    )
    again = again or f"runops build --resume {session}"
    if error is not None:
        text = broken_off(again, error)
    elif ended is None:
        text = f"interrupted; nothing is lost\n  again  {again}"
    else:
        apply = f"runops repair --run {goal.repairs.run} --apply" if goal is not None and goal.repairs else again
        text = closing(record, left, again, apply)
    stays = rows(list(_stays([each.describe() for each in done if each.stays])))
    return Outcome(record, "\n".join([text, *stays]), ended)


def built(build: BuildContext) -> endings.BuiltReport | None:
    """Return what a session has built, as its log tells; None if nothing was begun."""
    drafts, history = build.state.history.versions("draft"), build.writer.history
    last = finish.last(build)
    if not drafts and last is None:
        return None
    left = last.value if last is not None else {}
    file, done = left.get("file"), bool(left.get("done"))
    changed: str | None = None
    if last is not None and done and file and not left.get("fix"):
        changed = output_files.changed(Path(str(file)), build.writer.conversation.id)
        changed = changed or ("the draft has changed since: it is not proved as it is now" if last.is_older else None)
    return endings.BuiltReport(
        goal=build.goal.goal or None,
        file=file,
        proved=left.get("proved"),
        output=left.get("output"),
        changed=changed,
        finish=left or None,
        questions=of_session.questions_of(history),
    )


def in_a_word(left: dict[str, Json]) -> str:
    """Return what `finish` did, for a model that says nothing beside it."""
    if not left.get("done") or not left.get("file"):
        return str(left.get("summary") or "It is not done.")
    return f"It is proved and saved as it is: {shown(str(left['file']))}"


def shown(path: str) -> str:
    file = Path(path)
    return str(file.relative_to(Path.cwd())) if file.is_relative_to(Path.cwd()) else path


def rows(facts: list[tuple[str, str]]) -> list[str]:
    wide = max((len(name) for name, _ in facts), default=0)
    return [f"  {name:<{wide}}  {harmless(text)}" for name, text in facts]


def closing(record: endings.BuildRecord, left: dict[str, Json], again: str, apply: str) -> str:
    done = record.status == "done"
    head = f"done  {'proved' if record.changed is None else 'was proved'}: {one_line(str(record.proved))}"
    facts = list(_facts(left))
    if record.changed is not None:
        facts.append(("now", record.changed))
    if record.costs is not None:
        facts.append(("cost", costs.render(record.costs.model_dump())))
    if fix := left.get("fix"):
        facts += [("patch", str(fix["kept"])), ("apply", apply)]
    elif done and left.get("command"):
        facts.append(("run", str(left["command"])))
    else:
        facts.append(("again", again))
    return "\n".join([head if done else "not done", *rows(facts)])


def _facts(left: dict[str, Json]) -> Iterator[tuple[str, str]]:
    if left.get("without_reset"):
        yield "but", one_line(str(left["without_reset"]))
    if left.get("summary"):
        yield "what", one_line(str(left["summary"]))
    yield from _gives(left)
    for name in ("notes",) if left.get("fix") else ("file", "notes"):
        if left.get(name):
            yield name, shown(str(left[name]))
    if left.get("stays"):
        yield "stays", f"{shown(str(left['stays']))}, as it was"
    if left.get("failing"):
        yield "fails", one_line(str(left["failing"]))
    effects: list[dict[str, Json]] = left.get("effects") or []
    for number, each in enumerate(effects):
        yield ("" if number else "actions"), one_line(f"{each['node']}: {each['what']}")
    done: list[dict[str, Json]] = left.get("left") or []
    yield from _stays([str(each["what"]) for each in done if each["undone"] < len(each["tools"])])


def _stays(actions: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield the actions that stay on the site."""
    for number, each in enumerate(actions[:MOST_LEFT]):
        yield ("" if number else "left"), one_line(each)
    if len(actions) > MOST_LEFT:
        yield "", f"{len(actions) - MOST_LEFT} more: the notes"


def _gives(left: dict[str, Json]) -> Iterator[tuple[str, str]]:
    """Yield the outputs of the proof's runs. They may differ: a later run may find the work done by an earlier one."""
    runs: list[dict[str, Json]] = left.get("runs") or []
    outputs = [(number, each["output"]) for number, each in enumerate(runs, 1) if each.get("output") is not None]
    if outputs and all(each == outputs[0][1] for _number, each in outputs):
        yield "gives", _bounded(outputs[0][1])
        return
    name = "gives"
    for number, output in outputs:
        if number <= MOST_OUTPUTS:
            yield name, f"{_bounded(output)} (run {number})"
            name = ""


def _bounded(output: Json) -> str:
    text = one_line(output if isinstance(output, str) else json.dumps(output, ensure_ascii=False))
    return text if len(text) <= MOST_OUTPUT else f"{text[:MOST_OUTPUT]}… (more of it: the notes, or `--json`)"


def broken_off(again: str, error: RunOpsError) -> str:
    if isinstance(error, Paused):
        choices = error.evidence.get("choices") or ()
        numbered = [f"  {number} {one_line(str(each))}" for number, each in enumerate(choices, 1)]
        return "\n".join(
            ["a question waits", f"  {harmless(error.message)}", *numbered, f"  answer  {again} --answer TEXT"]
        )
    if isinstance(error, BudgetReached):
        return console.failure(error.replaced(fix=None), foreground.with_larger_budget(again, error))
    return console.failure(error, again)
