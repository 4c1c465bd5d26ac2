"""What holds of every summary and of the request that is sent behind it, whatever was said, and whatever the model makes of it."""

from __future__ import annotations

import asyncio
import dataclasses
import math
from collections.abc import Sequence
from typing import Any

from hypothesis import assume, given
from hypothesis import strategies as st

from nodes.errors import ModelError
from runtime.context import items as window_items
from runtime.context import request as context_request
from runtime.context import summaries, window
from runtime.log import entries as log_entries
from runtime.messages import estimates
from runtime.messages.messages import Answer, Message, Request, ToolCall, ToolOutput, Usage
from runtime.models import requests
from runtime.models.client.errors import Failed
from tests import talks
from tests import window_draws as draws
from tests.windows import MODEL, Talk

MODEL_SAYS = st.lists(
    st.sampled_from(["They asked for tea.", "", "Order 1007 was not paid. " * 200, "茶" * 900])
    | st.builds(lambda: Failed(ModelError("model-refused", "the model will not"))),
    min_size=1,
    max_size=4,
)
"""What a model makes of what it is to sum up: a sentence, nothing, too much, or it fails. One after the other, and again from the first."""

ROOM = {"max_messages": None, "max_chars": None, "hard_limit": None, "compress_at": 10**6, "warn_at": 10**6}
"""Limits under which nothing is left out."""


@dataclasses.dataclass
class Summing:
    """A frame of a talk's requests, and the model that sums up."""

    talk: Talk
    around: window.RequestFrame
    limits: window.Limits
    says: Sequence[str | Exception]
    asked: list[Request] = dataclasses.field(default_factory=list[Request])
    """What it was asked."""

    def __post_init__(self) -> None:
        self._models = talks.Supply(self._answer, self.asked)
        self._frame = context_request.Frame(
            self.talk.writer,
            self.talk.thread,
            lambda: self.around,
            lambda: self.limits,
            max_output=500,
            asks=self._asks,
        )

    def _answer(self, _request: Request) -> Answer | Exception:
        said = self.says[len(self.asked) % len(self.says)]
        return said if isinstance(said, Exception) else Answer(said, Usage(900, 0, 50, 0), "summing-model")

    def _asks(self, thread: str) -> requests.Exchanges:
        requester = requests.RequestScope("summary", thread, "summary", lambda: math.inf, lambda _what: None)
        return requests.Exchanges(self._models, self.talk.writer, requester, None, None)

    def request(self) -> Request | None:
        """The next request; None where it is refused."""
        try:
            return asyncio.run(self._frame.request(MODEL))
        except ModelError:
            return None

    @property
    def rung(self) -> window.Rung:
        """What came of the last try to sum up."""
        assert self._frame.report is not None
        return self._frame.report.rungs[2]

    @property
    def summaries(self) -> list[log_entries.Summary]:
        """All that were ever written."""
        entries = self.talk.store.reader.read(self.talk.writer.conversation.id).entries
        return [each for each in entries if isinstance(each, log_entries.Summary)]

    @property
    def room(self) -> int:
        """Tokens that the thread may have, or at which it is summed up; 0 where nothing can be sent."""
        try:
            room = window.build(self.talk.items, self.around, self.limits).report.room
        except ModelError:
            return 0
        return min(room, self.limits.checkpoint_at or room)

    @property
    def tokens(self) -> int:
        """Tokens of the thread with its summary, without the newest word."""
        thread = self.talk.items
        word = (
            thread.word.size(pointers=False).tokens if thread.word is not None and thread.newest_word is not None else 0
        )
        summary = thread.summary.size(pointers=False).tokens if thread.summary is not None else 0
        return thread.tokens_before(len(thread)) + summary - word


@draws.often
@given(draws.cases(), MODEL_SAYS, st.integers(1, 5_000) | st.none())
def test_what_is_sent_is_the_window_of_what_the_log_holds_then(
    case: draws.Case, says: list[str | Exception], checkpoint: int | None
) -> None:
    """With a summary or without one: another process would send the same; no request, that for the summary included, has more tokens than it may."""
    talk, around, limits = case
    limits = limits.model_copy(update={"checkpoint_at": checkpoint, "compress_to": 2_000})
    summing = Summing(talk, around, limits, says)
    request = summing.request()
    assume(request is not None)
    assert request is not None
    built = window.build(Talk.read(talk).items, around, limits)
    sent = (request.instructions, request.items, request.tools, request.state)
    assert sent == (built.instructions, built.items, built.tools, built.state)
    assert max(map(estimates.tokens, [*summing.asked, request])) <= (limits.hard_limit or limits.compress_at)
    if limits.overflow == "prune":
        assert not summing.asked


@draws.often
@given(draws.talks((4, 12)), st.integers(500, 4_000) | st.none(), st.integers(60, 2_000), st.integers(1, 6), MODEL_SAYS)
def test_a_summary_has_its_share_and_leaves_what_is_recent(
    talk: Talk, hard: int | None, checkpoint: int, recent: int, says: list[str | Exception]
) -> None:
    """It has no more tokens than its limit, and a third of the conversation's share of a hard one; the newest messages are in none; the one before it is not summed up alone, unless it has no room."""
    update: dict[str, Any] = {**ROOM, "hard_limit": hard, "checkpoint_at": checkpoint, "min_recent": recent}
    limits = window.Limits.model_validate({**update, "compress_to": 1_000})
    around = window.RequestFrame((window.Part("rules", "Answer."),))
    summing = Summing(talk, around, limits, says)
    for number in range(4):
        before, its = talk.writer.history.thread(talk.thread).summary, talk.items.summary
        fits = its is not None and its.size(pointers=False).tokens <= summing.room // 2
        messages = _messages(talk.items)
        request = summing.request()
        now = talk.writer.history.thread(talk.thread).summary
        if request is not None and now is not None and now is not before:
            tokens = window_items.size_of(window_items.SUMMED_UP + talk.writer.text_of(now)).tokens
            assert tokens <= limits.compress_to
            if hard is not None:
                assert tokens <= hard * window.CONVERSATION / 100 * summaries.SHARE / 100
            if before is not None:
                assert now.upto >= before.upto
                assert now.upto > before.upto or not fits
            assert _messages(talk.items) >= min(messages, recent)
        for _more in range(number * 2):
            talk.answers(f"answer {number}, which is somewhat long. " * 8)
            talk.says(f"word {number}")


@draws.often
@given(draws.talks(), st.integers(1, 4), st.integers(200, 3_000), st.integers(1, 8))
def test_nothing_is_lost_that_no_summary_has_seen(talk: Talk, rounds: int, checkpoint: int, recent: int) -> None:
    """Where there is room, each thing that was said is in the request, or was shown to the model whose summary stands for it; so is the summary before that one."""
    limits = window.Limits.model_validate(
        {
            **ROOM,
            "min_recent": recent,
            "checkpoint_at": checkpoint,
            "compress_to": 900,
        }
    )
    summing = Summing(talk, window.RequestFrame((window.Part("rules", "Answer."),)), limits, ["Tea was asked for."])
    for number in range(rounds):
        before = talk.items
        summary = before.summary
        count = len(summing.asked)
        said = [before[each].items(pointers=False) for each in range(len(before))]
        request = summing.request()
        assert request is not None
        shown = [each for asked in summing.asked[count:] for each in asked.items]
        seen = [_told(each) for each in (*request.items, *shown)]
        # What had come of the last answer is told only where something follows it.
        while said and before[len(said) - 1].what == "error":
            said.pop()
        assert all(_told(each) in seen for items in said for each in items)
        if summary is not None:
            assert all(_told(each) in seen for each in summary.items(pointers=False))
        talk.answers(f"answer {number}")
        talk.says(f"word {number} " * 80)


@draws.often
@given(draws.talks(), st.integers(-3, 3) | st.integers(-2_000, 2_000), st.integers(1, 8))
def test_a_checkpoint_is_tried_once_enough_was_said_and_not_before(talk: Talk, more: int, recent: int) -> None:
    """Where there is room the model is asked only if the thread has more tokens than ``checkpoint_at``, without the newest word; and then it is, if that is worth it."""
    summing = Summing(talk, window.RequestFrame((window.Part("rules", "Answer."),)), window.Limits(), ["Tea."])
    tokens = summing.tokens
    assume(tokens + more > 0)
    update: dict[str, Any] = {**ROOM, "checkpoint_at": tokens + more, "min_recent": recent}
    summing.limits = window.Limits.model_validate(update)
    summing.request()
    if more >= 0:
        assert summing.rung.outcome == "not needed"
        assert not summing.asked
    else:
        assert summing.rung.outcome != "not needed"


def _messages(thread: window.Pieces) -> int:
    """Messages of all pieces."""
    return sum(thread[number].size(pointers=False).messages for number in range(len(thread)))


def _told(item: Message | ToolCall | ToolOutput) -> object:
    return item.id if isinstance(item, ToolOutput) else item
