"""`runops show` and `runops runs` of a run with model requests, and of one that is out of budget."""

import json
from pathlib import Path
from typing import Any

import pytest

from nodes.values import Json
from runtime.cli import app
from runtime.display import costs
from runtime.log import ledger
from tests import exchanges

REACHED: dict[str, Json] = {
    "code": "budget-reached",
    "who": "budget",
    "message": "the run has 0 left of its budget of 1 (calls), and the next request may need 1",
    "fix": "continue with more: `runops resume last --budget calls=4`",
    "evidence": {"of": "run", "part": "calls", "limit": "1", "spent": "1", "needed": "1"},
}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty store that the command uses too."""
    monkeypatch.setenv("RUNOPS_HOME", str(tmp_path))
    return tmp_path


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    capsys.readouterr()
    assert app.run(list(arguments)) == 0
    return capsys.readouterr().out


def shown(capsys: pytest.CaptureFixture[str], *more: str) -> dict[str, Any]:
    return json.loads(printed(capsys, "show", "last", "--json", *more))


def test_a_step_and_the_run_show_their_costs(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each step shows requests and money, the run tokens too; with an unknown price the sum is "at least"."""
    exchanges.every_way(home).end("failed", 1)
    lines = printed(capsys, "show", "last").splitlines()
    beside = {line.split()[1]: line.partition("request")[0][-2:] + line.partition("request")[2] for line in lines[2:7]}
    assert beside == {
        "sorted": "2 s  $0.00000000012 at least",
        "again": "1   $0.25",
        "played": "1   nothing paid",
        "later": "1   $0.50",
        "lost": "1   price unknown",
    }
    assert "  cost  6 requests  400 tokens in  120 out  $0.75 at least" in lines
    report = shown(capsys)
    assert report["costs"] | {"seconds": None} == {
        "requests": 6,
        "paid": 5,
        "input_tokens": 400,
        "cached_tokens": 80,
        "output_tokens": 120,
        "reasoning_tokens": 20,
        "dollars": None,
        "known_dollars": "0.7500000001225",
        "seconds": None,
    }
    assert [step["costs"]["requests"] for step in report["steps"]] == [2, 1, 1, 1, 1]


def thread(capsys: pytest.CaptureFixture[str], step: str) -> list[str]:
    """The lines of `show --at` for the step's attempts, without times, tokens and the value."""
    lines = [line.strip() for line in printed(capsys, "show", "last", "--at", step).splitlines()]
    found = lines[2 : lines.index("value") if "value" in lines else None]
    return [line.partition("  about")[0].partition("  2")[0].partition("  100")[0] for line in found]


def test_the_thread_of_a_step_is_shown_below_its_attempt(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An attempt shows its question, each request, an error with partial answer and retry, and the answer with its source."""
    exchanges.every_way(home).end("failed", 1)
    does = "cognition  (read)"
    assert thread(capsys, "sorted") == [
        "attempt 1  ok",
        does,
        *("asked", "tea?"),
        "request  asked-model",
        "failed  model-failed: the server failed with 500  0.2 s  again after 0.5 s",
        "hot dr",
        "request  asked-model",
        *("answer  named-model", "hot drink"),
    ]
    assert thread(capsys, "again")[-3:] == [
        "milk?",
        "answer  named-model  from the log, where an earlier attempt left it",
        "white",
    ]
    assert thread(capsys, "played")[-2:] == ["answer  named-model  from the cassette", "yellow"]


def test_a_request_without_an_outcome_is_shown_as_open(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A lost request has no recorded outcome, one answered in a later attempt says so; failed and answered ones are not open."""
    exchanges.every_way(home).end("failed", 1)
    assert thread(capsys, "lost")[-1] == "open, no outcome recorded"
    later = thread(capsys, "later")
    assert "open here: a later attempt of the step waited for the answer" in later
    assert "open, no outcome recorded" not in later
    kinds = {
        step["path"]: [[each["kind"] for each in attempt["thread"]] for attempt in step["attempts"]]
        for step in shown(capsys)["steps"]
    }
    assert kinds == {
        "sorted": [["user", "requested", "model_error", "requested", "assistant"]],
        "again": [["user", "requested", "assistant"], ["user", "assistant"]],
        "played": [["user", "assistant"]],
        "later": [["user", "requested", "submitted", "open"], ["user", "submitted", "assistant"]],
        "lost": [["user", "requested", "open"]],
    }


def test_a_large_text_is_shown_whole(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`show` reads a question or an answer that the log stores in a blob."""
    writer = exchanges.SessionLog(home)
    call = writer.call("sorted")
    large = "tea\n" * 50_000 + "the end"
    writer.ask(call, large)
    writer.answer(call, large)
    writer.end("failed", 1)
    (step,) = shown(capsys, "--at", "sorted")["steps"]
    assert [each["text"] == large for each in step["attempts"][0]["thread"] if "text" in each] == [True, True]
    assert printed(capsys, "show", "last", "--at", "sorted").count("the end") == 2


def test_a_models_answer_cannot_move_the_cursor(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Control characters in questions and answers are escaped."""
    writer = exchanges.SessionLog(home)
    call = writer.call("sorted")
    writer.ask(call, "\x1b[2Jtea?")
    writer.answer(call, "\x1b]0;title\x07hot\r")
    writer.end("failed", 1)
    out = printed(capsys, "show", "last", "--at", "sorted")
    assert not {"\x1b", "\x07", "\r"} & set(out)
    assert "hot" in out


@pytest.mark.parametrize(
    ("of", "command"),
    [("run", "runops resume {run} --budget calls=4"), ("step", "runops resume {run} --allow-changed")],
)
def test_a_run_that_is_out_of_budget_names_the_next_command(
    of: str, command: str, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`runs`, `show` and `query` have the state. `show` ends with the command that raises the budget or accepts a changed file."""
    writer = exchanges.SessionLog(home)
    call = writer.call("sorted")
    error = {**REACHED, "evidence": {**REACHED["evidence"], "of": of}}
    writer.writer.result(call, "error", error=error)
    writer.end("out-of-budget", 5, error=error, path="sorted")
    lines = printed(capsys, "show", "last").splitlines()
    assert lines[0].split()[2] == "out-of-budget"
    assert lines[-2].startswith("OUT OF BUDGET the run has 0 left")
    assert lines[-1] == f"  again  {command.format(run=writer.run)}"
    assert printed(capsys, "runs").splitlines()[1].split()[1] == "out-of-budget"
    (row,) = json.loads(printed(capsys, "query", "SELECT state, exit, error FROM runs", "--json"))["rows"]
    assert row == {"state": "out-of-budget", "exit": 5, "error": "budget-reached"}


def test_the_costs_of_several_runs_are_one_sum() -> None:
    """Sums are exact; if one price is unknown, the sum is the known part, marked as "at least"."""
    known = {
        "requests": 2,
        "paid": 2,
        "input_tokens": 1000,
        "output_tokens": 5,
        "dollars": "0.1",
        "known_dollars": "0.1",
    }
    partly = {**known, "paid": 1, "dollars": None, "known_dollars": "0.2"}
    both = ledger.together([known, known])
    assert both == {**known, "requests": 4, "paid": 4, "input_tokens": 2000, "output_tokens": 10} | dict.fromkeys(
        ("dollars", "known_dollars"), "0.2"
    )
    assert costs.render(ledger.together([known, partly])) == "4 requests  2,000 tokens in  10 out  $0.30 at least"


@pytest.mark.parametrize(
    ("dollars", "text"),
    [
        ("0", "$0.00"),
        ("0.00000012", "$0.00000012"),
        ("0.0012275", "$0.0012"),
        ("0.00996", "$0.01"),
        ("0.049", "$0.049"),
        ("0.5", "$0.50"),
        ("0.996", "$1.00"),
        ("12", "$12.00"),
        ("1234.5", "$1,234.50"),
    ],
)
def test_money_is_shown_in_cents_or_two_figures(dollars: str, text: str) -> None:
    """Money has cents from a dollar on, two significant figures below, and is never rounded to zero."""
    assert costs.money(dollars) == text
