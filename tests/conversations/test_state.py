"""What a model is told of workflow, run, plan and variables, by the real command."""

from __future__ import annotations

import itertools
import json
import re
import subprocess
from typing import Any

import pytest

from runtime.testing import scripted_model
from runtime.testing.scripted_model import text
from tests.builds_rig import Builds, plan, use
from tests.chats import PRICES, text_of, typed, words_of
from tests.rows import parts_of

pytestmark = pytest.mark.drawn(share=0.35, of="conversations state")

NODES = """\
- {id: parts, type: transform, expr: "{{ ['9.30', '8.00'] }}"}
- {id: tea, type: transform, expr: "{{ parts[0] }}"}
- {id: bill, type: transform, expr: "{{ tea | number * 2 }}"}
"""

CREATE = use("create_nodes", yaml=NODES, after=None, dry_run=None, reason="the sum")
EXECUTE = use("execute_nodes", nodes="all", mode=None, item=None, reason="to see", **{"from": None})


def variables(key: str | None = None) -> scripted_model.Answer:
    """The model reads the variables."""
    return use("get_workflow_variables", key=key, run=None)


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


SIGN_IN = """\
version: 1
name: Sign in
inputs:
  password: {type: string, default: open-sesame-1}
nodes:
  - {id: creds, type: transform, expr: "{{ {'email': 'ada@shop.test', 'password': inputs.password, 'pins': [{'token': 4711}]} }}"}
  - {id: api_key, type: transform, expr: "{{ 'sk-' ~ inputs.password }}"}
  - {id: length, type: transform, expr: "{{ creds.password | length }}"}
  - id: ask
    type: cognition
    instruction: "Sign in with {{ inputs.password }}."
    input: "{{ creds }}"
    output: string
"""


def test_row_001_11_values_are_hidden_by_their_names_in_a_run(builds: Builds) -> None:
    """A model node sees neither an input nor a part of a value whose name says so, in its request or its brief; the run uses the real ones."""
    project = builds.answers(text('{"value": "done"}'))
    project.write("sign_in.yaml", SIGN_IN)
    done = project.here("run", "sign_in.yaml", "--json")
    assert done.returncode == 0, done.stderr
    (asked,) = map(text_of, builds.bodies())
    assert "Sign in with [hidden]." in asked
    assert "ada@shop.test" in asked
    assert "open-sesame" not in asked
    assert "4711" not in asked
    assert '{{ inputs.password }} = "[hidden]"' in json.loads(asked)[0] + str(asked).replace('\\"', '"')
    assert json.loads(project.here("show", "last", "--json").stdout)["state"] == "passed"


def test_row_001_11_values_are_hidden_by_their_names_in_a_chat(builds: Builds) -> None:
    """Variables, node values, the injected state, outputs and `@state` of a chat about such a run have `[hidden]`; with another setting they do not."""
    set_creds = use("set_variable", name="login", value='{"user": "ada", "passwd": "hunter2hunter2"}', reason="asked")
    set_key = use("set_variable", name="token", value='"tok-12345"', reason="asked")
    reads = (
        variables()
        + variables("creds")
        + variables("api_key")
        + use("get_workflow_variable", key="login")
        + use("get_workflow_variable", key="token")
    )
    project = builds.answers(text('{"value": "done"}'), set_creds + set_key, reads, text("Yes."))
    project.write("sign_in.yaml", SIGN_IN)
    project.here("run", "sign_in.yaml", "--quiet")
    done = project.here("chat", "last", "--strategy", "injected", "-m", "Keep it.")
    assert done.returncode == 0, done.stderr
    body = builds.bodies()[-1]
    told = "\n".join(each for each in words_of(body) if not each.startswith("call"))
    for secret in ("open-sesame", "4711", "hunter2", "tok-12345"):
        assert secret not in told, secret
    for shown in (
        'inputs.password = "[hidden]"',
        'api_key = "[hidden]"',
        'token = "[hidden]"',
        '"passwd": "[hidden]"',
        "length = 13",
    ):
        assert shown in told, shown
    project = builds.answers(variables(), text("Yes."), RUNOPS_HIDDEN_NAMES="pin")
    project.here("chat", "last", "-m", "Show it.")
    assert any('inputs.password = "open-sesame-1"' in each for each in words_of(builds.bodies()[-1]))


SUMMARY = use("get_workflow_summary")
OUTLINE = (
    '  2 total  transform  - error: expression-failed  Adds them up  {"expr": "{{ parts | map(\'number\') | sum }}"}'
)


def summary_lines(builds: Builds) -> dict[str, str]:
    """The lines of the summary that the model was shown last, by their names."""
    shown = builds.outputs()[-1].partition("\n\n")[0]
    return {name: told for name, _, told in (line.partition(": ") for line in shown.splitlines()) if told}


def written(builds: Builds) -> None:
    """Write a workflow whose second node has a description, and fails."""
    total = "- {id: total, type: transform, description: Adds them up, expr:"
    builds.project.write("prices.yaml", PRICES.replace("- {id: total, type: transform, expr:", total))


def test_row_000_8_the_summary_in_a_chat_about_a_file_and_its_run(builds: Builds) -> None:
    """Id, name, inputs, number of nodes, phase of the plan, last run with its end, and the next step; of the file and of its run."""
    project = builds.answers(SUMMARY, text("Yes."), plan() + SUMMARY, text("Yes."), SUMMARY, text("Yes."))
    written(builds)
    project.here("chat", "prices.yaml", "-m", "What is it?")
    facts = summary_lines(builds)
    assert facts.items() >= {
        "Id": "prices.yaml", "Name": "Add up the prices", "Inputs": "prices (string)", "Nodes": "2 (transform 2)",
        "Last run": "none yet", "Phase": "there is no plan yet", "Next": "`/run` runs it",
    }.items()  # fmt: skip
    run = project.here("run", "prices.yaml", "--quiet") and project.runs()[-1]["id"]
    project.here("chat", "prices.yaml", "--mode", "agent", "-m", "What now?")
    facts = summary_lines(builds)
    assert facts["Last run"].startswith(f"{run}: failed, begun 20")
    assert facts["Phase"] == "Build (in_progress), 0 of 2 tasks completed; next task: 1, Open it"
    project.here("chat", run, "-m", "What of it?")
    facts = summary_lines(builds)
    assert facts["Id"] == f"run {run}"
    assert facts["Last run"].startswith(f"{run}: failed at total (expression-failed), begun 20")
    assert facts["Next"].startswith("runops ")


def test_row_000_8_the_summary_in_a_build(builds: Builds) -> None:
    """The id is that of the build, the last run is the last one of the whole draft, and the next step follows from the bench."""
    run_draft = use("run_draft", inputs=None, reason="to see")
    build(builds, plan() + CREATE + EXECUTE, SUMMARY, run_draft, SUMMARY)
    first, last = builds.outputs()[3], builds.outputs()[5]
    assert "\nLast run: none of this draft yet\n" in first
    assert re.search(r"^Last run: [0-9A-Z]{26}: passed, begun 20", last, re.MULTILINE)
    assert re.search(r"^Id: [0-9A-Z]{26}$", last, re.MULTILINE)
    assert "\nNodes: 3 (transform 3)\n" in last
    assert "\nPhase: Build (in_progress), 0 of 2 tasks completed; next task: 1, Open it\n" in last
    assert "\nNext: `finish`" in last


def test_row_001_7_the_injected_state_has_the_workflow_whole(builds: Builds) -> None:
    """Each node with status, description and configuration, and the workflow's metadata and last run are in each request, without a call."""
    project = builds.answers(text("Yes."))
    written(builds)
    project.here("run", "prices.yaml", "--quiet")
    project.here("chat", "last", "--strategy", "injected", "-m", "Why?")
    state = parts_of(words_of(builds.bodies()[-1]))
    assert list(state) == ["plan", "workflow", "variables", "browser state"]
    lines = state["workflow"].splitlines()
    assert OUTLINE in lines
    for begins in (
        "Id: run ",
        "Name: Add up the prices",
        "Inputs: prices (string)",
        "Nodes: 2 (transform 2)",
        "Last run: ",
    ):
        assert any(each.startswith(begins) for each in lines), begins


def test_row_001_7_what_does_not_fit_is_told_with_the_tool_that_has_it(builds: Builds) -> None:
    """In a small window nodes lose their configuration, then lines go; each part says which tool has the rest."""
    many = "\n".join(f'  - {{id: n{number}, type: transform, expr: "{"word " * 30}"}}' for number in range(100))
    project = builds.answers(text("Yes."))
    project.write("many.yaml", f"version: 1\nname: Many\nnodes:\n{many}\n")
    for limit, told in (
        ("24000", "n99  transform  {"),
        ("4000", "(Without the configuration: `get_workflow_nodes` has it.)"),
        ("1500", "… (cut; `get_workflow_nodes` has the rest)"),
    ):
        project = builds.answers(text("Yes."))
        project.here("chat", "many.yaml", "--strategy", "injected", "--hard-limit", limit, "-m", "Why?")
        state = parts_of(words_of(builds.bodies()[-1]))
        assert told in state["workflow"], limit
        assert state["browser state"]


def arguments(body: dict[str, Any], tool: str) -> list[dict[str, Any]]:
    """The arguments of the calls of this tool in a request, oldest first: they are JSON."""
    return [json.loads(each["arguments"]) for each in body["input"] if each.get("name") == tool]


@pytest.mark.drawn(share=0.5)
@pytest.mark.parametrize("strategy", ["injected", "hybrid"])
def test_row_001_24_the_plan_stands_once(strategy: str, builds: Builds) -> None:
    """Where the state has the plan, no call has one, old or new, from its first request on; so no request changes what the one before began with."""
    plans = [plan(overall_goal=f"Aim {number}") for number in range(3)]
    project = builds.answers(*plans, text("Yes."))
    done = project.here("chat", "--mode", "agent", "--strategy", strategy, "-m", "Plan it.")
    assert done.returncode == 0, done.stderr
    bodies = builds.bodies()
    for number, body in enumerate(bodies[1:]):
        everything = text_of(body)
        assert everything.count("Aim") == everything.count(f"Aim {number}") == 1
        before = bodies[number]["input"][:-1]  # without the state
        assert body["input"][: len(before)] == before
    assert [*arguments(bodies[-1], "update_plan")[0]] == ["reason", "left_out"]


def test_row_001_24_what_was_replaced_leaves_the_window_in_steps(builds: Builds) -> None:
    """In `clean` the newest plan stays as the argument of its call; older ones, values set again and nodes written again become pointers, a step at a time, and are read by their paths."""
    long = "word " * 120
    rows = [
        [plan(notes=f"{long}{number}"), use("set_variable", name="v", value=json.dumps(f"{long}{number}"), reason="so"), text("Yes.")]
        for number in range(6)
    ]  # fmt: skip
    project = builds.answers(*[each for row in rows for each in row])
    words = "".join(f"Word {number}\n" for number in range(6))
    done = typed(
        project,
        words,
        "chat",
        "--mode",
        "agent",
        "--strategy",
        "clean",
        "--checkpoint-at",
        "0",
        "--recent-outputs",
        "600",
    )
    assert done.returncode == 0, done.stderr
    bodies = builds.bodies()
    for tool, name in (("update_plan", "plan"), ("set_variable", "value")):
        last = ["left_out" in each for each in arguments(bodies[-1], tool)]
        assert last[-1] is False, "the newest stays"
        assert last == sorted(last, reverse=True)
        assert sum(last) >= 3
        assert name in arguments(bodies[-1], tool)[-1]
    # A request begins like the one before, but for some steps.
    same = [after["input"][: len(before["input"])] == before["input"] for before, after in itertools.pairwise(bodies)]
    assert sum(same) >= 2 * len(same) // 3
    path = re.findall(r"kept at (@state/call/\w+)", str(bodies[-1]["input"]))[0]
    builds.answers(use("read_state", path=path, start=None, end=None), text("Well.")).here(
        "chat", "--resume", "last", "-m", "Which?"
    )
    assert f"{long}0" in builds.outputs()[-1]


def test_a_scout_that_never_looked_has_no_report(builds: Builds) -> None:
    """It is told once to look; a second report without a look is an error for its sender."""
    scout = iter([text("It surely has a table."), text("A table, I am sure.")])
    sends = use("send_scout", task="What is on the page?", url=None, reason="to know")
    builder = iter([sends, use("finish", done=False, summary="So far.", unproved=None, reason="seen")])

    def answer(asked: scripted_model.AskedFor) -> scripted_model.Answer:
        return next(scout if asked.instructions.startswith("You are a scout") else builder)

    builds.answers(answer).here("build", "Look", "--yes")
    asked = [text_of(each) for each in builds.bodies()]
    assert sum("You have not looked at any page yet." in each for each in asked) == 1
    report = builds.outputs()[-1]
    assert report.startswith(
        "the scout failed: it reported twice without having looked at any page (the scout took 2 requests"
    )
    assert "report-unfounded" in report
