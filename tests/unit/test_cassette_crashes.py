"""A cassette across crashes: a run that dies while it is recorded, and continues, gives the same one; one that dies while it is played continues at its place."""

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
"""Of a rig's workflow, below the folder in which its run is."""

MOMENTS = 8


@pytest.fixture
def recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[bytes, Json, int]:
    """The cassette of a run that nobody kills, its output, and the number of its crash points; it is in the folder, which is the current one."""
    monkeypatch.chdir(tmp_path)
    run, _asked = record(tmp_path / "alone", monkeypatch, [])
    return CASSETTE.read_bytes(), run.output, len(run.passed)


def record(folder: Path, patch: pytest.MonkeyPatch, deaths: list[int]) -> tuple[asked.Run, int]:
    """A run that is recorded, and dies at these crash points of its lives; with how many answers were given."""
    with responses.serve(asked.Voice()) as server:
        run = asked.Run("live", folder, server, patch)
        run.rig.settings = models.asked_at(server, patch, model_calls="record")
        live(run, deaths)
        return run, asked.asked(server)


def play(folder: Path, server: responses.Server, patch: pytest.MonkeyPatch, deaths: list[int]) -> asked.Run:
    """A run that is played from the cassette, without model and key, and dies at these crash points of its lives."""
    run = asked.Run("live", folder, server, patch)
    patch.delenv(selection.KEY)
    run.rig.settings = settings.load(model_calls="replay")
    live(run, deaths)
    return run


def live(run: asked.Run, deaths: list[int]) -> None:
    """Let it live as often as it dies at one of these crash points, and then to its end."""
    for deadly in (*deaths, 0):
        if run.live(deadly):
            return
    raise AssertionError("a run that is not killed comes to its end")


def uncounted(cassette: bytes) -> bytes:
    """The cassette without how many tokens each request had."""
    bare, found = re.subn(rb'("usage": \{\s*"input": )\d+', rb"\1?", cassette)
    assert found == cassette.count(b'"usage"') > 0
    return bare


def moments(count: int, chance: random.Random) -> list[list[int]]:
    """Crash points of a first life, each with one of the second life."""
    return [[chance.randint(1, count), chance.randint(1, 12)] for _ in range(MOMENTS)]


def test_a_run_that_died_while_it_was_recorded_gives_the_same_cassette(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, recorded: tuple[bytes, Json, int], chance: random.Random
) -> None:
    """Killed at any crash point, and again on the way back: the same bytes as without a crash, also where an answer was paid again.

    But for the count of the input: a run that continues says so to its model, in other words than one that starts.
    """
    whole, output, count = recorded
    for number, deaths in enumerate(moments(count, chance)):
        CASSETTE.unlink()
        run, _asked = record(tmp_path / f"{number}", monkeypatch, deaths)
        assert run.output == output, deaths
        assert uncounted(CASSETTE.read_bytes()) == uncounted(whole), deaths


def test_a_run_that_died_while_it_was_played_goes_on_at_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, recorded: tuple[bytes, Json, int], chance: random.Random
) -> None:
    """Killed at any crash point, and again on the way back: the same output from the cassette alone, with nothing left over and no server asked."""
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
