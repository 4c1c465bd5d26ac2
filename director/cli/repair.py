"""``runops repair``: explains why a run failed, and proposes a fix."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from director.cli import flags as own
from runtime.cli import flags


def repair(
    file: Annotated[
        Path | None,
        flags.argument("WORKFLOW", "The workflow file; by default that of the run."),
    ] = None,
    run: Annotated[
        str, flags.option("--run RUN", "The run that failed: its id, a part of it that no other has, or `last`.")
    ] = "last",
    effects: own.EffectsFlag = None,
    apply: Annotated[
        bool, flags.option("--apply", "Write the fix into the file: the one that was proposed, if it still fits.")
    ] = False,
    yes: Annotated[bool, own.yes("what would be asked for is held; `--apply` takes a guess, too.")] = False,
    runs: Annotated[int, own.runs("How often the workflow must pass that a model has fixed; by default 2.")] = 2,
    budget: flags.BudgetFlag = None,
    model: Annotated[str | None, own.model("that looks further")] = None,
    no_model: Annotated[bool, flags.option("--no-model", "Ask no model, though one is set.")] = False,
    as_json: flags.JsonFlag = False,
    quiet: flags.QuietFlag = False,
    headed: flags.HeadedFlag = None,
) -> None:
    """Explain why a run failed, and propose a fix of the file, proved by continuing from before the step that failed.

    First the log, what the page showed, and one fresh look tell what it was: drift, a slow page, an overlay, signed out, changed data, an error of the site, a
    finding of the workflow. Only the first three have a fix in the file. The run itself is not touched: copies of it continue.

    Where no fix is proved so, and a model is set, a build begins with the file and what is known of the failure; `runops build --resume` continues with it.

    The patch goes to stdout, and is kept beside the run. Exit code 6: a fix is ready for review. 1: nothing in the file would fix it.
    """
    from director.cli.builds import repairs  # not needed for a help text
    from runtime.workspace import host

    options = repairs.RepairOptions(file, run, effects, apply, yes, runs, model, no_model)
    here = host.load(headed=headed)
    of_build = host.load(headed=headed, budget=budget, model_director=model)
    repairs.carry_out(options, here, of_build=of_build, as_json=as_json, quiet=quiet)
