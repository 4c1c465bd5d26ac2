"""``runops run``: runs workflows."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

import typer

from nodes.errors import UsageError
from runtime.cli import batch, flags, foreground_run
from runtime.cli import values as given_values
from runtime.runs import collect, junit
from runtime.workspace import host


def run(
    ctx: typer.Context,
    paths: Annotated[list[Path], flags.argument("PATH", "Workflow files, and folders of them.")],
    inputs: flags.InputFlag = None,
    inputs_file: Annotated[
        Path | None, flags.option("--inputs FILE", "A JSON or YAML map of inputs; `-i` wins.")
    ] = None,
    fail_fast: Annotated[bool, flags.option("--fail-fast, -x", "Start no further run after one did not pass.")] = False,
    report: Annotated[Path | None, flags.option("--junit FILE", "Write a JUnit XML report there.")] = None,
    key: Annotated[
        str | None, flags.option("--resume-if-exists KEY", "Resume the run with this key, or start it. Takes one file.")
    ] = None,
    allow_changed: flags.AllowChangedFlag = False,
    as_json: flags.JsonFlag = False,
    quiet: flags.QuietFlag = False,
    headed: flags.HeadedFlag = None,
    browser: Annotated[
        Literal["own", "shared"] | None,
        flags.option(
            "--browser", "`own`: a browser for this run, which survives a crash; `shared`: an isolated context."
        ),
    ] = None,
    engine: flags.EngineFlag = None,
    browser_url: flags.BrowserUrlFlag = None,
    keep_browser: flags.KeepBrowserFlag = None,
    linger: flags.LingerFlag = None,
    budget: flags.BudgetFlag = None,
    model_calls: flags.ModelCallsFlag = None,
    frozen: flags.FrozenFlag = False,
) -> None:
    """Run workflows, one after another. Their output goes to stdout, everything else to stderr.

    Of a folder and the folders below it, every YAML file with `version` and `nodes` is run, except those with `run: manual` and those that
    others use. All files, inputs and secrets are checked first: if one is wrong, no run starts.

    A run that is killed or interrupted continues with `runops resume`, or with the same command if `--resume-if-exists` gave it a key. For
    several runs the exit code is the worst one, and stdout is a map of files to outputs.
    """
    _check_key(paths, key, fail_fast=fail_fast, allow_changed=allow_changed)
    here = host.load(
        headed=headed,
        browser_mode=browser,
        browser_engine=engine,
        browser_url=browser_url,
        keep_browser=keep_browser,
        linger=linger,
        budget=budget,
        model_calls=flags.model_calls(model_calls, frozen=frozen),
    )
    values = given_values.inputs(inputs or [], inputs_file)
    foreground_run.silence()
    runs = batch.Batch(
        collect.collect(paths),
        here,
        as_json=as_json,
        quiet=quiet,
        fail_fast=fail_fast,
        plain=len(paths) == 1 and not paths[0].is_dir(),
        reporters=[junit.Report(report)] if report is not None else [],
        key=key,
        allow_changed=allow_changed,
        arguments=flags.arguments(ctx),
    )
    raise typer.Exit(runs.carry_out(values))


def _check_key(paths: Sequence[Path], key: str | None, *, fail_fast: bool, allow_changed: bool) -> None:
    if key is None:
        if allow_changed:
            fix = "give `--resume-if-exists KEY` too, or type `runops resume RUN --allow-changed`"
            raise UsageError("usage", "`--allow-changed` is for a run that is resumed", fix=fix)
        return
    if len(paths) != 1 or paths[0].is_dir():
        raise UsageError("usage", "a key has one run: `--resume-if-exists` takes one file", fix="name one file")
    if fail_fast:
        raise UsageError("usage", "`--fail-fast` is for several files, and a key has one", fix="leave it out")
