"""Commands on sessions: lists, `runops show`, commands that need a run, and reads that write nothing."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from runtime.cli import app
from runtime.log.store import file_store
from runtime.query import query
from runtime.settings import settings
from runtime.workspace import active, run_index
from tests.kept_runs import begun, ended
from tests.now import let_go
from tests.session_log import ABOUT, LARGE, End, Hand, everything


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> file_store.Files:
    """An empty store that the command uses too."""
    monkeypatch.setenv("RUNOPS_HOME", str(tmp_path / ".runops"))
    monkeypatch.chdir(tmp_path)
    return file_store.Files(tmp_path / ".runops")


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> Cli:
    return Cli(capsys)


class Cli:
    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *arguments: str, code: int = 0) -> str:
        return self.both(*arguments, code=code)[0]

    def both(self, *arguments: str, code: int = 0) -> tuple[str, str]:
        self._capsys.readouterr()
        assert app.run(list(arguments)) == code
        printed = self._capsys.readouterr()
        assert "Traceback" not in printed.err + printed.out
        return printed.out, printed.err

    def json(self, *arguments: str, code: int = 0) -> dict[str, Any]:
        return json.loads(self(*arguments, "--json", code=code))


def bytes_of(home: Path) -> dict[str, bytes]:
    """The content of every file below the home."""
    return {str(each): each.read_bytes() for each in sorted(home.rglob("*")) if each.is_file()}


def test_show_prints_a_session(store: file_store.Files, cli: Cli) -> None:
    """`show` prints the head, the plan as a to-do list, the variables, then every message, tool, error, event and summary in order, and the cost."""
    session = everything(store, file="pay.yaml", budget="calls=9")
    text = cli("show", session)
    lines = [" ".join(line.split()) for line in text.splitlines()]
    assert lines[0].startswith(f"chat about {ABOUT} {session} idle")
    facts = {"file pay.yaml", f"run {ABOUT}", "mode agent", "budget calls=9"}
    assert facts <= set(lines)
    assert "description Pay what is open." in lines
    plan = lines.index("plan version 1 by the model: seen")
    assert lines[plan + 1 : plan + 6] == [
        "Goal: Pay the open orders",
        "▶ Look (now)",
        "☑ t1 Sign in (sign_in)",
        "▶ t2 Find them",
        "☐ t3 Pay",
    ]
    assert "total 12.5" in lines
    assert 'seen "There was no button."' in lines
    expected = [
        "you What does it do?",
        "model Let me look.",
        "tool 1_get_workflow_nodes which=all ok 0.5 s",
        "tool 2_get_current_plan which=all ok 0.5 s",
        "model It pays.",
        "All of it.",
        "event /run pay.yaml: failed",
        "you Why did it fail?",
        "error model-failed: the server failed (sent again after 0.5 s)",
        "error model-failed: the server failed",
        "Because it",
        "you continue",
        "tool 3_delegate goal=Look. ok 2.5 s 1 request $0.25",
        "asked Look.",
        "kept variable seen version 1 by the model: seen",
        "model There was no button.",
        "kept variable total version 1 by the model: seen",
    ]
    places = [lines.index(each, plan) for each in expected]
    assert places == sorted(places)
    assert any(line.startswith("summary (of the lines up to") for line in lines)
    assert lines[-6:] == [
        "cost 8 requests 8,000 tokens in 800 out $1.70",
        "itself 6 requests $1.20",
        "summary 1 request $0.25",
        "3_delegate 1 request $0.25",
        "idle",
        f"again runops chat --resume {session}",
    ]


def test_show_as_json_has_the_same_for_programs(store: file_store.Files, cli: Cli) -> None:
    """The JSON has the stored values, the cost by path, and each entry with its line."""
    session = everything(store)
    shown = cli.json("show", session)
    assert (shown["version"], shown["session"], shown["state"], shown["mode"]) == (1, session, "idle", "agent")
    assert shown["plan"]["value"]["overall_goal"] == "Pay the open orders"
    assert shown["variables"]["rows"]["value"] == [LARGE, 2]
    assert {path: each["requests"] for path, each in shown["spent"].items()} == {"": 6, "summary": 1, "3_delegate": 1}
    assert [each["line"] for each in shown["said"]] == sorted(each["line"] for each in shown["said"])
    assert [each["text"] for each in shown["said"] if each["kind"] == "user"] == [
        "What does it do?",
        "Why did it fail?",
        "continue",
        "Look.",
    ]


def test_one_call_or_one_line_is_shown_in_full(store: file_store.Files, cli: Cli) -> None:
    """`--at` takes the path of a call, also of a delegate with its thread, or a line number; a wrong path gets a suggestion."""
    session = everything(store)
    call = cli("show", session, "--at", "1_get_workflow_nodes")
    assert [line.strip() for line in call.splitlines()[1:3]] == ["arguments", "which: all"]
    assert "shown" in call
    assert "There was no button." in cli("show", session, "--at", "3_delegate")
    line = next(each["line"] for each in cli.json("show", session)["said"] if each.get("text") == "continue")
    assert cli("show", session, "--at", str(line)).split() == ["you", "continue"]
    assert len(cli.json("show", session, "--at", "3_delegate")["said"]) > 5
    assert "did you mean `3_delegate`?" in cli.both("show", session, "--at", "3_delegat", code=2)[1]
    assert "did you mean" not in cli.both("show", session, "--at", "999999", code=2)[1]


@pytest.mark.parametrize(("end", "tool"), [("called", "4_"), ("asked", "")])
def test_an_open_call_is_shown_as_open(store: file_store.Files, cli: Cli, end: End, tool: str) -> None:
    """An open call of a dead session has no recorded outcome; in an active session it is running. An open model request is shown likewise."""
    text = cli("show", everything(store, end))
    assert "open, no outcome recorded" in next(
        line for line in text.splitlines() if f"tool     {tool}" in line and "open" in line
    )
    hand = Hand(store)
    hand.answers("", ["get_current_plan"], end)
    hand.asks()
    text = cli("show", hand.id)
    assert "running" in text
    assert "waits for the model" in text
    assert "no outcome" not in text
    hand.answers("So.")
    hand.asks()  # its process ends
    hand.answers("Again.")
    assert "waits for the model" not in cli("show", hand.id)
    hand.asks()
    last = max(each["line"] for each in cli.json("show", hand.id)["said"])
    assert f"a request to the model after line {last}: open, no outcome recorded" in cli("show", hand.closed())


def test_a_session_with_missing_values_is_shown(store: file_store.Files, cli: Cli) -> None:
    """A torn tail and missing values are reported, everything else is shown, and no file changes."""
    session = everything(store)
    file = store.conversation_file(session)
    file.write_bytes(file.read_bytes() + b'{"v":1,"se')
    for each in (store.home / "blobs").glob("??/*"):
        each.unlink()
    before = bytes_of(store.home)
    text = cli("show", session)
    assert "torn  the last 10 bytes" in text
    assert "a value of the run is missing" in text
    assert "Why did it fail?" in text
    cli.json("show", session)
    cli("runs", "--sessions")
    assert bytes_of(store.home) == before


@pytest.mark.parametrize("active_one", [False, True])
@pytest.mark.parametrize("end", ["told", "called", "asked"])
def test_reading_writes_nothing(store: file_store.Files, cli: Cli, end: End, *, active_one: bool) -> None:
    """Commands that read a session leave every byte unchanged, also where a call is open or the session is active."""
    run = ended(store, None)
    session = everything(store, end, run)
    live = begun(store) if active_one else None
    hand = Hand(store) if active_one else None
    before = bytes_of(store.home)
    for each in [session, run, *([hand.id, live.conversation.id] if hand is not None and live is not None else [])]:
        cli("show", each)
        cli("show", each, "--json")
        cli("show", each, "--window")
    for command in (["runs"], ["runs", "--sessions"], ["ps"], ["query", "SELECT * FROM sessions"]):
        cli(*command)
    assert bytes_of(store.home) == before


def test_the_window_of_a_session_and_of_a_run_is_shown(store: file_store.Files, cli: Cli) -> None:
    """`--window` shows sizes and limit, as text and JSON, for a run too; it works while the session is owned."""
    hand = Hand(store)
    hand.says("What does it do?")
    text = cli("show", hand.id, "--window")
    assert "newest word" in text
    report = cli.json("show", hand.id, "--window")
    assert report["conversation"] == hand.id
    assert {each["name"] for each in report["sections"]} >= {"system", "tools", "thread", "newest word"}
    assert 0 < report["tokens"] <= report["limit"]
    assert cli.json("show", ended(store, "failed"), "--window")["tokens"] > 0


def test_marks_that_stdout_cannot_hold_are_plain(store: file_store.Files, monkeypatch: pytest.MonkeyPatch) -> None:
    """The to-do list uses ASCII marks where stdout cannot encode others."""
    session = everything(store)
    with io.TextIOWrapper(io.BytesIO(), encoding="ascii", errors="replace") as stdout:
        monkeypatch.setattr(sys, "stdout", stdout)
        assert app.run(["show", session]) == 0
        stdout.seek(0)
        assert "[x] t1  Sign in" in stdout.read()


def test_sessions_have_a_separate_list(store: file_store.Files, cli: Cli) -> None:
    """`runops runs` lists the runs, `--sessions` the sessions with subject and cost; a damaged session affects only its own row."""
    run = ended(store, "passed")
    session = everything(store)
    empty = Hand(store).closed()
    assert [each["id"] for each in cli.json("runs")["runs"]] == [run]
    first, second = cli.json("runs", "--sessions")["sessions"]
    assert (first["id"], first["about"], first["messages"]) == (session, ABOUT, 7)
    assert (first["begins"], first["costs"]["requests"]) == ("What does it do?", 8)
    assert (second["id"], second["begins"], second["costs"]) == (empty, "", None)
    lines = cli("runs", "--sessions").splitlines()
    assert lines[0].split() == ["session", "state", "started", "messages", "cost", "about"]
    assert lines[1].split()[:2] == [session, "idle"]
    file = store.conversation_file(session)
    file.write_bytes(file.read_bytes().replace(b"What does", b"What dues"))
    assert cli.json("runs", "--sessions")["sessions"][0]["state"] == "damaged"
    assert cli.json("runs")["runs"][0]["id"] == run


def test_the_last_run_is_no_session(store: file_store.Files, cli: Cli) -> None:
    """`last` skips sessions; without a run it is refused."""
    session = everything(store)
    assert "there are no runs" in cli.both("show", "last", code=2)[1]
    run = ended(store, "failed")
    everything(store)
    assert run_index.find(file_store.Files(settings.load().home), "last") == run
    assert cli.json("show", "last")["run"] == run
    assert run_index.find(file_store.Files(settings.load().home), session[-8:]) == session


@pytest.mark.parametrize("command", [["resume"], ["decide", "done"], ["answer", "who=Ada"]])
def test_commands_for_runs_refuse_a_session(store: file_store.Files, cli: Cli, command: list[str]) -> None:
    """The refusal names the command that continues the session, and writes nothing."""
    session = everything(store, "called")
    before = bytes_of(store.home)
    _out, err = cli.both(command[0], session, *command[1:], code=2)
    assert "error[not-a-run]" in err
    assert f"runops chat --resume {session}" in err
    assert bytes_of(store.home) == before


def test_an_active_session_is_listed(store: file_store.Files, cli: Cli) -> None:
    """`runops ps` lists a session while a process owns it, and not after."""
    hand = Hand(store, file="pay.yaml")
    (found,) = active.find(file_store.Files(settings.load().home))
    assert (found.run, found.kind, found.state, found.next) == (hand.id, "session", "running", f"runops show {hand.id}")
    assert "session: chat about pay.yaml" in cli("ps")
    hand.closed()
    assert active.find(file_store.Files(settings.load().home)) == []


def test_a_run_names_the_session_that_started_it(store: file_store.Files, cli: Cli) -> None:
    """The parent session is in the list, in `show`, and in SQL."""
    writer = begun(store, parent="01JD0000000000000000000005")
    let_go(writer.conversation)
    run = writer.conversation.id
    assert cli.json("runs")["runs"][0]["parent"] == "01JD0000000000000000000005"
    assert cli.json("show", run)["parent"] == "01JD0000000000000000000005"
    assert "parent  01JD0000000000000000000005" in cli("show", run)
    assert rows("SELECT parent FROM runs") == [{"parent": "01JD0000000000000000000005"}]


def rows(sql: str) -> list[dict[str, Any]]:
    answer = query.ask(file_store.Files(settings.load().home), sql)
    assert not answer.left_out
    return list(_each(answer))


def _each(answer: query.Answer) -> Iterator[dict[str, Any]]:
    for batch in answer.result.batches:
        yield from batch


def test_sessions_can_be_queried_with_sql(store: file_store.Files) -> None:
    """SQL has a row for each session, plan version, description, call and cost; none of them is a run."""
    session = everything(store)
    assert rows("SELECT session, purpose, about, state, mode, messages, requests, dollars FROM sessions") == [
        {
            "session": session,
            "purpose": "chat",
            "about": ABOUT,
            "state": "idle",
            "mode": "agent",
            "messages": 7,
            "requests": 8,
            "dollars": 1.7,
        }
    ]
    plan = rows("SELECT conversation, number, reason, author, value->>'overall_goal' AS goal FROM plans")
    assert plan == [
        {
            "conversation": session,
            "number": 1,
            "reason": "seen",
            "author": "model",
            "goal": "Pay the open orders",
        }
    ]
    assert rows("SELECT value FROM descriptions") == [{"value": "Pay what is open."}]
    calls = rows("SELECT path, action, status FROM calls WHERE run = (SELECT session FROM sessions) ORDER BY line")
    assert [each["path"] for each in calls][:3] == ["1_get_workflow_nodes", "2_get_current_plan", "3_delegate"]
    spent = rows("SELECT path, thread, call FROM costs WHERE path <> '' ORDER BY line")
    assert [each["path"] for each in spent] == ["summary", "3_delegate"]
    assert spent[1]["thread"] == f"delegate:{spent[1]['call']}"
    assert rows("SELECT * FROM runs") == rows("SELECT * FROM steps") == []


def test_a_cleared_description_has_a_version_without_a_value(store: file_store.Files) -> None:
    """The row of a cleared version has null."""
    hand = Hand(store)
    hand.keeps("description", "", "Pay.")
    hand.keeps("description", "", None, clear=True)
    hand.closed()
    assert [each["value"] for each in rows("SELECT value FROM descriptions ORDER BY number")] == ["Pay.", None]
