"""A log in which a model was asked in every way that there is, for what reads logs."""

from __future__ import annotations

from pathlib import Path

from nodes.values import Json
from runtime.language import reader
from runtime.log import entries, history
from runtime.log.store import file_store, store
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


class Pen:
    """Writes what models said into the log of one run of ``WORKFLOW``."""

    def __init__(self, home: Path) -> None:
        """The run has begun, and nobody was asked yet."""
        kept = file_store.Files(home)
        self.run = store.new_id()
        self.journal = LogWriter(kept.create(self.run), history.History(), masking.Masker({}), kept)
        run.write_header(self.journal, reader.parse(WORKFLOW, "sort.yaml"), {})
        now(self.journal.barrier())

    def call(self, path: str, attempt: int = 1) -> entries.Call:
        """An attempt of the step begins."""
        call = entries.Call(path=path, node="cognition", attempt=attempt, effect="read", fingerprint="f")
        return self.journal.call(call)

    def ask(self, call: entries.Call, said: str, tried: int = 1, key: str = "k") -> None:
        """A question, where it is the first try of it, and the announcement of its request."""
        thread = entries.model_thread(call.call)
        if tried == 1:
            self.journal.said(entries.User(thread=thread), said, call.path)
        data: dict[str, Json] = {
            "key": key,
            "model": "asked-model",
            "estimate": 90,
            "raw": 90,
            "limit": 500,
            "seconds": 60.0,
            "try": tried,
        }
        self.journal.noted("requested", data, thread)

    def submit(self, call: entries.Call, response: str, key: str = "k") -> None:
        """The server works on it in the background."""
        self.journal.noted("submitted", {"key": key, "response": response}, entries.model_thread(call.call))

    def fail(self, call: entries.Call, *, again: float | None, free: bool = False, partial: str = "") -> None:
        """The request brings no answer."""
        error: dict[str, Json] = {"code": "model-failed", "who": "model", "message": "the server failed with 500"}
        told = entries.ModelError(
            thread=entries.model_thread(call.call), error=error, seconds=0.25, again=again, free=True if free else None
        )
        self.journal.said(told, partial, call.path)

    def answer(
        self, call: entries.Call, said: str, source: entries.Source = "model", dollars: str | None = None
    ) -> None:
        """The model answers."""
        told = entries.Assistant(
            thread=entries.model_thread(call.call),
            key="k",
            source=source,
            model="named-model",
            response="resp_1",
            usage=entries.Usage(input=100, cached=20, output=30, reasoning=5),
            dollars=dollars,
            seconds=1.5 if source == "model" else None,
        )
        self.journal.said(told, said, call.path)

    def end(self, status: str, code: int, **more: Json) -> None:
        """The run says how it ended, and its log is given up."""
        self.journal.note("ended", status=status, exit=code, **more)
        let_go(self.journal.conversation)


def every_way(home: Path) -> Pen:
    """Failed and answered; answered by the log after a crash; by a cassette; in the background, across a crash; and lost by a crash."""
    pen = Pen(home)
    first = pen.call("sorted")
    pen.ask(first, "tea?")
    pen.fail(first, again=0.5, partial="hot dr")
    pen.ask(first, "tea?", tried=2)
    pen.answer(first, "hot drink", dollars="0.0000000001225")
    pen.journal.result(first, "ok", value="hot drink")
    second = pen.call("again")
    pen.ask(second, "milk?")
    pen.answer(second, "white", dollars="0.25")
    pen.journal.result(second, "interrupted")
    second = pen.call("again", 2)
    pen.journal.said(entries.User(thread=entries.model_thread(second.call)), "milk?", second.path)
    pen.answer(second, "white", "log")
    pen.journal.result(second, "ok", value="white")
    third = pen.call("played")
    pen.journal.said(entries.User(thread=entries.model_thread(third.call)), "beer?", third.path)
    pen.answer(third, "yellow", "cassette")
    pen.journal.result(third, "ok", value="yellow")
    fourth = pen.call("later")
    pen.ask(fourth, "rum?")
    pen.submit(fourth, "resp_1")
    pen.journal.result(fourth, "interrupted")
    fourth = pen.call("later", 2)
    pen.journal.said(entries.User(thread=entries.model_thread(fourth.call)), "rum?", fourth.path)
    pen.submit(fourth, "resp_1")
    pen.answer(fourth, "brown", dollars="0.5")
    pen.journal.result(fourth, "ok", value="brown")
    fifth = pen.call("lost")
    pen.ask(fifth, "gin?")
    return pen
