"""``python -m tests.builds [NAME …] [--times 3] [--programs BIN]``: runs recorded builds, frozen, on fresh data, and judges them by the data.

A build is in ``docs/builds/NAME/workflow.yaml``, or in the folder given by ``--from``. ``BIN`` is a folder with the programs `datasette` and `radicale`.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from nodes.values import Json
from tests.builds import judges, sites
from tests.builds.goal import Goal
from tests.builds.goals import GOALS

ROOT = Path(__file__).parents[2]
RUN_SECONDS = 300


def main() -> int:
    """Judge every named build, or all in the folder; 1 where one is wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.builds")
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--programs", type=Path, default=Path(sys.executable).parent)
    parser.add_argument("--from", dest="folder", type=Path, default=ROOT / "docs" / "builds")
    chosen = parser.parse_args()
    wrong = 0
    for name in chosen.names or GOALS:
        workflow = chosen.folder / name / "workflow.yaml"
        if not workflow.exists():
            print(f"{name}: there is no {workflow.relative_to(chosen.folder)}")
            wrong += 1
            continue
        for number in range(1, chosen.times + 1):
            problems = once(GOALS[name], workflow, chosen.programs)
            wrong += bool(problems)
            print(f"{name} {number}: {'; '.join(problems) or 'right'}", flush=True)
    return 1 if wrong else 0


def once(goal: Goal, workflow: Path, programs: Path) -> list[str]:
    """The deviations of a frozen run of a workflow on a fresh site, and of a second one there, where that must change nothing."""
    with tempfile.TemporaryDirectory(prefix="runops-build-") as made:
        folder = Path(made)
        with sites.started(goal.site, folder / "site", programs) as (url, site):
            for _time in range(2 if goal.again else 1):
                before = judges.state(goal.name, site)
                ran = _run(goal, workflow, url, folder)
                problems = (
                    [ran]
                    if isinstance(ran, str)
                    else judges.judged(goal.name, site, ran["output"], goal.inputs, before)
                )
                if problems:
                    return problems
            return []


def _run(goal: Goal, workflow: Path, url: str, folder: Path) -> dict[str, Json] | str:
    """The result of the command, or its error."""
    given = {"base_url": url, **goal.inputs}
    pairs = [part for name, value in given.items() for part in ("-i", f"{name}={value}")]
    command = [str(Path(sys.executable).parent / "runops"), "run", str(workflow), "--frozen", "--json", *pairs]
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("RUNOPS_")},
        "RUNOPS_HOME": str(folder / ".runops"),
        **{name: sites.PASSWORDS[name] for name in goal.secrets},
    }
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=RUN_SECONDS, check=False
    )
    if done.returncode:
        return f"exit {done.returncode}: {done.stderr.strip()[-1500:]}"
    return json.loads(done.stdout)["runs"][0]


if __name__ == "__main__":
    sys.exit(main())
