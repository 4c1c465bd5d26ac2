"""Random threads, limits and surroundings of a window, for tests by property."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from runtime import window
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
"""What is said in them: nothing, words, pages, data, code, other scripts, what no tokenizer shortens, what stands in a blob."""

texts = st.sampled_from(TEXTS)
asked = st.builds(
    Asked, st.sampled_from(["get_workflow_nodes", "read_state"]), st.just('{"path": "a"}'), st.none() | texts
)
deeds = st.one_of(
    st.tuples(st.just("says"), texts),
    st.tuples(st.just("answers"), texts, st.lists(asked, max_size=3)),
    st.tuples(st.just("fails"), st.sampled_from(["model-timeout", "model-incomplete"]), texts),
    st.tuples(st.just("again"), texts),
    st.tuples(st.just("happens"), st.sampled_from(["/mode run", "/set key=value", "a run was started: 01JD"])),
    st.tuples(st.just("sums_up"), st.sampled_from(TEXTS[1:5]), st.floats(0, 1)),
)
"""What happens in a session."""


@st.composite
def talks(draw: st.DrawFn) -> Talk:
    """A session in which something was said, and in which what it was is said again and again where it is a long one."""
    drawn: list[tuple[Any, ...]] = draw(st.lists(deeds, min_size=1, max_size=14))
    many = draw(st.sampled_from([1, 1, 1, 2, 12]))
    talk = Talk()
    talk.says(draw(texts))
    for deed, *values in drawn * many:
        if deed == "again":
            talk.fails("model-failed", values[0], again=0.5)
        elif deed == "sums_up":
            talk.sums_up(values[0], int(talk.pen.history.last_seq * values[1]))
        else:
            getattr(talk, deed)(*values)
    return talk


parts = st.lists(
    st.builds(window.Part, st.sampled_from(["plan", "outline", "variables", "browser"]), texts), max_size=4
).map(tuple)
known = st.lists(st.builds(window.Part, st.just("about orders"), texts), max_size=3)


@st.composite
def arounds(draw: st.DrawFn) -> window.Around:
    """What stands around the thread."""
    found = draw(known)
    count = draw(st.integers(0, 4))
    return window.Around(
        prefix=(window.Part("rules", "Answer from what you are told."), window.Part("more", draw(texts))),
        tools=tuple(tool(f"tool_{number}", draw(st.sampled_from(TEXTS[2:4]))) for number in range(count)),
        state=draw(parts),
        knowledge=lambda _asked: found,
    )


def limits() -> st.SearchStrategy[window.Limits]:
    """Limits of every kind, most of them too narrow for something."""
    tokens = st.integers(1, 300) | st.integers(300, 4_000) | st.integers(4_000, 200_000)
    return st.builds(
        window.Limits,
        strategy=st.sampled_from(["injected", "clean", "hybrid"]),
        max_messages=st.none() | st.integers(1, 60),
        max_chars=st.none() | st.integers(1, 2_000) | st.integers(2_000, 120_000),
        tool_results=st.booleans(),
        recent_outputs=st.none() | st.integers(1, 3_000),
        events=st.booleans(),
        hard_limit=st.none() | tokens,
        overflow=st.sampled_from(["prune", "summarize"]),
        min_recent=st.integers(1, 8),
        compress_at=tokens,
        compress_to=tokens,
    )
