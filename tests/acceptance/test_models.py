"""Models in runs of the real command: interrupted requests, wrong settings, used-up budgets."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from runtime.testing import responses, scripted_model
from tests import hasty
from tests.command import TIMEOUT, Project
from tests.site import Site, serve

pytestmark = pytest.mark.drawn(share=0.5, of="models")

ONE = """
version: 1
nodes:
  - {id: kind, type: cognition, instruction: Sort it., input: tea, output: string}
output: "{{ kind }}"
"""
TWO = """
version: 1
nodes:
  - {id: first, type: cognition, instruction: Sort it., input: tea, output: string}
  - {id: second, type: cognition, instruction: Sort it., input: milk, output: string}
output: "{{ second }}"
"""
ASK = """
version: 1
nodes:
  - {id: who, type: context, ask: {name: {question: "Who?"}}}
"""
SAID = scripted_model.text({"value": "drink"}).using(input=1000, output=200)
PRICES = json.dumps({"test-model": {"input": 1, "output": 1}})
KEY = "sk-a-key-that-nobody-may-ever-see-0123456789"


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A project with workflows that ask a model, and without a model server."""
    project = Project(tmp_path)
    for name, text in (("one", ONE), ("two", TWO), ("ask", ASK)):
        project.write(f"{name}.yaml", text)
    return project


def ask_at(project: Project, server: responses.Server, **settings: str) -> None:
    """Have the project ask the fake server."""
    project.environment |= {
        "RUNOPS_MODEL": "test-model",
        "RUNOPS_MODEL_BASE_URL": server.url,
        "RUNOPS_MODEL_KEY": server.key,
        "RUNOPS_MODEL_PROFILE": "openai",
        "RUNOPS_PRICES": PRICES,
        **settings,
    }


def until(happened: Callable[[], object], what: str) -> None:
    """Wait for a condition that must come true."""
    end = time.monotonic() + TIMEOUT
    while not happened():
        assert time.monotonic() < end, what
        time.sleep(0.02)


def polls(server: responses.Server) -> int:
    """The number of polls for background responses."""
    return sum(each.method == "GET" for each in server.requests)


def costs(project: Project) -> list[dict[str, Any]]:
    """The rows of the `costs` table."""
    return json.loads(project.here("query", "select * from costs order by line", "--json").stdout)["rows"]


def results_of(done: subprocess.CompletedProcess[str]) -> list[dict[str, Any]]:
    """The results of the runs in the output of ``--json``."""
    output = json.loads(done.stdout)
    return output.get("runs", [output])


# Interrupted during a model request.


def test_a_background_answer_outlives_the_command(project: Project) -> None:
    """A run killed while it polls fetches the same response on resume: the model is asked and paid once."""
    gate = threading.Event()
    with responses.serve([SAID.held(gate)], strict=True) as server:
        ask_at(project, server, RUNOPS_MODEL_BACKGROUND="true")
        with project.start("run", "one.yaml") as run:
            until(lambda: polls(server), "it never polls")
            run.kill()
        gate.set()
        done = project.here("resume", "last")
        assert (done.returncode, done.stdout) == (0, "drink\n")
        assert len(server.asked) == 1
    (row,) = costs(project)
    assert (row["status"], row["response"], row["input_tokens"]) == ("ok", "resp_0001", 1000)


def test_a_response_that_cannot_be_fetched_yet_is_not_paid_again(project: Project) -> None:
    """A resume with a refused key leaves the response on the server, and the next resume fetches it."""
    gate = threading.Event()
    with responses.serve([SAID.held(gate)], strict=True) as server:
        ask_at(project, server, RUNOPS_MODEL_BACKGROUND="true")
        with project.start("run", "one.yaml") as run:
            until(lambda: polls(server), "it never polls")
            run.kill()
        gate.set()
        project.environment["RUNOPS_MODEL_KEY"] = KEY
        assert project.here("resume", "last").returncode == 3
        project.environment["RUNOPS_MODEL_KEY"] = server.key
        assert project.here("resume", "last").stdout == "drink\n"
        assert len(server.asked) == 1
    assert [each["status"] for each in costs(project)] == ["ok"]


def test_ctrl_c_cancels_a_background_response(project: Project) -> None:
    """Ctrl-C cancels the response on the server, and the resume asks again."""
    with responses.serve([SAID.held(threading.Event()), SAID], strict=True) as server:
        ask_at(project, server, RUNOPS_MODEL_BACKGROUND="true")
        with project.start("run", "one.yaml") as run:
            until(lambda: polls(server), "it never polls")
            run.send_signal(signal.SIGINT)
            assert run.wait(TIMEOUT) == 130
        assert [each.path.rpartition("/")[2] for each in server.requests if each.method == "POST"] == [
            "responses",
            "cancel",
        ]
        assert project.here("resume", "last").stdout == "drink\n"
        assert len(server.asked) == 2


def test_ctrl_c_while_a_model_answers(project: Project) -> None:
    """Ctrl-C exits 130. The ledger lists the request as open, and a resume asks again."""
    with responses.serve([scripted_model.hang(), SAID], strict=True) as server:
        ask_at(project, server)
        with project.start("run", "one.yaml") as run:
            server.wait(1, TIMEOUT)
            run.send_signal(signal.SIGINT)
            assert run.wait(TIMEOUT) == 130
        assert [each["status"] for each in costs(project)] == ["open"]
        assert project.here("resume", "last").stdout == "drink\n"
        assert len(server.asked) == 2
    assert [each["status"] for each in costs(project)] == ["open", "ok"]


# Used-up budgets.


def test_a_run_out_of_budget_waits_for_more(project: Project) -> None:
    """A resume without more budget changes nothing and reports the same. With more it continues, and no paid request is repeated."""
    with responses.serve([SAID, SAID], strict=True) as server:
        ask_at(project, server)
        stopped = project.here("run", "two.yaml", "--budget", "calls=1", "--json")
        assert stopped.returncode == 5
        (result,) = results_of(stopped)
        assert (result["status"], result["path"], result["costs"]["paid"]) == ("out-of-budget", "second", 1)
        (log,) = project.folder.glob(".runops/conversations/*.jsonl")
        before = log.read_bytes()
        for more in ((), ("--budget", "calls=1")):
            again = project.here("resume", "last", "--json", *more)
            assert (again.returncode, results_of(again)[0]["status"]) == (5, "out-of-budget")
        assert log.read_bytes() == before
        done = project.here("resume", "last", "--budget", "calls=10")
        assert (done.returncode, done.stdout) == (0, "drink\n")
        assert len(server.asked) == 2


@pytest.mark.parametrize(
    ("budget", "prices", "code", "said"),
    [
        ("money=1usd", "{}", "price-unknown", "[tool.runops.prices]"),
        ("money=1eur", PRICES, "bad-budget", "0.50usd"),
        ("calls=2,beer=3", PRICES, "bad-budget", "money=0.50usd,tokens=200k,calls=40,time=5m"),
    ],
)
def test_a_budget_that_cannot_be_kept_is_refused(
    budget: str, prices: str, code: str, said: str, project: Project
) -> None:
    """The command exits 2 before a run exists, and says how to write the budget."""
    with responses.serve([]) as server:
        ask_at(project, server, RUNOPS_PRICES=prices, RUNOPS_MODEL_PROFILE="vllm")
        done = project.here("run", "one.yaml", "--budget", budget)
        assert server.requests == []
    assert done.returncode == 2
    assert code in done.stderr
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert project.runs() == []


def test_several_files_exit_with_the_worst_outcome(project: Project) -> None:
    """A used-up budget outranks a question, and a failure outranks both. Each run reports its cost."""
    with responses.serve([SAID, SAID, scripted_model.quota()]) as server:
        ask_at(project, server)
        done = project.here("run", "ask.yaml", "two.yaml", "one.yaml", "--budget", "calls=1", "--json")
        assert done.returncode == 5
        runs = {Path(each["file"]).stem: each for each in results_of(done)}
        assert {name: each["status"] for name, each in runs.items()} == {
            "ask": "paused",
            "two": "out-of-budget",
            "one": "passed",
        }
        assert [runs[name]["costs"] and runs[name]["costs"]["dollars"] for name in ("ask", "two", "one")] == [
            None,
            "0.0012",
            "0.0012",
        ]
        failing = project.here("run", "one.yaml", "ask.yaml", "--fail-fast", "--json")
        assert failing.returncode == 1
        assert [each["status"] for each in results_of(failing)] == ["failed", "skipped"]


# Wrong settings.


@pytest.fixture
def closed() -> Iterator[int]:
    """A port with no listener, reserved so that no other process takes it."""
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        yield reserved.getsockname()[1]


WRONG = {
    "no model": ({"RUNOPS_MODEL": ""}, 3, "model-unset", "RUNOPS_MODEL"),
    "no key": (
        {"RUNOPS_MODEL_KEY": "", "RUNOPS_MODEL_BASE_URL": "http://models.test/v1"},
        3,
        "model-key-missing",
        ".env",
    ),
    "wrong key": ({"RUNOPS_MODEL_KEY": KEY}, 3, "model-key-refused", "RUNOPS_MODEL_KEY"),
    "key that no header holds": ({"RUNOPS_MODEL_KEY": f"{KEY}é"}, 3, "model-key-refused", "RUNOPS_MODEL_KEY"),
    "unknown model": ({"RUNOPS_MODEL": "old-model"}, 3, "model-unknown", "doctor --model"),
    "wrong address": ({"RUNOPS_MODEL_BASE_URL": "{origin}/v2"}, 3, "model-unknown", "/v1"),
    "nobody there": (
        {"RUNOPS_MODEL_BASE_URL": "http://127.0.0.1:{closed}/v1"},
        1,
        "model-unreachable",
        "model_base_url",
    ),
}


@pytest.mark.drawn(2)
@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_setting_says_what_to_set(name: str, closed: int, project: Project) -> None:
    """A wrong setting is reported in a few lines with its error code and fix. The key appears in no output and no file."""
    settings, code, error, fix = WRONG[name]
    with responses.serve([], models=("test-model",)) as server:
        ask_at(project, server)
        origin = server.url.removesuffix("/v1")
        filled = {each: text.format(origin=origin, closed=closed) for each, text in settings.items()}
        project.environment |= {**filled, hasty.WAIT: "0.01"}
        project.write("one.yaml", ONE.replace("output: string", "output: string, timeout: 30"))
        done = project.here("run", "one.yaml")
        shown = [done.stdout, done.stderr, project.here("show", "last", "--json").stdout]
    assert done.returncode == code, done.stderr
    assert error in done.stderr
    assert fix in done.stderr
    assert "Traceback" not in done.stderr
    kept = [each.read_bytes().decode(errors="replace") for each in project.folder.rglob("*") if each.is_file()]
    assert not any(KEY in text or server.key in text for text in (*shown, *kept))


@pytest.fixture
def site() -> Iterator[Site]:
    """A site used by one test."""
    with serve() as started:
        yield started


def test_the_key_in_a_page_is_shown_nowhere(site: Site, project: Project) -> None:
    """A model key on a page reaches neither the log, nor the output, nor a request."""
    address = site.page("/", f"<p id=seen>the key is {KEY}</p>")
    project.write(
        "page.yaml",
        f"""
version: 1
nodes:
  - {{id: open, type: browser_action, action: goto, url: "{address}"}}
  - {{id: seen, type: browser_query, query: text, target: {{css: "#seen"}}}}
  - {{id: told, type: transform, expr: "{{{{ seen | upper | lower }}}}"}}
  - {{id: kind, type: cognition, instruction: Sort it., input: "{{{{ seen }}}}", output: string, on_error: continue}}
output: "{{{{ seen }}}}"
""",
    )
    with responses.serve([], key=KEY, strict=True) as server:
        ask_at(project, server)
        done = project.here("run", "page.yaml", "--json")
        assert server.requests == []
    assert "the key is" in done.stdout
    kept = [each.read_bytes().decode(errors="replace") for each in project.folder.glob(".runops/**/*.json*")]
    assert len(kept) > 0
    assert not any(KEY in text for text in (done.stdout, done.stderr, *kept))
