"""A conversation continues wherever its process died: it makes the same requests, pays nothing twice, and leaves a log that follows the protocol."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from nodes.errors import ModelError
from nodes.values import Json
from runtime.log import entries as log_entries
from runtime.messages.messages import Answer
from runtime.models.client.errors import Failed
from tests import breadth, talks

PLAN: dict[str, Json] = {
    "overall_goal": "tea",
    "current_phase": None,
    "phases": [
        {
            "phase_name": "buy",
            "status": "pending",
            "tasks": [{"task_id": "t", "description": "buy it", "status": "pending", "notes": None, "node_ids": []}],
        }
    ],
    "blockers": [],
    "notes": None,
}
CALLS: list[tuple[str, dict[str, Json]]] = [
    ("get_workflow_summary", {}),
    ("get_workflow_variables", {"key": None, "run": None}),
    ("get_current_plan", {}),
    ("update_plan", {"plan": PLAN, "reason": "it is new"}),
    ("patch_plan_task", {"task_id": "t", "status": "completed", "notes": None, "reason": "it is done"}),
    ("set_variable", {"name": "tea", "value": '"green"', "reason": "it is"}),
    ("set_variable", {"name": "tea", "value": f'"{talks.SECRET}"', "reason": "it is"}),
    ("clear_variable", {"name": "tea", "reason": "it was"}),
    ("clear_all_variables", {"reason": "all were"}),
    ("nope", {}),
    ("get_current_plan", {"more": 1}),
]
FAILURES = st.builds(
    lambda part: Failed(ModelError("model-refused", "no", fix="m"), partial=part),
    st.sampled_from(["", "I was", f"a {talks.SECRET}"]),
)
ANSWERS: Any = st.one_of(
    st.builds(
        lambda text, asked: talks.asks(*asked, text=text),
        st.sampled_from(["", "Look."]),
        st.lists(st.sampled_from(CALLS), max_size=3),
    ),
    st.sampled_from(["Yes.", "", talks.SECRET, "long " * 2000]).map(talks.said),
    FAILURES,
)
SCRIPTS: Any = st.lists(ANSWERS, max_size=5)
WORDS: Any = st.lists(st.sampled_from(["Why?", "continue", f"with {talks.SECRET}", "w" * 5000]), min_size=1, max_size=3)


def spoken(entries: Sequence[log_entries.AnyEntry]) -> int:
    """The number of a person's messages in the log."""
    return sum(isinstance(each, log_entries.User) and each.mode is not None for each in entries)


def answered(entries: Sequence[log_entries.AnyEntry]) -> int:
    """The number of requests with an answer or a final error."""
    failed = [
        each for each in entries if isinstance(each, log_entries.ModelError) and each.error["code"] == "model-refused"
    ]
    return len(failed) + sum(isinstance(each, log_entries.Assistant) for each in entries)


def resumed(whole: talks.Life, words: Sequence[str], lines: int) -> talks.Life:
    """The next process, run until all messages are answered."""
    again = whole.cut(lines)

    async def live() -> None:
        await again.go_on()
        await again.hear(words[spoken(again.entries) :])

    asyncio.run(live())
    return again


@settings(max_examples=breadth.of(6, 12))
@given(SCRIPTS, WORDS, st.sampled_from(["hybrid", "injected", "clean"]))
def test_a_conversation_killed_after_any_write_makes_the_same_requests(
    script: list[Answer | Exception], words: list[str], strategy: Any
) -> None:
    """Cut after any entry, the next process sends the same requests as the first would have: items, instructions, tools and state."""
    more: dict[str, Any] = {"limits": talks.window.Limits(strategy=strategy), "mode": "agent"}
    whole = talks.lived(talks.in_turn(script), *words, **more)
    entries = whole.now
    assert talks.SECRET not in str(entries)
    for lines in range(2, len(entries) + 1):
        again = resumed(whole, words, lines)
        assert again.requests == whole.requests[answered(entries[:lines]) :], (
            f"behind line {lines}: {entries[lines - 1]}"
        )
        assert again.answers[-1:] == whole.answers[-1:] or again.answers == [None]
        demand_closed(again.now)


def test_state_is_kept_once_despite_a_crash() -> None:
    """Cut after any entry of a tool that keeps state, the next process keeps the same versions once and makes the same requests."""
    two = ("set_variable", {"name": "milk", "value": "[1]", "reason": "it is"})
    script = [talks.asks(*CALLS[3:5], CALLS[5], CALLS[7]), talks.asks(CALLS[5], two, CALLS[8]), talks.asks(CALLS[5])]
    whole = talks.lived(talks.in_turn(script), "Do it.", mode="agent")
    entries = whole.now
    kept = [(each.of, each.name, each.number, each.value) for each in entries if isinstance(each, log_entries.Version)]
    assert len(kept) == 10
    for lines in range(2, len(entries) + 1):
        again = resumed(whole, ["Do it."], lines)
        assert again.requests == whole.requests[answered(entries[:lines]) :], (
            f"behind line {lines}: {entries[lines - 1]}"
        )
        now = [
            (each.of, each.name, each.number, each.value) for each in again.now if isinstance(each, log_entries.Version)
        ]
        assert now == kept


def demand_closed(entries: Sequence[log_entries.AnyEntry]) -> None:
    """Raise unless each call has exactly one result, and each call of a model exactly one tool result."""
    begun = [each.call for each in entries if isinstance(each, log_entries.Call)]
    ended = [each.call for each in entries if isinstance(each, log_entries.Result)]
    assert sorted(begun) == sorted(ended)
    asked = [
        (each.thread, call.id)
        for each in entries
        if isinstance(each, log_entries.Assistant)
        for call in each.calls or ()
    ]
    reported = [(each.thread, each.asked) for each in entries if isinstance(each, log_entries.ToolResult)]
    assert sorted(asked) == sorted(reported)
