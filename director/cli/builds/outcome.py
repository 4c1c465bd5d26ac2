"""Outcome of a build, for people and for programs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from director.builds import loop
from director.draft import output_files
from director.proving import notes
from nodes.errors import BudgetReached, Paused, RunOpsError
from nodes.values import Json
from runtime.cli import console
from runtime.display import costs
from runtime.display.text import harmless, one_line
from runtime.report import endings, of_session
from runtime.report.parts import Costs, ErrorReport

if TYPE_CHECKING:
    from runtime.log import session as log_session

READY = 6
"""The exit code if a fix is ready for review."""

MOST_OUTPUT = 400
"""Limit of a workflow's output as shown to a person, in characters."""

MOST_OUTPUTS = 3
"""Limit of the runs of a proof whose output is shown."""

STATES: dict[int, endings.BuildStatus] = {
    4: "paused",
    5: "out-of-budget",
    75: "replaced",
    130: "interrupted",
    143: "interrupted",
}
"""State of a build by its exit code; any other is ``failed``."""


def exit_of(ended: loop.Ended) -> int:
    """Return 0 if the workflow does what was requested, 6 if a fix is ready for review."""
    if ended.done:
        return READY if ended.value.get("fix") else 0
    return 1


def status(ended: loop.Ended | None, code: int) -> endings.BuildStatus:
    """Return the state in a word."""
    if ended is not None:
        return "done" if ended.done else "given-up"
    return STATES.get(code, "failed")


def shown(path: str) -> str:
    """Return a file relative to the current folder."""
    file = Path(path)
    return str(file.relative_to(Path.cwd())) if file.is_relative_to(Path.cwd()) else path


def record(
    session: str, past: log_session.Session, ended: loop.Ended | None, error: RunOpsError | None, code: int
) -> endings.BuildRecord:
    """Return the build for programs."""
    left = ended.value if ended is not None else {}
    return endings.BuildRecord(
        session=session,
        status=status(ended, code),
        exit=code,
        goal=past.header.build.goal if past.header is not None and past.header.build is not None else None,
        file=left.get("file"),
        proved=left.get("proved"),
        output=left.get("output"),
        changed=changed(session, ended) if ended is not None else None,
        finish=left or None,
        error=ErrorReport.raised(error),
        costs=Costs.maybe(past.ledger.totals()),
        runs=of_session.costs_of_runs(past),
        questions=of_session.questions_of(past),
    )


def closing(session: str, past: log_session.Session, ended: loop.Ended) -> str:
    """Describe how it ended by itself, and the next command."""
    left = ended.value
    since = changed(session, ended)
    proved = one_line(str(left.get("proved")))
    lines = [f"done  {'proved' if since is None else 'was proved'}: {proved}" if ended.done else "not done"]
    facts = dict(_facts(left))
    if since is not None:
        facts["now"] = since
    totals = past.ledger.totals()
    if totals is not None:
        facts["cost"] = costs.told(totals)
    file = left.get("file")
    fix: dict[str, Json] | None = left.get("fix")
    if fix:
        facts.pop("file", None)
        facts["patch"] = str(fix["kept"])
        run = past.header.build.repairs.run if past.header and past.header.build and past.header.build.repairs else ""
        facts["apply"] = f"runops repair --run {run} --apply"
    elif file and ended.done:
        facts["run"] = notes.run_command(Path(str(file)), left.get("inputs") or {})
    else:
        facts["again"] = f"runops build --resume {session}"
    wide = max(map(len, facts))
    return "\n".join([*lines, *(f"  {name:<{wide}}  {harmless(text)}" for name, text in facts.items())])


def changed(session: str, ended: loop.Ended) -> str | None:
    """Describe changes of the file of a finished build; None if there are none, or it made a fix of another file."""
    file = ended.value.get("file")
    return (
        output_files.changed(Path(str(file)), session) if ended.done and file and not ended.value.get("fix") else None
    )


def _facts(left: dict[str, Json]) -> Iterator[tuple[str, str]]:
    if left.get("summary"):
        yield "what", one_line(str(left["summary"]))
    yield from _gives(left)
    for name in ("file", "notes"):
        if left.get(name):
            yield name, shown(str(left[name]))
    if left.get("stays"):
        yield "stays", f"{shown(str(left['stays']))}, as it was"
    if left.get("failing"):
        yield "fails", one_line(str(left["failing"]))
    effects: list[dict[str, Json]] = left.get("effects") or []
    for number, each in enumerate(effects):
        yield ("actions" if not number else " " * (number + 1)), one_line(f"{each['node']}: {each['what']}")


def _gives(left: dict[str, Json]) -> Iterator[tuple[str, str]]:
    """Yield the outputs of the proof's runs: a later one may find the work of an earlier one done, and yield less."""
    runs: list[dict[str, Json]] = left.get("runs") or []
    outputs: list[Json] = [each.get("output") for each in runs if each.get("output") is not None]
    if outputs and all(each == outputs[0] for each in outputs):
        yield "gives", _bounded(outputs[0])
        return
    for number, each in enumerate(runs, 1):
        if number <= MOST_OUTPUTS and each.get("output") is not None:
            yield ("gives" if number == 1 else " " * (number + 1)), f"{_bounded(each['output'])} (run {number})"


def _bounded(output: Json) -> str:
    """Return the output of the proof's last run, in a line; the notes have more of it."""
    text = one_line(output if isinstance(output, str) else json.dumps(output, ensure_ascii=False))
    return text if len(text) <= MOST_OUTPUT else f"{text[:MOST_OUTPUT]}… (more of it: the notes, or `--json`)"


def broken_off(session: str, error: RunOpsError) -> str:
    """Describe an error that ended a build, with the command that resumes it."""
    again = f"runops build --resume {session}"
    if isinstance(error, Paused):
        choices = error.evidence.get("choices") or ()
        numbered = [f"  {number} {one_line(str(each))}" for number, each in enumerate(choices, 1)]
        return "\n".join(
            ["a question waits", f"  {harmless(error.message)}", *numbered, f"  answer  {again} --answer TEXT"]
        )
    if isinstance(error, BudgetReached):
        larger = costs.resume_command(session, error.as_json()).rpartition(" --budget ")[2]
        error = error.replaced(fix=None)
        again = f"{again} --budget {larger}"
    return console.failure(error, again)
