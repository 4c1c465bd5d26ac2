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


def test_a_signal_cancels_the_current_work_only() -> None:
    """The cancelled work has finished when `Interrupted` is raised, and later work runs normally."""
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


def test_a_signal_while_input_is_read_is_raised_there() -> None:
    """The exception has the exit code of the signal."""
    with foreground.Foreground(lambda: "") as front:
        with pytest.raises(signals.Interrupted) as stopped, front.reading():
            front.handle(signal.SIGTERM, None)
        assert stopped.value.exit == 143
        with front.reading():
            pass


def test_a_signal_between_work_and_input_is_not_lost() -> None:
    """A pending signal is raised before input is read or work begins."""
    begun: list[str] = []

    async def work() -> None:
        begun.append("it")

    with foreground.Foreground(lambda: "") as front:
        front.handle(signal.SIGTERM, None)
        with pytest.raises(signals.Interrupted), front.reading():
            begun.append("reading")
        front.handle(signal.SIGTERM, None)
        with pytest.raises(signals.Interrupted):
            front.run(work())
    assert begun == []


def test_a_cancellation_without_a_signal_is_no_interruption() -> None:
    """A cancellation by an error of ours stays a `CancelledError`."""

    async def cancelled() -> None:
        raise asyncio.CancelledError

    assert threading.current_thread() is threading.main_thread()
    with foreground.Foreground(lambda: "") as front, pytest.raises(asyncio.CancelledError):
        front.run(cancelled())


def test_a_second_signal_ends_what_would_outlive_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """A second signal asks the browser's watcher to end, and the process exits at once even if that fails."""
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


def test_a_resource_is_closed_after_the_last_work() -> None:
    """A resource stays open for all work, also interrupted work, and the person is notified once."""
    happened: list[str] = []

    @contextlib.asynccontextmanager
    async def resource() -> AsyncGenerator[str]:
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
        foreground.Foreground(lambda: "", notice=lambda: happened.append("notified")) as front,
        front.holding(resource()) as opened,
    ):
        assert opened == "it"
        front.run(work("first"))
        with pytest.raises(signals.Interrupted):
            front.run(work("second"))
    assert happened == ["opened", "first", "second", "notified", "closed"]


def test_a_signal_while_a_resource_closes_exits_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """All data is written by then, so the process does not wait for the resource."""
    done: list[object] = []

    @contextlib.asynccontextmanager
    async def resource() -> AsyncGenerator[None]:
        yield
        signal.raise_signal(signal.SIGTERM)
        await asyncio.sleep(0)

    monkeypatch.setattr(foreground, "end_children", lambda: done.append("children ended"))
    monkeypatch.setattr(os, "_exit", done.append)
    with foreground.Foreground(lambda: "", clear=lambda: done.append("cleared")) as front, front.holding(resource()):
        pass
    assert done == ["cleared", "children ended", 143]
