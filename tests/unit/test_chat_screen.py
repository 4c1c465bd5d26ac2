"""What is shown of a session while it is at work."""

from __future__ import annotations

import dataclasses
import io

import pytest

from director.cli import screen as cli_screen
from nodes.errors import ModelError
from runtime.context import report_text, window
from runtime.display.stream import Talk


class Both(cli_screen.Screen):
    """A screen on two texts."""

    def __init__(self, *, as_it_comes: bool = True, quiet: bool = False) -> None:
        self.out, self.err = io.StringIO(), io.StringIO()
        super().__init__(as_it_comes=as_it_comes, quiet=quiet, talk=Talk(self.err), answers=Talk(self.out))


REPORT = window.Report(
    limit=1_500,
    sections=(window.Section("system", 100, 0.10), window.Section("conversation", 650, 0.43, 3)),
    left=(
        window.Left("tool delegate", 0, "its share is used up", 300),
        window.Left("exchange", 4, "there is no room", 50),
        window.Left("exchange", 9, "there is no room", 60),
    ),
    rungs=(window.Rung("pointers", "not needed"), window.Rung("dropped", "saved", 110)),
)


def test_an_answer_that_comes_in_pieces_stands_there_once() -> None:
    """Where a person sees it come, it is not written again when it is whole; its line has an end."""
    screen = Both()
    screen.asked("m", REPORT)
    screen.text("It fai")
    screen.text("led.")
    screen.answered("It failed.")
    assert screen.out.getvalue() == "It failed.\n"


def test_an_answer_that_did_not_come_in_pieces_is_shown_whole() -> None:
    """An answer from the log, or of a server that does not stream."""
    screen = Both()
    screen.answered("It failed.")
    assert screen.out.getvalue() == "It failed.\n"


def test_a_program_gets_whole_answers_only() -> None:
    """What came of an answer that broke off, and was asked for again, is not on stdout."""
    screen = Both(as_it_comes=False)
    screen.text("It f")
    screen.failed(ModelError("model-stream-broken", "it broke"))
    screen.text("It failed.")
    assert screen.out.getvalue() == ""
    screen.answered("It failed.")
    assert screen.out.getvalue() == "It failed.\n"


def test_what_broke_off_stands_on_a_line_of_its_own() -> None:
    """What comes next does not continue after half a sentence."""
    screen = Both()
    screen.text("It f")
    screen.failed(ModelError("model-stream-broken", "it broke"))
    screen.text("It failed.")
    screen.answered("It failed.")
    assert screen.out.getvalue() == "It f\nIt failed.\n"


def test_a_tool_is_one_line_with_what_it_was_asked() -> None:
    """A failure says why; what a delegate did stands further in; nothing in it moves the cursor."""
    screen = Both()
    screen.called("1_get_workflow_nodes", "get_workflow_nodes", '{"which":"all"}')
    screen.done("1_get_workflow_nodes", "a\nlong\ntext", failed=False)
    screen.called("2_delegate/1_get_current_plan", "get_current_plan", "{}")
    screen.done("2_delegate/1_get_current_plan", "no \x1b[2Jplan", failed=True)
    assert screen.err.getvalue().splitlines() == [
        'ok  get_workflow_nodes {"which":"all"}',
        r"error    get_current_plan  no \x1b[2Jplan",
    ]


def test_quiet_says_nothing_beside_answers() -> None:
    """No tool, no meter, no change."""
    screen = Both(quiet=True)
    screen.called("1_x", "x", "{}")
    screen.done("1_x", "y", failed=True)
    screen.changed("plan", "")
    screen.meter(None, REPORT)
    screen.answered("Yes.")
    assert (screen.out.getvalue(), screen.err.getvalue()) == ("Yes.\n", "")


def test_the_meter_tells_the_cost_and_how_full_the_window_is() -> None:
    """On one line."""
    screen = Both()
    spent = {
        "requests": 1,
        "paid": 1,
        "input_tokens": 812,
        "output_tokens": 40,
        "dollars": "0.0002",
        "known_dollars": "0.0002",
    }
    screen.meter(spent, REPORT)
    assert screen.err.getvalue() == "--  1 request  812 tokens in  40 out  $0.0002  window 750 of 1,500 tokens (50 %)\n"


FULL = dataclasses.replace(REPORT, warn_at=700)


@pytest.mark.parametrize(("overflow", "then"), [("summarize", "is summed up"), ("prune", "is left out")])
def test_a_window_that_is_nearly_full_is_told_once(overflow: window.Overflow, then: str) -> None:
    """With what comes next and what may be done; again only after it was less, also where a further talk tells of it."""
    screen = Both()
    for report in (FULL, FULL, REPORT, FULL):
        if report is FULL:
            screen.fills(report, overflow)
        screen.asked("m", report)
    told, fix = screen.err.getvalue().splitlines()[:2]
    assert told == f"--  the window is nearly full: 750 of 1,500 tokens (50 %); where there are more, the oldest {then}"
    assert "--compress-at" in fix
    assert screen.err.getvalue().count("nearly full") == len(screen.warnings) == 2
    assert screen.out.getvalue() == ""


def test_a_warning_counts_what_is_left_out_too() -> None:
    """A window of few messages is never full; the conversation may be."""
    screen = Both(quiet=True)
    screen.fills(dataclasses.replace(FULL, sections=(*FULL.sections, window.Section("thread", 50)), said=700), "prune")
    assert "1,450 of 1,500" in screen.warnings[0]
    assert screen.err.getvalue() == ""


def test_a_window_is_told_with_its_shares_and_what_was_left_out() -> None:
    """What was left out for one reason stands on one line, with how often and how much."""
    told = "\n".join(report_text.lines(REPORT))
    assert "750 of 1,500 tokens" in told
    for each in ("650", "43", "delegate", "its share is used up", "there is no room", "110"):
        assert each in told


def test_no_name_that_is_told_moves_the_cursor() -> None:
    """The name of a workflow or of a file may hold what a terminal would obey: it is shown, and nothing else happens."""
    screen = Both()
    screen.say("chat  01JD  workflow \x1b]0;mine\x07\x1b[2J\rpassed (\x9b2J.yaml): valid")
    assert not set("\x1b\x07\r\x9b") & set(screen.err.getvalue())
    assert "workflow" in screen.err.getvalue()


def test_no_part_of_a_window_moves_the_cursor() -> None:
    """A section of somebody's Markdown, and what a server says of a summary that failed, are told on their lines."""
    hostile = "shop.md: Prices\x1b]0;mine\x07\n\x1b[2J"
    report = dataclasses.replace(
        REPORT,
        sections=(window.Section(hostile, 1),),
        left=(window.Left(hostile, 0, "its share is used up", 1),),
        rungs=(window.Rung("summary", "failed", why=hostile),),
    )
    told = report_text.lines(report)
    assert not set("\x1b\x07\n") & set("".join(told))
    assert len(told) == 4
