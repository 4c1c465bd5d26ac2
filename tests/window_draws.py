"""Random threads, limits and request frames, for property tests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from runtime.context import window
from runtime.messages import estimates
from tests.windows import Asked, Talk, tool

TEXTS = (
    "",
    "continue",
    "Which orders are open, and why did 1007 fail?",
    "The order #1007 was not paid: the button was covered by a dialog.\n" * 3,
    '<tr class="row"><td class="no">1007</td><td>EUR 20,00</td></tr>\n' * 12,
    '{"orders": [{"number": "1007", "total": 20.0, "paid": false}], "next": null}',
    "def pay(order):\n    return click(order, name='Pay')\n" * 6,
    "订单一千零七没有付款因为按钮被对话框挡住了。" * 8,
    "aGVsbG8gd29ybGQsIHRoaXMgaXMgYmFzZTY0IG9mIG5vdGhpbmc" * 10,
    "ab" * 2_500,
    "line of a long output, with a number 12345 in it\n" * 30,
)
"""The texts in them: empty, words, pages, data, code, other scripts, text that no tokenizer shortens, text large enough for a blob."""

often = settings(
    max_examples=settings().max_examples * 2 // 5,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)
"""Number of examples: 40 by default."""

texts = st.sampled_from(TEXTS)
asked = st.builds(
    Asked, st.sampled_from(["get_workflow_nodes", "read_state"]), st.just('{"path": "a"}'), st.none() | texts
)
read = st.builds(
    Asked, st.just("read_state"), st.just('{"path": "b"}'), st.sampled_from([each for each in TEXTS if len(each) > 300])
)
actions = st.one_of(
    st.tuples(st.just("answers"), st.sampled_from(TEXTS[:3]), st.lists(read, min_size=1, max_size=2)),
    st.tuples(st.just("answers"), st.sampled_from(TEXTS[:3]), st.lists(read, min_size=1, max_size=1)),
    st.tuples(st.just("says"), texts),
    st.tuples(st.just("answers"), texts, st.lists(asked, max_size=3)),
    st.tuples(st.just("answers"), texts, st.lists(asked, max_size=2), st.integers(1, 900)),
    st.tuples(st.just("fails"), st.sampled_from(["model-timeout", "model-incomplete"]), texts),
    st.tuples(st.just("again"), texts),
    st.tuples(st.just("happens"), st.sampled_from(["/mode run", "/set key=value", "a run was started: 01JD"])),
    st.tuples(st.just("sums_up"), st.sampled_from(TEXTS[1:5]), st.floats(0, 1)),
)
"""Events of a session."""


@st.composite
def talks(draw: st.DrawFn, times: Sequence[int] = (1, 1, 1, 2, 12)) -> Talk:
    """A session with random events, repeated so many ``times`` for a long one."""
    drawn: list[tuple[Any, ...]] = draw(st.lists(actions, min_size=1, max_size=14))
    many = draw(st.sampled_from(times))
    talk = Talk()
    talk.says(draw(texts))
    for action, *values in drawn * many:
        if action == "again":
            talk.fails("model-failed", values[0], again=0.5)
        elif action == "sums_up":
            talk.sums_up(values[0], int(talk.writer.history.last_seq * values[1]))
        else:
            getattr(talk, action)(*values)
    return talk


parts = st.lists(
    st.builds(window.Part, st.sampled_from(["plan", "outline", "variables", "browser"]), texts), max_size=4
).map(tuple)
known = st.lists(st.builds(window.Part, st.just("about orders"), texts), max_size=3)


@st.composite
def arounds(draw: st.DrawFn) -> window.RequestFrame:
    """The request around the thread."""
    found = draw(known)
    count = draw(st.integers(0, 4))
    return window.RequestFrame(
        prefix=(
            window.Part("rules", "Answer from what you are told."),
            window.Part("tools", draw(texts), on_tools=True),
            window.Part("more", draw(texts)),
        ),
        tools=tuple(tool(f"tool_{number}", draw(st.sampled_from(TEXTS[2:4]))) for number in range(count)),
        state=draw(parts),
        knowledge=lambda _asked: found,
        on_knowledge=window.Part("knowledge", draw(texts)),
    )


Case = tuple[Talk, window.RequestFrame, window.Limits]
"""A session, its request frame, and the limits of its window."""


def _shares(system: int, state: int, conversation: int, summary: int) -> dict[str, int]:
    """Shares of these proportions, which leave something free where rounding does."""
    whole = system + state + conversation
    parts = {"system": system * 100 // whole, "state": state * 100 // whole}
    return {
        **parts,
        "conversation": max(1, conversation * 100 // whole) if conversation * 100 >= whole else 1,
        "summary": summary,
    }


_OTHERS: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {
        "strategy": st.sampled_from(["injected", "clean", "hybrid"]),
        "max_messages": st.none() | st.integers(1, 60),
        "max_chars": st.none() | st.integers(1, 2_000) | st.integers(2_000, 120_000),
        "tool_results": st.sampled_from([True, True, False]),
        "recent_outputs": st.none() | st.integers(1, 3_000),
        "events": st.booleans(),
        "overflow": st.sampled_from(["prune", "summarize"]),
        "min_recent": st.integers(0, 8),
        "shares": st.just({}) | st.builds(_shares, *[st.integers(1, 100)] * 4),
    }
)
_NEAR, _ANY, _OFTEN = st.integers(-90, 90), st.integers(1, 100_000), st.sampled_from([True, True, True, False])


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Any session, any request frame, and limits of every kind, most of them so narrow that something barely fits or barely does not."""
    talk, around = draw(talks()), draw(arounds())
    edges = st.sampled_from(_edges(talk, around))

    def tokens() -> int:
        return max(1, draw(edges) + draw(_NEAR)) if draw(_OFTEN) else draw(_ANY)

    is_strict = draw(st.booleans())
    return (
        talk,
        around,
        window.Limits(
            **draw(_OTHERS),
            hard_limit=tokens() if is_strict else None,
            compress_at=window.Limits().compress_at if is_strict else tokens(),
        ),
    )


def _edges(talk: Talk, around: window.RequestFrame) -> list[int]:
    """Limits at which one more part fits: the required part, the state, each tool in its share and beside it, so much of the thread."""
    thread = talk.items
    system = estimates.of_text("\n\n".join(each.text for each in around.prefix if each.text)) + estimates.AN_ANSWER
    word = thread.word.size(pointers=False).tokens if thread.word is not None else 0
    tools = [estimates.of_tools(around.tools[:count]) for count in range(len(around.tools) + 1)]
    known = sum(estimates.of_text(each.text) for each in around.state)
    everything = thread.tokens_before(len(thread))
    tails = [everything - thread.tokens_before(number) for number in range(len(thread))][-8:]
    edges = [
        *(system + word + each for each in (0, tools[-1], tools[-1] + 2 * known)),
        *((system + word) * 100 // share for share in (93, 83, 60)),
        *((system + each) * 100 // 10 for each in tools),
        *(system + word + tools[-1] + known + each for each in tails),
        *((word + each) * 100 // 43 for each in tails),
    ]
    return sorted({each for each in edges if each > 0})
