"""The terminal emulation that tests use."""

from __future__ import annotations

import pytest

from tests.terminal import Screen


@pytest.mark.parametrize("cut", ["\x1b", "\x1b[", "\x1b[2", "\x1b[1;3"])
def test_a_control_sequence_whose_end_was_thrown_away_hides_nothing(cut: str) -> None:
    """Ctrl-C may drop the end of a control sequence; the text after it is shown."""
    screen = Screen(80, 24)
    screen.feed(f"first{cut}")
    screen.feed("\x1b[2K\rlast\n")
    assert screen.shown == ["last", ""]


def test_a_control_sequence_may_come_in_two_parts() -> None:
    """A control sequence split between two feeds is applied."""
    screen = Screen(80, 24)
    screen.feed("first\r\nsecond\x1b[1")
    screen.feed("A\rlast ")
    assert screen.shown == ["last", "second"]
