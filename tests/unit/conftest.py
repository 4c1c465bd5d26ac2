"""What all unit tests share."""

import pytest

from tests import reports


@pytest.fixture(autouse=True)
def reports_fit_their_schemas(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have each report that a test prints checked against its schema."""
    reports.check_all(monkeypatch)
