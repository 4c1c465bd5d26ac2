"""Threads of a session for tests of windows: written with the writer of real sessions, into a store in memory."""

from __future__ import annotations

import dataclasses
import tempfile
from collections.abc import Sequence
from pathlib import Path

from runtime import testing
from runtime.context import items, window
from runtime.log import entries as log_entries
from runtime.log import session
from runtime.log.store import store as log_store
from runtime.log.writer import LogWriter
from runtime.messages.messages import Request, Thought, Tool, ToolCall
from runtime.secrets import masking
from tests.now import now

MODEL = "test-model"
SEALED = "c2VhbGVk" * 20  # what a server has encrypted

SCHEMA = {
    "type": "object",
    "properties": {"path": {"type": ["string", "null"], "description": "What to read of it."}},
    "required": ["path"],
    "additionalProperties": False,
}


@dataclasses.dataclass
class Asked:
    """A call of a model, and its output; None: nothing yet."""

    name: str
    arguments: str
    output: str | None


class Talk:
    """A session written directly."""

    def __init__(self, store: log_store.Store | None = None, masker: masking.Masker | None = None) -> None:
        """Start it, without messages."""
        self.store = store or testing.MemoryStore(Path(tempfile.gettempdir()) / "unused")
        self.masker = masker or masking.Masker({})
        self.thread = log_entries.SESSION_THREAD
        owned = now(self.store.create(log_store.new_id()))
        self.writer = LogWriter(owned, session.Session(), self.masker, self.store.reader)
        header = log_entries.SessionHeader(purpose="chat", versions={})
        self.writer.scope("", "opened", "session", session=header)
        self._calls = 0

    @classmethod
    def read(cls, other: Talk) -> Talk:
        """The same session, read again from its store."""
        self = cls.__new__(cls)
        self.store, self.masker, self.thread, self._calls = other.store, other.masker, other.thread, other._calls
        entries = other.store.reader.read(other.writer.conversation.id).entries
        self.writer = LogWriter(other.writer.conversation, session.Session(entries), self.masker, self.store.reader)
        return self

    def says(self, text: str) -> None:
        """Add a message of a person."""
        self.writer.said(log_entries.User(thread=self.thread, mode="chat"), text, "")

    def answers(self, text: str, asked: Sequence[Asked] = (), reasoning: int = 0) -> None:
        """Add an answer of the model with completed calls, and that many tokens of encrypted reasoning before it."""
        calls: list[ToolCall] = []
        for each in asked:
            self._calls += 1
            calls.append(ToolCall(f"call_{self._calls}", each.name, each.arguments))
        answer = log_entries.Assistant(thread=self.thread, key=f"k{self._calls}", source="model", model=MODEL)
        name = f"rs_{self.writer.history.last_seq}"
        thoughts = [Thought(name, SEALED, reasoning, min(1, len(calls)))] if reasoning else []
        self.writer.said(answer, text, "", calls, thoughts)
        for call, each in zip(calls, asked, strict=True):
            if each.output is not None:
                self.writer.said(log_entries.ToolResult(thread=self.thread, asked=call.id), each.output, "")

    def fails(self, code: str, partial: str = "", again: float | None = None) -> None:
        """Add an answer that breaks off."""
        error = {"code": code, "who": "model", "message": "it broke off"}
        self.writer.said(log_entries.ModelError(thread=self.thread, error=error, again=again), partial, "")

    def happens(self, text: str) -> None:
        """Add an action of a person besides messages."""
        self.writer.said(log_entries.Event(thread=self.thread), text, "")

    def sums_up(self, text: str, upto: int) -> None:
        """Add a summary of everything up to that line."""
        self.writer.said(log_entries.Summary(thread=self.thread, upto=upto), text, "")

    @property
    def items(self) -> items.Thread:
        """The items that a window may contain."""
        return items.Thread(self.writer.history.thread(self.thread), self.writer)

    def window(self, around: window.RequestFrame | None = None, **limits: object) -> window.Window:
        """The window of a request."""
        return window.build(self.items, around or AROUND, window.Limits.model_validate(limits))


def request(built: window.Window, model: str = MODEL) -> Request:
    """The request with this window."""
    return Request(model, built.instructions, built.items, None, 1_000, True, built.tools, state=built.state)


def tool(name: str, description: str = "Read a part of it.") -> Tool:
    """A tool with a small schema."""
    return Tool(name, description, SCHEMA)


AROUND = window.RequestFrame((window.Part("rules", "Answer from what you are told."),))
