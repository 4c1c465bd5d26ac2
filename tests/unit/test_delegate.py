"""Delegates begin clean or inherit the conversation, return only answer and cost, and spend the session's budget."""

from __future__ import annotations

import asyncio
import itertools
import random
import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typing_extensions import override

from director.conversation import delegate, reply
from director.session import events
from nodes.errors import ModelError
from nodes.values import Json
from runtime.context import window
from runtime.log import entries as log_entries
from runtime.log import ledger
from runtime.log import session as log_session
from runtime.messages.messages import Answer, Message, Request, is_models
from runtime.models.client.errors import Failed
from tests import breadth, talks
from tests.unit.test_reply_crashes import answered, demand_closed, spoken

Scripts = Mapping[str, Sequence[Answer | Exception]]


def sending(*tasks: str, context: str | None = None) -> Answer:
    """An answer of the model that sends a delegate for each task."""
    calls: list[tuple[str, dict[str, Json]]] = [
        ("delegate", {"goal": each, "deliverable": "It.", "end": "Then.", "context": context}) for each in tasks
    ]
    return talks.asks(*calls)


def task(goal: str) -> Message:
    """The first message to the delegate with that goal."""
    return Message("user", f"{goal}\n\nDeliverable: It.\nEnd: Then.")


def goal_of(message: Message) -> str:
    """The goal of a task, or the whole message of a person."""
    return message.text.removesuffix(task("").text)


def by_task(scripts: Scripts) -> talks.Model:
    """A model that answers each task or message by its script, and then with ``done: TASK``."""

    def answer(request: Request) -> Answer | Exception:
        known = [
            number
            for number, each in enumerate(request.items)
            if isinstance(each, Message) and goal_of(each) in scripts
        ]
        word = request.items[known[-1]]
        assert isinstance(word, Message)
        rolled_back = request.items[known[-1] :]
        given = sum(is_models(each) and not is_models(before) for before, each in itertools.pairwise(rolled_back))
        script = scripts[goal_of(word)]
        return script[given] if given < len(script) else talks.said(f"done: {goal_of(word)}")

    return answer


def of_thread(life: talks.Life, goal: str) -> list[Request]:
    """The requests of the delegate with that task."""
    return [
        each
        for each in life.requests
        if [item for item in each.items if isinstance(item, Message) and item.role == "user"][-1:] == [task(goal)]
    ]


def results(life: talks.Life) -> list[log_entries.Result]:
    """The results of the session's own calls."""
    return [
        each for each in life.now if isinstance(each, log_entries.Result) and each.thread == log_entries.SESSION_THREAD
    ]


def test_only_answer_and_cost_are_returned() -> None:
    """A delegate calls tools in its own thread; its parent sees its answer and cost, and no tool result."""
    looks = [talks.asks(("get_workflow_summary", {}))]
    life = talks.lived(by_task({"Why?": [sending("look")], "look": looks}), "Why?", mode="agent")
    assert life.answers == ["done: Why?"]
    assert talks.outputs(life.requests[-1]) == ["done: look\n(the delegate took 2 requests, 30 tokens, price unknown)"]
    assert "Buys tea" not in str(life.requests[-1].items)
    threads = {each.thread for each in life.now if isinstance(each, log_entries.Assistant)}
    assert len(threads) == 2


def test_a_clean_delegate_sees_only_its_task() -> None:
    """A clean delegate has no conversation and no state, only tools that read; its instructions say that it is a delegate."""
    life = talks.lived(
        by_task({"Hello.": [], "Why?": [sending("look", context="clean")], "look": []}), "Hello.", "Why?", mode="agent"
    )
    (subagent,) = of_thread(life, "look")
    assert subagent.items == (task("look"),)
    assert subagent.state == ""
    assert "You are a delegate" in subagent.instructions
    assert {each.name for each in subagent.tools} == {
        "get_workflow_summary", "get_workflow_nodes", "get_workflow_variables", "get_current_plan", "get_workflow_description",
        "get_browser_state", "get_workflow_variable", "read_state", "delegate",
    }  # fmt: skip


def test_an_inheriting_delegate_sees_the_request_of_its_parent() -> None:
    """The parent's items precede the task, up to the answer that sends it. The same holds for a delegate of a delegate."""
    scripts: Scripts = {
        "Hello.": [],
        "Why?": [talks.asks(("get_workflow_summary", {})), sending("look", context="inherit")],
        "look": [sending("deeper", context="inherit")],
        "deeper": [],
    }
    life = talks.lived(by_task(scripts), "Hello.", "Why?", mode="agent")
    asked = next(each for each in life.requests if len(talks.outputs(each)) == 1)
    first = of_thread(life, "look")[0]
    assert first.items == (*asked.items, task("look"))
    (deeper,) = of_thread(life, "deeper")
    assert deeper.items == (*first.items, task("deeper"))
    assert "delegate" not in [each.name for each in deeper.tools], "no delegate goes deeper"


@pytest.mark.parametrize("clean", [True, False])
def test_the_tool_says_how_a_delegate_begins(clean: bool) -> None:
    """If delegates begin clean by default, the tool demands a self-contained task; each call may choose otherwise."""
    scripts: Scripts = {"Why?": [sending("look", "other")], "look": [], "other": []}
    life = talks.lived(by_task(scripts), "Why?", mode="agent", clean=clean)
    tool = next(each for each in life.requests[0].tools if each.name == "delegate")
    description = f"{tool.description} {tool.parameters}"
    assert ("understood by itself" in description) is clean
    assert ("Self-contained" in description) is clean
    assert ("It sees this conversation" in description) is not clean
    for goal in ("look", "other"):
        assert (of_thread(life, goal)[0].items == (task(goal),)) is clean


def test_a_delegate_may_be_sent_only_where_the_mode_allows_it() -> None:
    """In a chat the call is refused, and no delegate request is made."""
    life = talks.lived(by_task({"Why?": [sending("look")], "look": []}), "Why?", mode="chat")
    assert "tool-not-in-mode" in talks.outputs(life.requests[-1])[0]
    assert of_thread(life, "look") == []


def test_delegates_of_one_answer_run_concurrently() -> None:
    """Both requests start before either is answered; each call has one result, and results come in call order."""
    order: list[str] = []
    both = asyncio.Event()

    class Waiting(talks.Client):
        @override
        async def ask(self, request: Request, _seconds: float, _options: Any, progress: Any) -> Answer:
            if request.items[-1] in (task("one"), task("two")):
                order.append(str(request.items[-1]))
                if len(order) == 2:
                    both.set()
                await asyncio.wait_for(both.wait(), 10)
            return await super().ask(request, _seconds, _options, progress)

    life = talks.Life(by_task({"Why?": [sending("one", "two")], "one": [], "two": []}), mode="agent", clean=True)
    life.models.asks = Waiting(talks.of(life), life.requests)
    asyncio.run(life.hear(["Why?"]))
    assert life.answers == ["done: Why?"]
    assert [each.split("\n")[0] for each in talks.outputs(life.requests[-1])] == ["done: one", "done: two"]
    demand_closed(life.now)


def test_a_failed_delegate_is_reported_with_its_cost() -> None:
    """The parent sees the error, the requests count, and the other delegates return their answers."""
    fault = Failed(ModelError("model-refused", "it will not", fix="ask otherwise"), partial="I wi")
    looks = talks.asks(("get_workflow_summary", {}))
    life = talks.lived(
        by_task({"Why?": [sending("one", "two")], "one": [looks, fault], "two": []}), "Why?", mode="agent", clean=True
    )
    failed, other = talks.outputs(life.requests[-1])
    assert "the delegate failed: it will not (the delegate took 2 requests" in failed
    assert re.search(r"\(model-refused\). `@state/delegate/c\d+` tells what it did; ask otherwise", failed)
    assert other.startswith("done: two")
    demand_closed(life.now)


def test_a_delegate_spends_the_budget_of_its_parent() -> None:
    """The session's budget limits all delegates together; a used-up budget is reported, and the session stops where it can resume."""
    looks = [talks.asks(("get_workflow_summary", {}))] * 5
    life = talks.lived(by_task({"Why?": [sending("look")], "look": looks}), "Why?", mode="agent", budget="calls=4")
    assert life.answers == ["budget-reached"]
    assert len(life.requests) == 4
    assert "the delegate failed: the session has 0 left of its budget of 4 (calls)" in str(results(life)[0].error)


def test_a_delegate_has_its_own_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    """A delegate's own delegates spend its budget."""
    monkeypatch.setattr(delegate.Delegation, "budget", delegate.BUDGET.model_copy(update={"calls": 3}))
    looks = [talks.asks(("get_workflow_summary", {}))] * 9
    scripts: Scripts = {"Why?": [sending("look")], "look": [sending("deeper")], "deeper": looks}
    life = talks.lived(by_task(scripts), "Why?", mode="agent", clean=True)
    assert life.answers == ["done: Why?"]
    assert len(of_thread(life, "look")) + len(of_thread(life, "deeper")) == 3
    assert "the delegate `1_delegate` has 0 left of its budget of 3 (calls)" in str(life.now)


def test_a_delegate_has_a_limited_number_of_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    """A delegate that calls tools without end fails with `delegate-turns`."""
    monkeypatch.setattr(delegate.Delegation, "turns", 2)
    looks = [talks.asks(("get_workflow_summary", {}))] * 9
    life = talks.lived(by_task({"Why?": [sending("look")], "look": looks}), "Why?", mode="agent")
    assert "delegate-turns" in talks.outputs(life.requests[-1])[0]
    assert len(of_thread(life, "look")) == 2


def test_a_delegate_that_inherits_too_much_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The parent sees `window-too-large`, and can send the delegate clean."""
    monkeypatch.setattr("director.conversation.reply.CHAT", reply.ReplyOptions(turns=2))
    limits = window.Limits(strategy="clean", hard_limit=2_000, overflow="prune")
    word, long = "Why? " * 500, "look " * 1_000
    inherit, clean = (
        talks.lived(by_task({word: [sending(long, context=context)], long: []}), word, mode="agent", limits=limits)
        for context in ("inherit", "clean")
    )
    assert "window-too-large" in results_shown(inherit)[0]
    assert results_shown(clean)[0].startswith("done: look")


def results_shown(life: talks.Life) -> list[str]:
    """The text of the session's tool results, as the model sees it."""
    entries = [
        each
        for each in life.now
        if isinstance(each, log_entries.ToolResult) and each.thread == log_entries.SESSION_THREAD
    ]
    return [life.writer.text_of(each) for each in entries]


def test_ctrl_c_closes_delegates_of_every_depth() -> None:
    """Each thread is closed, each request counts, and the parent sees that its delegate was interrupted."""
    sent = asyncio.Event()

    class Slow(talks.Client):
        @override
        async def ask(self, request: Request, _seconds: float, _options: Any, progress: Any) -> Answer:
            if request.items[-1] == task("deeper"):
                self._requests.append(request)
                progress("I see")
                sent.set()
                await asyncio.sleep(60)
            return await super().ask(request, _seconds, _options, progress)

    scripts: Scripts = {
        "Why?": [sending("look", "other")],
        "look": [sending("deeper")],
        "deeper": [],
        "other": [],
        "continue": [],
    }
    life = talks.Life(by_task(scripts), mode="agent", clean=True)
    life.models.asks = Slow(talks.of(life), life.requests)

    async def live() -> None:
        saying = asyncio.create_task(life.talk.say("Why?"))
        await sent.wait()
        saying.cancel()
        with pytest.raises(asyncio.CancelledError):
            await saying
        demand_closed(life.now)
        await life.hear(["continue"])

    asyncio.run(live())
    assert life.answers == ["done: continue"]
    reports = talks.outputs(life.requests[-1])
    assert "the delegate was interrupted before it had an answer (the delegate took 2 requests" in reports[0]
    assert "I see" in [each.text for each in life.now if isinstance(each, log_entries.ModelError)]
    assert [row.status for row in life.writer.history.ledger.rows].count("open") == 0
    demand_costs(life.writer.history)


def demand_costs(session: log_session.Session) -> None:
    """Raises where the cost of a session differs from the sum of its own attempts and those of its delegates."""
    rows = session.ledger.rows
    every = ledger.totals(rows)
    parts = [ledger.totals([row for row in rows if row.path == ""])]
    tops = [
        each.call.path
        for each in session.actions.values()
        if each.call.thread == log_entries.SESSION_THREAD and each.call.node == "delegate"
    ]
    parts += [ledger.totals([*session.ledger.within(path)]) for path in tops]
    for name in ("requests", "paid", "input_tokens", "output_tokens"):
        assert every[name] == sum(each[name] for each in parts)


TASKS = ["one", "two", "three"]
ANSWERS: Any = st.one_of(
    st.lists(st.sampled_from(TASKS), min_size=1, max_size=3).map(lambda tasks: sending(*tasks)),
    st.just(talks.asks(("get_workflow_summary", {}), ("nope", {}))),
    st.just(Failed(ModelError("model-refused", "no", fix="m"), partial="I")),
    st.just(talks.said("Yes.")),
)
SCRIPTS: Any = st.fixed_dictionaries({name: st.lists(ANSWERS, max_size=3) for name in ["Why?", "continue", *TASKS]})


@settings(max_examples=breadth.of(15, 30), deadline=None)
@given(SCRIPTS, st.booleans(), st.sampled_from([None, "calls=6", "calls=12"]))
def test_a_session_costs_what_all_its_delegates_cost(scripts: Scripts, clean: bool, budget: str | None) -> None:
    """Each request counts once for its delegate and all parents, even if delegates fail or are refused. No budget is exceeded."""
    life = talks.lived(by_task(scripts), "Why?", "continue", mode="agent", clean=clean, budget=budget)
    demand_closed(life.now)
    demand_costs(life.writer.history)
    assert len(life.writer.history.ledger.rows) == len(life.requests)
    if budget is not None:
        assert len(life.requests) <= int(budget.partition("=")[2])


def without_ids(request: Request) -> str:
    """The request without the ids of calls, which are lines of the log: a resumed session has one more."""
    return re.sub(r"@state/delegate/c\d+", "@state/delegate/…", repr(request))


@settings(max_examples=breadth.of(5, 10), deadline=None)
@given(SCRIPTS, st.booleans(), st.randoms(use_true_random=False))
def test_a_session_killed_among_its_delegates_resumes(scripts: Scripts, clean: bool, chance: random.Random) -> None:
    """After a crash at any entry, logged answers are not requested again; other delegates are closed as interrupted."""
    words = ["Why?", "continue"]
    whole = talks.lived(by_task(scripts), *words, mode="agent", clean=clean)
    entries = whole.now
    for lines in chance.sample(range(2, len(entries) + 1), min(8, len(entries) - 1)):
        logged = entries[:lines]
        again = whole.cut(lines)

        async def live(again: talks.Life = again) -> None:
            await again.go_on()
            await again.hear(words[spoken(again.entries) :])

        asyncio.run(live())
        demand_closed(again.now)
        demand_costs(again.writer.history)
        sent = {each.call: each for each in logged if isinstance(each, log_entries.Call) and each.node == "delegate"}
        over = {each.call for each in logged if isinstance(each, log_entries.Result)}
        left = [call for call in sent if call not in over]
        new = again.now[lines:]
        for call in left:
            result = next(each for each in new if isinstance(each, log_entries.Result) and each.call == call)
            answers = [
                each
                for each in logged
                if each.thread == log_entries.delegate_thread(call) and isinstance(each, log_entries.Assistant)
            ]
            finished = bool(answers) and not answers[-1].calls
            assert result.status == ("recovered" if finished else "interrupted")
            assert not any(
                isinstance(each, log_entries.Note) and each.thread == log_entries.delegate_thread(call) for each in new
            )
        if not left:
            repeated = [*map(without_ids, again.requests)]
            assert repeated == [*map(without_ids, whole.requests[answered(logged) :])], f"behind line {lines}"


def test_listeners_receive_calls_of_delegates() -> None:
    """The path of each call in a delegate begins with the delegate's path."""
    paths: list[str] = []

    class Paths(events.Listener):
        @override
        def called(self, path: str, name: str, arguments: str) -> None:
            paths.append(path)

    scripts: Scripts = {
        "Why?": [sending("look")],
        "look": [sending("deeper")],
        "deeper": [talks.asks(("get_workflow_summary", {}))],
    }
    talks.lived(by_task(scripts), "Why?", mode="agent", clean=True, listener=Paths())
    assert paths == ["1_delegate", "1_delegate/1_delegate", "1_delegate/1_delegate/1_get_workflow_summary"]


def test_the_cost_of_delegates_belongs_to_the_session() -> None:
    """Known prices add up over all threads."""
    life = talks.lived(by_task({"Why?": [sending("look")], "look": []}), "Why?", mode="agent")
    for row in life.writer.history.ledger.rows:
        row.dollars = Decimal("0.1")
    totals = life.writer.history.ledger.totals()
    assert totals is not None
    assert totals["dollars"] == "0.3"


@pytest.mark.parametrize("context", ["clean", "inherit"])
def test_a_delegate_without_a_task_is_not_sent(context: str) -> None:
    """An empty task is refused without cost, and the conversation continues."""
    life = talks.lived(by_task({"Why?": [sending(" \n ", context=context)]}), "Why?", mode="agent")
    assert life.answers == ["done: Why?"]
    assert len(life.requests) == 2
    (report,) = talks.outputs(life.requests[-1])
    assert "(tool-arguments)" in report
    assert [each.status for each in results(life)] == ["error"]
