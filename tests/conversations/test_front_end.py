"""A program talks with the Director: messages and events as JSON, one object a line (row 000-23)."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest

from runtime.testing.scripted_model import call, first_of, incomplete, text, when
from tests import command, reports
from tests.builds_rig import Builds
from tests.chats import Chats

pytestmark = pytest.mark.drawn(share=0.5, of="front end")

SECRET = "correct-horse-battery"
SCRIPT = first_of(
    when("Break off", incomplete("Half")),
    when("Why did it fail?", call("get_workflow_summary", {})),
    when("expression-failed", text("It met `n/a`.")),
    when("Hello", text("Good day.")),
    when("Bye", text("Bye.")),
)

ASKS = """\
version: 1
name: Ask
nodes:
  - id: person
    type: context
    ask:
      go: {question: Shall it go on?, type: boolean}
output: "{{ person.go }}"
"""


def heard(printed: str) -> list[dict[str, Any]]:
    """The events of a chat; each fits the published schema."""
    found = [json.loads(line) for line in printed.splitlines()]
    for each in found:
        reports.check("chat-event", each)
    return found


def of(found: list[dict[str, Any]], event: str) -> list[dict[str, Any]]:
    """The events of this kind."""
    return [each for each in found if each["event"] == event]


def test_000_23_a_program_hears_all_that_happens_and_is_answered_line_by_line(builds: Builds) -> None:
    """Each message gets one answer, in order; deltas, calls with whole arguments and outputs, steps of runs, costs and the end are events."""
    project = builds.answers(SCRIPT)
    lines = [
        json.dumps({"say": "Hello\nyou"}),
        "Hello",
        json.dumps({"say": "/run"}),
        json.dumps({"say": "Why did it fail?"}),
        json.dumps({"say": "/mode agent"}),
        json.dumps({"say": "/vars"}),
        json.dumps({"say": "/quit"}),
        json.dumps({"say": "never"}),
    ]
    done = project.runops("chat", "prices.yaml", "--json-lines", said="".join(f"{each}\n" for each in lines))
    found = heard(done.stdout)
    assert [each["said"] for each in of(found, "answer")] == [
        "Hello\nyou",
        "Hello",
        "/run",
        "Why did it fail?",
        "/mode agent",
        "/vars",
        "/quit",
    ]
    assert [each["answer"] for each in of(found, "answer")][:4] == ["Good day.", "Good day.", None, "It met `n/a`."]
    assert (found[0]["event"], found[1]["event"], found[-1]["event"]) == ("session", "ready", "end")
    assert found[0]["version"] == 1
    steps = [each["run"] for each in of(found, "run")]
    assert {"run-started", "step-started", "step-finished", "run-ended"} <= {each["event"] for each in steps}
    (ran,) = [each["run"] for each in of(found, "answer") if "run" in each]
    assert (ran["status"], ran["path"]) == ("failed", "total")
    assert [each["about"]["run"] for each in of(found, "session")][-1] == ran["run"]
    assert of(found, "session")[-1]["mode"] == "agent"
    (called,) = of(found, "call")
    (output,) = of(found, "output")
    assert (called["tool"], called["path"], output["failed"]) == ("get_workflow_summary", output["path"], False)
    assert "expression-failed" in output["text"]
    deltas = "".join(each["text"] for each in of(found, "text"))
    assert deltas == "Good day.Good day.It met `n/a`."
    assert of(found, "result")[-1]["text"] == "(no variables)"
    assert len(of(found, "costs")) == 3
    assert (done.returncode, of(found, "end")[0]["ending"]["exit"]) == (0, 0)
    assert of(found, "end")[0]["ending"]["session"] == found[0]["session"]


def test_000_23_errors_are_answers_and_the_session_continues(builds: Builds) -> None:
    """A line that is no message, an unknown word and a broken-off answer get an answer with an error; the last one decides the exit code."""
    project = builds.answers(SCRIPT)
    lines = ['{"tell": "x"}', "{no json", '{"say": 5}', "/nowhere", "Break off", "Bye"]
    done = project.runops("chat", "--json-lines", "--quiet", said="".join(f"{each}\n" for each in lines))
    found = heard(done.stdout)
    errors = [(each["error"] or {}).get("code") for each in of(found, "answer")]
    assert errors == [*["line-unreadable"] * 3, "unknown-word", "model-cut-short", None]
    assert all(
        each["error"]["fix"]
        for each in of(found, "answer")
        if each["error"] and each["error"]["code"] == "line-unreadable"
    )
    assert done.returncode == 0
    for bad in ("--json",):
        refused = project.runops("chat", "--json-lines", bad, said="")
        assert refused.returncode == 2


def test_000_23_one_message_is_an_exchange_of_its_own(builds: Builds) -> None:
    """With `-m` nothing is read: the events of one message, and the end. A secret is in no line."""
    project = builds.answers(
        first_of(
            when("Hello", call("set_variable", {"name": "a", "value": json.dumps(SECRET), "reason": "r"})),
            when("", text("So.")),
        ),
        RUNOPS_PASSWORD_FOR_TEST=SECRET,
    )
    project.write(
        "secret.yaml",
        "version: 1\nname: S\nsecrets: [RUNOPS_PASSWORD_FOR_TEST]\nnodes:\n  - {id: a, type: transform, expr: 1}\n",
    )
    done = project.runops("chat", "secret.yaml", "--json-lines", "-m", f"Hello {SECRET}")
    found = heard(done.stdout)
    assert of(found, "ready") == []
    assert len(of(found, "answer")) == 1
    assert found[-1]["event"] == "end"
    assert SECRET not in done.stdout + done.stderr


def test_000_23_a_program_answers_questions_while_its_messages_wait(builds: Builds) -> None:
    """A question is an event; an `answer` goes to it although a message was written before, and the message has its turn after that. Without an answer the session waits (exit 4)."""
    asks = call("ask_user", {"question": "Which colour?", "choices": ["red", "blue"]})
    project = builds.answers(
        first_of(
            when(
                lambda asked: [*asked.outputs.values()][-1:] == ["blue"] and "Bye" not in asked.newest,
                text("Blue it is."),
            ),
            when("Bye", text("Bye.")),
            when("Paint", asks),
        )
    )
    with project.start("chat", "--mode", "agent", "--json-lines", prepare=command.heed_signals, asks=True) as process:
        assert isinstance(process, subprocess.Popen)
        assert process.stdout is not None
        found: list[dict[str, Any]] = []

        def write(**line: str) -> None:
            assert process.stdin is not None
            process.stdin.write(json.dumps(line) + "\n")
            process.stdin.flush()

        write(answer="nobody asked")
        for line in process.stdout:
            (event,) = heard(line)
            found.append(event)
            if event["event"] == "answer" and event["said"] == "":
                write(say="Paint it.")
                write(say="Bye")
            if event["event"] == "question" and len(of(found, "question")) == 1:
                write(say="/vars")
                write(answer="2")
            if event["event"] == "answer" and event["said"] == "/vars":
                assert process.stdin is not None
                process.stdin.close()
        assert process.wait() == 0
    (question,) = of(found, "question")
    assert (question["question"], question["choices"], question["path"]) == (
        "Which colour?",
        ["red", "blue"],
        "1_ask_user",
    )
    said = [(each["said"], each["answer"]) for each in of(found, "answer")]
    assert said == [("", None), ("Paint it.", "Blue it is."), ("Bye", "Bye."), ("/vars", None)]
    assert of(found, "answer")[0]["error"]["code"] == "line-unreadable"
    waits = project.runops("chat", "--mode", "agent", "--json-lines", said='{"say": "Paint it again."}\n')
    assert of(heard(waits.stdout), "question")
    assert (waits.returncode, heard(waits.stdout)[-1]["ending"]["status"]) == (4, "paused")


def test_the_address_of_the_other_clients_is_taken_from_the_env_file(chats: Chats) -> None:
    """A chat talks with the server that `OPENAI_BASE_URL` of `.env` names, and `doctor` tells the address and where it comes from."""
    project = chats.answers(text("Hello."), RUNOPS_MODEL_BASE_URL="", RUNOPS_MODEL_KEY="")
    assert chats.server is not None
    project.write(".env", f"OPENAI_BASE_URL={chats.server.url}\nOPENAI_API_KEY={chats.server.key}\n")
    assert "Hello." in project.here("chat", "prices.yaml", "-m", "hello").stdout
    assert f"{chats.server.url} (from OPENAI_BASE_URL in .env)" in project.here("doctor").stdout


def test_a_program_is_told_what_the_model_proposes_and_agrees_with_yes(builds: Builds) -> None:
    """A `proposal` comes before the `answer` that it belongs to; `yes` as the next message does it, and is no message."""
    propose = call("propose_command", {"command": "/answer yes", "reason": "it was said"})
    project = builds.answers(propose, text("Shall I?"))
    project.write("ask.yaml", ASKS)
    lines = "".join(json.dumps({"say": each}) + "\n" for each in ("/run", "Go on?", "yes"))
    done = project.runops("chat", "ask.yaml", "--json-lines", said=lines)
    found = heard(done.stdout)
    assert [each.get("command") or each.get("said") for each in found if each["event"] in ("proposal", "answer")] == [
        "/run",
        "/answer yes",
        "Go on?",
        "/answer yes",
    ]
    assert [each["run"]["status"] for each in of(found, "answer") if "run" in each] == ["paused", "passed"]
    assert len(builds.bodies()) == 2
