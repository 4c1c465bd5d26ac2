"""Options that several commands of the Director share; those of all commands are in ``runtime.cli.flags``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from runtime.cli.flags import option


def resume(what: str) -> Any:
    return option("--resume SESSION", f"Continue with a {what}: its id, a part of it, or `last`.")


def model(who: str) -> Any:
    return option("--model NAME", f"The model {who}.")


def runs(what: str) -> Any:
    return option("--runs N", what, min=1, max=10, show_default=False)


def yes(what: str) -> Any:
    return option("--yes, -y", f"Do not ask: {what}")


StrategyFlag = Annotated[
    Literal["injected", "clean", "hybrid"] | None,
    option(
        "--strategy",
        "What each request contains of the state: all of it; nothing, there are tools for it; or the plan and a line of status.",
    ),
]
StoreFlag = Annotated[
    bool | None,
    option(
        "--store/--no-store",
        "Let the provider store requests, so that only what is new is sent, or not (the setting `model_store`).",
    ),
]
MaxOutputFlag = Annotated[
    int | None, option("--max-output TOKENS", "Of one answer, reasoning included, at the most.", min=16)
]
UrlFlag = Annotated[str | None, option("--url URL", "Where the site is.")]
SaveFlag = Annotated[
    Path | None, option("--save FILE", "Where the workflow is left; by default it is named after the goal.")
]
ForceFlag = Annotated[bool, option("--force", "Write over a file that is there.")]
SecretFlag = Annotated[
    list[str] | None,
    option("--secret NAME", "A secret that it may use, once for each; its value comes from the environment or `.env`."),
]
ResetFlag = Annotated[
    str | None,
    option(
        "--reset CMD",
        "A shell command that puts the site's data back before each whole run (the setting `reset`); empty: none.",
    ),
]
EffectsFlag = Annotated[
    Literal["ask", "allow", "hold"] | None,
    option(
        "--effects",
        "Actions that change something on the site: ask for each (yes, no, or `hold all` from then on), do them (sites on this machine only), or stop before them. By default `ask`; with `--yes` or in CI `hold`.",
    ),
]
