"""``python -m tests.builds [NAME …] [--times 3] [--kills 3] [--programs BIN] [--apps DIR]``: runs recorded builds, frozen, on fresh data, and judges them by the data.

A build is in ``docs/builds/NAME/workflow.yaml``, or in the folder given by ``--from``. ``BIN`` is a folder with the programs `datasette` and `radicale`; ``DIR`` keeps the applications, which
are installed where they are missing. A run of an application is also killed with its browser around its first side effect, and resumed: it ends right, or pauses and names the step, and ends right once a person has answered by the data.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.builds import judges, sites
from tests.builds.apps.app import App, of, serving
from tests.builds.command import Command
from tests.builds.goal import Goal
from tests.builds.goals import GOALS
from tests.builds.kills import MOMENTS, Moment, killed

ROOT = Path(__file__).parents[2]


def main() -> int:
    """Judge every named build, or all in the folder; 1 where one is wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.builds")
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--kills", type=int, default=len(MOMENTS))
    parser.add_argument("--programs", type=Path, default=Path(sys.executable).parent)
    parser.add_argument("--apps", type=Path, default=Path(tempfile.gettempdir()) / "runops-apps")
    parser.add_argument("--from", dest="folder", type=Path, default=ROOT / "docs" / "builds")
    chosen = parser.parse_args()
    wrong = 0
    for name in chosen.names or GOALS:
        workflow = chosen.folder / name / "workflow.yaml"
        if not workflow.exists():
            print(f"{name}: there is no {workflow.relative_to(chosen.folder)}")
            wrong += 1
            continue
        for what, problems in _judged(GOALS[name], workflow, chosen):
            wrong += bool(problems)
            print(f"{name} {what}: {'; '.join(problems) or 'right'}", flush=True)
    return 1 if wrong else 0


def _judged(goal: Goal, workflow: Path, chosen: argparse.Namespace) -> Iterator[tuple[str, list[str]]]:
    if goal.site == "app":
        yield from _on_app(goal, workflow, chosen)
        return
    for number in range(1, chosen.times + 1):
        yield str(number), once(goal, workflow, chosen.programs)


def once(goal: Goal, workflow: Path, programs: Path) -> list[str]:
    """The deviations of a frozen run of a workflow on a fresh site, and of a second one there, where that must change nothing."""
    with tempfile.TemporaryDirectory(prefix="runops-build-") as made:
        folder = Path(made)
        secrets = {name: sites.PASSWORDS[name] for name in goal.secrets}
        with sites.started(goal.site, folder / "site", programs) as (url, site):
            command = Command(folder, secrets)
            for _time in range(2 if goal.again else 1):
                before = judges.state(goal.name, site)
                ran = command.run(workflow, {"base_url": url, **goal.inputs})
                problem = ran.problem or ran.question
                problems = [problem] if problem else judges.judged(goal.name, site, ran.output, goal.inputs, before)
                if problems:
                    return problems
            return []


def _on_app(goal: Goal, workflow: Path, chosen: argparse.Namespace) -> Iterator[tuple[str, list[str]]]:
    """The deviations of each frozen run, and of each that was killed and resumed, on an application whose data is put back before it."""
    app, home, port = of(goal.name), chosen.apps.resolve() / goal.name, sites.free_port()
    with serving(app, home, port):
        for number in range(1, chosen.times + 1):
            yield str(number), _trial(app, home, port, workflow)
        for moment in MOMENTS[: chosen.kills] if goal.writes else ():
            yield f"killed ({moment})", _trial(app, home, port, workflow, moment)


def _trial(app: App, home: Path, port: int, workflow: Path, moment: Moment | None = None) -> list[str]:
    """The deviations of a run; of one that was killed, after it was resumed, and after a person answered its question by the data."""
    inputs = {"base_url": f"http://127.0.0.1:{port}", **app.GOAL.inputs}
    app.reset(home, port)
    before = app.state(home, port)
    with tempfile.TemporaryDirectory(prefix="runops-build-") as made:
        command = Command(Path(made), app.SECRETS)
        if moment is None:
            ran = command.run(workflow, inputs)
        elif (died := killed(command, command.words(workflow, inputs), moment)) is None:
            return ["it ended before its side effect"]
        else:
            ran = command.resume(died)
            if ran.question:
                print(f"  paused: {ran.question}", flush=True)
                ran = command.decide(died, "not-done" if app.state(home, port) == before else "done")
        if ran.question or ran.problem:
            return [ran.question or ran.problem]
        return list(app.judged(before, app.state(home, port), app.GOAL.inputs, ran.output))


if __name__ == "__main__":
    sys.exit(main())
