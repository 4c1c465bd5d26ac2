"""A browser whose state file cannot be written is ended, and state is written until the browser ends."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from nodes.errors import LogError
from runtime.browser import own
from runtime.system import crash_points, files
from tests import browsers

pytestmark = [pytest.mark.full_browser, pytest.mark.own_driver]

ORIGIN = "http://127.0.0.1:9"


def full_for(monkeypatch: pytest.MonkeyPatch, name: str) -> Callable[[], None]:
    """Makes writes of this file name fail; returns a function that ends this."""
    write = files.write

    def refuse(path: Path, data: bytes) -> None:
        if path.name == name:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        write(path, data)

    monkeypatch.setattr(files, "write", refuse)
    return lambda: monkeypatch.setattr(files, "write", write)


def using(folder: Path) -> list[int]:
    """The processes whose command line names the folder."""
    return [
        each.pid for each in psutil.process_iter(["cmdline"]) if str(folder) in " ".join(each.info["cmdline"] or ())
    ]


async def test_a_browser_without_a_state_file_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A browser whose state file cannot be written is ended, because no later engine could find it; the error names the file."""
    full_for(monkeypatch, own.STATE)
    with pytest.raises(LogError, match=f"where the browser is could not be written: No space.*{own.STATE}") as caught:
        async with browsers.opened(tmp_path, ORIGIN):
            pass
    assert caught.value.code == "log-write-failed"
    await browsers.until(lambda: not using(tmp_path), 30)


async def test_a_profile_that_cannot_be_created_is_an_error(tmp_path: Path) -> None:
    """Without a place for the profile the browser is not started, and the error names the folder."""
    gone = tmp_path / "gone"
    with pytest.raises(LogError, match=f"the browser's profile could not be written: .*{gone}") as caught:
        async with browsers.opened(gone, ORIGIN):
            pass
    assert caught.value.code == "log-write-failed"


async def test_browser_state_is_written_until_the_browser_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A closed tab that cannot be recorded stops the next step until writing succeeds; a browser that ends writes no state."""
    points: list[str] = []
    async with browsers.opened(tmp_path, ORIGIN) as session:
        await session.tabs.open("second")
        room = full_for(monkeypatch, own.STATE)
        await session.tabs.get("second").page.evaluate("window.close()")
        await browsers.until(lambda: session.tabs.unsaved is not None, 30)
        with pytest.raises(LogError, match="where the browser is could not be written"):
            session.page.calm()
        assert "second" in json.loads((tmp_path / own.STATE).read_text())["tabs"]["names"]
        room()
        await session.tabs.open("third")
        session.page.calm()
        assert set(json.loads((tmp_path / own.STATE).read_text())["tabs"]["names"]) == {"main", "third"}
        monkeypatch.setattr(crash_points, "hook", points.append)
    assert not (tmp_path / own.STATE).exists()
    assert points == []
