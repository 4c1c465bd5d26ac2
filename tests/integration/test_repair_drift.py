"""The shop changes, a workflow fails and is repaired: a sample of the changes that `make drift` tries in full."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.drift import changes, trying


@pytest.fixture(scope="module")
async def browser() -> AsyncIterator[None]:
    """One browser for all tests here."""
    async with trying.one_browser():
        yield


@pytest.mark.usefixtures("browser")
@pytest.mark.drawn(1)
@pytest.mark.parametrize("case", changes.CASES, ids=lambda case: case.name)
async def test_a_change_is_classified_and_no_wrong_fix_passes(case: changes.Case, tmp_path: Path) -> None:
    """Each change is classified correctly. Where a right fix exists it passes its proof, and otherwise none does."""
    with trying.site(tmp_path) as (shop, proxy):
        tried = await trying.attempt(case, tmp_path / "project", shop, proxy)
        if case.flow in ("note", "status", "list"):
            assert shop.ledger("payment") == [], "nobody presses what is only guessed"
    assert tried.outcome.found.kind == case.kind, tried.outcome.found.why
    assert not tried.wrong, tried.patch
    assert tried.patched == (case.right is not None), tried.outcome.tried
