"""A cassette across crashes: a run that dies while recording gives the same cassette, and one that dies while replaying continues."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest

from nodes.values import Json
from runtime.models import selection
from runtime.settings import settings
from runtime.testing import responses
from tests import models
from tests.kills import asked

CASSETTE = Path("cassettes/test.json")
"""The cassette of a rig's workflow, relative to the folder of its run."""

MOMENTS = 8


@pytest.fixture
def recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[bytes, Json, int]:
    """The cassette of a run without crashes, its output, and the number of its crash points, in the current folder."""
    monkeypatch.chdir(tmp_path)
    run, _asked = record(tmp_path / "alone", monkeypatch, [])
    return CASSETTE.read_bytes(), run.output, len(run.passed)


def record(folder: Path, patch: pytest.MonkeyPatch, deaths: list[int]) -> tuple[asked.Run, int]:
    """Records a run that dies at these crash points; returns it with the number of answers."""
    with responses.serve(asked.Voice()) as server:
        run = asked.Run("live", folder, server, patch)
        run.rig.settings = models.asked_at(server, patch, model_calls="record")
        live(run, deaths)
        return run, asked.asked(server)


def play(folder: Path, server: responses.Server, patch: pytest.MonkeyPatch, deaths: list[int]) -> asked.Run:
    """Replays a run from the cassette, without model and key; it dies at these crash points."""
    run = asked.Run("live", folder, server, patch)
    patch.delenv(selection.KEY)
    run.rig.settings = settings.load(model_calls="replay")
    live(run, deaths)
    return run


def live(run: asked.Run, deaths: list[int]) -> None:
    """Runs until each of these crash points was reached, and then to the end."""
    for deadly in (*deaths, 0):
        if run.live(deadly):
            return
    raise AssertionError("a run that is not killed comes to its end")


def uncounted(cassette: bytes) -> bytes:
    """The cassette without input token counts."""
    bare, found = re.subn(rb'("usage": \{\s*"input": )\d+', rb"\1?", cassette)
    assert found == cassette.count(b'"usage"') > 0
    return bare


def moments(count: int, chance: random.Random) -> list[list[int]]:
    """Pairs of a crash point in the first life and one in the second."""
    return [[chance.randint(1, count), chance.randint(1, 12)] for _ in range(MOMENTS)]


def test_a_crash_while_recording_gives_the_same_cassette(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, recorded: tuple[bytes, Json, int], chance: random.Random
) -> None:
    """Crashes at any two points, even with an answer paid twice, give the same bytes, except input counts, as resumed briefs differ."""
    whole, output, count = recorded
    for number, deaths in enumerate(moments(count, chance)):
        CASSETTE.unlink()
        run, _asked = record(tmp_path / f"{number}", monkeypatch, deaths)
        assert run.output == output, deaths
        assert uncounted(CASSETTE.read_bytes()) == uncounted(whole), deaths


def test_a_crash_while_replaying_continues_at_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, recorded: tuple[bytes, Json, int], chance: random.Random
) -> None:
    """Crashes at any two points give the same output from the cassette alone, which is used up, without a server request."""
    whole, output, _recording = recorded
    with responses.serve([]) as server:
        count = len(play(tmp_path / "played", server, monkeypatch, []).passed)
        for number, deaths in enumerate(moments(count, chance)):
            run = play(tmp_path / f"played-{number}", server, monkeypatch, deaths)
            assert run.output == output, deaths
            assert run.rig.models is not None
            assert run.rig.models.finish(run.rig.history.ledger.exchanges) is None, deaths
        assert server.requests == []
    assert CASSETTE.read_bytes() == whole
