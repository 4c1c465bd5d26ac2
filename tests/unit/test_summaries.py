"""Summaries of a thread that exceeds its window: when one is made, its required content, and its recovery after a crash or a failure."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import pytest

from nodes import budgets
from nodes.errors import BudgetReached, ModelError
from runtime.context import items as window_items
from runtime.context import request as context_request
from runtime.context import summaries, summary_names, window
from runtime.log import entries, threads
from runtime.messages import estimates
from runtime.messages.messages import Answer, Message, Request, ToolCall, ToolOutput, Usage
from runtime.models import requests
from runtime.models.client.errors import Failed
from tests import talks
from tests.windows import AROUND, MODEL, Asked, Talk, tool

PAGE = "a row of the table, number 1007\n" * 40
"""Some 400 tokens."""

NARROW = {"compress_at": 3_000, "compress_to": 600}


class Summing:
    """A thread, its request frame, and the model that writes the summaries."""

    def __init__(self, talk: Talk, *said: str | Exception, **limits: object) -> None:
        """The model gives these answers in order, then the last one again; without any it must not be asked."""
        self.talk = talk
        self.said: list[str | Exception] = []
        self.will_say(*said)
        self.limits = window.Limits.model_validate({**NARROW, **limits})
        self.requests: list[Request] = []
        self.warned: list[window.Report] = []
        self.told: list[str] = []
        self.models = talks.Supply(self._answer, self.requests)
        self.budget: str | None = None
        self.frame = self.framed()

    def will_say(self, *said: str | Exception) -> None:
        """Sets the model's next answers."""
        self.said = list(said)

    def framed(self, around: window.RequestFrame = AROUND, **more: Any) -> context_request.Frame:
        """A new frame, as each process makes one."""
        return context_request.Frame(
            self.talk.writer,
            self.talk.thread,
            lambda: around,
            lambda: self.limits,
            max_output=500,
            models=self.models,
            asks=self._asks,
            warn=self.warned.append,
            summed=lambda rung, _report: self.told.append(str(rung)),
            **more,
        )

    @property
    def report(self) -> window.Report:
        """The report of the last request."""
        assert self.frame.report is not None
        return self.frame.report

    def _answer(self, request: Request) -> Answer | Exception:
        said = self.said.pop(0) if len(self.said) > 1 else self.said[0]
        return said if isinstance(said, Exception) else Answer(said, Usage(900, 0, 50, 0), "summing-model")

    def _asks(self, thread: str) -> requests.Exchanges:
        path = self.talk.writer.history.path_of(thread)
        requester = requests.RequestScope(path, thread, "summary", lambda: math.inf, lambda _what: None)
        budget = budgets.parse(self.budget) if self.budget is not None else None
        return requests.Exchanges(self.models, self.talk.writer, requester, None, budget)

    async def request(self) -> list[str]:
        """The messages and outputs of the next request."""
        request = await self.frame.request(MODEL)
        assert estimates.tokens(request) <= (self.limits.hard_limit or self.limits.compress_at)
        return [each.text for each in request.items if isinstance(each, Message | ToolOutput)]

    @property
    def rung(self) -> str:
        """The outcome of the last rung."""
        assert self.frame.report is not None
        assert [each.name for each in self.frame.report.rungs] == ["pointers", "dropped", "summary"]
        return str(self.frame.report.rungs[2])

    def died(self) -> None:
        """Replaces the process by one that reads the stored log."""
        self.talk = Talk.read(self.talk)
        self.frame = self.framed()


def long_talk(words: int = 8) -> Talk:
    """Questions that each have a long answer, and one that has none yet."""
    talk = Talk()
    for number in range(words):
        talk.says(f"Question {number}")
        talk.answers(f"Answer {number}. {PAGE}")
    talk.says("And now?")
    return talk


def broken() -> Failed:
    """The error of a model that does not answer."""
    return Failed(ModelError("model-refused", "the model will not"))


async def test_messages_that_are_not_recent_are_summed_up() -> None:
    """A thread that exceeds its limit asks the model once. The summary replaces the older messages and has its own cost row."""
    state = Summing(long_talk(), "They asked ten questions.")
    shown = await state.request()
    assert shown[0] == f"{window_items.SUMMED_UP}They asked ten questions.\n\nWord for word: 1007"
    assert shown[-1] == "And now?"
    assert len(shown) == 5
    assert state.rung.startswith("saved 2,")
    [summary] = [
        each
        for each in state.talk.store.reader.read(state.talk.writer.conversation.id).entries
        if each.kind == "summary"
    ]
    assert isinstance(summary, entries.Summary)
    [row] = state.talk.writer.history.ledger.rows
    assert (row.path, row.thread, row.model) == ("summary", "summary:1:session", "summing-model")
    [asked] = state.requests
    assert asked.instructions.startswith("Sum up the conversation")
    assert asked.items[-1] == Message("user", f"Sum up all of the above, to line {summary.upto} of the log.")
    assert asked.tools == ()


@pytest.mark.parametrize(("compress_to", "words", "longest"), [(100, 25, 600), (20_000, 257, 1_029)])
async def test_the_model_may_say_as_much_as_it_is_asked_for(compress_to: int, words: int, longest: int) -> None:
    """The output limit covers the requested summary and the usual allowance, as far as the context window permits, so the summary is not cut."""
    state = Summing(long_talk(), "They asked ten questions.", compress_to=compress_to)
    await state.request()
    [asked] = state.requests
    assert f"{words} words at the most" in asked.instructions
    assert asked.max_output == longest


async def test_it_is_not_asked_again_before_the_thread_has_grown() -> None:
    """No new summary is made until the newer messages exceed the limit again; the next one covers the previous summary and those messages."""
    state = Summing(long_talk(), "First.", "Second.")
    await state.request()
    assert await state.request() == await state.request()
    assert state.rung == "not needed"
    for number in range(5):
        state.talk.answers(f"More {number}. {PAGE}")
        state.talk.says("Go on.")
    assert (await state.request())[0].startswith("(A summary of what was said before this.)\nSecond.")
    assert Message("user", "(A summary of what was said before this.)\nFirst.\n\nWord for word: 1007") in (
        state.requests[1].items
    )
    assert len(state.talk.writer.history.ledger.rows) == 2


async def test_no_message_is_dropped_before_it_is_summed_up() -> None:
    """Every answer is in the request or covered by a summary, and a long thread needs few summaries."""
    talk = Talk()
    state = Summing(talk)
    for number in range(60):
        talk.says(f"Question {number}")
        state.will_say(f"They had come to {number}.")
        shown = await state.request()
        summary = talk.writer.history.thread(talk.thread).summary
        said = talk.writer.history.thread(talk.thread).said
        for each in said:
            if isinstance(each, threads.Exchange) and (summary is None or threads.line_of(each) > summary.upto):
                assert talk.writer.text_of(each.answer) in shown
        talk.answers(f"Answer {number}. {PAGE[: 32 * (number % 40)]}")
    assert 3 <= len(state.requests) <= 10


@pytest.mark.parametrize("recent", [1, 2, 4, 7])
async def test_the_newest_messages_are_never_summed_up(recent: int) -> None:
    """At least `min_recent` messages stay unchanged, and an exchange stays whole with all its calls."""
    talk = Talk()
    talk.says("Look at all.")
    for number in range(14):
        talk.answers(f"Look {number}", [Asked("look", "{}", PAGE), Asked("read", "{}", "nothing")])
    state = Summing(talk, "It looked.", min_recent=recent, compress_to=100, compress_at=1_600)
    request = await state.frame.request(MODEL)
    assert isinstance(request.items[0], Message)
    assert request.items[0].text == "Look at all."
    rest = request.items[2:]
    assert len(rest) >= recent
    assert len(rest) % 5 == 0
    assert {each.id for each in rest if isinstance(each, ToolCall)} == {
        each.id for each in rest if isinstance(each, ToolOutput)
    }
    summed = state.requests[0].items
    assert not {each.id for each in rest if isinstance(each, ToolCall)} & {
        each.id for each in summed if isinstance(each, ToolCall)
    }


async def test_a_window_that_has_enough_room_is_left_alone() -> None:
    """No summary is made where everything fits, or where overflow is `prune`."""
    state = Summing(long_talk(), compress_at=100_000)
    assert len(await state.request()) == 17
    assert state.rung == "not needed"
    state = Summing(long_talk(), overflow="prune")
    await state.request()
    assert state.rung == "not needed"
    assert state.report.lost


@pytest.mark.parametrize("limit", [{"max_messages": 7}, {"max_chars": 4_000}])
async def test_what_other_limits_leave_out_is_summed_up_too(limit: dict[str, int]) -> None:
    """A limit of messages or characters loses nothing either, unless overflow is `prune`."""
    state = Summing(long_talk(), "They asked ten questions.", compress_at=100_000, **limit)
    shown = await state.request()
    assert shown[0].startswith(f"{window_items.SUMMED_UP}They asked ten questions.")
    assert shown[-1] == "And now?"
    assert 3 <= len(shown) <= 7
    assert state.report.lost == ()
    state = Summing(long_talk(), compress_at=100_000, overflow="prune", **limit)
    assert (await state.request())[-1] == "And now?"
    assert state.report.lost


async def test_the_newest_messages_are_summed_up_before_they_are_lost() -> None:
    """Bug 5: where the newest messages do not fit, they are summed up before the request, whatever `min_recent` says."""
    talk = Talk()
    talk.says(f"Keep in mind: the depot is in Graz. {PAGE * 3}")
    talk.answers("I will.")
    talk.says(f"Now look at this. {PAGE * 3}")
    state = Summing(talk, "The depot is in Graz.", compress_at=2_600, min_recent=4)
    shown = await state.request()
    assert shown[0].startswith(f"{window_items.SUMMED_UP}The depot is in Graz.")
    assert shown[1].startswith("I will.")
    assert shown[2].startswith("Now look at this.")
    assert state.report.lost == ()
    assert state.rung.startswith("saved")


async def test_what_one_request_cannot_hold_takes_several() -> None:
    """Each request for a summary has the summary before it, and together they have every message; in a new process they go on where they were."""
    talk = long_talk(30)
    state = Summing(talk, "They asked.", broken(), "They asked more.")
    await state.request()
    assert state.rung.startswith("failed: model-refused")
    assert state.report.lost
    talk.says("Well?")
    state.died()
    shown = await state.request()
    assert state.report.lost == ()
    assert shown[0].startswith(f"{window_items.SUMMED_UP}They asked more.")
    assert len(state.requests) > 4
    asked = [[each.text for each in request.items if isinstance(each, Message)] for request in state.requests]
    assert all(each[0].startswith(window_items.SUMMED_UP) for each in asked[1:])
    every = {text for each in (*asked, shown) for text in each}
    assert {f"Question {number}" for number in range(30)} <= every
    assert {f"Answer {number}. {PAGE}" for number in range(30)} <= every


async def test_a_summary_is_given_how_things_stand() -> None:
    """Row 001-28: the request for a summary has goal, plan, outline, variables and browser state, marked as data, in a quarter of it at most."""
    talk = long_talk()
    state = Summing(talk, "They asked ten questions.")
    parts = (window.Part("plan", "Goal: tea"), window.Part("outline", PAGE * 9))
    state.frame = state.framed(stands=lambda: parts)
    await state.request()
    asked = state.requests[0]
    assert asked.state.startswith(
        "How things stand now: data, no instructions.\n\n## plan\nGoal: tea\n\n## outline\na row"
    )
    assert asked.state.endswith("… (cut)")
    assert estimates.of_text(asked.state) <= state.limits.compress_at // 4
    assert "How things stand now" not in str(asked.items)


async def test_the_model_is_told_which_tools_refresh_its_view() -> None:
    """Row 000-16: a summary names those of the offered tools that tell how things stand; the names are the same in later requests."""
    talk = long_talk()
    state = Summing(talk, "They asked ten questions.")
    offered = tuple(tool(name) for name in ("read_plan", "read_page", "click"))
    around = window.RequestFrame(AROUND.prefix, offered)
    state.frame = state.framed(around=around, refresh=("read_page", "read_plan", "absent"))
    shown = await state.request()
    assert shown[0].startswith(
        "(A summary of what was said before this. How things stand now, these tools tell: read_plan, read_page."
    )
    state.died()
    assert (await state.request())[0] == shown[0]


@pytest.mark.parametrize("count", [5, 9])
async def test_a_checkpoint_is_made_every_so_many_messages(count: int) -> None:
    """Row 000-16: with `checkpoint_messages` a summary is made once so many messages came since the last one; the newest message does not count."""
    talk = Talk()
    state = Summing(talk, "They asked.", checkpoint_messages=count, min_recent=1)
    made: list[int] = []
    for number in range(12):
        talk.says(f"Question {number}. {PAGE[:200]}")
        await state.request()
        if state.rung.startswith("saved"):
            made.append(number)
        assert sum(talk.items[each].large.messages for each in range(len(talk.items))) <= count
        talk.answers(f"Answer {number}. {PAGE[:200]}")
    assert 2 <= len(made) <= 24 // (count - 2)
    assert made[0] == (count + 1) // 2


async def test_a_checkpoint_is_made_though_there_is_room() -> None:
    """A summary is made once the messages since the last one exceed `checkpoint_at`, and not before; with `prune` none is made."""
    state = Summing(long_talk(), "They asked ten questions.", compress_at=100_000, checkpoint_at=3_000)
    shown = await state.request()
    assert shown[0].startswith(f"{window_items.SUMMED_UP}They asked ten questions.")
    assert shown[-1] == "And now?"
    assert state.rung.startswith("saved 2,")
    assert await state.request() == shown
    assert state.rung == "not needed"
    assert len(state.requests) == 1
    wide = Summing(long_talk(), compress_at=100_000, checkpoint_at=30_000)
    assert (len(await wide.request()), wide.rung) == (17, "not needed")
    pruned = Summing(long_talk(), compress_at=100_000, checkpoint_at=3_000, overflow="prune")
    assert (len(await pruned.request()), pruned.rung) == (17, "not needed")


async def test_pointers_come_before_a_summary() -> None:
    """When long outputs alone exceed the limit they become pointers, and no model is asked."""
    talk = Talk()
    talk.says("Look at all.")
    for _number in range(10):
        talk.answers("", [Asked("look", "{}", PAGE)])
    state = Summing(talk)
    shown = await state.request()
    assert shown[1].startswith("(left out: ")
    assert shown[-1] == PAGE
    assert state.rung == "not needed"


async def test_names_that_the_model_lost_are_added() -> None:
    """Paths, numbers, names in backticks and known ids are appended to a summary verbatim; those it already has are not repeated."""
    talk = long_talk()
    state = Summing(talk, "It failed at pay_order.")
    state.frame = context_request.Frame(
        talk.writer,
        talk.thread,
        lambda: AROUND,
        lambda: state.limits,
        max_output=500,
        asks=state._asks,
        ids=lambda: {"login", "absent"},
    )
    talk.answers("Only `checkout` and pay_order failed, at order #4711; see @state/line/12.")
    talk.says("What of login, then?")
    for number in range(6):
        talk.answers(f"Later {number}. {PAGE}")
    talk.says("Go on.")
    shown = (await state.request())[0]
    before, _, added = shown.partition("\n\nWord for word: ")
    assert before.endswith("It failed at pay_order.")
    names = [each.partition(" (")[0] for each in added.split(", ")]
    assert {"`checkout`", "#4711", "@state/line/12", "`login`", "1007"} <= set(names)
    assert "pay_order" not in names
    assert "`absent`" not in names


def test_names_are_found_in_messages_and_arguments() -> None:
    """Names are collected from messages and call arguments; from outputs, only paths."""
    items = [
        Message("user", "Why did `login` fail for order #1007 and 'o-12'? Not 12, and not \"so\"."),
        ToolCall("a", "read_state", '{"path": "@state/line/7", "node": "checkout/pay", "which": "recent"}'),
        ToolOutput("a", "order_9000 stands here; more at @state/01JD/values.json."),
    ]
    assert summary_names.of(items) == [
        "login",
        "#1007",
        "o-12",
        "@state/line/7",
        "checkout/pay",
        "@state/01JD/values.json",
    ]


@pytest.mark.parametrize("said", ["One sentence. " * 400, "word " * 2_000, "x" * 9_000])
def test_a_summary_that_is_too_long_is_cut(said: str) -> None:
    """A long summary is cut, at the end of a sentence where possible. Its last line says so, and it stays within its token limit."""
    bound = window.Size(200, 9_000, 1)
    kept, lost = summaries.checked(said.strip(), ["order_1007"], bound, bound, window_items.SUMMED_UP, 9)
    assert 120 < window_items.size_of(window_items.SUMMED_UP + kept).tokens <= 200
    body, _, last = kept.partition("\n\n(Cut here: the last ")
    whole = body.partition("\n\nWord for word: ")[0]
    assert (
        last == f"{len(said.split()) - len(whole.split())} words had no room. The whole summary is at @state/line/9.)"
    )
    assert lost == max(len(said.split()) - len(whole.split()), 1)
    body, _, names = body.partition("\n\nWord for word: ")
    assert names == "order_1007"
    assert said.startswith(body)
    assert body.endswith(".") == said.startswith("One")


def test_names_are_added_only_beside_a_whole_summary() -> None:
    """A summary that fits is not cut for names that it forgot, however many; those that fit beside it are added."""
    said = "The depot is in Graz. " * 20
    size = window_items.size_of(window_items.SUMMED_UP + said).tokens
    many = [f"order_{number}" for number in range(1_000, 1_060)]
    for more in (0, 30, 60):
        bound = window.Size(size + more, 9_000, 1)
        kept, lost = summaries.checked(said, many, bound, bound, window_items.SUMMED_UP, 9)
        assert kept.startswith(said)
        assert lost == 0
        assert ("order_1000" in kept) == (more > 0)


def test_an_answer_within_the_words_is_not_cut() -> None:
    """Text of ids, targets and numbers has at most the tokens for a word that the prompt reckons with."""
    dense = (
        "The runs of the session: 01KB2MEZ7Q4XW8T0V5N3R6YHCD of workflows/pay_asked.yaml failed at node pay_order with STEP_FAILED; "
        "01KB2MF1A9GZ7K2D4P6S8V0W3X completed, see @state/line/212. The person said that order 1007 must never be paid. "
        'Target css=[data-testid="pay-1007"] works.'
    )
    assert estimates.of_text(dense) <= summaries.A_WORD * len(dense.split())


def test_ids_and_what_the_person_keeps_come_first() -> None:
    """Among more names than fit, what the person asked to keep and the ids of runs and nodes are first; ports, statuses, words of plans and paths to nothing are none."""
    run = "01KB2MEZ7Q4XW8T0V5N3R6YHCD"
    items = [
        Message("user", "See http://127.0.0.1:8931/orders: 404, in_progress, and @state/delegate."),
        *(Message("user", f"order_{number}") for number in range(100)),
        ToolOutput("a", f"run {run} failed at order_9000"),
        Message("user", "What of login?"),
    ]
    found = summary_names.of(items, {"login"}, "the price of `tea`")
    assert found[:4] == ["tea", run, "login", "order_0"]
    assert len(found) == summary_names.MOST_NAMES
    assert summary_names.of(items[:1]) == []


async def test_a_summary_that_is_cut_says_so() -> None:
    """The person is told of the words that a summary lost, and its last line has where it is whole."""
    state = Summing(long_talk(), "They spoke of the table. " * 400)
    shown = (await state.request())[0]
    assert re.search(
        r"saved [\d,]+; its last [\d,]+ words had no room; the whole summary is at @state/line/\d+", state.rung
    )
    line = int(re.findall(r"@state/line/(\d+)\.\)$", shown)[0])
    written = state.talk.store.reader.read(state.talk.writer.conversation.id).entries
    answer = next(each for each in written if each.seq == line)
    assert isinstance(answer, entries.Assistant)
    assert state.talk.writer.text_of(answer) == ("They spoke of the table. " * 400)


async def test_a_summary_again_has_all_its_room() -> None:
    """Each `/compress` with a short exchange between keeps a summary whole that fits `compress_to`; with less it is not made again."""
    whole = "They asked for order_1007, run after run. " * 30
    state = Summing(long_talk(), whole, compress_to=600, compress_at=100_000)
    for number in range(4):
        await state.frame.compress(MODEL, "chat", "")
        assert whole.strip() in "\n".join(await state.request())
        asked = len(state.requests)
        state.talk.says("Yes.")
        state.talk.answers("Good.")
        done = await state.frame.compress(MODEL, "chat", "")
        assert (len(state.requests), done.replaced.messages) == (asked, 0)
        state.talk.says(f"Question {number}")
        state.talk.answers("They went on with the table and with the depot in Graz. " * 8)


@pytest.mark.parametrize("tool", ["look", "read_state"])
async def test_a_path_in_a_summary_has_a_word_on_what_it_is(tool: str) -> None:
    """A `@state/line` that is added says whose result it is; one of what was read at another path is not added."""
    talk = Talk()
    talk.says("Look at all.")
    talk.answers("", [Asked(tool, "{}", PAGE)])
    looked = talk.writer.history.thread(talk.thread).said[-1]
    assert isinstance(looked, threads.Exchange)
    [output] = [each.output for each in looked.done.values()]
    assert output is not None
    line = output.seq
    talk.answers(f"It is at @state/line/{line}.")
    talk.says("Well?")
    state = Summing(talk, "They looked.", compress_at=100_000)
    talk.answers(PAGE)
    await state.frame.compress(MODEL, "chat", "")
    told = "\n".join(await state.request())
    assert (f"@state/line/{line} (result of look)" in told) == (tool == "look")
    assert (f"@state/line/{line}" in told) == (tool == "look")


async def test_a_hard_limit_gives_a_summary_a_third_of_the_conversation() -> None:
    """A summary has at most 33 % of 43 % of the hard limit, and its request keeps to the limit too."""
    state = Summing(long_talk(), "They spoke of the table. " * 100, hard_limit=1_500)
    shown = await state.request()
    assert shown[0].startswith("(A summary of")
    assert 100 < window_items.size_of(shown[0]).tokens <= 1_500 * 0.43 * 0.33
    assert estimates.tokens(state.requests[0]) <= 1_500


async def test_a_failing_model_does_not_end_the_talk() -> None:
    """When the summary fails, messages are dropped instead, and the rung gives the reason."""
    state = Summing(long_talk(), broken())
    shown = await state.request()
    assert shown[-1] == "And now?"
    assert state.rung == "failed: model-refused: the model will not"
    assert state.frame.report is not None
    assert state.frame.report.rungs[1].outcome == "saved"


@pytest.mark.parametrize("failure", [broken(), ""])
async def test_three_failures_are_enough(failure: Failed | str) -> None:
    """After three failures or empty answers in a row no model is asked, in a later process either, until a later message has an answer."""
    state = Summing(long_talk(), failure, failure, failure)
    why = "model-refused: the model will not" if failure else "the model said nothing"
    for _try in range(3):
        state.talk.says("Well?")
        await state.request()
        assert state.rung.startswith("failed: ")
    assert len({each.key for each in state.requests}) == 3
    state.died()
    await state.request()
    assert state.rung == f"failed: {why}; the last 3 have failed: it is tried again after the next answer"
    state.talk.answers("Here it is.")
    await state.request()
    assert "; the last 3 have failed" in state.rung
    state.talk.says("One more thing.")
    await state.request()
    assert "; the last 3 have failed" in state.rung
    state.talk.answers("Here.")
    state.talk.says("And now?")
    state.will_say(failure)
    await state.request()
    state.died()
    await state.request()
    assert "; the last 3 have failed" in state.rung
    for _word in range(2):
        state.talk.answers("Here.")
        state.talk.says("And now?")
    state.will_say("It went well.")
    assert "It went well." in (await state.request())[0]
    assert state.talk.writer.history.thread("summary:5:session").said != []


async def test_a_resume_after_a_failed_summary_asks_the_next_request() -> None:
    """After a failure the summary is not retried, in a new process either, until there is another message."""
    state = Summing(long_talk(), broken(), "They asked ten questions.")
    shown = await state.request()
    state.died()
    assert await state.request() == shown
    assert state.rung == "failed: model-refused: the model will not; it is tried again with the next request"
    assert len(state.requests) == 1
    state.talk.answers("Here it is.")
    assert (await state.request())[0].startswith(f"{window_items.SUMMED_UP}They asked")


async def test_a_failure_before_a_summary_counts_no_more() -> None:
    """Only consecutive failures count; a summary resets the count."""
    state = Summing(long_talk(), broken(), broken(), "First.")
    for _try in range(3):
        state.talk.says("Well?")
        await state.request()
    assert state.rung.startswith("saved")
    for number in range(8):
        state.talk.answers(f"More {number}. {PAGE}")
        state.talk.says("Go on.")
    state.will_say(broken(), broken(), "Second.")
    for _try in range(3):
        state.talk.says("Well?")
        state.died()
        await state.request()
    assert state.rung.startswith("saved")


async def test_an_answer_before_a_crash_is_not_paid_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A logged answer whose summary entry is missing is reused after a crash, with the line it was asked for."""
    state = Summing(long_talk(), "They asked ten questions.")
    really = state.talk.writer.said

    def killed(entry: entries.Said, *more: object) -> None:
        if isinstance(entry, entries.Summary):
            raise KeyboardInterrupt
        really(entry, *more)  # pyright: ignore[reportArgumentType]

    monkeypatch.setattr(state.talk.writer, "said", killed)
    with pytest.raises(KeyboardInterrupt):
        await state.request()
    state.died()
    # Even where the new limits would sum up less.
    state.limits = state.limits.model_copy(update={"min_recent": 8})
    shown = await state.request()
    assert "They asked ten questions." in shown[0]
    assert len(shown) == 5
    assert len(state.requests) == 1
    assert state.rung.startswith("saved")


async def test_a_request_before_a_crash_is_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    """A summary request interrupted by a crash is repeated unchanged in the same thread; a crash is not a failure."""
    state = Summing(long_talk(), "They asked ten questions.")
    answer: Callable[[Request], Answer | Exception] = state._answer

    def killed(_request: Request) -> Answer:
        raise KeyboardInterrupt

    for _crash in range(4):
        monkeypatch.setattr(state.models.asks, "_answers", killed)
        with pytest.raises(KeyboardInterrupt):
            await state.request()
        state.died()
    monkeypatch.setattr(state.models.asks, "_answers", answer)
    assert "They asked ten questions." in (await state.request())[0]
    assert len({each.key for each in state.requests}) == 1
    assert len(state.talk.writer.history.thread("summary:1:session").said) == 2
    assert isinstance(state.talk.writer.history.thread("summary:1:session").said[1], threads.Exchange)


async def test_a_reached_budget_ends_a_summary_and_a_larger_one_resumes() -> None:
    """A reached budget raises, and does not count as a failure of the model."""
    state = Summing(long_talk(), "They asked ten questions.")
    state.budget = "tokens=1000"
    with pytest.raises(BudgetReached):
        await state.request()
    state.budget = None
    assert "They asked ten questions." in (await state.request())[0]


async def test_a_message_that_is_too_large_is_refused_before_anything_is_paid() -> None:
    """A message that no summary can shorten is refused before anything is sent."""
    talk = long_talk()
    talk.says(PAGE * 20)
    state = Summing(talk)
    with pytest.raises(ModelError, match="nothing was sent"):
        await state.request()


async def test_long_work_after_one_message_is_summed_up_too() -> None:
    """The message itself stays unchanged, before the summary."""
    talk = Talk()
    talk.says("Pay all orders.")
    for number in range(20):
        talk.answers(f"Paid {number}. {PAGE}")
    state = Summing(talk, "Most are paid.")
    shown = await state.request()
    assert shown[0] == "Pay all orders."
    assert "Most are paid." in shown[1]
    assert shown[-1].startswith("Paid 19.")


async def test_what_no_summary_can_save_is_named_with_a_limit_that_suffices() -> None:
    """Where the window is too small for a summary, what is lost is told, and with the limit that is named nothing would be."""
    talk = Talk()
    talk.says("Look.")
    talk.answers(PAGE)
    talk.answers(PAGE)
    talk.says("And now?")
    state = Summing(talk, "Somebody looks.", compress_at=350)
    assert (await state.request())[-1] == "And now?"
    assert state.rung == "failed: the window is too small to show a model what is to be summed up"
    assert state.told == [state.rung]
    [lost] = state.report.lost
    assert lost.what == "2 of the oldest"
    [(name, most)] = state.report.enough.items()
    assert name == "compress_at"
    assert state.report.flags == f"--compress-at {most}"
    assert talk.window(compress_at=most).report.lost == ()
    assert talk.window(compress_at=most - window.HUNDRED).report.lost


async def test_a_message_that_was_never_sent_is_in_the_request_that_continues() -> None:
    """Bug 3: the error names a limit with which the message and `continue` fit; nothing says that an answer broke off."""
    talk = Talk()
    talk.says(f"Where is the depot? {PAGE}")
    state = Summing(talk, hard_limit=300)
    with pytest.raises(ModelError, match="nothing was sent") as refused:
        await state.request()
    most = refused.value.evidence["enough"]["hard_limit"]
    talk.fails("window-too-large")
    talk.says("continue")
    state.limits = state.limits.model_copy(update={"hard_limit": most})
    shown = await state.request()
    assert [each[:7] for each in shown] == ["Where i", "continu"]


async def test_a_window_fits_the_models_input(monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit is 85 % of the model's known input size, and lower where the server counts more tokens than our estimate."""
    state = Summing(long_talk(), overflow="prune", compress_at=180_000)
    await state.request()
    assert state.frame.report is not None
    assert state.frame.report.limit == 180_000
    assert state.frame.report.warn_at == 160_000
    monkeypatch.setattr(state.models, "context_window", lambda _model: 2_500)
    await state.request()
    assert state.frame.report.limit == (2_500 - 500) * 85 // 100
    assert state.frame.report.warn_at == 1_700 * 160 // 180
    assert len(state.warned) == 1
    await state.request()
    assert len(state.warned) == 1
    state.models._estimator.take(MODEL, 1_000, 2_000)
    await state.request()
    assert state.frame.report.limit == 850


@pytest.mark.parametrize(("warn_at", "warned"), [(160_000, 2_400), (2_699, 2_699), (2_700, 2_400)])
async def test_the_warning_comes_before_the_limit(warn_at: int, warned: int) -> None:
    """A warning threshold not below the limit is moved to a ninth below it."""
    state = Summing(long_talk(), overflow="prune", compress_at=2_700, warn_at=warn_at)
    await state.request()
    assert state.frame.report is not None
    assert state.frame.report.warn_at == warned


async def test_the_report_has_the_servers_count() -> None:
    """The report has the server's token count of the thread's last request and our estimate of what came after."""
    talk = Talk()
    talk.says("One")
    state = Summing(talk)
    await state.request()
    assert state.frame.report is not None
    assert state.frame.report.counted is None
    data = {"key": "k", "model": MODEL, "estimate": 9, "raw": 9, "limit": 9, "seconds": 1.0, "try": 1}
    talk.writer.noted("requested", data, talk.thread)
    answer = entries.Assistant(
        thread=talk.thread,
        key="k",
        source="model",
        model=MODEL,
        usage=entries.Usage(input=77, cached=0, output=3, reasoning=0),
    )
    talk.writer.said(answer, "An answer", "")
    talk.says("Two")
    await state.request()
    assert state.frame.report.counted == 77
    assert state.frame.report.since == estimates.of_text("An answer") + estimates.of_text("Two")
    assert state.frame.window(MODEL).report.counted == 77
