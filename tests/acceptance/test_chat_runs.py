"""Runs that a chat session starts and resumes: the budget they use, the session's knowledge of them, and the exit code of the command."""

from __future__ import annotations

import json
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from runtime.testing import scripted_model
from runtime.testing.scripted_model import text
from tests.chats import Chats, session_of, typed, words_of
from tests.command import Project

pytestmark = pytest.mark.drawn(share=0.22, of="chat runs")

SORT = """\
version: 1
name: Sort
nodes:
  - {id: one, type: cognition, instruction: Sort it., input: tea, output: [a, b], max_output: 200}
  - {id: two, type: cognition, instruction: Sort it., input: rice, output: [a, b], max_output: 200}
output: "{{ one }}{{ two }}"
"""
"""A workflow that asks a model twice."""

ASKS = """\
version: 1
name: Ask
nodes:
  - {id: colour, type: context, ask: {shade: Which colour?}}
output: "{{ vars.shade }}"
"""
"""A workflow that asks a person."""

A = text({"value": "a"})


@pytest.fixture
def chats(tmp_path: Path) -> Iterator[Chats]:
    """Chat sessions in a project."""
    made = Chats(tmp_path)
    yield made
    made.close()


def sorting(chats: Chats, *said: scripted_model.Scripted, **settings: str) -> Project:
    """A project with a workflow that asks a model twice."""
    project = chats.answers(*said, **settings)
    project.write("sort.yaml", SORT)
    return project


def asked_of(project: Project, sql: str) -> list[dict[str, Any]]:
    """The rows of `runops query`."""
    return json.loads(project.runops("query", sql, "--json").stdout)["rows"]


# One budget.


def test_a_run_uses_the_budget_of_its_session(chats: Chats) -> None:
    """A run has only the rest of its session's budget, and exits 5 when it is used up. The printed command continues the same run."""
    project = sorting(chats, text("It sorts."), A, A, text("Both are a."))
    done = typed(project, "What does it do?\n/run\n", "chat", "sort.yaml", "--budget", "calls=2")
    assert (done.returncode, len(chats.asked)) == (5, 2), done.stderr
    session = session_of(done)
    assert "the session has 0 left of its budget of 2 (calls)" in done.stderr
    again = f"runops chat --resume {session} --budget calls=6"
    assert again in done.stderr
    (run,) = project.runs()
    assert run["state"] == "out-of-budget"
    # The run got no budget of its own.
    assert project.show()["budget"] is None
    done = project.runops(*again.split()[1:], "-m", "/resume")
    assert (done.returncode, len(chats.asked)) == (0, 3), done.stderr
    assert [(each["id"], each["state"]) for each in project.runs()] == [(run["id"], "passed")]


def test_a_run_cannot_bypass_the_budget(chats: Chats) -> None:
    """The cost of runs reduces the budget of later messages and runs, also in another process."""
    project = sorting(chats, A, A, text("Hello."))
    done = typed(project, "/run\nHello?\n", "chat", "sort.yaml", "--budget", "calls=2")
    assert (done.returncode, len(chats.asked)) == (5, 2), done.stderr
    assert "error[budget-reached]" in done.stderr
    done = project.runops("chat", "--resume", "last", "-m", "/run")
    assert (done.returncode, len(chats.asked)) == (5, 2), done.stderr
    # A budget setting does not help either: the earlier message is answered, and then nothing is left.
    done = typed(project, "/run\n", "chat", "--resume", "last", "--budget", "calls=3", RUNOPS_BUDGET="calls=9")
    assert (done.returncode, done.stdout, len(chats.asked)) == (5, "Hello.\n", 3), done.stderr
    assert "the session has 0 left of its budget of 3 (calls)" in done.stderr


def test_an_earlier_run_costs_the_session_only_its_later_requests(chats: Chats) -> None:
    """A run that existed before costs the session only what it spends from then on. A smaller budget of the run itself applies, too."""
    project = sorting(chats, A, A, text("Yes."))
    assert project.runops("run", "sort.yaml", "--budget", "calls=1").returncode == 5
    done = typed(project, "/resume\n/cost\n", "chat", "last", "--budget", "calls=1")
    assert (done.returncode, done.stdout, len(chats.asked)) == (0, "nothing was asked yet\n", 1), done.stderr
    assert "the run has 0 left of its budget of 1 (calls)" in done.stderr
    done = typed(
        project, "/resume\n/cost\n", "chat", "--resume", "last", "--budget", "calls=1", RUNOPS_BUDGET="calls=5"
    )
    assert (done.returncode, len(chats.asked)) == (0, 2), done.stderr
    assert done.stdout.splitlines()[0].startswith("all")
    assert " 1 request " in done.stdout.splitlines()[0]


def test_the_cost_of_a_run_is_listed_separately_and_counted_once(chats: Chats) -> None:
    """`/cost` and `runops show` list the run with its sum. Its requests are counted only in the run."""
    project = sorting(chats, text("It sorts."), A, A)
    done = typed(project, "What does it do?\n/run\n/cost\n", "chat", "sort.yaml")
    session, (run,) = session_of(done), project.runs()
    all_, own, its = done.stdout.splitlines()[-3:]
    assert (all_.split()[:3], own.split()[:3]) == (["all", "3", "requests"], ["session", "1", "request"])
    assert its.split()[:4] == ["run", run["id"], "2", "requests"]
    shown = project.show(session)
    assert shown["costs"]["requests"] == 1
    assert {each: totals["requests"] for each, totals in shown["runs"].items()} == {run["id"]: 2}
    assert f"run {run['id']}  2 requests" in project.runops("show", session).stdout
    rows = asked_of(project, "SELECT run, count(*) AS n FROM costs GROUP BY run ORDER BY n")
    assert [(each["run"], each["n"]) for each in rows] == [(session, 1), (run["id"], 2)]
    assert asked_of(project, "SELECT requests FROM sessions") == [{"requests": 1}]


def test_money_is_only_limited_where_the_prices_of_the_run_are_known(chats: Chats) -> None:
    """A run with a model of unknown price does not start, and nothing is sent."""
    project = chats.answers()
    project.write("sort.yaml", SORT.replace("max_output: 200", "max_output: 200, model: other"))
    done = typed(project, "/run\n", "chat", "sort.yaml", "--budget", "money=1usd")
    assert (done.returncode, project.runs(), chats.asked) == (2, [], []), done.stderr
    assert "error[price-unknown]" in done.stderr


def test_a_run_that_died_with_its_process_is_reported_and_counts(chats: Chats) -> None:
    """After kill -9 during `/run` the model learns that the run died, and the run's request counts towards the budget."""
    gate = threading.Event()
    project = sorting(chats, A.held(gate), text("It died."))
    process = project.start("chat", "sort.yaml", "--budget", "calls=2", "-m", "/run")
    try:
        while not chats.asked:
            assert process.poll() is None
    finally:
        process.send_signal(signal.SIGKILL)
        process.communicate()
        gate.set()
    (run,) = project.runs()
    assert run["state"] == "died"
    session = next(each.stem for each in project.folder.rglob("*.jsonl") if each.stem != run["id"])
    assert project.show(session)["following"] == run["id"]
    assert f"run {run['id']}  open" in project.runops("show", session).stdout
    done = typed(project, "What happened?\nAnd now?\n", "chat", "--resume", "last")
    assert (done.returncode, done.stdout) == (5, "It died.\n"), done.stderr
    told = next(each for each in words_of(chats.bodies()[-1]) if each.startswith("output: "))
    assert told.startswith(f"output: run {run['id']} of Sort: died\n")
    assert f"run {run['id']} of Sort: died" in done.stderr
    shown = project.show(session)
    assert (list(shown["runs"]), shown["following"]) == ([run["id"]], None)


# Unreadable runs.


def test_a_damaged_run_is_no_reason_to_lose_its_session(chats: Chats) -> None:
    """The session continues and reports that the run cannot be read. No new session about that run starts, nor one about a session."""
    project = chats.answers(text("It failed."), text("Nobody knows."))
    assert project.runops("run", "prices.yaml", "--quiet").returncode == 1
    run = project.runs()[-1]["id"]
    session = session_of(project.runops("chat", run, "-m", "Why?"))
    file = project.folder / ".runops" / "conversations" / f"{run}.jsonl"
    first, second, *rest = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join([first, second.replace(b"claimed", b"claimes"), *rest]))
    done = project.runops("chat", "--resume", session, "-m", "And now?")
    assert (done.returncode, done.stdout) == (0, "Nobody knows.\n"), done.stderr
    assert f"run {run}: cannot be read any more" in done.stderr
    before = sorted(project.folder.rglob("*.jsonl"))
    for name, code in ((run, "log-damaged"), (session, "not-a-run")):
        done = project.runops("chat", name, "-m", "Why?")
        assert done.returncode == 2
        assert f"error[{code}]" in done.stderr
    assert sorted(project.folder.rglob("*.jsonl")) == before


# The exit code.


@pytest.mark.parametrize(
    ("file", "inputs", "code", "status"),
    [("prices.yaml", "", 1, "failed"), ("prices.yaml", " -i 'prices=1 2'", 0, "ended"), ("ask.yaml", "", 4, "paused")],
)
def test_a_run_as_the_last_message_gives_the_exit_code(
    file: str, inputs: str, code: int, status: str, chats: Chats
) -> None:
    """The exit code is that of the run, for `-m` as for typed input. `--json` has the outcome of the run with the message."""
    project = chats.answers()
    project.write("ask.yaml", ASKS)
    word = f"/run {file}{inputs}"
    assert typed(project, f"{word}\n", "chat").returncode == code
    done = project.runops("chat", "-m", word, "--json")
    assert done.returncode == code, done.stderr
    said = json.loads(done.stdout)
    assert (said["exit"], said["status"]) == (code, status)
    ((first,), run) = said["words"], project.runs()[-1]
    assert (first["said"], first["answer"], first["error"]) == (word, None, None)
    assert (first["run"]["run"], first["run"]["status"], first["run"]["exit"]) == (run["id"], run["state"], code)


def test_a_message_after_a_failed_run_gives_the_exit_code(chats: Chats) -> None:
    """A later answer or slash command determines the exit code."""
    project = chats.answers(text("`n/a` is no number."), text("Yes."))
    assert typed(project, "/run\nWhy?\n", "chat", "prices.yaml").returncode == 0
    assert typed(project, "/run\n/cost\n", "chat", "prices.yaml").returncode == 0
    assert typed(project, "/run\n/plam\n", "chat", "prices.yaml").returncode == 2


def test_two_slashes_of_a_message_are_one_for_the_model(chats: Chats) -> None:
    """`-m` treats a leading slash like typed input."""
    project = chats.answers(text("A path."))
    assert project.runops("chat", "-m", "//etc is what?").stdout == "A path.\n"
    assert words_of(chats.bodies()[0])[0] == "user: /etc is what?"
    done = project.runops("chat", "-m", "/plam")
    assert done.returncode == 2
    assert "error[unknown-word]" in done.stderr
