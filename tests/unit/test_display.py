"""Displays, driven by events that the tests create."""

import asyncio
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.text import Text

from runtime import events
from runtime.display import tree
from runtime.display.display import Display, Plain, choose
from runtime.display.progress import KEPT, Progress
from runtime.display.stream import Talk, coloured, kind_for
from runtime.display.text import cut, duration, fit, harmless, one_line, width_of

NASTY = st.text(
    alphabet=st.one_of(st.characters(), st.sampled_from("支払い👩‍👩‍👧\x1b[\u202e\u200d\ufe0f\n\t")),
    max_size=60,
)
SEGMENTS = st.sampled_from(["a", "b", "loop", "loop[#1/x]]", "loop[2]"])
PATHS = st.lists(SEGMENTS, min_size=1, max_size=4).map("/".join)
ERRORS = st.none() | st.builds(lambda text: {"code": "x", "message": text}, NASTY)
EVENTS = st.one_of(
    st.builds(events.RunStarted, NASTY, NASTY, st.booleans()),
    st.builds(events.StepStarted, PATHS, NASTY, NASTY, st.integers(0, 9), st.booleans(), st.integers(1, 3)),
    st.builds(events.StepWaiting, PATHS, NASTY),
    st.builds(events.LoopItem, PATHS, st.integers(1, 999), st.integers(1, 999), NASTY | st.none()),
    st.builds(
        events.StepFinished,
        PATHS,
        st.sampled_from(["ok", "error", "paused", "tolerated", "skipped", "recorded", "recovered"]),
        st.floats(0, 1e6),
        st.booleans(),
        ERRORS,
    ),
    st.builds(events.Said, NASTY),
)


class Clock:
    """A clock that the test advances."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Terminal(io.StringIO):
    """A stream that claims to be a terminal."""

    def isatty(self) -> bool:
        return True


class Broken(io.StringIO):
    def write(self, s: str) -> int:
        raise BrokenPipeError(32, "Broken pipe")


def leaf(path: str, summary: str = "click it", *, attempt: int = 1) -> events.StepStarted:
    return events.StepStarted(path, "browser_action", summary, path.count("/"), container=False, attempt=attempt)


def container(path: str, kind: str = "group") -> events.StepStarted:
    return events.StepStarted(path, kind, "", path.count("/"), container=True)


def ended(path: str, status: events.StepStatus = "ok", *, whole: bool = False, error: str = "") -> events.StepFinished:
    return events.StepFinished(path, status, 0.1, whole, {"message": error} if error else None)


def printed(display: Display, stream: io.StringIO, *happened: events.Event) -> list[str]:
    """The lines that the display prints for the events."""
    for event in happened:
        display(event)
    display.end()
    return stream.getvalue().splitlines()


@pytest.fixture
def plain() -> tuple[Plain, io.StringIO, Clock]:
    """A plain display, its output, and its clock."""
    stream, clock = io.StringIO(), Clock()
    return Plain(Talk(stream), clock), stream, clock


def texts(lines: list[Text]) -> list[str]:
    return [line.plain for line in lines]


@given(st.lists(EVENTS, max_size=60), st.integers(10, 120), st.integers(2, 30))
def test_the_tree_never_outgrows_the_terminal(happened: list[events.Event], width: int, height: int) -> None:
    """For any events, each line fits the width, the lines fit the height, and none contains a control character."""
    progress = Progress(Clock())
    for event in happened:
        progress(event)
    for lines, most in ((tree.live(progress, width, height), height), (tree.final(progress, width), tree.MOST_LEFT)):
        assert len(lines) <= most
        for line in lines:
            assert width_of(line.plain) <= width
            assert not set(line.plain) & {"\x1b", "\n", "\r", "\u202e", "\u200d"}


@given(st.lists(EVENTS, max_size=60))
def test_plain_prints_one_line_at_a_time(happened: list[events.Event]) -> None:
    """Text of a page or key can neither break a line nor move the cursor."""
    stream = io.StringIO()
    lines = printed(Plain(Talk(stream), Clock()), stream, *happened)
    assert "\x1b" not in stream.getvalue()
    assert len(lines) == stream.getvalue().count("\n")


@given(NASTY, st.integers(0, 40))
def test_cut_keeps_to_the_width(text: str, width: int) -> None:
    """A cut text fits the width, and a text that fits is unchanged."""
    line = one_line(text)
    assert width_of(cut(line, width)) <= width
    assert cut(line, width_of(line)) == line
    assert width_of(fit(line, "0.1 s", width)) <= width


@given(NASTY)
def test_text_from_outside_is_harmless(text: str) -> None:
    """No escape, backspace or bidirectional mark is left in the text."""
    for made in (one_line(text), harmless(text).replace("\n", "")):
        assert not any(ord(char) < 32 or 0x7F <= ord(char) < 0xA0 or char in "\u202e\u2066" for char in made)


def test_a_running_step_is_shown_with_its_place_and_wait() -> None:
    """The tree shows each open block, the loop position, the step, what it waits for, and the elapsed time."""
    clock = Clock()
    progress = Progress(clock)
    for event in (
        events.RunStarted("01RUN", "Pay the open orders", resumed=False),
        container("each", "iterate"),
        events.LoopItem("each", 37, 200, "1007"),
        leaf("each[#1007]/pay", 'click role=button name="Pay"'),
        events.StepWaiting("each[#1007]/pay", 'verify text "paid"'),
    ):
        progress(event)
    clock.now += 12
    shown = texts(tree.live(progress, 100, 20))
    assert shown == [
        "Pay the open orders  01RUN  12 s",
        ">>  each  37/200  #1007  12 s",
        '  >>  pay  click role=button name="Pay"  12 s',
        '      waiting: verify text "paid"',
    ]


def test_finished_iterations_are_folded_into_a_count() -> None:
    """A loop of 500 iterations takes as many lines and as much memory as one of 5; tolerated failures are counted."""
    progress = Progress(Clock())
    progress(container("each", "iterate"))
    for number in range(1, 501):
        progress(events.LoopItem("each", number, 500, None))
        for name in ("look", "pay"):
            progress(leaf(f"each[{number}]/{name}"))
            progress(ended(f"each[{number}]/{name}", "tolerated" if number == 7 and name == "pay" else "ok"))
    shown = texts(tree.live(progress, 80, 40))
    assert len(shown) == 4
    assert shown[1].startswith(">>  each  500/500  1 tolerated")
    assert [step.label for step in progress.current.children] == ["look", "pay"]
    progress(ended("each", whole=True))
    assert texts(tree.final(progress, 80)) == ["ok  each  1000 steps, 1 tolerated  0.1 s"]


def test_a_long_block_keeps_only_its_newest_steps_by_name() -> None:
    """A thousand sibling steps show the newest by name and the others as a count, on screen and in memory."""
    progress = Progress(Clock())
    for number in range(1000):
        progress(leaf(f"s{number}"))
        progress(ended(f"s{number}"))
    shown = texts(tree.live(progress, 80, 10))
    assert len(shown) == 10
    assert shown[1] == "..  992 steps"
    assert shown[-1].startswith("ok  s999")
    assert len(progress.root.children) <= 2 * KEPT


def test_on_a_small_terminal_the_running_step_stays() -> None:
    """With room for only three lines, the running step is one of them."""
    progress = Progress(Clock())
    for event in (container("a"), container("a/b"), container("a/b/c"), leaf("a/b/c/d", "fill it")):
        progress(event)
    shown = texts(tree.live(progress, 40, 3))
    assert len(shown) == 3
    assert "d  fill it" in shown[-1]


def test_a_retried_step_is_one_line() -> None:
    """A retried step keeps one line, with its attempt and what it waits for."""
    progress = Progress(Clock())
    for event in (leaf("a"), ended("a", "error", error="not found"), events.StepWaiting("a", "1 s before attempt 2")):
        progress(event)
    assert texts(tree.live(progress, 60, 9))[-1] == "    waiting: 1 s before attempt 2"
    progress(leaf("a", attempt=2))
    shown = texts(tree.live(progress, 60, 9))
    assert shown[1:] == [">>  a  click it  attempt 2  0.0 s"]
    progress(ended("a", "error", error="not found"))
    progress(leaf("a", attempt=3))
    assert texts(tree.live(progress, 60, 9))[1:] == [">>  a  click it  attempt 3  0.0 s"]


def test_an_interrupted_run_shows_where_it_stopped() -> None:
    """The final tree names the unfinished step, and does not show it as running."""
    progress = Progress(Clock())
    for event in (
        leaf("a"),
        ended("a"),
        container("each", "iterate"),
        events.LoopItem("each", 2, 9, "x"),
        leaf("each[#x]/b"),
    ):
        progress(event)
    assert texts(tree.final(progress, 80)) == [
        "ok  a  click it  0.1 s",
        "..  each  2/9  #x  not finished  0.0 s",
        "  ..  b  click it  not finished  0.0 s",
    ]


def test_plain_prints_a_line_per_step(plain: tuple[Plain, io.StringIO, Clock]) -> None:
    """Each leaf is one line when it ends; a successful container has none."""
    display, stream, _ = plain
    lines = printed(
        display,
        stream,
        events.RunStarted("01RUN", "Pay", resumed=False),
        container("sign_in"),
        leaf("sign_in/user", 'fill label="Username"'),
        ended("sign_in/user"),
        ended("sign_in", whole=True),
        events.StepFinished("orders", "skipped", 0.0, container=True),
    )
    assert lines == [
        "run  01RUN  Pay",
        'ok  sign_in/user  fill label="Username"  0.1 s',
        "skipped  orders  0.0 s",
    ]


def test_plain_shows_an_error_once(plain: tuple[Plain, io.StringIO, Clock]) -> None:
    """An error that propagates through containers is shown only at the step that raised it."""
    display, stream, _ = plain
    lines = printed(
        display,
        stream,
        container("outer"),
        container("outer/inner"),
        leaf("outer/inner/pay"),
        ended("outer/inner/pay", "error", error="no element matches"),
        ended("outer/inner", "error", whole=True, error="no element matches"),
        ended("outer", "error", whole=True, error="no element matches"),
        container("other"),
        ended("other", "error", whole=True, error="two items have the key 'x'"),
    )
    assert [line.split("  ")[:2] for line in lines] == [["error", "outer/inner/pay"], ["error", "other"]]


def test_plain_skips_steps_of_the_earlier_run(plain: tuple[Plain, io.StringIO, Clock]) -> None:
    """A resumed run prints no lines for recorded steps, only their number at the beginning."""
    display, stream, _ = plain
    lines = printed(
        display,
        stream,
        events.RunStarted("01RUN", "Pay", resumed=True),
        events.Said("40 steps are done"),
        *(ended(f"s{number}", "recorded") for number in range(40)),
        leaf("next"),
        ended("next"),
    )
    assert [line.split("  ")[:2] for line in lines] == [
        ["resume", "01RUN"],
        ["--", "40 steps are done"],
        ["ok", "next"],
    ]


def test_plain_shows_a_long_wait_every_five_seconds(plain: tuple[Plain, io.StringIO, Clock]) -> None:
    """A step of 12 seconds has two lines, with its loop position and what it waits for."""
    display, stream, clock = plain
    display(container("each", "iterate"))
    display(events.LoopItem("each", 3, 9, "x"))
    display(leaf("each[#x]/pay"))
    display(events.StepWaiting("each[#x]/pay", "verify text paid"))
    for _ in range(12):
        clock.now += 1
        display.tick()
    display(ended("each[#x]/pay"))
    clock.now += 4
    display.tick()
    lines = stream.getvalue().splitlines()
    assert [line for line in lines if line.startswith("..")] == [
        "..  each[#x]/pay  3/9  click it  waiting: verify text paid  5.0 s",
        "..  each[#x]/pay  3/9  click it  waiting: verify text paid  10 s",
    ]


def test_plain_shows_a_wait_before_the_first_step(plain: tuple[Plain, io.StringIO, Clock]) -> None:
    """A long browser start is shown too."""
    display, stream, clock = plain
    clock.now += 10
    display.tick()
    assert stream.getvalue() == "..  no step runs yet  10 s\n"


def test_quiet_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    """With --quiet no event reaches the screen."""
    display = choose(quiet=True)
    assert type(display) is Display
    display(events.Said("hello"))
    display.end()
    assert capsys.readouterr() == ("", "")


async def test_a_display_has_its_own_timer() -> None:
    """The timer ticks without events, and stops with the display."""
    ticks: list[None] = []

    class Ticking(Display):
        interval = 0.005

        def tick(self) -> None:
            ticks.append(None)
            if len(ticks) == 3:
                enough.set()

    enough = asyncio.Event()
    with Ticking():
        await asyncio.wait_for(enough.wait(), 10)
    seen = len(ticks)
    for _ in range(5):
        await asyncio.sleep(0.005)
    assert len(ticks) == seen


def test_a_closed_output_is_no_failure() -> None:
    """After a broken pipe the display continues silently."""
    talk = Talk(Broken())
    display = Plain(talk, Clock())
    display(events.Said("hello"))
    display(leaf("a"))
    display(ended("a"))
    assert talk.broken


@pytest.mark.parametrize(
    ("terminal", "environment", "kind", "colour"),
    [
        (True, {"TERM": "xterm-256color"}, "tree", True),
        (True, {"TERM": "xterm-256color", "NO_COLOR": "1"}, "tree", False),
        (True, {"TERM": "xterm-256color", "NO_COLOR": ""}, "tree", True),
        (True, {"TERM": "dumb"}, "plain", False),
        (True, {}, "plain", False),
        (False, {"TERM": "xterm-256color"}, "plain", False),
    ],
)
def test_the_display_suits_the_terminal(terminal: bool, environment: dict[str, str], kind: str, colour: bool) -> None:
    """A tree needs a terminal with cursor movement; colour also needs `NO_COLOR` to be unset or empty."""
    talk = Talk(Terminal() if terminal else io.StringIO())
    assert kind_for(talk, environment=environment.get) == kind
    assert coloured(talk, environment=environment.get) == colour


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0.0 s"), (0.34, "0.3 s"), (9.96, "10 s"), (59.6, "1 min 00 s"), (185, "3 min 05 s"), (3720, "1 h 02 min")],
)
def test_durations_are_readable(seconds: float, text: str) -> None:
    """A duration has at most two units."""
    assert duration(seconds) == text
