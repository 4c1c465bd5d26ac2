"""Builds the report of a session from its log."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from nodes.errors import LogError, UsageError, near
from nodes.values import Json
from runtime.context import summaries
from runtime.log import entries, ledger
from runtime.log import session as log_session
from runtime.log.store import store as log_store
from runtime.log.writer import Texts
from runtime.report import said
from runtime.report.models import AskedReport, BuildReport, DelegateReport, SessionReport, VersionReport
from runtime.report.parts import Costs
from runtime.workspace import session_index

FINISH = "finish"  # the tool that ends a build


def session_report(
    past: log_session.Session, reading: log_store.Reading, texts: Texts, *, at: str | None = None, brief: bool = False
) -> SessionReport:
    """Build the report of a session from ``past``, the fold of ``reading``; ``texts`` supplies large values.

    With ``at`` it has only the call at that path, or the line with that number. A brief report omits results of calls and
    earlier versions that are in blobs. Raises UsageError ``unknown-step``.
    """
    return _Builder(past, reading, texts, brief=brief).report(at)


class _Builder:
    def __init__(self, past: log_session.Session, reading: log_store.Reading, texts: Texts, *, brief: bool) -> None:
        self._past, self._reading, self._texts, self._brief = past, reading, texts, brief

    def report(self, at: str | None) -> SessionReport:
        past, header = self._past, self._past.header
        assert header is not None
        spent = past.ledger
        waits = past.waits_for.question if past.waits_for is not None else None
        goal = self._goal()
        build = (
            BuildReport(goal=goal, questions=questions_of(past), waits=waits, finish=self._finish())
            if header.purpose == "build" or goal is not None
            else None
        )
        return SessionReport.model_validate(
            {
                "session": self._reading.id,
                **{name: getattr(header, name) for name in ("purpose", "file", "parent", "forked")},
                **{name: getattr(past, name) for name in ("about", "mode", "budget", "started", "messages")},
                "title": session_index.titled(past),
                "state": "running" if self._reading.owned else "idle",
                "last": past.last_at,
                "costs": spent.totals(),
                "spent": spent.totals_by_step(),
                "runs": spent.totals_by_run(),
                "delegates": delegates_of(past),
                **{of: self._version(past.latest(of)) for of in ("plan", "description", "draft")},
                "variables": {each.name: self._version(each) for each in past.variables()},
                "following": past.following.data["run"] if past.following is not None else None,
                "open": [each.call.path for each in past.open_calls()],
                "waiting": list(dict.fromkeys(row.thread for row in spent.unsettled())),
                "torn": self._reading.torn,
                "build": build,
                "said": [self._line(each) for each in self._selected(at)],
            }
        )

    def _version(self, version: entries.Version | None) -> VersionReport | None:
        if version is None:
            return None
        fields = {name: getattr(version, name) for name in ("number", "at", "reason", "by")}
        return VersionReport(**fields, value=self._value(version))

    def _goal(self) -> entries.Build | None:
        """Return what is built, as said last; None if nothing was."""
        kept, header = self._past.latest("goal"), self._past.header
        if kept is not None:
            return entries.Build.model_validate(self._texts.value_of(kept))
        return header.build if header is not None else None

    def _finish(self) -> dict[str, Json] | None:
        """Return the build's own result, unless a message of the person has followed."""
        spoken = self._past.thread(entries.SESSION_THREAD).said
        last = max((each.seq for each in spoken if isinstance(each, entries.User) and each.mode is not None), default=0)
        found: dict[str, Json] | None = None
        for action in self._past.actions.values():
            call, result = action.call, action.result
            ends = call.thread == entries.SESSION_THREAD and call.action == FINISH
            if ends and result is not None and result.status == "ok" and result.seq > last:
                value = self._value(result)
                found = value if isinstance(value, dict) and "done" in value else found
        return found

    def _selected(self, at: str | None) -> Sequence[entries.AnyEntry]:
        thread = self._past.thread(entries.SESSION_THREAD)
        every = [
            each
            for each in self._reading.entries
            if not isinstance(each, entries.Scope | entries.Checkpoint)
            # A message that the model has is shown where it has it.
            and (not isinstance(each, entries.Heard) or each.seq in thread.heard)
            # An answer that came is shown whole.
            and (not isinstance(each, entries.Arrived) or each.seq in thread.broken)
        ]
        if at is None:
            return every
        if at.isdecimal() and len(at) < 12 and (found := [each for each in every if each.seq == int(at)]):
            return found
        calls = [each.call for each in self._past.actions.values() if each.call.path == at]
        if not calls:
            session, known = self._reading.id, {each.call.path for each in self._past.actions.values()}
            close = near(at, known)
            fix = f"did you mean `{close}`?" if close else f"`runops show {session} --json` lists both"
            raise UsageError("unknown-step", f"session {session} has no call `{at}`, and no such line", fix=fix)
        ids = {each.call for each in calls}
        asked = {(each.thread, each.asked) for each in calls}
        within = {entries.delegate_thread(each) for each in ids}
        return [
            each
            for each in every
            if each.thread in within
            or (isinstance(each, entries.Call | entries.Result) and each.call in ids)
            or (isinstance(each, entries.ToolResult) and (each.thread, each.asked) in asked)
        ]

    def _line(self, entry: entries.AnyEntry) -> dict[str, Json]:
        fields: dict[str, Json] = {"line": entry.seq, **said.fields_of(entry)}
        match entry:
            case entries.Assistant():
                fields |= {"text": self._text(entry), "calls": [self._asked(entry, each) for each in entry.calls or ()]}
            case entries.User() if entry.mode is not None and entry.thread.startswith(entries.SUMMARY):
                fields["text"] = self._text(entry)
                fields["typed"] = summaries.command(str(fields["text"])) or None
            case entries.Said():
                fields["text"] = self._text(entry)
            case entries.Reasoning():
                fields["text"] = entry.text
            case entries.Arrived():
                fields["text"] = self._past.thread(entry.thread).broken[entry.seq]
            case entries.Call():
                fields["args"] = self._value(entry)
            case entries.Result() | entries.Version():
                fields["value"] = None if self._brief and entry.blob is not None else self._value(entry)
            case _:
                pass
        return fields

    def _asked(self, entry: entries.Assistant, asked: entries.ToolCallEntry) -> dict[str, Json]:
        alone = entry.model_copy(update={"calls": [asked]})
        arguments = _shown(lambda: self._texts.calls_of(alone)[0].arguments)
        return {"id": asked.id, "name": asked.name, "arguments": arguments}

    def _text(self, entry: entries.Said) -> Json:
        return _shown(lambda: self._texts.text_of(entry))

    def _value(self, entry: entries.Call | entries.Result | entries.Version) -> Json:
        return _shown(lambda: self._texts.value_of(entry))


def _shown(read: Callable[[], Json]) -> Json:
    """Return what ``read`` returns, or the message of its LogError, so that a missing blob hides nothing else."""
    try:
        return read()
    except LogError as error:
        return f"({error.message})"


def questions_of(past: log_session.Session) -> list[AskedReport]:
    return [
        AskedReport(question=each.question, choices=list(each.choices), answer=each.answer) for each in past.questions
    ]


def delegates_of(past: log_session.Session) -> list[DelegateReport]:
    return [_delegate(past, call, note) for call, note in past.delegates.items()]


def _delegate(past: log_session.Session, call: str, note: entries.Note) -> DelegateReport:
    sent = past.actions[call]
    data = {name: note.data[name] for name in ("agent", "acts", "context", "why", "model", "tools")}
    status = sent.result.status if sent.result is not None else None
    rows = [*past.ledger.within(sent.call.path)]
    totals = ledger.totals(rows) if rows else None
    return DelegateReport.model_validate({**data, "path": sent.call.path, "status": status, "costs": totals})


def costs_of_runs(past: log_session.Session) -> dict[str, Costs]:
    return {run: Costs.model_validate(each) for run, each in past.ledger.totals_by_run().items()}
