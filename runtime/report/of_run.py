"""Builds the report of a run from its history."""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Iterable, Iterator
from typing import Literal

from nodes.errors import RunOpsError, UsageError
from nodes.values import Json
from runtime.display import costs
from runtime.display.text import cut, one_line, value_text
from runtime.log import attempts as log_attempts
from runtime.log import entries as log_entries
from runtime.log import history
from runtime.log.store import integrity, store
from runtime.log.writer import Texts
from runtime.report import said
from runtime.report.models import AttemptReport, RunReport, Status, StepReport
from runtime.report.parts import Costs, ErrorReport, EvidenceReport, FileReport, FlagReport, QuestionReport
from runtime.runs import answers
from runtime.workspace import run_index

FOLDED = 5
"""Finished iterations of a loop that a brief report shows one by one; more of them are counted."""

BLOCKS = ("try", "catch", "finally")
"""Scope names of the blocks of a `handle`."""

PREVIEW = 60
"""Characters of a value's preview."""

LATER = "open here: a later attempt of the step waited for the answer"


@integrity.uncollected()
def run_report(
    past: history.History,
    reading: store.Reading,
    kept: store.Kept,
    *,
    at: str | None = None,
    brief: bool = False,
    placed: bool = False,
) -> RunReport:
    """Build the report of a run from ``past``, the fold of ``reading``; ``kept`` supplies large values.

    With ``at`` it has only the step at that path and everything below it. A brief report has no values and threads, and omits successful
    iterations of loops. With ``at`` it has the values of that step, and all iterations. ``placed``: read the workflow, and add the place of
    the failed step. Raises UsageError ``unknown-step``, LogError ``blob-missing``.
    """
    assert past.header is not None
    run, header = reading.id, past.header
    state = run_index.state_of(past, held=reading.held)
    steps = _Steps(past, state, run)
    chosen = steps.top if at is None else [steps.at(at)]
    texts = None if brief and at is None else _Texts(reading.entries, past, kept)
    ending = past.ending.data if past.ending is not None else {}
    question = run_index.question_of(past, run)
    spent = past.ledger.totals_by_step()
    return RunReport(
        run=run,
        workflow=header.workflow,
        file=header.file,
        state=state,
        started=past.started,
        last=past.last_at,
        inputs=header.inputs,
        secrets=header.secrets,
        trial=header.trial,
        key=header.key,
        parent=header.parent,
        steps=[
            _step(each, texts if not brief or each is chosen[0] else None, spent)
            for each in _walk(chosen, brief=brief and at is None)
        ],
        open=[attempt.call.path for attempt in past.open_calls()],
        error=ErrorReport.maybe(ending.get("error")),
        path=ending.get("path"),
        place=_place(header, question.path if question is not None else ending.get("path"), kept) if placed else None,
        tolerated=ending.get("tolerated") or 0,
        files=FileReport.each(past.files),
        flags=FlagReport.each(past.flags),
        evidence=EvidenceReport.each(past.evidence),
        costs=Costs.maybe(past.ledger.totals()),
        budget=past.budget,
        question=QuestionReport(**question.as_json(), path=question.path) if question is not None else None,
        next=_next(past, run, state),
    )


def statuses(past: history.History, *, held: bool) -> dict[str, Status]:
    """Return the status of each step, container and iteration of a loop, by path."""
    steps = _Steps(past, run_index.state_of(past, held=held), "")
    return {each.path: each.status for each in _walk(steps.top, brief=False)}


def _place(header: log_entries.RunHeader, path: str | None, kept: store.Kept) -> str | None:
    if path is None:
        return None
    from runtime.recovery import workflow_source  # loads all node types

    try:
        return workflow_source.stored(header, kept).place(path)
    except RunOpsError:
        return None


def _next(past: history.History, run: str, state: run_index.RunState) -> str | None:
    assert past.header is not None
    question = run_index.question_of(past, run)
    if question is not None and past.header.trial is None:
        return None if question.code == run_index.HELD else answers.how(run, question.code, question.evidence)
    if state in ("running", "passed", "damaged"):
        return None
    if state == "out-of-budget" and past.header.trial is None:
        return costs.resume_command(run, (past.ending.data if past.ending is not None else {}).get("error"))
    return run_index.again(past, run)


@dataclasses.dataclass(slots=True)
class _Step:
    path: str
    parent: str | None
    status: Status
    attempts: list[log_attempts.Attempt]
    scope: log_attempts.ScopeState | None
    folded: int = 0
    below: list[_Step] = dataclasses.field(default_factory=list["_Step"])

    @property
    def fine(self) -> bool:
        return self.status in ("ok", "skipped", "recovered") and all(each.fine for each in self.below)


def _walk(steps: list[_Step], *, brief: bool) -> Iterator[_Step]:
    for step in steps:
        below = step.below
        if brief and len(below) > FOLDED and step.scope is not None and step.scope.node == "iterate":
            below = [each for each in below if not each.fine]
            step.folded = len(step.below) - len(below)
        yield step
        yield from _walk(below, brief=brief)


class _Steps:
    def __init__(self, past: history.History, state: run_index.RunState, run: str) -> None:
        self._past, self._state, self._run = past, state, run
        self._known: dict[str, _Step] = {}
        self.top: list[_Step] = []
        for path in past.order:
            if path:
                self._place(path)

    def at(self, path: str) -> _Step:
        if path not in self._known:
            near = difflib.get_close_matches(path, self._known, 1)
            raise UsageError(
                "unknown-step",
                f"run {self._run} has done no step `{path}`",
                fix=f"did you mean `{near[0]}`?" if near else f"`runops show {self._run}` lists its steps",
            )
        return self._known[path]

    def _place(self, path: str) -> None:
        attempts, scope = self._past.attempts.get(path, []), self._past.scopes.get(path)
        # `clean/try[2]` is beside `clean/try`, not below it.
        block = scope is not None and scope.node in BLOCKS
        around = path.rpartition("/")[0] if block else None
        parent = self._known.get(around) if around else self._parent(path)
        status = self._status(path, attempts, scope)
        step = _Step(path, parent.path if parent is not None else None, status, attempts, scope)
        self._known[path] = step
        (self.top if parent is None else parent.below).append(step)

    def _parent(self, path: str) -> _Step | None:
        return next((self._known[above] for above in _above(path) if above in self._known), None)

    def _status(self, path: str, attempts: list[log_attempts.Attempt], scope: log_attempts.ScopeState | None) -> Status:
        if attempts:
            return self._leaf_status(attempts[-1])
        assert scope is not None
        if scope.committed is not None:
            return "ok"
        if scope.failed is not None and scope.node == "finally":
            return "ok"  # its error belongs to the blocks before it
        if scope.failed is not None:
            return "tolerated" if scope.failed.tolerated else "error"
        if scope.decided is not None and scope.decided.node == "when":
            return "skipped"
        ending = self._past.ending
        failed_at = ending.data.get("path") if ending is not None and self._state == "failed" else None
        return "error" if failed_at and path in (failed_at, *_above(str(failed_at))) else self._unfinished

    @property
    def _unfinished(self) -> Literal["running", "open"]:
        return "running" if self._state == "running" else "open"

    def _leaf_status(self, last: log_attempts.Attempt) -> Status:
        if last.rolled_back:
            return "redo"
        if last.result is None:
            return self._unfinished
        if last.verdict == "done":
            return "recovered"
        if last.verdict == "skipped":
            return "skipped"
        return "tolerated" if last.verdict is None and last.result.tolerated else last.result.status


def _above(path: str) -> Iterator[str]:
    """Yield possible paths above ``path``, the nearest first. Keys contain any text, so callers must check which of them exist."""
    for place in range(len(path) - 1, 0, -1):
        if path[place] in "/[":
            yield path[:place]


def _step(step: _Step, texts: _Texts | None, spent: dict[str, dict[str, Json]]) -> StepReport:
    entry: log_entries.Result | log_entries.Scope | None = step.scope.committed if step.scope is not None else None
    last = step.attempts[-1] if step.attempts else None
    preview = ""
    if last is not None and last.settled:
        entry = last.result
        preview = _preview(entry) if entry is not None else ""
    times = [each.result.seconds for each in step.attempts if each.result is not None]
    known = [each for each in times if each is not None]
    return StepReport(
        path=step.path,
        type=last.call.node if last is not None else step.scope.node if step.scope is not None else "",
        status=step.status,
        seconds=sum(known) if known else None,
        value=texts.value_of(entry) if texts is not None and entry is not None else None,
        costs=Costs.maybe(spent.get(step.path)),
        attempts=[_attempt(each, texts) for each in step.attempts],
        parent=step.parent,
        preview=preview,
        folded=step.folded,
    )


def _preview(entry: log_entries.Result) -> str:
    if entry.blob is None and entry.value is None:
        return ""
    return cut(one_line(entry.blob.preview if entry.blob is not None else value_text(entry.value)), PREVIEW)


def _attempt(attempt: log_attempts.Attempt, texts: _Texts | None) -> AttemptReport:
    call, result = attempt.call, attempt.result
    return AttemptReport.model_validate(
        {
            **{name: getattr(call, name) for name in ("attempt", "at", "action", "effect")},
            **_outcome(result),
            "args": texts.value_of(call) if texts is not None else call.args,
            "flags": result.flags if result is not None and result.flags else [],
            "verdict": attempt.verdict,
            "thread": texts.thread(call) if texts is not None else [],
        }
    )


def _outcome(result: log_entries.Result | None) -> dict[str, Json]:
    return {name: getattr(result, name, None) for name in ("status", "error", "seconds")}


class _Texts(Texts):
    """Reads values from their blobs, and the threads with models by the call that opened each."""

    def __init__(self, entries: Iterable[log_entries.AnyEntry], past: history.History, kept: store.Kept) -> None:
        super().__init__(kept)
        self._said: dict[str, list[log_entries.AnyEntry]] = {}
        self._closed_later = {row.line for row in past.ledger.rows if row.status != "open"}
        self._results: dict[str, log_entries.Result] = {}
        """The outcomes of calls made by models."""
        self._continued: dict[str, list[int]] = {}
        """The lines at which a later attempt continued a thread."""
        for entry in entries:
            match entry:
                case log_entries.Result():
                    self._results[entry.call] = entry
                case log_entries.Call(asked=None, again=str(first)):
                    self._continued.setdefault(log_entries.model_thread(first), []).append(entry.seq)
                case (
                    log_entries.User()
                    | log_entries.Reasoning()
                    | log_entries.Assistant()
                    | log_entries.ModelError()
                    | log_entries.ToolResult()
                    | log_entries.Call(asked=str())
                    | log_entries.Note(name="requested" | "submitted")
                ):
                    self._said.setdefault(entry.thread, []).append(entry)
                case _:
                    pass

    def thread(self, call: log_entries.Call) -> list[dict[str, Json]]:
        """Return the messages of the attempt that the call began, as fields of lines; an open request ends them."""
        thread = log_entries.model_thread(call.again or call.call)
        end = next((line for line in self._continued.get(thread, ()) if line > call.seq), None)
        lines: list[dict[str, Json]] = []
        asked: int | None = None
        for entry in self._said.get(thread, ()):
            if entry.seq <= call.seq or (end is not None and entry.seq >= end):
                continue
            lines.append(self._line(entry))
            if isinstance(entry, log_entries.Assistant | log_entries.ModelError):
                asked = None
            elif isinstance(entry, log_entries.Note) and entry.name == "requested":
                asked = entry.seq
        if asked is not None:
            lines.append({"kind": "open", "text": LATER if asked in self._closed_later else said.OPEN})
        return lines

    def _line(self, entry: log_entries.AnyEntry) -> dict[str, Json]:
        match entry:
            case log_entries.Note():
                return {"kind": entry.name, "at": entry.at, **entry.data}
            case log_entries.Call():
                names = ("kind", "at", "path", "asked", "node", "action", "effect")
                fields: dict[str, Json] = {name: getattr(entry, name) for name in names}
                return {**fields, **_outcome(self._results.get(entry.call)), "args": self.value_of(entry)}
            case log_entries.Said():
                text = self.text_of(entry)
            case _:
                text = getattr(entry, "text", "")
        return {**said.fields_of(entry, "thread"), "text": text}
