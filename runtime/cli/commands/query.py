"""``runops query``: SQL over all runs."""

from __future__ import annotations

import csv
import io
import itertools
import os
import sys
from collections.abc import Iterator
from typing import Annotated

from nodes.csv_text import cell
from nodes.errors import UsageError
from nodes.values import Json
from runtime.cli import console, flags, signals
from runtime.display import escapes
from runtime.display.text import count, one_line
from runtime.query import query as over_runs
from runtime.workspace import host

MOST_SHOWN = 1000  # maximum rows of a table for people


def query(
    sql: Annotated[str | None, flags.argument("SELECT", "One SELECT; without it the views are listed.")] = None,
    as_json: flags.JsonFlag = False,
    as_csv: Annotated[bool, flags.option("--csv", "Print the rows as CSV.")] = False,
    timeout: Annotated[
        float, flags.option("--timeout SECONDS", "Time limit of the query, without printing.", min=0)
    ] = over_runs.SECONDS,
) -> None:
    """Ask the logs of all runs and sessions, also while they are written: one SELECT in DuckDB's SQL over runs, steps, calls, costs, plans, descriptions, sessions."""
    if as_json and as_csv:
        raise UsageError("usage", "`--json` and `--csv` exclude each other")
    if sql is None:
        _list_views(as_json=as_json)
        return
    with signals.handled_by(signals.leave):
        answer = over_runs.ask(host.load().files, sql, timeout, lambda error: _give_up(error, as_json=as_json))
        for error in answer.left_out:
            console.say(f"{console.paint('warning', console.BOLD, console.YELLOW)}: left out: {error.message}")
        rows = itertools.chain.from_iterable(answer.result.batches)
        if as_json:
            _print_json(answer.result.columns, rows, [error.as_json() for error in answer.left_out])
        elif as_csv:
            _print_csv(answer.result.columns, rows)
        else:
            _print_table(answer.result.columns, rows)


def _give_up(error: UsageError, *, as_json: bool) -> None:
    """End the process, as nothing else ends its running statement."""
    console.say(console.failure(error))
    if as_json:
        console.result(console.error_json(error, error.exit))
    sys.stdout.flush()
    os._exit(error.exit)


def _list_views(*, as_json: bool) -> None:
    if as_json:
        views = {
            name: [{"name": each.name, "type": each.type, "text": each.text} for each in columns]
            for name, columns in over_runs.VIEWS.items()
        }
        console.result(console.as_json(views=views))
        return
    for name, columns in over_runs.VIEWS.items():
        rows = [[f"  {each.name}", each.type, each.text] for each in columns]
        console.result("\n".join([name, *console.table(rows), ""]))
    console.say(
        """for example:  runops query "SELECT workflow, state, count(*) AS n FROM runs GROUP BY ALL ORDER BY n DESC" """.strip()
    )


def _print_json(columns: list[str], rows: Iterator[dict[str, Json]], left_out: list[Json]) -> None:
    opening = {"version": console.VERSION, "columns": columns, "left_out": left_out}
    comma = f'{escapes.as_json(opening)[:-1]}, "rows": ['
    for row in rows:
        console.result(f"{comma}\n{escapes.as_json(row)}" if comma else f",{escapes.as_json(row)}")
        comma = ""
    console.result(f"{comma}]}}")


def _print_csv(columns: list[str], rows: Iterator[dict[str, Json]]) -> None:
    for cells in itertools.chain([columns], ([cell(row[name]) for name in columns] for row in rows)):
        line = io.StringIO()
        # With this end of line every cell with a part of one is quoted. It is not printed: a shell would take its first half for text.
        csv.writer(line, lineterminator="\r\n").writerow(cells)
        console.result(line.getvalue().removesuffix("\r\n"))


def _print_table(columns: list[str], rows: Iterator[dict[str, Json]]) -> None:
    shown = [[one_line(cell(row[name])) for name in columns] for row in itertools.islice(rows, MOST_SHOWN)]
    console.result("\n".join(console.table([columns, *shown])))
    if next(rows, None) is not None:
        console.say(f"there are more than {MOST_SHOWN} rows; `--csv` and `--json` print all")
    else:
        console.say(count(len(shown), "row"))
