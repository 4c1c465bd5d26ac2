"""SQL over the values in scope: tables, column types, and no access to anything else."""

import asyncio
import os
from pathlib import Path
from typing import Any

import duckdb
import pytest

from nodes.errors import AuthorError
from runtime.sql import lockdown, select
from tests import breadth
from tests.rig import Rig

ORDERS = [
    {"id": 1, "total": 9.5, "who": {"name": "Ada"}, "tags": ["a", "b"], "note": None},
    {"id": 2, "total": 3, "who": None, "tags": [], "note": None, "extra": "x"},
]
SCOPE: dict[str, Any] = {
    "inputs": {"prices": [{"id": 1, "price": 4}, {"id": 3, "price": 7}], "count": 3},
    "vars": {"seen": [{"id": 2}]},
    "run": {"id": "R", "errors": {}},
    "orders": ORDERS,
    "none": [],
    "numbers": [1, 2],
    "mixed": [{"v": 1}, {"v": "one"}, {"v": [True]}, {}],
}


async def rows(statement: str, params: dict[str, Any] | None = None, **limits: Any) -> list[Any]:
    """The rows of a statement."""
    return await select.Select(SCOPE, limits.pop("seconds", 30.0), **limits).select(statement, params or {})


async def failure(statement: str, params: dict[str, Any] | None = None, **limits: Any) -> AuthorError:
    """The error of a statement."""
    with pytest.raises(AuthorError) as caught:
        await rows(statement, params, **limits)
    assert caught.value.fix
    assert "\n" not in caught.value.message
    assert "Traceback" not in caught.value.message
    return caught.value


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        (
            "SELECT id, total FROM orders ORDER BY id -- all\n ; -- done",
            [{"id": 1, "total": 9.5}, {"id": 2, "total": 3.0}],
        ),
        ("FROM inputs.prices p JOIN orders o USING (id) SELECT o.who.name AS who, price", [{"who": "Ada", "price": 4}]),
        ("SELECT id FROM orders ANTI JOIN vars.seen USING (id)", [{"id": 1}]),
        (
            "WITH orders AS (SELECT * FROM orders WHERE id = 2) SELECT id, note, extra FROM orders",
            [{"id": 2, "note": None, "extra": "x"}],
        ),
        ("WITH own AS (VALUES (1), (2)) SELECT count(*) AS n FROM own", [{"n": 2}]),
        ("SELECT sum(note) AS nothing, upper(min(note)) AS text FROM orders", [{"nothing": None, "text": None}]),
        ("SELECT id, unnest(tags) AS tag FROM Orders", [{"id": 1, "tag": "a"}, {"id": 1, "tag": "b"}]),
        ("SELECT v FROM mixed", [{"v": 1}, {"v": "one"}, {"v": [True]}, {"v": None}]),
        ("SELECT who FROM orders WHERE id = 1", [{"who": {"name": "Ada"}}]),
        ("select id from orders where contains(extra, 'x')", [{"id": 2}]),
    ],
)
async def test_a_list_of_maps_is_a_table_by_the_name_that_a_reference_has(statement: str, expected: list[Any]) -> None:
    """Tables are named as in references: nodes by id, inputs and variables with a prefix. CTEs come first, and missing fields are null."""
    assert await rows(statement) == expected


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT id, upper(name) AS name, total + 1 AS total FROM none WHERE total > 5 AND name LIKE 'a%'",
        "SELECT n.price, sum(n.amount) FROM none n JOIN inputs.prices p ON p.id = n.id GROUP BY ALL",
        "SELECT id, total FROM none JOIN orders USING (id)",
        "FROM none",
    ],
)
async def test_a_table_without_rows_has_the_columns_used(statement: str) -> None:
    """A statement on an empty list succeeds, with the columns that it uses."""
    assert await rows(statement) == []


async def test_params_are_values_of_every_kind() -> None:
    """A param is passed as a value, never read as SQL; a missing or an extra one is refused."""
    given = {"least": 5, "text": "'; DROP TABLE orders; --", "map": {"a": [1, None]}, "flag": True}
    found = await rows(
        "SELECT id, $text AS text, $map.a AS list, $flag AS flag FROM orders WHERE total > $least", given
    )
    assert found == [{"id": 1, "text": given["text"], "list": [1, None], "flag": True}]
    assert "`$least` has no value" in (await failure("SELECT $least AS x")).message
    assert "no `$more`" in (await failure("SELECT 1 AS x", {"more": 1})).message


async def test_results_are_json() -> None:
    """Dates become ISO 8601, exact decimals and large integers text where needed, and JSON its value."""
    (row,) = await rows(
        "SELECT date '2026-01-31' AS day, timestamptz '2026-01-31 10:00:00+02' AS moment, 1.10::DECIMAL(9, 2) AS price,"
        " 12345678901234567.89::DECIMAL(30, 2) AS exact, 9223372036854775808::HUGEINT AS big, '[1, null]'::JSON AS list,"
        " MAP {1: date '2026-01-31'} AS map, '\\xAA'::BLOB AS bytes, interval 90 second AS span"
    )
    assert row == {
        "day": "2026-01-31",
        "moment": "2026-01-31T08:00:00+00:00",
        "price": 1.1,
        "exact": "12345678901234567.89",
        "big": "9223372036854775808",
        "list": [1, None],
        "map": {"1": "2026-01-31"},
        "bytes": "qg==",
        "span": 90.0,
    }


@pytest.mark.parametrize(
    ("statement", "code", "said", "fix"),
    [
        ("SELECT * FROM ordrs", "sql-unknown-table", "`ordrs`", "did you mean `orders`?"),
        ("SELECT * FROM prices", "sql-unknown-table", "`prices`", "did you mean `inputs.prices`?"),
        ("SELECT * FROM numbers", "sql-not-a-table", "a list of other things", "maps"),
        ("SELECT * FROM inputs.count", "sql-not-a-table", "a number", "maps"),
        ("SELECT totl FROM orders", "sql-failed", '"totl"', "did you mean `total`"),
        ("SELECT summ(total) FROM orders", "sql-failed", "summ", "did you mean `sum`"),
        ("SELEC 1", "sql-failed", "syntax error", "line 1, column 1"),
        ("SELECT 'a'::INTEGER AS x", "sql-failed", "could not convert", "correct line 1"),
        ("SELECT 1 AS a, 2 AS a", "sql-failed", "two columns", "AS"),
        ("SELECT 'nan'::DOUBLE AS x", "sql-failed", "`x`", "cast"),
        (" -- nothing", "sql-refused", "no statement", "SELECT"),
        ("SELECT 1; SELECT 2", "sql-refused", "2 statements", "SELECT"),
    ],
)
async def test_a_mistake_is_one_sentence_with_its_fix(statement: str, code: str, said: str, fix: str) -> None:
    """DuckDB errors become our errors, with a suggestion."""
    error = await failure(statement)
    assert error.code == code
    assert said in error.message
    assert fix in str(error.fix)


async def test_only_tables_that_a_statement_mentions_are_sent() -> None:
    """A quoted name finds its table. Unused tables are not sent, and a refused statement reads none."""
    scope = {
        "orders": [{"id": 1, "text": "x" * 1_000_000}] * 5,
        "vars": {'a"b': [{"n": 1}]},
        "other": [{"n": object()}],
    }
    sql = select.Select(scope, 30.0)
    assert await sql.select('FROM vars."a""b"', {}) == [{"n": 1}]
    with pytest.raises(AuthorError, match="2 statements"):
        await sql.select("FROM orders; FROM orders", {})


ESCAPES = [
    "SELECT * FROM read_csv('{file}')",
    "SELECT * FROM read_text('{file}')",
    "SELECT * FROM read_blob('{file}')",
    "SELECT * FROM read_parquet('{file}')",
    "SELECT * FROM main.read_json('{file}')",
    "SELECT * FROM glob('{folder}/*')",
    "SELECT * FROM sniff_csv('{file}')",
    "SELECT * FROM query('SELECT 1')",
    "SELECT * FROM query_table('orders')",
    "SELECT (SELECT count(*) FROM read_text('{file}')) AS n FROM orders",
    "FROM '{file}'",
    'FROM "{file}"',
    "WITH x AS (FROM '{folder}/*.csv') FROM x",
    "FROM SCOPE",
    "FROM ORDERS_IN_PYTHON",
    "COPY (SELECT 1) TO '{folder}/out.csv'",
    "COPY orders FROM '{file}'",
    "ATTACH '{folder}/out.db'",
    "INSTALL httpfs",
    "LOAD httpfs",
    "SET memory_limit = '64GB'",
    "SELECT 1; SET enable_external_access = true",
    "PRAGMA enable_logging",
    "RESET lock_configuration",
    "EXPORT DATABASE '{folder}/out'",
    "IMPORT DATABASE '{folder}'",
    "SELECT getenv('HOME') AS x",
    "SELECT current_setting('home_directory') AS x",
    "SELECT * FROM duckdb_secrets()",
    "SELECT * FROM duckdb_settings()",
    "FROM information_schema.tables",
    "FROM pg_catalog.pg_class",
    "DESCRIBE orders",
    "FROM (SUMMARIZE orders)",
    "CALL pragma_version()",
    "EXPLAIN SELECT 1",
    "CREATE TABLE x AS SELECT 1",
    "INSERT INTO orders SELECT * FROM orders",
    "DELETE FROM orders",
    "DROP TABLE orders",
    "BEGIN TRANSACTION",
    "PREPARE p AS SELECT 1",
    "CREATE SECRET s (TYPE s3)",
    "CREATE MACRO m() AS TABLE FROM '{file}'",
]

ORDERS_IN_PYTHON = ORDERS


@pytest.fixture
def bait(tmp_path: Path) -> Path:
    """A folder with one file that must be neither read nor changed."""
    (tmp_path / "bait.csv").write_text("a,b\n1,2\n")
    return tmp_path


async def test_every_known_escape_is_refused_and_touches_nothing(bait: Path) -> None:
    """Access to files, Python variables, databases, extensions, settings or the catalogue, and non-SELECT statements, are author errors."""
    tried = breadth.some(ESCAPES, 12)
    for start in range(0, len(tried), 4):
        some = [each.format(file=bait / "bait.csv", folder=bait) for each in tried[start : start + 4]]
        for statement, error in zip(some, await asyncio.gather(*map(failure, some)), strict=True):
            assert error.code in ("sql-refused", "sql-unknown-table", "sql-failed"), statement
            assert error.exit == 1
            assert "bait.csv" not in str(error.evidence)
    assert [each.name for each in bait.iterdir()] == ["bait.csv"]


async def test_the_database_itself_is_locked(bait: Path) -> None:
    """Without the statement check, DuckDB itself refuses files, extensions, settings and Python variables."""
    orders = ORDERS
    assert orders
    database = lockdown.connect(64)
    for statement in [each.format(file=bait / "bait.csv", folder=bait) for each in ESCAPES]:
        if any(
            word in statement
            for word in ("bait.csv", str(bait), "INSTALL", "LOAD", "SET", "SECRET", "FROM SCOPE", "PYTHON")
        ):
            with pytest.raises(duckdb.Error):
                database.execute(statement).fetchall()
    assert [each.name for each in bait.iterdir()] == ["bait.csv"]


@pytest.mark.drawn(share=0.25)
@pytest.mark.parametrize(
    ("statement", "limits"),
    [
        (
            "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t) SELECT count(*) AS n FROM t",
            {"seconds": 1.5},
        ),
        ("SELECT levenshtein(repeat('ab', 1000000), repeat('ba', 1000000)) AS n", {"seconds": 1.5}),
        ("SELECT * FROM range(10000000000) a, range(10000000000) b ORDER BY 2, 1", {}),
        ("SELECT repeat('x', 4000000000) AS x", {}),
        ("SELECT range(100000000) AS x", {}),
        ("SELECT a.range AS x FROM range(20) a", {"rows": 10}),
        ("SELECT repeat('x', 5000000) AS x FROM range(30)", {}),
    ],
)
async def test_an_excessive_statement_is_ended(statement: str, limits: dict[str, Any]) -> None:
    """Time, memory (also memory that DuckDB does not count) and rows are limited by `sql-limit`."""
    error = await failure(statement, **limits)
    assert error.code == "sql-limit"


async def test_no_process_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """The process of a statement has ended when the step has, also after cancellation."""
    started: list[int] = []
    begun = asyncio.Event()
    original = asyncio.create_subprocess_exec

    async def noted(*args: Any, **named: Any) -> asyncio.subprocess.Process:
        process = await original(*args, **named)
        started.append(process.pid)
        begun.set()
        return process

    monkeypatch.setattr(asyncio, "create_subprocess_exec", noted)
    task = asyncio.create_task(
        rows("WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t) SELECT count(*) FROM t")
    )
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await rows("SELECT 1 AS x") == [{"x": 1}]
    for pid in started:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


WORKFLOW = """
version: 1
inputs:
  known: {type: list}
nodes:
  - {id: today, type: transform, expr: "{{ [{'name': 'tea', 'price': 5}, {'name': 'jam', 'price': 7}] }}"}
  - id: changed
    type: transform
    sql: SELECT name, k.price AS was, n.price AS price FROM today n JOIN inputs.known k USING (name) WHERE n.price - k.price >= $least
    params: {least: "{{ inputs.known | length - 1 }}"}
output: "{{ changed }}"
"""

KNOWN = {"known": [{"name": "tea", "price": 4}, {"name": "jam", "price": 7}]}


async def test_a_transform_selects_and_records_its_rows(tmp_path: Path) -> None:
    """The rows are the node's value, and the call logs the evaluated params."""
    rig = Rig(tmp_path, WORKFLOW, inputs=KNOWN)
    ended = await rig.start()
    assert ended.output == [{"name": "tea", "was": 4, "price": 5}]
    assert rig.history.attempts["changed"][0].call.args["params"] == {"least": 1}


async def test_a_wrong_statement_fails_its_step(tmp_path: Path) -> None:
    """The step fails with the author error at its path."""
    ended = await Rig(tmp_path, WORKFLOW.replace("FROM today", "FROM tody"), inputs=KNOWN).start()
    assert ended.exit == 1
    assert ended.path == "changed"
    assert ended.error is not None
    assert ended.error["code"] == "sql-unknown-table"
    assert ended.error["fix"] == "did you mean `today`?"
