"""What the attempts of a run's steps had with models, for people and programs: questions, requests, errors, answers."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from nodes.values import Json
from runtime import history, journal, log, store
from runtime.display import costs
from runtime.display.text import duration, harmless, one_line, value_text

Said = log.User | log.Reasoning | log.Assistant | log.ModelError | log.Note | log.Call | log.Told

OPEN = "open, no outcome recorded"
LATER = "open here: a later attempt of the step waited for the answer"
SOURCES = {"model": "", "cassette": "from the cassette", "log": "from the log, where an earlier attempt left it"}


class Threads:
    """The threads with models, by the call that opened each."""

    def __init__(self, entries: Iterable[log.AnyEntry], past: history.History, kept: store.Kept) -> None:
        """``past`` is the fold of ``entries``; ``kept`` is asked for large texts."""
        self._kept = kept
        self._said: dict[str, list[Said]] = {}
        self._closed_later = {row.line for row in past.ledger.rows if row.status != "open"}
        self._results: dict[str, log.Result] = {}
        """What came of the calls that models asked for."""
        self._taken_up: dict[str, list[int]] = {}
        """The lines at which a later attempt went on with a thread."""
        for entry in entries:
            match entry:
                case log.User() | log.Reasoning() | log.Assistant() | log.ModelError() | log.Told():
                    self._said.setdefault(entry.thread, []).append(entry)
                case log.Call(asked=str()):
                    self._said.setdefault(entry.thread, []).append(entry)
                case log.Call(again=str(first)):
                    self._taken_up.setdefault(log.model_thread(first), []).append(entry.seq)
                case log.Result():
                    self._results[entry.call] = entry
                case log.Note(name="requested" | "submitted"):
                    self._said.setdefault(entry.thread, []).append(entry)
                case _:
                    pass

    def _of(self, call: log.Call) -> list[Said]:
        """What was said in the attempt that the call began; an attempt that goes on has the rest of the thread."""
        thread = log.model_thread(call.again or call.call)
        end = next((line for line in self._taken_up.get(thread, ()) if line > call.seq), None)
        return [each for each in self._said.get(thread, []) if each.seq > call.seq and (end is None or each.seq < end)]

    def left_open(self, call: log.Call) -> str | None:
        """What to say of the thread's last request where nothing in the thread closes it; None where something does, or none was made."""
        last: log.Note | None = None
        for entry in self._of(call):
            match entry:
                case log.Note(name="requested"):
                    last = entry
                case log.Assistant() | log.ModelError():
                    last = None
                case _:
                    pass
        if last is None:
            return None
        return LATER if last.seq in self._closed_later else OPEN

    def as_json(self, call: log.Call) -> list[Json]:
        """The thread's entries, each with its ``kind``; behind them ``open`` where no outcome is recorded."""
        told: list[Json] = []
        for entry in self._of(call):
            if isinstance(entry, log.Note):
                told.append({"kind": entry.name, "at": entry.at, **entry.data})
                continue
            if isinstance(entry, log.Call):
                told.append(self._call_json(entry))
                continue
            fields = entry.model_dump(mode="json", exclude={"v", "seq", "thread", "blob", "text"}, exclude_none=True)
            told.append({**fields, "text": self._text(entry)})
        if (left := self.left_open(call)) is not None:
            told.append({"kind": "open", "text": left})
        return told

    def _call_json(self, call: log.Call) -> Json:
        result = self._results.get(call.call)
        return {
            "kind": "call",
            "at": call.at,
            "path": call.path,
            "asked": call.asked,
            "node": call.node,
            "action": call.action,
            "effect": call.effect,
            "args": journal.value_of(call, self._kept),
            "status": result.status if result is not None else None,
            "error": result.error if result is not None else None,
            "seconds": result.seconds if result is not None else None,
        }

    def _call_line(self, call: log.Call) -> Iterator[str]:
        """What was done for the model, and how it ended."""
        result = self._results.get(call.call)
        yield from ("did", one_line(described(call)))
        yield OPEN if result is None else result.status
        if result is not None and result.error is not None:
            yield str(result.error.get("code"))
        yield duration(result.seconds) if result is not None and result.seconds is not None else ""

    def lines(self, call: log.Call) -> Iterator[str]:
        """The thread for people."""
        for entry in self._of(call):
            if isinstance(entry, log.Call):
                yield "  ".join(filter(None, self._call_line(entry)))
                continue
            yield "  ".join(filter(None, _head(entry)))
            text = "" if isinstance(entry, log.Note) else self._text(entry)
            yield from (f"  {line}" for line in harmless(text).split("\n") if text)
        if (left := self.left_open(call)) is not None:
            yield left

    def _text(self, entry: log.User | log.Reasoning | log.Assistant | log.ModelError | log.Told) -> str:
        if isinstance(entry, log.User | log.Assistant | log.Told) and entry.blob is not None:
            return str(json.loads(self._kept.blob(entry.blob.sha256)))
        return entry.text or ""


def described(call: log.Call) -> str:
    """What the call does, on one line: the deed, the element, and what else it was given; not the rules that it verifies."""
    given: Json = call.args
    args: dict[str, Json] = given if isinstance(given, dict) else {}
    target = args.get("target")
    others = {key: value for key, value in args.items() if key not in ("target", "verify") and value != call.action}
    return "  ".join(filter(None, [call.action or call.node, value_text(target) if target else "", value_text(others)]))


def _head(entry: log.User | log.Reasoning | log.Assistant | log.ModelError | log.Note | log.Told) -> Iterator[str]:
    """The parts of the line that names an entry."""
    match entry:
        case log.User():
            yield "asked"
        case log.Reasoning():
            yield "thought"
        case log.Told():
            yield "told"
        case log.Note(name="requested"):
            data = entry.data
            yield from ("request", one_line(str(data["model"])))
            yield f"about {data['estimate']:,} tokens in, at most {data['limit']:,} out"
            yield f"try {data['try']}" if data["try"] != 1 else ""
        case log.Note():
            yield from ("submitted", one_line(str(entry.data["response"])), "the server works on it in the background")
        case log.ModelError():
            yield "failed"
            yield f"{entry.error.get('code')}: {one_line(str(entry.error.get('message', '')))}"
            yield from _cost(entry)
            yield f"again after {duration(entry.again)}" if entry.again is not None else "not sent again"
        case log.Assistant():
            yield from ("answer", one_line(entry.model), SOURCES[entry.source])
            yield from _cost(entry) if entry.source == "model" else ()


def _cost(entry: log.Assistant | log.ModelError) -> Iterator[str]:
    if entry.usage is not None:
        yield costs.tokens(entry.usage.input, entry.usage.output)
    yield costs.money(entry.dollars) if entry.dollars is not None else ""
    yield duration(entry.seconds) if entry.seconds is not None else ""
