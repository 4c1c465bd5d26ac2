"""Arguments of several commands."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import typer

from nodes.errors import UsageError


def option(form: str, text: str, **more: Any) -> Any:
    """Declare an option by its form in the help, as ``--input, -i NAME=VALUE``."""
    names, _, metavar = form.replace(", ", ",").partition(" ")
    return typer.Option(*names.split(","), metavar=metavar or None, help=text, **more)


def argument(metavar: str, text: str) -> Any:
    return typer.Argument(metavar=metavar, help=text)


InputFlag = Annotated[
    list[str] | None,
    option(
        "--input, -i NAME=VALUE",
        "An input, once for each; `NAME=@FILE` takes it from a file (JSON, YAML, CSV, else text).",
    ),
]
JsonFlag = Annotated[bool, option("--json", "Print the result as one JSON object.")]
HeadedFlag = Annotated[bool | None, option("--headed/--headless", "Show the browser's window, or not.")]
KeepBrowserFlag = Annotated[
    bool | None, option("--keep-browser/--close-browser", "Leave the browser open when the run has ended.")
]
LingerFlag = Annotated[
    float | None, option("--linger SECONDS", "How long the browser waits for `runops resume` after a crash.")
]
BudgetFlag = Annotated[
    str | None,
    option(
        "--budget BUDGET", "What models may cost in all: money=0.50usd,tokens=200k,calls=40,time=5m, or some of these."
    ),
]
ModelCallsFlag = Annotated[
    Literal["live", "record", "replay", "none"] | None,
    option(
        "--model-calls",
        "`live`: models are asked; `record`: and a cassette is written; `replay`: it answers in their place; `none`: nobody asks.",
    ),
]
FrozenFlag = Annotated[bool, option("--frozen", "Refuse a file that would ask a model: `--model-calls none`.")]
RunArgument = Annotated[
    str, argument("RUN", "The run: its id, a beginning or an end of it that no other has, or `last`.")
]
AllowChangedFlag = Annotated[
    bool,
    option("--allow-changed", "Continue with the file as it is now, where no change comes before a step that is done."),
]

FromFlag = Annotated[
    str | None,
    option(
        "--from STEP",
        "Where the browser is gone: do nothing before this step again, and take the restored page as it is.",
    ),
]


def take_over(what: str) -> Any:
    return option("--take-over", f"Also where a living process holds the {what}: end that process first.")


TakeOverFlag = Annotated[bool, take_over("run")]
QuietFlag = Annotated[bool, option("--quiet, -q", "Say nothing on stderr unless something goes wrong.")]


def model_calls(given: str | None, *, frozen: bool) -> str | None:
    """Combine the two flags. Raises UsageError ``usage`` where they contradict each other."""
    if frozen and given not in (None, "none"):
        raise UsageError(
            "usage", f"`--frozen` and `--model-calls {given}` contradict each other", fix="leave one of them out"
        )
    return "none" if frozen else given


def arguments(ctx: typer.Context) -> list[str]:
    return list(ctx.find_root().obj or ())
