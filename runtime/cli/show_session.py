"""``runops show`` of a session: what it is about, what it keeps, what was said and done in it, and what that cost."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Iterator, Sequence

from nodes.errors import LogError, UsageError
from nodes.values import Json
from runtime import conversations, journal, log, sessions, store
from runtime.briefs import shown
from runtime.cli import console, show_build
from runtime.cli.runs import moment
from runtime.cli.threads import OPEN
from runtime.display import costs, plans
from runtime.display.text import count, cut, duration, harmless, one_line, value_text
from runtime.models import ledger, threads

MARKS = {"[ ]": "☐", "[>]": "▶", "[x]": "☑", "[!]": "✗"}
"""What stands before a task of the plan where the stream can hold it, by what does elsewhere."""

PREVIEW = 80
"""Characters of arguments beside their tool."""

ITSELF = "itself"
"""What the session's own requests are called beside those of its delegates."""

BENCH = "bench"
"""What nodes of a build have yielded, each by itself: the call that ran them tells it."""

WHO = 7
"""Columns of the word that says what a line is."""


class View:
    """A session, arranged for people and programs."""

    def __init__(self, past: sessions.Session, reading: store.Reading, kept: store.Kept) -> None:
        """``past`` is the fold of ``reading``; ``kept`` is asked for large values."""
        assert past.header is not None
        self.session = reading.id
        self.past = past
        self.header: log.SessionHeader = past.header
        self.reading = reading
        self.texts = journal.Texts(kept)
        self.summary = conversations.summary(reading.id, past, held=reading.held)

    # For programs.

    def as_json(self, at: str | None = None) -> dict[str, Json]:
        """The session; with ``at`` only that call, or that line, of what was said. Raises UsageError ``unknown-step``."""
        spent = self.past.ledger.totals_by_step()
        return {
            "session": self.session,
            "purpose": self.header.purpose,
            "about": self.past.about,
            "file": self.header.file,
            "parent": self.header.parent,
            "forked": self.header.forked.model_dump() if self.header.forked is not None else None,
            "state": self.summary.state,
            "mode": self.past.mode,
            "budget": self.past.budget,
            "started": self.past.started,
            "last": self.past.last_at,
            "messages": self.past.messages,
            "costs": self.past.ledger.totals(),
            "spent": {path: dict(totals) for path, totals in spent.items()},
            "runs": {run: dict(totals) for run, totals in self.past.ledger.totals_by_run().items()},
            "plan": self._kept_json("plan"),
            "description": self._kept_json("description"),
            "draft": self._kept_json("draft"),
            "variables": {each.name: self._version_json(each) for each in self.past.variables()},
            "following": self.past.following.data["run"] if self.past.following is not None else None,
            "open": [each.call.path for each in self.past.open_calls()],
            "build": show_build.as_json(self.past, self._value) if self.header.purpose == "build" else None,
            "said": [self._entry_json(each) for each in self._chosen(at)],
        }

    def _kept_json(self, of: str) -> Json:
        found = self.past.latest(of)
        return self._version_json(found) if found is not None else None

    def _version_json(self, version: log.Version) -> Json:
        told = {"number": version.number, "at": version.at, "reason": version.reason, "by": version.by}
        return {**told, "value": self._value(version)}

    def _entry_json(self, entry: log.AnyEntry) -> dict[str, Json]:
        fields = entry.model_dump(
            mode="json", exclude={"v", "seq", "blob", "text", "value", "args", "tokens", "chars"}, exclude_none=True
        )
        fields = {"line": entry.seq, **fields}
        match entry:
            case log.Assistant():
                calls = [{"id": each.id, "name": each.name, "arguments": each.arguments} for each in self._asked(entry)]
                return {**fields, "text": self._text(entry), "calls": calls}
            case log.Said():
                return {**fields, "text": self._text(entry)}
            case log.Reasoning():
                return {**fields, "text": entry.text}
            case log.Call():
                return {**fields, "args": self._value(entry)}
            case log.Result() | log.Version():
                return {**fields, "value": self._value(entry)}
            case _:
                return fields

    # For people.

    def text(self, width: int | None) -> list[str]:
        """The whole session; the lines of tools are cut to ``width``, if there is one."""
        return [*self._head(), *self._keeps(), *self._talk(log.SESSION_THREAD, "", width), *self._tail()]

    def text_at(self, at: str) -> list[str]:
        """A call with all that belongs to it, or a line of the log, in full. Raises UsageError ``unknown-step``."""
        lines: list[str] = []
        for entry in self._chosen(at):
            lines += self._in_full(entry)
        return lines

    def _head(self) -> list[str]:
        started = moment(self.past.started)
        when = started.astimezone().strftime("%Y-%m-%d %H:%M:%S") if started else ""
        title = console.paint(one_line(conversations.titled(self.past)), console.BOLD, stream=sys.stdout)
        forked = self.header.forked
        facts: dict[str, Json] = {
            "run": self.past.about,
            "file": self.header.file,
            "parent": self.header.parent,
            "forked": f"from {forked.conversation}, line {forked.line}" if forked is not None else None,
            "mode": self.past.mode,
            "budget": self.past.budget,
        }
        return [f"{title}  {self.session}  {self.summary.state}  {when}", *console.facts(facts)]

    def _keeps(self) -> Iterator[str]:
        """The description, the plan as a list of tasks, the variables, and that there is a draft."""
        if (found := self.past.latest("description")) is not None:
            yield f"  description  {one_line(str(self._value(found)))}"
        if (found := self.past.latest("plan")) is not None:
            yield f"  plan  {_version_words(found)}"
            yield from (f"    {line}" for line in todo(plans.as_todo(self._value(found))))
        variables = list(self.past.variables())
        if variables:
            yield "  variables"
            wide = max(len(one_line(each.name)) for each in variables)
            for each in variables:
                yield f"    {one_line(each.name):<{wide}}  {one_line(shown(self._value(each)))}"
        if (found := self.past.latest("draft")) is not None:
            yield f"  draft  {_version_words(found)}"

    def _talk(self, thread: str, indent: str, width: int | None) -> Iterator[str]:
        """What was said in a thread, and below each call that sent a delegate what that one said."""
        delegates = set(self.past.threads)
        begun: set[str] = set()
        for entry in self.reading.entries:
            if entry.thread != thread or (isinstance(entry, log.Version) and entry.of == BENCH):
                continue
            yield from (f"{indent}{line}" for line in self._lines(entry, width))
            if isinstance(entry, log.Call):
                begun.add(entry.asked or "")
                if (name := log.delegate_thread(entry.call)) in delegates:
                    yield from self._talk(name, f"{indent}  ", width)
        for exchange in self.past.thread(thread).said:
            if isinstance(exchange, threads.Exchange):
                for asked in exchange.answer.calls or ():
                    if asked.id not in begun and exchange.done[asked.id].told is None:
                        yield f"{indent}{'tool':<{WHO}}  {one_line(asked.name)}  {self._unfinished}"
        if any(row.thread == thread and row.status == "open" for row in self.past.ledger.rows):
            waits = "waits for the model" if self.reading.held else f"a request to the model: {OPEN}"
            yield f"{indent}{'':<{WHO}}  {waits}"

    @property
    def _unfinished(self) -> str:
        return "running" if self.reading.held else OPEN

    def _lines(self, entry: log.AnyEntry, width: int | None) -> Iterator[str]:
        """An entry for people; nothing for those that are told with others, or are none of what was said."""
        match entry:
            case log.User():
                yield from _block("you" if entry.mode is not None else "told", self._text(entry))
            case log.Assistant():
                if (text := self._text(entry)) or not entry.calls:
                    yield from _block("model", text)
            case log.ModelError():
                again = f"  (sent again after {duration(entry.again)})" if entry.again is not None else ""
                yield from _block("error", f"{entry.error.get('code')}: {entry.error.get('message', '')}{again}")
                if text := self._text(entry):
                    yield from _block("", text)
            case log.Event():
                yield from _block("event", self._text(entry))
            case log.Summary():
                yield from _block("summary", f"(of the lines up to {entry.upto})\n{self._text(entry)}")
            case log.Call():
                line = f"{'tool':<{WHO}}  {self._call_words(entry)}"
                yield cut(line, width) if width else line
            case log.Version():
                name = f" {one_line(entry.name)}" if entry.name else ""
                if entry.of == "grant":
                    name = show_build.granted(self._value(entry))
                yield f"{'kept':<{WHO}}  {entry.of}{name}  {_version_words(entry)}"
            case log.Note(name="tail-cut"):
                yield f"{'note':<{WHO}}  a torn last line was cut: {count(entry.data['bytes'], 'byte')}"
            case _:
                pass

    def _call_words(self, call: log.Call) -> str:
        result = self.past.deeds[call.call].result
        parts = [one_line(call.path), cut(_arguments(self._value(call)), PREVIEW)]
        parts.append(result.status if result is not None else self._unfinished)
        if result is not None and result.error is not None:
            parts.append(str(result.error.get("code")))
        if result is not None and result.seconds is not None:
            parts.append(duration(result.seconds))
        if (spent := self._spent_by(call)) is not None:
            parts.append(costs.brief(spent))
        return "  ".join(filter(None, parts))

    def _spent_by(self, call: log.Call) -> costs.Totals | None:
        """What the delegate cost that the call has sent, with those that it sent itself, and its summaries."""
        if log.delegate_thread(call.call) not in self.past.threads:
            return None
        rows = [row for row in self.past.ledger.rows if row.path == call.path or row.path.startswith(f"{call.path}/")]
        return ledger.totals(rows) if rows else None

    def _tail(self) -> Iterator[str]:
        spent = self.past.ledger.totals()
        if spent is not None:
            yield f"  cost  {costs.told(spent)}"
            by_path = self.past.ledger.totals_by_step()
            wide = max(len(path or ITSELF) for path in by_path)
            for path, totals in by_path.items() if len(by_path) > 1 else ():
                yield f"    {path or ITSELF:<{wide}}  {costs.brief(totals)}"
        for run, totals in self.past.ledger.totals_by_run().items():
            yield f"  run {run}  {costs.brief(totals)}  (counts here too: runops show {run})"
        if (note := self.past.following) is not None:
            run = note.data["run"]
            yield f"  run {run}  {self._unfinished}: runops show {run}"
        if self.reading.torn:
            yield f"  torn  the last {count(self.reading.torn, 'byte')} are no whole line: whoever goes on cuts them"
        yield self.summary.state
        if self.header.purpose == "build":
            yield from show_build.lines(self.session, self.past, self._value, held=self.reading.held)
        elif not self.reading.held:
            yield f"  again  runops chat --resume {self.session}"

    # One call, or one line.

    def _chosen(self, at: str | None) -> Sequence[log.AnyEntry]:
        """What was said and done, in order: all of it, or the call at a path with what stands in its thread, or one line."""
        told = [each for each in self.reading.entries if not isinstance(each, log.Scope)]
        if at is None:
            return told
        if at.isdecimal() and len(at) < 12 and (found := [each for each in told if each.seq == int(at)]):
            return found
        calls = [each.call for each in self.past.deeds.values() if each.call.path == at]
        if not calls:
            known = {each.call.path for each in self.past.deeds.values()}
            near = difflib.get_close_matches(at, known, 1)
            raise UsageError(
                "unknown-step",
                f"session {self.session} has no call `{at}`, and no such line",
                mend=f"did you mean `{near[0]}`?" if near else f"`runops show {self.session} --json` lists both",
            )
        ids = {each.call for each in calls}
        asked = {(each.thread, each.asked) for each in calls}
        within = {log.delegate_thread(each) for each in ids}
        return [
            each
            for each in told
            if each.thread in within
            or (isinstance(each, log.Call | log.Result) and each.call in ids)
            or (isinstance(each, log.Told) and (each.thread, each.asked) in asked)
        ]

    def _in_full(self, entry: log.AnyEntry) -> Iterator[str]:
        match entry:
            case log.Call():
                yield f"{console.paint(one_line(entry.path), console.BOLD, stream=sys.stdout)}  line {entry.seq}  {entry.at}"
                yield from _fully("arguments", self._value(entry))
                if self.past.deeds[entry.call].result is None:
                    yield f"  {self._unfinished}"
            case log.Result():
                took = duration(entry.seconds) if entry.seconds is not None else ""
                yield "  ".join(filter(None, [f"  {entry.status}", took]))
                if entry.error is not None:
                    yield f"    {entry.error.get('code')}: {harmless(str(entry.error.get('message', '')))}"
                yield from _fully("value", self._value(entry))
            case log.Told():
                yield from ("  told", *(f"    {line}" for line in harmless(self._text(entry)).split("\n")))
            case log.Version():
                yield from self._lines(entry, None)
                yield from _fully("value", self._value(entry))
            case _:
                yield from self._lines(entry, None)

    # What stands in blobs. One that is missing is told, and hides nothing else.

    def _text(self, entry: log.Said) -> str:
        try:
            return self.texts.text_of(entry)
        except LogError as error:
            return f"({error.message})"

    def _value(self, entry: log.Call | log.Result | log.Version) -> Json:
        try:
            return self.texts.value_of(entry)
        except LogError as error:
            return f"({error.message})"

    def _asked(self, entry: log.Assistant) -> Iterator[log.Asked]:
        for each in entry.calls or ():
            (call,) = self._calls(entry.model_copy(update={"calls": [each]}))
            yield each.model_copy(update={"arguments": call})

    def _calls(self, entry: log.Assistant) -> list[str]:
        try:
            return [each.arguments for each in self.texts.calls_of(entry)]
        except LogError as error:
            return [f"({error.message})"]


def todo(lines: list[str]) -> list[str]:
    """The lines of a plan with marks that are drawn, where stdout can hold them."""
    try:
        "".join(MARKS.values()).encode(sys.stdout.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return lines
    drawn: list[str] = []
    for line in lines:
        words = line.lstrip(" ")
        mark = MARKS.get(words[:3])
        drawn.append(f"{line[: len(line) - len(words)]}{mark}{words[3:]}" if mark else line)
    return drawn


def _version_words(version: log.Version) -> str:
    cleared = "  cleared" if version.cleared else ""
    return f"version {version.number}{cleared}  by the {version.by}: {one_line(version.reason)}"


def _arguments(args: Json) -> str:
    """What a tool was asked for with, on one line; what was left out stands for nothing."""
    return value_text(
        {key: value for key, value in args.items() if value is not None} if isinstance(args, dict) else args
    )


def _block(who: str, text: str) -> Iterator[str]:
    """What somebody said, with its lines below each other."""
    for number, line in enumerate(harmless(text).split("\n")):
        yield f"{who if number == 0 else '':<{WHO}}  {line}".rstrip()


def _fully(name: str, value: Json) -> Iterator[str]:
    if value is not None:
        yield f"  {name}"
        yield from (f"    {line}" for line in harmless(console.result_text(value)).split("\n"))
