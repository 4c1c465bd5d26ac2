"""The command line's output about models: during a request, at the end, and when a budget is used up."""

import json
import re
import shlex
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from runtime.testing import responses, scripted_model
from tests.command import Project

TWO = """
version: 1
nodes:
  - {id: first, type: cognition, instruction: Sort it., input: tea, output: string}
  - {id: second, type: cognition, instruction: Sort it., input: milk, output: string}
output: "{{ second }}"
"""
ONE = "".join(line for line in TWO.splitlines(keepends=True) if "second" not in line)
SAID = scripted_model.text({"value": "drink"}).using(input=1234, output=210)
PRICES = json.dumps({"test-model": {"input": 0.5, "output": 2.0}})


class Models:
    """A project with a fake model server."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.servers: list[responses.Server] = []

    def ask(self, *said: scripted_model.Scripted, **settings: str) -> Project:
        server = responses.Server(scripted_model.Model(said))
        self.servers.append(server)
        project = Project(
            self.folder,
            RUNOPS_MODEL="test-model",
            RUNOPS_MODEL_BASE_URL=server.url,
            RUNOPS_MODEL_KEY=server.key,
            RUNOPS_MODEL_PROFILE="openai",
            RUNOPS_PRICES=PRICES,
            **settings,
        )
        project.write("two.yaml", TWO)
        project.write("one.yaml", ONE)
        return project


@pytest.fixture
def models(tmp_path: Path) -> Iterator[Models]:
    made = Models(tmp_path)
    yield made
    for server in made.servers:
        server.close()


def test_the_end_of_a_run_says_what_models_cost(models: Models) -> None:
    """The cost is one line at the end if a model was asked, not under `--quiet`. JSON has it as `costs`."""
    project = models.ask(SAID, SAID, SAID, SAID)
    done = project.here("run", "two.yaml")
    assert done.returncode == 0
    assert done.stderr.splitlines()[-1] == "  cost  2 requests  2,468 tokens in  420 out  $0.0021"
    assert project.here("run", "two.yaml", "--quiet").stderr == ""
    project.write("none.yaml", 'version: 1\nnodes: [{id: a, type: transform, expr: "{{ 1 }}"}]\n')
    assert "cost" not in project.here("run", "none.yaml").stderr
    first, _second, none = project.runs()
    assert project.show(first["id"])["costs"]["dollars"] == "0.002074"
    assert project.show(none["id"])["costs"] is None


def test_a_failed_run_reports_its_cost(models: Models) -> None:
    """A failure reports the cost up to it."""
    done = models.ask(SAID, scripted_model.refusal().using(input=1000, output=0)).runops("run", "two.yaml")
    assert done.returncode == 1
    assert "FAILED second" in done.stderr
    assert re.search(r"^  cost +2 requests  2,234 tokens in  210 out  \$0\.0015$", done.stderr, re.MULTILINE)


def test_a_run_out_of_budget_resumes_with_the_printed_command(models: Models) -> None:
    """A used-up budget exits 5 and states the budget and the spending. The last line is the command that finishes the run without paying twice."""
    project = models.ask(SAID, SAID)
    stopped = project.here("run", "two.yaml", "--budget", "calls=1")
    assert stopped.returncode == 5
    assert "OUT OF BUDGET second" in stopped.stderr
    assert "1 request  1,234 tokens in" in stopped.stderr
    last = stopped.stderr.splitlines()[-1]
    assert last.split()[:3] == ["again", "runops", "resume"]
    assert project.show()["state"] == "out-of-budget"
    assert project.here("show", "last").stdout.splitlines()[-1].split() == last.split()
    done = project.here(*shlex.split(last)[2:])
    assert (done.returncode, done.stdout) == (0, "drink\n")
    assert len(models.servers[0].asked) == 2


def test_a_step_out_of_its_own_budget_resumes_with_a_file_that_raises_it(models: Models) -> None:
    """The fix says what to write, and the last line what to type. With both the run passes, and no earlier answer is paid again."""
    tight = TWO.replace("milk, output: string", "milk, output: string, budget: {tokens: 1k}")
    project = models.ask(SAID, SAID)
    project.write("two.yaml", tight)
    stopped = project.here("run", "two.yaml")
    assert stopped.returncode == 5, stopped.stderr
    larger = re.search(r"fix .*`budget: (\S+)`", stopped.stderr)
    assert larger
    project.write("two.yaml", tight.replace("{tokens: 1k}", f'"{larger[1]}"'))
    done = project.here(*shlex.split(stopped.stderr.splitlines()[-1])[2:])
    assert (done.returncode, done.stdout) == (0, "drink\n"), done.stderr
    assert len(models.servers[0].asked) == 2


def test_the_summary_of_several_runs_says_which_is_out_of_budget(models: Models) -> None:
    """The summary lists the run that is out of budget, the total cost, and the command that resumes it."""
    done = models.ask(SAID, SAID).runops("run", "two.yaml", "one.yaml", "--budget", "calls=1", "--junit", "report.xml")
    assert done.returncode == 5
    assert "1 passed, 1 out of budget" in done.stderr
    assert "\n  cost   2 requests  2,468 tokens in  420 out  $0.0021\n" in done.stderr
    assert re.search(r"^  OUT OF BUDGET  two\.yaml ", done.stderr, re.MULTILINE)
    assert re.search(r"^  again +runops resume \w+ --budget calls=\d", done.stderr.splitlines()[-1])
    assert 'type="budget-reached"' in (models.folder / "report.xml").read_text()


def test_a_terminal_shows_a_pending_model_request(models: Models) -> None:
    """The tree shows the wait for the model, then the number of characters received. An interruption prints the cost."""
    gate = threading.Event()
    mismatch = scripted_model.text("no JSON").using(input=1234, output=210)
    project = models.ask(mismatch.held(gate), scripted_model.stall("x" * 900))
    with project.terminal("run", "one.yaml", columns=100) as terminal:
        terminal.wait_for(lambda: "waiting: the model to answer" in terminal.text)
        gate.set()
        terminal.wait_for(lambda: bool(re.search(r"waiting: the rest .*\(\d+ characters so far\)", terminal.text)))
        assert re.search(r"^>>  first  ask: Sort it\. +\d.* s$", terminal.text, re.MULTILINE)
        assert terminal.screen.wrapped == []
        terminal.press("\x03")
        assert terminal.wait() == 130
        assert "cost  2 requests  1,234 tokens in  210 out  $0.001 at least" in terminal.text
