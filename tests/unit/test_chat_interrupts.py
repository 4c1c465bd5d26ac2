"""Ctrl-C and its kin in a conversation."""

from __future__ import annotations

import asyncio
import os
import signal
import threading

import pytest

from director.cli import interrupts
from runtime.cli import execution, signals


def test_a_signal_stops_what_goes_on_and_the_next_is_done() -> None:
    """What was interrupted has come to its end when it is said; nothing of it is left for what comes next."""
    ended: list[str] = []

    async def long() -> None:
        try:
            signalled.handle(signal.SIGINT, None)
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            ended.append("closed")
            raise

    async def short() -> str:
        await asyncio.sleep(0)
        return "done"

    with asyncio.Runner() as runner:
        signalled = interrupts.Interrupts(runner, lambda: "")
        with pytest.raises(signals.Interrupted) as stopped:
            signalled.run(long())
        assert (stopped.value.exit, ended) == (130, ["closed"])
        assert signalled.run(short()) == "done"


def test_a_signal_while_a_word_is_read_is_raised_there() -> None:
    """With the exit code of that signal."""
    with asyncio.Runner() as runner:
        signalled = interrupts.Interrupts(runner, lambda: "")
        with pytest.raises(signals.Interrupted) as stopped, signalled.reading():
            signalled.handle(signal.SIGTERM, None)
        assert stopped.value.exit == 143
        with signalled.reading():
            pass


def test_a_signal_between_the_two_is_not_lost() -> None:
    """It is heard of before the next word is read, and before anything is begun."""
    begun: list[str] = []

    async def thing() -> None:
        begun.append("it")

    with asyncio.Runner() as runner:
        signalled = interrupts.Interrupts(runner, lambda: "")
        signalled.handle(signal.SIGTERM, None)
        with pytest.raises(signals.Interrupted), signalled.reading():
            begun.append("reading")
        signalled.handle(signal.SIGTERM, None)
        with pytest.raises(signals.Interrupted):
            signalled.run(thing())
    assert begun == []


def test_what_is_cancelled_by_no_signal_is_no_interruption() -> None:
    """An error of ours does not look like a person's wish."""

    async def cancelled() -> None:
        raise asyncio.CancelledError

    assert threading.current_thread() is threading.main_thread()
    with asyncio.Runner() as runner:
        signalled = interrupts.Interrupts(runner, lambda: "")
        with pytest.raises(asyncio.CancelledError):
            signalled.run(cancelled())


def test_a_second_signal_ends_what_would_outlive_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """The browser of a run has a watcher that is no child: it is asked to end it, and whatever comes of that, the process ends at once."""
    done: list[object] = []

    def clear() -> None:
        done.append("cleared")
        raise OSError

    monkeypatch.setattr(execution, "end_children", lambda: done.append("children ended"))
    monkeypatch.setattr(os, "_exit", done.append)
    monkeypatch.setattr(execution, "SAME_PRESS", -1.0)
    with asyncio.Runner() as runner:
        signalled = interrupts.Interrupts(runner, lambda: "", clear)
        signalled.handle(signal.SIGINT, None)
        signalled.handle(signal.SIGINT, None)
    assert done == ["cleared", "children ended", 130]
