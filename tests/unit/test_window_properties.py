"""Properties of every window, for any thread, request frame and limits."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Sequence

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from nodes.errors import ModelError
from runtime.context import items as window_items
from runtime.context import summaries, window
from runtime.log import entries, threads
from runtime.log.writer import chars_of
from runtime.messages import estimates
from runtime.messages.messages import Item, Message, Thought, ToolCall, ToolOutput
from runtime.models.client import client
from runtime.testing.responses import rules
from tests import window_draws as draws
from tests.windows import MODEL, Talk, request


def budget(limits: window.Limits) -> int:
    """The tokens that a request may have."""
    return limits.hard_limit or limits.compress_at


def newest_message(talk: Talk) -> entries.User:
    """The newest user message."""
    return next(
        each for each in reversed(talk.writer.history.thread(talk.thread).said) if isinstance(each, entries.User)
    )


def alone(talk: Talk, around: window.RequestFrame) -> int:
    """The tokens of the prefix and the newest message alone."""
    message = Message("user", talk.writer.text_of(newest_message(talk)) or "(nothing)")
    built = window.Window(
        "\n\n".join(each.text for each in around.prefix if each.text and not each.on_tools), (message,), (), "", EMPTY
    )  # fmt: skip
    return estimates.tokens(request(built))


EMPTY = window.Report(0, (), (), ())


def built(talk: Talk, around: window.RequestFrame, limits: window.Limits) -> window.Window | None:
    """The window; None where it is refused."""
    if alone(talk, around) > budget(limits):
        with pytest.raises(ModelError, match="nothing was sent"):
            window.build(talk.items, around, limits)
        return None
    return window.build(talk.items, around, limits)


def lines(items: Sequence[Item], talk: Talk) -> list[int]:
    """The log line of each call in a window, in the window's order."""
    of = {each.id: entry.answer.seq for entry in exchanges(talk) for each in entry.answer.calls or ()}
    return [of[each.id] for each in items if isinstance(each, ToolCall)]


def exchanges(talk: Talk) -> list[threads.Exchange]:
    """Every answer of the thread, with the results of its calls."""
    return [each for each in talk.writer.history.thread(talk.thread).said if isinstance(each, threads.Exchange)]


@draws.often
@given(draws.cases())
def test_a_window_is_refused_only_where_prefix_and_message_are_too_large(case: draws.Case) -> None:
    """A window is refused exactly where the prefix and the newest message alone exceed the budget."""
    talk, around, limits = case
    assert (built(talk, around, limits) is None) == (alone(talk, around) > budget(limits))


@draws.often
@given(draws.cases())
def test_a_request_has_no_more_tokens_than_it_may(case: draws.Case) -> None:
    """Instructions, tools, thread and state together keep to the budget. With a hard limit the margin stays free where possible."""
    talk, around, limits = case
    found = built(talk, around, limits)
    assume(found is not None)
    assert found is not None
    tokens = estimates.tokens(request(found))
    assert tokens <= budget(limits)
    if limits.hard_limit is not None:
        free = limits.hard_limit - limits.hard_limit * limits.shares.free // 100
        assert tokens <= max(free, alone(talk, around))


@draws.often
@given(draws.cases())
def test_a_request_has_no_more_messages_and_characters_than_it_may(case: draws.Case) -> None:
    """Calls and outputs count as messages; only the newest message alone may exceed the limits."""
    talk, around, limits = case
    found = built(talk, around, limits)
    assume(found is not None)
    assert found is not None
    chars = sum(map(chars_of, found.items))
    message = chars_of(Message("user", talk.writer.text_of(newest_message(talk)) or "(nothing)"))
    assert limits.max_messages is None or len(found.items) <= max(1, limits.max_messages)
    assert limits.max_chars is None or chars <= max(message, limits.max_chars)


@draws.often
@given(draws.cases())
def test_the_sections_of_the_report_are_the_request(case: draws.Case) -> None:
    """The report has exactly the request's tokens, and lists the tools and exchanges that were left out."""
    talk, around, limits = case
    found = built(talk, around, limits)
    assume(found is not None)
    assert found is not None
    report = found.report
    assert report.tokens == estimates.tokens(request(found))
    assert report.limit == budget(limits)
    names = [each.what for each in report.left]
    assert len(found.tools) + sum(each.startswith("tool ") for each in names) == len(around.tools)
    assert [each.name for each in report.rungs] == ["pointers", "dropped"]
    dropped = report.rungs[1]
    assert (dropped.outcome == "saved") == any(each.endswith(window.OLDEST) for each in names)
    assert all(each.tokens >= 0 and each.why for each in report.left)
    assert report.wanted >= report.tokens - report.sections[-1].tokens


@draws.often
@given(draws.cases())
def test_a_server_takes_the_request(case: draws.Case) -> None:
    """Every call has one output, every output its call, and no item is empty, as the API demands."""
    talk, around, limits = case
    found = built(talk, around, limits)
    assume(found is not None)
    assert found is not None
    sent = rules.items_of([client._item(each) for each in found.items])
    rules.check_thread(sent, ())
    body = {"model": MODEL, "input": sent, "tools": [client._tool(each, True) for each in found.tools]}
    rules.check_format(rules.check_fields(body, rules.OPENAI), rules.OPENAI)
    for each in found.items:
        if not isinstance(each, Thought):
            assert each.arguments if isinstance(each, ToolCall) else each.text


@draws.often
@given(draws.cases())
def test_the_newest_message_is_sent_whole(case: draws.Case) -> None:
    """The newest message is in the window unchanged, also where a summary covers it."""
    talk, around, limits = case
    found = built(talk, around, limits)
    assume(found is not None)
    assert found is not None
    message = talk.writer.text_of(newest_message(talk)) or "(nothing)"
    assert Message("user", message) in found.items
    assert found.report.sections[-1].messages == 1


@draws.often
@given(draws.cases())
def test_exchanges_are_whole_and_in_order(case: draws.Case) -> None:
    """An answer is sent with its text, calls and outputs or not at all, oldest first, without gaps after the oldest."""
    talk, around, limits = case
    found = built(talk, around, limits)
    assume(found is not None)
    assert found is not None
    sent = {each.id: each.text for each in found.items if isinstance(each, ToolOutput)}
    kept = lines(found.items, talk)
    assert kept == sorted(kept)
    first = kept[0] if kept else None
    for exchange in exchanges(talk):
        calls = talk.writer.calls_of(exchange.answer)
        present = [each for each in calls if each in found.items]
        assert present in ([], list(calls))
        if first is not None and exchange.answer.seq >= first:
            assert present == list(calls)
        text = talk.writer.text_of(exchange.answer)
        if present and text:
            said = [each for each in found.items if not isinstance(each, Thought)]
            assert said[said.index(calls[0]) - 1] == Message("assistant", text)
        for thought in talk.writer.thoughts_of(exchange.answer) if present else ():
            assert found.items[found.items.index(thought) + 1] == calls[0]
        for call in present:
            entry = exchange.done[call.id].output
            whole = talk.writer.text_of(entry) if entry is not None else "(open: no outcome is recorded)"
            pointed = entry is not None and sent[call.id].startswith("(left out: ") and len(sent[call.id]) < len(whole)
            assert sent[call.id] == (whole or "(nothing)") or pointed


@draws.often
@given(draws.cases())
def test_unwanted_events_and_outputs_are_left_out(case: draws.Case) -> None:
    """Without `events` none is sent; with it consecutive ones are one message. Without `tool_results` no long output is sent."""
    talk, around, limits = case
    found = built(talk, around, limits)
    assume(found is not None)
    assert found is not None
    happened = [isinstance(each, Message) and each.text.startswith("(Not said, but") for each in found.items]
    assert limits.events or not any(happened)
    assert not any(one and other for one, other in itertools.pairwise(happened))
    if not limits.tool_results:
        assert all(len(each.text) < 400 for each in found.items if isinstance(each, ToolOutput))


@draws.often
@given(draws.cases(), st.integers(1, 5_000))
def test_recent_outputs_are_whole_and_old_ones_are_pointers(case: draws.Case, recent: int) -> None:
    """With room for all, outputs within ``recent`` tokens and the last are whole; those beyond twice as many are pointers."""
    talk, around, limits = case
    found = built(talk, around, wide(limits).model_copy(update={"recent_outputs": recent}))
    assert found is not None
    shown = {each.id: each.text for each in found.items if isinstance(each, ToolOutput)}
    all_of_them = talk.items
    everything = all_of_them.tokens_before(len(all_of_them))
    for number in range(len(all_of_them)):
        item = all_of_them[number]
        since = everything - all_of_them.tokens_before(number)
        for whole, short in zip(item.items(pointers=False), item.items(pointers=True), strict=True):
            if isinstance(whole, ToolOutput) and isinstance(short, ToolOutput):
                if since <= recent or number == len(all_of_them) - 1:
                    assert shown[whole.id] == whole.text
                elif since > 2 * recent:
                    assert shown[whole.id] == short.text


@draws.often
@given(draws.talks(), st.integers(20, 3_000), st.floats(0, 1))
def test_the_recent_part_moves_in_steps(talk: Talk, recent: int, begins: float) -> None:
    """While fewer than ``recent`` tokens come, only the formerly newest output becomes a pointer; none becomes whole again."""
    around, limits = window.RequestFrame(()), wide(window.Limits()).model_copy(update={"recent_outputs": recent})
    thread = talk.items
    first = int(begins * len(thread))
    before: set[str] = set()
    for end in range(first + 1, min(first + 8, len(thread)) + 1):
        part = summaries.Older(thread, end, 0)
        items = window.build(part, around, limits).items
        pointers = {each.id for each in items if isinstance(each, ToolOutput) and each.text.startswith("(left out: ")}
        assert before <= pointers
        if end > first + 1 and part.tokens_before(end) // recent == part.tokens_before(end - 1) // recent:
            last = {each.id for each in thread[end - 2].items(pointers=True) if isinstance(each, ToolOutput)}
            assert pointers - before <= last
        before = pointers


@draws.often
@given(draws.cases())
def test_a_window_is_deterministic_and_changes_nothing(case: draws.Case) -> None:
    """Building a window twice, or from the log read again, gives the same window and leaves the log unchanged."""
    talk, around, limits = case
    before = repr(talk.writer.history.thread(talk.thread)), talk.store.reader.read(talk.writer.conversation.id).entries
    first = built(talk, around, limits)
    assert built(talk, around, limits) == first
    assert before == (
        repr(talk.writer.history.thread(talk.thread)),
        talk.store.reader.read(talk.writer.conversation.id).entries,
    )
    again = Talk.read(talk)
    assert built(again, around, limits) == first


@draws.often
@given(draws.cases())
def test_without_a_limit_everything_is_sent(case: draws.Case) -> None:
    """Nothing is dropped where there is room for all of it, and no rung is needed."""
    talk, around, limits = case
    found = built(talk, around, wide(limits))
    assert found is not None
    assert [each.outcome for each in found.report.rungs] == ["not needed", "not needed"]
    assert found.report.left == ()
    assert found.tools == around.tools


def wide(limits: window.Limits) -> window.Limits:
    """The same limits with room for everything."""
    none = {
        "max_messages": None,
        "max_chars": None,
        "hard_limit": None,
        "compress_at": 10**8,
        "recent_outputs": None,
    }
    return limits.model_copy(update={**none, "tool_results": True, "events": True})


@pytest.mark.parametrize("strict", [True, False])
def test_a_long_thread_costs_no_more_than_its_window(strict: bool) -> None:
    """Building a window reads only the items that it contains and at most two more."""
    talk = Talk()
    for number in range(3_000):
        talk.says(f"question {number}")
        talk.answers(f"answer {number}")
    read: list[int] = []

    class Counted(window_items.Thread):
        def __getitem__(self, number: int, /) -> window.WindowItem:
            read.append(number)
            return super().__getitem__(number)

    found = window.build(
        Counted(talk.writer.history.thread(talk.thread), talk.writer),
        window.RequestFrame((window.Part("rules", "Answer."),)),
        window.Limits(hard_limit=1_500 if strict else None, max_messages=60),
    )
    assert 30 < len(found.items) <= 60
    assert len(set(read)) <= len(found.items) + 2
    assert dataclasses.asdict(found.report)["left"][0]["tokens"] > 10_000
