"""``runops show``: what a run did, from its log; of a living run what it did so far. Of a session what was said."""

from __future__ import annotations

import dataclasses
import difflib
import shlex
import sys
from collections.abc import Iterator
from typing import Annotated

import typer

from nodes.errors import UsageError
from nodes.values import Json
from runtime import answers, conversations, evidence, history, host, journal, log, records, runs, store
from runtime.cli import console, show_session, threads, windows
from runtime.cli.runs import moment
from runtime.display import costs
from runtime.display.text import count, cut, duration, fit, harmless, one_line, value_text
from runtime.display.windows import lines as in_lines

FOLDED = 5
"""Finished turns of a loop that are shown one by one; more of them are counted."""

BLOCKS = ("try", "catch", "finally")
"""The blocks of a `handle`, as scopes are called."""

PREVIEW = 60
"""Characters of a value beside its step."""


def show(
    conversation: Annotated[
        str,
        typer.Argument(
            metavar="RUN|SESSION",
            help="A run or a session: its id, a beginning or an end of it that no other has; `last` is the last run.",
            show_default=False,
        ),
    ],
    at: Annotated[
        str | None,
        typer.Option(
            "--at",
            metavar="PATH",
            help="Only the step at this path and what is below it, in full; of a session the call at this path, or the line of this number.",
            show_default=False,
        ),
    ] = None,
    as_nodes: Annotated[
        str | None,
        typer.Option(
            "--as-nodes",
            metavar="PATH",
            help="Print the workflow of the `agent` at this path with what it did in its place, as nodes that ask no model.",
            show_default=False,
        ),
    ] = None,
    window: Annotated[
        bool,
        typer.Option(
            "--window",
            help="What a model would be sent now: sizes, shares, what is left out, and why. Of a run: in a chat about it.",
        ),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as one JSON object.")] = False,
) -> None:
    """Show what a run did, step by step: outcomes, values, errors with what was seen, and what is open. Of a session: what was said, what it keeps, what it cost.

    It only reads, so it works on a run or a session that is going on, and on one that died.
    """
    here = host.load()
    kept = here.kept
    run_id = runs.find(kept, conversation)
    if window:
        report = windows.report(here, run_id)
        console.result(
            console.as_json(conversation=run_id, **report.as_json()) if as_json else "\n".join(in_lines(report))
        )
    elif conversations.kind(kept, run_id) == "session":
        _show_session(kept, run_id, at, as_nodes, as_json=as_json)
    else:
        _show_run(kept, run_id, at, as_nodes, as_json=as_json)


def _show_session(kept: store.Kept, session: str, at: str | None, as_nodes: str | None, *, as_json: bool) -> None:
    if as_nodes is not None:
        raise UsageError("usage", f"{session} is a session, and `--as-nodes` is for runs", mend="leave it out")
    reading = kept.read(session)
    view = show_session.View(conversations.fold(reading), reading, kept)
    if as_json:
        console.result(console.as_json(**view.as_json(at)))
    else:
        console.result("\n".join(view.text_at(at) if at is not None else view.text(console.columns())))


def _show_run(kept: store.Kept, run: str, at: str | None, as_nodes: str | None, *, as_json: bool) -> None:
    past, reading = runs.load_history(kept, run)
    if as_nodes is not None:
        from runtime.agents import printing  # most looks ask for none

        console.result(printing.as_nodes(run, past, kept, as_nodes).removesuffix("\n"))
        return
    said = threads.Threads(reading.entries, past, kept)
    view = View(run, past, kept, runs.state_of(past, held=reading.held), said)
    wanted = view.at(at) if at is not None else None
    if as_json:
        console.result(console.as_json(**view.as_json([wanted] if wanted is not None else view.top)))
    else:
        console.result(
            "\n".join(view.text_at(wanted, console.columns()) if wanted is not None else view.text(console.columns()))
        )


@dataclasses.dataclass(slots=True)
class Step:
    """A step, a container or a turn of a loop, as it stands in the log."""

    path: str
    label: str
    """What it is called below its parent: its id, and for a turn of a loop the turn."""
    status: str
    """``ok``, ``error``, ``tolerated``, ``recovered``, ``skipped``, ``interrupted``, ``redo`` (behind the restored state), ``running``, ``open``."""
    attempts: list[records.Attempt]
    scope: records.ScopeState | None
    seconds: float | None = None
    below: list[Step] = dataclasses.field(default_factory=list["Step"])

    def walk(self) -> Iterator[Step]:
        """The step and everything below it, in order."""
        yield self
        for child in self.below:
            yield from child.walk()

    @property
    def fine(self) -> bool:
        """Whether nothing in here asks for a look."""
        return all(step.status in ("ok", "skipped", "recovered") for step in self.walk())


class View:
    """A run, arranged for people and programs."""

    def __init__(
        self, run: str, past: history.History, kept: store.Kept, state: runs.RunState, said: threads.Threads
    ) -> None:
        """``kept`` is asked for large values, ``said`` for what models were asked."""
        self.said = said
        assert past.header is not None
        self.run = run
        self.past = past
        self.header: log.RunHeader = past.header
        self.kept = kept
        self.state = state
        self.spent = past.ledger.totals_by_step()
        self.known: dict[str, Step] = {}
        self.top: list[Step] = []
        for path in past.order:
            if path:
                self._place(path)

    def _place(self, path: str) -> None:
        attempts, scope = self.past.attempts.get(path, []), self.past.scopes.get(path)
        # `clean/try[2]` stands beside `clean/try`, not below it.
        block = scope is not None and scope.node in BLOCKS
        around = path.rpartition("/")[0] if block else None
        parent = self.known.get(around) if around else self._parent(path)
        label = path[len(parent.path) :].lstrip("/") if parent is not None else path
        step = Step(path, label, self._status(path, attempts, scope), attempts, scope, seconds=_seconds(attempts))
        self.known[path] = step
        (self.top if parent is None else parent.below).append(step)

    def _parent(self, path: str) -> Step | None:
        return next((self.known[above] for above in _above(path) if above in self.known), None)

    def _status(self, path: str, attempts: list[records.Attempt], scope: records.ScopeState | None) -> str:
        if attempts:
            return self._leaf_status(attempts[-1])
        assert scope is not None
        if scope.committed is not None:
            return "ok"
        if scope.failed is not None and scope.node == "finally":
            return "ok"  # the error that is kept with it is that of the blocks before it
        if scope.failed is not None:
            return "tolerated" if scope.failed.tolerated else "error"
        if scope.decided is not None and scope.decided.node == "when":
            return "skipped"
        failed_at = (
            self.past.ending.data.get("path") if self.past.ending is not None and self.state == "failed" else None
        )
        return "error" if failed_at and path in (failed_at, *_above(str(failed_at))) else self._unfinished

    @property
    def _unfinished(self) -> str:
        return "running" if self.state == "running" else "open"

    def _leaf_status(self, last: records.Attempt) -> str:
        if last.behind:
            return "redo"
        if last.result is None:
            return self._unfinished
        if last.verdict is not None:
            return {"done": "recovered", "skipped": "skipped"}.get(last.verdict, last.result.status)
        return "tolerated" if last.result.tolerated else last.result.status

    def at(self, path: str) -> Step:
        """The step at ``path``. Raises UsageError ``unknown-step``."""
        if path not in self.known:
            near = difflib.get_close_matches(path, self.known, 1)
            raise UsageError(
                "unknown-step",
                f"run {self.run} has done no step `{path}`",
                mend=f"did you mean `{near[0]}`?" if near else f"`runops show {self.run}` lists its steps",
            )
        return self.known[path]

    def value(self, step: Step) -> Json:
        """The step's value; None where it has none."""
        entry: log.Result | log.Scope | None = step.scope.committed if step.scope is not None else None
        if step.attempts and step.attempts[-1].settled:
            entry = step.attempts[-1].result
        return journal.value_of(entry, self.kept) if entry is not None else None

    def preview(self, step: Step) -> str:
        """The beginning of the step's value, on one line."""
        entry = step.attempts[-1].result if step.attempts and step.attempts[-1].settled else None
        if entry is None or (entry.value is None and entry.blob is None):
            return ""
        text = entry.blob.preview if entry.blob is not None else value_text(entry.value)
        return cut(one_line(text), PREVIEW)

    # For programs.

    def as_json(self, top: list[Step]) -> dict[str, Json]:
        """The run, and ``top`` with what is below them."""
        ending = self.past.ending.data if self.past.ending is not None else {}
        question = runs.question_of(self.past, self.run)
        return {
            "run": self.run,
            "workflow": self.header.workflow,
            "file": self.header.file,
            "state": self.state,
            "started": self.past.started,
            "last": self.past.last_at,
            "inputs": self.header.inputs,
            "secrets": list[Json](self.header.secrets),
            "trial": self.header.trial,
            "key": self.header.key,
            "parent": self.header.parent,
            "steps": [self.step_json(step) for each in top for step in each.walk()],
            "open": [attempt.call.path for attempt in self.past.open_calls()],
            "error": ending.get("error"),
            "path": ending.get("path"),
            "tolerated": ending.get("tolerated") or 0,
            "files": list[Json](self.past.files),
            "flags": list[Json](self.past.flags),
            "evidence": list[Json](self.past.evidence),
            "costs": self.past.ledger.totals(),
            "budget": self.past.budget,
            "question": None if question is None else {**question.as_json(), "path": question.path},
        }

    def step_json(self, step: Step) -> dict[str, Json]:
        """One step."""
        kind = step.scope.node if step.scope is not None and not step.attempts else step.attempts[-1].call.node
        return {
            "path": step.path,
            "type": kind,
            "status": step.status,
            "seconds": step.seconds,
            "value": self.value(step),
            "costs": self.spent.get(step.path),
            "attempts": [self._attempt_json(attempt) for attempt in step.attempts],
        }

    def _attempt_json(self, attempt: records.Attempt) -> dict[str, Json]:
        call, outcome = attempt.call, attempt.result
        return {
            "attempt": call.attempt,
            "at": call.at,
            "action": call.action,
            "effect": call.effect,
            "args": journal.value_of(call, self.kept),
            "status": outcome.status if outcome is not None else None,
            "seconds": outcome.seconds if outcome is not None else None,
            "error": outcome.error if outcome is not None else None,
            "flags": list[Json]((outcome.flags if outcome is not None else None) or ()),
            "verdict": attempt.verdict,
            "thread": self.said.as_json(call),
        }

    # For people.

    def text(self, width: int | None) -> list[str]:
        """The whole run; lines are cut to ``width``, if there is one."""
        lines = [*self._head(), *(line for step in self.top for line in self._tree(step, 0, width))]
        return lines + self._tail()

    def text_at(self, step: Step, width: int | None) -> list[str]:
        """One step in full: its attempts, its value, what is below it."""
        lines = [f"{console.paint(one_line(step.path), console.BOLD, stream=sys.stdout)}  {step.status}"]
        if (spent := self.spent.get(step.path)) is not None:
            lines.append(f"  cost  {costs.told(spent)}")
        for attempt in step.attempts:
            lines += self._attempt(attempt)
        if not step.attempts and (error := self._error_in(step)):
            lines += [f"    {line}" for line in _error_lines(error)]
        lines += [f"  {line}" for line in self._looked(step)]
        value = self.value(step)
        if value is not None:
            lines += ["  value", *(f"    {line}" for line in harmless(console.result_text(value)).split("\n"))]
        return lines + [line for child in step.below for line in self._tree(child, 1, width, whole=True)]

    def _looked(self, step: Step) -> list[str]:
        """What the page showed when the step failed, and where it is kept."""
        found = evidence.of(self.past, step.path)
        if found is None:
            return []
        kept = [str(found[name]["path"]) for name in ("observation", "screenshot") if found.get(name)]
        where = one_line(
            " ".join(filter(None, [f'"{found["title"]}"' if found.get("title") else "", str(found["url"])]))
        )
        dialog = f"  with the dialog {one_line(str(found['dialog']))!r}" if found.get("dialog") else ""
        return [f"page  {where}{dialog}", *(f"look  {one_line(each)}" for each in kept)]

    def _head(self) -> list[str]:
        started = moment(self.past.started)
        when = started.astimezone().strftime("%Y-%m-%d %H:%M:%S") if started else ""
        head = f"{console.paint(one_line(self.header.workflow), console.BOLD, stream=sys.stdout)}  {self.run}  {self.state}  {when}"
        return [
            head,
            *console.facts(
                {
                    "file": self.header.file,
                    "inputs": self.header.inputs,
                    "trial": self.header.trial,
                    "key": self.header.key,
                    "parent": self.header.parent,
                    "budget": self.past.budget,
                }
            ),
        ]

    def _tree(self, step: Step, depth: int, width: int | None, *, whole: bool = False) -> Iterator[str]:
        yield self._line(step, depth, width)
        if step.status not in ("ok", "recovered", "skipped") and (error := self._error_in(step)):
            yield from (f"{'  ' * depth}    {line}" for line in _error_lines(error))
        yield from (f"{'  ' * depth}    {line}" for line in _flag_lines(step.attempts[-1:]))
        below, folded = step.below, 0
        if not whole and len(below) > FOLDED and step.scope is not None and step.scope.node == "iterate":
            kept_turns = [child for child in below if not child.fine]
            folded, below = len(below) - len(kept_turns), kept_turns
        if folded:
            yield f"{'  ' * (depth + 1)}ok  {count(folded, 'turn')}, shown one by one with --at {shlex.quote(step.path)}"
        for child in below:
            yield from self._tree(child, depth + 1, width, whole=whole)

    def _error_in(self, step: Step) -> dict[str, Json] | None:
        """The step's last error; of a container, the one that ended the run if it came up in its own condition, list or decision."""
        if step.attempts:
            return _error_of(step)
        ending = self.past.ending
        return ending.data.get("error") if ending is not None and ending.data.get("path") == step.path else None

    def _line(self, step: Step, depth: int, width: int | None) -> str:
        parts = [f"{'  ' * depth}{step.status}", step.label]
        if step.attempts:
            call = step.attempts[-1].call
            parts.append(cut(threads.described(call), PREVIEW))
            parts.append(count(len(step.attempts), "attempt") if len(step.attempts) > 1 else "")
            seen = self.preview(step)
            parts.append(f"= {seen}" if seen else "")
        spent = self.spent.get(step.path)
        took = "  ".join(
            filter(
                None,
                [
                    costs.brief(spent) if spent is not None else "",
                    duration(step.seconds) if step.seconds is not None else "",
                ],
            )
        )
        left = "  ".join(part if place == 0 else one_line(part) for place, part in enumerate(parts) if part)
        return fit(left, took, width) if width else "  ".join(filter(None, [left, took]))

    def _attempt(self, attempt: records.Attempt) -> Iterator[str]:
        call, outcome = attempt.call, attempt.result
        status = outcome.status if outcome is not None else f"{self._unfinished}: no outcome recorded"
        took = duration(outcome.seconds) if outcome is not None and outcome.seconds is not None else ""
        judged = f"judged: {attempt.verdict}" if attempt.verdict else ""
        yield "  ".join(filter(None, [f"  attempt {call.attempt}", status, judged, took, call.at]))
        yield f"    {one_line(threads.described(call))}  ({call.effect})"
        if outcome is not None and outcome.error is not None:
            yield from (f"    {line}" for line in _error_lines(outcome.error))
        yield from (f"    {line}" for line in _flag_lines([attempt], whole=True))
        yield from (f"    {line}" for line in self.said.lines(call))

    def _tail(self) -> list[str]:
        files = [f"  file  {one_line(str(each['path']))}  {count(each['size'], 'byte')}" for each in self.past.files]
        spent = self.past.ledger.totals()
        cost = [f"  cost  {costs.told(spent)}"] if spent is not None else []
        return [*files, *cost, *self._outcome()]

    def _outcome(self) -> list[str]:
        question = runs.question_of(self.past, self.run)
        if question is not None and self.header.trial is None:
            held = question.code == runs.HELD
            how = answers.how(self.run, question.code, question.evidence)
            return [
                f"{console.paint('PAUSED', console.BOLD, stream=sys.stdout)} {one_line(question.path or '')}   {harmless(question.message)}",
                "  it was held there: no answer goes on with this run" if held else f"  answer  {how}",
            ]
        if self.state in ("running", "passed", "damaged"):
            return [self.state]
        if self.state == "out-of-budget" and self.header.trial is None:
            error: dict[str, Json] = (self.past.ending.data if self.past.ending is not None else {}).get("error") or {}
            return [
                f"{console.paint('OUT OF BUDGET', console.BOLD, stream=sys.stdout)} {harmless(str(error.get('message', '')))}",
                f"  again  {costs.resume_command(self.run, error)}",
            ]
        ending = self.past.ending.data if self.past.ending is not None else {}
        failed: dict[str, Json] = ending.get("error") or {}
        # What failed in no step stands at none above.
        why = "" if ending.get("path") else str(failed.get("message", ""))
        return [f"{self.state}  {harmless(why)}".rstrip(), f"  again  {runs.again(self.past, self.run)}"]


def _above(path: str) -> Iterator[str]:
    """What may be a path above ``path``, the nearest first. Keys hold any text, so whoever asks must know which of them exist."""
    for place in range(len(path) - 1, 0, -1):
        if path[place] in "/[":
            yield path[:place]


def _seconds(attempts: list[records.Attempt]) -> float | None:
    times = [
        attempt.result.seconds
        for attempt in attempts
        if attempt.result is not None and attempt.result.seconds is not None
    ]
    return sum(times) if times else None


def _error_of(step: Step) -> dict[str, Json] | None:
    last = step.attempts[-1].result
    return last.error if last is not None else None


def _flag_lines(attempts: list[records.Attempt], *, whole: bool = False) -> Iterator[str]:
    """What a person should look at, though the step went on; ``whole``: with what was seen."""
    for attempt in attempts:
        for flag in (attempt.result.flags if attempt.result is not None else None) or ():
            yield f"flag  {flag['code']}: {harmless(str(flag['message']))}"
            yield from (f"  {line}" for line in (console.facts(flag["evidence"]) if whole else ()))


def _error_lines(error: dict[str, Json]) -> list[str]:
    evidence = error.get("evidence")
    lines = [f"{error.get('code')}: {harmless(str(error.get('message', '')))}"]
    return lines + console.facts(evidence if isinstance(evidence, dict) else {})
