"""Builds the report of a run from its history."""

from __future__ import annotations

import dataclasses
import datetime as dt
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from nodes.errors import RunOpsError, UsageError, near
from nodes.values import Json
from runtime.display import costs
from runtime.display.text import cut, one_line, value_text
from runtime.log import attempts as log_attempts
from runtime.log import entries as log_entries
from runtime.log import history
from runtime.log.store import integrity
from runtime.log.store import store as log_store
from runtime.log.writer import Texts
from runtime.report import said
from runtime.report.models import AttemptReport, RunReport, Status, StepReport
from runtime.report.parts import Costs
from runtime.runs import answers
from runtime.workspace import run_index

FOLDED = 5  # most iterations of a loop with which a brief report shows all; of more, it only counts the successful ones
BLOCKS = ("try", "catch", "finally")  # scope names of the blocks of a `handle`
PREVIEW = 60  # characters of a value's preview

LATER = "open here: a later attempt of the step waited for the answer"


@integrity.uncollected()
def run_report(
    past: history.History,
    reading: log_store.Reading,
    store: log_store.StoreReader,
    *,
    at: str | None = None,
    brief: bool = False,
    placed: bool = False,
) -> RunReport:
    """Build the report of a run from ``past``, the fold of ``reading``; ``store`` supplies large values.

    With ``at`` it has only the step at that path and everything below it. A brief report omits values, threads and successful iterations of
    long loops. Brief with ``at``, it has all iterations, and the values of that step. ``placed``: read the workflow, and add the place of
    the failed step. Raises UsageError ``unknown-step``, LogError ``blob-missing``.
    """
    assert past.header is not None
    run, header = reading.id, past.header
    state = run_index.state_of(past, owned=reading.owned)
    steps = _steps(past, state)
    top = [each for each in steps.values() if each.parent is None] if at is None else [_step_at(steps, at, run)]
    content = None if brief and at is None else _Content(reading.entries, past, store)
    ending = past.ending.data if past.ending is not None else {}
    question = run_index.question_of(past, run)
    spent = past.ledger.totals_by_step()
    return RunReport.model_validate(
        {
            "run": run,
            "state": state,
            "started": past.started,
            "last": past.last_at,
            "seconds": round(sum(each.seconds for each in past.processes), 3),
            "processes": [_process(each) for each in past.processes if not each.only_answered],
            "pauses": [_pause(*each) for each in past.pauses if at is None or is_in(each[0].data.get("path"), at)],
            **{name: getattr(header, name) for name in ("workflow", "file", "inputs", "secrets", "trial")},
            **{name: getattr(header, name) for name in ("key", "row", "parent")},
            "texts": {header.file: header.text.sha256, **{path: each.sha256 for path, each in header.callees.items()}},
            "steps": [
                _step_report(each, content if not brief or each is top[0] else None, spent)
                for each in _walk(top, brief=brief and at is None)
            ],
            "open": [attempt.call.path for attempt in past.open_calls()],
            "error": ending.get("error"),
            "path": ending.get("path"),
            "place": _place(header, question.path if question is not None else ending.get("path"), store)
            if placed
            else None,
            "tolerated": ending.get("tolerated") or 0,
            "flags": past.flags,
            **{name: _kept(getattr(past, name), store.files(run).absolute()) for name in ("files", "evidence")},
            "output": _output(past, content) if at is None else None,
            "costs": past.ledger.totals(),
            "budget": past.budget,
            "question": {**question.as_json(), "path": question.path} if question is not None else None,
            "next": _next(past, run, state),
        }
    )


def _kept(told: Any, folder: Path) -> Any:
    """Return what a log tells of files with the paths that they have here: the store may have been copied from another machine."""
    if isinstance(told, list):
        return [_kept(each, folder) for each in told]
    if not isinstance(told, dict):
        return told
    found = {name: _kept(each, folder) for name, each in told.items()}
    if "sha256" in found and (file := Path(found["path"])).parts[-3:-1] == folder.parts[-2:]:
        found["path"] = str(folder / file.name)
    return found


def _output(past: history.History, content: _Content | None) -> Json:
    root = past.scopes.get("")
    if root is None or (entry := root.committed) is None:
        return None
    if content is not None:
        return content.value_of(entry)
    return entry.value if entry.blob is None else f"{entry.blob.preview}…"


def statuses(past: history.History, *, owned: bool) -> dict[str, Status]:
    """Return the status of each step, container and iteration of a loop, by path."""
    return {path: step.status for path, step in _steps(past, run_index.state_of(past, owned=owned)).items()}


def _process(each: log_attempts.Process) -> dict[str, Json]:
    status = each.ending.status if each.ending is not None else None
    return {"started": each.began, "last": each.last, "status": status, "took_over": each.took_over}


def _pause(asked: log_entries.Note, replied: log_entries.Note | None) -> dict[str, Json]:
    said: dict[str, Json] = replied.data if replied is not None else {}
    return {
        "at": asked.at,
        "path": asked.data.get("path"),
        "code": asked.data["reason"],
        "message": asked.data["message"],
        "replied": replied.at if replied is not None else None,
        "decided": said.get("verdict"),
        "answers": said.get("answers"),
    }


def _place(header: log_entries.RunHeader, path: str | None, store: log_store.StoreReader) -> str | None:
    if path is None:
        return None
    from runtime.recovery import workflow_source  # loads all node types

    try:
        return workflow_source.stored(header, store).place(path)
    except RunOpsError:
        return None


def _next(past: history.History, run: str, state: run_index.RunState) -> str | None:
    assert past.header is not None
    question = run_index.question_of(past, run)
    if question is not None and past.header.trial is None:
        asks = question.code not in run_index.WITHOUT_QUESTION
        return answers.how(run, question.code, question.evidence) if asks else None
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


def _steps(past: history.History, state: run_index.RunState) -> dict[str, _Step]:
    """Return all steps by path, each after the step that contains it."""
    steps: dict[str, _Step] = {}
    for path in filter(None, past.order):
        attempts, scope = past.attempts.get(path, []), past.scopes.get(path)
        # `clean/try[2]` is beside `clean/try`, not below it.
        block = scope is not None and scope.node in BLOCKS
        above = [path.rpartition("/")[0]] if block else _above(path)
        parent = next((steps[each] for each in above if each in steps), None)
        status = _status(past, state, path, attempts, scope)
        steps[path] = _Step(path, parent.path if parent is not None else None, status, attempts, scope)
        if parent is not None:
            parent.below.append(steps[path])
    return steps


def _step_at(steps: dict[str, _Step], path: str, run: str) -> _Step:
    if path not in steps:
        close = near(path, steps)
        fix = f"did you mean `{close}`?" if close else f"`runops show {run}` lists its steps"
        raise UsageError("unknown-step", f"run {run} has done no step `{path}`", fix=fix)
    return steps[path]


def _status(
    past: history.History,
    state: run_index.RunState,
    path: str,
    attempts: list[log_attempts.Attempt],
    scope: log_attempts.ScopeState | None,
) -> Status:
    unfinished: Status = "running" if state == "running" else "open"
    if attempts:
        last = attempts[-1]
        is_unknown = last.status == "interrupted" and last.verdict is None
        if last.rolled_back and not is_unknown:
            return "redo"
        if last.result is None:
            return unfinished
        if last.verdict in ("done", "skipped"):
            return "recovered" if last.verdict == "done" else "skipped"
        return "tolerated" if last.verdict is None and last.result.tolerated else last.result.status
    assert scope is not None
    if scope.committed is not None:
        return "ok"
    if scope.failed is not None:
        # The error of a `finally` belongs to the blocks before it.
        return "ok" if scope.node == "finally" else "tolerated" if scope.failed.tolerated else "error"
    if scope.decided is not None and scope.decided.node == "when":
        return "skipped"
    failed_at = str(past.ending.data.get("path") or "") if past.ending is not None and state == "failed" else ""
    return "error" if path in (failed_at, *_above(failed_at)) else unfinished


def is_in(path: str | None, top: str) -> bool:
    """True if ``path`` is that of the step at ``top``, or of one in it."""
    return path is not None and (path == top or path.startswith((f"{top}/", f"{top}[")))


def _above(path: str) -> Iterator[str]:
    """Yield possible paths above ``path``, the nearest first. Keys may contain any text, so callers check which of them exist."""
    for place in range(len(path) - 1, 0, -1):
        if path[place] in "/[":
            yield path[:place]


def _step_report(step: _Step, content: _Content | None, spent: dict[str, dict[str, Json]]) -> StepReport:
    entry: log_entries.Result | log_entries.Scope | None = step.scope.committed if step.scope is not None else None
    last = step.attempts[-1] if step.attempts else None
    page = last.result.page if last is not None and last.result is not None else None
    preview = ""
    if last is not None and last.settled and (entry := last.result) is not None:
        text = entry.blob.preview if entry.blob is not None else "" if entry.value is None else value_text(entry.value)
        preview = cut(one_line(text), PREVIEW)
    seconds = [
        each.result.seconds for each in step.attempts if each.result is not None and each.result.seconds is not None
    ]
    return StepReport(
        path=step.path,
        type=last.call.node if last is not None else step.scope.node if step.scope is not None else "",
        status=step.status,
        seconds=sum(seconds) if seconds else None,
        value=content.value_of(entry) if content is not None and entry is not None else None,
        costs=Costs.maybe(spent.get(step.path)),
        attempts=[_attempt(each, content) for each in step.attempts],
        parent=step.parent,
        page=page.url if page is not None else None,
        http=page.status if page is not None else None,
        preview=preview,
        folded=step.folded,
    )


def _attempt(attempt: log_attempts.Attempt, content: _Content | None) -> AttemptReport:
    call, result = attempt.call, attempt.result
    return AttemptReport.model_validate(
        {
            **{name: getattr(call, name) for name in ("attempt", "action", "effect")},
            **_outcome(result),
            "at": began(call, result),
            "args": content.value_of(call) if content is not None else call.args,
            "flags": result.flags if result is not None and result.flags else [],
            "dismissed": result.dismissed if result is not None and result.dismissed else [],
            "verdict": attempt.verdict,
            "thread": content.thread(call) if content is not None else [],
        }
    )


def began(call: log_entries.Call, result: log_entries.Result | None) -> str:
    """Return when an attempt began. A call that waits for its element is logged only when it acts, or has failed."""
    if result is None or result.seconds is None:
        return call.at
    began = dt.datetime.fromisoformat(result.at) - dt.timedelta(seconds=result.seconds)
    return min(call.at, began.isoformat(timespec="milliseconds").replace("+00:00", "Z"))


def _outcome(result: log_entries.Result | None) -> dict[str, Json]:
    return {name: getattr(result, name, None) for name in ("status", "error", "seconds")}


class _Content(Texts):
    """Values, read from blobs too, and each attempt's thread with a model."""

    def __init__(
        self, entries: Iterable[log_entries.AnyEntry], past: history.History, store: log_store.StoreReader
    ) -> None:
        super().__init__(store)
        self._said: dict[str, list[log_entries.AnyEntry]] = {}
        self._closed_later = {row.line for row in past.ledger.rows if row.status != "open"}
        self._results: dict[str, log_entries.Result] = {}  # the outcomes of calls made by models
        self._continued: dict[str, list[int]] = {}  # the lines at which a later attempt continued a thread
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
        """Return the messages of the attempt that the call began, as fields of lines; the last may be an open request."""
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
