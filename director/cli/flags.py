"""Options that several commands of the Director share; those of all commands are in ``runtime.cli.flags``."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import typer

EffectsFlag = Annotated[
    Literal["ask", "allow", "hold"] | None,
    typer.Option(
        "--effects",
        help="Actions that change something on the site: ask for each (yes, no, or `hold all` from then on), do them (sites on this machine only), or stop before them. By default `ask`; with `--yes` or in CI `hold`.",
        show_default=False,
    ),
]


def resume(what: str) -> Any:
    """Return ``--resume`` of ``what``."""
    return typer.Option(
        "--resume",
        metavar="SESSION",
        help=f"Continue with a {what}: its id, a part of it, or `last`.",
        show_default=False,
    )


def model(who: str) -> Any:
    """Return ``--model`` for ``who``."""
    return typer.Option("--model", metavar="NAME", help=f"The model {who}.", show_default=False)


def runs(what: str) -> Any:
    """Return ``--runs`` for ``what``."""
    return typer.Option("--runs", metavar="N", min=1, max=10, help=what, show_default=False)


def yes(what: str) -> Any:
    """Return ``--yes``; ``what`` happens instead of a question."""
    return typer.Option("--yes", "-y", help=f"Ask nobody: {what}")
