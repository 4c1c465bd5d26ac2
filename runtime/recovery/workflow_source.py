"""Workflow text of a resumed run: the one in its log, or its file as it is now."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from nodes.errors import RunOpsError, UsageError
from nodes.values import Json, as_text
from runtime.language import callees, prepare, reader, workflow
from runtime.log import entries, history
from runtime.log.store import store as log_store
from runtime.log.writer import LogWriter
from runtime.recovery import compatibility
from runtime.secrets import sources
from runtime.workspace import host


class WorkflowSource:
    def __init__(
        self,
        run: str,
        header: entries.RunHeader,
        given: host.Host,
        present: workflow.Loaded | None,
        *,
        take: bool,
    ) -> None:
        """``present``: the run's file as it is now, from any source; None if unreadable. ``take``: continue with it.

        Raises the errors of ``prepare.prepare`` if ``present`` does not pass, LogError ``blob-missing``.
        """
        self._run, self._present, self._header = run, present, header
        self._stored = stored(header, given.reader)
        self.changed = present is None or prepare.workflows(present) != prepare.workflows(self._stored)
        self._take = take and self.changed
        self._change = compatibility.Change()
        self.word: str | None = None  # message about the change, once `check` has accepted it
        if self._take:
            assert present is not None
            prepared = prepare.prepare(present, _inputs_for(present, header), given.secrets)
            self.loaded, self.inputs, self.secrets = present, prepared.inputs, prepared.secrets
        else:
            self.loaded, folder = self._stored, Path(header.file).parent
            self.inputs: Mapping[str, Json] = header.inputs
            self.secrets: Mapping[str, str] = sources.read(given.secrets, self._stored.workflow.secrets, folder)

    def check(self, past: history.History) -> None:
        """Raise UsageError ``node-changed`` if what was done does not allow this text. ``past`` is the history as it is now."""
        if not self.changed:
            return
        file = self._header.file
        more = "as it is now, it cannot be read"
        if self._present is not None:
            self._change = _compared(self._stored, self._present, self._header, past)
            if self._take:
                self._check_taken()
                again = list(self._change.invalidated)
                done = f"; done again where it was done already: {_listed(again)}" if again else ""
                self.word = f"{file} has changed: this run continues with it as it is now{done}{self._kept()}"
                return
            may = not self._change.refusals
            self._check_stored(past, may=may)
            more = "`--allow-changed` takes it as it is now" if may else "a new run takes the new one"
        self.word = f"{file} has changed: this run continues with the text it began with; {more}"

    def _kept(self) -> str:
        assert self._present is not None
        other = _other_defaults(self._stored, self._present, self._header)
        kept = [
            f"{name}={as_text(self._header.inputs[name])} (the file now says {as_text(new)})"
            for name, new in other.items()
        ]
        return f"; inputs keep their values: {_listed(kept)}" if kept else ""

    def take(self, writer: LogWriter) -> None:
        if not self._take:
            return
        change = self._change
        writer.note(
            "changed",
            taken=facts(self.loaded, self.inputs, writer).model_dump(mode="json"),
            invalidated=list[Json](change.invalidated),
            edited=list[Json](change.edited),
            reopened=list[Json](change.reopened),
            rebuild=change.rebuild,
        )

    def _check_taken(self) -> None:
        refusals = [{"step": path, "why": why, "fix": fix} for path, (why, fix) in self._change.refusals.items()]
        if not refusals:
            return
        reasons = _listed([f"`{each['step']}`: {each['why']}" for each in refusals], "; ")
        raise UsageError(
            "node-changed",
            f"the run cannot continue with {self._header.file} as it is now: {reasons}",
            fix="; ".join(dict.fromkeys(each["fix"] for each in refusals[:5])),
            evidence={"refused": list[Json](refusals)},
        )

    def _check_stored(self, past: history.History, *, may: bool) -> None:
        """Refuse changed nodes that did something, if the run does not take the changes."""
        assert self._present is not None
        changed: set[str] = set()
        gone: set[str] = set()
        for attempt in past.all_attempts():
            path = attempt.call.path
            if attempt.call.thread != entries.RUN_THREAD or attempt.did_nothing or attempt.invalidated:
                continue
            before, now = self._stored.find(path), self._present.find(path)
            if now is None:
                gone.add(self._name(before, path))
            elif before is None or now.fingerprint != before.fingerprint:
                changed.add(self._name(before, path))
        if not changed and not gone:
            return
        what = [f"`{name}` was changed" for name in sorted(changed)] + [f"`{name}` is gone" for name in sorted(gone)]
        back = "put them back as they were, or start a new run"
        raise UsageError(
            "node-changed",
            f"nodes that already ran are not the same in {self._header.file}: {', '.join(what)}",
            fix=f"`runops resume {self._run} --allow-changed` takes the file as it is now; or {back}" if may else back,
            evidence={"changed": list[Json](sorted(changed)), "gone": list[Json](sorted(gone))},
        )

    def _name(self, found: workflow.Found | None, path: str) -> str:
        """Return the name of a node that ran: its id, and its file unless it is the run's own."""
        if found is None or not found.user:
            return path.rpartition("/")[2]
        return f"{found.node.id} of {os.path.relpath(found.file.path, Path(self._header.file).parent)}"


def text_of(run: str, header: entries.RunHeader, given: host.Host, *, take: bool) -> WorkflowSource:
    """Return the text with which a run with this header continues; with ``take`` its file as it is now.

    Raises WorkflowInvalid and the errors of ``prepare.prepare`` if the file does not pass, LogError ``blob-missing``.
    """
    present: workflow.Loaded | None = None
    try:
        present = reader.load(Path(header.file))
    except (RunOpsError, OSError):
        if take:
            raise
    return WorkflowSource(run, header, given, present, take=take)


def stored(header: entries.RunHeader, store: log_store.StoreReader) -> workflow.Loaded:
    """Return the stored workflow of a run with this header, and the files that it uses. Raises WorkflowInvalid, LogError ``blob-missing``."""
    texts = {path: store.blob(blob.sha256).decode() for path, blob in header.callees.items()}
    text = store.blob(header.text.sha256).decode()
    return reader.parse(text, header.file, callees.Texts(texts, str(Path(header.file).parent)))


def takeable(past: history.History, store: log_store.StoreReader) -> dict[str, Json] | None:
    """Return the defaults that the run's file would now give a new run, if the run may continue with the file as it is now.

    None if the file is as it was, or may not be taken.
    """
    header = past.header
    assert header is not None
    try:
        present, before = reader.load(Path(header.file)), stored(header, store)
    except (RunOpsError, OSError):
        return None
    if prepare.workflows(present) == prepare.workflows(before) or _compared(before, present, header, past).refusals:
        return None
    return _other_defaults(before, present, header)


def _other_defaults(before: workflow.Loaded, now: workflow.Loaded, header: entries.RunHeader) -> dict[str, Json]:
    """Return the changed defaults of inputs for which the run has another value."""
    old, new = before.workflow.inputs, now.workflow.inputs
    return {
        name: each.default
        for name, each in new.items()
        if name in old and name in header.inputs and each.default not in (old[name].default, header.inputs[name])
    }


def _inputs_for(present: workflow.Loaded, header: entries.RunHeader) -> dict[str, Json]:
    """Return the run's inputs that the file still has. Raises UsageError ``missing-input`` for a new one without a default."""
    declared = present.workflow.inputs
    if missing := [name for name, each in declared.items() if each.required and name not in header.inputs]:
        listed = ", ".join(f"`{name}`" for name in missing)
        message = f"{present.path} needs {listed}, which the run was not given"
        raise UsageError("missing-input", message, fix="give it a `default` in the file, or start a new run")
    return {name: value for name, value in header.inputs.items() if name in declared}


def _compared(
    stored: workflow.Loaded, present: workflow.Loaded, header: entries.RunHeader, past: history.History
) -> compatibility.Change:
    known = {name: value for name, value in header.inputs.items() if name in present.workflow.inputs}
    try:
        typed = present.check_inputs(known)
    except UsageError:
        # Something is missing or does not fit: a caller that takes the file reports it.
        typed = known
    other = [name for name, value in known.items() if typed[name] != value]
    return compatibility.compare(stored, present, past, other)


def facts(loaded: workflow.Loaded, inputs: Mapping[str, Json], writer: LogWriter) -> entries.SourceChange:
    """Return the fields of a run's log that come from its file; the texts go into blobs."""
    return entries.SourceChange(
        workflow=loaded.workflow.name,
        text=writer.put_text(loaded.text, "workflow.yaml"),
        callees={
            path: writer.put_text(text, f"callees/{number}.yaml")
            for number, (path, text) in enumerate(loaded.texts().items(), start=1)
        },
        inputs=writer.masker.json(dict(inputs)),
        secrets=list(loaded.workflow.secrets),
        origins=[writer.masker.text(origin) for origin in loaded.origins(inputs)],
    )


def _listed(those: Sequence[str], between: str = ", ") -> str:
    more = f"{between}and {len(those) - 5} more" if len(those) > 5 else ""
    return between.join(those[:5]) + more
