"""`runops query` as a process: its formats and exit codes, and queries while a run is being written."""

import csv
import io
import json
import signal
import threading
import time
from pathlib import Path

import psutil
import pytest

from tests import warm
from tests.command import TIMEOUT, Project

pytestmark = pytest.mark.drawn(share=0.5, of="command query")

WORKFLOW = """
version: 1
nodes:
  - {id: first, type: transform, expr: "{{ 'a, b' }}"}
  - {id: broken, type: transform, expr: "{{ 1 / 0 }}"}
"""

STEPS = "SELECT path, status, error FROM steps ORDER BY line"


def test_rows_are_printed_as_a_table_json_or_csv(tmp_path: Path) -> None:
    """One query has three formats, and stdout contains only the rows. Without a query the views are listed."""
    project = Project(tmp_path)
    project.write("flow.yaml", WORKFLOW)
    assert project.here("run", "flow.yaml").returncode == 1
    table = project.here("query", STEPS)
    assert table.returncode == 0
    head, first, broken = table.stdout.splitlines()
    assert head.split() == ["path", "status", "error"]
    assert first.split() == ["first", "ok"]
    assert broken.split() == ["broken", "error", "expression-failed"]
    assert table.stderr == "2 rows\n"
    result = json.loads(project.here("query", STEPS, "--json").stdout)
    assert (result["version"], result["columns"]) == (1, ["path", "status", "error"])
    assert result["rows"][1] == {"path": "broken", "status": "error", "error": "expression-failed"}
    assert json.loads(project.here("query", "SELECT 1 AS x FROM runs WHERE false", "--json").stdout)["rows"] == []
    printed = project.here("query", STEPS, "--csv").stdout
    assert "\r" not in printed  # a shell would take it for text
    sheet = list(csv.reader(io.StringIO(printed, newline="")))
    assert sheet == [["path", "status", "error"], ["first", "ok", ""], ["broken", "error", "expression-failed"]]
    views = project.here("query")
    assert {"runs", "steps", "calls", "costs", "plans"} <= set(views.stdout.split())
    assert "runops query" in views.stderr


def test_a_bad_query_is_a_usage_error(tmp_path: Path) -> None:
    """A bad query exits 2 with one sentence and a suggestion, without a traceback. `--json` reports it too."""
    project = Project(tmp_path)
    wrong = project.here("query", "SELECT stat FROM runs")
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert "error[bad-query]" in wrong.stderr
    assert "did you mean `state`" in wrong.stderr
    assert "Traceback" not in wrong.stderr
    result = json.loads(project.here("query", "SELECT * FROM rnus", "--json").stdout)
    assert result["error"]["fix"] == "did you mean `runs`?"
    assert project.here("query", "SELECT 1 AS x", "--json", "--csv").returncode == 2


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_interrupts_a_long_query(tmp_path: Path, number: int, code: int) -> None:
    """A signal in the middle of a long statement ends the command at once with `interrupted` and the code of the signal."""
    project = Project(tmp_path)
    asked = project.start("query", "SELECT count(*) FROM range(1000000000000000)")
    try:
        process = psutil.Process(asked.pid)
        enough = 1 if isinstance(asked, warm.Forked) else 4
        while process.cpu_times().user < enough:  # nothing before the statement takes half of that
            time.sleep(0.05)
        asked.send_signal(number)
        out, err = asked.communicate(timeout=TIMEOUT)
    finally:
        asked.kill()
    assert (asked.returncode, out, err) == (code, "", "interrupted\n")


def test_a_query_while_logs_are_written_and_one_is_damaged(tmp_path: Path) -> None:
    """A log that grows in torn halves never fails a query. A damaged log is named on stderr and left out."""
    project = Project(tmp_path)
    project.write("flow.yaml", WORKFLOW)
    for _ in range(2):
        project.here("run", "flow.yaml")
    whole_log, damaged = sorted((tmp_path / ".runops" / "conversations").glob("*.jsonl"))
    lines = damaged.read_bytes().splitlines(keepends=True)
    damaged.write_bytes(b"".join([lines[0], b"{}\n", *lines[2:]]))
    whole = whole_log.read_bytes().splitlines(keepends=True)
    whole_log.write_bytes(whole[0])
    done = threading.Event()

    def write() -> None:
        """Write the lines of a run over and over, each line in two halves."""
        while not done.is_set():
            # Each time into a new file, so that no log becomes shorter while it is read.
            begun = whole_log.with_suffix(".begun")
            begun.write_bytes(whole[0])
            begun.replace(whole_log)
            with whole_log.open("ab", buffering=0) as file:
                for line in whole[1:]:
                    file.write(line[: len(line) // 2])
                    file.write(line[len(line) // 2 :])

    writer = threading.Thread(target=write)
    writer.start()
    try:
        answers = [
            project.here("query", "SELECT workflow, count(*) AS n FROM runs GROUP BY ALL", "--json") for _ in range(5)
        ]
    finally:
        done.set()
        writer.join()
    for answer in answers:
        assert answer.returncode == 0, answer.stderr
        result = json.loads(answer.stdout)
        assert result["rows"] == [{"workflow": "flow", "n": 1}]
        assert [each["code"] for each in result["left_out"]] == ["log-damaged"]
        assert f"{damaged}:2" in answer.stderr


@pytest.mark.parametrize(
    ("sql", "forms"),
    [
        ("SELECT count(*) FROM range(1000000) a, range(1000000) b WHERE a.range * b.range % 7 = 3", ((), ("--json",))),
        ("SELECT levenshtein(repeat('ab', 100000), repeat('ba', 100001)) AS n", (("--json",),)),
    ],
    ids=["a join", "one call that is never interrupted"],
)
def test_a_query_that_takes_too_long_is_ended(sql: str, forms: tuple[tuple[str, ...], ...], tmp_path: Path) -> None:
    """A query beyond its timeout exits 2 with `query-limit` and a longer timeout to try, and leaves no process."""
    project = Project(tmp_path)
    for form in forms:
        with project.start("query", sql, "--timeout", "0.5", *form) as process:
            began = time.monotonic()
            out, err = process.communicate(timeout=20)
            took = time.monotonic() - began
        assert process.returncode == 2
        assert "error[query-limit]: the query took longer than 0.5 s" in err
        assert "--timeout 5" in err
        assert 0.4 < took < 15
        assert not psutil.pid_exists(process.pid)
        assert not form or json.loads(out)["error"]["code"] == "query-limit"
