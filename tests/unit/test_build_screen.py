"""What is shown of a build while it is at work."""

from __future__ import annotations

import io

import pytest
from typing_extensions import override

from director.cli import input as typed_input
from director.cli import screen as build_screen
from runtime import events


class Terminal(io.StringIO):
    """A text that says of itself that it is a terminal."""

    @override
    def isatty(self) -> bool:
        return True


class Clock:
    """Seconds that pass as they are told to."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def shown_after(stream: io.StringIO, *, seconds: int, asks: bool = False) -> str:
    """What is written while a model is asked for so long, or a person behind it."""
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


def test_a_line_every_ten_seconds_says_that_the_model_is_waited_for() -> None:
    """In a pipe, and none before ten seconds have passed, nor while a person is asked."""
    lines = [each for each in shown_after(io.StringIO(), seconds=25).splitlines() if each.startswith("..")]
    assert lines == ["..  waiting: the model to answer  10 s", "..  waiting: the model to answer  20 s"]
    assert ".." not in shown_after(io.StringIO(), seconds=9)
    assert ".." not in shown_after(io.StringIO(), seconds=25, asks=True)


def test_on_a_terminal_a_line_moves_and_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is written over each second, and is gone before the next line that stays."""
    monkeypatch.setenv("TERM", "xterm")
    told = shown_after(Terminal(), seconds=3)
    assert "\r\x1b[K..  waiting: the model to answer  3.0 s\r\x1b[K" in told
    assert told.count("\n") == 1


def test_a_step_that_takes_long_is_told() -> None:
    """While a run of the build is at work, it is its step that is waited for."""
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
async def test_a_prompt_stands_where_an_answer_is_typed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Behind the question and its choices, and anew where what was typed is none of them."""
    typed = iter(["perhaps", "2"])

    async def answer() -> str | None:
        return next(typed)

    monkeypatch.setattr(typed_input, "answer", answer)
    shown: list[str] = []
    assert await typed_input.person_at(shown.append).ask("Which?", ["old", "new"]) == "new"
    assert capsys.readouterr().err == typed_input.ANSWER * 2
    assert len(shown) == 2


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ('{"yaml": "- id: sign_in\\n", "reason": "the clerk\\nsigns in"}', ">   find  the clerk signs in"),
        ('{"tab": null, "url": "http://x/", "name": "shop"}', ">   find  http://x/"),
        ('{"line": 3, "of": []}', ">   find  line: 3"),
        ("{}", ">   find"),
        ('{"yaml": "- id', '>   find  {"yaml": "- id'),
    ],
)
def test_a_call_is_told_by_what_it_is_about(given: str, told: str) -> None:
    """By its reason, else by what tells most; never as JSON, unless it is none that can be read."""
    stream = io.StringIO()
    screen = build_screen.BuildScreen(stream, quiet=False)
    screen.called("1_find", "find", given)
    screen.done("1_find", "kept as version 2:\n\n  1 sign_in  group\nmore", failed=False)
    assert stream.getvalue().splitlines() == [told, "ok  kept as version 2: 1 sign_in  group"]
