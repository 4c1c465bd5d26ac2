"""Our Chromium switches compared with those of the installed Playwright (`scripts/check_switches.py`)."""

from __future__ import annotations

import pytest

from scripts import check_switches

DRIVER = check_switches.DRIVER.read_text(encoding="utf-8")


def test_they_are_those_of_the_installed_playwright() -> None:
    """The switches equal the installed Playwright's, except for the listed differences."""
    assert check_switches.differences(DRIVER) == []


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ('"--disable-hang-monitor",', '"--disable-hang-monitor", "--new",', "--new: Playwright has it, RunOps has not"),
        ('"--disable-hang-monitor",', "", "--disable-hang-monitor: RunOps has it, Playwright has not"),
        ('"PaintHolding",', '"PaintHolding", "Fresh",', "--disable-features=Fresh: Playwright has it, RunOps has not"),
        ('"--force-color-profile=srgb"', '"--force-color-profile=p3"', "--force-color-profile=p3: Playwright has it"),
        ('"--hide-scrollbars",', "", "--hide-scrollbars: RunOps has it, Playwright has not"),
        ('"--disable-edgeupdater",', "", "--disable-edgeupdater: stands in THEIRS, and Playwright has it no more"),
        ('"--disable-extensions",', '"--disable-quic",', "--disable-quic: stands in OURS, and Playwright has it too"),
        ("disabledFeatures = [", "disabledFeatures = list([", "does not list its switches any more"),
    ],
)
def test_an_update_that_changes_one_is_refused(before: str, after: str, message: str) -> None:
    """A new, removed, changed or moved switch, and an unreadable list, are reported."""
    assert before in DRIVER
    assert any(message in each for each in check_switches.differences(DRIVER.replace(before, after)))
