"""Recorded builds once more: a script gives the recorded answers, through the whole Director, on a fresh site."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from nodes.values import Json
from runtime.testing import scripted_model
from tests import builds_rig, command
from tests.builds import judges, recording, sites
from tests.builds.goals import GOALS

ROOT = Path(__file__).parents[2]
RECORDS = ROOT / "docs" / "builds"

REPLAYED = ("shop-open-orders", "shop-triage", "django-vendor")
"""Builds that need no programs beyond those of the tests."""

FEW = 14
"""Number of orders in the shop: fewer than the 27 at the recording, still with two open pages and each kind in the queue."""


def given(inputs: Mapping[str, Json]) -> list[str]:
    """Inputs as arguments of the command."""
    return [part for name, value in inputs.items() for part in ("-i", f"{name}={value}")]


def answers(name: str, url: str) -> Iterator[scripted_model.Answer]:
    """The recorded answers in order, adapted to this address."""
    text = (RECORDS / name / "answers.json").read_text()
    for answer in json.loads(text.replace(recording.HERE, url)):
        calls = [scripted_model.call(each["name"], each["arguments"]) for each in answer.get("calls") or ()]
        yield sum(calls[1:], calls[0]) if calls else scripted_model.text(answer["text"])


@pytest.mark.drawn(1)
@pytest.mark.parametrize("name", REPLAYED)
def test_a_recorded_build_is_rebuilt_from_its_answers(name: str, tmp_path: Path) -> None:
    """The recorded answers lead to an accepted `finish` in no more requests, and the new file does the same as the recorded one."""
    goal = GOALS[name]
    builds = builds_rig.of(tmp_path)
    with sites.started(goal.site, tmp_path / "site", Path(), orders=FEW) as (url, _site):
        secrets = {key: sites.PASSWORDS[key] for key in goal.secrets}
        said = list(answers(name, url))
        arguments = ["--url", f"{url}{goal.path}", "--save", "built.yaml", "--effects", goal.effects, "--runs", "1"]
        arguments += [part for key in goal.secrets for part in ("--secret", key)]
        try:
            done, result = builds.built(
                said, *arguments, *given(goal.inputs), goal=goal.goal, RUNOPS_STEP_TIMEOUT="5", **secrets
            )
            assert (done.returncode, result["status"]) == (0, "done"), done.stderr[-3000:]
            assert len(builds.asked) <= len(said), "what made its builder stumble may be fixed by now"
        finally:
            builds.close()
    built, record = (
        yaml.safe_load(each.read_text()) for each in (tmp_path / "built.yaml", RECORDS / name / "workflow.yaml")
    )
    assert (built["nodes"], built["output"]) == (record["nodes"], record["output"])


@pytest.mark.drawn(1)
@pytest.mark.parametrize("name", [name for name, goal in GOALS.items() if goal.site in ("shop", "django")])
def test_the_data_that_a_recorded_build_leaves_is_right(name: str, tmp_path: Path) -> None:
    """The recorded workflow runs without a model and leaves the right data on a fresh site, also after a second run where one must change nothing."""
    goal = GOALS[name]
    project = command.Project(tmp_path, **{key: sites.PASSWORDS[key] for key in goal.secrets})
    with sites.started(goal.site, tmp_path / "site", Path(), orders=FEW) as (url, site):
        for _time in range(2 if goal.again else 1):
            before = judges.state(name, site)
            asked = ["run", str(RECORDS / name / "workflow.yaml"), "--frozen", "--json"]
            ran = project.runops(*asked, *given({"base_url": url, **goal.inputs}), seconds=120)
            assert ran.returncode == 0, ran.stderr[-3000:]
            assert judges.judged(name, site, json.loads(ran.stdout)["runs"][0]["output"], goal.inputs, before) == []


@pytest.mark.parametrize("name", [each.name for each in sorted(RECORDS.iterdir()) if each.is_dir()])
def test_the_record_of_a_build_keeps_to_its_limits(name: str) -> None:
    """A recorded build keeps to the limits of its goal, has no protocol violation, and has all its files."""
    folder = RECORDS / name
    found: dict[str, Any] = json.loads((folder / "figures.json").read_text())
    assert not recording.over(found, GOALS[name])
    for each in ("goal.md", "workflow.yaml", "workflow.build.md", "answers.json"):
        assert (folder / each).stat().st_size > 0
    assert (folder / "goal.md").read_text().startswith(GOALS[name].goal)
