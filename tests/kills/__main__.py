"""Kill a checkout at every crash point, kill its resumes too, and let the shop's ledger judge.

A checkout is killed once in each of its parts (before its first order, in each order, after the last one), and each resume is killed, too. A crash
point that it skips, because a resume passed it before it died, is covered by another checkout.

python -m tests.kills [--seed N] [--jobs N] [--only N] [--mode MODE] [--point NAME]
"""

from __future__ import annotations

import argparse
import asyncio
import collections
import concurrent.futures
import dataclasses
import random
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests import browsers, light, sent, warm
from tests.kills import agents, asked, built, plan, said, talked, trial
from tests.resumes import __main__ as resumes
from tests.shop_process import Shop

REPORT_EVERY = 20.0
"""Seconds between two lines of progress."""

DRAWN = 12
"""Number of random crash points for variants of builds that are not killed at every one."""

MOST_ROUNDS = 9
"""The first crash point of a checkout is always reached, so that fewer are left after each round."""


@dataclasses.dataclass
class Bench:
    """The place of trials: one shop, and one process that forks commands."""

    folder: Path
    shop: Shop
    server: warm.Warm
    count: int = 0

    def trial(self, case: trial.Case) -> trial.Trial:
        """A checkout in its own folder."""
        self.count += 1
        return trial.Trial(case, f"k{self.count}", self.folder / f"k{self.count}", self.shop, self.server)


def main(arguments: Sequence[str] | None = None) -> int:
    """Kill, and print the results; 1 where a promise was broken, or a control was not detected."""
    parser = argparse.ArgumentParser(prog="python -m tests.kills", description=__doc__)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randint(1, 10**6), help="what is drawn")
    parser.add_argument("--jobs", type=int, default=4, help="checkouts at a time (default 4)")
    parser.add_argument("--only", type=int, help="so many of the checkouts, instead of all")
    parser.add_argument("--mode", choices=trial.MODES, help="only this mode")
    parser.add_argument("--point", help="only moments that have this in their name")
    chosen = parser.parse_args(arguments)
    say(f"seed {chosen.seed}")
    # Lines are flushed at once, also into a file.
    sys.stdout.reconfigure(line_buffering=True)  # pyright: ignore[reportAttributeAccessIssue]
    with (
        light.runs(),
        tempfile.TemporaryDirectory(prefix="runops-kills-") as folder,
        Shop.start(Path(folder)) as shop,
    ):
        server = warm.Warm()
        try:
            bench = Bench(Path(folder), shop, server)
            ways: dict[plan.Way, list[plan.Kill]] = {
                way: [each for each in moments if (chosen.point or "") in str(each)]
                for way, moments in plan.every(unkilled(bench), chosen.seed).items()
                if chosen.mode in (None, way[0])
            }
            reports = carry_out(bench, plan.cases(ways, chosen.seed)[: chosen.only], chosen.jobs)
            missed = plan.left(ways, reports)
            for number in range(MOST_ROUNDS if chosen.only is None else 0):
                if not any(missed.values()):
                    break
                reports += carry_out(bench, plan.cases(missed, chosen.seed + number + 1), chosen.jobs)
                missed = plan.left(missed, reports)
            controls = carry_out(bench, plan.CONTROLS, chosen.jobs)
            # Before the rest, so that no later failure hides it.
            code = conclude(reports, controls)
            whole = chosen.only is None and chosen.mode is None and chosen.point is None
            models_fine = not whole or all((
                send(bench), work(bench, chosen.seed, chosen.jobs), ask(chosen.seed),
                talk(bench, chosen.seed, chosen.jobs), build(bench, chosen.seed, chosen.jobs),
                restore(chosen.seed, chosen.jobs),
            ))  # fmt: skip
        finally:
            server.close()
    if chosen.only is None and any(missed.values()):
        say(
            f"never come to: {', '.join(f'{mode} {each}' for (mode, _how, _by), some in missed.items() for each in some)}"
        )
        return code or 1
    return code or int(not models_fine)


def send(bench: Bench) -> bool:
    """Send orders by every action to a site that answers badly. Prints a line for the site's record and one for the control; returns whether all passed."""
    return asyncio.run(_send(bench.folder / "sent"))


async def _send(folder: Path) -> bool:
    cases = sent.every()
    with sent.serve() as orders:
        async with browsers.opened(folder / "kept", mode="shared"):
            lived = await sent.live_all(cases, orders, folder / "cases")
        wrong = sent.wrong(lived)
        for case, what in wrong.items():
            say(f"{case}: {what}")
        doubled = sum(each.taken > 1 for each in lived)
        print(
            f"sent       {len(cases)} cases, {sum(len(each.statuses) - 1 for each in lived)} resumed, {doubled} doubled, {len(wrong)} not as they should be"
        )
        control = sent.Case("press", "late", verify=True, retry=True)
        with sent.without_proof():
            async with browsers.opened(folder / "control", mode="shared"):
                (caught,) = await sent.live_all([control], orders, folder / "broken")
    print(f"control without-proof  {f'caught: {caught.taken} orders' if caught.taken > 1 else 'NOT CAUGHT'}")
    return not wrong and caught.taken > 1


def ask(seed: int) -> bool:
    """Kill runs that ask a model, at every crash point in every variant. Prints a line for each; returns whether all passed."""
    fine = True
    for way in asked.WAYS:
        with tempfile.TemporaryDirectory(prefix="runops-asked-") as folder:
            reports = list(asked.examine(way, None, random.Random(seed), Path(folder)))
        print(f"{f'model {way}':<17} {asked.summary(reports)}")
        for each in reports:
            if each.wrong:
                fine = False
                say(asked.as_json(each))
    return fine


def work(bench: Bench, seed: int, jobs: int) -> bool:
    """Kill runs with a node of each type that asks a model, at every crash point. Prints a line for each variant; returns whether all passed."""
    fine = True
    for way, survives in agents.WAYS:
        place = agents.Bench(bench.folder, bench.shop, bench.server)
        kills = paused = wrong = 0
        for done in agents.examine(place, way, None, random.Random(seed), survives=survives, jobs=jobs):
            kills, paused = kills + len(done.kills), paused + done.paused
            if done.wrong:
                wrong += 1
                say(f"killed at {done.kills}: {done.wrong}")
        browser = "surviving" if survives else "gone"
        print(
            f"agent {way:<7} {browser:<9} {kills} kill points, {paused} times a person was asked, {wrong} not as they should be"
        )
        fine = fine and not wrong
    return fine


def talk(bench: Bench, seed: int, jobs: int) -> bool:
    """Kill sessions at every entry that they write and at every crash point. Prints a line for each variant and control; returns whether all passed."""
    place = talked.Bench(bench.folder, bench.shop, bench.server)
    talks = [*(talked.Case(way) for way in said.WAYS), talked.Case("streamed", power=True)]
    runs = [talked.Case("streamed", shop=True, survives=survives) for survives in (True, False)]
    fine = True
    for case in (*talks, *runs):
        kills = wrong = 0
        for done in talked.examine(place, case, None, random.Random(seed), jobs):
            kills += len(done.kills)
            if done.wrong:
                wrong += 1
                say(f"{done.case}, killed at {done.kills}: {done.wrong}")
        what = "power" if case.power else case.way
        if case.shop:
            what = "run, " + ("surviving" if case.survives else "gone")
        print(f"chat {what:<15} {kills} kill points, {wrong} not as they should be")
        fine = fine and not wrong
    alone = place.run(talks[0])
    for control in talked.CONTROLS:
        caught = talked.deviations(place, control, alone)
        print(f"control {control:<13} {f'caught: {caught[0]}' if caught else 'NOT CAUGHT'}")
        fine = fine and bool(caught)
    return fine


def build(bench: Bench, seed: int, jobs: int) -> bool:
    """Kill builds at every crash point where the page is faked, else at random ones. Prints a line for each variant and control; returns whether all passed."""
    place = built.Bench(bench.folder, bench.shop, bench.server)
    chance = random.Random(seed)
    drawn = [chance.randrange(10**6) for _ in range(DRAWN)]
    cases: list[tuple[str, built.Case, list[int] | None]] = [
        ("streamed", built.Case("streamed"), None),
        ("chained", built.Case("chained"), drawn),
        ("background", built.Case("background"), drawn),
        ("power", built.Case("streamed", power=True), drawn),
        ("shop", built.Case(page="shop"), drawn),
    ]
    fine = True
    for what, case, draws in cases:
        kills = wrong = 0
        for done in built.examine(place, case, draws, chance, jobs):
            kills += len(done.kills)
            if done.wrong:
                wrong += 1
                say(f"{done.case}, killed at {done.kills}: {done.wrong}")
        print(f"build {what:<14} {kills} kill points, {wrong} not as they should be")
        fine = fine and not wrong
    alone = place.run(built.Case())
    for control in built.CONTROLS:
        caught = built.deviations(place, control, alone)
        print(f"control {control:<13} {f'caught: {caught[0]}' if caught else 'NOT CAUGHT'}")
        fine = fine and bool(caught)
    return fine


def restore(seed: int, jobs: int) -> bool:
    """Kill workflows and their browser at every step, on pages that are hard to restore. Prints a line for each; returns whether all passed."""
    return resumes.main(["--seed", str(seed), "--jobs", str(jobs)]) == 0


def unkilled(bench: Bench) -> list[tuple[str, str, int]]:
    """The crash points that an uninterrupted checkout passes."""
    one = bench.trial(trial.Case("surviving", "confirm"))
    report = one.run()
    if not report.fine:
        raise SystemExit(f"a checkout that nobody kills does not pass: {report.wrong + report.lost + report.doubled}")
    return one.passed()


def carry_out(bench: Bench, cases: Sequence[trial.Case], jobs: int) -> list[trial.Report]:
    """Run the cases, some at a time, and report failures at once."""
    reports: list[trial.Report] = []
    begun = reported = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for report in _as_they_end(pool, bench, cases):
            reports.append(report)
            if not report.fine and not report.case.control:
                say(f"{report.case}\n   lost {report.lost}, doubled {report.doubled}, wrong {report.wrong}")
            if time.monotonic() - reported > REPORT_EVERY:
                reported = time.monotonic()
                left = (reported - begun) / len(reports) * (len(cases) - len(reports))
                say(
                    f"{len(reports)} of {len(cases)} checkouts, {sum(len(each.kills) for each in reports)} kills, {left / 60:.0f} min left"
                )
    return reports


def _as_they_end(
    pool: concurrent.futures.Executor, bench: Bench, cases: Sequence[trial.Case]
) -> Iterator[trial.Report]:
    running = [pool.submit(bench.trial(case).run) for case in cases]
    try:
        for each in concurrent.futures.as_completed(running):
            yield each.result()
    finally:
        # After an interruption only the current trials are awaited.
        pool.shutdown(wait=False, cancel_futures=True)


def conclude(reports: Sequence[trial.Report], controls: Sequence[trial.Report]) -> int:
    """Print a line per mode, one per control, and the sum; the exit code."""
    for mode in trial.MODES:
        if of_mode := [each for each in reports if each.case.mode == mode]:
            print(f"{mode:<10} {summary(of_mode)}")
    for by in plan.BY_KEYS:
        if paid_by := [each for each in reports if each.case.by == by]:
            print(f"by {by:<7} {summary(paid_by)}")
    hurt = [each for report in reports for each in report.reached if isinstance(each, trial.Held)]
    for victim in plan.VICTIMS:
        if times := sum(each.victim == victim for each in hurt):
            print(f"{victim:<10} {times} times killed with a request on its way")
    missed = 0
    for each in controls:
        caught = len(each.lost) + len(each.doubled)
        missed += not caught
        print(
            f"control {each.case.control:<13} {f'caught: {len(each.lost)} lost, {len(each.doubled)} doubled' if caught else f'NOT CAUGHT {each.wrong}'}"
        )
    points = collections.Counter(
        kill.partition(" ")[2].partition("#")[0].partition(" ")[0] for each in reports for kill in each.kills
    )
    say("killed at: " + ", ".join(f"{point} {count}" for point, count in points.most_common()))
    wrong = sum(bool(each.wrong) for each in reports)
    print(summary(reports) + (f", {wrong} not as they should be" if wrong else ""))
    return 1 if missed or any(not each.fine for each in reports) else 0


def summary(reports: Sequence[trial.Report]) -> str:
    """The results in one line."""
    kills, resumed, paused = (
        sum(numbers)
        for numbers in zip(*((len(each.kills), each.resumed, each.paused) for each in reports), strict=True)
    )
    lost, doubled = (sum(len(getattr(each, what)) for each in reports) for what in ("lost", "doubled"))
    return f"{kills} kill points, {resumed} resumed, {paused} paused as asked, {lost} lost, {doubled} doubled"


def say(text: str) -> None:
    """Print progress."""
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main())
