"""`python -m workflows.shop`: the shop without the `runops` command, from the standard library alone."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

from workflows.shop import opening
from workflows.shop.switches import Switch, SwitchError, read_switch


def main() -> int:
    """Serve the shop as the command line says; return the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m workflows.shop", description="The demo site of RunOps, on loopback."
    )
    parser.add_argument("--port", type=int, default=opening.PORT, help="0 picks a free one (default: %(default)s)")
    parser.add_argument("--db", type=Path, help="the file that keeps everything (default: a temporary one)")
    parser.add_argument(
        "--orders", type=_from(0), default=opening.ORDERS, help="how many orders a new file gets (default: %(default)s)"
    )
    parser.add_argument("--paid", type=_from(0), help="how many of them are paid from the start (default: a quarter)")
    parser.add_argument(
        "--page-size", type=_from(1), default=opening.PAGE_SIZE, help="orders on a page (default: %(default)s)"
    )
    parser.add_argument(
        "--password", default=os.environ.get("SHOP_PASSWORD", opening.DEMO_PASSWORD), help="of the user admin"
    )
    parser.add_argument(
        "--switch", type=_switch, action="append", default=[], metavar="JSON", help="let it misbehave from the start"
    )
    parser.add_argument("--quiet", action="store_true", help="no line per request on stderr")
    parser.add_argument("--until-eof", action="store_true", help="end when standard input closes")
    given = parser.parse_args()
    if given.until_eof:
        opening.end_at_eof()
    settings = opening.Settings(
        given.port,
        given.db,
        given.orders,
        given.paid,
        given.password,
        given.page_size,
        tuple(given.switch),
        given.quiet,
    )
    try:
        return opening.serve(settings, opening.announce)
    except opening.SetupError as error:
        sys.stderr.write(f"{error}\n")
        return 3


def _from(least: int) -> Callable[[str], int]:
    def number(text: str) -> int:
        if not text.isdecimal() or int(text) < least:
            raise argparse.ArgumentTypeError(f"{text} is not a whole number from {least}")
        return int(text)

    return number


def _switch(text: str) -> Switch:
    try:
        return read_switch(json.loads(text))
    except (SwitchError, ValueError) as error:
        raise argparse.ArgumentTypeError(str(error)) from error


if __name__ == "__main__":
    sys.exit(main())
