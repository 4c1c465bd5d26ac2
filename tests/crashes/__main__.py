"""Search for an action that is done twice or lost: random workflows, killed at random points and resumed.

python -m tests.crashes SEED COUNT [--verbose]
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.crashes import flows, trial


def main(arguments: Sequence[str] | None = None) -> int:
    """Examine ``count`` flows from ``seed`` on; 1 where a promise was broken."""
    parser = argparse.ArgumentParser(prog="python -m tests.crashes", description=__doc__)
    parser.add_argument("seed", type=int, help="the first seed")
    parser.add_argument("count", type=int, nargs="?", default=1, help="number of flows")
    parser.add_argument("--verbose", action="store_true", help="show the workflow and its crash points")
    chosen = parser.parse_args(arguments)
    reports: list[trial.Report] = []
    for seed in range(chosen.seed, chosen.seed + chosen.count):
        with tempfile.TemporaryDirectory(prefix="runops-crash-") as folder:
            report = asyncio.run(trial.examine(seed, Path(folder)))
        reports.append(report)
        if chosen.verbose:
            flow = flows.Author(seed).write()
            print(flow.text, *(f"# {name}\n{text}" for name, text in flow.texts.items()), sep="\n")
            print(flow.faults, flow.listings, flow.whys)
            print(report)
        elif not report.fine:
            print(f"seed {seed}: lost {report.lost}, doubled {report.doubled}, wrong {report.wrong}\n   {report.kills}")
    kills = sum(len(each.kills) for each in reports)
    exact = sum(each.exact for each in reports)
    pauses = sum(each.pauses for each in reports)
    lost, doubled = (sum(len(getattr(each, what)) for each in reports) for what in ("lost", "doubled"))
    bad = sum(not each.fine for each in reports)
    print(
        f"{len(reports)} cases ({exact} exact), {kills} kills, {pauses} paused as asked, {lost} lost, {doubled} doubled"
        + (f", {bad} not as they should be" if bad else "")
    )
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
