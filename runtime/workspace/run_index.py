"""The runs of a workspace: finding one, reading its history, claiming it, and answering a decision after a crash."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import functools
import shlex
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator
from pathlib import Path
from typing import Literal

from nodes.errors import LogError, Paused, UsageError
from nodes.values import Json
from runtime import version
from runtime.log import attempts as log_attempts
from runtime.log import entries as log_entries
from runtime.log import history
from runtime.log.store import integrity, owners
from runtime.log.store import store as log_store
from runtime.log.writer import LogWriter
from runtime.secrets import masking
from runtime.system import tasks
from runtime.workspace import session_index

Verdict = Literal["done", "not-done", "skip"]
RunState = log_store.State


@dataclasses.dataclass(frozen=True, slots=True)
class RunSummary:
    id: str
    workflow: str
    state: RunState
    started: str
    ended: str
    steps: int  # leaf steps that have their value
    seconds: float | None  # how long its processes worked, of an active one up to now
    problem: str | None = None  # the problem of a damaged log, with file and line
    key: str | None = None
    row: str | None = None  # label of the row that gave its inputs
    parent: str | None = None  # the session that started it
    tool: str | None = None  # the call of that session's tool that started it
    trial: bool = False  # true if it was no whole run: a try of one node, of a draft, or of a fix


PAGE = 200  # size of the first page; each further page is twice as large, as a store may read all names for each page

SEARCHED = 500  # runs that passed, among which an earlier run of the same case is searched


@integrity.uncollected()
def list_runs(
    store: log_store.StoreReader, limit: int | None = None, state: RunState | None = None, *, of_tools: bool = False
) -> list[RunSummary]:
    """List the runs in ``state`` (None: in any), or the ``limit`` newest of them, oldest first.

    A damaged one is listed as such; sessions and empty files are left out, and without ``of_tools`` the runs that a session's tools began.
    """
    found: list[RunSummary] = []
    before, size = None, PAGE
    while page := store.summaries(before, size, state):
        for each in page:
            if (summary := summary_of(store, each)) is not None and (of_tools or summary.tool is None):
                found.append(summary)
            if len(found) == limit:
                return found[::-1]
        before, size = page[-1].id, 2 * size
    return found[::-1]


def last_of(store: log_store.StoreReader, file: str) -> RunSummary | None:
    """Return the newest whole run of the workflow file at this path, among the newest runs and sessions."""
    for each in store.summaries(None, PAGE, None):
        head = _whole(each.first)
        if head is not None and head.file == file:
            return summary_of(store, each)
    return None


def last_passed(store: log_store.StoreReader, run: str) -> str | None:
    """Return the newest run before ``run`` of the same file with the same inputs that passed, among the newest ``SEARCHED`` of those that did."""
    return alike(store, run, passed_before(store, run))


def passed_before(store: log_store.StoreReader, run: str) -> Iterator[tuple[str, log_entries.RunHeader]]:
    """Yield the whole runs that passed before ``run``, newest first, among the newest ``SEARCHED``: the id and the header of each."""
    for each in store.summaries(run, SEARCHED, "passed"):
        if (head := _whole(each.first)) is not None:
            yield each.id, head


def alike(store: log_store.StoreReader, run: str, those: Iterable[tuple[str, log_entries.RunHeader]]) -> str | None:
    """Return the first of ``those`` with the file and the inputs of ``run``."""
    wanted = _whole(store.first(run))
    found = (
        id for id, head in those if wanted is not None and (head.file, head.inputs) == (wanted.file, wanted.inputs)
    )
    return next(found, None)


def _whole(first: log_entries.AnyEntry | None) -> log_entries.RunHeader | None:
    """Return the header of a whole run, from the first entry of its log; None for a trial or a session."""
    head = first.run if isinstance(first, log_entries.Scope) else None
    return head if head is not None and head.trial is None else None


def summary_of(store: log_store.StoreReader, read: log_store.Summary) -> RunSummary | None:
    """Summarize a run, from its first and last entry if they suffice; None if it is no run."""
    if read.error is not None:
        return _damaged(read.id, read.error)
    match read.first, read.last:
        case log_entries.Scope(session=log_entries.SessionHeader()), _:
            return None
        case log_entries.Scope(run=log_entries.RunHeader() as head), log_entries.Note(name="ended", data=data) if (
            "since" in data
        ):
            started, ended, steps, state = read.first.at, read.last.at, data["steps"], data["status"]
            seconds = data["worked"] + log_attempts.seconds_between(data["since"], ended)
        case _:
            try:
                past = history.History(store.read(read.id).entries)
            except LogError as error:
                return _damaged(read.id, error)
            except UsageError:
                # `runops prune` deleted it after its name was read.
                return None
            if past.header is None:
                return None
            head, started, ended, steps, state = past.header, past.started, past.last_at, past.steps_done, read.state
            seconds = sum(each.seconds for each in past.processes)
            if state == "running":
                seconds += log_attempts.seconds_between(ended, log_entries.now())
    return RunSummary(
        read.id,
        head.workflow,
        state,
        started,
        ended,
        steps,
        round(seconds, 3),
        key=head.key,
        row=head.row,
        parent=head.parent,
        tool=head.tool,
        trial=head.trial is not None,
    )


def _damaged(run: str, error: LogError) -> RunSummary:
    return RunSummary(run, "?", "damaged", "", "", 0, None, error.message)


def state_of(past: history.History, *, owned: bool) -> RunState:
    """Return the state of the run; ``died``: its log ends without an outcome."""
    if past.ending is not None:
        return past.ending.status
    return "running" if owned else "died"


def find(store: log_store.StoreReader, name: str, *, whole: bool = False) -> str:
    """Find a run's id by ``name``: the id, a unique part of it, or ``last``; with ``whole`` that is no trial. Raises UsageError ``unknown-run``.

    It may be the id of a session: callers that need a run check that themselves.
    """
    wanted = name.upper()
    if store.has(wanted):
        return wanted
    ids = store.ids()
    if name == "last":
        last = next((each for each in reversed(ids) if session_index.is_user_run(store, each, whole=whole)), None)
        if last is not None:
            return last
        ids = []
    found = [run for run in ids if wanted and (run.startswith(wanted) or run.endswith(wanted))]
    if len(found) == 1:
        return found[0]
    if not ids:
        raise UsageError("unknown-run", f"there are no runs in {store.place}", fix="start one: `runops run FILE`")
    which = f"{len(found)} runs are called {name!r}: {', '.join(found[:5])}" if found else f"no run is called {name!r}"
    raise UsageError("unknown-run", which, fix="`runops runs` lists the runs")


@integrity.uncollected()
def load_history(store: log_store.StoreReader, run: str) -> tuple[history.History, log_store.Reading]:
    """Return the current history of a run's log, also of an active run, and the reading that it was made from. Writes nothing.

    Raises UsageError ``unknown-run`` and ``not-a-run``, LogError.
    """
    session_index.refuse_session(store, run)
    reading = store.read(run)
    past = history.History(reading.entries)
    if past.header is None:
        raise UsageError("unknown-run", f"run {run} died before its first entry was written", fix="start it again")
    return past, reading


async def claim(
    store: log_store.Store,
    run: str,
    masker: masking.Masker,
    check: Callable[[history.History], None] = lambda _past: None,
    *,
    take_over: bool = False,
    budget: str | None = None,
    known: tuple[history.History, log_store.Reading] | None = None,
) -> LogWriter:
    """Claim the run: take its lock, build its history, note the owner. Raises RunHeld, LogError, and UsageError ``not-a-run``.

    ``known``: an earlier reading; its history is extended if the log still begins with it. ``take_over``: end an active process that owns
    the run. ``budget``: limit for models from now on. ``check`` is called under the lock, before anything is written, with the current
    history: an earlier reading may be outdated. If it raises, the run is released again.
    """
    await asyncio.to_thread(session_index.refuse_session, store.reader, run)
    conversation, entries = await store.claim(run, take_over=take_over)
    async with log_store.release_on_error(conversation):
        past = await asyncio.to_thread(_folded, entries, known)
        refuse_trial(past, run)
        check(past)
        writer = LogWriter(conversation, past, masker, store.reader)
        taken = conversation.taken_from
        more: dict[str, Json] = {"taken_from": taken.as_evidence()} if taken is not None else {}
        if budget is not None and budget != past.budget:
            more["budget"] = budget
        writer.note("claimed", **owners.me(), epoch=conversation.epoch, version=version.VERSION, **more)
    return writer


def _folded(
    entries: list[log_entries.AnyEntry], known: tuple[history.History, log_store.Reading] | None
) -> history.History:
    if known is None or entries[: len(known[1].entries)] != known[1].entries:
        return history.History(entries)
    past, reading = known
    for entry in entries[len(reading.entries) :]:
        past.add(entry)
    return past


WITHOUT_QUESTION = {
    "held": "an action that was held: it was a proof, and no action of it is open",
    "done-already": "an action that the site already had: it was a proof, and no action of it is open",
}
"""Reasons of pauses that no answer continues, each with that before which the run stopped."""

ABOUT_PAGE = frozenset({"page-differs", "page-lost"})
"""Reasons of pauses that a person answers by choosing the step to continue from."""


def answered_by_step(past: history.History) -> bool:
    """True if the run only needs a step to continue from."""
    return past.question is not None and past.answer is None and past.question.data["reason"] in ABOUT_PAGE


def site_can_tell(past: history.History) -> bool:
    """True if the run waits for the outcome of a side effect, and its node can ask the site."""
    question = past.question
    return question is not None and past.answer is None and "resume_asks" in (question.data.get("evidence") or {})


def refuse_trial(past: history.History, run: str) -> None:
    """Raise UsageError ``trial`` for a run of single nodes, or a copy: neither can be continued."""
    if past.header is not None and (trial := _trial(past.header)) is not None:
        what, instead, command = trial
        raise UsageError("trial", f"run {run} was {what}, and has ended", fix=f"{instead}: `{command}`")


def again(past: history.History, run: str) -> str:
    """Return the command that resumes a run that did not pass; for a trial, the one that repeats it."""
    trial = _trial(past.header) if past.header is not None else None
    return f"runops resume {run}" if trial is None else trial[2]


def _trial(header: log_entries.RunHeader) -> tuple[str, str, str] | None:
    """Return the name of a trial, what to do instead of resuming it, and the command for that."""
    file = shlex.quote(header.file)
    match header.trial:
        case None:
            return None
        case {"copy": copied}:
            return f"a copy of run {copied}", "repair that again", f"runops repair {file} --run {copied}"
        case {"nodes": _}:
            # Its file is the draft of a session, which tries it again.
            return "a trial of nodes of a draft", "look what its build did then", f"runops show {header.parent}"
        case trial:
            return "a trial of one node", "try it again", f"runops try {file} {trial['node']} …"


async def decide(store: log_store.Store, run: str, verdict: Verdict, *, take_over: bool = False) -> LogWriter:
    """Write a person's decision; return the closed writer. Raises UsageError ``nothing-to-decide`` if the run waits for none."""
    check = functools.partial(_check_waits, run=run)
    check((await asyncio.to_thread(load_history, store.reader, run))[0])
    async with spoken(store, run, masking.Masker({}), check, take_over=take_over) as (writer, question):
        evidence = question["evidence"]
        calls: list[str] = evidence["calls"] if "calls" in evidence else [evidence["call"]]
        writer.note("decided", calls=list[Json](calls), verdict=verdict)
        for attempt in list(writer.history.all_attempts()):
            if attempt.call.call in calls:
                _write_verdict(writer, attempt, verdict)
    return writer


@contextlib.asynccontextmanager
async def spoken(
    store: log_store.Store,
    run: str,
    masker: masking.Masker,
    check: Callable[[history.History], None],
    *,
    take_over: bool,
) -> AsyncGenerator[tuple[LogWriter, dict[str, Json]]]:
    """Claim a paused run to write what a person said about its question, and leave it paused."""
    writer = await claim(store, run, masker, check, take_over=take_over)
    try:
        asked = writer.history.question
        assert asked is not None
        yield writer, asked.data
        writer.note("ended", status="paused", exit=4, **writer.history.for_lists())
        await writer.barrier()
    finally:
        await tasks.to_the_end(writer.conversation.aclose())


def _check_waits(past: history.History, run: str) -> None:
    asks = past.question.data["reason"] if past.question is not None and past.answer is None else None
    if asks in WITHOUT_QUESTION:
        said = f"stopped before {WITHOUT_QUESTION[asks]}"
        fix = "have the action done by a run: `runops run FILE`"
    elif asks in ABOUT_PAGE:
        said = "waits for a step from which to continue, not for a decision"
        fix = f"`runops resume {run} --from STEP`, best a step that begins with its own `goto`"
    elif asks == "question":
        said = "waits for an answer, not for a decision"
        fix = f"`runops show {run}` shows its questions; answer with `runops answer {run} NAME=VALUE`"
    elif asks is None or past.status != "paused":
        answered = past.answer is not None and past.status == "paused"
        said = f"waits for no decision: it is {'answered already' if answered else past.status}"
        fix = f"continue with `runops resume {run}`"
    else:
        return
    raise UsageError("nothing-to-decide", f"run {run} {said}", fix=fix)


def _write_verdict(writer: LogWriter, attempt: log_attempts.Attempt, verdict: Verdict) -> None:
    if attempt.result is None and verdict == "done" and attempt.call.node == log_attempts.AGENT:
        # Reaching the goal does not give the value, which can still be requested.
        writer.result(attempt.call, "interrupted")
    elif attempt.result is None:
        statuses: dict[str, log_entries.Status] = {"done": "recovered", "not-done": "interrupted", "skip": "skipped"}
        writer.result(attempt.call, statuses[verdict])
        if verdict != "not-done":
            return
    # An interrupted call says nothing about its action. The note does, so that no person is asked again.
    found = "skipped" if verdict == "skip" else verdict
    writer.note("reconciled", call=attempt.call.call, verdict=found, how=log_entries.PERSON)


def question_of(past: history.History, run: str) -> Paused | None:
    """Return the open question of the run as the error that a command shows; None if there is none."""
    if past.question is None or past.answer is not None:
        return None
    data = past.question.data
    asked = Paused(data["reason"], data["message"], fix=data.get("fix"), phase="after", evidence=data.get("evidence"))
    return asked.replaced(path=data.get("path"))


def workflow_file(past: history.History) -> Path:
    assert past.header is not None
    return Path(past.header.file)
