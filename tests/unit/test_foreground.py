"""Signals while a command works in the foreground."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import threading
from collections.abc import AsyncGenerator

import pytest

from runtime.cli import foreground, signals


def test_a_signal_stops_what_goes_on_and_the_next_is_done() -> None:
    """What was interrupted has come to its end when it is said; nothing of it is left for what comes next."""
    ended: list[str] = []

    async def long() -> None:
        try:
            front.handle(signal.SIGINT, None)
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            ended.append("closed")
            raise

    async def short() -> str:
        await asyncio.sleep(0)
        return "done"

    with foreground.Foreground(lambda: "") as front:
        with pytest.raises(signals.Interrupted) as stopped:
            front.run(long())
        assert (stopped.value.exit, ended) == (130, ["closed"])
        assert front.run(short()) == "done"


def test_a_signal_while_a_word_is_read_is_raised_there() -> None:
    """With the exit code of that signal."""
    with foreground.Foreground(lambda: "") as front:
        with pytest.raises(signals.Interrupted) as stopped, front.reading():
            front.handle(signal.SIGTERM, None)
        assert stopped.value.exit == 143
        with front.reading():
            pass


def test_a_signal_between_the_two_is_not_lost() -> None:
    """It is heard of before the next word is read, and before anything is begun."""
    begun: list[str] = []

    async def thing() -> None:
        begun.append("it")

    with foreground.Foreground(lambda: "") as front:
        front.handle(signal.SIGTERM, None)
        with pytest.raises(signals.Interrupted), front.reading():
            begun.append("reading")
        front.handle(signal.SIGTERM, None)
        with pytest.raises(signals.Interrupted):
            front.run(thing())
    assert begun == []


def test_what_is_cancelled_by_no_signal_is_no_interruption() -> None:
    """An error of ours does not look like a person's wish."""

    async def cancelled() -> None:
        raise asyncio.CancelledError

    assert threading.current_thread() is threading.main_thread()
    with foreground.Foreground(lambda: "") as front, pytest.raises(asyncio.CancelledError):
        front.run(cancelled())


def test_a_second_signal_ends_what_would_outlive_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """The browser of a run has a watcher that is no child: it is asked to end it, and whatever comes of that, the process ends at once."""
    done: list[object] = []

    def clear() -> None:
        done.append("cleared")
        raise OSError

    monkeypatch.setattr(foreground, "end_children", lambda: done.append("children ended"))
    monkeypatch.setattr(os, "_exit", done.append)
    monkeypatch.setattr(foreground, "SAME_PRESS", -1.0)
    with foreground.Foreground(lambda: "", clear=clear) as front:
        front.handle(signal.SIGINT, None)
        front.handle(signal.SIGINT, None)
    assert done == ["cleared", "children ended", 130]


def test_what_is_held_open_is_closed_behind_the_last_piece_of_work() -> None:
    """It is open for all of them, also for one that a signal ends; of that the person is told once."""
    happened: list[str] = []

    @contextlib.asynccontextmanager
    async def held() -> AsyncGenerator[str]:
        happened.append("opened")
        try:
            yield "it"
        finally:
            await asyncio.sleep(0)
            happened.append("closed")

    async def work(what: str) -> None:
        happened.append(what)
        if what == "second":
            front.handle(signal.SIGINT, None)
            await asyncio.sleep(60)

    with (
        foreground.Foreground(lambda: "", notice=lambda: happened.append("told")) as front,
        front.holding(held()) as thing,
    ):
        assert thing == "it"
        front.run(work("first"))
        with pytest.raises(signals.Interrupted):
            front.run(work("second"))
    assert happened == ["opened", "first", "second", "told", "closed"]


def test_a_signal_while_what_was_held_is_closed_ends_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """All is written by then, and a browser that does not end keeps nobody waiting."""
    done: list[object] = []

    @contextlib.asynccontextmanager
    async def held() -> AsyncGenerator[None]:
        yield
        signal.raise_signal(signal.SIGTERM)
        await asyncio.sleep(0)

    monkeypatch.setattr(foreground, "end_children", lambda: done.append("children ended"))
    monkeypatch.setattr(os, "_exit", done.append)
    with foreground.Foreground(lambda: "", clear=lambda: done.append("cleared")) as front, front.holding(held()):
        pass
    assert done == ["cleared", "children ended", 143]
