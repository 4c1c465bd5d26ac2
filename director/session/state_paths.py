"""Reads the values at paths ``@state/…``: a part at a time, and only values that a log entry names."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from director.session import state_lists
from nodes.errors import ModelError
from nodes.values import Json
from runtime.context import items, replaced, summary_names
from runtime.log import entries as log_entries
from runtime.log import threads
from runtime.log.writer import Texts
from runtime.observation import page_text

if TYPE_CHECKING:
    from director.session.state import SessionState

NAME = summary_names.READ
AT_ONCE = 6_000  # limit of one part, in characters
LINE = "@state/line/"  # prefix of the path of a line of the session's own log


def part(text: str, start: int | None, end: int | None) -> str:
    """Return the characters from ``start`` to before ``end``, at most ``AT_ONCE``, with range and total; whole lines where they can be.

    They are marked as data, as they may come from a page.
    """
    first = min(max(0, start or 0), len(text))
    wanted = len(text) if end is None else max(first, end)
    last = min(wanted, first + AT_ONCE, len(text))
    if last < min(wanted, len(text)):
        last = text.rfind("\n", first + AT_ONCE // 2, last) + 1 or last
    more = f"; read on from {last}" if last < len(text) else ""
    return f"(characters {first} to {last} of {len(text)}{more})\n{page_text.fenced(text[first:last])}"


def of_session(state: SessionState, path: str, texts: Texts) -> str | None:
    if path.startswith(LINE):
        number = path.removeprefix(LINE)
        return _line(state, int(number), texts) if number.isdecimal() and len(number) < 12 else None
    if path.startswith(replaced.PATH):
        return _arguments(state, path.removeprefix(replaced.PATH), texts)
    if (listed := state_lists.of_session(state, path)) is not None:
        return listed
    return of_entries(_with_blobs(state), path, texts)


def _line(state: SessionState, line: int, texts: Texts) -> str | None:
    """Return what a line of the session's own log holds: words, calls and their outcomes."""
    if (found := next((each for each in _said(state) if each.seq == line), None)) is not None:
        text = texts.text_of(found)
        if isinstance(found, log_entries.Assistant):
            called = [f"called: {each.name} {each.arguments}" for each in texts.calls_of(found)]
            return "\n".join(filter(None, (text, *called)))
        if isinstance(found, log_entries.ModelError):
            return f"{text}\n{items.broke_off(found, text)}".lstrip("\n")
        return text
    for action in state.history.actions.values():
        call, result = action.call, action.result
        if line == call.seq:
            return f"called: {call.action or call.node} {as_text(texts.value_of(call))}"
        if result is not None and line == result.seq:
            return f"{call.action or call.node}: {result.status}\n{as_text(result.error or texts.value_of(result))}"
    return state.history.thread(log_entries.SESSION_THREAD).broken.get(line) or state_lists.of_line(state, line)


def _arguments(state: SessionState, asked: str, texts: Texts) -> str | None:
    """Return the arguments of the call with this id."""
    for each in _said(state):
        if isinstance(each, log_entries.Assistant) and any(call.id == asked for call in each.calls or ()):
            return next(call.arguments for call in texts.calls_of(each) if call.id == asked)
    return None


def of_entries(entries: Iterable[log_entries.Entry], path: str, texts: Texts) -> str | None:
    """Return the text of the blob at ``path``. Of several entries with it, a step's value wins, then a tool result, then the newest."""
    found: tuple[int, int, log_entries.Entry] | None = None
    for entry in entries:
        blob: log_entries.Blob | None = getattr(entry, "blob", None)
        if blob is not None and blob.path == path:
            weight = (
                3 if isinstance(entry, log_entries.Result) else 2 if isinstance(entry, log_entries.ToolResult) else 1
            )
            if found is None or (weight, entry.seq) >= found[:2]:
                found = weight, entry.seq, entry
    entry = found[2] if found is not None else None
    if isinstance(entry, log_entries.Said):
        return texts.text_of(entry)
    if isinstance(entry, log_entries.Result | log_entries.Scope | log_entries.Call | log_entries.Version):
        return as_text(texts.value_of(entry))
    return None


def as_text(value: Json) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=1)


def unknown(path: str) -> ModelError:
    return ModelError(
        "state-unknown",
        f"nothing is kept at `{path[:200]}`",
        fix=f"`{state_lists.ROOT}` lists the paths that there are",
    )


def _said(state: SessionState) -> Iterator[log_entries.Said]:
    for name in state.history.threads:
        thread = state.history.thread(name)
        if thread.summary is not None:
            yield thread.summary
        for each in thread.said:
            match each:
                case threads.Exchange():
                    yield each.answer
                    yield from (done.output for done in each.done.values() if done.output is not None)
                case threads.Happened():
                    yield from each.events
                case _:
                    yield each


def _with_blobs(state: SessionState) -> Iterator[log_entries.Entry]:
    past = state.history
    yield from _said(state)
    for action in past.actions.values():
        yield action.call
        if action.result is not None:
            yield action.result
    for of in ("plan", "description", "draft", "mode", "window"):
        yield from past.versions(of)
    for variable in past.variables():
        yield from past.versions("variable", variable.name)
