"""The plan of a session: valid plans, changes of one task, and the plan as a to-do list."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from director.session import plan as plans
from nodes.errors import ModelError
from nodes.values import Json
from runtime.display import plans as shown

DATA: dict[str, Json] = {
    "overall_goal": "Pay the open orders",
    "current_phase": "Build",
    "phases": [
        {
            "phase_name": "Look",
            "status": "completed",
            "tasks": [
                {"task_id": "t1", "description": "See the login", "status": "completed", "notes": None, "node_ids": []}
            ],
        },
        {
            "phase_name": "Build",
            "status": "in_progress",
            "tasks": [
                {
                    "task_id": "t2",
                    "description": "Write the loop",
                    "status": "in_progress",
                    "notes": "",
                    "node_ids": ["each_order", "pay"],
                },
                {
                    "task_id": "t3",
                    "description": "Test it",
                    "status": "blocked",
                    "notes": "no orders are open",
                    "node_ids": [],
                },
            ],
        },
    ],
    "blockers": ["The shop has no open order"],
    "notes": None,
}


def test_a_plan_reads_as_a_to_do_list() -> None:
    """Each phase and task has a line with its mark; the current phase, nodes, notes and blockers are shown."""
    assert shown.as_todo(plans.of(DATA).as_json()) == [
        "Goal: Pay the open orders",
        "[x] Look",
        "  [x] t1  See the login",
        "[>] Build  (now)",
        "  [>] t2  Write the loop  (each_order, pay)",
        "  [!] t3  Test it - no orders are open",
        "Blocked by: The shop has no open order",
    ]


def test_a_patch_changes_one_task_in_what_is_given() -> None:
    """A patch changes only the given fields of one task, and the status of its phase, which follows from its tasks."""
    before = plans.of(DATA)
    after = before.patch("t3", status="completed", notes="done by hand")
    changed = after.as_json()
    assert changed["phases"][1]["tasks"][1] == {
        "task_id": "t3",
        "description": "Test it",
        "status": "completed",
        "notes": "done by hand",
        "node_ids": [],
    }
    changed["phases"][1]["tasks"][1] = before.as_json()["phases"][1]["tasks"][1]
    assert changed == before.as_json()
    both = after.patch("t2", status="completed")
    assert [each.status for each in both.phases] == ["completed", "completed"]
    again = both.patch("t2", status="pending").patch("t3", status="pending")
    assert again.phases[1].status == "pending"


@pytest.mark.parametrize(("status", "then"), [("pending", "in_progress"), ("completed", "in_progress")])
def test_a_new_task_leaves_a_phase_begun(status: str, then: str) -> None:
    """A phase in progress stays so, whatever the status of its tasks; a completed one is open again."""
    tasks = [{"task_id": each, "description": each, "status": status} for each in ("t1", "t2")]
    phase = "completed" if status == "completed" else "in_progress"
    plan = plans.of({"overall_goal": "", "current_phase": "Pay", "phases": [
        {"phase_name": "Pay", "status": phase, "tasks": tasks},
    ]})  # fmt: skip
    assert [each.status for each in plan.add("Write a list").phases] == [then]


def test_the_next_task_follows_from_the_tasks() -> None:
    """The next task is the first one in progress, else the first pending one. After a phase's last task, the next open phase is current."""
    waits: dict[str, Json] = {"phase_name": "Prove", "tasks": [{"task_id": "t4", "description": "Prove it"}]}
    plan = plans.of({**DATA, "phases": [*DATA["phases"], waits]})
    one = plan.patch("t2", status="completed")
    assert one.current_phase == "Build"
    assert plans.as_step(one, "t2") == "t2 is completed; next: t4, Prove it"
    two = one.patch("t3", status="completed")
    assert two.current_phase == "Prove"
    three = two.patch("t4", status="completed")
    assert three.current_phase == ""
    assert plans.as_step(three, "t4") == "t4 is completed; all tasks are completed"
    assert plans.as_step(one.patch("t4", status="blocked"), "t4").endswith("only blocked tasks are left (t3, t4)")
    assert plans.as_step(plan, "t1") == "t1 is completed; next: t2, Write the loop"


def test_a_plan_is_taken_as_far_as_it_is_one() -> None:
    """Missing fields of a model's plan get defaults, an unknown phase is made, and what was taken otherwise is said."""
    look: dict[str, Json] = {"phase_name": "Look", "tasks": ["See it", {"task_id": "a", "status": "done", "why": "x"}]}
    plan, said = plans.taken(
        {"goal": "Pay", "phases": [look, "Build"], "current_phase": "Prove", "blockers": "no order"}
    )
    assert plan.as_json() == {
        "overall_goal": "",
        "current_phase": "Prove",
        "phases": [
            {
                "phase_name": "Look",
                "status": "in_progress",
                "tasks": [
                    {"task_id": "task_1", "description": "See it", "status": "pending", "notes": "", "node_ids": []},
                    {"task_id": "a", "description": "a", "status": "completed", "notes": "", "node_ids": []},
                ],
            },
            {"phase_name": "Build", "status": "pending", "tasks": []},
            {"phase_name": "Prove", "status": "pending", "tasks": []},
        ],
        "blockers": ["no order"],
        "notes": "",
    }
    assert said == [
        "the plan has no `goal`",
        "a task has no `why`",
        "`a` is completed: there is no status `done`",
        "the current phase is the new `Prove`",
    ]
    close, said = plans.taken({**DATA, "current_phase": "Buld"})
    assert (close.current_phase, said) == ("Build", ["the current phase is `Build`"])
    twice, said = plans.taken({"overall_goal": "x", "tasks": [{"task_id": "t"}, {"task_id": "t"}]})
    assert ([each.task_id for each in twice.tasks()], said) == (["t", "t_2"], ["the second `t` is `t_2`"])
    assert plans.taken(DATA) == (plans.of(DATA), [])


def test_an_unknown_task_is_refused_with_a_suggestion() -> None:
    """The fix for an unknown task names the near miss, or else all tasks."""
    with pytest.raises(ModelError, match="no task `t22`") as caught:
        plans.of(DATA).patch("t22")
    assert (caught.value.code, caught.value.fix) == ("task-unknown", "did you mean `t2`?")
    with pytest.raises(ModelError) as caught:
        plans.of(DATA).patch("zzz")
    assert caught.value.fix == "these are its tasks: t1, t2, t3"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"current_phase": "Buld"}, "the current phase `Buld` is none of its phases"),
        ({"phases": [DATA["phases"][0], DATA["phases"][0]]}, "two tasks are called `t1`"),
        ({"phases": [{"phase_name": "A"}, {"phase_name": "A"}], "current_phase": None}, "two phases are called `A`"),
        ({"overall_goal": 3}, "overall_goal"),
        ({"goal": "x"}, "goal: Extra inputs"),
        ({"phases": [{"phase_name": "A", "status": "done"}]}, "phases.0.status"),
    ],
)
def test_an_invalid_plan_is_refused(change: dict[str, Json], message: str) -> None:
    """Every mistake of an invalid plan is reported with its place."""
    with pytest.raises(ModelError, match="this is no plan") as caught:
        plans.of({**DATA, **change})
    assert caught.value.code == "plan-invalid"
    assert message in caught.value.message
    assert caught.value.fix


JSON = st.recursive(st.none() | st.booleans() | st.integers() | st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(["phases", "tasks", "status", "notes", "node_ids", "overall_goal"]), inner), max_leaves=12)  # fmt: skip


@given(JSON)
def test_any_plan_is_taken_or_refused_in_words(data: Any) -> None:
    """Whatever a model writes as a plan becomes a valid plan, or an error that says what is wrong."""
    with contextlib.suppress(ModelError):
        plan, _said = plans.taken(data)
        assert plans.of(plan.as_json()) == plan


@given(JSON)
def test_any_logged_plan_can_be_shown(data: Any) -> None:
    """The to-do list of any data is lines of text."""
    assert all("\n" not in each for each in shown.as_todo(data))
