"""Tells a run to a model: where it stands, its steps with their values in short, its error, its output. Page text is fenced."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from nodes.values import Json
from runtime.context import briefs
from runtime.display.text import cut, duration, joined, one_line
from runtime.log import entries, history
from runtime.observation import page_text
from runtime.report import said, text, timeline
from runtime.report.models import RunReport, StepReport
from runtime.report.parts import ErrorReport
from runtime.secrets import hidden_names

if TYPE_CHECKING:
    from director.subjects.runs import View

RUNS = "@state/run"  # path of the list of the session's runs, and beginning of the paths in a run

STEPS, INPUT, VALUE, ERROR, OUTPUT = 30, 100, 100, 800, 800
"""Number of steps that are told, the newest ones; limits in characters of an input, a value, an error and the output."""


UNSEEN = ("observation", "screenshot", "frames", "messages", "trace")  # of the evidence: files, and texts of pages
FILES = ("screenshot", "observation", "signs")  # evidence that is in files, or about them


@dataclasses.dataclass(frozen=True, slots=True)
class Telling:
    """A run as it is told once: the text, and the line of its log up to which it is told."""

    text: str
    upto: int


def path_of(run: str, *rest: str) -> str:
    return "/".join((RUNS, run, *rest))


def telling(view: View, since: int = 0, names: hidden_names.HiddenNames = hidden_names.DEFAULT) -> Telling:
    """Tell the run, of its steps those that ended after line ``since`` of its log. Values with one of ``names`` are hidden."""
    return Telling("\n".join(_told(view, since, names)), view.past.last_seq)


def _told(view: View, since: int, names: hidden_names.HiddenNames) -> Iterator[str]:
    report = view.report
    yield head(view)
    if report.next is not None:
        yield f"next: {report.next}"
    given = names.json(report.inputs) if not since else {}
    shown = [f"inputs.{name} = {briefs.shown(value)}" for name, value in given.items()]
    steps = [each for each in report.steps if _ended_at(view.past, each) > since]
    if len(steps) > STEPS:
        shown.append(f"… ({len(steps) - STEPS} earlier steps)")
    shown += [step(view, each, names) for each in steps[-STEPS:]]
    error, fix = report.asks or report.error, ""
    if error is not None:
        fix, theirs = fix_of(error.model_dump())
        shown.append(
            f"{error.code}: {cut('  '.join(filter(None, (error.message, evidence(error, names), theirs))), ERROR)}"
        )
    root = view.past.scopes.get("")
    if root is not None and root.committed is not None and (output := in_short(root.committed, "", OUTPUT, names)):
        shown.append(f"output = {output}")
    if shown:
        yield page_text.fenced("\n".join(shown))
    if fix:
        yield f"fix: {fix}"
    yield f"more: `{path_of(report.run)}`"


def head(view: View) -> str:
    """Return where the run stands, on one line without page text."""
    report = view.report
    error = report.asks or report.error
    path = (report.question.path if report.question is not None else None) or report.path
    at = f" at {briefs.ours(path)}" if path else ""
    code = f" ({error.code})" if error is not None else ""
    return f"run {report.run} of {one_line(report.workflow)}: {report.state}{at}{code}"


def listed(view: View, names: hidden_names.HiddenNames) -> str:
    """Return a run on one line of a list: how it ended, when it began and was resumed, how long it took, and its inputs."""
    given = short(names.json(view.report.inputs), 2 * INPUT)
    resumed = "".join(f"  {each}" for each in timeline.resumes(view.report, _moment))
    return f"{head(view)}  {_span(view.report)}{resumed}  inputs {given}"


def whole(view: View, names: hidden_names.HiddenNames) -> Iterator[str]:
    """Yield a run with the times of its steps, and its inputs and its output in full."""
    report = view.report
    yield head(view)
    yield f"file: {Path(report.file).name}  {_span(report)}"
    yield from timeline.lines(_without_hidden(report, names), _moment)
    if report.next is not None:
        yield f"next: {report.next}"
    for name, value in names.json(report.inputs).items():
        yield f"inputs.{name} = {_json(value)}"
    yield from (f"{_at(each)}  {step(view, each, names)}" for each in report.steps)
    error = report.asks or report.error
    if error is not None:
        yield "  ".join(filter(None, (f"{error.code}: {error.message}", evidence(error, names), error.fix)))
    root = view.past.scopes.get("")
    if root is not None and root.committed is not None and (output := view.value(root.committed)) is not None:
        yield f"output = {_json(names.json(output))}"
    yield f"a step: `{path_of(report.run, 'STEP')}`; the file: `…/workflow`; how it differs from the run before: `…/changes`"


def of_step(view: View, path: str, names: hidden_names.HiddenNames) -> Iterator[str]:
    """Yield a step: its attempts with errors, decisions and what its model was shown and did, its value, and the steps in it.

    Raises UsageError ``unknown-step``.
    """
    report = _without_hidden(view.step_report(path), names)
    shown = report.model_copy(update={
        "steps": [_hidden(view, each, names) for each in report.steps],
        "evidence": [each.model_copy(update=dict.fromkeys(UNSEEN)) for each in report.evidence],
    })  # fmt: skip
    yield from text.step(shown, text.Style(moment=_moment))
    if (page := view.page_at(path)) is not None:
        yield "the page, as it was when the step failed:"
        yield page


def _without_hidden(report: RunReport, names: hidden_names.HiddenNames) -> RunReport:
    """Return the report without answers that are hidden by their names."""
    pauses = [each.model_copy(update={"answers": names.json(each.answers)}) for each in report.pauses]
    return report.model_copy(update={"pauses": pauses})


def _span(report: RunReport) -> str:
    return joined(f"started {report.started}", f"last entry {report.last}", timeline.took(report))


def _moment(at: str) -> str:
    return at[:19].replace("T", " ")


def _hidden(view: View, each: StepReport, names: hidden_names.HiddenNames) -> StepReport:
    """Return a step without values that are hidden by their names."""
    name = each.path.rpartition("/")[2]
    done = view.past.done(each.path)
    preview = in_short(done.result, each.path, VALUE, names) if done is not None and done.result is not None else ""
    attempts = [
        one.model_copy(update={
            "args": names.json(one.args),
            "error": _plain(one.error, names),
            "thread": [
                line.model_copy(update={"args": names.json(line.args), "error": _plain(line.error, names)})
                if isinstance(line, said.DoneLine) else line
                for line in one.thread
            ],
        })
        for one in each.attempts
    ]  # fmt: skip
    return each.model_copy(update={"value": names.json(each.value, name), "preview": preview, "attempts": attempts})


def _plain(error: ErrorReport | None, names: hidden_names.HiddenNames) -> ErrorReport | None:
    """Return an error without the places of its files."""
    if error is None or error.evidence is None:
        return error
    known = {name: each for name, each in error.evidence.items() if name not in FILES}
    return error.model_copy(update={"evidence": names.json(known)})


def _at(each: StepReport) -> str:
    """Return the time of day at which a step first began; empty for a container."""
    return each.attempts[0].at[11:19] if each.attempts else ""


def short(value: Json, longest: int) -> str:
    return cut(_json(value), longest)


def _json(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False)


def step(view: View, each: StepReport, names: hidden_names.HiddenNames) -> str:
    """Return a step on one line: path, type, outcome, and its value or error in short."""
    action = next((f" {one.action}" for one in each.attempts[-1:] if one.action), "")
    folded = f" ({each.folded} turns, ok)" if each.folded else ""
    error = each.attempts[-1].error if each.attempts else None
    more = f": {error.code}" if error is not None and each.status in ("error", "tolerated") else ""
    took = f" in {duration(each.seconds)}" if each.seconds is not None and each.seconds >= 1 else ""
    done = view.past.done(each.path)
    value = in_short(done.result, each.path, VALUE, names) if done is not None and done.result is not None else ""
    return (
        f"{one_line(each.path)}  {each.type}{action}  {each.status}{more}{folded}{took}{f' = {value}' if value else ''}"
    )


def in_short(entry: entries.Result | entries.Scope, path: str, longest: int, names: hidden_names.HiddenNames) -> str:
    """Return the value of a step as JSON, cut, without loading a large one; empty if it has none."""
    if names.named(path.rpartition("/")[2]) and (entry.blob is not None or entry.value is not None):
        return hidden_names.MASK
    if entry.blob is not None:
        return cut(one_line(names.text(entry.blob.preview)), longest)
    return "" if entry.value is None else short(names.json(entry.value), longest)


def evidence(error: ErrorReport, names: hidden_names.HiddenNames) -> str:
    """Return the evidence that the error's message does not contain, as JSON; empty if there is none."""
    every = (error.evidence or {}).items()
    known = {name: each for name, each in every if name not in FILES and str(each) not in error.message}
    return _json(names.json(known)) if known else ""


def _ended_at(past: history.History, each: StepReport) -> int:
    """Return the line since which a step counts, or a scope has ended; that of its beginning if it is open."""
    last = past.last(each.path)
    if last is not None:
        return max(last.call.seq, last.since)
    scope = past.scopes.get(each.path)
    over = (scope.committed or scope.failed) if scope is not None else None
    return over.seq if over is not None else past.last_seq


def fix_of(error: dict[str, Json]) -> tuple[str, str]:
    """Return the fix of an error: as our text, or as text that may be a page's, such as a similar name; one is empty."""
    fix = str(error.get("fix") or "")
    return ("", f"fix: {fix}") if fix and error.get("who") == "site" else (fix, "")
