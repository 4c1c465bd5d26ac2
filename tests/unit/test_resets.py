"""Resets: the person's command that puts the site's data back before each whole run, and what is proved with it."""

from __future__ import annotations

import asyncio
import json
import subprocess
import time
from pathlib import Path
from typing import Any, get_args

import hypothesis
import psutil
import pytest
from hypothesis import strategies as st
from typing_extensions import override

from director.builds import subject
from director.proving import draft_runs, proofs, report, resets, tools
from director.session import settings as session_settings
from director.session.events import Listener
from director.tools.build_context import BuildContext
from nodes.errors import SetupError
from nodes.values import Json
from runtime.log import session
from runtime.settings import settings
from runtime.system import processes
from tests import build_contexts
from tests.finishes import TEXT, Browsers, finish, installed, left, opened
from tests.unit.test_proofs import KEYS, loaded, ran

pytestmark = pytest.mark.anyio

COUNTS = "echo x >> resets"
SECRET = "tops3cret-word"
NEVER = 30.0


@pytest.fixture
def browsers(monkeypatch: pytest.MonkeyPatch) -> Browsers:
    """The fake browsers that runs open."""
    return installed(monkeypatch)


class Heard(Listener):
    """Notes what a person sees of resets."""

    def __init__(self) -> None:
        self.resets: list[str] = []

    @override
    def reset(self, text: str) -> None:
        self.resets.append(text)


def count(folder: Path) -> int:
    """How often the command `COUNTS` was run."""
    file = folder / "resets"
    return len(file.read_text().splitlines()) if file.exists() else 0


def run_draft(build: BuildContext, inputs: dict[str, Json] | None = None) -> Any:
    """The outcome of the tool."""
    given = json.dumps(inputs) if inputs is not None else None
    return build_contexts.call(build, "run_draft", tools.toolsets(build), inputs=given, reason="try")


def reset(folder: Path, command: str, limit: float = NEVER) -> resets.Reset:
    """A reset in this folder."""
    return resets.Reset(command, folder, limit, folder / "active")


def is_running(pid: int) -> bool:
    """True if the process has not ended."""
    return processes.started(pid) is not None


def waiting() -> subprocess.Popen[bytes]:
    """A process that waits, the first of its group."""
    return subprocess.Popen(["sleep", "60"], start_new_session=True)


async def ends(pid: int) -> None:
    """Wait until a process has ended."""
    for _ in range(200):
        if not is_running(pid):
            return
        await asyncio.sleep(0.02)
    raise AssertionError(f"process {pid} has not ended")


# In a build


async def test_the_site_is_reset_before_each_whole_run(tmp_path: Path, browsers: Browsers) -> None:
    """`run_draft` and each run of a proof are begun after a reset; model, file and notes are told, and none sees the command."""
    heard = Heard()
    build = opened(tmp_path, runs=3, reset=COUNTS, listener=heard)
    tried = await run_draft(build)
    assert (count(tmp_path), browsers.opened) == (1, 1)
    outcome = await finish(build)
    value: Any = outcome.value
    assert (outcome.error, count(tmp_path), browsers.opened) == (None, 4, 4)
    assert (value["proved"], value["reset"]) == ("full", True)
    assert value["effects"][0]["what"] == "done in 4 of 4 runs"
    text, notes = left(build)
    assert "# proved: full; 4 of 4 runs passed in fresh browsers, the site reset before each\n" in text
    assert "- the site was reset before each run of proof\n" in notes
    assert "The site was reset before it" in tried.text
    assert "the site reset before each" in tried.text
    told = "\n".join(each.text for each in subject.BuildSubject(build).instructions())
    assert "a reset puts the site's data back" in told
    for shown in (tried.text, outcome.text, text, notes, told):
        assert COUNTS not in shown
    assert [COUNTS in each for each in heard.resets] == [True] * 4


async def test_a_failed_reset_begins_no_run(tmp_path: Path, browsers: Browsers) -> None:
    """A command that fails is reported to person and model with its last lines, its secrets masked; no run is begun, and the build continues."""
    heard = Heard()
    build = opened(
        tmp_path, reset=f"echo the database is away; echo {SECRET}; exit 3", listener=heard, known={"WORD": SECRET}
    )
    for outcome in (await run_draft(build), await finish(build)):
        assert outcome.error is not None
        assert outcome.error["code"] == "reset-failed"
        assert "ended with exit code 3" in outcome.text
        assert "the database is away" in outcome.text
        assert "`ask_user`" in outcome.text
        assert SECRET not in f"{outcome.text}{outcome.error}{heard.resets}"
    assert browsers.opened == 0
    assert "the database is away" in heard.resets[0]
    assert "exit code 3" in heard.resets[0]


async def test_without_a_reset_the_end_says_what_it_would_prove(tmp_path: Path, browsers: Browsers) -> None:
    """An action that one run did and another found done is full without a reset, and the end names it with `--reset`; with a reset it is not."""
    once = TEXT.replace("name: Pay}", "name: Pay}, when: '{{ told == \"open\" }}'")
    first = "  - {id: told, type: browser_query, query: text, target: {test_id: status}}\n"
    once = once.replace(first, "").replace("  - {id: pay", f"{first}  - {{id: pay")

    async def paid(_target: str, _page: object) -> None:
        browsers.site.texts['test_id="status"'] = "paid"

    browsers.site.before_click = paid
    browsers.site.texts['test_id="status"'] = "open"
    build = opened(tmp_path / "without", once)
    outcome = await finish(build)
    value: Any = outcome.value
    assert (outcome.error, value["proved"], value["reset"]) == (None, "full", False)
    assert value["without_reset"].startswith("not in each run: pay (done in 1 of 2 runs). `--reset CMD`")
    browsers.site.texts['test_id="status"'] = "open"
    build = opened(tmp_path / "with", once, reset="true")
    refused = await finish(build)
    assert refused.error is not None
    assert "`pay`" in refused.text
    said = await finish(build, unproved="pay: the reset of this test puts nothing back")
    value = said.value
    assert (said.error, value["proved"]) == (None, "all but pay (done in 1 of 4 runs)")
    assert "without_reset" not in value


async def test_only_runs_after_a_reset_count(tmp_path: Path, browsers: Browsers) -> None:
    """Once a person names a reset, an earlier passed run without one counts no more; one with a reset counts."""
    build = opened(tmp_path)
    assert (await run_draft(build)).error is None
    fit = draft_runs.prepared(build, draft_runs.as_saved(build), {})
    assert len(draft_runs.passed_before(build, fit).same) == 1
    build.here = build.here.having(build.here.settings.model_copy(update={"reset": COUNTS}))
    assert draft_runs.passed_before(build, fit).same == ()
    assert (await run_draft(build)).error is None
    (before,) = draft_runs.passed_before(build, fit).same
    assert before.reset
    again = session.Session(build.here.reader.read(build.writer.conversation.id).entries)
    assert again.reset_runs == {before.run}, "a resumed build knows it from the log"


async def test_a_reset_makes_the_results_of_the_bench_stale(tmp_path: Path, browsers: Browsers) -> None:
    """After a reset nothing on the bench counts that the run did not read again, and no state of its browser is left."""
    text = TEXT.replace("nodes:\n", 'nodes:\n  - {id: sum, type: transform, expr: "{{ 1 + 1 }}"}\n')
    build = opened(tmp_path, text, reset=COUNTS)
    arguments: dict[str, Json] = {"nodes": "sum", "mode": None, "item": None, "from": None, "reason": "try"}
    await build_contexts.call(build, "execute_nodes", **arguments)
    assert build.bench.marks() == {"sum": "done"}
    states = build.here.reader.private(build.writer.conversation.id) / "bench"
    states.mkdir(exist_ok=True)
    (states / "1-2.json").write_text("{}")
    outcome = await run_draft(build)
    assert report.ASIDE not in outcome.text
    assert "1-2.json" not in [each.name for each in states.iterdir()]
    await build.bench.forget("the site was reset before a whole run")
    assert build.bench.marks()["sum"].startswith("stale")
    refused = await build_contexts.call(build, "execute_nodes", **{**arguments, "nodes": "told", "from": "live"})
    assert "no live page: the site was reset before a whole run" in refused.text
    look: dict[str, Json] = {"tab": "bench", "target": "{css: h1}", "reason": "look"}
    looked = await build_contexts.call(build, "try_target", **look)
    assert "the bench has no page: the site was reset before a whole run" in looked.text


async def test_a_run_with_other_inputs_leaves_the_bench_as_it_was(tmp_path: Path, browsers: Browsers) -> None:
    """Page, values and *passed* stay after a run with other inputs, a failed one too, even with a reset before it; its result says so."""
    text = TEXT.replace(
        "nodes:\n", """nodes:\n  - {id: sum, type: transform, expr: "{{ [1][0 if inputs.number != '8' else 3] }}"}\n"""
    )
    build = opened(tmp_path, text, reset=COUNTS)
    about = subject.BuildSubject(build)
    assert (await run_draft(build)).error is None
    page, marks = build.bench.browser, build.bench.marks()
    assert page is not None
    for number, failed in (("7", False), ("8", True)):
        outcome = await run_draft(build, {"number": number})
        assert (outcome.error is not None) is failed
        assert report.ASIDE in outcome.text
        assert (build.bench.browser, build.bench.marks()) == (page, marks)
        assert about.title.endswith("; passed as a whole")
    assert count(tmp_path) == 3


async def test_a_session_keeps_the_flag_and_hides_its_value(tmp_path: Path) -> None:
    """`--reset` holds when the session is resumed, and the reason of the change does not repeat the command; an empty one ends it."""
    build = opened(tmp_path)
    session_settings.keep(build.state, {"reset": COUNTS})
    known = session_settings.of_session(build.writer.history, build.writer, settings.Settings())
    assert known.reset == COUNTS
    version = build.writer.history.latest("setting", "reset")
    assert version is not None
    assert version.reason == "--reset"
    session_settings.keep(build.state, {"reset": ""})
    known = session_settings.of_session(build.writer.history, build.writer, settings.Settings(reset="from the project"))
    assert known.reset == ""
    assert resets.of(build.here.having(known), tmp_path) is None


async def test_an_interrupted_call_runs_the_reset_anew(tmp_path: Path, browsers: Browsers) -> None:
    """A build killed during a reset is told that no run was begun, and its next call resets the site again."""
    build = opened(tmp_path, reset=COUNTS)
    toolset = next(each for each in tools.toolsets(build) if each.tool.name == "run_draft")

    class Killed(BaseException):
        pass

    def kill(*_given: object) -> None:
        raise Killed

    build.listener.reset = kill  # type: ignore[method-assign]
    with pytest.raises(Killed):
        await run_draft(build)
    (open_call,) = build.writer.history.open_calls()
    outcome = toolset.interrupted_outcome(open_call.call)
    assert outcome is not None
    assert "no run of it was begun" in outcome.text or "no run of it was begun" in str(outcome.error)
    assert "the site is reset before each run" in str(outcome.error)
    del build.listener.reset
    assert (await run_draft(build)).error is None
    assert (count(tmp_path), browsers.opened) == (2, 1)


def test_the_goal_says_what_a_reset_means(tmp_path: Path) -> None:
    """The instructions tell a model that there is a reset and to leave the action to the whole runs, and nothing of it without one."""
    goal = opened(tmp_path).goal
    assert "leave the action to `run_draft`" in subject.goal_text(goal, reset=True)
    assert "reset" not in subject.goal_text(goal)


# What is proved

OF_ALL = st.tuples(*[st.sampled_from(get_args(proofs.Outcome))] * len(KEYS)).map(
    lambda each: ran(dict(zip(KEYS, each, strict=True)), reset=True)
)


@hypothesis.given(st.lists(OF_ALL, min_size=1, max_size=4))
def test_with_resets_full_means_done_in_each_run(runs: list[proofs.Ran]) -> None:
    """With a reset before each run a proof is full if and only if each run did each action; the others are to be explained."""
    every = proofs.of_runs(loaded(), runs)
    undone = [key for key in KEYS if not all(each.outcomes[key] == "done" for each in runs)]
    assert (proofs.headline(every, runs) == proofs.FULL) == (not undone)
    for key in undone:
        held = any(each.outcomes[key] == "held" for each in runs)
        assert held or key in proofs.to_be_said(every, runs)
    assert proofs.without_reset(every, runs) == ""


# The command


async def test_a_command_is_run_by_the_shell_in_the_project(tmp_path: Path) -> None:
    """The command is a line of the shell, run in the folder; the end of its output is kept, and a NUL is refused as its failure."""
    done = await reset(tmp_path, 'for each in 1 2; do echo "$each in $PWD"; done; echo wrong >&2').carry_out(str)
    assert (done.problem, done.output.splitlines()) == (None, [f"1 in {tmp_path}", f"2 in {tmp_path}", "wrong"])
    much = await reset(tmp_path, f"yes {'x' * 70} | head -n 5000; exit 1").carry_out(str)
    assert len(much.output) <= resets.KEPT
    with pytest.raises(SetupError, match="exit code 1"):
        much.check()
    gone = await reset(tmp_path / "gone", "true").carry_out(str)
    assert "could not be started" in str(gone.problem)
    assert "could not be started" in str((await reset(tmp_path, "a\0b").carry_out(str)).problem)


async def test_a_command_that_takes_too_long_is_ended(tmp_path: Path) -> None:
    """After its time limit the command is ended with all that it has started."""
    done = await reset(tmp_path, "sleep 60 & echo $! > pid; wait", 0.3).carry_out(str)
    assert "took more than 0.3 s" in str(done.problem)
    await ends(int((tmp_path / "pid").read_text()))
    assert list((tmp_path / "active").iterdir()) == []


async def test_a_cancelled_command_is_ended(tmp_path: Path) -> None:
    """Ctrl-C ends the command with all that it has started."""
    task = asyncio.create_task(reset(tmp_path, "sleep 60 & echo $! > pid; wait").carry_out(str))
    for _ in range(500):
        if (tmp_path / "pid").exists() and (tmp_path / "pid").read_text().strip():
            break
        await asyncio.sleep(0.02)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await ends(int((tmp_path / "pid").read_text()))


async def test_a_server_that_a_command_leaves_is_not_awaited(tmp_path: Path) -> None:
    """A command may leave a process at work, which keeps its output open: the reset is over once the command has ended."""
    begun = time.monotonic()
    done = await reset(tmp_path, "sleep 60 & echo $! > pid").carry_out(str)
    server = int((tmp_path / "pid").read_text())
    assert (done.problem, time.monotonic() - begun < 20, is_running(server)) == (None, True, True)
    psutil.Process(server).kill()


@pytest.mark.parametrize("lives", [False, True])
async def test_a_command_that_a_killed_process_left_is_ended_first(tmp_path: Path, lives: bool) -> None:
    """A reset ends the command that a killed RunOps process has left at work, and never one of a process that lives."""
    (tmp_path / "active").mkdir()
    command, owner = waiting(), waiting()
    try:
        known = {"command": [command.pid, processes.started(command.pid)], "boot": processes.boot()}
        known["owner"] = [owner.pid, processes.started(owner.pid)]
        (tmp_path / "active" / "1.json").write_text(json.dumps(known))
        if not lives:
            owner.kill()
            owner.wait()
        assert (await reset(tmp_path, "true").carry_out(str)).problem is None
        if lives:
            assert is_running(command.pid)
        else:
            await ends(command.pid)
    finally:
        for each in (command, owner):
            each.kill()
            each.communicate()


async def test_half_a_secret_is_not_shown(tmp_path: Path) -> None:
    """Of an output longer than what is read of it, a first line that is cut is left out."""
    big = tmp_path / "big"
    big.write_text(f"{SECRET * 10_000}\nend\n")
    done = await reset(tmp_path, "cat big; exit 1").carry_out(lambda text: text.replace(SECRET, "***"))
    assert done.output == "end"


def test_the_folder_is_that_of_the_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reset is run in the workflow's project, wherever the command is typed; blanks name none."""
    (tmp_path / "pyproject.toml").write_text('[tool.runops]\nreset = "make data"\nreset_timeout = 5\n')
    (tmp_path / "flows").mkdir()
    monkeypatch.chdir(tmp_path)
    build = opened(tmp_path, reset=settings.load().reset, reset_timeout=settings.load().reset_timeout)
    made = resets.of(build.here, tmp_path / "flows")
    assert made is not None
    assert (made.command, made.folder, made.limit) == ("make data", tmp_path, 5)
    blank = build.here.settings.model_copy(update={"reset": "  "})
    assert resets.of(build.here.having(blank), tmp_path) is None
