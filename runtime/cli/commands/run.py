"""``runops run``: runs workflows."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from nodes.errors import UsageError
from runtime import logger
from runtime.batch import cases, planning, selection, shards
from runtime.batch import policy as policies
from runtime.batch.reports import composing, event_lines, writing
from runtime.cli import batch, case_list, flags, report_flags
from runtime.cli import values as given_values
from runtime.runs import collect
from runtime.workspace import host


def run(
    ctx: typer.Context,
    paths: Annotated[list[Path], flags.argument("PATH", "Workflow files, and folders of them.")],
    inputs: flags.InputFlag = None,
    inputs_file: Annotated[
        Path | None, flags.option("--inputs FILE", "A JSON or YAML map of inputs; `-i` wins.")
    ] = None,
    rows: Annotated[
        Path | None, flags.option("--rows FILE", "A table of inputs (CSV, JSON, YAML): one run for each row.")
    ] = None,
    expression: Annotated[
        str | None,
        flags.option(
            "-k EXPR", "Only cases whose name, path, row or tags contain the words: `pay and not (slow or old)`."
        ),
    ] = None,
    tags: Annotated[
        list[str] | None, flags.option("--tag NAME", "Only workflows with this tag; several: with one of them.")
    ] = None,
    last_failed: Annotated[
        bool,
        flags.option("--last-failed", "Only cases that did not pass when they last ran in this project, or never ran."),
    ] = False,
    shard: Annotated[str | None, flags.option("--shard N/M", "Only the Nth of M parts of the cases.")] = None,
    durations: Annotated[
        Path | None,
        flags.option("--durations FILE", "A report of an earlier command, to make shards that take equally long."),
    ] = None,
    only_list: Annotated[bool, flags.option("--list", "List the cases, and run none.")] = False,
    jobs: Annotated[
        str,
        flags.option(
            "--jobs, -j N", "Run so many cases at once, each in one of N processes; `auto`: one for each processor."
        ),
    ] = "1",
    retries: Annotated[
        int, flags.option("--retries N", "Start up to N new runs of a case that has failed.", min=0, max=100)
    ] = 0,
    fail_on_flaky: Annotated[
        bool, flags.option("--fail-on-flaky", "Exit with 1 if a case passed only after it had failed.")
    ] = False,
    max_failures: Annotated[
        int | None, flags.option("--max-failures N", "Start no further run after N cases have failed.", min=1)
    ] = None,
    fail_fast: Annotated[bool, flags.option("--fail-fast, -x", "The same as `--max-failures 1`.")] = False,
    run_timeout: Annotated[
        float | None, flags.option("--run-timeout SECONDS", "Time limit of each run; the file may set a shorter one.")
    ] = None,
    junit: report_flags.JunitFlag = None,
    html: report_flags.HtmlFlag = None,
    report: report_flags.ReportFlag = None,
    events: report_flags.EventsFlag = None,
    annotations: report_flags.AnnotationsFlag = None,
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
    trace: flags.TraceFlag = None,
    video: flags.VideoFlag = None,
    budget: flags.BudgetFlag = None,
    model_calls: flags.ModelCallsFlag = None,
    frozen: flags.FrozenFlag = False,
) -> None:
    """Run workflows, one after another or several at once. Their output goes to stdout, everything else to stderr.

    Of a folder and the folders below it, every YAML file with `version` and `nodes` is run, except those with `run: manual` and those that
    others use. All files, inputs and secrets are checked first: if one is wrong, no run starts. A case is one run to do: a file, or a file
    with the inputs of one row.

    A run that is killed or interrupted continues with `runops resume`, or with the same command if `--resume-if-exists` gave it a key. For
    several runs the exit code is the worst one, and stdout is a map of cases to outputs.
    """
    if fail_fast and max_failures is not None:
        raise UsageError(
            "usage", "`--fail-fast` and `--max-failures` contradict each other", fix="leave one of them out"
        )
    one = {"--fail-fast": fail_fast, "--max-failures": max_failures, "--retries": retries}
    many = {**one, "--rows": rows, "--shard": shard, "--last-failed": last_failed}
    _check_key(paths, key, [name for name, given in many.items() if given], allow_changed=allow_changed)
    settings: dict[str, Any] = {
        "headed": headed,
        "browser_mode": browser,
        "browser_engine": engine,
        "browser_url": browser_url,
        "keep_browser": keep_browser,
        "linger": linger,
        "run_timeout": run_timeout,
        "trace": trace,
        "video": video,
        "budget": budget,
        "model_calls": flags.model_calls(model_calls, frozen=frozen),
    }
    here = host.load(**settings)
    workers = _jobs(jobs)
    values = given_values.inputs(inputs or [], inputs_file)
    table = _table(rows, values)
    request = planning.Request(
        table=table,
        selection=selection.Selection(expression, tags or ()),
        shard=shards.read(shard) if shard is not None else None,
        durations=durations,
        last_failed=last_failed,
        looks_back=only_list or workers > 1,
    )
    found = collect.collect(paths)
    plan = planning.plan(found, request, here.reader)
    if only_list:
        raise typer.Exit(case_list.show(plan, as_json=as_json))
    logger.silence()
    reports = writing.Reports(
        composing.Composer(here.reader, whole=html is not None or report is not None),
        report_flags.files(junit=junit, html=html, report=report),
        report_flags.for_github(annotations),
    )
    lines = [event_lines.EventLines(events)] if events is not None else []
    runs = batch.Batch(
        found,
        plan,
        here,
        as_json=as_json,
        quiet=quiet,
        workers=workers,
        flags={name: value for name, value in settings.items() if value is not None},
        policy=policies.Policy(
            retries=retries, max_failures=1 if fail_fast else max_failures, fail_on_flaky=fail_on_flaky
        ),
        plain=len(paths) == 1 and not paths[0].is_dir() and table is None,
        reporters=[reports, *lines],
        listeners=lines,
        key=key,
        allow_changed=allow_changed,
        arguments=flags.arguments(ctx),
    )
    raise typer.Exit(runs.carry_out(values))


def _jobs(text: str) -> int:
    if text == "1":
        return 1
    from runtime.cli import parallel  # most commands have one worker

    return parallel.jobs(text)


def _table(file: Path | None, values: given_values.Given) -> cases.Rows | None:
    if file is None:
        return None
    table = cases.rows(file, given_values.content(file))
    # A value of `--inputs` is the default of a column; one of `-i` is meant for all cases.
    if twice := next((name for name in table.columns if values.typed(name)), None):
        said = f"the input `{twice}` is given by `-i` and by a column of {file}"
        raise UsageError("usage", said, fix="leave one of them out")
    return table


def _check_key(paths: Sequence[Path], key: str | None, many: Sequence[str], *, allow_changed: bool) -> None:
    if key is None:
        if allow_changed:
            fix = "give `--resume-if-exists KEY` too, or type `runops resume RUN --allow-changed`"
            raise UsageError("usage", "`--allow-changed` is for a run that is resumed", fix=fix)
        return
    if len(paths) != 1 or paths[0].is_dir():
        raise UsageError("usage", "a key has one run: `--resume-if-exists` takes one file", fix="name one file")
    if many:
        raise UsageError("usage", f"`{many[0]}` is for several runs, and a key has one", fix="leave it out")
