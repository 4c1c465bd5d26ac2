"""A run as the subject of a session: everything comes from its log, which is only read."""

from __future__ import annotations

import contextlib
import decimal
import functools
import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from typing_extensions import override

from director.draft import layout
from director.session import state_paths
from director.session.subject import Subject
from director.subjects import run_items
from nodes import budgets as node_budgets
from nodes.errors import UsageError
from nodes.values import Json
from runtime.context import briefs, window
from runtime.display import costs
from runtime.display.text import value_text
from runtime.language import callees, reader, workflow
from runtime.log import attempts as log_attempts
from runtime.log import entries, history
from runtime.log.store import store
from runtime.log.writer import Texts, value_of
from runtime.models import budgets
from runtime.observation import page_text
from runtime.secrets import masking
from runtime.workspace import run_index

EVIDENCE = 1_500
"""Limit of the evidence of the error that ended the run, in characters."""

_TURN = re.compile(r"\[[^\]]*\]")
"""The item in a step path."""


class RunSubject(Subject):
    """Always rendered from the current log; a finished run is read once."""

    def __init__(self, kept: store.Kept, run: str) -> None:
        """Raises UsageError ``unknown-run``, LogError if the log is damaged."""
        self.run = run
        self._kept = kept
        self._stamp: list[tuple[int, int]] = []
        self._view = self._look()

    @property
    def now(self) -> View:
        """Return the current view of the log; if it was pruned meanwhile, the last one."""
        if self._view.held or not self._stamp or self._stamp != self._stamped():
            with contextlib.suppress(UsageError):
                self._view = self._look()
        return self._view

    def _look(self) -> View:
        self._stamp = self._stamped()
        reading = self._kept.read(self.run)
        return View(self._kept, reading)

    def _stamped(self) -> list[tuple[int, int]]:
        """Return modification time and size of the log; empty if it is in no file."""
        try:
            found = [each.stat() for each in self._kept.stands_in(self.run, ())]
        except FileNotFoundError:
            return []
        return [(each.st_mtime_ns, each.st_size) for each in found]

    @property
    @override
    def title(self) -> str:
        return f"run {self.run} of {self.now.header.workflow}: {self.now.state}"

    @override
    def summary(self) -> str:
        return "\n".join([self.title, *self.now.summary()])

    @override
    def outline(self) -> str:
        now = self.now
        return now.layout.outline(now.went)

    @override
    def nodes(self, which: str, kind: str | None) -> str:
        now = self.now
        found = now.loaded.find(which) if "/" in which else None
        if found is not None:
            # A step by its path, also in a used file.
            its = now.layout if not found.user else layout.Layout(found.file.document)
            return its.told(its.selected(found.node.id, kind))
        return now.layout.read(which, kind, now.recent())

    @override
    def variables(self) -> dict[str, object]:
        return dict(self.now.variables())

    @override
    def description(self) -> str:
        return self.now.loaded.workflow.description or ""

    @override
    def browser_state(self) -> str:
        return self.now.browser_state()

    @override
    def directive(self) -> str | None:
        now = self.now
        return briefs.directive(now.loaded.workflow, now.past, now.share_left(), masking.Masker({}))

    @override
    def state(self, path: str) -> str | None:
        return self.now.state_at(path)

    @override
    def items(self) -> Sequence[window.WindowItem]:
        return self.now.items


class View:
    """One reading of the log."""

    def __init__(self, kept: store.Kept, reading: store.Reading) -> None:
        """``kept`` provides large values."""
        self._kept = kept
        self.run, self.held, self._entries = reading.id, reading.held, reading.entries
        self.past = history.History(reading.entries)
        if self.past.header is None:
            raise UsageError(
                "unknown-run", f"{reading.id} is no run, or died before it began", fix="`runops runs` lists the runs"
            )
        self.header: entries.RunHeader = self.past.header
        self.state = run_index.state_of(self.past, held=reading.held)

    @functools.cached_property
    def loaded(self) -> workflow.Loaded:
        """The workflow of the run."""
        texts = {each: self._kept.blob(blob.sha256).decode() for each, blob in self.header.callees.items()}
        text = self._kept.blob(self.header.text.sha256).decode()
        return reader.parse(text, self.header.file, callees.Texts(texts, str(Path(self.header.file).parent)))

    @functools.cached_property
    def layout(self) -> layout.Layout:
        """Its nodes by position."""
        return layout.Layout(self.loaded.document)

    @functools.cached_property
    def items(self) -> run_items.Steps:
        """Every attempt."""
        return run_items.Steps(self.past)

    # The texts.

    def summary(self) -> Iterator[str]:
        """Yield its size, its outcome, its obstacles, its cost."""
        file = self.loaded.workflow
        if file.description:
            yield f"For: {file.description}"
        yield f"File: {Path(self.header.file).name}   started {self.past.started}, last entry {self.past.last_at}"
        yield f"Nodes: {self.layout.kinds()}"
        steps = Counter(_status(attempts) for path, attempts in self.past.attempts.items() if self._of_run(path))
        yield f"Steps: {', '.join(f'{number} {status}' for status, number in steps.items()) or 'none yet'}"
        yield from self._in_the_way()
        if open_ones := [each.call.path for each in self.past.open_calls()][:5]:
            yield f"Open, no outcome recorded: {', '.join(map(briefs.ours, open_ones))}"
            if theirs := [each for path in open_ones for each in _theirs(path)]:
                yield page_text.fenced("\n".join(theirs))
        totals = self.past.ledger.totals()
        yield f"Cost: {costs.told(totals) if totals is not None else 'no model was asked'}"
        if self.past.budget is not None:
            yield f"Budget: {self.past.budget}"

    def _in_the_way(self) -> Iterator[str]:
        ending = self.past.ending.data if self.past.ending is not None else {}
        error: dict[str, Json] = ending.get("error") or {}
        if error:
            path = str(ending.get("path") or "")
            place = self.loaded.place(path or None)
            where = f" at {briefs.ours(path)}" if path else ""
            line = f" ({Path(place).name.rpartition(':')[0]})" if place is not None else ""
            yield f"Ended{where}{line}: {error.get('code')} (who must act: {error.get('who')}, {error.get('phase')} the action)"
            evidence = value_text(error.get("evidence") or {})
            fix, theirs = run_items.fix_of(error)
            at = _theirs(path)
            seen = "\n".join(filter(None, [*at, str(error.get("message", "")), evidence]))[:EVIDENCE]
            yield page_text.fenced("\n".join(filter(None, [seen, theirs])))
            if fix:
                yield f"Fix: {fix}"
        question = run_index.question_of(self.past, self.run)
        if question is not None:
            yield f"Waits at {briefs.ours(question.path or '')}: {question.code}"
            yield page_text.fenced("\n".join([*_theirs(question.path or ""), question.message]))
        if self.state not in ("running", "passed"):
            yield f"To continue: {run_index.again(self.past, self.run)}"

    def _of_run(self, path: str) -> bool:
        return self.past.attempts[path][-1].call.thread == entries.RUN_THREAD

    @functools.cached_property
    def _went(self) -> dict[str, Counter[str]]:
        """Return the outcomes of the steps of each node of the run's own file."""
        went: dict[str, Counter[str]] = {}
        for path, attempts in self.past.attempts.items():
            if self._of_run(path) and (node := self._node(_TURN.sub("", path))) is not None:
                went.setdefault(node, Counter())[_status(attempts)] += 1
        for path, scope in self.past.scopes.items():
            is_node = path and path not in self.past.attempts and scope.node not in log_attempts.ENDED_BY_ERROR
            if is_node and (node := self._node(_TURN.sub("", path))) is not None:
                went.setdefault(node, Counter())[self._ended(scope)] += 1
        return went

    def _ended(self, scope: log_attempts.ScopeState) -> str:
        if scope.committed is not None:
            return "ok"
        if scope.failed is not None:
            return "failed (tolerated)" if scope.failed.tolerated else "failed"
        if scope.decided is not None and scope.decided.node == "when":
            return "passed over"
        failed_at = str(self.past.ending.data.get("path") or "") if self.past.ending is not None else ""
        if self.state == "failed" and failed_at.startswith((f"{scope.path}/", f"{scope.path}[")):
            return "failed inside"
        return "failed" if self.state == "failed" and failed_at == scope.path else "open"

    @functools.cached_property
    def _nodes(self) -> dict[str, str | None]:
        return {}

    def _node(self, path: str) -> str | None:
        """Return the node of the run's own file at a path without items; None for one of a used file."""
        if path not in self._nodes:
            found = self.loaded.find(path)
            self._nodes[path] = found.node.id if found is not None and not found.user else None
        return self._nodes[path]

    def went(self, placed: layout.Placed) -> str:
        """Return the outcome of a node in a word or two; in a loop with counts."""
        went = self._went.get(placed.id)
        if not went:
            return "- not reached"
        if went.total() == 1:
            return f"- {next(iter(went))}"
        return f"- {', '.join(f'{status} ×{number}' for status, number in went.items())}"

    def recent(self) -> list[str]:
        """Return the nodes with the latest steps."""
        found: dict[str, None] = {}
        for attempt in reversed(self.past.all_attempts()):
            node = self._node(_TURN.sub("", attempt.call.path)) if attempt.call.thread == entries.RUN_THREAD else None
            if node is not None:
                found[node] = None
            if len(found) == layout.RECENT:
                break
        return list(found)

    # Values.

    def variables(self) -> Iterator[tuple[str, Json]]:
        """Yield inputs, ``vars``, and the values of steps outside of loops and used files."""
        yield from ((f"inputs.{name}", value) for name, value in self.header.inputs.items())
        yield from ((f"secrets.{name}", masking.MASK) for name in self.header.secrets)
        kept: dict[str, Json] = {}
        for attempt in self.past.all_attempts():
            if attempt.call.node != "context" or not attempt.settled or attempt.rolled_back:
                continue
            found = self.loaded.find(attempt.call.path)
            value = self._value(attempt.result) if attempt.result is not None else None
            if found is not None and not found.user and isinstance(value, dict):
                kept |= value
        yield from ((f"vars.{name}", value) for name, value in kept.items())
        for path in self.past.order:
            if path and "[" not in path and (node := self._node(path)) is not None:
                entry = self._yielded(path)
                if entry is not None and (entry.value is not None or entry.blob is not None):
                    yield node, self._value(entry)

    def _yielded(self, path: str) -> entries.Result | entries.Scope | None:
        done = self.past.done(path)
        scope = self.past.scopes.get(path)
        return done.result if done is not None else scope.committed if scope is not None else None

    def _value(self, entry: entries.Result | entries.Scope) -> Json:
        return _of_blob(self._kept, entry.blob.sha256) if entry.blob is not None else entry.value

    # The browser, as last logged.

    def browser_state(self) -> str:
        """Return the tabs with their addresses."""
        tabs, current = {"main": ""}, "main"
        seen = False
        for attempt in self.past.all_attempts():
            call, result = attempt.call, attempt.result
            if call.node != "browser_action" or result is None or call.thread.startswith(entries.CONFIRM):
                continue
            seen = True
            given: dict[str, Json] = call.args or {}
            named = given.get("tab")
            tab = named if isinstance(named, str) else current
            if call.action == "close_tab" and result.status == "ok":
                tabs.pop(tab, None)
                current = "main" if tab == current else current
                tab = current
            elif call.action in ("open_tab", "switch_tab") and result.status == "ok":
                current = tab
            url = (result.error or {}).get("evidence", {}).get("page") if result.error else result.value
            if isinstance(url, str) and "://" in url:
                tabs[tab] = url
        if not seen:
            return "No page was opened."
        alive = "is open" if self.state == "running" else "may be open still" if self.state == "died" else "is closed"
        lines = [f"{'*' if name == current else '-'} {name}  {url or 'about:blank'}" for name, url in tabs.items()]
        return f"The browser {alive}; its tabs as they were last known (* is the current one):\n" + page_text.fenced(
            "\n".join(lines)
        )

    def share_left(self) -> float | None:
        """Return the remaining share of the run's budget, from 0 to 1; None if it has none."""
        if self.past.budget is None:
            return None

        def price(*_asked: object) -> decimal.Decimal | None:
            return None  # paid requests are in the log

        spent = budgets.spent_within(self.past.ledger, price)
        return budgets.Account(node_budgets.parse(self.past.budget), spent).share_left

    # Values by path.

    def state_at(self, path: str) -> str | None:
        """Return the text at a path of this log; None if there is none."""
        if path.startswith(run_items.LINE):
            number = path.removeprefix(run_items.LINE)
            line = int(number) if number.isdecimal() and len(number) < 12 else 0
            entry = self._entries[line - 1] if 0 < line <= len(self._entries) else None
            if isinstance(entry, entries.Result) and entry.error is not None:
                return json.dumps(entry.error, ensure_ascii=False, indent=1)
            if isinstance(entry, entries.Call | entries.Result | entries.Scope):
                return state_paths.as_text(value_of(entry, self._kept))
            return None
        return state_paths.of_entries(iter(self._entries), path, Texts(self._kept))


@functools.lru_cache(64)
def _of_blob(kept: store.Kept, sha256: str) -> Json:
    return json.loads(kept.blob(sha256))


def _theirs(path: str) -> list[str]:
    """Return the path, if it may contain page text, as a line marked as data."""
    return [path] if briefs.ours(path) != path else []


def _status(attempts: list[log_attempts.Attempt]) -> str:
    last = log_attempts.deciding(attempts)
    if last.rolled_back:
        return "to be done again"
    if last.verdict is not None:
        return {"done": "done, as was found out", "skipped": "skipped"}.get(last.verdict, "not done")
    if last.result is None:
        return "open"
    if last.result.status == "error":
        more = " (tolerated)" if last.result.tolerated else ""
        return f"failed: {(last.result.error or {}).get('code')}{more}"
    return last.result.status
