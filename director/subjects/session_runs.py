"""The runs of a session, by the paths ``@state/run/…``: each stays readable, whatever the session is about since."""

from __future__ import annotations

import contextlib
import difflib
from collections.abc import Iterator, Mapping
from pathlib import Path

from director.session import state_lists, state_paths
from director.session.state import SessionState
from director.subjects import run_report
from director.subjects.run_report import RUNS
from director.subjects.runs import View, view
from nodes.errors import LogError, ModelError, UsageError
from nodes.values import Json
from runtime.display.text import count
from runtime.log import entries
from runtime.secrets import hidden_names

WORKFLOW, CHANGES = (
    "workflow",
    "changes",
)  # the last part of the path of a run's file, and of what differs from the run before

SINGLE = "debug_"  # the names of the tools that do one action on a scout's page begin so

LISTED = 40  # number of runs in the list, the newest ones

A_VALUE = 200  # limit of a value in a comparison, in characters


class SessionRuns:
    def __init__(self, state: SessionState) -> None:
        self._state, self._store = state, state.writer.store

    def ids(self) -> list[str]:
        return list(self._state.history.runs)

    def text(self, path: str) -> str | None:
        """Return the text at a path of a run, or None if it is a path of something else. Raises ModelError ``run-unknown``, ``state-unknown``."""
        parts = path.rstrip("/").split("/", 3)
        if path == RUNS or path.startswith(f"{RUNS}/"):
            run, _, rest = path.removeprefix(RUNS).strip("/").partition("/")
            return self._text(self.known(run), rest) if run else self._list()
        if len(parts) > 2 and parts[0] == "@state" and parts[1] in self._state.history.runs:
            return state_paths.of_entries(self.view(parts[1]).reading.entries, path, self._state.writer)
        return None

    def known(self, name: str) -> str:
        """Return the id of the session's run that is called so: its id, or an end of it. Raises ModelError ``run-unknown``."""
        wanted, ids = name.upper(), self.ids()
        found = [each for each in ids if each == wanted] or [each for each in ids if wanted and each.endswith(wanted)]
        if len(found) == 1:
            return found[0]
        if not found and self._is_inherited(wanted):
            return wanted
        raise ModelError(
            "run-unknown",
            f"{len(found)} runs of this session end so: {name[:40]}"
            if found
            else f"this session has no run {name[:40]}",
            fix=f"its runs are {', '.join(ids[-5:])}; `{RUNS}` lists them"
            if ids
            else "begin one: the person types `/run`",
        )

    def view(self, run: str) -> View:
        """Return a view of a run. Raises ModelError ``run-unreadable`` if its log was pruned or is damaged."""
        try:
            return view(self._store, run)
        except (UsageError, LogError) as error:
            raise _unreadable(run, error) from None

    def variables(self, name: str) -> Mapping[str, object]:
        """Return the values of a run. Raises ModelError ``run-unknown``, ``run-unreadable``."""
        return self.view(self.known(name)).variables()

    def _is_inherited(self, run: str) -> bool:
        """True for a run of a session from which this one was forked: a fork has the words that name it."""
        sessions: set[str] = set()
        header = self._state.history.header
        with contextlib.suppress(UsageError, LogError):
            while header is not None and header.forked is not None and header.forked.conversation not in sessions:
                sessions.add(header.forked.conversation)
                first = self._store.first(header.forked.conversation)
                header = first.session if isinstance(first, entries.Scope) else None
            begun = self._store.first(run) if self._store.has(run) else None
            of_run = begun.run if isinstance(begun, entries.Scope) else None
            return of_run is not None and of_run.parent in sessions
        return False

    def _list(self) -> str:
        every = self.ids()
        single = self._single()
        ids = [each for each in every if each not in single]
        lines = [f"… ({len(ids) - LISTED} earlier runs)"] if len(ids) > LISTED else []
        for run in ids[-LISTED:]:
            begun = self._state.history.runs[run]
            try:
                lines.append(
                    f"{run_report.listed(self.view(run), self._names)}{f'  begun by {begun}' if begun else ''}"
                )
            except ModelError as error:
                lines.append(f"run {run}: {error.message}")
        if alone := len(every) - len(ids):
            where = f"`{state_lists.CALLS}`, of delegates and scouts `{state_lists.DELEGATES}`"
            lines.append(f"… ({count(alone, 'single action')}: {where})")
        return "\n".join(lines) or "this session has no run yet"

    def _single(self) -> set[str]:
        """Return the runs that are single actions on a page: of the session's model, of delegates and scouts."""
        past = self._state.history
        began = {call: past.actions[call].call for call in past.runs_of if call in past.actions}
        return {
            run
            for call, each in began.items()
            if each.thread.startswith(entries.DELEGATE) or (each.action or "").startswith(SINGLE)
            for run in past.runs_of[call]
        }

    @property
    def _names(self) -> hidden_names.HiddenNames:
        return self._state.masker.names

    def _text(self, run: str, rest: str) -> str:
        seen = self.view(run)
        if not rest:
            return "\n".join(run_report.whole(seen, self._names))
        if rest == WORKFLOW:
            return self._file(seen.header.text)
        if rest == CHANGES:
            return "\n".join(self._changes(seen))
        try:
            return "\n".join(run_report.of_step(seen, rest, self._names))
        except UsageError as error:
            near = (error.fix or "").startswith("did you mean")
            fix = error.fix if near else f"`{run_report.path_of(run)}` lists its steps"
            raise ModelError("state-unknown", error.message, fix=fix) from None

    def _file(self, text: entries.Blob) -> str:
        return self._store.blob(text.sha256).decode()

    # What differs from the run before.

    def _before(self, seen: View) -> View | None:
        ids = self.ids()
        older = ids[: ids.index(seen.reading.id)] if seen.reading.id in ids else []
        for run in reversed(older):
            with contextlib.suppress(ModelError):
                before = self.view(run)
                if before.header.file == seen.header.file:
                    return before
        return None

    def _changes(self, seen: View) -> Iterator[str]:
        before = self._before(seen)
        if before is None:
            yield f"run {seen.reading.id} is the first run of this workflow in the session"
            return
        yield f"{run_report.head(seen)}, compared with {run_report.head(before)}"
        texts = [{"": each.header.text, **each.header.callees} for each in (before, seen)]
        changed = [name for name in {**texts[0], **texts[1]} if texts[0].get(name) != texts[1].get(name)]
        if not changed:
            yield "the workflow file is the same"
        for name in changed:
            was, now = (self._file(each[name]).splitlines() if name in each else [] for each in texts)
            file = Path(name or seen.header.file).name
            yield from difflib.unified_diff(was, now, f"{file}, before", f"{file}, in this run", lineterm="")
        values = [self._shown(each) for each in (before, seen)]
        differ = [name for name in {**values[0], **values[1]} if values[0].get(name) != values[1].get(name)]
        yield "these values differ:" if differ else "no value differs"
        for name in differ:
            was, now = (run_report.short(each.get(name), A_VALUE) if name in each else "(none)" for each in values)
            yield f"{name}: {was} → {now}"

    def _shown(self, seen: View) -> dict[str, Json]:
        names = self._names
        values = {name: names.json(each, name) for name, each in seen.variables().items()}
        root = seen.past.scopes.get("")
        if root is not None and root.committed is not None and (output := seen.value(root.committed)) is not None:
            values["output"] = names.json(output)
        return values


def _unreadable(run: str, error: UsageError | LogError) -> ModelError:
    gone = error.code == "unknown-run"
    return ModelError(
        "run-unreadable",
        f"the log of run {run} is not there any more" if gone else f"the log of run {run} cannot be read: {error.code}",
        fix="what the conversation tells of it is all that is left",
    )
