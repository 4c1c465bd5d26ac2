"""A person speaks while the model or a run works: nothing waits for a prompt, and nothing that was said is lost (row 000-21)."""

from __future__ import annotations

import json
import re
import signal
import threading
from typing import Any

import pytest

from runtime.testing.scripted_model import call, stall, text
from tests.builds_rig import Builds
from tests.chats import log_of, until, words_of
from tests.command import Project
from tests.conversations.test_build_and_talk import BEGIN, PROVE
from tests.rows import PLAN

pytestmark = pytest.mark.drawn(share=0.5, of="meanwhile")

SUMMARY = call("get_workflow_summary", {})

ASKS = """\
version: 1
name: Ask
nodes:
  - {id: first, type: transform, expr: "1"}
  - {id: ask, type: cognition, instruction: Sort., input: tea, output: string, conversation: none}
"""


def said_of(project: Project) -> list[str]:
    """What the last session's log has of the person and of what was kept, in order."""
    found = [json.loads(each) for each in log_of(project).read_text().splitlines()]
    found = [each for each in found if each["thread"] == "session"]
    return [f"{each['kind']} {each['text']}" for each in found if each["kind"] in ("user", "heard")]


def terminal(project: Project, *arguments: str) -> Any:
    """A chat at a terminal."""
    return project.terminal("chat", "prices.yaml", "--strategy", "clean", *arguments)


@pytest.mark.parametrize("store", ["false", "true"])
def test_000_21_a_message_during_a_request_follows_the_outputs_of_its_calls(store: str, builds: Builds) -> None:
    """It is kept at once, and the model has it with its next request, behind the outputs: once, and also with a chain."""
    gate = threading.Event()
    project = builds.answers(SUMMARY.held(gate), text("Both."), text("Bye."), RUNOPS_MODEL_STORE=store)
    assert builds.server is not None
    with terminal(project) as screen:
        screen.wait_for(lambda: screen.text.endswith(">"))
        screen.press("What is it?\r")
        builds.server.wait(1)
        screen.press("And in euro?\r")
        screen.wait_for(lambda: "kept: the model has it" in screen.text)
        assert said_of(project) == ["user What is it?", "heard And in euro?"]
        gate.set()
        screen.wait_for(lambda: "Both." in screen.text and screen.text.endswith(">"))
        screen.press("bye\r")
        screen.wait_for(lambda: "Bye." in screen.text and screen.text.endswith(">"))
        screen.press("\x04")
        assert screen.wait() == 0
    asked = [words_of(each)[-2:] for each in builds.bodies()]
    assert asked[1][0].startswith("output: ")
    assert asked[1][1] == "user: And in euro?"
    assert said_of(project)[1:] == ["heard And in euro?", "user And in euro?", "user bye"]
    assert words_of(builds.bodies()[2])[-1] == "user: bye"
    assert str(words_of(builds.bodies()[2])).count("in euro") == (0 if store == "true" else 1)


def test_000_21_a_message_during_the_last_answer_is_answered_too(builds: Builds) -> None:
    """The answer that did not know of it is shown, and the model is asked again. A slash command typed meanwhile is done after both."""
    gate = threading.Event()
    project = builds.answers(text("One.").held(gate), text("Two."))
    assert builds.server is not None
    with terminal(project) as screen:
        screen.wait_for(lambda: screen.text.endswith(">"))
        screen.press("first\r")
        builds.server.wait(1)
        screen.press("/vars\rsecond\r")
        screen.wait_for(lambda: "kept" in screen.text)
        gate.set()
        screen.wait_for(lambda: "(no variables)" in screen.text and screen.text.endswith(">"))
        screen.press("\x04")
        assert screen.wait() == 0
        shown = screen.everything
    assert shown.index("One.") < shown.index("Two.")
    assert words_of(builds.bodies()[1])[-3:] == ["user: first", "assistant: One.", "user: second"]


def test_000_21_stop_ends_the_work_after_the_call_in_hand(builds: Builds) -> None:
    """The calls behind say that the person stopped; nothing more is asked; the model sees it with the next message."""
    gate = threading.Event()
    project = builds.answers(SUMMARY.held(gate), text("Fine."))
    assert builds.server is not None
    with terminal(project) as screen:
        screen.wait_for(lambda: screen.text.endswith(">"))
        screen.press("What is it?\r")
        builds.server.wait(1)
        screen.press("/stop\r")
        screen.wait_for(lambda: "stopped; the session continues" in screen.text and screen.text.endswith(">"))
        gate.set()
        screen.press("go on\r")
        screen.wait_for(lambda: "Fine." in screen.text and screen.text.endswith(">"))
        screen.press("\x04")
        assert screen.wait() == 0
    assert len(builds.bodies()) == 2
    assert words_of(builds.bodies()[1])[-3:] == [
        "user: What is it?",
        "assistant: (The person stopped the work here.)",
        "user: go on",
    ]


def test_000_21_stop_ends_a_run_which_can_be_resumed(builds: Builds) -> None:
    """A message during a run is kept, and answered after it; `/stop` interrupts the run, and the session continues."""
    gate = threading.Event()
    project = builds.answers(text("never").held(gate), text("It was stopped."))
    assert builds.server is not None
    project.write("ask.yaml", ASKS)
    with project.terminal("chat", "ask.yaml", "--strategy", "clean") as screen:
        screen.wait_for(lambda: screen.text.endswith(">"))
        screen.press("/run\r")
        builds.server.wait(1)
        screen.press("Tell me when it is through.\r")
        screen.wait_for(lambda: "kept" in screen.text)
        screen.press("/stop\r")
        screen.wait_for(lambda: "stopped; the session continues" in screen.text and screen.text.endswith(">"))
        gate.set()
        screen.press("What came of it?\r")
        screen.wait_for(lambda: "It was stopped." in screen.text and screen.text.endswith(">"))
        screen.press("\x04")
        assert screen.wait() == 0
    words = words_of(builds.bodies()[1])
    assert [each for each in words if each.startswith("user: ")] == [
        "user: Tell me when it is through.",
        "user: What came of it?",
    ]
    assert any("interrupted" in each for each in words if each.startswith("output: "))


def test_000_21_a_program_says_it_with_meanwhile(builds: Builds) -> None:
    """With `meanwhile` a line is kept while the model works; another one waits for its turn; `/stop` needs none."""
    gate = threading.Event()
    project = builds.answers(text("One.").held(gate), text("Two."), text("Three."))
    assert builds.server is not None
    with project.start("chat", "prices.yaml", "--strategy", "clean", "--json-lines", asks=True) as process:
        assert process.stdin is not None
        process.stdin.write('{"say": "first"}\n')
        process.stdin.flush()
        builds.server.wait(1)
        process.stdin.write('{"say": "in its turn"}\n{"say": "at once", "meanwhile": true}\n')
        process.stdin.flush()
        until(lambda: "heard at once" in said_of(project))
        gate.set()
        out, err = process.communicate(timeout=30)
    assert process.returncode == 0, err
    found = [json.loads(each) for each in out.splitlines()]
    assert "kept" in [each["event"] for each in found]
    assert [each["text"] for each in found if each["event"] == "reply"] == ["One."]
    assert [(each["said"], each["answer"]) for each in found if each["event"] == "answer"] == [
        ("first", "Two."),
        ("in its turn", "Three."),
    ]


def test_000_21_a_kept_message_outlives_a_kill(builds: Builds) -> None:
    """Killed before the model had it, the resumed session gives it to the model, once."""
    gate = threading.Event()
    project = builds.answers(text("never").held(gate), text("To both."))
    assert builds.server is not None
    with terminal(project) as screen:
        screen.wait_for(lambda: screen.text.endswith(">"))
        screen.press("first\r")
        builds.server.wait(1)
        screen.press("second\r")
        screen.wait_for(lambda: "kept" in screen.text)
        screen.process.send_signal(signal.SIGKILL)
        screen.wait()
    gate.set()
    shown = project.here("show", log_of(project).stem).stdout
    assert "the model does not have it yet" in shown
    done = project.here("chat", "--resume", "last", "-m", "/cost")
    assert "To both." in done.stdout, done.stderr
    assert words_of(builds.bodies()[1])[-2:] == ["user: first", "user: second"]
    assert said_of(project) == ["user first", "heard second", "user second"]


def test_what_was_shown_of_an_answer_outlives_a_kill(builds: Builds) -> None:
    """Killed in a stream, the session has what the person read of it; resumed, the model is asked anew, and its answer stands once."""
    read = "The sum is right. " * 40
    script = [
        stall(read),
        text("It is 20.5."),
        call("read_state", {"path": "@state/said", "start": None, "end": None})
        + call("read_state", {"path": "@state/answers", "start": None, "end": None}),
        text("So."),
    ]
    project = builds.answers(*script)
    with project.start("chat", "prices.yaml", "-m", "Tell me all.") as process:
        assert builds.server is not None
        builds.server.wait(1)
        until(lambda: log_of(project).read_text().count('"arrived"') == 3)
        process.kill()
    shown = project.here("show", log_of(project).stem).stdout
    assert "model    The sum is right. The sum" in shown
    assert "(the process ended here, before the rest came)" in shown
    done = project.here("chat", "--resume", "last", "-m", "/save talk.md")
    assert done.stdout == "It is 20.5.\n", done.stderr
    assert builds.bodies()[0]["input"] == builds.bodies()[1]["input"]
    saved = (project.folder / "talk.md").read_text()
    assert saved.index("The sum is right.") < saved.index("*The process ended here, before the rest came.*")
    assert saved.index("before the rest came") < saved.index("It is 20.5.")
    assert saved.count("It is 20.5.") == 1
    project.here("chat", "--resume", "last", "-m", "What was it?")
    listed, answers = builds.outputs()
    assert re.search(r"\(broke off\)  The sum is right\. .*…\n`@state/line/\d+`  \S+ \S+  It is 20\.5\.", answers), (
        answers
    )
    told = re.search(
        r"the process ended while you answered: (The sum is right\. .*…) \(`(@state/line/\d+)`, until 20\S+ \S+\)",
        listed,
    )
    assert told is not None, listed
    assert len(told[1]) <= 301
    assert re.search(r"→ \d{4}-\d\d-\d\d \d\d:\d\d:\d\d  the session was resumed", listed)
    assert '"arrived"' in project.here("show", log_of(project).stem, "--json").stdout


def test_a_stop_outlives_a_kill(builds: Builds) -> None:
    """`/stop` is kept at once: after a kill in the call in hand no further call is done and nothing is asked until the person speaks."""
    gate = threading.Event()
    given = {"goal": "Look.", "deliverable": "A word.", "end": "It is known.", "context": None}
    script = [call("delegate", given) + call("update_plan", {"plan": PLAN, "reason": "new"}), text("late").held(gate)]
    said = call("read_state", {"path": "@state/said", "start": None, "end": None})
    project = builds.answers(*script, said, text("So."))
    assert builds.server is not None
    with project.start(
        "chat", "prices.yaml", "--strategy", "clean", "--mode", "agent", "--json-lines", asks=True
    ) as process:
        assert process.stdin is not None
        process.stdin.write('{"say": "Plan it."}\n')
        process.stdin.flush()
        builds.server.wait(2)
        process.stdin.write('{"say": "/stop"}\n')
        process.stdin.flush()
        until(lambda: '"name":"stopped"' in log_of(project).read_text())
        process.kill()
    gate.set()
    done = project.here("chat", "--resume", "last", "-m", "What now?")
    assert done.stdout == "So.\n", done.stderr
    assert "--  stopped; the session continues" in done.stderr
    third = words_of(builds.bodies()[2])
    assert third[-2:] == ["assistant: (The person stopped the work here.)", "user: What now?"]
    assert "not done: the person stopped the work before it" in third[-3]
    assert len(builds.bodies()) == 4
    told = builds.outputs()[-1]
    assert re.search(r"  /stop\n(.*\n)*    → stopped after the call delegate .*\n    → left out: update_plan ", told), (
        told
    )


def test_what_is_said_while_a_session_resumes_is_answered(builds: Builds) -> None:
    """A message typed before the resumed session shows its prompt is kept, and answered without another one."""
    project = builds.answers(text("One."), text("Two."))
    project.here("chat", "prices.yaml", "--strategy", "clean", "-m", "first")
    with project.terminal("chat", "--resume", "last") as screen:
        screen.press("second\r")
        screen.wait_for(lambda: "Two." in screen.text and screen.text.endswith(">"))
        screen.press("\x04")
        assert screen.wait() == 0
    assert said_of(project)[-1] == "user second"


def test_a_stop_ends_an_open_question_and_is_no_answer(builds: Builds) -> None:
    """`/stop` typed where the model waits for an answer ends the work at once, also if any answer would do."""
    project = builds.answers(call("ask_user", {"question": "Which shop?", "choices": []}), text("Then not."))
    with terminal(project, "--mode", "agent") as screen:
        screen.wait_for(lambda: screen.text.endswith(">"))
        screen.press("Go.\r")
        screen.wait_for(lambda: "Which shop?" in screen.text)
        screen.press("/stop\r")
        screen.wait_for(lambda: "--  stopped" in screen.text and screen.text.endswith(">"))
        screen.press("And now?\r")
        screen.wait_for(lambda: "Then not." in screen.text and screen.text.endswith(">"))
        screen.press("\x04")
        assert screen.wait() == 0
    assert '"answered"' not in log_of(project).read_text()


@pytest.mark.parametrize("command", ["build", "chat"])
def test_a_message_during_the_last_call_of_a_build_is_answered(command: str, builds: Builds) -> None:
    """What is said while the model ends a build is answered without another message, and the build stays ended."""
    gate = threading.Event()
    project = builds.answers(BEGIN, PROVE.held(gate), SUMMARY, text("Twice four is eight."))
    assert builds.server is not None
    started = ["build", "Double a number.", "--runs", "1"] if command == "build" else ["chat", "--mode", "agent"]
    with project.terminal(*started) as screen:
        if command == "chat":
            screen.wait_for(lambda: screen.text.endswith(">"))
            screen.press("Double a number.\r")
        builds.server.wait(2)
        screen.press("What is it of four?\r")
        screen.wait_for(lambda: "kept" in screen.text)
        gate.set()
        screen.wait_for(lambda: "done  proved" in screen.everything)
        if command == "chat":
            screen.wait_for(lambda: screen.text.endswith(">"))
            screen.press("\x04")
        assert screen.wait() == 0
        assert screen.everything.count("Twice four is eight.") == 1
    assert words_of(builds.bodies()[2])[-2] == "user: What is it of four?"
    assert len(builds.bodies()) == 4
