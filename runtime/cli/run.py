"""``runops run``: run workflows."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from runtime import collecting, junit, settings
from runtime.cli import batch, execution, flags, given


def run(
    ctx: typer.Context,
    paths: Annotated[
        list[Path], typer.Argument(metavar="PATH", help="Workflow files, and folders of them.", show_default=False)
    ],
    inputs: flags.InputFlag = None,
    inputs_file: Annotated[
        Path | None,
        typer.Option("--inputs", metavar="FILE", help="A JSON or YAML map of inputs; `-i` wins.", show_default=False),
    ] = None,
    fail_fast: Annotated[
        bool, typer.Option("--fail-fast", "-x", help="Begin no other run once one did not pass.")
    ] = False,
    report: Annotated[
        Path | None,
        typer.Option("--junit", metavar="FILE", help="Write a JUnit XML report there.", show_default=False),
    ] = None,
    as_json: flags.JsonFlag = False,
    quiet: flags.QuietFlag = False,
    headed: flags.HeadedFlag = None,
    browser: Annotated[
        Literal["own", "shared"] | None,
        typer.Option(
            "--browser",
            help="`own`: a process for this run, which survives a crash; `shared`: an isolated context.",
            show_default=False,
        ),
    ] = None,
    keep_browser: flags.KeepBrowserFlag = None,
    linger: flags.LingerFlag = None,
) -> None:
    """Run workflows, one after another. Their output goes to stdout, everything else to stderr.

    In a folder every YAML file with `version` and `nodes` is run, in folders below it too, but none with `run: manual` and none that another one uses.
    All files, inputs and secrets are checked first: where one is wrong, none is begun.

    A run that is killed or interrupted goes on with `runops resume`. Of several runs the exit code is the worst, and stdout is a map of files and outputs.
    """
    chosen = settings.load(headed=headed, browser_mode=browser, keep_browser=keep_browser, linger=linger)
    values = given.inputs(inputs or [], inputs_file)
    execution.hush()
    manner = batch.Manner(
        chosen,
        as_json=as_json,
        quiet=quiet,
        fail_fast=fail_fast,
        plain=len(paths) == 1 and not paths[0].is_dir(),
        report=junit.Report(report) if report is not None else None,
        arguments=flags.arguments(ctx),
    )
    runs = batch.Batch(collecting.collect(paths), manner)
    runs.prepare(values)
    raise typer.Exit(runs.carry_out())
