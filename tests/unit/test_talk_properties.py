"""Properties of every session, for any script and window: its log, the requests after a crash or a fork, and its cost."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from unittest import mock

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from director.conversation import reply
from director.session import events
from director.session import open as open_session
from director.session.state import SessionState
from nodes.errors import ModelError
from runtime.context import window
from runtime.log import entries as log_entries
from runtime.log import ledger
from runtime.messages.messages import Answer, Item, Request, Thought, ToolCall, ToolOutput, Usage
from runtime.models import requests as models_requests
from runtime.models.client.errors import Failed
from runtime.secrets import masking
from tests import breadth, talks
from tests.now import now
from tests.unit.test_delegate import TASKS, by_task, sending
from tests.unit.test_reply_crashes import ANSWERS, answered, spoken

some = settings(
    max_examples=breadth.of(5, 10),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)

Script = Sequence[Answer | Exception]

WINDOWS: dict[str, st.SearchStrategy[Any]] = {
    "strategy": st.sampled_from(["injected", "clean", "hybrid"]),
    "tool_results": st.booleans(),
    "events": st.booleans(),
    "max_messages": st.none() | st.integers(2, 20),
    "max_chars": st.none() | st.integers(200, 10_000),
    "recent_outputs": st.none() | st.integers(1, 500),
    "checkpoint_at": st.none() | st.integers(100, 2_000),
    "compress_to": st.integers(100, 1_000),
    "min_recent": st.integers(1, 4),
}
ROOMY = st.builds(window.Limits, **WINDOWS)
"""Windows of every kind in which any message has room."""
NARROW = st.builds(window.Limits, **WINDOWS, hard_limit=st.integers(2_000, 6_000)) | st.builds(
    window.Limits, **WINDOWS, compress_at=st.integers(2_000, 9_000)
)
"""Windows in which some messages have none."""

SCRIPTS: Any = st.lists(ANSWERS, max_size=4)
WORDS: Any = st.lists(st.sampled_from(["Why?", "continue", "tea " * 150]), min_size=1, max_size=3)
SUMMARIES: Any = st.lists(
    st.sampled_from([talks.said("Tea was asked for."), talks.said("")])
    | st.builds(lambda: Failed(ModelError("model-refused", "no", fix="m"))),
    min_size=1,
    max_size=3,
)


def by_count(script: Script, summed: Script, entries: Sequence[log_entries.AnyEntry] = ()) -> talks.Model:
    """A model that gives its answers in order, whatever the request, after as many as the log already has."""
    given = {False: 0, True: 0}
    for thread in {each.thread for each in entries}:
        given[thread != log_entries.SESSION_THREAD] += answered([each for each in entries if each.thread == thread])

    def answer(request: Request) -> Answer | Exception:
        sums = request.instructions.startswith("Sum up")
        given[sums] += 1
        if sums:
            return summed[(given[sums] - 1) % len(summed)]
        return script[given[sums] - 1] if given[sums] <= len(script) else talks.said("That is all.")

    return answer


def said(entries: Sequence[log_entries.AnyEntry]) -> list[dict[str, Any]]:
    """The entries of the session's thread without position, time, keys and call ids."""
    others = {"seq", "at", "key", "seconds", "call"}
    return [
        each.model_dump(exclude=others)
        for each in entries
        if each.thread == log_entries.SESSION_THREAD and not isinstance(each, log_entries.Summary | log_entries.Note)
    ]


@some
@given(SCRIPTS, SUMMARIES, WORDS, st.lists(ROOMY, min_size=3, max_size=3))
def test_window_limits_change_nothing_in_the_log(
    script: Script, summed: Script, words: list[str], limits: list[window.Limits]
) -> None:
    """Other strategies and limits for each message leave the thread's entries and answers the same; only summaries are added."""

    async def live(life: talks.Life, chosen: Sequence[window.Limits]) -> None:
        for word, each in zip(words, chosen, strict=False):
            life.limits = each
            await life.hear([word])
            lines = life.now
            life.talk.window()
            assert life.now == lines

    plain = talks.Life(by_count(script, summed), mode="agent")
    asyncio.run(live(plain, [window.Limits()] * 3))
    changing = talks.Life(by_count(script, summed), mode="agent")
    asyncio.run(live(changing, limits))
    assert said(changing.now) == said(plain.now)
    assert changing.answers == plain.answers


@some
@given(SCRIPTS, SUMMARIES, WORDS, NARROW, st.randoms(use_true_random=False))
def test_a_talk_in_a_narrow_window_that_is_killed_asks_the_same(
    script: Script, summed: Script, words: list[str], limits: window.Limits, chance: Any
) -> None:
    """After a cut at any entry, a summary included, the next process sends the requests that the first one sent from there on."""
    whole = talks.lived(by_count(script, summed), *words, limits=limits, mode="agent")
    entries = whole.now
    for lines in chance.sample(range(2, len(entries) + 1), min(4, len(entries) - 1)):
        there = entries[:lines]
        again = whole.cut(lines, model=by_count(script, summed, there))

        async def live(again: talks.Life = again, there: Sequence[log_entries.AnyEntry] = there) -> None:
            await again.go_on()
            await again.hear(words[spoken(there) :])

        asyncio.run(live())
        asked = [*map(placeless, again.requests)]
        assert asked == [*map(placeless, whole.requests[answered(there) :])], (
            f"behind line {lines}: {entries[lines - 1]}"
        )


def placeless(request: Request) -> str:
    """The request without the log lines that it names, which a repeated announcement moves."""
    return re.sub(r"@state/line/\d+|to line \d+ of the log", "", str(request))


SUMMED = st.builds(window.Limits, **{**WINDOWS, "checkpoint_at": st.integers(50, 300), "min_recent": st.just(1)})


@settings(some, max_examples=breadth.of(10, 20))
@given(SCRIPTS, WORDS, ROOMY | SUMMED, st.floats(0, 1), st.lists(st.sampled_from(["And?", "No."]), min_size=1))
def test_a_fork_leaves_its_parent_unchanged(
    script: Script, words: list[str], limits: window.Limits, at: float, more: list[str]
) -> None:
    """Messages in a fork change nothing of its parent, and its first request is the one that its parent would have sent."""
    summed = [talks.said("Tea was asked for.")]
    whole = talks.lived(by_count(script, summed), "tea " * 150, *words, limits=limits, mode="agent")
    entries, blobs = whole.now, whole.all_blobs
    masker = masking.Masker({"S": talks.SECRET})
    writer = now(open_session.fork(whole._store, "s", masker, 2 + int(at * (len(entries) - 2))))
    assert writer.history.header is not None
    assert writer.history.header.forked is not None
    later = [talks.said("Later: no tea.")]
    like = whole.cut(max(2, writer.history.header.forked.line), model=by_count([], later))
    asyncio.run(like.hear(more[:1]))
    requests: list[Request] = []
    supply = talks.Supply(by_count([], later), requests)
    talk = reply.Talk(SessionState(writer), talks.About(), supply, talks.CHOSEN, events.Listener(), lambda: limits)

    async def live() -> None:
        for word in more:
            await talk.say(word)

    asyncio.run(live())
    assert whole.now == entries
    assert blobs.items() <= whole.all_blobs.items()
    if like.answers != ["That is all."]:
        return
    # A summary of the parent may have been open; the fork begins its own.
    own = [each for each in requests if not each.instructions.startswith("Sum up")]
    its = [each for each in like.requests if not each.instructions.startswith("Sum up")]
    assert [*map(plain, own[0].items)] == [*map(plain, its[0].items)]
    assert (own[0].instructions, own[0].tools, own[0].state) == (its[0].instructions, its[0].tools, its[0].state)


def plain(item: Item) -> tuple[str, ...]:
    """The item without ids and paths, which differ between logs."""
    if isinstance(item, ToolCall):
        return ("call", item.name, item.arguments)
    if isinstance(item, Thought):
        return ("thought", item.sealed)
    return ("output" if isinstance(item, ToolOutput) else item.role, re.sub(r"@state/[^\s;]+", "@state", item.text))


USAGES = st.builds(lambda read, wrote: Usage(read, 0, wrote, 0), st.integers(1, 99), st.integers(1, 99))
FAULTS: Any = st.builds(
    lambda again, usage: Failed(ModelError("model-failed", "500", fix="m"), again=again, usage=usage),
    st.booleans(),
    st.none() | USAGES,
)
SENDING: Any = st.lists(st.sampled_from(TASKS), min_size=1, max_size=2).map(lambda tasks: sending(*tasks))
WORKING: Any = SENDING | st.one_of(
    SENDING, st.just(talks.asks(("get_workflow_summary", {}))), st.just(talks.said("Yes.")), FAULTS
)
WORKERS: Any = st.fixed_dictionaries({name: st.lists(WORKING, max_size=3) for name in ["Why?", "continue", *TASKS]})


@settings(some, max_examples=breadth.of(10, 20))
@given(WORKERS, st.lists(FAULTS, max_size=6), st.lists(USAGES, min_size=1), st.booleans())
def test_a_thread_costs_all_its_attempts_and_delegates(
    scripts: Mapping[str, Script], faults: list[Failed], usages: list[Usage], clean: bool
) -> None:
    """The session and each delegate cost every request made for them and their own delegates, answered or not."""
    reported: list[Usage | None] = []
    answering: Callable[[Request], Answer | Exception] = by_task(scripts)
    waiting = [each for each in faults if each.again]

    def answer(request: Request) -> Answer | Exception:
        came = waiting.pop() if waiting and len(reported) % 2 else answering(request)
        if isinstance(came, Answer):
            came = Answer(came.text, usages[len(reported) % len(usages)], "m", calls=came.calls)
        reported.append(came.usage if isinstance(came, Answer | Failed) else None)
        return came

    with mock.patch.object(models_requests, "FIRST_WAIT", 0.0001):
        life = talks.lived(answer, "Why?", "continue", mode="agent", clean=clean)
    costs = spent(life.now)
    known = [each for each in reported if each is not None]
    everything = (len(reported), sum(each.input for each in known), sum(each.output for each in known))
    assert costs[log_entries.SESSION_THREAD] == everything
    assert totals(life.writer.history.ledger.rows) == everything
    for each in life.now:
        if isinstance(each, log_entries.Call) and each.node == "delegate":
            its = costs[log_entries.delegate_thread(each.call)]
            assert totals([*life.writer.history.ledger.within(each.path)]) == its
            outcome = next(end for end in life.now if isinstance(end, log_entries.Result) and end.call == each.call)
            if its[0]:
                assert f"the delegate took {its[0]} request" in str(outcome.value or outcome.error)


def totals(rows: Sequence[ledger.Spent]) -> tuple[Any, ...]:
    """The number of requests, and the tokens in and out."""
    found = ledger.totals(rows)
    return (found["requests"], found["input_tokens"], found["output_tokens"])


def spent(entries: Sequence[log_entries.AnyEntry]) -> dict[str, tuple[int, int, int]]:
    """The totals of each thread with all below it, added up from the entries."""
    senders = {
        log_entries.delegate_thread(each.call): each.thread for each in entries if isinstance(each, log_entries.Call)
    }
    costs: dict[str, tuple[int, int, int]] = dict.fromkeys((log_entries.SESSION_THREAD, *senders), (0, 0, 0))
    for each in entries:
        usage = each.usage if isinstance(each, log_entries.Assistant | log_entries.ModelError) else None
        asked = isinstance(each, log_entries.Note) and each.name == "requested"
        more = (int(asked), usage.input if usage else 0, usage.output if usage else 0)
        thread: str | None = each.thread
        while thread is not None and any(more):
            one, two, three = costs[thread]
            costs[thread] = (one + more[0], two + more[1], three + more[2])
            thread = senders.get(thread)
    return costs
