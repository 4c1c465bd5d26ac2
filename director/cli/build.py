"""``runops build``: have a workflow built from a sentence."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from runtime.cli import flags

GoalArgument = Annotated[
    str | None,
    typer.Argument(
        metavar="GOAL",
        help="What the workflow is to do, in a sentence or two; with `--resume` a further word.",
        show_default=False,
    ),
]
EffectsFlag = Annotated[
    Literal["ask", "allow", "hold"] | None,
    typer.Option(
        "--effects",
        help="Deeds that change something on the site: ask for each, do them (sites on this machine only), or stop before them. By default `ask`; with `--yes` or in CI `hold`.",
        show_default=False,
    ),
]


def build(
    goal: GoalArgument = None,
    url: Annotated[
        str | None,
        typer.Option("--url", metavar="URL", help="Where the site is.", show_default=False),
    ] = None,
    save: Annotated[
        Path | None,
        typer.Option(
            "--save",
            metavar="FILE",
            help="Where the workflow is left; by default it is named after the goal.",
            show_default=False,
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Write over a file that is there.")] = False,
    inputs: flags.InputFlag = None,
    secrets: Annotated[
        list[str] | None,
        typer.Option(
            "--secret",
            metavar="NAME",
            help="A secret that it may use, once for each; its value comes from the environment or `.env`.",
        ),
    ] = None,
    effects: EffectsFlag = None,
    runs: Annotated[
        int | None,
        typer.Option(
            "--runs", metavar="N", min=1, max=10, help="How often it must pass; by default 2.", show_default=False
        ),
    ] = None,
    budget: flags.BudgetFlag = None,
    model: Annotated[
        str | None, typer.Option("--model", metavar="NAME", help="The model that builds.", show_default=False)
    ] = None,
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="Ask nobody: a question ends the command with exit code 4.")
    ] = False,
    resume: Annotated[
        str | None,
        typer.Option(
            "--resume",
            metavar="SESSION",
            help="Go on with a build: its id, a part of it, or `last`.",
            show_default=False,
        ),
    ] = None,
    answer: Annotated[
        str | None,
        typer.Option(
            "--answer",
            metavar="TEXT",
            help="The answer to the question with which it waits: a choice or its number, or a text.",
            show_default=False,
        ),
    ] = None,
    take_over: Annotated[
        bool, typer.Option("--take-over", help="Also where a living process holds the build: end that process first.")
    ] = False,
    as_json: flags.JsonFlag = False,
    quiet: flags.QuietFlag = False,
) -> None:
    """Have a model build a workflow: it looks at the site, writes nodes, tries them, and proves the whole by running it.

    The workflow's file goes to stdout, everything else to stderr. What is built runs without a model: `runops run FILE --frozen`.

    A build can be stopped at any moment, and `--resume` goes on with it.
    """
    from director.cli import building, ordering  # a help needs none of it
    from runtime import settings

    order = ordering.Order(
        goal=goal,
        url=url,
        save=save,
        force=force,
        inputs=tuple(inputs or ()),
        secrets=tuple(secrets or ()),
        effects=effects,
        runs=runs,
        resume=resume,
        answer=answer,
        take_over=take_over,
        yes=yes,
        model=model,
    )
    chosen = settings.load(budget=budget, model_director=model)
    building.carry_out(order, chosen, as_json=as_json, quiet=quiet)
