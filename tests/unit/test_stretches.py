"""A long stretch of a page that was shown, on any page, takes three lines."""

from __future__ import annotations

import pytest

from director.scouting import shown, stretches
from runtime.observation.observation import Observation
from tests.unit.test_shown import page, show

RUNS = [
    each
    for n in range(12)
    for each in (f'- link "run {n} of the nightly import" [ref=r{n}]', f'- button "Clear run {n}" [ref=b{n}]')
]
GRID = ["- region [ref=g1]:", *(f"  {each}" for each in RUNS)]
BEFORE = "… 23 lines as before"


def seen(path: str, *lines: str, prefix: str = "") -> Observation:
    return page(path, *GRID, *lines, frame=["- generic [ref=e1]:"], prefix=prefix)


def test_a_stretch_that_was_shown_on_another_page_takes_three_lines() -> None:
    """Of a long part that another page has too, its first two lines are shown, and the number of the others; what is beside it is shown whole."""
    told = stretches.Stretches()
    whole = seen("/one").render(5_000)
    told.note(whole, 1)
    other = seen("/two", '- heading "Run 4" [level=1] [ref=h1]', prefix="f2").render(5_000)
    less = told.without_known(other, 0)
    assert BEFORE in less
    assert 'heading "Run 4"' in less
    assert 'link "run 0 of the nightly import" [ref=f2r0]' in less
    assert "run 5" not in less


@pytest.mark.parametrize("change", ["new row", "other text", "field"])
def test_what_is_new_in_a_stretch_is_shown(change: str) -> None:
    """A new line within a stretch, a changed one and each field are shown, with what is not known as their neighbour."""
    told = stretches.Stretches()
    lines = seen("/one").render(5_000).split("\n")
    new = {"new row": 'link "run 99"', "other text": 'link "run 6 failed"', "field": 'textbox "Note" = "x"'}[change]
    at = next(number for number, each in enumerate(lines) if "run 6" in each)
    changed = [*lines[:at], new, *lines[at:]]
    told.note("\n".join(changed if change == "field" else lines), 1)
    assert new in told.without_known("\n".join(changed), 0)


def test_a_stretch_that_may_be_forgotten_is_shown_again() -> None:
    """Lines that were shown too long ago are no longer known."""
    told = stretches.Stretches()
    whole = seen("/one").render(5_000)
    told.note(whole, 1)
    assert told.without_known(whole, 2) == whole


def test_a_page_is_shown_without_known_stretches_until_it_is_asked_for() -> None:
    """A page without one of its stretches is none that the model was shown whole."""
    told = shown.Shown()
    show(told, seen("/one"))
    again = show(told, seen("/two", '- heading "Run 4" [level=1] [ref=h1]'))
    assert BEFORE in again
    assert shown.reminds(again)
    assert shown.AS_BEFORE not in told.page(seen("/two", '- heading "Run 4" [level=1] [ref=h1]', prefix="f3"), 5_000)
