"""Options of `runops prune` that select runs: ages, numbers, states."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runtime.cli import app
from runtime.display.text import size
from runtime.workspace import retention


@pytest.mark.parametrize("text", ["30", "d", "30x", "-1d", "30 days", "1m", "", "1d2h", "nan s"])
def test_an_invalid_time_is_answered_with_the_grammar(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    """An invalid time exits with code 2 and shows the grammar of times."""
    assert app.run(["prune", f"--older-than={text}"]) == 2
    assert "`30d`" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "seconds"), [("0s", 0), ("90s", 90), ("45min", 2700), ("12h", 43200), ("1.5d", 129600), (" 2w ", 1209600)]
)
def test_times_are_written_as_people_do(text: str, seconds: float) -> None:
    """A time is a number and a unit."""
    assert retention.span(text) == seconds


@pytest.mark.parametrize("state", ["running", "damaged", "gone"])
def test_only_final_states_can_be_selected(state: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Owned and damaged runs cannot be selected."""
    assert app.run(["prune", "--state", state]) == 2
    assert "interrupted" in capsys.readouterr().err


KNOWN = st.builds(
    retention.KnownConversation,
    run=st.integers(0, 10**9).map(lambda number: f"{number:026}"),
    state=st.sampled_from(["passed", "failed", "paused", "interrupted", "died"]),
    trial=st.booleans(),
    workflow=st.just("Pay"),
    ended=st.floats(0, 1000),
)


@settings(max_examples=60)
@given(
    found=st.lists(KNOWN, max_size=8, unique_by=lambda each: each.run).map(
        lambda some: sorted(some, key=lambda each: each.run)
    ),
    older=st.none() | st.floats(0, 1000),
    keep=st.none() | st.integers(0, 5),
    states=st.lists(st.sampled_from(["passed", "failed", "paused", "died"]), unique=True).map(tuple),
)
def test_deleted_runs_fit_every_option(
    found: list[retention.KnownConversation], older: float | None, keep: int | None, states: tuple[retention.Ended, ...]
) -> None:
    """Without options nothing is deleted; else exactly the runs with a selected state that are old enough and not among the youngest kept ones."""
    chosen = retention.Selection(older, keep, states).choose(found, now=1000.0)
    if older is None and keep is None and not states:
        assert chosen == []
        return
    fitting = [each for each in found if each.state in (states or ("passed",))]
    for each in found:
        younger = [other for other in fitting if other.run > each.run]
        old = older is None or 1000.0 - each.ended >= older
        assert (each in chosen) == (each in fitting and len(younger) >= (keep or 0) and old)


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0, "0 B"),
        (812, "812 B"),
        (999, "999 B"),
        (1000, "1.0 kB"),
        (99_949, "99.9 kB"),
        (99_950, "100 kB"),
        (999_499, "999 kB"),
        (999_500, "1.0 MB"),
        (10**16, "10000 TB"),
    ],
)
def test_amounts_read_as_people_say_them(number: int, text: str) -> None:
    """A size has at most three digits and a unit, except for the largest unit."""
    assert size(number) == text
