"""Options that several commands of the Director share; those of all commands are in ``runtime.cli.flags``."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import typer


def option(name: str, words: str, metavar: str | None = None, **more: Any) -> Any:
    """Return an option without a default of its own; ``words`` are its help, ``name`` may have a short form after a comma."""
    return typer.Option(*name.split(", "), metavar=metavar, help=words, show_default=False, **more)


def resume(what: str) -> Any:
    return option("--resume", f"Continue with a {what}: its id, a part of it, or `last`.", "SESSION")


def model(who: str) -> Any:
    return option("--model", f"The model {who}.", "NAME")


def runs(what: str) -> Any:
    return option("--runs", what, "N", min=1, max=10)


def yes(what: str) -> Any:
    return option("--yes, -y", f"Ask nobody: {what}")


EffectsFlag = Annotated[
    Literal["ask", "allow", "hold"] | None,
    option(
        "--effects",
        "Actions that change something on the site: ask for each (yes, no, or `hold all` from then on), do them (sites on this machine only), or stop before them. By default `ask`; with `--yes` or in CI `hold`.",
    ),
]
