"""A log with every kind of model request, for tests of log readers."""

from __future__ import annotations

from pathlib import Path

from nodes.values import Json
from runtime.language import reader
from runtime.log import entries, history
from runtime.log.store import file_store
from runtime.log.store import store as log_store
from runtime.log.writer import LogWriter
from runtime.runs import run
from runtime.secrets import masking
from tests.now import let_go, now

WORKFLOW = """
version: 1
name: Sort
nodes:
  - {id: sorted, type: cognition, instruction: Sort it., input: tea, output: string}
  - {id: again, type: cognition, instruction: Sort it., input: milk, output: string}
  - {id: played, type: cognition, instruction: Sort it., input: beer, output: string}
  - {id: later, type: cognition, instruction: Sort it., input: rum, output: string}
  - {id: lost, type: cognition, instruction: Sort it., input: gin, output: string}
"""


class SessionLog:
    """Writes model answers into the log of one run of ``WORKFLOW``."""

    def __init__(self, home: Path) -> None:
        """Start the run, without any request yet."""
        store = file_store.Files(home)
        self.run = log_store.new_id()
        self.writer = LogWriter(store.create(self.run), history.History(), masking.Masker({}), store)
        run.write_header(self.writer, reader.parse(WORKFLOW, "sort.yaml"), {})
        now(self.writer.barrier())

    def call(self, path: str, attempt: int = 1) -> entries.Call:
        """Start an attempt of the step."""
        call = entries.Call(path=path, node="cognition", attempt=attempt, effect="read", fingerprint="f")
        return self.writer.call(call)

    def ask(self, call: entries.Call, said: str, tried: int = 1, key: str = "k") -> None:
        """Write a question, at its first try, and the announcement of its request."""
        thread = entries.model_thread(call.call)
        if tried == 1:
            self.writer.said(entries.User(thread=thread), said, call.path)
        data: dict[str, Json] = {
            "key": key,
            "model": "asked-model",
            "estimate": 90,
            "raw": 90,
            "limit": 500,
            "seconds": 60.0,
            "try": tried,
        }
        self.writer.noted("requested", data, thread)

    def submit(self, call: entries.Call, response: str, key: str = "k") -> None:
        """The server processes the request in the background."""
        self.writer.noted("submitted", {"key": key, "response": response}, entries.model_thread(call.call))

    def fail(self, call: entries.Call, *, again: float | None, free: bool = False, partial: str = "") -> None:
        """The request fails."""
        error: dict[str, Json] = {"code": "model-failed", "who": "model", "message": "the server failed with 500"}
        entry = entries.ModelError(
            thread=entries.model_thread(call.call), error=error, seconds=0.25, again=again, free=True if free else None
        )
        self.writer.said(entry, partial, call.path)

    def answer(
        self, call: entries.Call, said: str, source: entries.Source = "model", dollars: str | None = None
    ) -> None:
        """The model answers."""
        entry = entries.Assistant(
            thread=entries.model_thread(call.call),
            key="k",
            source=source,
            model="named-model",
            response="resp_1",
            usage=entries.Usage(input=100, cached=20, output=30, reasoning=5),
            dollars=dollars,
            seconds=1.5 if source == "model" else None,
        )
        self.writer.said(entry, said, call.path)

    def end(self, status: str, code: int, **more: Json) -> None:
        """End the run, and release its log."""
        self.writer.note("ended", status=status, exit=code, **more)
        let_go(self.writer.conversation)


def every_way(home: Path) -> SessionLog:
    """Write requests that failed and were answered; answered by the log after a crash; by a cassette; in the background, across a crash; and lost by a crash."""
    writer = SessionLog(home)
    first = writer.call("sorted")
    writer.ask(first, "tea?")
    writer.fail(first, again=0.5, partial="hot dr")
    writer.ask(first, "tea?", tried=2)
    writer.answer(first, "hot drink", dollars="0.0000000001225")
    writer.writer.result(first, "ok", value="hot drink")
    second = writer.call("again")
    writer.ask(second, "milk?")
    writer.answer(second, "white", dollars="0.25")
    writer.writer.result(second, "interrupted")
    second = writer.call("again", 2)
    writer.writer.said(entries.User(thread=entries.model_thread(second.call)), "milk?", second.path)
    writer.answer(second, "white", "log")
    writer.writer.result(second, "ok", value="white")
    third = writer.call("played")
    writer.writer.said(entries.User(thread=entries.model_thread(third.call)), "beer?", third.path)
    writer.answer(third, "yellow", "cassette")
    writer.writer.result(third, "ok", value="yellow")
    fourth = writer.call("later")
    writer.ask(fourth, "rum?")
    writer.submit(fourth, "resp_1")
    writer.writer.result(fourth, "interrupted")
    fourth = writer.call("later", 2)
    writer.writer.said(entries.User(thread=entries.model_thread(fourth.call)), "rum?", fourth.path)
    writer.submit(fourth, "resp_1")
    writer.answer(fourth, "brown", dollars="0.5")
    writer.writer.result(fourth, "ok", value="brown")
    fifth = writer.call("lost")
    writer.ask(fifth, "gin?")
    return writer
