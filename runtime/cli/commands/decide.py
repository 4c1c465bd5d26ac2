"""``runops decide``: a person tells if an action happened."""

from __future__ import annotations

import asyncio
from typing import Annotated, Literal

import typer

from runtime.cli import console, flags, foreground_run
from runtime.runs.runtime import Runtime
from runtime.workspace import host, run_index


def decide(
    run: flags.RunArgument,
    verdict: Annotated[
        Literal["done", "not-done", "skip"],
        typer.Argument(
            metavar="VERDICT",
            help="Whether the action happened; `skip`: pass over the step.",
            show_default=False,
        ),
    ],
    only: Annotated[bool, typer.Option("--only", help="Write the answer down, and do not continue yet.")] = False,
    take_over: flags.TakeOverFlag = False,
    as_json: flags.JsonFlag = False,
    quiet: flags.QuietFlag = False,
    headed: flags.HeadedFlag = None,
    keep_browser: flags.KeepBrowserFlag = None,
    linger: flags.LingerFlag = None,
) -> None:
    """Answer the question with which a run paused, and continue.

    A run pauses where nobody can tell whether an action happened: it was killed in the middle of a click, or the answer was lost. Look at the
    site. `done`: it happened, and is not done again. `not-done`: it did not, and is done now. `skip`: continue without it.
    """
    here = host.load(headed=headed, keep_browser=keep_browser, linger=linger)
    run_id = run_index.find(here.kept, run)
    foreground_run.say_taken(asyncio.run(Runtime.of(here).write_decision(run_id, verdict, take_over=take_over)))
    if only:
        foreground_run.written_down(run_id, as_json=as_json, decided=verdict)
    else:
        console.say("the answer is written down")
        foreground_run.go_on(here, run_id, as_json=as_json, quiet=quiet)
