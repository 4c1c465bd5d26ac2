"""Run lists from the first and last entry of each log: the same as from the whole log, whatever the file contains."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from nodes.errors import LogError, RunOpsError
from runtime.cli import app
from runtime.language import reader
from runtime.log import entries, history
from runtime.log.store import file_store
from runtime.log.store import store as log_store
from runtime.log.writer import LogWriter
from runtime.runs import run
from runtime.secrets import masking
from runtime.settings import settings
from runtime.workspace import run_index
from tests import kept_runs
from tests.now import let_go
from tests.rig import Rig
from tests.session_log import everything

STEPS = """\
version: 1
name: Two steps
nodes:
  - {id: one, type: transform, expr: 1}
  - {id: open, type: browser_action, action: click, target: {css: pay}, effect: effect, on_error: continue}
  - {id: two, type: transform, expr: 2}
"""


def from_all_of_it(store: file_store.Files, conversation: str) -> run_index.RunSummary | None:
    """The line of a run by a fold of all entries; None if it has none."""
    try:
        reading = store.read(conversation)
    except LogError as error:
        return run_index.RunSummary(conversation, "?", "damaged", "", "", 0, None, error.message)
    past = history.History(reading.entries)
    if past.header is None:
        return None
    steps = sum(1 for path in past.order if past.done(path) is not None)
    head, state = past.header, run_index.state_of(past, owned=reading.owned)
    seconds = round(sum(each.seconds for each in past.processes), 3)
    return run_index.RunSummary(
        conversation, head.workflow, state, past.started, past.last_at, steps, seconds, key=head.key, parent=head.parent
    )


def listed(store: file_store.Files) -> list[run_index.RunSummary]:
    return run_index.list_runs(file_store.Files(settings.load(home=store.home).home))


@pytest.fixture
async def ended(tmp_path: Path) -> Rig:
    """A run that passed, in a separate workspace."""
    rig = Rig(tmp_path / "home", STEPS)
    assert (await rig.start()).status == "passed"
    return rig


async def test_a_log_of_any_length_and_damage_is_listed_by_all_its_entries(ended: Rig) -> None:
    """A log that is cut, changed, reordered, zeroed or extended anywhere is listed as a fold of all its entries would list it."""
    file = ended.store.conversation_file(ended.id)
    whole = file.read_bytes()
    lines = whole.splitlines(keepends=True)
    draw = random.Random(18)
    states = [whole[:end] for end in draw.sample(range(len(whole)), 40)]
    states += [b"".join(lines[:end]) for end in range(len(lines) + 1)]
    for place in draw.sample(range(len(whole)), 60):
        states.append(whole[:place] + bytes([whole[place] ^ 1 << draw.randrange(8)]) + whole[place + 1 :])
    for number in range(len(lines)):
        states.append(b"".join([*lines[:number], *lines[number + 1 :]]))
        states.append(b"".join([*lines[: number + 1], *lines[number:]]))
        states.append(b"".join([*lines[:number], *lines[number : number + 2][::-1], *lines[number + 2 :]]))
    states += [whole + more for more in (b"\n", b"x", b"\0" * 700, lines[-1][:-1], b"{}\n", lines[0])]
    states += [whole[:-1], whole[:-3] + b"\0\0\0", b"", b"\n"]
    wanted: set[str] = set()
    for state in states:
        file.write_bytes(state)
        expected = from_all_of_it(ended.store, ended.id)
        assert listed(ended.store) == ([expected] if expected is not None else []), state[-300:]
        wanted.add(expected.state if expected is not None else "")
    assert wanted >= {"passed", "died", "damaged", ""}


async def test_a_run_that_is_over_is_listed_without_its_middle(ended: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the first and last line of a run with a written end are decoded; a dead or active run is folded."""
    before = listed(ended.store)
    decoded: list[bytes] = []
    decode = entries.decode
    monkeypatch.setattr(entries, "decode", lambda line: decoded.append(line) or decode(line))
    assert listed(ended.store) == before
    assert len(decoded) == 2
    lines = ended.store.conversation_file(ended.id).read_bytes().splitlines()
    assert len(lines) > 6
    died = Rig(ended.home, STEPS)
    writer = LogWriter(ended.store.create(died.id), history.History(), masking.Masker({}), ended.store)
    run.write_header(writer, reader.parse(STEPS, "test.yaml"), {})
    await writer.barrier()
    states = {each.id: each.state for each in listed(ended.store)}
    assert states == {ended.id: "passed", died.id: "running"}
    let_go(writer.conversation)
    assert {each.id: each.state for each in listed(ended.store)} == {ended.id: "passed", died.id: "died"}


async def test_a_run_is_found_by_its_whole_id_without_a_list(ended: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """A whole id, also in lower case, finds its run without a list of logs; a part of it and `last` find it too."""
    chosen = settings.load(home=ended.home)
    for name in (ended.id[-8:], ended.id[:-3].lower(), "last"):
        assert run_index.find(file_store.Files(chosen.home), name) == ended.id
    with pytest.raises(RunOpsError, match="no run is called"):
        run_index.find(file_store.Files(chosen.home), log_store.new_id())
    monkeypatch.setattr(file_store.Files, "ids", lambda _kept: [])
    assert (
        run_index.find(file_store.Files(chosen.home), ended.id)
        == run_index.find(file_store.Files(chosen.home), ended.id.lower())
        == ended.id
    )


def test_a_list_may_be_short_or_of_one_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`--limit` keeps the newest runs, `--state` those of one state, both the newest of these. Sessions do not count, and an empty list names its filter."""
    monkeypatch.setenv("RUNOPS_HOME", str(tmp_path / ".runops"))
    store = file_store.Files(tmp_path / ".runops")
    made = [kept_runs.ended(store, state) for state in ("passed", "failed", "passed", None)]
    everything(store)

    def printed(*options: str) -> list[str]:
        assert app.run(["runs", "--json", *options]) == 0
        return [each["id"] for each in json.loads(capsys.readouterr().out)["runs"]]

    assert printed() == made
    assert printed("--limit", "2") == made[2:]
    assert printed("--state", "passed") == [made[0], made[2]]
    assert printed("--state", "passed", "-n", "1") == [made[2]]
    assert printed("--state", "died") == [made[3]]
    assert app.run(["runs", "--state", "paused"]) == 0
    assert capsys.readouterr().err == f"no run in {store.home} is paused\n"
    assert app.run(["runs", "--sessions", "--limit", "2"]) == 2
    assert "for runs" in capsys.readouterr().err
