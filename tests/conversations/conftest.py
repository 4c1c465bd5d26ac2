"""What all tests of conversations share."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import builds_rig, reports
from tests.builds_rig import Builds
from tests.chats import Chats


@pytest.fixture(autouse=True)
def reports_fit_their_schemas(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have each report that a test prints checked against its schema."""
    reports.check_all(monkeypatch)


@pytest.fixture
def builds(tmp_path: Path) -> Iterator[Builds]:
    """A project with chats and builds whose model answers come from a test."""
    made = builds_rig.of(tmp_path)
    yield made
    made.close()


@pytest.fixture
def chats(tmp_path: Path) -> Iterator[Chats]:
    """Chat sessions in a project."""
    made = Chats(tmp_path)
    yield made
    made.close()
