"""Properties of every summary and of the request after it, for any thread and any answer of the model."""

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
from runtime.context import window
from runtime.log import entries as log_entries
from runtime.messages import estimates
from runtime.messages.messages import Answer, Item, Request, Thought, ToolOutput, Usage
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
"""The model's summaries, in a cycle: a sentence, nothing, too much, or an error."""

ROOM = {"max_messages": None, "max_chars": None, "hard_limit": None, "compress_at": 10**6, "warn_at": 10**6}
"""Limits under which nothing is dropped."""


@dataclasses.dataclass
class Summing:
    """A frame of a talk's requests, and the model that writes the summaries."""

    talk: Talk
    around: window.RequestFrame
    limits: window.Limits
    says: Sequence[str | Exception]
    asked: list[Request] = dataclasses.field(default_factory=list[Request])
    """The requests that it got."""

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
    def report(self) -> window.Report:
        """The report of the last request."""
        assert self._frame.report is not None
        return self._frame.report

    @property
    def rung(self) -> window.Reduction:
        """The outcome of the last attempt to sum up."""
        assert self._frame.report is not None
        return self._frame.report.rungs[2]

    @property
    def summaries(self) -> list[log_entries.Summary]:
        """All summaries ever written."""
        entries = self.talk.store.reader.read(self.talk.writer.conversation.id).entries
        return [each for each in entries if isinstance(each, log_entries.Summary)]

    @property
    def room(self) -> int:
        """The tokens that the thread may have before it is summed up; 0 where nothing can be sent."""
        try:
            room = window.build(self.talk.items, self.around, self.limits).rest.tokens
        except ModelError:
            return 0
        return min(room, self.limits.checkpoint_at or room)

    @property
    def tokens(self) -> int:
        """The tokens of the thread with its summary, without the newest message."""
        thread = self.talk.items
        word = (
            thread.word.size(pointers=False).tokens if thread.word is not None and thread.newest_word is not None else 0
        )
        summary = thread.summary.size(pointers=False).tokens if thread.summary is not None else 0
        return thread.tokens_before(len(thread)) + summary - word


@draws.often
@given(draws.cases(), MODEL_SAYS, st.integers(1, 5_000) | st.none())
def test_the_request_is_the_window_of_the_log(
    case: draws.Case, says: list[str | Exception], checkpoint: int | None
) -> None:
    """With a summary or without, another process builds the same request from the log. Every request keeps to its token limit."""
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
def test_a_summary_keeps_to_its_limit_and_spares_recent_messages(
    talk: Talk, hard: int | None, checkpoint: int, recent: int, says: list[str | Exception]
) -> None:
    """A summary keeps to its limit and share, and excludes the newest messages. It covers more than the previous one, unless that one did not fit."""
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
                assert tokens <= hard * 43 / 100 * 33 / 100
            if before is not None:
                assert now.upto >= before.upto
                assert now.upto > before.upto or not fits
            # Under a hard limit even the newest may not fit.
            assert hard is not None or _messages(talk.items) >= min(messages, recent)
        for _more in range(number * 2):
            talk.answers(f"answer {number}, which is somewhat long. " * 8)
            talk.says(f"word {number}")


@draws.often
@given(draws.talks(), st.integers(1, 4), st.integers(200, 3_000), st.integers(1, 8))
def test_nothing_is_lost_that_no_summary_has_seen(talk: Talk, rounds: int, checkpoint: int, recent: int) -> None:
    """With enough room, every message and the previous summary is in the request, or was shown to the model that summed it up."""
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
        seen = [None, *(_shown(each) for each in (*request.items, *shown))]
        # A partial answer is sent only if something follows it.
        while said and before[len(said) - 1].what == "error":
            said.pop()
        assert all(_shown(each) in seen for items in said for each in items)
        if summary is not None:
            assert all(_shown(each) in seen for each in summary.items(pointers=False))
        talk.answers(f"answer {number}")
        talk.says(f"word {number} " * 80)


@draws.often
@given(draws.cases(), MODEL_SAYS, st.integers(100, 3_000) | st.none(), st.integers(2, 20) | st.none())
def test_every_message_is_sent_or_summed_up_or_named_as_lost(
    case: draws.Case, says: list[str | Exception], checkpoint: int | None, messages: int | None
) -> None:
    """A message is in the request, or a model summed it up, or the report names it as lost. Where summaries are made, none is lost.

    With the limits that the report names none would be lost either.
    """
    talk, around, limits = case
    limits = limits.model_copy(
        update={"checkpoint_at": checkpoint, "checkpoint_messages": messages, "compress_to": 1_000}
    )
    summing = Summing(talk, around, limits, says)
    before, summary = talk.items, talk.items.summary
    said = [before[number] for number in range(len(before))]
    request = summing.request()
    assume(request is not None)
    assert request is not None
    report = summing.report
    seen = [
        None,
        *(_shown(each) for each in (*request.items, *(one for asked in summing.asked for one in asked.items))),
    ]
    while said and said[-1].what == "error":
        said.pop()
    if summary is not None:
        said.append(summary)
    missing = [
        item
        for item in said
        if (item.what != "events" or limits.events)
        and not all(_shown(each) in seen for each in item.items(pointers=False))
    ]
    assert bool(missing) <= bool(report.lost)
    if report.lost:
        assert limits.overflow == "prune" or summing.rung.outcome == "failed"
        assert report.enough
        enough = limits.model_copy(update=dict(report.enough))
        assert not window.build(talk.items, around, enough).report.lost


@draws.often
@given(draws.talks(), st.integers(-3, 3) | st.integers(-2_000, 2_000), st.integers(1, 8))
def test_a_checkpoint_is_tried_exactly_beyond_its_threshold(talk: Talk, more: int, recent: int) -> None:
    """With enough room, a summary is tried exactly when the thread, without the newest message, exceeds ``checkpoint_at``."""
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
    """The number of messages of all window items."""
    return sum(thread[number].size(pointers=False).messages for number in range(len(thread)))


def _shown(item: Item) -> object:
    """What must be in a request of an item; nothing of reasoning that another model has encrypted."""
    if isinstance(item, Thought):
        return None
    return item.id if isinstance(item, ToolOutput) else item
