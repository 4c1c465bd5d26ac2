"""``runops build``: builds a workflow from a sentence."""

from __future__ import annotations

from typing import Annotated

from director.cli import flags as own
from runtime.cli import flags

GoalArgument = Annotated[
    str | None,
    flags.argument("GOAL", "What the workflow is to do, in a sentence or two; with `--resume` a further word."),
]


def build(
    goal: GoalArgument = None,
    url: own.UrlFlag = None,
    save: own.SaveFlag = None,
    force: own.ForceFlag = False,
    inputs: flags.InputFlag = None,
    secrets: own.SecretFlag = None,
    effects: own.EffectsFlag = None,
    reset: own.ResetFlag = None,
    runs: Annotated[int | None, own.runs("How often it must pass; by default 2.")] = None,
    budget: flags.BudgetFlag = None,
    model: Annotated[str | None, own.model("that builds")] = None,
    strategy: own.StrategyFlag = None,
    store: own.StoreFlag = None,
    max_output: own.MaxOutputFlag = None,
    yes: Annotated[bool, own.yes("a question ends the command with exit code 4.")] = False,
    resume: Annotated[str | None, own.resume("build")] = None,
    answer: Annotated[
        str | None,
        flags.option(
            "--answer TEXT", "The answer to the question with which it waits: a choice or its number, or a text."
        ),
    ] = None,
    take_over: Annotated[bool, flags.take_over("build")] = False,
    as_json: flags.JsonFlag = False,
    quiet: flags.QuietFlag = False,
) -> None:
    """Have a model build a workflow: it looks at the site, writes nodes, tries them, and proves the whole by running it.

    The workflow's file goes to stdout, everything else to stderr. What is built runs without a model: `runops run FILE --frozen`.

    A build can be stopped at any moment, and `--resume` continues with it.
    """
    from director.cli.builds import foreground, options  # not needed for a help text
    from runtime.workspace import host

    order = options.BuildOrder(
        goal=goal,
        url=url,
        save=save,
        force=force,
        inputs=tuple(inputs or ()),
        secrets=tuple(secrets or ()),
        effects=effects,
        reset=reset,
        runs=runs,
        resume=resume,
        answer=answer,
        take_over=take_over,
        yes=yes,
        model=model,
        strategy=strategy,
        store=store,
        max_output=max_output,
    )
    here = host.load(budget=budget, model_director=model, model_store=store, session_max_output=max_output, reset=reset)
    foreground.carry_out(order, here, as_json=as_json, quiet=quiet)
