"""Renders the steps of a run as window items: each attempt is a tool call with its output, as if a model had made it.

Nothing is written.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import re
from collections.abc import Sequence
from typing import Any

from typing_extensions import override

from nodes.values import Json
from runtime.context import briefs, window
from runtime.context.window import Size
from runtime.log import attempts, entries, history
from runtime.log.writer import chars_of
from runtime.messages import estimates
from runtime.messages.messages import Item, ToolCall, ToolOutput
from runtime.observation import page_text
from runtime.secrets import hidden_names

ARGUMENTS, PREVIEW, EVIDENCE = 1_500, 400, 800
"""Limits in characters: of a call's arguments, of a value, and of an error's evidence."""

OPEN = "open, no outcome recorded"
"""Output shown for a call without a result; it is never stored."""

LINE = "@state/run/line/"  # prefix of the path of a line of the run's log

MOST = 100
"""Limit of the steps that are shown, the newest ones. The outline has the others."""

_NO_NAME = re.compile(r"[^a-zA-Z0-9_-]")


@dataclasses.dataclass(frozen=True)
class _Step:
    attempt: attempts.Attempt

    def item(self) -> window.WindowItem:
        return window.WindowItem(
            "step", self.attempt.call.seq, _size_of(self._whole), _size_of(self._pointed), self._items
        )

    def _items(self, pointers: bool) -> tuple[Item, ...]:
        return self._pointed if pointers else self._whole

    @functools.cached_property
    def _whole(self) -> tuple[ToolCall, ToolOutput]:
        call = self.attempt.call
        arguments = hidden_names.DEFAULT.text(json.dumps(self._arguments(), ensure_ascii=False))
        asked = ToolCall(f"run_{call.call}", _NO_NAME.sub("_", call.node)[:64], arguments)
        return (asked, ToolOutput(asked.id, hidden_names.DEFAULT.text(self._output(pointers=False))))

    @functools.cached_property
    def _pointed(self) -> tuple[ToolCall, ToolOutput]:
        asked, whole = self._whole
        pointed = (asked, ToolOutput(whole.id, self._output(pointers=True)))
        # A pointer to a small value would be larger than the value.
        return pointed if _size_of(pointed).within(_size_of(self._whole)) else self._whole

    def _arguments(self) -> dict[str, Json]:
        call = self.attempt.call
        head: dict[str, Json] = {"path": briefs.ours(call.path)}
        if head["path"] != call.path:
            # The key of an item may be text of a page.
            head["at"] = page_text.fenced(call.path)
        if call.attempt > 1:
            head["attempt"] = call.attempt
        if call.action is not None:
            head["action"] = call.action
        begins = call.blob.preview if call.blob is not None else json.dumps(call.args, ensure_ascii=False)
        if call.blob is None and len(begins) <= ARGUMENTS:
            given: Any = call.args
            more: dict[str, Json] = given if isinstance(given, dict) else {}
            more = {name: value for name, value in more.items() if name not in ("path", "action") and value is not None}
            # Arguments may come from a step that read them on a page.
            return {**head, "given": page_text.fenced(json.dumps(more, ensure_ascii=False))} if more else head
        return {**head, "begins": page_text.fenced(begins[:PREVIEW]), "kept_at": line_path(call.seq)}

    def _output(self, *, pointers: bool) -> str:
        result, verdict = self.attempt.result, self.attempt.verdict
        if result is None:
            return f"{OPEN}{f'; reconciled since: {verdict}' if verdict else ''}"
        status = [
            result.status,
            "the run continued" if result.tolerated else "",
            f"reconciled since: {verdict}" if verdict else "",
            "done again later" if self.attempt.rolled_back else "",
        ]
        head = "; ".join(filter(None, status))
        if result.error is not None:
            return _failed(head, result.error, pointers=pointers)
        if result.blob is None and result.value is None:
            return head
        if hidden_names.DEFAULT.named(self.attempt.call.path.rpartition("/")[2]):
            return f"{head}\n{hidden_names.MASK}"
        where = line_path(result.seq)
        if pointers:
            return f"{head} (value left out, kept at {where})"
        begins = result.blob.preview if result.blob is not None else json.dumps(result.value, ensure_ascii=False)
        if result.blob is None and len(begins) <= PREVIEW:
            return f"{head}\n{page_text.fenced(begins)}"
        size = f"{result.blob.bytes} bytes" if result.blob is not None else f"{len(begins)} characters"
        return f"{head} (the value has {size}, kept at {where}; it begins:)\n{page_text.fenced(begins[:PREVIEW])}"


def _failed(head: str, error: dict[str, Json], *, pointers: bool) -> str:
    text = f"{head}: {error.get('code')} ({error.get('who')}, {error.get('phase')} the action)"
    fix, theirs = fix_of(error)
    if not pointers:
        evidence = json.dumps(error.get("evidence"), ensure_ascii=False) if error.get("evidence") else ""
        seen = filter(None, [str(error.get("message", ""))[:EVIDENCE], evidence[:EVIDENCE], theirs])
        text = f"{text}\n{page_text.fenced(chr(10).join(seen))}"
    return f"{text}\nfix: {fix}" if fix else text


def fix_of(error: dict[str, Json]) -> tuple[str, str]:
    """Return the fix of an error: as our text, or as text that may be a page's, such as a similar name; one is empty."""
    fix = str(error.get("fix") or "")
    return ("", f"fix: {fix}") if fix and error.get("who") == "site" else (fix, "")


def steps(past: history.History) -> list[window.WindowItem]:
    newest = [each for each in past.all_attempts() if each.call.thread == entries.RUN_THREAD][-MOST:]
    return [_Step(each).item() for each in newest]


class AfterSteps(window.Pieces):
    """The last steps of a run, followed by the thread of the session: the steps count as oldest, and are left out first."""

    def __init__(self, steps: Sequence[window.WindowItem], thread: window.Pieces) -> None:
        self._steps, self._thread = steps, thread

    @override
    def __len__(self) -> int:
        return len(self._steps) + len(self._thread)

    @override
    def __getitem__(self, number: int, /) -> window.WindowItem:
        after = number - len(self._steps)
        return self._thread[after] if after >= 0 else self._steps[number]

    @property
    @override
    def summary(self) -> window.WindowItem | None:
        return self._thread.summary

    @property
    @override
    def newest_word(self) -> int | None:
        newest = self._thread.newest_word
        return None if newest is None else newest + len(self._steps)

    @property
    @override
    def word(self) -> window.WindowItem | None:
        return self._thread.word

    @override
    def tokens_before(self, number: int) -> int:
        after = number - len(self._steps)
        steps = self._steps if after >= 0 else self._steps[:number]
        said = self._thread.tokens_before(after) if after > 0 else 0
        return sum(each.size(pointers=False).tokens for each in steps) + said


def line_path(line: int) -> str:
    return f"{LINE}{line}"


def _size_of(items: Sequence[Item]) -> Size:
    return Size(sum(map(estimates.of_item, items)), sum(map(chars_of, items)), len(items))
