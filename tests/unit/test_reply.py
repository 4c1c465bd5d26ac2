"""A conversation: a message is answered once the model requests no more tools. Ctrl-C, errors and budgets leave a session that can continue."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from typing_extensions import override

from director.conversation import reply
from director.session import events
from nodes.errors import ModelError, RunOpsError
from runtime.context import window
from runtime.log import entries
from runtime.messages.messages import Answer, Request, ToolCall, ToolOutput
from runtime.models import requests
from runtime.models.client.errors import Failed
from runtime.models.turns import turn
from tests import talks
from tests.unit.test_reply_crashes import demand_closed

LOOK = talks.asks(("get_workflow_summary", {}), text="Let me look.")


class Heard(events.Listener):
    """A listener that records what it receives."""

    def __init__(self) -> None:
        self.items: list[str] = []
        self.asked_for: list[str] = []
        self.errors: list[str] = []

    @override
    def text(self, part: str) -> None:
        self.items.append(part)

    @override
    def asked(self, model: str, report: window.Report) -> None:
        self.asked_for.append(model)

    @override
    def failed(self, error: RunOpsError) -> None:
        self.errors.append(error.code)


def broken(part: str = "", code: str = "model-refused") -> Failed:
    """A request that fails for good, after this much of an answer."""
    return Failed(ModelError(code, "no", fix="m"), partial=part)


def test_a_message_is_answered_once_the_model_requests_no_tool() -> None:
    """Request, tools, request, answer: the next message follows the answer, and no earlier answer is given again."""
    life = talks.lived(talks.in_turn([LOOK, talks.said("It buys tea.")]), "What is it?", "And then?")
    assert life.answers == ["It buys tea.", "That is all."]
    assert [len(talks.outputs(each)) for each in life.requests] == [0, 1, 1]
    assert talks.messages(life.requests[-1]) == [
        "user: What is it?", "assistant: Let me look.", "assistant: It buys tea.", "user: And then?",
    ]  # fmt: skip


def test_a_reopened_session_whose_messages_are_answered_has_nothing_to_continue() -> None:
    """After a complete last answer nothing is requested or said, and the next message is the person's."""
    whole = talks.lived(talks.in_turn([LOOK]), "What is it?")
    again = whole.cut(len(whole.now))
    asyncio.run(again.go_on())
    assert again.answers == [None]
    assert again.requests == []
    asyncio.run(again.hear(["And then?"]))
    assert again.answers == [None, "That is all."]


def test_the_turns_of_a_conversation_do_not_give_an_answer_twice() -> None:
    """A message that is added after a complete answer gets its own answer."""
    whole = talks.lived(talks.in_turn([talks.said("It buys tea.")]), "What is it?")
    again = whole.cut(len(whole.now))
    turns = again.talk._ready()
    assert (turns.count, turns.waiting) == (1, False)
    turns.say("And then?", "chat")
    assert asyncio.run(turns.turn()).answer.text == "That is all."
    assert len(again.requests) == 1


def test_the_text_is_streamed() -> None:
    """The streamed pieces add up to the text; a secret split over two pieces is masked; a listener sees each request."""
    heard = Heard()
    life = talks.lived(talks.in_turn([talks.said(f"It is {talks.SECRET}, and so on.")]), "Tell.", listener=heard)
    assert "".join(heard.items) == "It is [hidden], and so on." == life.answers[0]
    assert len(heard.items) > 1
    assert heard.asked_for == ["m"]


def test_a_partial_answer_is_continued() -> None:
    """The next request has the partial answer with its error after the message that it answered; the person sees the error."""
    heard = Heard()
    life = talks.lived(talks.in_turn([broken("It failed beca")]), "Why?", "continue", listener=heard)
    assert life.answers == ["model-refused", "That is all."]
    assert heard.errors == ["model-refused"]
    assert talks.messages(life.requests[-1])[0] == "user: Why?"
    assert "It failed beca" in talks.messages(life.requests[-1])[1]
    assert "LLM_ERROR model-refused" in talks.messages(life.requests[-1])[1]
    assert talks.messages(life.requests[-1])[2] == "user: continue"
    again = life.cut(next(each.seq for each in life.now if isinstance(each, entries.ModelError)))
    asyncio.run(again.go_on())
    assert again.answers == [None], "the word is the person's"


def test_ctrl_c_while_the_model_answers_keeps_the_partial_answer() -> None:
    """An interrupted answer keeps its beginning, also in the ledger; the session continues with the next message, in this process or another."""
    sent = asyncio.Event()

    class Slow(talks.Client):
        @override
        async def ask(self, request: Request, _seconds: float, _options: Any, progress: Any) -> Answer:
            if not self._requests:
                self._requests.append(request)
                progress("It failed beca")
                sent.set()
                await asyncio.sleep(60)
            return await super().ask(request, _seconds, _options, progress)

    life = talks.Life(talks.in_turn([]))
    life.models.asks = Slow(talks.in_turn([]), life.requests)

    async def live() -> None:
        saying = asyncio.create_task(life.talk.say("Why?"))
        await sent.wait()
        saying.cancel()
        with pytest.raises(asyncio.CancelledError):
            await saying
        assert [row.status for row in life.writer.history.ledger.rows] == ["error"]
        await life.go_on()
        await life.hear(["continue"])

    asyncio.run(live())
    assert life.answers == [None, "That is all."]
    assert "It failed beca\n(LLM_ERROR interrupted" in talks.messages(life.requests[-1])[1]
    failed = next(each for each in life.now if isinstance(each, entries.ModelError))
    again = life.cut(failed.seq)
    asyncio.run(again.hear(["continue"]))
    assert again.requests == life.requests[-1:]


def test_ctrl_c_in_the_middle_of_tools_closes_every_call() -> None:
    """The current call is reported as interrupted, later ones as not done, earlier ones with their results; the model continues with the next message."""

    class Stuck(events.Listener):
        @override
        def called(self, path: str, name: str, arguments: str) -> None:
            if name == "get_current_plan":
                raise asyncio.CancelledError

    three = talks.asks(("get_workflow_summary", {}), ("get_current_plan", {}), ("get_browser_state", {}))
    life = talks.Life(talks.in_turn([three]), listener=Stuck())

    async def live() -> None:
        with pytest.raises(asyncio.CancelledError):
            await life.talk.say("Why?")
        demand_closed(life.now)
        await life.go_on()
        await life.hear(["continue"])

    asyncio.run(live())
    assert life.answers == [None, "That is all."]
    done, begun, rest = talks.outputs(life.requests[-1])
    assert done.startswith("Buys tea.")
    assert begun == turn.INTERRUPTED
    assert "an earlier call of the same answer was interrupted" in rest
    assert "LLM_ERROR interrupted" in talks.messages(life.requests[-1])[-2]


def test_a_message_after_a_crash_closes_open_calls() -> None:
    """Each call that a crash left open has its outcome before a new message is added, even if the session was not continued first."""
    three = talks.asks(("get_workflow_summary", {}), ("get_current_plan", {}), ("get_browser_state", {}))
    whole = talks.lived(talks.in_turn([three]), "Why?")
    for lines in range(3, len(whole.now) - 1):
        again = whole.cut(lines)
        asyncio.run(again.hear(["And now?"]))
        assert again.answers == ["That is all."]
        demand_closed(again.now)
        if isinstance(whole.now[lines - 1], entries.Assistant):
            outcomes = talks.outputs(again.requests[0])
            assert outcomes[0] == turn.INTERRUPTED, "a new word is no word to continue with what was asked for before"
            assert all("tool-not-done" in each for each in outcomes[1:])


def test_a_message_that_reached_the_budget_can_be_continued() -> None:
    """With a larger budget the message is answered, and no request that was paid is paid again."""
    life = talks.lived(talks.in_turn([LOOK, talks.said("It buys tea.")]), "What is it?", budget="calls=1")
    assert life.answers == ["budget-reached"]
    error = life.errors[-1]
    assert "the session has 0 left" in error.message
    assert "runops chat --resume last --budget calls=4" in str(error.fix)
    again = life.cut(len(life.now), budget="calls=2")
    asyncio.run(again.go_on())
    assert again.answers == ["It buys tea."]
    assert len(again.requests) == 1


def test_the_same_failing_call_is_counted_for_each_message() -> None:
    """A call that fails three times in one message ends it; the next message counts anew, so two failures in each end none."""
    fails = talks.asks(("get_workflow_variables", {"key": "nope", "run": None}))
    life = talks.lived(talks.in_turn([fails] * 3), "Why?", "continue")
    assert life.answers == ["agent-stuck", "That is all."]
    assert "LLM_ERROR agent-stuck" in str(life.requests[-1].items)
    twice = talks.lived(talks.in_turn([fails, fails, talks.said("Hm."), fails, fails]), "Why?", "continue")
    assert twice.answers == ["Hm.", "That is all."]


def test_a_message_has_a_limit_of_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    """A model that requests tools without end is stopped with an error, and the next message counts anew."""
    monkeypatch.setattr("director.conversation.reply.CHAT", reply.ReplyOptions(turns=3))
    life = talks.lived(lambda request: LOOK if len(request.items) < 12 else talks.said("Done."), "Why?", "continue")
    assert life.answers == ["talk-turns", "Done."]
    assert len([each for each in life.now if isinstance(each, entries.Assistant)]) == 4


def test_a_message_that_is_too_large_is_not_sent() -> None:
    """Nothing is sent; the log has the message without an answer, and a shorter one is answered."""
    limits = window.Limits(hard_limit=2_500, overflow="prune")
    life = talks.lived(talks.in_turn([]), "word " * 5_000, "Why?", limits=limits)
    assert life.answers == ["window-too-large", "That is all."]
    assert len(life.requests) == 1


def test_a_fault_that_may_pass_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A transient fault is retried: the message is answered at the second attempt, and the person sees no error."""
    monkeypatch.setattr(requests, "FIRST_WAIT", 0.001)
    heard = Heard()
    faults = [Failed(ModelError("model-failed", "500", fix="m"), again=True, partial="It fa")]

    def model(_request: Request) -> Answer | Exception:
        return faults.pop() if faults else talks.said("It failed.")

    life = talks.lived(model, "Why?", listener=heard)
    assert life.answers == ["It failed."]
    assert heard.errors == []
    assert "".join(heard.items) == "It faIt failed."


@pytest.mark.parametrize("warn_at", [2_400, 9_000])
def test_a_listener_is_warned_when_the_window_is_nearly_full(warn_at: int) -> None:
    """A warning comes once, before the request that reaches the limit, with what happens to the oldest items; with room none comes."""
    heard: list[tuple[int, str]] = []

    class Hears(events.Listener):
        @override
        def fills(self, report: window.Report, overflow: window.Overflow) -> None:
            assert report.wanted >= warn_at
            heard.append((len(life.requests), overflow))

    limits = window.Limits(compress_at=10_000, warn_at=warn_at, overflow="prune")
    life = talks.Life(talks.in_turn([]), limits=limits, listener=Hears())
    assert life.talk.window().wanted < 2_400
    asyncio.run(life.hear(["Why?", "word " * 800, "And then?"]))
    assert heard == ([(1, "prune")] if warn_at == 2_400 else [])


def test_the_window_is_shown_without_anything_being_written() -> None:
    """The shown window is what the next request would send, and showing it leaves the log unchanged."""
    heard: list[window.Report] = []

    class Report(events.Listener):
        @override
        def asked(self, model: str, report: window.Report) -> None:
            heard.append(report)

    life = talks.lived(talks.in_turn([LOOK]), "What is it?", listener=Report())
    before = life.now
    report = life.talk.window()
    assert life.now == before
    assert report.tokens > heard[-1].tokens
    assert [each.name for each in report.sections] == [each.name for each in heard[-1].sections]


def test_calls_have_unique_ids_also_beside_items_that_a_request_left_out() -> None:
    """Call ids are unique in a whole conversation, though the server counts the calls of each answer from 0 and earlier requests left items out."""
    looks = talks.asks(("get_current_plan", {}))
    life = talks.lived(talks.in_turn([]), "Why?", limits=window.Limits(max_messages=3), mode="agent")
    life.models.asks = talks.Client(_again_and_again(looks), life.requests)
    asyncio.run(life.hear(["One.", "Two."]))
    life.limits = window.Limits()
    asyncio.run(life.hear(["Three."]))
    calls = [each.id for each in life.requests[-1].items if isinstance(each, ToolCall)]
    assert len(calls) == len(set(calls)) == 3


def _again_and_again(looks: Answer) -> talks.Model:
    """A model that makes one call for each message."""
    return lambda request: talks.said("Yes.") if isinstance(request.items[-1], ToolOutput) else looks
