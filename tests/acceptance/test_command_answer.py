"""A run that asks a person, as processes: answered on the command line, on a terminal, wrongly, and after a kill."""

import json
import re
import signal
from pathlib import Path

import pytest

from tests.command import Project

ASK = """
version: 1
name: Ask first
nodes:
  - {id: order, type: transform, expr: "1007"}
  - id: who
    type: context
    ask:
      approver: "Who approves order {{ order }}?"
      amount: {question: How much?, type: integer}
  - {id: total, type: transform, expr: "{{ vars.amount * 2 }}"}
  - {id: late, type: context, ask: {sure: {question: Sure?, type: boolean, default: true}}}
output: "{{ vars.approver }} {{ total }} {{ vars.sure }}"
"""


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A project with a workflow that asks twice."""
    project = Project(tmp_path)
    project.write("ask.yaml", ASK)
    return project


def test_a_run_asks_and_resumes_with_the_answers(project: Project) -> None:
    """A question exits 4 with the command to answer. Wrong or missing answers exit 2 by code; right ones resume at once and are asked for once."""
    asked = project.here("run", "ask.yaml", "--json")
    (question,) = json.loads(asked.stdout)["runs"]
    answer = f"runops answer {question['run']} approver=… amount=…"
    assert (asked.returncode, question["question"]["reason"], question["path"]) == (4, "question", "who")
    assert question["question"]["evidence"]["questions"]["approver"]["question"] == "Who approves order 1007?"
    for again in (asked, project.here("resume", "last")):
        assert (again.returncode, answer in again.stderr) == (4, True)
    assert answer in project.here("show", "last").stdout

    wrong = project.here("answer", "last", "approver=Ada", "amount=many")
    assert wrong.returncode == 2
    assert "error[bad-answer]: `amount` must be a whole number" in wrong.stderr
    nameless = project.here("answer", "amount=21")
    assert (nameless.returncode, "name the run first: runops answer last amount=21" in nameless.stderr) == (2, True)
    missing = project.here("answer", "last", "amount=21")
    assert missing.returncode == 2
    assert "error[missing-answer]" in missing.stderr
    assert "`approver` (Who approves order 1007?)" in missing.stderr
    decided = project.here("decide", "last", "done")
    assert (decided.returncode, "error[nothing-to-decide]" in decided.stderr) == (2, True)

    second = project.here("answer", "last", "approver=Ada", "amount=21")
    assert (second.returncode, "PAUSED late" in second.stderr) == (4, True)
    done = project.here("answer", "last")
    assert (done.returncode, done.stdout) == (0, "Ada 42 true\n")
    over = project.here("answer", "last", "sure=true")
    assert (over.returncode, "error[nothing-to-answer]" in over.stderr) == (2, True)
    assert "asks nothing: it has passed" in over.stderr


def test_a_secret_that_is_no_answer_is_not_shown(project: Project) -> None:
    """An answer with a secret, of the wrong type or under a wrong name, is refused without showing the secret, in text and in JSON."""
    project.environment["SHOP_PASSWORD"] = "hunter22-secret"
    project.write("ask.yaml", f"secrets: [SHOP_PASSWORD]\n{ASK.lstrip()}")
    assert project.here("run", "ask.yaml").returncode == 4
    for pair, code in (
        ("amount=hunter22-secret", "bad-answer"),
        ("approver=hunter22-secret", "missing-answer"),
        ("hunter22-secret=1", "unknown-answer"),
        ("hunter22-secret", "bad-answer"),
    ):
        wrong = project.here("answer", "last", pair, "--json")
        assert wrong.returncode == 2
        assert json.loads(wrong.stdout)["error"]["code"] == code
        assert "hunter22" not in wrong.stdout + wrong.stderr
    whole = project.here("answer", "last", "approver=hunter22-secret", "amount=1")
    assert (whole.returncode, "error[secret-in-answer]" in whole.stderr) == (2, True)
    assert not [file for file in project.folder.rglob("*.jsonl") if "hunter22" in file.read_text()]


def test_an_answer_outlives_the_process_that_took_it(project: Project) -> None:
    """An answer only recorded, or recorded by a process killed right after, is not asked for again by the resumed run."""
    assert project.runops("run", "ask.yaml").returncode == 4
    only = project.runops("answer", "last", "approver=Ada", "amount=21", "--only", "--json")
    assert json.loads(only.stdout)["answered"] == {"approver": "Ada", "amount": 21}
    log = next((project.folder / ".runops" / "conversations").glob("*.jsonl"))
    with project.start("resume", "last") as process:
        process.send_signal(signal.SIGKILL)
    assert '"answered"' in log.read_text()
    assert project.runops("resume", "last").returncode == 4
    assert project.runops("answer", "last", "sure=false").stdout == "Ada 42 false\n"


def test_missing_answers_are_asked_for_on_a_terminal(project: Project) -> None:
    """On a terminal the command asks each question, and again where the answer does not fit."""
    assert project.runops("run", "ask.yaml").returncode == 4
    with project.terminal("answer", "last", "--only") as terminal:
        terminal.wait_for(lambda: "Who approves order 1007?" in terminal.text)
        terminal.press("Ada\n")
        terminal.wait_for(lambda: "How much?" in terminal.text)
        terminal.press("many\n")
        terminal.wait_for(lambda: "must be a whole number" in terminal.text)
        terminal.press("21\n")
        assert terminal.wait() == 0
    assert project.runops("resume", "last").returncode == 4
    assert re.search(r"Ada 42 true", project.runops("answer", "last").stdout)
