"""A run as the subject of a session, rendered from its log, which is only read."""

from __future__ import annotations

import contextlib
import functools
import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

from typing_extensions import override

from director.draft import layout
from director.session import state_paths
from director.session.subject import Subject
from director.subjects import run_report
from director.subjects.files import described, ended
from nodes import budgets as node_budgets
from nodes.errors import UsageError
from nodes.values import Json
from runtime.context import briefs
from runtime.display import costs
from runtime.display.text import value_text
from runtime.engine import evidence
from runtime.language import workflow
from runtime.log import attempts as log_attempts
from runtime.log import entries, history
from runtime.log.store import store as log_store
from runtime.log.writer import Texts
from runtime.models import budgets
from runtime.observation import page_text
from runtime.recovery import workflow_source
from runtime.report import of_run
from runtime.report.models import RunReport
from runtime.secrets import masking
from runtime.system import regular_files

EVIDENCE = 1_500
STANDS = {
    "passed": "has passed",
    "failed": "has failed",
    "paused": "waits for a person",
    "running": "is running",
    "interrupted": "was interrupted",
    "out-of-budget": "has used up its budget",
    "died": "was broken off",
    "damaged": "is known in part",
}
"""What a directive says of the states of a run."""

_TURN = re.compile(r"\[[^\]]*\]")


class View:
    def __init__(self, store: log_store.StoreReader, reading: log_store.Reading) -> None:
        self._store, self.reading = store, reading
        self.past = history.History(reading.entries)
        if self.past.header is None:
            raise UsageError(
                "unknown-run", f"{reading.id} is no run, or died before it began", fix="`runops runs` lists the runs"
            )
        self.header: entries.RunHeader = self.past.header
        self._nodes: dict[str, str | None] = {}

    @functools.cached_property
    def report(self) -> RunReport:
        return of_run.run_report(self.past, self.reading, self._store, brief=True, placed=True)

    @functools.cached_property
    def loaded(self) -> workflow.Loaded:
        return workflow_source.stored(self.header, self._store)

    @functools.cached_property
    def layout(self) -> layout.Layout:
        return layout.Layout(self.loaded.document)

    @functools.cached_property
    def outcomes(self) -> dict[str, str]:
        found: dict[str, str] = {}
        for path, status in of_run.statuses(self.past, owned=self.reading.owned).items():
            attempts, scope = self.past.attempts.get(path), self.past.scopes.get(path)
            if attempts and attempts[-1].call.thread == entries.RUN_THREAD:
                result = attempts[-1].result
                error = result.error if result is not None and status in ("error", "tolerated") else None
                found[path] = f"{status}: {error.get('code')}" if error else status
            elif not attempts and scope is not None and scope.node not in log_attempts.ENDED_BY_ERROR:
                found[path] = status
        return found

    @functools.cached_property
    def by_node(self) -> dict[str, Counter[str]]:
        went: dict[str, Counter[str]] = {}
        for path, outcome in self.outcomes.items():
            if (node := self.node(path)) is not None:
                went.setdefault(node, Counter())[outcome] += 1
        return went

    def value(self, entry: entries.Result | entries.Scope) -> Json:
        return _of_blob(self._store, entry.blob.sha256) if entry.blob is not None else entry.value

    def variables(self) -> dict[str, object]:
        inputs = {f"inputs.{name}": value for name, value in self.header.inputs.items()}
        secrets = {f"secrets.{name}": masking.MASK for name in self.header.secrets}
        kept: dict[str, Json] = {}
        for attempt in self.past.all_attempts():
            if attempt.call.node == "context" and attempt.settled and not attempt.rolled_back and attempt.result:
                found, value = self.loaded.find(attempt.call.path), self.value(attempt.result)
                if found is not None and not found.user and isinstance(value, dict):
                    kept |= {f"vars.{name}": each for name, each in value.items()}
        values: dict[str, Json] = {}
        for path in self.past.order:
            if path and "[" not in path and (node := self.node(path)) is not None:
                done, scope = self.past.done(path), self.past.scopes.get(path)
                entry = done.result if done is not None else scope.committed if scope is not None else None
                if entry is not None and (entry.value is not None or entry.blob is not None):
                    values[node] = self.value(entry)
        return {**inputs, **secrets, **kept, **values}

    def step_report(self, path: str) -> RunReport:
        """Return the report of a step with its value, its attempts, and what its model was shown and did. Raises UsageError ``unknown-step``."""
        return of_run.run_report(self.past, self.reading, self._store, at=path, brief=True)

    def page_at(self, path: str) -> str | None:
        """Return the text of the page at which a step failed; None if it was not kept."""
        kept = evidence.of(self.past, path)
        named: dict[str, Json] = (kept or {}).get("observation") or {}
        with contextlib.suppress(OSError, UnicodeError, KeyError):
            return regular_files.read_text(Path(named["path"]))
        return None

    def node(self, path: str) -> str | None:
        """Return the id of the node at a path; None for a node of a used file."""
        path = _TURN.sub("", path)
        if path not in self._nodes:
            found = self.loaded.find(path)
            self._nodes[path] = found.node.id if found is not None and not found.user else None
        return self._nodes[path]


def view(store: log_store.StoreReader, run: str) -> View:
    """Return a view of a run's log as it is now. Raises UsageError ``unknown-run``, LogError."""
    return View(store, store.read(run))


class RunSubject(Subject):
    """A run, rendered from its current log; a log that no longer changes is read once."""

    def __init__(self, store: log_store.StoreReader, run: str) -> None:
        self.run = run
        self._store = store
        self._stamp: list[tuple[int, int]] = []
        self._view = self._look()

    @property
    def now(self) -> View:
        """Return a view of the current log, or the last one if the log was pruned meanwhile."""
        if self._view.reading.owned or not self._stamp or self._stamp != self._stamped():
            with contextlib.suppress(UsageError):
                self._view = self._look()
        return self._view

    def _look(self) -> View:
        self._stamp = self._stamped()
        return View(self._store, self._store.read(self.run))

    def _stamped(self) -> list[tuple[int, int]]:
        """Return modification time and size of the log's files; empty if there are none."""
        try:
            found = [each.stat() for each in self._store.files_with(self.run, ())]
        except FileNotFoundError:
            return []
        return [(each.st_mtime_ns, each.st_size) for each in found]

    @property
    @override
    def title(self) -> str:
        report = self.now.report
        return f"run {self.run} of {report.workflow}: {report.state}"

    @override
    def summary(self) -> str:
        return "\n".join([self.title, *_summary(self.now)])

    @override
    def facts(self) -> Sequence[str]:
        return [*_facts(self.now)]

    @override
    def outline(self, configuration: int = 0) -> str:
        now = self.now

        def went(placed: layout.Placed) -> str:
            outcomes = now.by_node.get(placed.id, Counter())
            if outcomes.total() <= 1:
                return f"- {next(iter(outcomes), 'not reached')}"
            return f"- {', '.join(f'{each} ×{number}' for each, number in outcomes.items())}"

        return now.layout.outline(went, configuration)

    @override
    def nodes(self, which: str, kind: str | None) -> str:
        now = self.now
        found = now.loaded.find(which) if "/" in which else None
        if found is not None:
            # `which` is a step path, and may lead into a used file.
            its = now.layout if not found.user else layout.Layout(found.file.document)
            return its.render(its.selected(found.node.id, kind))
        steps = [each.call.path for each in now.past.all_attempts() if each.call.thread == entries.RUN_THREAD]
        recent = dict.fromkeys(node for path in reversed(steps) if (node := now.node(path)) is not None)
        return now.layout.read(which, kind, list(recent)[: layout.RECENT])

    @override
    def variables(self) -> dict[str, object]:
        return self.now.variables()

    @override
    def description(self) -> str:
        return self.now.loaded.workflow.description or ""

    @override
    def browser_state(self) -> str:
        now = self.now
        tabs, current, seen = {"main": ""}, "main", False
        for attempt in now.past.all_attempts():
            call, result = attempt.call, attempt.result
            if call.node != "browser_action" or result is None or call.thread.startswith(entries.CONFIRM):
                continue
            seen = True
            given: dict[str, Json] = call.args or {}
            named = given.get("tab")
            tab = named if isinstance(named, str) else current
            if call.action == "close_tab" and result.status == "ok":
                tabs.pop(tab, None)
                tab = current = "main" if tab == current else current
            elif call.action in ("open_tab", "switch_tab") and result.status == "ok":
                current = tab
            url = (result.error or {}).get("evidence", {}).get("page") if result.error else result.value
            if isinstance(url, str) and "://" in url:
                tabs[tab] = url
        if not seen:
            return "No page was opened."
        alive = {"running": "is open", "died": "may be open still"}.get(now.report.state, "is closed")
        lines = [f"{'*' if name == current else '-'} {name}  {url or 'about:blank'}" for name, url in tabs.items()]
        said = page_text.fenced("\n".join(lines))
        return (
            f"The browser of run {self.run} {alive}; its tabs as they were last known (* is the current one):\n{said}"
        )

    @override
    def directive(self) -> str | None:
        now, left = self.now, None
        if now.past.budget is not None:

            def price(*_asked: object) -> Decimal | None:
                return None  # paid requests are in the log

            spent = budgets.spent_within(now.past.ledger, price)
            left = budgets.Account(node_budgets.parse(now.past.budget), spent).share_left
        state = STANDS.get(now.report.state, now.report.state)
        at = now.report.path if now.report.state != "passed" else None
        values: dict[str, Any] = now.variables()
        return briefs.of_reader(now.loaded, now.past, left, masking.Masker({}), state, at, values)

    @override
    def state(self, path: str) -> str | None:
        return state_paths.of_entries(self.now.reading.entries, path, Texts(self._store))


def _facts(now: View) -> Iterator[str]:
    report = now.report
    yield f"Id: run {report.run}"
    yield f"File: {Path(report.file).name}"
    yield from described(now.loaded.workflow)
    yield f"Nodes: {now.layout.kinds()}"
    error = report.asks or report.error
    path = (report.question.path if report.question is not None else None) or report.path
    yield f"Last run: {ended(report.run, report.state, report.started, report.last, path, error.code if error else None)}"


def _summary(now: View) -> Iterator[str]:
    report = now.report
    yield from _facts(now)
    steps = Counter(outcome for path, outcome in now.outcomes.items() if path in now.past.attempts)
    yield f"Steps: {', '.join(f'{number} {outcome}' for outcome, number in steps.items()) or 'none yet'}"
    if report.error is not None:
        path, error = report.path or "", report.error.model_dump()
        where = f" at {briefs.ours(path)}" if path else ""
        line = f" ({Path(report.place).name.rpartition(':')[0]})" if report.place is not None else ""
        yield f"Ended{where}{line}: {error['code']} (who must act: {error.get('who')}, {error.get('phase')} the action)"
        fix, theirs = run_report.fix_of(error)
        seen = [*_theirs(path), str(error["message"]), value_text(error.get("evidence") or {})]
        yield page_text.fenced("\n".join(filter(None, ["\n".join(filter(None, seen))[:EVIDENCE], theirs])))
        if fix:
            yield f"Fix: {fix}"
    if report.question is not None:
        path = report.question.path or ""
        yield f"Waits at {briefs.ours(path)}: {report.question.code}"
        yield page_text.fenced("\n".join([*_theirs(path), report.question.message]))
    yield f"Next: {report.next or ('nothing, it is over' if report.state == 'passed' else 'see what happens')}"
    if open_ones := report.open[:5]:
        yield f"Open, no outcome recorded: {', '.join(map(briefs.ours, open_ones))}"
        if theirs := [each for path in open_ones for each in _theirs(path)]:
            yield page_text.fenced("\n".join(theirs))
    yield f"Cost: {costs.render(report.costs.model_dump()) if report.costs is not None else 'no model was asked'}"
    if report.budget is not None:
        yield f"Budget: {report.budget}"


@functools.lru_cache(64)
def _of_blob(store: log_store.StoreReader, sha256: str) -> Json:
    return json.loads(store.blob(sha256))


def _theirs(path: str) -> list[str]:
    """Return the path if it may contain page text, to be marked as data; else nothing."""
    return [path] if briefs.ours(path) != path else []
