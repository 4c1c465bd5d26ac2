"""``runops runs``: what was run here."""

from __future__ import annotations

import dataclasses
import datetime as dt
from typing import Annotated

import typer

from runtime import runs as kept
from runtime import settings
from runtime.cli import console
from runtime.display.text import cut, duration, one_line, width_of


def runs(as_json: Annotated[bool, typer.Option("--json", help="Print the list as one JSON object.")] = False) -> None:
    """List the runs of this project, oldest first: what became of each, when it started, how long it took."""
    chosen = settings.load()
    found = kept.list_runs(chosen)
    if as_json:
        console.result(
            console.as_json(
                home=str(chosen.home),
                runs=[{**dataclasses.asdict(each), "seconds": seconds_of(each)} for each in found],
            )
        )
    elif found:
        console.result("\n".join(table([HEAD, *(row(each) for each in found)])))
    else:
        console.say(f"no runs in {chosen.home}\n  start one: runops run FILE")


HEAD = ["run", "state", "started", "took", "steps", "workflow"]


def row(run: kept.RunSummary) -> list[str]:
    """One line of the list."""
    seconds = seconds_of(run)
    started = moment(run.started)
    return [
        run.id,
        run.state,
        started.astimezone().strftime("%Y-%m-%d %H:%M:%S") if started else "",
        duration(seconds) if seconds is not None else "",
        str(run.steps),
        one_line(run.problem or run.workflow),
    ]


def seconds_of(run: kept.RunSummary) -> float | None:
    """Seconds from the run's first entry to its last; for a living run, to now."""
    started, ended = moment(run.started), moment(run.ended)
    if started is None or ended is None:
        return None
    return round(((dt.datetime.now(dt.UTC) if run.state == "running" else ended) - started).total_seconds(), 3)


def moment(text: str) -> dt.datetime | None:
    """A time of the log."""
    return dt.datetime.fromisoformat(text) if text else None


def table(rows: list[list[str]]) -> list[str]:
    """Rows with their columns below each other; on a terminal the last column gives way, elsewhere nothing is cut."""
    wide = [max(width_of(cells[column]) for cells in rows) for column in range(len(rows[0]))]
    lines = [
        "  ".join(cell + " " * (wide[column] - width_of(cell)) for column, cell in enumerate(cells)).rstrip()
        for cells in rows
    ]
    columns = console.columns()
    return [cut(line, columns) for line in lines] if columns else lines
