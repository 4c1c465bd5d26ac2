"""`runops demo-site`: the shop as a subcommand. The only module here that knows typer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from workflows.shop import opening
from workflows.shop.switches import Switch, SwitchError, read_switch


def demo_site(
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port on 127.0.0.1; 0 picks a free one.")] = opening.PORT,
    db: Annotated[
        Path | None, typer.Option(dir_okay=False, help="File that keeps everything; by default a temporary one.")
    ] = None,
    orders: Annotated[int, typer.Option(min=0, max=100_000, help="How many orders a new file gets.")] = opening.ORDERS,
    paid: Annotated[
        int | None, typer.Option(min=0, help="How many of them are paid from the start; by default a quarter.")
    ] = None,
    page_size: Annotated[int, typer.Option(min=1, help="Orders on a page of the list.")] = opening.PAGE_SIZE,
    password: Annotated[
        str, typer.Option(envvar="SHOP_PASSWORD", help="Password of the user admin.")
    ] = opening.DEMO_PASSWORD,
    switch: Annotated[
        list[str] | None,
        typer.Option(metavar="JSON", help="Let it misbehave, as told above; may be given again."),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="No line per request on stderr.")] = False,
) -> None:
    """Open a small shop on this machine to try workflows on (user admin, password correct-horse).

    Ctrl-C or SIGTERM ends it. Exit code 3: the port or the file cannot be had.

    A `--switch` has a `kind`, and says to which requests it happens:

    \b
      delay   the answer comes `ms` milliseconds later
      hold    it waits until released (POST /_release)
      break   HTTP 500, and the request is not carried out
      drop    the request is carried out, and its answer is lost
      logout  all sessions end just before it

    \b
      path    expression for the whole path; by default any
      method  GET or POST; by default any
      skip    how many matching requests pass first; by default 0
      times   how many it then takes; by default 1, null for all
      moment  of delay and hold: before (the default) or after the
              request is carried out

    The third payment takes three seconds:

    \b
      --switch '{"kind":"delay","path":"/orders/.*/pay","method":"POST",
                 "ms":3000,"skip":2,"times":1}'
    """  # noqa: D301 — click reads the backspace as "keep these lines"
    switches = tuple(map(_switch, switch or ()))
    settings = opening.Settings(port, db, orders, paid, password, page_size, switches, quiet)
    try:
        code = opening.serve(settings, opening.announce)
    except opening.SetupError as error:
        typer.echo(str(error), err=True)
        code = 3
    raise typer.Exit(code)


def _switch(text: str) -> Switch:
    try:
        return read_switch(json.loads(text))
    except (SwitchError, ValueError) as error:
        raise typer.BadParameter(f"{error}", param_hint="--switch") from error
