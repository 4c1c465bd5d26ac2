"""``runops prune``: deletes unused data and selected runs."""

from __future__ import annotations

import dataclasses
from typing import Annotated

import typer

from nodes.errors import LogError, UsageError
from runtime.cli import console, flags
from runtime.display.text import count, one_line, size, when
from runtime.workspace import host, retention
from runtime.workspace import prune as workspace_prune


def prune(
    older_than: Annotated[
        str | None, flags.option("--older-than TIME", "Runs whose last entry is older: `45min`, `12h`, `30d`, `2w`.")
    ] = None,
    keep_last: Annotated[int | None, flags.option("--keep-last N", "All runs but the N newest.", min=0)] = None,
    state: Annotated[
        list[str] | None,
        flags.option(
            "--state STATE", "Runs in this state (repeatable); by default `passed`. States: see `runops runs`."
        ),
    ] = None,
    sessions: Annotated[
        bool, flags.option("--sessions", "Sessions in place of runs, with `--older-than` or `--keep-last`.")
    ] = False,
    dry_run: Annotated[bool, flags.option("--dry-run", "Delete nothing, and list what would be deleted.")] = False,
    as_json: flags.JsonFlag = False,
) -> None:
    """Delete what no run needs: leftovers of finished runs, and files that belong to no run.

    Whole runs are deleted only if an option selects them; several options together select runs that fit all of them. A run that a process
    holds is never touched. One that can continue (failed, paused, interrupted, out of budget, died) is deleted only if `--state` names it.

    A session is deleted only with `--sessions`, unless it is an hour old and empty.
    """
    if sessions and state:
        said = "`--sessions` and `--state` exclude each other: a session has no such state"
        raise UsageError("usage", said, fix="leave one of them out")
    if sessions and older_than is None and keep_last is None:
        raise UsageError("usage", "`--sessions` does not say which", fix="add `--older-than TIME` or `--keep-last N`")
    wanted = retention.Selection(
        older_than=retention.span(older_than) if older_than is not None else None,
        keep_last=keep_last,
        states=retention.states(tuple(state or ())),
        sessions=sessions,
    )
    store = host.load().files
    report = workspace_prune.Pruning(store, dry_run=dry_run).carry_out(wanted)
    failed = [each for each in report.left if each.failed]
    error = None
    if failed:
        error = LogError(
            "not-removed",
            f"{count(len(failed), 'thing')} could not be removed: {failed[0].why}",
            fix="see what prevents it (another user's file, a full disk), then type it again: `runops prune`",
        )
    if as_json:
        console.result(
            console.as_json(
                home=store.place,
                dry_run=dry_run,
                gone=[dataclasses.asdict(each) for each in report.gone],
                left=[dataclasses.asdict(each) for each in report.left],
                bytes=report.bytes,
                error=error and error.as_json(),
            )
        )
    elif report.gone:
        console.result("\n".join(console.table([["size", "what"], *rows(report.gone)])))
    print_summary(report, store.place, dry_run=dry_run)
    if error is not None:
        console.say(console.failure(error))
        raise typer.Exit(error.exit)


def print_summary(report: workspace_prune.Report, home: str, *, dry_run: bool) -> None:
    for each in report.left:
        whose = f"run {each.run}: " if each.run else ""
        console.say(f"left alone: {whose}{one_line(each.why)}")
    if not report.gone:
        console.say(f"nothing to delete in {home}\n  whole runs, for example: runops prune --older-than 30d")
    elif dry_run:
        console.say(f"would delete {size(report.bytes)}; leave out --dry-run to do it")
    else:
        console.say(f"deleted {size(report.bytes)}")


def rows(deleted: list[workspace_prune.Deleted]) -> list[list[str]]:
    lines = [[size(each.bytes), named(each)] for each in deleted if each.kind not in NOUNS]
    for kind, (noun, more) in NOUNS.items():
        if alike := [each.bytes for each in deleted if each.kind == kind]:
            lines.append([size(sum(alike)), f"{count(len(alike), noun)} {more}".rstrip()])
    return lines


NOUNS = {
    "private": ("private folder", "that no run needs"),
    "files": ("folder", "of files of a run that is gone"),
    "value": ("large value", "that no log names"),
    "log": ("log", "in which nothing has begun"),
    "key": ("key", "of a run that is gone"),
    "temporary": ("half-written file", ""),
}


def named(each: workspace_prune.Deleted) -> str:
    if each.kind == "browser":
        return f"browser of run {each.run} (process {each.process})"
    kind, state = ("session", "") if each.kind == "session" else ("run", f"{each.state} ")
    return f"{kind} {each.run}  {state}{when(each.ended or '')}  {one_line(each.workflow or '')}"
