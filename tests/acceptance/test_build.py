"""`runops build` as a process: how it starts, asks questions and ends."""

from __future__ import annotations

import json
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from director.conversation import session_tools
from runtime.testing.scripted_model import text
from tests import builds_rig
from tests.builds_rig import Builds, plan, use
from tests.chats import session_of

pytestmark = pytest.mark.drawn(share=0.5, of="build")


@pytest.fixture
def builds(tmp_path: Path) -> Iterator[Builds]:
    """A project with its own builds."""
    made = builds_rig.of(tmp_path)
    yield made
    made.close()


ASKS = use("ask_user", question="Which shop is it?", choices=["the old one", "the new one"])


def test_a_question_waits_and_its_answer_resumes_the_build(builds: Builds) -> None:
    """Under `--yes` a question exits 4 with the command to answer it. The answer reaches the model, and no earlier question is repeated."""
    done = builds.build([plan() + use("inspect_tab", which="x"), plan() + ASKS], "--yes")
    assert done.returncode == 4, done.stderr
    refused = done.stderr.index(">   inspect_tab  which: x")
    assert done.stderr.index("error  the arguments", refused) < done.stderr.index("turn 2"), (
        "whoever watches sees it, too"
    )
    assert "Which shop is it?" in done.stderr
    assert f"runops build --resume {session_of(done)} --answer TEXT" in done.stderr
    assert done.stdout == ""
    assert "runops runs --sessions" in builds.project.runops("runs").stderr, "it has no runs, and waits all the same"
    shown = builds.project.runops("show", session_of(done)).stdout.splitlines()
    assert [" ".join(line.split()) for line in shown[-5:-1]] == [
        "idle",
        "asks Which shop is it?",
        "1 the old one",
        "2 the new one",
    ]
    assert shown[-1] == f"  answer runops build --resume {session_of(done)} --answer TEXT"
    done, result = builds.resumes([text("So be it."), text("I see.")], "--yes", "--answer", "2")
    assert builds.outputs(0)[3] == "the new one"
    assert (done.returncode, result["status"], result["error"]["code"]) == (1, "failed", "build-stopped")
    assert result["questions"] == [
        {"question": "Which shop is it?", "choices": ["the old one", "the new one"], "answer": "the new one"}
    ]


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ((), "usage"),
        (("--resume", "last"), "unknown-session"),
        (("goal", "--save", "prices.yaml"), "file-exists"),
    ],
)
def test_a_wrong_command_line_ends_with_2(arguments: tuple[str, ...], code: str, builds: Builds) -> None:
    """A wrong command line exits 2 with an error code, starts no build, and asks no model."""
    done = builds.answers().runops("build", *arguments)
    assert done.returncode == 2, done.stderr
    assert f"error[{code}]" in done.stderr
    assert builds.asked == []
    assert not list(builds.folder.rglob("*.jsonl"))


def test_a_result_that_cannot_be_written_starts_no_other_build(builds: Builds) -> None:
    """When stdout is on a full disk, the command printed next resumes this build."""
    project = builds.answers(use("finish", done=False, summary="It cannot be.", unproved=None, reason="r"))
    done = project.shell('runops build "Look at the shop" --json > /dev/full')
    assert done.returncode == 3, done.stderr
    assert "error[output-not-written]" in done.stderr
    session = session_of(done)
    assert f"next: runops build --resume {session} --json" in done.stderr


def test_a_used_up_budget_exits_5_and_a_larger_one_continues(builds: Builds) -> None:
    """No request exceeds the budget. The command with a larger budget is printed, and continues with the earlier answers."""
    done = builds.build([plan(), text("One."), text("Two.")], "--budget", "calls=1")
    assert (done.returncode, done.stdout, len(builds.asked)) == (5, "", 1), done.stderr
    assert f"next: runops build --resume {session_of(done)} --budget calls=" in done.stderr
    assert "chat" not in done.stderr
    done, result = builds.resumes([text("One."), text("Two.")], "--budget", "calls=9")
    assert (done.returncode, result["error"]["code"], result["costs"]["requests"]) == (1, "build-stopped", 3)


def test_an_interrupted_build_resumes(builds: Builds) -> None:
    """An interrupted build ends at once, prints the command to resume it, and keeps what was done."""
    gate = threading.Event()
    project = builds.answers(plan(), text("Late.").held(gate))
    with project.start("build", builds_rig.GOAL, "--json") as process:
        until = time.monotonic() + 60
        while len(builds.asked) < 2 and time.monotonic() < until:
            time.sleep(0.02)
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=60)
    gate.set()
    assert (process.returncode, json.loads(out)["status"]) == (143, "interrupted"), err
    assert f"runops build --resume {json.loads(out)['session']}" in err
    done, result = builds.resumes([text("One."), text("Two.")])
    assert (done.returncode, result["error"]["code"]) == (1, "build-stopped")
    assert builds.outputs(0) == ["kept as version 1"]


LOCAL = ("--url", "http://127.0.0.1:9/")
RESETS = "a reset puts the site's data back"


@pytest.mark.parametrize(("typed", "known"), [("touch put_back\r", True), ("\r", False)])
def test_a_build_on_a_terminal_asks_first_for_the_reset(builds: Builds, typed: str, known: bool) -> None:
    """Before the first request the command that puts the site's data back is asked for, and kept; no model sees it, and a resumed build asks no more."""
    project = builds.answers(plan() + ASKS)
    with project.terminal("build", builds_rig.GOAL, *LOCAL, columns=150) as terminal:
        terminal.wait_for(lambda: "Which command puts the site's data back" in terminal.text)
        assert builds.asked == []
        terminal.press(typed)
        terminal.wait_for(lambda: "2 the new one" in terminal.text)
        terminal.press("\x03")
        assert terminal.wait() == 130
    done, _result = builds.resumes([], "--yes")
    assert done.returncode == 4, done.stderr
    done, _result = builds.resumes([text("One."), text("Two.")], "--answer", "1")
    asked = json.dumps(builds.bodies())
    assert (RESETS in asked) == known
    assert "put_back" not in asked
    assert "no reset" not in done.stderr


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        ((*LOCAL, "--effects", "allow"), 1),
        ((*LOCAL, "--effects", "allow", "--reset", ""), 0),
        (LOCAL, 0),
        (("--url", "https://shop.test/", "--effects", "ask"), 0),
    ],
    ids=["local", "none wanted", "held", "elsewhere"],
)
def test_without_a_person_a_missing_reset_is_only_said(builds: Builds, flags: tuple[str, ...], told: int) -> None:
    """With `--yes` a build waits for no reset. That none is known is said once, only where it would do side effects on this machine."""
    done = builds.build([plan() + ASKS], "--yes", *flags)
    assert (done.returncode, done.stderr.count("no reset: ")) == (4, told), done.stderr
    done, _result = builds.resumes([], "--yes")
    assert "no reset: " not in done.stderr


def test_the_plan_is_a_list_on_a_terminal_and_questions_are_asked_there(builds: Builds) -> None:
    """A typed number selects a choice and sends it to the model. Ctrl-C at a question ends the build, which resumes with that question."""
    project = builds.answers(plan() + ASKS, ASKS)
    with project.terminal("build", builds_rig.GOAL, columns=120) as terminal:
        terminal.wait_for(lambda: "2 the new one" in terminal.text)
        assert "[ ] 1  Open it" in terminal.text
        terminal.press("1\r")
        terminal.wait_for(lambda: terminal.text.count("2 the new one") == 2)
        terminal.press("\x03")
        assert terminal.wait() == 130
    assert builds.outputs(1)[1] == "the old one"
    done, result = builds.resumes([], "--yes")
    assert (done.returncode, [each["answer"] for each in result["questions"]]) == (4, ["the old one", None])


def test_a_build_is_a_session_to_talk_with(builds: Builds) -> None:
    """`chat --resume` talks in the session of a build, with tools for a talk that a build does without; `build --resume` continues to build in it, and in a fork of it."""
    done = builds.build([plan() + ASKS], "--yes")
    session = session_of(done)
    building = {each["name"] for each in builds.asked[-1].body["tools"]}
    project = builds.answers(text("It is empty."), text("No nodes."), ASKS)
    talked = project.runops("chat", "--resume", session, "-m", "What is it?")
    assert (talked.returncode, talked.stdout) == (0, "It is empty.\n"), talked.stderr
    assert {each["name"] for each in builds.asked[-1].body["tools"]} - building == session_tools.OF_TALKS
    forked = project.runops("chat", "--fork", session, "-m", "What is it?", "--mode", "chat")
    assert (forked.returncode, forked.stdout) == (0, "No nodes.\n"), forked.stderr
    fork = session_of(forked)
    other = project.runops("build", "--resume", fork, "Go on.", "--yes")
    assert (other.returncode, project.show(fork)["mode"]) == (4, "agent"), other.stderr
