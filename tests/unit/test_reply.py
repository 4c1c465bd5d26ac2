"""A talk: a word is answered once the model asks for no tool any more; Ctrl-C, errors and budgets leave a session that continues."""

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
    """Keeps what it is told."""

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


def test_a_word_is_answered_once_the_model_asks_for_no_tool() -> None:
    """Request, tools, request, answer; the next word stands behind it, and an answer of before is not given again."""
    life = talks.lived(talks.in_turn([LOOK, talks.said("It buys tea.")]), "What is it?", "And then?")
    assert life.answers == ["It buys tea.", "That is all."]
    assert [len(talks.outputs(each)) for each in life.requests] == [0, 1, 1]
    assert talks.messages(life.requests[-1]) == [
        "user: What is it?", "assistant: Let me look.", "assistant: It buys tea.", "user: And then?",
    ]  # fmt: skip


def test_a_session_that_is_reopened_has_nothing_to_go_on_with_where_all_is_answered() -> None:
    """The last answer is complete: nothing is asked, nothing is said, and the next word is the person's."""
    whole = talks.lived(talks.in_turn([LOOK]), "What is it?")
    again = whole.cut(len(whole.now))
    asyncio.run(again.go_on())
    assert again.answers == [None]
    assert again.requests == []
    asyncio.run(again.hear(["And then?"]))
    assert again.answers == [None, "That is all."]


def test_the_turns_of_a_talk_do_not_give_an_answer_twice() -> None:
    """Whoever takes up the thread behind a complete answer, and says something, gets the answer to that."""
    whole = talks.lived(talks.in_turn([talks.said("It buys tea.")]), "What is it?")
    again = whole.cut(len(whole.now))
    turns = again.talk._ready()
    assert (turns.count, turns.waiting) == (1, False)
    turns.say("And then?", "chat")
    assert asyncio.run(turns.turn()).answer.text == "That is all."
    assert len(again.requests) == 1


def test_the_text_is_told_as_it_comes() -> None:
    """The pieces together are the text; a secret in it is masked though it comes in two pieces; a listener knows of each request."""
    heard = Heard()
    life = talks.lived(talks.in_turn([talks.said(f"It is {talks.SECRET}, and so on.")]), "Tell.", listener=heard)
    assert "".join(heard.items) == "It is [hidden], and so on." == life.answers[0]
    assert len(heard.items) > 1
    assert heard.asked_for == ["m"]


def test_an_answer_that_broke_off_is_gone_on_from() -> None:
    """What had come of it stands in the next request with the reason, behind the word that it answered; the person is told of the error."""
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


def test_ctrl_c_while_the_model_answers_keeps_what_had_come() -> None:
    """The answer ends as interrupted with its beginning, also in the ledger; the session continues with the next word, in this process and in another one."""
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
    """What was begun is told as interrupted, what was not as not done, what was done as it was; the model continues from there with the next word."""

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


def test_a_word_that_comes_after_a_crash_closes_what_was_open() -> None:
    """Also where nobody continued first: each call that the crash left has its outcome before the word is said."""
    three = talks.asks(("get_workflow_summary", {}), ("get_current_plan", {}), ("get_browser_state", {}))
    whole = talks.lived(talks.in_turn([three]), "Why?")
    for lines in range(3, len(whole.now) - 1):
        again = whole.cut(lines)
        asyncio.run(again.hear(["And now?"]))
        assert again.answers == ["That is all."]
        demand_closed(again.now)
        if isinstance(whole.now[lines - 1], entries.Assistant):
            told = talks.outputs(again.requests[0])
            assert told[0] == turn.INTERRUPTED, "a new word is no word to continue with what was asked for before"
            assert all("tool-not-done" in each for each in told[1:])


def test_a_budget_that_is_reached_leaves_the_word_to_be_gone_on_with() -> None:
    """The word keeps its place: with a larger budget it is answered, and what was paid for is not paid again."""
    life = talks.lived(talks.in_turn([LOOK, talks.said("It buys tea.")]), "What is it?", budget="calls=1")
    assert life.answers == ["budget-reached"]
    error = life.errors[-1]
    assert "the session has 0 left" in error.message
    assert "runops chat --resume last --budget calls=4" in str(error.fix)
    again = life.cut(len(life.now), budget="calls=2")
    asyncio.run(again.go_on())
    assert again.answers == ["It buys tea."]
    assert len(again.requests) == 1


def test_the_same_failing_call_is_counted_for_each_word() -> None:
    """Three times in one word end it; another word begins to count anew, and a call that failed twice before may fail twice again."""
    fails = talks.asks(("get_workflow_variables", {"key": "nope"}))
    life = talks.lived(talks.in_turn([fails] * 3), "Why?", "continue")
    assert life.answers == ["agent-stuck", "That is all."]
    assert "LLM_ERROR agent-stuck" in str(life.requests[-1].items)
    twice = talks.lived(talks.in_turn([fails, fails, talks.said("Hm."), fails, fails]), "Why?", "continue")
    assert twice.answers == ["Hm.", "That is all."]


def test_a_word_takes_no_more_than_so_many_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    """A model that asks for tools without end is stopped with an error that says so, and the next word begins to count anew."""
    monkeypatch.setattr("director.conversation.reply.CHAT", reply.ReplyOptions(turns=3))
    life = talks.lived(lambda request: LOOK if len(request.items) < 12 else talks.said("Done."), "Why?", "continue")
    assert life.answers == ["talk-turns", "Done."]
    assert len([each for each in life.now if isinstance(each, entries.Assistant)]) == 4


def test_a_word_that_is_too_large_is_the_persons_again() -> None:
    """Nothing is sent; the word stands in the log as one that had no answer, and a shorter one is answered."""
    limits = window.Limits(hard_limit=2_500, overflow="prune")
    life = talks.lived(talks.in_turn([]), "word " * 5_000, "Why?", limits=limits)
    assert life.answers == ["window-too-large", "That is all."]
    assert len(life.requests) == 1


def test_a_fault_that_may_pass_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The word is answered at the second try, and the person is told of no error."""
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
def test_whoever_listens_is_told_when_the_window_is_nearly_full(warn_at: int) -> None:
    """Once, before the request with which it comes to be, with what becomes of the oldest; not where there is room."""
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
    """What would be sent now is what is sent with the next request, and asking for it leaves the log as it was."""
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


def test_calls_have_ids_of_their_own_also_beside_what_a_request_leaves_out() -> None:
    """A server that counts the calls of each answer from 0 is asked with the whole conversation, once there is room for it."""
    looks = talks.asks(("get_current_plan", {}))
    life = talks.lived(talks.in_turn([]), "Why?", limits=window.Limits(max_messages=3), mode="agent")
    life.models.asks = talks.Client(_again_and_again(looks), life.requests)
    asyncio.run(life.hear(["One.", "Two."]))
    life.limits = window.Limits()
    asyncio.run(life.hear(["Three."]))
    calls = [each.id for each in life.requests[-1].items if isinstance(each, ToolCall)]
    assert len(calls) == len(set(calls)) == 3


def _again_and_again(looks: Answer) -> talks.Model:
    """A model that looks once for each word."""
    return lambda request: talks.said("Yes.") if isinstance(request.items[-1], ToolOutput) else looks
