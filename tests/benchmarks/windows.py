"""The window of a long session against that of a short one: both end with the same messages, so the windows are equal."""

from __future__ import annotations

from pathlib import Path

from runtime import testing
from runtime.context import items, window
from runtime.log import entries as log_entries
from runtime.log import session as log_session
from runtime.log.writer import Texts
from tests.benchmarks import pairs

LONG, SHORT = 300_000, 1_000
BUILDS = 20
"""Windows built for one measurement: a single one is too fast to measure."""

LIMITS = window.Limits(max_messages=80)

AROUND = window.RequestFrame((window.Part("rules", "Answer from what you are told."),))


def session(entries: int) -> log_session.Session:
    """A session of so many entries, the last of them a message, folded from its log."""
    folded = log_session.Session()
    header = log_entries.SessionHeader(purpose="chat", versions={})
    folded.add(log_entries.Scope(seq=1, path="", event="opened", node="session", session=header))
    for number in range(2, entries + 1):
        rolled_back = (entries - number) % 20
        text = f"What is behind {rolled_back}? " * 8
        said = (
            log_entries.User(mode="chat")
            if rolled_back % 2 == 0
            else log_entries.Assistant(key="", source="model", model="m")
        )
        more = {"seq": number, "thread": log_entries.SESSION_THREAD, "text": text, "tokens": 60, "chars": len(text)}
        folded.add(said.model_copy(update=more))
    return folded


async def measure(folder: Path, count: int, warm: int, entries: int = LONG) -> pairs.Comparison:
    """Compare building the window of both, loaded; fails where they are not the same."""
    texts = Texts(testing.MemoryStore(folder).reader)
    long, short = session(entries), session(SHORT)

    def built(folded: log_session.Session) -> window.Window:
        return window.build(items.Thread(folded.thread(log_entries.SESSION_THREAD), texts), AROUND, LIMITS)

    assert built(long).items == built(short).items
    assert len(built(long).items) == 80

    async def build(folded: log_session.Session) -> None:
        for _time in range(BUILDS):
            built(folded)

    return await pairs.compare(lambda: build(long), lambda: build(short), pairs=count, warm=warm)
