"""``runops try``: runs one node of a workflow alone."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from nodes import errors
from nodes.errors import UsageError
from runtime import events
from runtime.cli import console, flags, foreground_run
from runtime.cli import values as given_values
from runtime.language import reader
from runtime.runs import single_node, start
from runtime.workspace import host


def try_node(
    ctx: typer.Context,
    file: Annotated[Path, flags.argument("FILE", "The workflow file.")],
    node: Annotated[str, flags.argument("NODE", "The node: its id, or a path to it in a file that is used.")],
    inputs: flags.InputFlag = None,
    pins: Annotated[
        list[str] | None,
        flags.option("--set NAME=VALUE", "The value of a node, an item, `loop.index`, `vars.NAME` or `run.taken.ID`."),
    ] = None,
    url: Annotated[str | None, flags.option("--url URL", "Open this page first.")] = None,
    session: Annotated[
        str | None, flags.option("--session NAME", "Use the signed-in state that `save_session` saved by this name.")
    ] = None,
    dry_run: Annotated[
        bool, flags.option("--dry-run", "Stop before the action, and report what was found ready.")
    ] = False,
    as_json: flags.JsonFlag = False,
    quiet: flags.QuietFlag = False,
    headed: flags.HeadedFlag = None,
    keep_browser: flags.KeepBrowserFlag = None,
    trace: flags.TraceFlag = None,
    budget: flags.BudgetFlag = None,
    model_calls: flags.ModelCallsFlag = None,
    frozen: flags.FrozenFlag = False,
) -> None:
    """Run one node of a workflow by itself, with a value for everything that it reads. Prints its value as JSON.

    Missing values are listed as options to add; `--set NAME=@FILE` reads one from a file. Actions are really done, except with `--dry-run`. A
    container runs the nodes in it.
    """
    here = host.load(
        headed=headed,
        keep_browser=keep_browser,
        trace=trace,
        budget=budget,
        model_calls=flags.model_calls(model_calls, frozen=frozen),
    )
    values = given_values.inputs(inputs or [])
    loaded = reader.load(file)
    found = loaded.find(node)
    if found is None:
        known = [each for part in loaded.files() for each in part.index]
        close = errors.near(node.rpartition("/")[2], known)
        fix = f"did you mean `{close}`?" if close else f"it has {', '.join(list(loaded.index)[:20])}"
        raise UsageError("unknown-node", f"{file} has no node `{node}`", fix=fix)
    values.refuse_unknown([found.file])
    trial = single_node.Trial(
        found.file, found.node, given_values.pins(pins or []), url, session, loaded.workflow.secrets, dry_run
    )
    prepared = trial.prepare(values.of(found.file), here.secrets)
    if trial.actions and not dry_run and not quiet:
        actions = ", ".join(leaf.id for leaf in trial.actions)
        console.say(f"done on the real site: {actions} (not with --dry-run)")

    foreground_run.carry_out(
        lambda carrier, listener: carrier.begin(
            prepared, options=start.Options(part=trial), listener=lambda event: listener(without_alarm(event))
        ),
        here=here,
        as_json=as_json,
        quiet=quiet,
        trial=shlex.join(["runops", *flags.arguments(ctx)]),
    )


def without_alarm(event: events.Event) -> events.Event:
    """Convert the event of a withheld action to a message, because nothing is wrong."""
    if isinstance(event, events.StepFinished) and event.error is not None and event.error["code"] == "held":
        return events.Said(f"{event.path}: {event.error['message']}")
    return event
