"""Delegates are agents by name (rows 002-9, 002-10, 002-11)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from director.session.state import SessionState
from nodes.values import Json
from runtime.language import agent_files
from runtime.testing.scripted_model import Answer, AskedFor, Script, call, text, text_of
from tests import build_contexts
from tests.chats import Chats, words_of
from tests.command import Project

CHECKER = """\
description: Checks whether prices are numbers.
prompt: |
  A price has two decimals.
context: clean
delegates: 0
tools: [get_workflow_nodes, get_current_plan, read_state]
model: small-model
max_output: 700
budget: calls=2
"""


@pytest.fixture
def chats(tmp_path: Path) -> Iterator[Chats]:
    """Chat sessions in a project."""
    made = Chats(tmp_path)
    yield made
    made.close()


def agent(project: Project, name: str, text: str) -> None:
    """Put the file of an agent into the project."""
    (project.folder / "agents").mkdir(exist_ok=True)
    project.write(f"agents/{name}.yaml", text)


def sent(goal: str, agent: str | None = None, context: str | None = None, **more: Json) -> Answer:
    """A call of ``delegate`` with a whole task."""
    given: dict[str, Json] = {"goal": goal, "deliverable": "A word.", "end": "It is known.", "context": context, **more}
    return call("delegate", given | ({"agent": agent} if agent is not None else {}))


def sending(**answers: Answer) -> Script:
    """A model that answers a message by the longest of these names in it, and ends after its delegates with their answers."""

    def answer(asked: AskedFor) -> Answer:
        # The message to a delegate that inherits follows one of the person.
        newest = text_of(asked.items[-1]) if "You are a delegate" in asked.instructions else asked.newest
        if "the delegate" in newest:
            return text(f"Heard: {newest}")
        known = max((name for name in answers if name in newest), key=len, default=None)
        return answers[known] if known is not None else text(f"Done: {newest.splitlines()[0]}")

    return answer


def tool(body: dict[str, Any], name: str = "delegate") -> dict[str, Any]:
    """The tool as a request offers it."""
    return next(each for each in body["tools"] if each["name"] == name)


def test_002_9_an_agent_has_its_own_prompt_tools_model_and_limits(chats: Chats) -> None:
    """The model is offered the agents with their descriptions; the delegate's request has what its file says, and its cost in money returns."""
    project = chats.answers(sending(Ask=sent("Check 12.50.", "checker")), RUNOPS_PRICES=PRICED)
    agent(project, "checker", CHECKER)
    done = project.here("chat", "--mode", "agent", "-m", "Ask.")
    assert done.returncode == 0, done.stderr
    first, second, third = chats.bodies()
    field = tool(first)["parameters"]["properties"]["agent"]
    assert field["enum"] == ["checker", None]
    assert "`checker` (begins clean): Checks whether prices are numbers." in field["description"]
    assert "A price has two decimals." in second["instructions"]
    assert "You are a delegate" in second["instructions"]
    assert (second["model"], second["max_output_tokens"]) == ("small-model", 700)
    assert [each["name"] for each in second["tools"]] == ["get_workflow_nodes", "get_current_plan", "read_state"]
    assert words_of(second) == ["user: Check 12.50.\n\nDeliverable: A word.\nEnd: It is known."]
    (output,) = [each for each in words_of(third) if each.startswith("output: ")]
    assert output.startswith("output: Done: Check 12.50.\n(the delegate checker took 1 request, ")
    assert output.endswith(" tokens, $1.00)")
    assert f"--  {output.rpartition('(')[2].removesuffix(')')}\n" in done.stderr, "the person hears it, too"


PRICED = json.dumps({"test-model": {"input": 0.5, "output": 2.0}, "small-model": {"input": 0.0, "output": 200_000.0}})
"""Prices with which an answer of five tokens costs a dollar."""


def test_002_9_an_agent_has_its_own_budget(chats: Chats) -> None:
    """The request that the agent's budget does not allow is not sent, and its parent continues."""
    looks = call("get_current_plan", {})

    def answer(asked: AskedFor) -> Answer:
        if "Ask." in asked.newest:
            return sent("Look.", "checker")
        return text(asked.newest) if "the delegate" in asked.newest else looks

    project = chats.answers(answer)
    agent(project, "checker", CHECKER.replace("model: small-model\n", ""))
    done = project.here("chat", "--mode", "agent", "-m", "Ask.")
    assert done.returncode == 0, done.stderr
    assert len(chats.asked) == 4
    assert "the delegate checker failed: the delegate `1_delegate` has 0 left of its budget of 2 (calls)" in done.stdout


def test_002_9_several_agents_at_once_and_nested(chats: Chats) -> None:
    """Two agents of one answer both answer; one sends another below it, down to its depth, and one that looks sends none that acts."""
    chief = "description: Sends others.\ndelegates: 2\n"
    script = sending(
        Go=sent("Lead.", "chief") + sent("Check.", "checker"), Lead=sent("Below.", "chief"), Below=sent("Deep.")
    )
    project = chats.answers(script)
    agent(project, "checker", CHECKER.replace("model: small-model\n", ""))
    agent(project, "chief", chief)
    agent(project, "payer", "description: Pays.\nacts: true\n")
    done = project.here("chat", "--mode", "agent", "--delegate-clean", "-m", "Go.")
    assert done.returncode == 0, done.stderr
    shown = project.show(_session(project))["delegates"]
    ran = {each["path"]: (each["agent"], each["status"]) for each in shown}
    assert ran == {
        "1_delegate": ("chief", "ok"),
        "2_delegate": ("checker", "ok"),
        "1_delegate/1_delegate": ("chief", "ok"),
        "1_delegate/1_delegate/1_delegate": (None, "ok"),
    }
    assert next(each for each in shown if each["path"] == "1_delegate")["costs"]["requests"] == 5
    offered = {
        words_of(body)[0].splitlines()[0]: [each for each in body["tools"] if each["name"] == "delegate"]
        for body in chats.bodies()
    }
    assert [each["parameters"]["properties"]["agent"]["enum"] for each in offered["user: Go."]] == [
        ["checker", "chief", "payer", None]
    ]
    assert [each["parameters"]["properties"]["agent"]["enum"] for each in offered["user: Lead."]] == [
        ["checker", "chief", None]
    ]
    assert offered["user: Deep."] == []


def test_002_9_a_wrong_agent_file_is_refused_with_its_place(chats: Chats) -> None:
    """No session begins: each mistake is shown with file, line and column, and the near word. `runops agents` shows the same."""
    project = chats.answers()
    agent(project, "checker", "description: Checks.\npromt: Look.\ntools: [read_stat, click]\nacts: no\n")
    agent(project, "payer", "description: Pays.\ntools: [debug_action]\n")
    for arguments in (["chat", "-m", "Hello"], ["agents"], ["agents", "show", "checker"], ["build", "Do it"]):
        done = project.here(*arguments)
        assert done.returncode == 2, done.stderr
        for said in (
            "--> agents/checker.yaml:2:1",
            "did you mean `prompt`?",
            "--> agents/checker.yaml:3:9",
            "did you mean `read_state`?",
            "--> agents/checker.yaml:4:7",
            "--> agents/payer.yaml:2:8",
            "an agent that only looks cannot have `debug_action`: write `acts: true`",
        ):
            assert said in done.stderr
    assert not list(project.folder.rglob("*.jsonl"))


def test_002_9_agents_are_listed_and_shown(chats: Chats) -> None:
    """`runops agents` lists each, `show` has all about one, `--json` the same; the schema accepts what is accepted."""
    import jsonschema
    import yaml

    project = chats.answers()
    assert "no agents in" in project.here("agents").stderr
    agent(project, "checker", CHECKER)
    agent(project, "payer", "description: Pays.\nacts: true\n")
    lines = project.here("agents").stdout.splitlines()
    assert [each.split()[:3] for each in lines] == [["checker", "looks", "clean"], ["payer", "acts", "as"]]
    shown = project.here("agents", "show", "checker").stdout
    for said in ("small-model", "calls=2", "700", "get_current_plan, get_workflow_nodes, read_state", "two decimals"):
        assert said in shown
    listed = json.loads(project.here("agents", "--json").stdout)["agents"]
    assert [each["name"] for each in listed] == ["checker", "payer"]
    assert {"debug_action", "debug_navigate", "read_state"} <= set(listed[1]["tools"])
    near = project.here("agents", "show", "cheker")
    assert (near.returncode, "did you mean `checker`?" in near.stderr) == (2, True)
    schema = json.loads(project.here("schema", "--of", "agent").stdout)
    fits: Any = jsonschema.Draft202012Validator(schema)
    assert fits.is_valid(yaml.safe_load(CHECKER))
    assert not fits.is_valid({"description": "x", "promt": "y"})
    assert not fits.is_valid({"description": "x", "tools": ["click"]})


def test_002_9_a_budget_of_money_needs_the_price_of_each_agents_model(chats: Chats) -> None:
    """Where an agent's money is limited and the price of its model is unknown, no session begins."""
    project = chats.answers()
    agent(project, "checker", CHECKER.replace("calls=2", "money=1usd"))
    done = project.here("chat", "-m", "Hello")
    assert (done.returncode, "error[price-unknown]" in done.stderr, "`small-model`" in done.stderr) == (2, True, True)
    assert not list(project.folder.rglob("*.jsonl"))


def test_the_tools_of_agent_files_are_those_of_a_session(tmp_path: Path) -> None:
    """Each tool of a session can be named by an agent, in its toolset, as reading or acting; but not those that end, ask or send."""
    from director.builds import open as open_build
    from director.conversation.session_tools import Toolbox
    from director.scouting import pages
    from tests.now import now
    from tests.talks import About

    build = build_contexts.opened(tmp_path)
    try:
        box = Toolbox(SessionState(build.writer), About(), build.listener, open_build.toolsets(build))
        offered = {name: each.reads for name, each in box.toolsets.items()}
        for own in ("finish", "ask_user", "propose_command", "send_scout"):
            del offered[own]
        listed = {name: True for names in agent_files.READING.values() for name in names}
        listed |= {name: False for names in agent_files.ACTING.values() for name in names}
        assert offered == listed
        looking = {each.tool.name for each in pages.Pages(build).looking("session")}
        assert looking == set(agent_files.READING["pages"])
    finally:
        now(build.close())


@pytest.mark.drawn(3)
@pytest.mark.parametrize(
    ("flags", "variable", "call_says", "file_says", "expected"),
    [
        ((), None, None, None, "inherit (default)"),
        ((), "true", None, None, "clean (RUNOPS_DELEGATE_CLEAN_CONTEXT)"),
        (("--delegate-inherit",), "true", None, None, "inherit (--delegate-inherit)"),
        (("--delegate-clean",), None, None, None, "clean (--delegate-clean)"),
        (("--delegate-clean",), None, None, "inherit", "inherit (agent checker)"),
        ((), "true", "inherit", "clean", "inherit (call)"),
    ],
)
def test_002_11_how_each_delegate_ran_is_shown(
    flags: tuple[str, ...],
    variable: str | None,
    call_says: str | None,
    file_says: str | None,
    expected: str,
    chats: Chats,
) -> None:
    """Clean or inherit, and what decided it, the model and the tools are in `/cost`, `show` and its JSON, whatever it comes from.

    `/cost` also has the path of the list of what it did.
    """
    more = {"RUNOPS_DELEGATE_CLEAN_CONTEXT": variable} if variable is not None else {}
    project = chats.answers(sending(How=sent("Look.", "checker", call_says)), **more)
    agent(
        project,
        "checker",
        f"description: Looks.\ntools: [read_state]\ndelegates: 0\n{f'context: {file_says}' if file_says else ''}\n",
    )
    done = project.here("chat", "--mode", "agent", *flags, "-m", "How?", "--json")
    assert done.returncode == 0, done.stderr
    cost = project.here("chat", "--resume", "last", "-m", "/cost")
    (line,) = [each for each in cost.stdout.splitlines() if each.startswith("1_delegate")]
    assert re.search(rf"  checker  {re.escape(expected)}  test-model  looks  @state/delegate/c\d+$", line), line
    assert ("How?" in str(chats.bodies()[1]["input"])) == expected.startswith("inherit")
    shown = project.here("show", _session(project)).stdout
    assert f"checker  {expected}  test-model  looks with read_state" in shown
    (found,) = project.show(_session(project))["delegates"]
    assert json.loads(done.stdout)["delegates"] == [found]
    context, _, why = expected.rstrip(")").partition(" (")
    assert (found["context"], found["why"], found["model"]) == (context, why, "test-model")
    assert (found["agent"], found["tools"], found["acts"], found["status"]) == ("checker", ["read_state"], False, "ok")


def _session(project: Project) -> str:
    (file,) = (project.folder / ".runops" / "conversations").glob("*.jsonl")
    return file.stem


def test_a_clean_task_needs_goal_deliverable_and_end(chats: Chats) -> None:
    """A clean call that lacks a part is refused with what is missing, and nothing is asked for it; one that inherits needs its goal alone."""
    script = sending(
        One=sent("Look.", context="clean", deliverable=None, end=" "),
        lacks=sent("Look.", context="clean", constraints="Only the plan."),
        Two=sent(" ", context="inherit"),
        Three=sent("Look.", context="inherit", deliverable=None, end=None),
    )
    project = chats.answers(script)
    for word in ("One", "Two", "Three"):
        more = ("--resume", "last") if word != "One" else ("--mode", "agent")
        done = project.here("chat", *more, "-m", word)
        assert done.returncode == 0, done.stderr
    outputs = [each for each in words_of(chats.bodies()[-1]) if each.startswith("output: ")]
    assert (
        "a delegate that begins clean sees only its task, and this lacks `deliverable`, `end` (tool-arguments)"
        in outputs[0]
    )
    assert "or with `context` inherit" in outputs[0]
    tasks = [words_of(body)[-1] for body in chats.bodies() if "You are a delegate" in body["instructions"]]
    assert tasks == [
        "user: Look.\n\nConstraints: Only the plan.\nDeliverable: A word.\nEnd: It is known.",
        "user: Look.\n\nConstraints: Only the plan.\nDeliverable: A word.\nEnd: It is known.",
        "user: Look.",
    ]
