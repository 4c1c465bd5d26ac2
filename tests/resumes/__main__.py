"""Kill workflows with their browser at every crash point, on a site that is hard to restore, and print the results.

python -m tests.resumes [--case NAME] [--shape flat|group] [--at POINT] [--again N] [--list] [--only N] [--seed N] [--jobs N] [--mode own|shared] [--verbose]
"""

from __future__ import annotations

import argparse
import asyncio
import collections
import json
import random
import sys
import tempfile
import textwrap
from collections.abc import Sequence
from pathlib import Path

from tests import light
from tests.resumes import bench, cases, trial

MOST = 300
"""Most characters of a deviation, unless ``--verbose``."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Kill, and print the results; 1 where a resume was stuck or wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.resumes", description=__doc__)
    parser.add_argument("--case", choices=cases.BY_NAME, action="append", help="only this case; may be given again")
    parser.add_argument("--shape", choices=cases.SHAPES, help="only this shape")
    parser.add_argument("--at", help="only crash points that have this in their name")
    parser.add_argument(
        "--again", type=int, help="kill each resume too, at its crash point of this number (default: some, at random)"
    )
    parser.add_argument("--list", action="store_true", help="only list the crash points")
    parser.add_argument("--only", type=int, help="number of random crash points of each case and shape")
    parser.add_argument("--seed", type=int, default=1, help="seed of everything random")
    parser.add_argument("--jobs", type=int, default=4, help="runs at a time (default 4)")
    parser.add_argument(
        "--mode", choices=("own", "shared"), default="shared", help="own: a Chromium for each life, which takes longer"
    )
    parser.add_argument("--verbose", action="store_true", help="show the output and the log of each run")
    chosen = parser.parse_args(arguments)
    with light.runs(), tempfile.TemporaryDirectory(prefix="runops-resumes-") as folder:
        return asyncio.run(_examine(chosen, Path(folder)))


async def _examine(chosen: argparse.Namespace, folder: Path) -> int:
    fine = True
    async with bench.opened(folder, chosen.jobs, chosen.mode) as place:
        for case in cases.CASES:
            for shape in case.shapes:
                if (chosen.case and case.name not in chosen.case) or chosen.shape not in (None, shape):
                    continue
                if (why := bench.refused(case, shape)) is not None:
                    say(f"resumed {case.name:<14} {shape:<6} does not validate: {why}")
                    fine = False
                    continue
                alone = await place.alone(case, shape)
                if alone.report.verdict != "equal":
                    say(
                        f"resumed {case.name:<14} {shape:<6} not even left alone: {alone.report}\n"
                        + "\n".join(alone.said)
                    )
                    fine = False
                    continue
                moments = [each for each in bench.moments(alone) if (chosen.at or "") in each]
                if chosen.list:
                    say("\n".join(f"{case.name} {shape} {each}" for each in moments))
                    continue
                kills = bench.kills(
                    moments, random.Random(f"{chosen.seed} {case.name} {shape}"), chosen.only, chosen.again
                )
                done = await place.killed(case, shape, kills)
                fine = _conclude(case, shape, done, verbose=chosen.verbose) and fine
    return 0 if fine else 1


def _conclude(case: cases.Case, shape: cases.Shape, done: Sequence[bench.Done], *, verbose: bool) -> bool:
    """Print a line for the case, and one for each kind of deviation, or all of each if ``verbose``."""
    reports = [each.report for each in done]
    counts = collections.Counter(each.verdict for each in reports)
    reasons = collections.Counter(asked.split(" ")[0] for each in reports for asked in each.asked)
    asked = f" ({', '.join(f'{reason} {times}' for reason, times in reasons.items())})" if reasons else ""
    say(
        f"resumed {case.name:<14} {shape:<6} {len(reports):>3} kill points, {counts['equal']} equal, {counts['paused']} paused{asked}, "
        f"{counts['named']} named, {counts['stuck']} stuck, {counts['wrong']} wrong"
    )
    alike: dict[tuple[str, str], list[trial.Report]] = {}
    for each in reports:
        if each.verdict not in ("equal", "paused"):
            alike.setdefault((each.verdict, each.why), []).append(each)
    for (verdict, why), some in alike.items():
        say(
            f"    {verdict} {len(some)}: {why if verbose else textwrap.shorten(why, MOST)}\n        at {'; '.join(' + '.join(each.died_at) for each in some[:6])}"
        )
    if verbose:
        for each in done:
            say(f"\n{each.report}", *each.said, *each.log)
    return counts["stuck"] + counts["wrong"] == 0


def say(*lines: object) -> None:
    """Print at once."""
    for line in lines:
        sys.stdout.write(f"{line if isinstance(line, str) else json.dumps(line)}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
