"""Pages of pytest-playwright that workflows work on."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from playwright.sync_api import Error

from runtime.pytest_plugin import pages


class Tracing:
    """What is recorded of a context; its browser dies in the first pause."""

    def __init__(self) -> None:
        self.paused: list[str] = []

    def stop(self, path: Any) -> None:
        self.paused.append(str(path))

    def start(self, **_options: object) -> None:
        raise Error("Target page, context or browser has been closed")


def test_a_browser_that_dies_in_a_run_does_not_hide_the_end_of_the_run() -> None:
    """What was recorded before is kept for the test's folder, and the run's own error is raised."""
    recorder = SimpleNamespace(_pw_artifacts_folder=SimpleNamespace(name="artifacts"), _traces=[])
    config = SimpleNamespace(getoption=lambda _name: "retain-on-failure")
    request: Any = SimpleNamespace(
        config=config, getfixturevalue=lambda _name: recorder, node=SimpleNamespace(nodeid="test")
    )
    tracing = Tracing()
    with (
        pytest.raises(ValueError, match="how the run ended"),
        pages.untraced(request, SimpleNamespace(context=SimpleNamespace(tracing=tracing))),
    ):
        raise ValueError("how the run ended")
    assert tracing.paused == recorder._traces
