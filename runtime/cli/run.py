"""``runops run``: run a workflow."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from nodes.errors import UsageError
from runtime import running, settings
from runtime.cli import execution, flags


def run(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The workflow file.", show_default=False)],
    inputs: Annotated[
        list[str] | None,
        typer.Option("--input", "-i", metavar="NAME=VALUE", help="An input of the workflow; once for each."),
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
    """Run a workflow. Its output goes to stdout, everything else to stderr.

    A run that is killed or interrupted goes on with `runops resume`.
    """
    chosen = settings.load(headed=headed, browser_mode=browser, keep_browser=keep_browser, linger=linger)
    given = parse_inputs(inputs or [])
    execution.carry_out(
        lambda listener: running.start(file, given, chosen, listener), home=chosen.home, as_json=as_json, quiet=quiet
    )


def parse_inputs(pairs: list[str]) -> dict[str, str]:
    """``NAME=VALUE`` texts as a map. Raises UsageError ``bad-input`` for one without ``=``, and for a name that comes twice."""
    given: dict[str, str] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise UsageError("bad-input", f"`-i {pair}` names no input", mend="write `-i NAME=VALUE`")
        if name in given:
            raise UsageError("bad-input", f"the input `{name}` is given twice", mend="give each input once")
        given[name] = value
    return given
