"""`runops chat` with hostile arguments: empty names, missing files, secrets that become known late, invalid UTF-8."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from runtime.testing.scripted_model import text
from tests.chats import PRICES, Chats, session_of, text_of, typed
from tests.command import Project

pytestmark = pytest.mark.drawn(share=0.35, of="chat hostile")

SECRET = "correct-horse"
PAY = """\
version: 1
name: Pay
secrets: [SHOP_PASSWORD]
nodes:
  - {id: sum, type: transform, expr: "{{ 1 + 1 }}"}
"""


@pytest.fixture
def chats(tmp_path: Path) -> Iterator[Chats]:
    """Chat sessions in a project."""
    made = Chats(tmp_path)
    yield made
    made.close()


def log_of(project: Project, session: str) -> list[str]:
    """The lines of a session's log."""
    return (project.folder / ".runops" / "conversations" / f"{session}.jsonl").read_text().splitlines()


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("--resume", ""), "unknown-session"),
        (("--fork", ""), "unknown-session"),
        (("",), "unknown-run"),
        (("--knowledge", "none"), "file-not-found"),
        ((os.fsdecode(b"pr\xffces.yaml"),), "file-not-read"),
    ],
)
def test_an_empty_name_starts_no_session(arguments: tuple[str, ...], code: str, chats: Chats) -> None:
    """An empty name, as of an unset shell variable, exits 2 instead of meaning the only conversation. No session is left."""
    project = chats.answers(text("One."))
    assert project.runops("run", "prices.yaml", "--quiet").returncode == 1
    before = sorted(project.folder.rglob("*.jsonl"))
    done = project.runops("chat", *arguments, "-m", "x")
    assert done.returncode == 2, done.stderr
    assert f"error[{code}]" in done.stderr
    assert sorted(project.folder.rglob("*.jsonl")) == before
    assert chats.asked == []


def test_bytes_that_are_no_text_can_be_sent(chats: Chats) -> None:
    """A message that is no UTF-8 or has a NUL is answered. A file name with a NUL is changed to a valid one."""
    project = chats.answers(text("One."), text("Two."))
    assert project.runops("chat", "-m", os.fsdecode(b"a\xffb")).stdout == "One.\n"
    done = typed(project, 'a\0b\n/save "a\0b.md"\n', "chat")
    assert (done.returncode, done.stdout) == (0, "Two.\n"), done.stderr
    assert (project.folder / "a\N{REPLACEMENT CHARACTER}b.md").exists()


def test_bytes_that_are_no_text_can_be_typed(chats: Chats) -> None:
    """Invalid UTF-8 typed on a terminal is answered, whatever the encoding."""
    project = chats.answers(text("One."))
    with project.terminal("chat", PYTHONIOENCODING="utf-8:strict") as terminal:
        terminal.wait_for(lambda: terminal.text.endswith(">"))
        terminal.press(b"a\xffb\r")
        terminal.wait_for(lambda: "One." in terminal.text)
        terminal.press("/quit\r")
        assert terminal.wait() == 0
    assert "a\N{REPLACEMENT CHARACTER}b" in text_of(chats.bodies()[0])


def test_a_secret_is_masked_once_the_session_knows_it(chats: Chats) -> None:
    """After a run with secrets starts in the session, new messages and all requests have them masked."""
    project = chats.answers(text("One."), text("Two."), SHOP_PASSWORD=SECRET)
    project.write("pay.yaml", PAY)
    done = typed(project, f"It is {SECRET}?\n/run pay.yaml\nAnd {SECRET}!\n", "chat")
    assert (done.returncode, done.stdout) == (0, "One.\nTwo.\n"), done.stderr
    lines = log_of(project, session_of(done))
    assert [line for line in lines if SECRET in line] == [line for line in lines if f"It is {SECRET}?" in line]
    assert SECRET not in text_of(chats.bodies()[1])
    assert "And [hidden]!" in text_of(chats.bodies()[1])


def test_the_secrets_of_a_file_with_mistakes_are_masked(chats: Chats) -> None:
    """The secrets that an invalid file declares are masked, too."""
    project = chats.answers(text("One."), SHOP_PASSWORD=SECRET)
    project.write("pay.yaml", PAY.replace("transform", "transfrom"))
    assert project.runops("chat", "pay.yaml", "-m", f"Is it {SECRET}?").returncode == 0
    assert SECRET not in text_of(chats.bodies()[0])
    assert not [file for file in project.folder.rglob("*.jsonl") if SECRET in file.read_text()]


def test_a_session_outlives_its_subject(chats: Chats) -> None:
    """After its file is renamed or its run deleted the session continues, and the model learns that it can no longer be read."""
    project = chats.answers(text("One."), text("Two."), text("Three."), text("Four."))
    project.write("sum.yaml", PRICES)
    about_file = session_of(project.runops("chat", "sum.yaml", "-m", "x"))
    (project.folder / "sum.yaml").rename(project.folder / "total.yaml")
    done = project.runops("chat", "--resume", about_file, "-m", "y")
    assert (done.returncode, done.stdout) == (0, "Two.\n"), done.stderr
    assert "cannot be read any more" in text_of(chats.bodies()[1])
    assert project.runops("run", "prices.yaml", "--quiet").returncode == 1
    run = project.runs()[-1]["id"]
    about_run = session_of(project.runops("chat", run, "-m", "x"))
    (project.folder / ".runops" / "conversations" / f"{run}.jsonl").unlink()
    done = project.runops("chat", "--resume", about_run, "-m", "y")
    assert (done.returncode, done.stdout) == (0, "Four.\n"), done.stderr
    assert project.runops("show", about_run, "--window").returncode == 0


def test_a_fork_has_the_budget_that_it_is_given(chats: Chats) -> None:
    """Else that of its parent."""
    project = chats.answers(text("One."), text("Two."))
    assert project.runops("chat", "--budget", "calls=9", "-m", "x").returncode == 0
    done = typed(project, "y\nz\n", "chat", "--fork", "last", "--budget", "calls=1")
    assert (done.returncode, done.stdout) == (5, "Two.\n"), done.stderr
    assert json.loads(project.runops("show", session_of(done), "--json").stdout)["budget"] == "calls=1"


@pytest.mark.parametrize(("reader", "code", "most"), [("> /dev/full", 3, 1), ("| true", 0, 1), ("| head -n 1", 0, 3)])
def test_no_request_follows_an_unwritable_answer(reader: str, code: int, most: int, chats: Chats) -> None:
    """A full disk exits 3 and names the session. A reader that has gone away stops further requests."""
    project = chats.answers(*[text(f"Answer {number}.") for number in range(9)])
    words = "".join(f"word {number}\\n" for number in range(9))
    done = project.shell(f"printf '{words}' | (runops chat; echo $? > code) {reader}")
    assert int((project.folder / "code").read_text()) == code, done.stderr
    assert len(chats.asked) <= most
    assert ("error[output-not-written]" in done.stderr) == bool(code)
    if code:
        assert "word 0" in project.runops("show", session_of(done)).stdout
