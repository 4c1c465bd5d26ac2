"""Sessions written directly into a log: every kind of message, action, state and cost in one."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Literal

from hypothesis import strategies as draw

from director.session import open as open_session
from nodes.values import Json
from runtime.log import entries, session
from runtime.log.store import file_store
from runtime.log.store import store as log_store
from runtime.log.writer import LogWriter
from runtime.messages.messages import ToolCall
from runtime.secrets import masking
from tests.now import keeper, let_go, now

USAGE = entries.Usage(input=1000, cached=0, output=100, reasoning=0)
LARGE = "a large output " * 500
"""Large enough for a blob."""

End = Literal["told", "result", "called", "asked"]
"""The progress of a call: its output was shown to the model; it has a result; it was begun; it was requested."""


@dataclasses.dataclass(frozen=True)
class Step:
    """One event of a session."""

    what: Literal["says", "answers", "event", "keeps", "clears", "sums", "fails", "retries", "delegates", "waits"]
    text: str = "x"
    calls: int = 0


def header(**more: Json) -> entries.SessionHeader:
    """The header of a chat."""
    return entries.SessionHeader(purpose="chat", versions={"runops": "0"}, **more)


class Hand:
    """Writes a session."""

    def __init__(self, store: file_store.Files | log_store.Store, **more: Json) -> None:
        """Start it; ``more`` is in its header."""
        self.store = store
        self.writer = now(open_session.begin(keeper(store), header(**more), masking.Masker({})))
        self.id = self.writer.conversation.id
        self._calls = 0

    def says(self, text: str) -> None:
        """Add a message of the person."""
        self.writer.said(entries.User(thread=entries.SESSION_THREAD, mode="chat"), text, "")

    def asks(self, thread: str = entries.SESSION_THREAD) -> None:
        """A request is announced."""
        data: dict[str, Json] = {
            "key": "k" * 64,
            "model": "m",
            "estimate": 90,
            "raw": 90,
            "limit": 500,
            "seconds": 60.0,
            "try": 1,
        }
        self.writer.noted("requested", data, thread)

    def answers(
        self, text: str, tools: Sequence[str] = (), end: End = "told", thread: str = entries.SESSION_THREAD
    ) -> list[entries.Call]:
        """Add an answer of the model that calls ``tools``; the last call progresses to ``end``. Returns the calls begun."""
        self.asks(thread)
        self.writer.said(entries.Reasoning(thread=thread, text=""), "It thinks.", "")
        asked = [ToolCall(f"a{self._calls + each}", name, '{"which": "all"}') for each, name in enumerate(tools, 1)]
        answer = entries.Assistant(
            thread=thread,
            key="k" * 64,
            source="model",
            model="m-1",
            response="r1",
            usage=USAGE,
            dollars="0.25",
            seconds=1.5,
        )
        self.writer.said(answer, text, "", asked)
        begun: list[entries.Call] = []
        for place, each in enumerate(asked, 1):
            self._calls += 1
            how: End = end if place == len(asked) else "told"
            if how == "asked":
                continue
            path = f"{self._above(thread)}{self._calls}_{each.name}"
            call = entries.Call(
                thread=thread,
                path=path,
                node="session",
                action=each.name,
                asked=each.id,
                attempt=1,
                effect="read",
                args={"which": "all", "type": None},
                fingerprint="f",
            )
            begun.append(self.writer.call(call))
            if how == "called":
                continue
            self.writer.result(begun[-1], "ok", value=text, seconds=0.5)
            if how == "told":
                self.writer.said(entries.ToolResult(thread=thread, asked=each.id), text or "nothing", path)
        return begun

    def _above(self, thread: str) -> str:
        return f"{self.writer.history.path_of(thread)}/" if thread != entries.SESSION_THREAD else ""

    def sends(self, text: str) -> None:
        """Add a delegate, which asks its model once and sets a variable."""
        self.asks()
        answer = entries.Assistant(
            thread=entries.SESSION_THREAD,
            key="k" * 64,
            source="model",
            model="m-1",
            usage=USAGE,
            dollars="0.25",
            seconds=1.5,
        )
        self._calls += 1
        asked = ToolCall(f"a{self._calls}", "delegate", '{"goal": "Look."}')
        self.writer.said(answer, "", "", [asked])
        call = entries.Call(
            thread=entries.SESSION_THREAD,
            path=f"{self._calls}_delegate",
            node="session",
            action="delegate",
            asked=asked.id,
            attempt=1,
            effect="read",
            args={"goal": "Look."},
            fingerprint="f",
        )
        call = self.writer.call(call)
        thread = entries.delegate_thread(call.call)
        self.writer.said(entries.User(thread=thread), "Look.", call.path)
        self.keeps("variable", "seen", text, thread=thread)
        self.answers(text, thread=thread)
        self.writer.result(call, "ok", value=text, seconds=2.5)
        self.writer.said(
            entries.ToolResult(thread=entries.SESSION_THREAD, asked=asked.id), text or "nothing", call.path
        )

    def keeps(
        self, of: str, name: str, value: Json, *, thread: str = entries.SESSION_THREAD, clear: bool = False
    ) -> None:
        """Add a further version of a part of the state."""
        number = len(self.writer.history.versions(of, name)) + 1
        version = entries.Version.model_validate(
            {
                "thread": thread,
                "of": of,
                "name": name,
                "number": number,
                "reason": "seen",
                "by": "model",
                "cleared": clear or None,
            }
        )
        self.writer.version(version, None if clear else value, f"{of}/{number}")

    def fails(self, text: str, *, again: float | None = None) -> None:
        """Add a failed request."""
        self.asks()
        error: dict[str, Json] = {"code": "model-failed", "who": "model", "message": "the server failed"}
        entry = entries.ModelError(
            thread=entries.SESSION_THREAD, error=error, usage=USAGE, dollars="0.1", seconds=1.0, again=again
        )
        self.writer.said(entry, text, "")

    def sums(self, text: str) -> None:
        """Add a summary of the messages so far, by a model."""
        upto = self.writer.history.last_seq
        self.answers(text, thread=entries.summary_thread(entries.SESSION_THREAD, 1))
        self.writer.said(entries.Summary(thread=entries.SESSION_THREAD, upto=upto), text, "summary")

    def happens(self, text: str, run: str | None = None) -> None:
        """Add an action of the person besides messages."""
        self.writer.said(entries.Event(thread=entries.SESSION_THREAD, run=run), text, "event")

    def does(self, step: Step) -> None:
        """Let it happen."""
        match step.what:
            case "says":
                self.says(step.text)
            case "answers":
                self.answers(step.text, ["get_workflow_nodes"] * step.calls)
            case "event":
                self.happens(step.text)
            case "keeps":
                self.keeps("variable", "total", step.text)
            case "clears":
                self.keeps("variable", "total", None, clear=True)
            case "sums":
                self.sums(step.text)
            case "fails":
                self.fails(step.text)
            case "retries":
                self.fails(step.text, again=0.5)
            case "delegates":
                self.sends(step.text)
            case "waits":
                self.asks()

    def closed(self) -> str:
        """Its id; it has no owner any more."""
        let_go(self.writer.conversation)
        return self.id


ABOUT = "01JD0000000000000000000004"
"""A run that does not exist."""


def everything(store: file_store.Files | log_store.Store, end: End = "told", run: str = ABOUT, **more: Json) -> str:
    """The id of an unowned session with everything that can happen. Its last call progressed to ``end``, and it is finally about ``run``."""
    hand = Hand(store, **more)
    hand.keeps("mode", "", "agent")
    hand.keeps("plan", "", PLAN)
    hand.keeps("description", "", "Pay what is open.")
    hand.says("What does it do?")
    hand.answers("Let me look.", ["get_workflow_nodes", "get_current_plan"])
    hand.answers("It pays.\nAll of it.")
    hand.happens("/run pay.yaml: failed", run=run)
    hand.says("Why did it fail?")
    hand.fails("Beca", again=0.5)
    hand.fails("Because it")
    hand.sums("The person asks why it failed.")
    hand.says("continue")
    hand.sends("There was no button.")
    hand.keeps("variable", "total", 12.5)
    hand.keeps("variable", "rows", [LARGE, 2])
    hand.answers(LARGE, ["get_workflow_nodes"], end)
    return hand.closed()


PLAN: Json = {
    "overall_goal": "Pay the open orders",
    "current_phase": "Look",
    "phases": [
        {
            "phase_name": "Look",
            "status": "in_progress",
            "tasks": [
                {
                    "task_id": "t1",
                    "description": "Sign in",
                    "status": "completed",
                    "notes": "",
                    "node_ids": ["sign_in"],
                },
                {"task_id": "t2", "description": "Find them", "status": "in_progress", "notes": "", "node_ids": []},
                {"task_id": "t3", "description": "Pay", "status": "pending", "notes": "", "node_ids": []},
            ],
        }
    ],
    "blockers": [],
    "notes": "",
}

_TEXTS = draw.sampled_from(["", "A word.", "Another word, with two lines.\nThe second.", LARGE])
STEPS = draw.lists(
    draw.builds(
        Step,
        draw.sampled_from(
            ["says", "answers", "event", "keeps", "clears", "sums", "fails", "retries", "delegates", "waits"]
        ),
        _TEXTS,
        draw.integers(0, 3),
    ),
    max_size=12,
)
"""Events that may happen in a session."""


def reopened(store: file_store.Files | log_store.Store, conversation: str) -> LogWriter[session.Session]:
    """The session, owned again."""
    return now(open_session.reopen(keeper(store), conversation, masking.Masker({})))
