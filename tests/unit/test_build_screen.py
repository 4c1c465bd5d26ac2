"""The display of a build while it works."""

from __future__ import annotations

import io

import pytest
from typing_extensions import override

from director.cli import input as typed_input
from director.cli import screen as build_screen
from runtime import events


class Terminal(io.StringIO):
    """A stream that claims to be a terminal."""

    @override
    def isatty(self) -> bool:
        return True


class Clock:
    """A clock that is set by the test."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def shown_after(stream: io.StringIO, *, seconds: int, asks: bool = False) -> str:
    """The output after a model is waited for, or a person is asked, for some seconds."""
    clock = Clock()
    screen = build_screen.BuildScreen(stream, quiet=False, clock=clock)
    screen.waiting("the model to answer")
    if asks:
        screen.asks("Which one?")
    for _second in range(seconds):
        clock.now += 1
        screen.tick()
    screen.called("1_find", "find", '{"text": "Pay"}')
    return stream.getvalue()


def test_a_pipe_shows_the_wait_every_five_seconds() -> None:
    """A pipe gets no line before five seconds, nor while a person is asked."""
    lines = [each for each in shown_after(io.StringIO(), seconds=12).splitlines() if each.startswith("..")]
    assert lines == ["..  waiting: the model to answer  5.0 s", "..  waiting: the model to answer  10 s"]
    assert ".." not in shown_after(io.StringIO(), seconds=4)
    assert ".." not in shown_after(io.StringIO(), seconds=12, asks=True)


def test_a_terminal_shows_a_temporary_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """The line is rewritten each second, and erased before the next permanent line."""
    monkeypatch.setenv("TERM", "xterm")
    output = shown_after(Terminal(), seconds=3)
    assert "\r\x1b[K..  waiting: the model to answer  3.0 s\r\x1b[K" in output
    assert output.count("\n") == 1


def test_a_long_step_is_shown() -> None:
    """During a run of the build the waiting line names its current step."""
    clock, stream = Clock(), io.StringIO()
    screen = build_screen.BuildScreen(stream, quiet=False, clock=clock)
    screen.called("1_run_draft", "run_draft", "{}")
    screen.ran(events.RunStarted(run="r", workflow="w", resumed=False))
    clock.now += 11
    screen.tick()
    assert stream.getvalue().splitlines()[-1] == "..  run_draft  11 s"
    screen.ran(events.StepStarted(path="pay", type="browser_action", summary="click Pay", depth=0, container=False))
    clock.now += 11
    screen.tick()
    assert stream.getvalue().splitlines()[-1] == "..  pay  click Pay  11 s"


@pytest.mark.anyio
async def test_a_prompt_precedes_each_answer(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The prompt follows question and choices, and is shown again after an invalid answer."""
    typed = iter(["perhaps", "2"])

    async def answer() -> str | None:
        return next(typed)

    monkeypatch.setattr(typed_input, "answer", answer)
    shown: list[str] = []
    assert await typed_input.person_at(shown.append).ask("Which?", ["old", "new"]) == "new"
    assert capsys.readouterr().err == typed_input.ANSWER * 2
    assert len(shown) == 2


@pytest.mark.parametrize(
    ("given", "line"),
    [
        ('{"yaml": "- id: sign_in\\n", "reason": "the clerk\\nsigns in"}', ">   find  the clerk signs in"),
        ('{"tab": null, "url": "http://x/", "name": "shop"}', ">   find  http://x/"),
        ('{"line": 3, "of": []}', ">   find  line: 3"),
        ("{}", ">   find"),
        ('{"yaml": "- id', '>   find  {"yaml": "- id'),
    ],
)
def test_a_call_is_shown_by_its_reason(given: str, line: str) -> None:
    """A call shows its reason, else its most telling argument; raw JSON only if it cannot be parsed."""
    stream = io.StringIO()
    screen = build_screen.BuildScreen(stream, quiet=False)
    screen.called("1_find", "find", given)
    screen.done("1_find", "kept as version 2:\n\n  1 sign_in  group\nmore", failed=False)
    assert stream.getvalue().splitlines() == [line, "ok  kept as version 2: 1 sign_in  group"]


def test_after_a_reset_the_call_that_made_it_is_awaited_again() -> None:
    """A reset that has ended is not shown as still awaited while the run after it goes on."""
    stream, clock = io.StringIO(), Clock()
    screen = build_screen.BuildScreen(stream, quiet=False, clock=clock)
    screen.called("1_run_draft", "run_draft", "{}")
    screen.waiting("the reset")
    screen.reset("reset by `make data`: done in 0.1 s")
    for _second in range(6):
        clock.now += 1
        screen.tick()
    waits = [each for each in stream.getvalue().splitlines() if each.startswith("..")]
    assert waits == ["..  run_draft  5.0 s"]
