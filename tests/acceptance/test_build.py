"""`runops build` as a process: how it begins, what it asks, and how it ends."""

from __future__ import annotations

import json
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from runtime.testing.scripted_model import text
from tests import builds_rig
from tests.builds_rig import Builds, plan, use
from tests.chats import session_of


@pytest.fixture
def builds(tmp_path: Path) -> Iterator[Builds]:
    """A project of its own."""
    made = builds_rig.of(tmp_path)
    yield made
    made.close()


ASKS = use("ask_user", question="Which shop is it?", choices=["the old one", "the new one"])


def test_a_question_waits_and_its_answer_goes_on(builds: Builds) -> None:
    """With `--yes` a question ends the command with 4 and says how it is answered; the answer reaches the model, and nothing before is asked again."""
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
    done, told = builds.goes_on([text("So be it."), text("I see.")], "--yes", "--answer", "2")
    assert builds.outputs(0)[3] == "the new one"
    assert (done.returncode, told["status"], told["error"]["code"]) == (1, "failed", "build-stopped")
    assert told["questions"] == [
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
    """With a code; nothing is begun, and no model is asked."""
    done = builds.answers().runops("build", *arguments)
    assert done.returncode == 2, done.stderr
    assert f"error[{code}]" in done.stderr
    assert builds.asked == []
    assert not list(builds.folder.rglob("*.jsonl"))


def test_a_result_that_cannot_be_written_begins_no_other_build(builds: Builds) -> None:
    """Where stdout stands on a full disk, what is to be typed next is about the build that there is."""
    project = builds.answers(use("finish", done=False, summary="It cannot be.", unproved=None, reason="r"))
    done = project.shell('runops build "Look at the shop" --json > /dev/full')
    assert done.returncode == 3, done.stderr
    assert "error[output-not-written]" in done.stderr
    session = session_of(done)
    assert f"next: runops build --resume {session} --json" in done.stderr


def test_a_budget_that_is_used_up_ends_with_5_and_a_larger_one_goes_on(builds: Builds) -> None:
    """Nothing is asked beyond it; the command that continues is named, and continues with what was said."""
    done = builds.build([plan(), text("One."), text("Two.")], "--budget", "calls=1")
    assert (done.returncode, done.stdout, len(builds.asked)) == (5, "", 1), done.stderr
    assert f"next: runops build --resume {session_of(done)} --budget calls=" in done.stderr
    assert "chat" not in done.stderr
    done, told = builds.goes_on([text("One."), text("Two.")], "--budget", "calls=9")
    assert (done.returncode, told["error"]["code"], told["costs"]["requests"]) == (1, "build-stopped", 3)


def test_an_interrupted_build_goes_on(builds: Builds) -> None:
    """It ends at once, says what goes on with it, and does; what was done stays done."""
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
    done, told = builds.goes_on([text("One."), text("Two.")])
    assert (done.returncode, told["error"]["code"]) == (1, "build-stopped")
    assert builds.outputs(0) == ["kept as version 1"]


def test_the_plan_is_a_list_on_a_terminal_and_questions_are_asked_there(builds: Builds) -> None:
    """Who types a number means the choice, and the model is told it; Ctrl-C at a question ends the build, which continues with that question."""
    project = builds.answers(plan() + ASKS, ASKS)
    with project.terminal("build", builds_rig.GOAL, columns=120) as terminal:
        terminal.wait_for(lambda: "2 the new one" in terminal.text)
        assert "[ ] 1  Open it" in terminal.text
        terminal.press("1\r")
        terminal.wait_for(lambda: terminal.text.count("2 the new one") == 2)
        terminal.press("\x03")
        assert terminal.wait() == 130
    assert builds.outputs(1)[1] == "the old one"
    done, told = builds.goes_on([], "--yes")
    assert (done.returncode, [each["answer"] for each in told["questions"]]) == (4, ["the old one", None])


def test_a_build_is_no_chat(builds: Builds) -> None:
    """`chat --resume` names the command that continues with it; a fork of it talks about its draft."""
    done = builds.build([plan() + ASKS], "--yes")
    session = session_of(done)
    project = builds.answers(text("It is empty."))
    refused = project.runops("chat", "--resume", session, "-m", "What is it?")
    assert (refused.returncode, builds.asked) == (2, [])
    assert f"runops build --resume {session}" in refused.stderr
    forked = project.runops("chat", "--fork", session, "-m", "What is it?")
    assert (forked.returncode, forked.stdout) == (0, "It is empty.\n"), forked.stderr
    other = project.runops("build", "--resume", session_of(forked))
    assert other.returncode == 2
    assert "error[not-a-build]" in other.stderr
