"""Parts of the pytest plugin that need no session of pytest."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from nodes.errors import SetupError
from nodes.values import Json
from runtime import events
from runtime.language import reader
from runtime.language.examples import Expected
from runtime.pytest_plugin import collecting, pages, running
from runtime.secrets import sources


def ended(status: Any = "passed", **fields: Any) -> events.RunEnded:
    return events.RunEnded("r", status, 0 if status == "passed" else 1, 0.1, **fields)


@pytest.mark.parametrize(
    ("expected", "how", "problem"),
    [
        ({}, ended(output=1), None),
        ({"output": {"a": [1]}}, ended(output={"a": [1]}), None),
        ({"output": None}, ended(output=1), "another output"),
        ({"status": "failed"}, ended("failed", error={"code": "timeout"}), None),
        ({"status": "failed", "error": "timeout"}, ended("failed", error={"code": "timeout"}), None),
        ({"status": "failed", "error": "timeout"}, ended("failed", error={"code": "gone"}), "another error"),
        ({"status": "failed", "error": "timeout"}, ended(), "another status and error"),
        ({"status": "paused", "error": "ask"}, ended("paused", question={"reason": "ask"}), None),
        ({"status": "paused"}, ended("failed", error={"code": "timeout"}), "another status"),
    ],
)
def test_a_test_tells_what_differs_from_its_expectation(
    expected: dict[str, Json], how: events.RunEnded, problem: str | None
) -> None:
    """It names what differs, with both values; it says nothing if nothing does."""
    told = collecting.unmet(Expected.model_validate(expected), how)
    assert told == problem if problem is None else told is not None and problem in told.split("\n")[0]


@pytest.mark.parametrize("status", ["failed", "paused", "interrupted", "out-of-budget"])
def test_a_run_that_does_not_pass_speaks_for_itself(status: str) -> None:
    """Where a pass is expected, the outcome of the run is the whole text, and the test fails with it."""
    assert collecting.unmet(Expected(), ended(status, error={"code": "timeout"})) == ""


def test_a_secret_of_the_test_comes_before_that_of_the_environment() -> None:
    """Others are still looked up there."""
    source = running.Layers({"A": "given", "D": ""}, sources.Given({"A": "of the environment", "B": "below", "D": "d"}))
    assert source.find(["A", "B", "C", "D"]) == {"A": "given", "B": "below", "C": "", "D": "d"}


@pytest.mark.parametrize(
    ("node", "page"),
    [
        ("{id: a, type: transform, expr: 1}", False),
        ("{id: a, type: transform, expr: 1, verify: [{expr: '{{ 1 == 1 }}'}]}", False),
        ("{id: a, type: transform, expr: 1, verify: [{text: done}]}", True),
        ("{id: a, type: group, nodes: [{id: b, type: browser_query, query: title}]}", True),
    ],
)
def test_a_page_is_opened_only_for_a_workflow_that_works_on_one(node: str, page: bool) -> None:
    """A rule may look at a page too."""
    assert running.works_on_page(reader.parse(f"version: 1\nnodes: [{node}]\n", "f.yaml")) is page


def test_work_apart_from_the_loop_of_this_thread_gives_its_answer_or_its_error() -> None:
    """It is done in a loop of its own."""

    async def gives() -> int:
        return 1

    async def raises() -> int:
        raise ValueError("no")

    assert pages.work_apart(gives()) == 1
    with pytest.raises(ValueError, match="no"):
        pages.work_apart(raises())


def test_yaml_that_is_no_workflow_with_tests_is_left_alone(tmp_path: Path) -> None:
    """Such as the values of a chart, a workflow without tests, and a file that is gone."""
    for text in ("a: 1\ntests: [1]\n", "version: 1\nnodes: []\n", "version: 1\n  nodes: [\ntests:\n"):
        file = tmp_path / "f.yaml"
        file.write_text(text)
        assert collecting.collector(file, None) is None  # pyright: ignore[reportArgumentType]
    assert collecting.collector(tmp_path / "none.yaml", None) is None  # pyright: ignore[reportArgumentType]


class Asked:
    """A request for fixtures, as pytest gives it."""

    def __init__(self, *plugins: str, **fixtures: object) -> None:
        self.fixturenames = [*fixtures]
        self._plugins = plugins
        self._fixtures = fixtures
        self.config = self.pluginmanager = self

    def hasplugin(self, name: str) -> bool:
        return name in self._plugins

    def getfixturevalue(self, name: str) -> object:
        return self._fixtures[name]


def test_without_pytest_playwright_there_is_no_page() -> None:
    """The error names the extra."""
    request: Any = Asked()
    with pytest.raises(SetupError, match="pytest-playwright") as refused:
        pages.page_of(request, None)
    assert refused.value.fix == "type: pip install pytest-playwright"
