"""Builds that were made by hand, once more: what was answered then is answered by a script, through the whole Director, on a fresh site."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from nodes.values import Json
from runtime.testing import scripted
from tests import builds_rig, command
from tests.builds import judges, recording, sites
from tests.builds.goals import GOALS, MOST_FAILED, MOST_REQUESTS, MOST_TOKENS

ROOT = Path(__file__).parents[2]
RECORDS = ROOT / "docs" / "builds"

REPLAYED = ("shop-open-orders", "shop-triage", "django-vendor")
"""Those that need no program but what the tests have."""


def answers(name: str, url: str) -> Iterator[scripted.Answer]:
    """What was answered, in order, as it is at this address."""
    text = (RECORDS / name / "answers.json").read_text()
    for answer in json.loads(text.replace(recording.HERE, url)):
        calls = [scripted.call(each["name"], each["arguments"]) for each in answer.get("calls") or ()]
        yield sum(calls[1:], calls[0]) if calls else scripted.text(answer["text"])


@pytest.mark.parametrize("name", REPLAYED)
def test_a_build_by_hand_is_built_again_from_its_answers(name: str, tmp_path: Path) -> None:
    """The same answers lead to an accepted `finish` in as many requests, and what they leave is right by the site's own data."""
    goal = GOALS[name]
    builds = builds_rig.of(tmp_path)
    with sites.started(goal.site, tmp_path / "site", Path()) as (url, site):
        given = [part for key, value in goal.inputs.items() for part in ("-i", f"{key}={value}")]
        given += [part for key in goal.secrets for part in ("--secret", key)]
        secrets = {key: sites.PASSWORDS[key] for key in goal.secrets}
        said = list(answers(name, url))
        arguments = ["--url", f"{url}{goal.path}", "--save", "built.yaml", "--effects", goal.effects, *given]
        try:
            done, told = builds.built(said, *arguments, goal=goal.goal, **secrets)
            assert (done.returncode, told["status"]) == (0, "done"), done.stderr[-3000:]
            assert len(builds.asked) == len(said)
        finally:
            builds.close()
    with sites.started(goal.site, tmp_path / "fresh", Path()) as (url, site):
        before = judges.state(name, site)
        assert judges.judged(name, site, _output(tmp_path, name, url), goal.inputs, before) == []


def _output(folder: Path, name: str, url: str) -> Json:
    """What a frozen run of the file yields that a build has left."""
    goal = GOALS[name]
    given = {"base_url": url, **goal.inputs}
    pairs = [part for key, value in given.items() for part in ("-i", f"{key}={value}")]
    secrets = {key: sites.PASSWORDS[key] for key in goal.secrets}
    ran = command.Project(folder, **secrets).runops("run", "built.yaml", "--frozen", "--json", *pairs, seconds=120)
    assert ran.returncode == 0, ran.stderr[-3000:]
    return json.loads(ran.stdout)["runs"][0]["output"]


@pytest.mark.parametrize("name", GOALS)
def test_the_record_of_a_build_keeps_to_its_limits(name: str) -> None:
    """25 requests, 150,000 input tokens, two calls that failed, and no request that broke the protocol; its files are all there."""
    folder = RECORDS / name
    found: dict[str, Any] = json.loads((folder / "figures.json").read_text())
    assert found["requests"] <= MOST_REQUESTS
    assert found["input_tokens"] <= MOST_TOKENS
    assert found["failed_calls"] <= MOST_FAILED
    assert found["violations"] == 0
    for each in ("goal.md", "workflow.yaml", "workflow.build.md", "answers.json"):
        assert (folder / each).stat().st_size > 0
    assert (folder / "goal.md").read_text().startswith(GOALS[name].goal)
