"""What a model is told of workflow, run, plan and variables, by the real command."""

from __future__ import annotations

import subprocess

from runtime.testing import scripted_model
from tests.builds_rig import Builds, use

NODES = """\
- {id: parts, type: transform, expr: "{{ ['9.30', '8.00'] }}"}
- {id: tea, type: transform, expr: "{{ parts[0] }}"}
- {id: bill, type: transform, expr: "{{ tea | number * 2 }}"}
"""

CREATE = use("create_nodes", yaml=NODES, after=None, dry_run=None, reason="the sum")
EXECUTE = use("execute_nodes", nodes="all", mode=None, item=None, reason="to see", **{"from": None})


def variables(key: str | None = None) -> scripted_model.Answer:
    """The model reads the variables."""
    return use("get_workflow_variables", key=key)


def build(builds: Builds, *said: scripted_model.Answer) -> subprocess.CompletedProcess[str]:
    """Run `runops build` in this process; its model stops at the end."""
    end = use("finish", done=False, summary="So far.", unproved=None, reason="seen")
    return builds.answers(*said, end).here("build", "Add up the prices", "--yes")


def test_row_001_14_a_value_of_a_node_is_cleared_and_the_node_is_stale(builds: Builds) -> None:
    """Bug 4: what the listing shows, `clear_variable` clears: a pin gives way to the node's value, and a node's value goes, so that it is tested again."""
    pin = use("set_variable", name="tea", value='"1.00"', reason="to see")
    clear = use("clear_variable", name="tea", reason="again")
    build(
        builds, CREATE, EXECUTE, pin, clear, variables(), clear + variables("tea") + variables(), EXECUTE, variables()
    )
    outputs = builds.outputs()
    assert outputs[3] == "the variable `tea` is cleared: the value of its node counts again"
    assert 'tea = "9.30"\n' in outputs[4]
    assert outputs[5] == "the value of `tea` is cleared: the node is stale"
    assert "stale: its value was cleared" in outputs[6]
    assert "execute_nodes" in outputs[6]
    assert 'parts = ["9.30", "8.00"]' in outputs[7]
    assert "tea =" not in outputs[7]
    assert "bill =" not in outputs[7], "it was read by another one"
    assert 'tea = "9.30"\n' in outputs[9]


def test_row_001_15_all_variables_are_cleared_with_the_values_of_nodes(builds: Builds) -> None:
    """`clear_all_variables` leaves a fresh state: no pin and no value of a node."""
    pin = use("set_variable", name="unit", value='"EUR"', reason="asked")
    build(
        builds,
        CREATE,
        EXECUTE + pin,
        use("clear_all_variables", reason="anew"),
        variables(),
        use("clear_all_variables", reason="once more"),
    )
    outputs = builds.outputs()
    assert outputs[3] == "cleared: the variables unit; the values of parts, tea, bill, which are stale now"
    assert "tea" not in outputs[4]
    assert "unit" not in outputs[4]


def test_row_001_14_a_call_behind_a_failed_one_says_which_one_failed(builds: Builds) -> None:
    """A name that is none is refused with those that are; what changes something behind it is not done, and says plainly why; what reads is done."""
    done = use("set_variable", name="unit", value='"EUR"', reason="asked")
    build(builds, CREATE, EXECUTE, use("clear_variable", name="teaa", reason="again") + done + variables())
    refused, behind, read = builds.outputs()[2:5]
    assert refused == "there is no variable `teaa` (variable-unknown). did you mean `tea`?"
    assert "not done: an earlier call of the same answer failed: `clear_variable` (variable-unknown)" in behind
    assert 'tea = "9.30"' in read
    assert "unit" not in read
