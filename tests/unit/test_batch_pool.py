"""The pool of workers, with fake workers that answer and die as they are told."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from nodes.values import Json
from runtime import events
from runtime.batch import policy, pool
from runtime.runs import results

WORKER = """\
import json, os, pathlib, signal, sys
folder = pathlib.Path(sys.argv[1])
script = json.loads((folder / "script").read_text())
def say(answer): print(json.dumps(answer), flush=True)
def die(): os.kill(os.getpid(), signal.SIGKILL)
options = json.loads(sys.stdin.readline())
if script.get("start") == "die": die()
say({"ready": True})
for line in sys.stdin:
    order = json.loads(line)
    with (folder / "orders").open("a") as file: file.write(line)
    number = len((folder / "orders").read_text().splitlines())
    for answer in script["answers"][number - 1]:
        die() if answer == "die" else say(answer)
"""
STARTED: dict[str, Json] = {"event": events.RunStarted("R1", "x", resumed=False).as_json()}
BEGIN = {"file": "x.yaml", "inputs": {"n": 1}, "row": None}
RESUME = {"resume": "R1"}
OVER: dict[str, Json] = {"over": True}


def ended(status: events.RunStatus, code: int) -> dict[str, Json]:
    return {"event": events.RunEnded("R1", status, code, 1.0, output={"a": [1]}).as_json()}


class Watcher:
    def __init__(self) -> None:
        self.seen: list[str] = []

    def began(self, place: int, outcome: results.Outcome) -> None:
        self.seen.append("began")

    def heard(self, place: int, outcome: results.Outcome, event: events.Event) -> None:
        self.seen.append(type(event).__name__)

    def retries(self, outcome: results.Outcome) -> None:
        self.seen.append("retries")

    def ended(self, place: int, outcome: results.Outcome) -> None:
        self.seen.append("ended")

    def changed(self) -> None: ...

    def printed(self, text: str) -> None:
        self.seen.append(text)


class Setup:
    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder, self.watcher = folder, Watcher()
        (folder / "worker.py").write_text(WORKER)
        monkeypatch.setattr(pool, "COMMAND", (sys.executable, str(folder / "worker.py"), str(folder)))

    async def run(self, *answers: list[Json], start: str = "", **policies: int) -> results.Outcome:
        """Carry out one case, whose orders get these answers."""
        (self.folder / "script").write_text(json.dumps({"answers": answers, "start": start}))
        outcome = results.Outcome(results.Case(Path("x.yaml")))
        inputs: Mapping[str, Mapping[str, Json]] = {"x.yaml": {"n": 1}}
        await pool.Pool([outcome], inputs, 1, {}, policy.Policy(**policies), self.watcher).run()  # type: ignore[arg-type]
        return outcome

    @property
    def orders(self) -> list[Json]:
        file = self.folder / "orders"
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


@pytest.fixture
def setup(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Setup:
    return Setup(tmp_path, monkeypatch)


async def test_a_worker_carries_out_a_case(setup: Setup) -> None:
    """The outcome has all that the run's last event has, and the watcher hears events in order."""
    outcome = await setup.run([STARTED, ended("passed", 0), OVER])
    assert (outcome.state, outcome.run, outcome.exit) == ("passed", "R1", 0)
    assert outcome.ended == events.RunEnded("R1", "passed", 0, 1.0, output={"a": [1]})
    assert setup.watcher.seen == ["began", "RunStarted", "RunEnded", "ended"]
    assert setup.orders == [BEGIN]


async def test_a_run_whose_worker_dies_is_resumed_once(setup: Setup) -> None:
    outcome = await setup.run([STARTED, "die"], [STARTED, ended("passed", 0), OVER])
    assert (outcome.state, len(outcome.runs), setup.orders) == ("passed", 1, [BEGIN, RESUME])
    assert outcome.notes == ["its process died, and the run was resumed in another one"]


async def test_a_run_that_loses_two_workers_is_interrupted(setup: Setup) -> None:
    """It keeps its id, for the command that resumes it."""
    outcome = await setup.run([STARTED, "die"], [STARTED, "die"])
    assert (outcome.state, outcome.run, outcome.exit) == ("interrupted", "R1", 130)
    assert setup.orders == [BEGIN, RESUME]


async def test_a_case_whose_worker_dies_before_the_run_begins_anew(setup: Setup) -> None:
    """Nothing was done: the order is given again. Where that worker dies, too, the case could not start."""
    outcome = await setup.run(["die"], [STARTED, ended("passed", 0), OVER])
    assert (outcome.state, setup.orders) == ("passed", [BEGIN, BEGIN])
    assert outcome.notes == ["its process died, and the run was begun in another one"]
    for start in ("", "die"):
        (setup.folder / "orders").unlink(missing_ok=True)
        refused = await setup.run(["die"], ["die"], start=start)
        assert refused.error is not None
        assert (refused.state, refused.error.code, refused.exit) == ("error", "worker-died", 3)


async def test_a_run_that_has_ended_is_not_resumed(setup: Setup) -> None:
    """A worker that dies after the end of a failed run must not make it pass by a resume; a retry is a new run."""
    outcome = await setup.run([STARTED, ended("failed", 1), "die"])
    assert (outcome.state, setup.orders, outcome.notes) == ("failed", [BEGIN], [])
    (setup.folder / "orders").unlink()
    answers: list[list[Json]] = [[STARTED, ended("failed", 1), "die"], [STARTED, ended("passed", 0), OVER]]
    retried = await setup.run(*answers, retries=1)
    assert (retried.state, setup.orders, len(retried.runs)) == ("flaky", [BEGIN, BEGIN], 2)


async def test_a_run_without_a_log_begins_anew(setup: Setup) -> None:
    """Its process died before an entry was written, so there is nothing to resume and nothing to do twice."""
    gone: dict[str, Json] = {"code": "unknown-run", "who": "usage", "message": "no", "phase": "before"}
    outcome = await setup.run([STARTED, "die"], [{"refused": gone, "exit": 2}], [STARTED, ended("passed", 0), OVER])
    assert (outcome.state, setup.orders) == ("passed", [BEGIN, RESUME, BEGIN])


async def test_a_refused_run_has_its_error(setup: Setup) -> None:
    """Exit code and all fields are those of the worker's error."""
    error: dict[str, Json] = {
        "code": "secret-missing",
        "who": "setup",
        "message": "none",
        "phase": "before",
        "fix": "set it",
    }
    outcome = await setup.run([{"refused": error, "exit": 3}])
    assert outcome.error is not None
    assert (outcome.state, outcome.exit, outcome.error.as_json()) == ("error", 3, error)


async def test_a_bug_in_a_worker_is_raised_with_its_traceback(setup: Setup) -> None:
    with pytest.raises(pool.WorkerBug, match="Traceback of it"):
        await setup.run([STARTED, ended("failed", 70), {"bug": "Traceback of it"}])


@pytest.mark.parametrize(
    "event",
    [
        events.RunStarted("R", "x", resumed=True),
        events.StepStarted("a", "group", "all", 0, True, 2, run="R", seq=3),
        events.StepWaiting("a", "the page", run="R"),
        events.LoopItem("a", 1, None, {"k": [1]}),
        events.StepFinished("a", "error", 0.5, False, {"code": "x"}),
        events.Said("a \ud800 text"),
        events.RunEnded("R", "paused", 4, 0.5, question={"reason": "q"}, files=[{"name": "a"}], costs=None),
    ],
)
def test_events_come_back_as_they_were(event: events.Event) -> None:
    """The pipe between worker and command has them as JSON."""
    again = events.from_json(json.loads(json.dumps(event.as_json())))
    assert (again, again.as_json()) == (event, event.as_json())
