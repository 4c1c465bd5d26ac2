"""A window of a thread: the order in which content is dropped, and how the report lists it."""

from __future__ import annotations

import dataclasses

import pytest

from nodes.errors import ModelError
from runtime.context import window
from runtime.messages import estimates, tokens
from runtime.messages.messages import Item, Message, Thought, ToolCall, ToolOutput
from runtime.secrets import masking
from tests.windows import AROUND, Asked, Talk, request, tool

PAGE = "a row of the table, number 1007\n" * 40


def talk(*, outputs: int = 3) -> Talk:
    """A question, several large tool outputs, an answer, and another question."""
    found = Talk()
    found.says("Why did it fail?")
    for number in range(outputs):
        found.answers("", [Asked("read_state", f'{{"path": "{number}"}}', PAGE)])
    found.answers("The button was covered.")
    found.says("And now?")
    return found


def texts(built: window.Window) -> list[str]:
    """The texts of its messages and outputs."""
    return [each.text for each in built.items if not isinstance(each, ToolCall | Thought)]


def outputs(built: window.Window) -> list[str]:
    """The texts of its outputs."""
    return [each.text for each in built.items if isinstance(each, ToolOutput)]


def test_everything_is_sent_oldest_first() -> None:
    """Each message, each answer with its calls, and each output is in the window, oldest first."""
    built = talk(outputs=1).window()
    assert built.items == (
        Message("user", "Why did it fail?"),
        ToolCall("call_1", "read_state", '{"path": "0"}'),
        ToolOutput("call_1", PAGE),
        Message("assistant", "The button was covered."),
        Message("user", "And now?"),
    )
    assert built.report.left == ()


def test_old_outputs_become_pointers_before_anything_is_left_out() -> None:
    """The newest output stays whole; older ones become pointers with their beginning, and the report counts the tokens saved."""
    found = talk()
    built = found.window(hard_limit=1_000)
    assert texts(built)[0] == "Why did it fail?"
    first, second, third = outputs(built)
    assert first.startswith(f"(left out: {len(PAGE)} characters, kept at @state/line/")
    assert "it begins:)\na row of the table" in second
    assert third == PAGE
    assert [(each.name, each.outcome) for each in built.report.rungs] == [
        ("pointers", "saved"),
        ("dropped", "not needed"),
    ]
    assert built.report.rungs[0].saved > tokens.count(PAGE)


def test_exchanges_are_left_out_oldest_first() -> None:
    """The oldest exchanges are dropped first; the report has their count, first line and tokens."""
    built = talk(outputs=30).window(hard_limit=1_500)
    dropped = built.report.rungs[1]
    assert dropped.outcome == "saved"
    [left] = [each for each in built.report.left if each.what.endswith(window.OLDEST)]
    assert left.tokens == dropped.saved > 1_500
    assert left.line == 2
    assert [each.id for each in built.items if isinstance(each, ToolCall)][-1] == "call_30"
    assert texts(built)[-1] == "And now?"


def test_a_small_output_has_no_pointer() -> None:
    """An output becomes a pointer only where that is shorter."""
    found = Talk()
    found.says("How many?")
    found.answers("", [Asked("count", "{}", "12 orders are open")])
    assert outputs(found.window(tool_results=False)) == ["12 orders are open"]
    found.answers("", [Asked("count", "{}", PAGE)])
    assert outputs(found.window(tool_results=False))[1].startswith("(left out: ")


def test_each_part_of_the_state_is_cut_by_its_own_rule() -> None:
    """Where there is no room, a part has its longest shorter form that fits; else whole lines, and the name of what has the rest. Small parts stay whole."""
    rows = "\n".join(f"{number} node" for number in range(60))
    full = "\n".join(f"{line}  a long configuration of it" for line in rows.splitlines())
    values = f"[page]\n{rows}\n[end of page]"
    state = (
        window.Part("plan", "Goal: buy it"),
        window.Part("workflow", full, shorter=(rows,), rest="`get_workflow_nodes`"),
        window.Part("variables", values, rest="`get_workflow_variables`"),
    )
    around = dataclasses.replace(AROUND, state=state)
    shown = {
        limit: {
            each.partition("\n")[0]: each.partition("\n")[2]
            for each in talk().window(around, hard_limit=limit).state.split("## ")[1:]
        }
        for limit in (6_000, 1_500, 700)
    }
    assert shown[6_000]["workflow"].strip() == full
    assert shown[1_500]["workflow"].strip() == rows
    assert shown[1_500]["variables"].strip() == values
    assert shown[700]["plan"].strip() == "Goal: buy it"
    assert shown[700]["workflow"].strip().endswith("node\n… (cut; `get_workflow_nodes` has the rest)")
    assert (
        shown[700]["variables"].strip().endswith("node\n[end of page]\n… (cut; `get_workflow_variables` has the rest)")
    )


@pytest.mark.parametrize(
    ("text", "begins"),
    [
        ("# 1  line 4\n- {id: n1}\n" + "x" * 9_000, "# 1  line 4\n- {id: n1}\n…"),
        ('a "quoted" \\ é ' * 700, 'a "quoted" \\ é ' * 5),
        ("[page]\nOrders\n[end of page]\n" + "x" * 9_000, "[page]\nOrders\n[end of page]\n…"),
        ("[page]\n" + "x" * 9_000, "[page]\n…\n[end of page]"),
    ],
)
@pytest.mark.parametrize("share", [1, 12])
def test_a_pointer_shows_the_first_lines_of_the_text_itself(text: str, begins: str, share: int) -> None:
    """Bug 6: without quotes and escapes of any notation, kept in a file of its own or not; page text stays fenced."""
    found = Talk()
    found.says("How many?")
    found.answers("", [Asked("count", "{}", text[: len(text) // share])])
    head, _, shown = outputs(found.window(tool_results=False))[0].partition(" it begins:)\n")
    assert head.startswith("(left out: ")
    assert shown.startswith(begins)
    assert len(shown) < 200


def test_without_tool_results_the_report_says_why() -> None:
    """Outputs left out by option are reported as not wanted, not as lacking room."""
    built = talk().window(tool_results=False)
    assert {(each.what, each.why) for each in built.report.left} == {(window.OUTPUTS, window.NOT_WANTED)}
    assert len(built.report.left) == 3


def test_consecutive_events_are_one_message() -> None:
    """Consecutive events are one message with a line for each; without `events` none is sent, and the report lists them."""
    found = Talk()
    found.says("Run it.")
    found.happens("/run")
    found.happens("the run failed")
    found.says("Why?")
    found.happens("/mode run")
    shown = texts(found.window())
    assert shown == [
        "Run it.",
        "(Not said, but what happened meanwhile.)\n/run\nthe run failed",
        "Why?",
        "(Not said, but what happened meanwhile.)\n/mode run",
    ]
    without = found.window(events=False)
    assert texts(without) == ["Run it.", "Why?"]
    assert [each.why for each in without.report.left] == [window.NOT_WANTED] * 2


def test_continue_resumes_from_a_broken_answer() -> None:
    """The partial answer stays in the thread with the error, followed by the new message; where none came, that is told."""
    found = Talk()
    found.says("Tell me all.")
    found.fails("model-failed", "nothing yet", again=0.5)
    found.fails("model-timeout", "First, the page was")
    found.says("Go on.")
    found.fails("model-refused")
    found.says("continue")
    built = found.window()
    assert built.items == (
        Message("user", "Tell me all."),
        Message("assistant", "First, the page was\n(LLM_ERROR model-timeout: the answer broke off here)"),
        Message("user", "Go on."),
        Message("assistant", "(LLM_ERROR model-refused: no answer came)"),
        Message("user", "continue"),
    )


def test_a_request_that_is_made_again_is_the_same() -> None:
    """Unless a new message or event is sent, a failed request is repeated unchanged, without the partial answer."""
    found = Talk()
    found.says("Tell me all.")
    before = found.window()
    found.fails("model-timeout", "First, the page was")
    assert request(found.window()) == request(before)
    found.happens("/mode run")
    assert found.window(events=False).items == before.items
    assert [each.text for each in found.window().items if isinstance(each, Message)][1].startswith("First, the page")


def test_outputs_that_are_not_recent_are_pointers_though_there_is_room() -> None:
    """Outputs within `recent_outputs` tokens and the newest one stay whole; older ones become pointers, reported as old."""
    found = talk(outputs=12)
    each = found.items.tokens_before(2) - found.items.tokens_before(1)
    shown = outputs(found.window(recent_outputs=3 * each))
    whole = [text for text in shown if text == PAGE]
    assert 3 <= len(whole) <= 6
    assert shown[-len(whole) :] == whole
    built = found.window(recent_outputs=1)
    assert PAGE not in outputs(built)
    assert {(left.what, left.why) for left in built.report.left} == {(window.OUTPUTS, window.OLD)}
    found.answers("", [Asked("read_state", "{}", PAGE)])
    assert outputs(found.window(recent_outputs=1))[-1] == PAGE


def test_the_recent_part_moves_in_steps() -> None:
    """The older part stays unchanged in most requests, so that the server's cache stays valid."""
    found = Talk()
    found.says("Look at all of it.")
    before: list[Item] = []
    kept, recent = 0, 4 * estimates.of_text(PAGE)
    for _number in range(24):
        found.answers("", [Asked("read_state", "{}", PAGE)])
        items = list(found.window(recent_outputs=recent).items)
        kept += items[: len(before)] == before
        before = items
    assert 24 > kept > 12


def test_a_summary_replaces_what_it_covers() -> None:
    """The summary comes first, and nothing up to its last line is sent."""
    found = Talk()
    found.says("one")
    found.answers("1")
    found.sums_up("They counted to one.", upto=3)
    found.says("two")
    assert texts(found.window()) == ["(A summary of what was said before this.)\nThey counted to one.", "two"]


def test_a_summary_that_is_too_large_leaves_room_for_the_thread() -> None:
    """A summary larger than half of the thread's room is left out, and the report says why."""
    found = Talk()
    found.says("one")
    found.answers("1")
    found.sums_up(PAGE * 3, upto=3)
    found.answers("", [Asked("look", "{}", "short")])
    found.says("two")
    built = found.window(hard_limit=1_000)
    assert texts(built) == ["short", "two"]
    assert [(each.what, each.why) for each in built.report.left] == [
        ("summary", "it is larger than half of what the thread may have")
    ]


def test_the_margin_stays_free_with_a_long_message() -> None:
    """A message larger than the thread's share takes room from knowledge, not from the margin."""
    found = Talk()
    found.says(PAGE)
    around = window.RequestFrame(AROUND.prefix, knowledge=lambda _asked: [window.Part("orders", PAGE)])
    for limit in (500, 520, 560, 600):
        assert found.window(around, hard_limit=limit).report.tokens <= limit - limit * 7 // 100


def test_the_newest_message_is_sent_though_a_summary_covers_it() -> None:
    """The newest user message comes before the summary that covers it."""
    found = Talk()
    found.says("Pay all orders.")
    for number in range(3):
        found.answers(f"paid {number}")
    found.sums_up("Two are paid.", upto=4)
    assert texts(found.window()) == [
        "Pay all orders.",
        "(A summary of what was said before this.)\nTwo are paid.",
        "paid 2",
    ]


def test_an_open_call_is_shown_as_open() -> None:
    """A call without a result is shown as open, and an empty output as nothing."""
    found = Talk()
    found.says("Look.")
    found.answers("", [Asked("look", "{}", None), Asked("read", "{}", "")])
    assert outputs(found.window()) == ["(open: no outcome is recorded)", "(nothing)"]


@pytest.mark.parametrize("limit", [{"hard_limit": 60}, {"compress_at": 60}])
def test_the_request_frame_is_dropped_before_anything_is_refused(limit: dict[str, int]) -> None:
    """Tools, state and knowledge are dropped first; only a message too large by itself is refused."""
    around = window.RequestFrame(
        AROUND.prefix, tuple(tool(f"tool_{number}") for number in range(5)), (window.Part("plan", PAGE),)
    )
    found = Talk()
    found.says("Why?")
    built = found.window(around, **limit)
    assert texts(built) == ["Why?"]
    assert built.tools == ()
    assert {each.what for each in built.report.left} >= {"tool tool_0", "plan"}
    found.says(PAGE)
    with pytest.raises(ModelError, match="nothing was sent") as refused:
        found.window(around, **limit)
    assert refused.value.code == "window-too-large"
    assert refused.value.evidence["needed"] > 60


def test_tools_are_offered_within_their_share() -> None:
    """Tools are offered in order as far as their share of a hard limit goes; without one all are offered."""
    around = window.RequestFrame(AROUND.prefix, tuple(tool(f"tool_{number}") for number in range(9)))
    found = Talk()
    found.says("Why?")
    assert found.window(around, hard_limit=1_500).tools == around.tools[:1]
    assert found.window(around, hard_limit=3_000).tools == around.tools[:3]
    assert found.window(around).tools == around.tools


def test_knowledge_is_cut_by_lines() -> None:
    """Knowledge that exceeds its share is cut after a whole line and marked as cut."""
    asked: list[str] = []

    def known(question: str) -> list[window.Part]:
        asked.append(question)
        return [window.Part("orders", PAGE)]

    found = Talk()
    found.says("Which orders?")
    built = found.window(window.RequestFrame(AROUND.prefix, knowledge=known), hard_limit=600)
    assert asked == ["Which orders?"]
    head, *lines, last = built.state.splitlines()
    assert head == "## orders"
    assert last == "… (cut)"
    assert set(lines) == set(PAGE.splitlines())
    assert 200 < estimates.of_text(built.state) <= 240
    assert [each.what for each in built.report.left] == ["orders"]


def test_the_thread_gets_unused_shares() -> None:
    """Without tools and state the thread has nearly all of a hard limit; with both it has its own share."""
    found = talk(outputs=40)
    thread = [each for each in found.window(hard_limit=4_000).report.sections if each.name == "thread"]
    assert thread[0].tokens > 3_000
    around = window.RequestFrame(
        (window.Part("rules", "Answer. " * 150),),
        tuple(tool(f"tool_{number}") for number in range(20)),
        (window.Part("plan", PAGE * 5),),
    )
    built = found.window(around, hard_limit=4_000)
    sections = {each.name: each for each in built.report.sections}
    assert 1_200 < sections["thread"].tokens <= 1_720
    assert sections["thread"].share == 0.43
    assert 700 < sections["plan"].tokens <= 1_600


def test_state_takes_no_more_than_half_of_a_loose_window() -> None:
    """State takes at most half of a window without a hard limit, so the thread keeps its room."""
    around = window.RequestFrame(AROUND.prefix, state=(window.Part("outline", PAGE * 100),))
    built = talk().window(around, compress_at=4_000)
    sections = {each.name: each.tokens for each in built.report.sections}
    assert 1_800 < sections["outline"] <= 2_000
    assert texts(built)[0] == "Why did it fail?"


def test_token_counts_are_those_of_the_masked_text() -> None:
    """Token counts are those of the masked text, arguments of calls included."""
    found = Talk(masker=masking.Masker({"password": "abcdef"}))
    found.says("Sign in with abcdef.")
    found.answers("", [Asked("sign_in", '{"password": "abcdef"}', "abcdef was refused")])
    built = found.window()
    assert "abcdef" not in str(built.items)
    assert built.report.tokens == estimates.tokens(request(built))


def test_a_person_is_warned_before_it_is_full() -> None:
    """The warning counts tokens before anything is dropped, and the report has both counts."""
    found = talk(outputs=4)
    everything = found.window().report
    assert not everything.warns
    assert everything.wanted == everything.tokens
    narrow = found.window(max_messages=2, warn_at=everything.wanted).report
    assert narrow.warns
    assert narrow.tokens < everything.tokens
    assert not found.window(warn_at=everything.wanted + 1).report.warns
    assert narrow.as_json()["warns"] is True
