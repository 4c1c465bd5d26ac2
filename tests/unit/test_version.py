"""With which Playwright RunOps is tested, and what is told of another one."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from runtime import events, version
from runtime.cli.commands import doctor
from tests.rig import Rig

PROJECT = Path(__file__).parents[2] / "pyproject.toml"

VISIT = """
version: 1
nodes:
  - {id: shop, type: browser_action, action: goto, url: "http://shop.test/"}
"""


def required(name: str) -> Requirement:
    """What pyproject.toml says of a package."""
    found = map(Requirement, tomllib.loads(PROJECT.read_text())["project"]["dependencies"])
    return next(each for each in found if each.name == name)


def test_what_is_tested_is_what_is_required() -> None:
    """The range of versions in the code is the one that installers keep to."""
    lowest, end = (".".join(map(str, each)) for each in version.TESTED)
    assert str(required("playwright").specifier) == f"<{end},>={lowest}"


@pytest.mark.parametrize("name", ["playwright", "jinja2", "typer", "rich"])
def test_what_private_names_are_used_of_has_an_upper_bound(name: str) -> None:
    """No update comes by itself whose insides or whose output nobody here has seen."""
    assert any(each.operator == "<" for each in required(name).specifier)


@pytest.mark.parametrize(
    ("installed", "tested"),
    [("1.65.0", True), ("1.65.2", True), ("1.64.9", False), ("1.66.0", False), ("2.0", False), ("1.66.0b1", False)],
)
def test_a_version_outside_of_it_is_a_note_of_doctor(
    installed: str, tested: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It works perhaps, and doctor says what to install."""
    monkeypatch.setattr(version, "playwright", lambda: installed)
    check = doctor.playwright()
    assert check.state == ("ok" if tested else "note")
    assert installed in check.text
    assert check.fix == (None if tested else "pip install 'playwright>=1.65,<1.66'")


@pytest.mark.parametrize(("installed", "words"), [("1.66.1", 1), ("1.65.9", 0)])
async def test_the_first_browser_of_a_process_warns(
    installed: str, words: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One line with the fix, before the browser starts; the next run in the process says nothing more."""
    monkeypatch.setattr(version, "playwright", lambda: installed)
    monkeypatch.setattr(version, "WARNED", set[str]())
    told: list[str] = []
    for name in ("first", "second"):
        rig = Rig(tmp_path / name, VISIT)
        assert (await rig.start()).status == "passed"
        told += [each.text for each in rig.told if isinstance(each, events.Said)]
    assert len(told) == words
    assert all(
        "1.66.1" in each and "pip install 'playwright>=1.65,<1.66'" in each and "\n" not in each for each in told
    )
