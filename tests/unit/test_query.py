"""SQL over all runs: the content of the views, damaged and growing logs, and bounded memory."""

import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from nodes.errors import SiteError, UsageError
from runtime.log import entries as log_entries
from runtime.log.store import file_store
from runtime.log.store import store as log_store
from runtime.query import query
from runtime.settings import settings
from tests import exchanges
from tests.fakes import FakePage, FakeSite
from tests.now import let_go
from tests.rig import Rig

WORKFLOW = """
version: 1
name: Orders
nodes:
  - {id: total, type: transform, expr: "{{ 40 + 2 }}"}
  - {id: look, type: browser_query, query: text, target: {css: missing}, on_error: continue}
  - id: pay
    type: browser_action
    action: click
    target: {css: pay}
    retry: {attempts: 2, delay: 0, on: [declined]}
"""


@pytest.fixture
def chosen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> settings.Settings:
    """The settings of an empty workspace."""
    monkeypatch.setenv("RUNOPS_HOME", str(tmp_path))
    return settings.load()


async def run_once(home: Path) -> Rig:
    tries: list[str] = []

    async def declines_once(target: str, _page: FakePage) -> None:
        tries.append(target)
        if len(tries) == 1:
            raise SiteError("declined", "the card was declined", phase="after")

    rig = Rig(home, WORKFLOW, site=FakeSite(before_click=declines_once), missing={"css=missing"})
    await rig.start()
    return rig


def ask(chosen: settings.Settings, sql: str) -> list[dict[str, Any]]:
    """The rows of a query over logs that are all sound."""
    answer = query.ask(file_store.Files(chosen.home), sql)
    assert not answer.left_out
    return [row for batch in answer.result.batches for row in batch]


async def test_the_views_agree_with_the_logs(chosen: settings.Settings) -> None:
    """The views have a run, its steps with their last attempt, and every call, with typed columns and times in UTC."""
    rig = await run_once(chosen.home)
    (run,) = ask(chosen, "SELECT * REPLACE (typeof(started) AS started, ended >= started AS ended) FROM runs")
    assert list(run) == [each.name for each in query.VIEWS["runs"]]
    assert run["run"] == rig.id
    assert (run["workflow"], run["state"], run["exit"], run["calls"], run["tolerated"]) == ("Orders", "passed", 0, 4, 1)
    assert (run["started"], run["ended"], run["error"]) == ("TIMESTAMP", True, None)
    steps = ask(chosen, "SELECT path, status, attempts, error FROM steps ORDER BY line")
    assert steps == [
        {"path": "total", "status": "ok", "attempts": 1, "error": None},
        {"path": "look", "status": "error", "attempts": 1, "error": "target-not-found"},
        {"path": "pay", "status": "ok", "attempts": 2, "error": None},
    ]
    calls = ask(
        chosen,
        "SELECT path, attempt, status, tolerated, action, effect, error, message FROM calls WHERE path = 'pay' ORDER BY line",
    )
    assert [(each["attempt"], each["status"], each["error"]) for each in calls] == [
        (1, "error", "declined"),
        (2, "ok", None),
    ]
    assert calls[0]["message"] == "the card was declined"
    assert calls[0]["effect"] == "effect"


async def test_empty_views_have_their_columns(chosen: settings.Settings) -> None:
    """A query for costs and plans works even if there is no run at all."""
    for view, columns in query.VIEWS.items():
        assert ask(chosen, f"SELECT {', '.join(each.name for each in columns)} FROM {view}") == []
    assert ask(chosen, "SELECT sum(dollars) AS dollars, count(*) AS n FROM costs") == [{"dollars": None, "n": 0}]


def test_every_request_to_a_model_is_a_row_of_costs(chosen: settings.Settings) -> None:
    """Failed, answered, late, replayed and lost requests each have a row with step, try, tokens and source; an answer from the log is no request."""
    writer = exchanges.every_way(chosen.home)
    let_go(writer.writer.conversation)
    rows = ask(chosen, "SELECT * FROM costs ORDER BY line")
    assert [list(row) for row in rows] == [[each.name for each in query.VIEWS["costs"]]] * 6
    listed = [
        (row["path"], row["attempt"], row["tried"], row["status"], row["source"], row["model"], row["error"])
        for row in rows
    ]
    assert listed == [
        ("sorted", 1, 1, "error", "model", "asked-model", "model-failed"),
        ("sorted", 1, 2, "ok", "model", "named-model", None),
        ("again", 1, 1, "ok", "model", "named-model", None),
        ("played", 1, None, "ok", "cassette", "named-model", None),
        ("later", 1, 1, "ok", "model", "named-model", None),
        ("lost", 1, 1, "open", "model", "asked-model", None),
    ]
    failed, answered, _again, played, later, lost = rows
    assert (answered["input_tokens"], answered["cached_tokens"]) == (100, 20)
    assert (answered["output_tokens"], answered["reasoning_tokens"]) == (30, 5)
    assert (answered["estimate"], answered["output_limit"], answered["seconds"]) == (90, 500, 1.5)
    assert (failed["input_tokens"], failed["dollars"], failed["seconds"], failed["paid"]) == (None, None, 0.25, True)
    assert (played["paid"], played["estimate"], played["seconds"]) == (False, None, None)
    assert (later["response"], lost["response"], lost["seconds"]) == ("resp_1", None, None)
    assert all(row["thread"] == f"model:{row['call']}" and row["run"] == writer.run for row in rows)
    calls = {row["call"]: row["path"] for row in ask(chosen, "SELECT call, path FROM calls")}
    assert all(calls[row["call"]] == row["path"] for row in rows)


def test_money_is_exact_in_sql(chosen: settings.Settings) -> None:
    """A ten-thousandth of a millionth of a dollar is neither lost nor rounded in a sum."""
    let_go(exchanges.every_way(chosen.home).writer.conversation)
    (row,) = ask(chosen, "SELECT typeof(any_value(dollars)) AS kind, CAST(sum(dollars) AS VARCHAR) AS sum FROM costs")
    assert row == {"kind": "DECIMAL(30,15)", "sum": "0.750000000122500"}


async def test_every_cut_of_a_growing_log_can_be_queried(chosen: settings.Settings) -> None:
    """A log cut anywhere, even in its last line, answers with the lines before the cut, and is not called damaged."""
    rig = await run_once(chosen.home)
    file = file_store.Files(chosen.home).conversation_file(rig.id)
    whole = file.read_bytes()
    ends = [place + 1 for place, mark in enumerate(whole) if mark == ord("\n")]
    seen: list[int] = []
    for cut in [10] + [cut for end in ends for cut in (end, end + 1, end + 40)]:
        file.write_bytes(whole[:cut])
        (row,) = ask(
            chosen,
            "SELECT (SELECT count(*) FROM calls) AS calls, (SELECT count(*) FROM calls WHERE status = 'open') AS open",
        )
        assert row["open"] in (0, 1)
        seen.append(row["calls"])
    assert seen == sorted(seen)
    assert seen[-1] == 4


async def test_a_damaged_log_is_left_out_and_named(chosen: settings.Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """Other runs are queried; nothing of the damaged one is, not even the entries before the damage."""
    monkeypatch.setattr(query, "BATCH", 1)
    bad, good = await run_once(chosen.home), await run_once(chosen.home)
    file = file_store.Files(chosen.home).conversation_file(bad.id)
    lines = file.read_bytes().splitlines(keepends=True)
    lines[-2] = lines[-2].replace(b'"seq"', b'"sqe"')
    file.write_bytes(b"".join(lines))
    answer = query.ask(
        file_store.Files(chosen.home), "SELECT DISTINCT run FROM (FROM calls SELECT run UNION ALL FROM runs SELECT run)"
    )
    assert [row["run"] for batch in answer.result.batches for row in batch] == [good.id]
    (error,) = answer.left_out
    assert f"{file}:{len(lines) - 1}" in error.message


async def test_a_run_that_died_and_a_later_verdict(chosen: settings.Settings) -> None:
    """A run whose log has no end is `died`; the verdict about an action becomes its step's status."""
    rig = await run_once(chosen.home)
    file = file_store.Files(chosen.home).conversation_file(rig.id)
    entries = list(query.entries(file))
    last = next(entry for entry in reversed(entries) if isinstance(entry, log_entries.Call))
    kept = [
        *entries[: last.seq],
        log_entries.Note(name="reconciled", data={"call": last.call, "verdict": "done", "how": "confirm"}),
    ]
    file.write_bytes(
        b"".join(log_entries.encode(entry.model_copy(update={"seq": seq})) for seq, entry in enumerate(kept, 1))
    )
    assert ask(chosen, "SELECT state, exit FROM runs") == [{"state": "died", "exit": None}]
    assert ask(chosen, "SELECT status, reconciled FROM calls ORDER BY line DESC LIMIT 1") == [
        {"status": "open", "reconciled": "done"}
    ]
    assert ask(chosen, "SELECT status FROM steps WHERE path = 'pay'") == [{"status": "recovered"}]


@pytest.mark.parametrize(
    ("sql", "message", "fix"),
    [
        ("SELEC 1", "syntax error", "line 1, column 1"),
        ("SELECT stat FROM runs", '"stat"', "did you mean `state`"),
        ("SELECT * FROM run", "no view `run`", "did you mean `runs`"),
        ("SELECT * FROM read_text('/etc/hostname')", "not available", "list of maps"),
        ("SELECT * FROM '/etc/hostname'", "no view", "runs, steps, calls, costs, plans"),
        ("DELETE FROM runs", "SELECT", "SELECT"),
        ("SELECT 1; SELECT 2", "2 statements", "SELECT"),
        ("SELECT 1 AS a, 2 AS a", "two columns", "AS"),
        ("SELECT 'x'::INTEGER AS a", "could not convert", "runops query"),
        ("SELECT $name AS a", "`$name` has no value", "the value itself"),
    ],
)
async def test_a_query_that_cannot_be_used_is_wrong_usage(
    sql: str, message: str, fix: str, chosen: settings.Settings
) -> None:
    """The error is one sentence, suggests a near miss if there is one, and exits with 2."""
    with pytest.raises(UsageError) as caught:
        ask(chosen, sql)
    assert caught.value.code == "bad-query"
    assert message in caught.value.message
    assert fix in str(caught.value.fix)
    assert "\n" not in caught.value.message


def big_log(home: Path, calls: int) -> int:
    """Write a log of so many calls with long arguments and values; returns its size."""
    store = file_store.Files(home)
    store.make()
    run = log_store.new_id()
    blob = log_entries.Blob(sha256="0" * 64, bytes=1, preview="", path="x")
    header = log_entries.RunHeader(
        workflow="Big",
        file="big.yaml",
        text=blob,
        inputs={},
        secrets=[],
        origins=[],
        browser={},
        versions={},
        callees={},
    )
    with store.conversation_file(run).open("wb") as file:
        file.write(
            log_entries.encode(
                log_entries.Scope(seq=1, at=log_entries.now(), path="", event="opened", node="run", run=header)
            )
        )
        for number in range(calls):
            call = log_entries.Call(
                seq=2 * number + 2,
                at=log_entries.now(),
                call=f"c{number}",
                path=f"each[{number}]/pay",
                node="browser_action",
                attempt=1,
                effect="effect",
                args={"value": "x" * 3000},
                fingerprint="0",
            )
            file.write(log_entries.encode(call))
            file.write(
                log_entries.encode(
                    log_entries.Result(
                        seq=call.seq + 1, at=log_entries.now(), call=call.call, status="ok", value="y" * 3000
                    )
                )
            )
        return file.tell()


def peak_of_a_query(home: Path) -> tuple[list[Any], int]:
    """The rows of a query over the logs in ``home``, and the most bytes of memory that its process had.

    The kernel's own count for the process: ``ru_maxrss`` begins with what the process had that started it.
    """
    program = (
        "import json\n"
        "from runtime.workspace import host\nfrom runtime.query import query\n"
        "answer = query.ask(host.load().files, \"SELECT count(*) AS n, count(DISTINCT path) AS paths FROM calls WHERE status = 'ok'\")\n"
        "rows = [row for batch in answer.result.batches for row in batch]\n"
        "peak = next(line for line in open('/proc/self/status') if line.startswith('VmHWM'))\n"
        "print(json.dumps([rows, int(peak.split()[1]) << 10]))\n"
    )
    environment = os.environ | {"RUNOPS_HOME": str(home)}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment, check=True)
    rows, peak = json.loads(done.stdout)
    return rows, peak


def test_memory_does_not_grow_with_the_logs(tmp_path: Path) -> None:
    """A log that is 50 MB larger needs far less than 50 MB more memory."""
    few, many = (big_log(tmp_path / str(calls), calls) for calls in (4_000, 12_500))
    assert many - few > 50 << 20
    rows, small = peak_of_a_query(tmp_path / "4000")
    assert rows == [{"n": 4_000, "paths": 4_000}]
    rows, large = peak_of_a_query(tmp_path / "12500")
    assert rows == [{"n": 12_500, "paths": 12_500}]
    assert large - small < (many - few) / 2


def test_only_the_time_of_the_query_itself_counts(chosen: settings.Settings) -> None:
    """A slow reader gets all rows; a query that computes longer than its limit is stopped between two batches."""
    rows = query.ask(file_store.Files(chosen.home), "SELECT range AS n FROM range(5000)", seconds=1.5).result.batches
    first = next(rows)
    threading.Event().wait(1.6)
    assert len(first) + sum(map(len, rows)) == 5000
    slow = "SELECT max(a.range * b.range % 7) AS n FROM range(1000000) a, range(1000000) b"
    with pytest.raises(UsageError, match=r"took longer than 0\.2 s") as raised:
        list(query.ask(file_store.Files(chosen.home), slow, seconds=0.2).result.batches)
    assert raised.value.code == "query-limit"


def test_reading_the_logs_counts_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Logs that take longer to read than the query may take stop it before it begins."""
    monkeypatch.setenv("RUNOPS_HOME", str(tmp_path))
    big_log(tmp_path, 2000)
    with pytest.raises(UsageError, match="took longer than 0 s"):
        query.ask(file_store.Files(settings.load().home), "SELECT count(*) AS n FROM runs", seconds=0)
