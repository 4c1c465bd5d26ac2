"""The supported Playwright versions, and the warnings about others."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from runtime import events, version
from runtime.cli import machine
from tests.rig import Rig

PROJECT = Path(__file__).parents[2] / "pyproject.toml"

VISIT = """
version: 1
nodes:
  - {id: shop, type: browser_action, action: goto, url: "http://shop.test/"}
"""


def required(name: str) -> Requirement:
    """The requirement of a package in pyproject.toml."""
    found = map(Requirement, tomllib.loads(PROJECT.read_text())["project"]["dependencies"])
    return next(each for each in found if each.name == name)


def test_the_tested_range_is_the_required_range() -> None:
    """The version range in the code is the one in pyproject.toml."""
    lowest, end = (".".join(map(str, each)) for each in version.TESTED)
    assert str(required("playwright").specifier) == f"<{end},>={lowest}"


@pytest.mark.parametrize("name", ["playwright", "jinja2", "typer", "rich"])
def test_packages_with_private_names_in_use_have_an_upper_bound(name: str) -> None:
    """Packages whose internals or output we depend on have an upper version bound."""
    assert any(each.operator == "<" for each in required(name).specifier)


@pytest.mark.parametrize(
    ("installed", "tested"),
    [("1.65.0", True), ("1.65.2", True), ("1.64.9", False), ("1.66.0", False), ("2.0", False), ("1.66.0b1", False)],
)
def test_doctor_notes_an_untested_version(installed: str, tested: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Doctor notes an untested version and names the one to install."""
    monkeypatch.setattr(version, "playwright", lambda: installed)
    check = machine.playwright(None)
    assert check.state == ("ok" if tested else "note")
    assert installed in check.text
    assert check.fix == (None if tested else "pip install 'playwright>=1.65,<1.66'")


@pytest.mark.parametrize(("installed", "words"), [("1.66.1", 1), ("1.65.9", 0)])
async def test_the_first_browser_of_a_process_warns(
    installed: str, words: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first browser of a process prints one line with the fix for an untested version; later runs print nothing."""
    monkeypatch.setattr(version, "playwright", lambda: installed)
    monkeypatch.setattr(version, "WARNED", set[str]())
    warnings: list[str] = []
    for name in ("first", "second"):
        rig = Rig(tmp_path / name, VISIT)
        assert (await rig.start()).status == "passed"
        warnings += [each.text for each in rig.told if isinstance(each, events.Said)]
    assert len(warnings) == words
    assert all(
        "1.66.1" in each and "pip install 'playwright>=1.65,<1.66'" in each and "\n" not in each for each in warnings
    )
