"""The display of a session while it works."""

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
    rungs=(window.Reduction("pointers", "not needed"), window.Reduction("dropped", "saved", 110)),
)


def test_a_streamed_answer_is_shown_once() -> None:
    """A streamed answer is not written again when it is complete, and its line ends."""
    screen = Both()
    screen.asked("m", REPORT)
    screen.text("It fai")
    screen.text("led.")
    screen.answered("It failed.")
    assert screen.out.getvalue() == "It failed.\n"


def test_an_answer_without_a_stream_is_shown_in_full() -> None:
    """An answer from the log, or from a server that does not stream, is shown in full."""
    screen = Both()
    screen.answered("It failed.")
    assert screen.out.getvalue() == "It failed.\n"


def test_a_program_gets_complete_answers_only() -> None:
    """A partial answer that broke off and was requested again is not on stdout."""
    screen = Both(as_it_comes=False)
    screen.text("It f")
    screen.failed(ModelError("model-stream-broken", "it broke"))
    screen.text("It failed.")
    assert screen.out.getvalue() == ""
    screen.answered("It failed.")
    assert screen.out.getvalue() == "It failed.\n"


def test_a_broken_answer_has_its_own_line() -> None:
    """The next answer begins on a new line."""
    screen = Both()
    screen.text("It f")
    screen.failed(ModelError("model-stream-broken", "it broke"))
    screen.text("It failed.")
    screen.answered("It failed.")
    assert screen.out.getvalue() == "It f\nIt failed.\n"


def test_a_tool_call_is_one_line_with_its_arguments() -> None:
    """A failure has its reason, calls of delegates are indented, and control characters are escaped."""
    screen = Both()
    screen.called("1_get_workflow_nodes", "get_workflow_nodes", '{"which":"all"}')
    screen.done("1_get_workflow_nodes", "a\nlong\ntext", failed=False)
    screen.called("2_delegate/1_get_current_plan", "get_current_plan", "{}")
    screen.done("2_delegate/1_get_current_plan", "no \x1b[2Jplan", failed=True)
    assert screen.err.getvalue().splitlines() == [
        'ok  get_workflow_nodes {"which":"all"}',
        r"error    get_current_plan  no \x1b[2Jplan",
    ]


def test_quiet_shows_only_answers() -> None:
    """Quiet hides tools, the meter and changes."""
    screen = Both(quiet=True)
    screen.called("1_x", "x", "{}")
    screen.done("1_x", "y", failed=True)
    screen.changed("plan", "")
    screen.meter(None, REPORT)
    screen.answered("Yes.")
    assert (screen.out.getvalue(), screen.err.getvalue()) == ("Yes.\n", "")


def test_the_meter_shows_cost_and_window_use() -> None:
    """The meter is one line."""
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
def test_a_nearly_full_window_is_warned_about_once(overflow: window.Overflow, then: str) -> None:
    """The warning has the consequence and the fix, and repeats only after the window was less full."""
    screen = Both()
    for report in (FULL, FULL, REPORT, FULL):
        if report is FULL:
            screen.fills(report, overflow)
        screen.asked("m", report)
    line, fix = screen.err.getvalue().splitlines()[:2]
    assert line == f"--  the window is nearly full: 750 of 1,500 tokens (50 %); where there are more, the oldest {then}"
    assert "--compress-at" in fix
    assert screen.err.getvalue().count("nearly full") == len(screen.warnings) == 2
    assert screen.out.getvalue() == ""


def test_a_warning_counts_omitted_messages_too() -> None:
    """A window of few messages is never full, but the whole conversation may be."""
    screen = Both(quiet=True)
    screen.fills(dataclasses.replace(FULL, sections=(*FULL.sections, window.Section("thread", 50)), said=700), "prune")
    assert "1,450 of 1,500" in screen.warnings[0]
    assert screen.err.getvalue() == ""


def test_a_full_window_says_what_was_wanted_and_what_is_sent() -> None:
    """Bug 10: no warning tells of more than 100 %; what is lost is named with a limit that suffices."""
    screen = Both(quiet=True)
    lost = (window.Left("3 of the oldest", 2, "there is no room", 900, lost=True),)
    full = dataclasses.replace(FULL, said=2_000, left=lost, enough={"compress_at": 3_100})
    screen.fills(full, "prune")
    [warning] = screen.warnings
    told, _, lost_is = warning.partition("; ")
    assert told == "the window is full: 2,750 tokens were wanted, 750 of 1,500 tokens (50 %) are sent"
    assert lost_is == "not in the request: 3 of the oldest (900 tokens); enough is `--compress-at 3100`"


def test_a_failed_summary_is_told_once() -> None:
    """A summary that failed is a warning with its reason and with what is lost; one that was made is a line."""
    screen = Both()
    lost = (window.Left("3 of the oldest", 2, "there is no room", 900, lost=True),)
    for _request in range(2):
        screen.summed(
            window.Reduction("summary", "failed", why="model-refused: no"), dataclasses.replace(FULL, left=lost)
        )
    [warning] = screen.warnings
    assert (
        warning
        == "the oldest could not be summed up: model-refused: no; not in the request: 3 of the oldest (900 tokens)"
    )
    assert "`--compress-at N`" in screen.err.getvalue()
    screen.summed(window.Reduction("summary", "failed", why="the model said nothing"), FULL)
    assert "`--checkpoint-at N`" in screen.err.getvalue().splitlines()[-1]
    assert "compress-at" not in screen.err.getvalue().splitlines()[-1]
    screen.summed(window.Reduction("summary", "saved", 1_200), REPORT)
    assert screen.err.getvalue().splitlines()[-1] == "--  the oldest was summed up: 1,200 tokens fewer"


def test_a_window_report_has_shares_and_omissions() -> None:
    """Items left out for the same reason share a line with their number and size."""
    lines = "\n".join(report_text.lines(REPORT))
    assert "750 of 1,500 tokens" in lines
    for each in ("650", "43", "delegate", "its share is used up", "there is no room", "110"):
        assert each in lines


def test_no_name_moves_the_cursor() -> None:
    """Terminal control characters in the name of a workflow or file are not written to the terminal."""
    screen = Both()
    screen.say("chat  01JD  workflow \x1b]0;mine\x07\x1b[2J\rpassed (\x9b2J.yaml): valid")
    assert not set("\x1b\x07\r\x9b") & set(screen.err.getvalue())
    assert "workflow" in screen.err.getvalue()


def test_no_part_of_a_window_moves_the_cursor() -> None:
    """Control characters in a section name or in a server's error stay on their line of the report, escaped."""
    hostile = "shop.md: Prices\x1b]0;mine\x07\n\x1b[2J"
    report = dataclasses.replace(
        REPORT,
        sections=(window.Section(hostile, 1),),
        left=(window.Left(hostile, 0, "its share is used up", 1),),
        rungs=(window.Reduction("summary", "failed", why=hostile),),
    )
    lines = report_text.lines(report)
    assert not set("\x1b\x07\n") & set("".join(lines))
    assert len(lines) == 4
