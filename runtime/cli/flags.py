"""Arguments of several commands."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import typer

from nodes.errors import UsageError
from runtime.system.engines import Engine


def option(form: str, text: str, **more: Any) -> Any:
    """Declare an option by its form in the help, as ``--input, -i NAME=VALUE``."""
    names, _, metavar = form.replace(", ", ",").partition(" ")
    return typer.Option(*names.split(","), metavar=metavar or None, help=text, **more)


def argument(metavar: str, text: str) -> Any:
    return typer.Argument(metavar=metavar, help=text)


InputFlag = Annotated[
    list[str] | None,
    option("--input, -i NAME=VALUE", "An input; `NAME=@FILE` reads it from a file (JSON, YAML, CSV, else text)."),
]
JsonFlag = Annotated[bool, option("--json", "Print the result as one JSON object.")]
HeadedFlag = Annotated[bool | None, option("--headed/--headless", "Show the browser's window, or not.")]
EngineFlag = Annotated[
    Engine | None,
    option("--engine", "Kind of browser; `firefox` and `webkit` have an isolated context only."),
]
BrowserUrlFlag = Annotated[
    str | None,
    option("--browser-url URL", "Work in an isolated context of the open browser at this DevTools address."),
]
KeepBrowserFlag = Annotated[
    bool | None, option("--keep-browser/--close-browser", "Leave the browser open after the run.")
]
LingerFlag = Annotated[float | None, option("--linger SECONDS", "Time for which the browser outlives a crash.")]
TraceFlag = Annotated[
    Literal["on", "off", "on-failure"] | None,
    option("--trace", "Keep a trace of the run, of none, or of a failed step and those before it."),
]
VideoFlag = Annotated[bool | None, option("--video/--no-video", "Keep a video of the run.")]
BudgetFlag = Annotated[
    str | None,
    option("--budget BUDGET", "Limits for models: one or more of money=0.50usd,tokens=200k,calls=40,time=5m."),
]
ModelCalls = Literal["live", "record", "replay", "none"]
ModelCallsFlag = Annotated[
    ModelCalls | None,
    option("--model-calls", "Ask models, ask and record them in a cassette, replay the cassette, or refuse to ask."),
]
FrozenFlag = Annotated[bool, option("--frozen", "Refuse a file that would ask a model: `--model-calls none`.")]
RunArgument = Annotated[str, argument("RUN", "The run: its id, a unique beginning or end of it, or `last`.")]
AllowChangedFlag = Annotated[
    bool, option("--allow-changed", "Continue with the changed file, if no change comes before a finished step.")
]
FromFlag = Annotated[
    str | None, option("--from STEP", "If the browser is gone: repeat nothing before this step, on the restored page.")
]


def take_over(what: str) -> Any:
    return option("--take-over", f"If a running process holds the {what}, end that process first.")


TakeOverFlag = Annotated[bool, take_over("run")]
QuietFlag = Annotated[bool, option("--quiet, -q", "Print nothing on stderr unless something goes wrong.")]


def model_calls(given: str | None, *, frozen: bool) -> str | None:
    """Combine the two flags. Raises UsageError ``usage`` if they contradict each other."""
    if frozen and given not in (None, "none"):
        said = f"`--frozen` and `--model-calls {given}` contradict each other"
        raise UsageError("usage", said, fix="leave one of them out")
    return "none" if frozen else given


def arguments(ctx: typer.Context) -> list[str]:
    return list(ctx.find_root().obj or ())
