"""Reasons that keep a run from starting, and checks of a resume before it begins."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from nodes.errors import UsageError
from runtime import events
from runtime.log.store import file_store
from runtime.runs import start
from runtime.settings import settings
from runtime.workspace import host, run_index

FLOW = """version: 1
name: test
inputs: {who: {type: string, default: me}}
secrets: [TOKEN]
nodes:
  - {id: one, type: transform, expr: "%s"}
  - {id: two, type: transform, expr: "{{ one }}{{ inputs.who }}"}
output: "{{ two }}"
"""


@pytest.fixture
def chosen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> settings.Settings:
    """Settings with a separate home, and a secret in the environment."""
    monkeypatch.setenv("TOKEN", "s3cret-token")
    return settings.Settings(home=tmp_path / "home")


def file(tmp_path: Path, text: str) -> Path:
    """A workflow file."""
    path = tmp_path / "flow.yaml"
    path.write_text(text)
    return path


async def test_an_input_may_contain_no_secret(tmp_path: Path, chosen: settings.Settings) -> None:
    """An input that contains a secret is refused before a log exists, because its masked value would be useless."""
    with pytest.raises(UsageError) as caught:
        await start.start(file(tmp_path, FLOW % "x"), {"who": "s3cret-token!"}, host.of_command(chosen))
    assert caught.value.code == "secret-in-input"
    assert "s3cret" not in str(caught.value.as_json())
    assert file_store.Files(chosen.home).ids() == []


async def test_a_file_may_contain_no_secret(tmp_path: Path, chosen: settings.Settings) -> None:
    """A secret in the file's nodes is refused with its line; one in a comment is allowed."""
    assert (
        await start.start(file(tmp_path, "# TOKEN=s3cret-token\n" + FLOW % "x"), {}, host.of_command(chosen))
    ).status == "passed"
    runs_so_far = file_store.Files(chosen.home).ids()
    with pytest.raises(UsageError, match=r"flow\.yaml:6: the value of the secret TOKEN is in") as caught:
        await start.start(file(tmp_path, FLOW % "s3cret-token"), {}, host.of_command(chosen))
    assert caught.value.code == "secret-in-file"
    assert file_store.Files(chosen.home).ids() == runs_so_far


async def test_a_run_leaves_signals_to_the_program(
    tmp_path: Path, chosen: settings.Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run changes no signal handlers and no timers of its program."""
    touched: list[str] = []
    for name in ("signal", "setitimer", "alarm", "siginterrupt", "set_wakeup_fd", "pthread_sigmask"):
        monkeypatch.setattr(signal, name, lambda *_args, name=name: touched.append(name))
    text = FLOW % "{{ inputs.who | regex('[a-z]+') | regex_replace('m', 'w') }}"
    assert (await start.start(file(tmp_path, text), {}, host.of_command(chosen))).output == "weme"
    assert touched == []


async def test_a_passed_run_is_reported_again_and_not_written_to(
    tmp_path: Path, chosen: settings.Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Resuming a passed run gives its result and leaves the log unchanged, also where it ended between the read and the claim."""
    ended = await start.start(file(tmp_path, FLOW % "x"), {}, host.of_command(chosen))
    log = file_store.Files(chosen.home).conversation_file(ended.run)
    before = log.read_bytes()
    assert (await start.resume_run(ended.run, host.of_command(chosen))).output == "xme"
    # The history as read just before its last line was written.
    log.write_bytes(b"".join(before.splitlines(keepends=True)[:-1]))
    earlier = run_index.load_history(file_store.Files(chosen.home), ended.run)
    log.write_bytes(before)
    monkeypatch.setattr(run_index, "load_history", lambda *_: earlier)
    assert (await start.resume_run(ended.run, host.of_command(chosen))).output == "xme"
    assert log.read_bytes() == before


async def test_a_finished_node_may_not_be_changed_under_a_run(tmp_path: Path, chosen: settings.Settings) -> None:
    """A resume refuses a change of a node that has its value; a node that failed before its action may change."""
    path = file(tmp_path, FLOW.replace('"{{ one }}{{ inputs.who }}"', '"{{ one.nothing }}"') % "x")
    failed = await start.start(path, {}, host.of_command(chosen))
    assert failed.path == "two"
    path.write_text(FLOW % "x")
    assert (await start.resume_run(failed.run, host.of_command(chosen))).path == "two"
    path.write_text(FLOW % "y")
    with pytest.raises(UsageError, match="`one` was changed") as caught:
        await start.resume_run(failed.run, host.of_command(chosen))
    assert caught.value.code == "node-changed"


def test_a_program_runs_a_workflow_in_two_lines(tmp_path: Path, chosen: settings.Settings) -> None:
    """A program imports `run_workflow` from `runtime`; its listener receives the events."""
    from runtime import ExecutionEngine, run_workflow

    received: list[events.Event] = []
    ended = run_workflow(file(tmp_path, FLOW % "x"), {"who": "you"}, listener=received.append, home=chosen.home)
    assert (ended.status, ended.output) == ("passed", "xyou")
    assert isinstance(received[-1], events.RunEnded)
    assert ExecutionEngine.__name__ == "ExecutionEngine"


CALLER = """version: 1
name: test
secrets: [TOKEN]
nodes:
  - {id: first, type: group, use: parts/part.yaml, with: {who: me}}
  - {id: second, type: transform, expr: "{{ first.nothing }}"}
"""


def caller(tmp_path: Path, part: str) -> Path:
    """A workflow that fails after the file that it uses."""
    (tmp_path / "parts").mkdir(exist_ok=True)
    (tmp_path / "parts" / "part.yaml").write_text(part.replace("secrets: [TOKEN]\n", ""))
    return file(tmp_path, CALLER)


async def test_a_run_resumes_with_the_texts_of_all_files_it_began_with(
    tmp_path: Path, chosen: settings.Settings
) -> None:
    """A used file may change where nothing ran, or be missing; a changed or missing node that ran is refused with its file."""
    path = caller(tmp_path, FLOW % "x")
    failed = await start.start(path, {}, host.of_command(chosen))
    assert failed.path == "second"
    received: list[events.Event] = []
    caller(tmp_path, (FLOW % "x").replace('output: "{{ two }}"', 'output: "{{ one }}"'))
    assert (await start.resume_run(failed.run, host.of_command(chosen), received.append)).path == "second"
    assert any(isinstance(each, events.Said) and "has changed" in each.text for each in received)
    caller(tmp_path, FLOW % "y")
    with pytest.raises(UsageError, match=r"`one of parts/part\.yaml` was changed"):
        await start.resume_run(failed.run, host.of_command(chosen))
    caller(tmp_path, (FLOW % "x").replace("one", "uno"))
    with pytest.raises(UsageError, match=r"`one of parts/part\.yaml` is gone"):
        await start.resume_run(failed.run, host.of_command(chosen))
    (tmp_path / "parts" / "part.yaml").unlink()
    assert (await start.resume_run(failed.run, host.of_command(chosen))).path == "second"


async def test_a_used_file_may_contain_no_secret(tmp_path: Path, chosen: settings.Settings) -> None:
    """A secret in a used file is refused with its own line; one in a comment is allowed."""
    with pytest.raises(UsageError, match=r"parts/part\.yaml:5: the value of the secret TOKEN is in"):
        await start.start(caller(tmp_path, FLOW % "s3cret-token"), {}, host.of_command(chosen))
    ended = await start.start(caller(tmp_path, "# s3cret-token\n" + FLOW % "x"), {}, host.of_command(chosen))
    assert ended.path == "second"
    assert (await start.resume_run(ended.run, host.of_command(chosen))).path == "second"
