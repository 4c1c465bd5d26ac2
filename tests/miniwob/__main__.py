"""``python -m tests.miniwob``: does each task by its workflow file, with several seeds; exit code 0 only if every episode was won.

``SEEDS="3 71"`` and ``TASKS="click-pie draw-line"`` choose; by default all tasks, with fresh seeds. With ``--wrong`` the files that do the
wrong thing are tried: they lose.
"""

from __future__ import annotations

import asyncio
import dataclasses
import os
import random
import statistics
import sys
import tempfile
import time
from pathlib import Path

from runtime import Runtime, Settings
from runtime.language.diagnostics import WorkflowInvalid
from tests.miniwob import site

HERE = Path(__file__).parent
FRESH = 5  # number of seeds for each task, if none are chosen
AT_ONCE = int(os.environ.get("JOBS", "3"))
SECONDS = 90.0  # limit of an episode
GAMES = ("button-delay", "moving-items", "simon-says")
"""Tasks that judge by tenths of a second, and are played with nothing beside them."""


@dataclasses.dataclass
class Episode:
    """One try of a task with one seed."""

    task: str
    seed: str
    seconds: float = 0.0
    reward: float | None = None
    """What the page gave; None if the episode did not end."""
    status: str = ""
    """How the run ended, with its error."""

    @property
    def won(self) -> bool:
        return self.reward == 1 and self.status == "passed"

    def line(self) -> str:
        """The episode, for a person who looks for the reason."""
        return f"    seed {self.seed}: reward {self.reward}, {self.status}"


async def play(runs: Runtime, judge: site.Judge, file: Path, episode: Episode) -> None:
    """Run the task's file, and note how the page judged it."""
    key, began = f"{episode.task}-{episode.seed}", time.monotonic()
    try:
        run = await runs.start(file, {"page": judge.page(episode.task, key, episode.seed)})
        async with asyncio.timeout(SECONDS):
            ended = await run.to_its_end()
        error = ended.error or {}
        at = f" at {ended.path}" if ended.path else ""
        episode.status = ended.status + (f"{at}: {error.get('code')}: {error.get('message')}" if error else "")
    except WorkflowInvalid as invalid:
        episode.status = "; ".join(str(each) for each in invalid.diagnostics)
    except TimeoutError:
        episode.status = f"not done within {SECONDS:.0f} s"
    episode.seconds = time.monotonic() - began
    episode.reward = judge.rewards.get(key)


async def main(*, wrong: bool) -> int:
    """Play all episodes, ``AT_ONCE`` at once, and then the games; print a line for each task."""
    files = HERE / "wrong" if wrong else HERE
    tasks = os.environ.get("TASKS", "").split() or sorted(each.stem for each in files.glob("*.yaml"))
    seeds = os.environ.get("SEEDS", "").split() or [str(random.randrange(10**6)) for _ in range(FRESH)]
    sys.stdout.write(f"seeds {' '.join(seeds)}\n\n{'task':<30} won    median\n")
    every: list[Episode] = []
    with site.served() as judge, tempfile.TemporaryDirectory() as home:
        async with Runtime(settings=Settings(home=Path(home), browser_mode="shared")) as runs:

            async def do(task: str, free: asyncio.Semaphore) -> None:
                episodes = [Episode(task, seed) for seed in seeds]
                for each in episodes:
                    async with free:
                        await play(runs, judge, files / f"{task}.yaml", each)
                won, took = sum(each.won for each in episodes), statistics.median(each.seconds for each in episodes)
                sys.stdout.write(f"{task:<30} {won}/{len(episodes)}  {took:6.1f} s\n")
                sys.stdout.write("".join(f"{each.line()}\n" for each in episodes if not each.won))
                sys.stdout.flush()
                every.extend(episodes)

            for games, at_once in ((False, AT_ONCE), (True, 1)):
                free = asyncio.Semaphore(at_once)
                async with asyncio.TaskGroup() as group:
                    for task in tasks:
                        if (task in GAMES) == games:
                            group.create_task(do(task, free))
    won = sum(each.won for each in every)
    sys.stdout.write(f"\n{len(tasks)} tasks, {len(every)} episodes, {won} passed\n")
    return 0 if every and won == len(every) else 1


if __name__ == "__main__":
    raise SystemExit(asyncio.run(main(wrong="--wrong" in sys.argv[1:])))
