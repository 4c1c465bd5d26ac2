"""``runops verify``: proves a workflow by whole runs, without a model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from director.cli import flags as own
from runtime.cli import flags


def verify(
    ctx: typer.Context,
    file: Annotated[Path, flags.argument("WORKFLOW", "The workflow file.")],
    runs: Annotated[int, flags.option("--runs N", "How often it must pass.", min=1, max=10)] = 2,
    reset: own.ResetFlag = None,
    inputs: flags.InputFlag = None,
    inputs_file: Annotated[
        Path | None, flags.option("--inputs FILE", "A JSON or YAML map of inputs; `-i` wins.")
    ] = None,
    effects: Annotated[
        Literal["allow", "hold"],
        flags.option("--effects", "Actions that change something on the site: do them, or stop before the first."),
    ] = "allow",
    unproved: Annotated[
        list[str] | None,
        flags.option("--unproved NAME", "An action or output that may stay unproved or empty, once for each."),
    ] = None,
    write: Annotated[
        bool, flags.option("--write/--no-write", "Write the proof into the head of the file, or only print it.")
    ] = True,
    as_json: flags.JsonFlag = False,
    quiet: flags.QuietFlag = False,
    headed: flags.HeadedFlag = None,
    budget: flags.BudgetFlag = None,
    model_calls: flags.ModelCallsFlag = None,
    frozen: flags.FrozenFlag = False,
) -> None:
    """Prove a workflow as a build does, without a model: run it several times in fresh browsers, and say which of its actions each run did.

    The proof goes to stdout and, as comments, into the head of the file; everything else goes to stderr. The first run that does not pass ends it.

    `--reset` puts the site's data back before each run: then each run must do each action. Without it one run is enough for each, for the others may
    find it done. Exit code 1: a run failed, or an action stays unproved that `--unproved` does not name.
    """
    from director.cli.builds import verification  # not needed for a help text
    from runtime.cli import values
    from runtime.workspace import host

    here = host.load(
        reset=reset, headed=headed, budget=budget, model_calls=flags.model_calls(model_calls, frozen=frozen)
    )
    options = verification.VerifyOptions(
        file=file,
        inputs=values.inputs(inputs or [], inputs_file),
        runs=runs,
        hold=effects == "hold",
        unproved=tuple(unproved or ()),
        write=write,
        as_json=as_json,
        quiet=quiet,
        arguments=tuple(flags.arguments(ctx)),
    )
    raise typer.Exit(verification.Verification(options, here).carry_out())
