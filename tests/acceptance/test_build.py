"""`runops build` as a process: how it begins, what it asks, and how it ends."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from runtime.testing.scripted import text
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
    done = builds.build([plan() + ASKS], "--yes")
    assert done.returncode == 4, done.stderr
    assert "Which shop is it?" in done.stderr
    assert f"runops build --resume {session_of(done)} --answer TEXT" in done.stderr
    assert done.stdout == ""
    done, told = builds.goes_on([text("So be it."), text("I see.")], "--yes", "--answer", "2")
    assert builds.outputs(0)[1] == "the new one"
    assert (done.returncode, told["status"], told["error"]["code"]) == (1, "failed", "build-stopped")
    assert told["questions"] == [
        {"question": "Which shop is it?", "choices": ["the old one", "the new one"], "answer": "the new one"}
    ]


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ((), "usage"),
        (("goal", "--answer", "x"), "usage"),
        (("--resume", "last"), "unknown-session"),
        (("goal", "--url", "nothing"), "usage"),
        (("goal", "--url", "https://shop.test", "--effects", "allow"), "effects-not-local"),
        (("goal", "--save", "prices.yaml"), "file-exists"),
        (("goal", "--save", "prices.txt"), "usage"),
        (("goal", "-i", "x"), "bad-input"),
    ],
)
def test_a_wrong_command_line_ends_with_2(arguments: tuple[str, ...], code: str, builds: Builds) -> None:
    """With a code; nothing is begun, and no model is asked."""
    done = builds.answers().runops("build", *arguments)
    assert done.returncode == 2, done.stderr
    assert f"error[{code}]" in done.stderr
    assert builds.asked == []
    assert not list(builds.folder.rglob("*.jsonl"))
