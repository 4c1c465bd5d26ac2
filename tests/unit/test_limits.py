"""Limits of the windows of a session."""

from __future__ import annotations

from pathlib import Path

import pytest

from director.cli import session_options
from director.session import open as open_session
from director.session.state import SessionState
from nodes.errors import UsageError
from runtime import version
from runtime.context import limits
from runtime.log import entries, session
from runtime.log.writer import LogWriter
from runtime.secrets import masking
from runtime.settings import settings
from runtime.testing import memory_store
from tests.now import now


def writer(folder: Path) -> LogWriter[session.Session]:
    """The writer of a new session."""
    header = entries.SessionHeader(purpose="chat", versions=version.versions())
    return now(open_session.begin(memory_store.MemoryStore(folder), header, masking.Masker({})))


def test_by_default_the_limits_are_those_of_the_strategy(tmp_path: Path) -> None:
    """Injected keeps the whole conversation, strategies with tools sum it up sooner; none leaves messages out. A switch of strategy changes all limits that were not set explicitly."""
    hybrid = limits.of_settings(settings.Settings())
    assert (hybrid.strategy, hybrid.recent_outputs) == ("hybrid", 2_500)
    assert (hybrid.checkpoint_at, hybrid.compress_to, hybrid.max_messages, hybrid.max_chars) == (
        14_000,
        2_000,
        None,
        None,
    )
    one, chosen = writer(tmp_path), settings.Settings(window_compress_to=700, window_strategy="injected")
    found = limits.of_session(one.history, one, chosen)
    assert (found.max_messages, found.max_chars, found.recent_outputs, found.checkpoint_at) == (None,) * 4
    assert (found.compress_at, found.warn_at, found.compress_to) == (180_000, 160_000, 700)
    session_options.set_limit(SessionState(one), chosen, "max_messages", 9, "/window max_messages 9")
    session_options.set_limit(SessionState(one), chosen, "strategy", "clean", "/window strategy clean")
    found = limits.of_session(one.history, one, chosen)
    assert (found.recent_outputs, found.checkpoint_at, found.compress_to, found.max_messages) == (1_000, 8_000, 700, 9)


@pytest.mark.parametrize("name", sorted(limits.UNLIMITED))
def test_zero_removes_a_limit(name: str) -> None:
    """Zero removes a limit, in the settings as in typed values."""
    chosen = settings.Settings.model_validate({f"window_{name}": 0})
    assert getattr(limits.of_settings(chosen), name) is None
    assert limits.checked(name, "0") is None
    assert limits.checked(name, "none") is None


@pytest.mark.parametrize(
    ("name", "typed", "value"),
    [
        ("strategy", "clean", "clean"),
        ("max_messages", "12", 12),
        ("events", "off", False),
        ("tool_results", "true", True),
        ("min_recent", "0", 0),
        ("shares", "state=0, summary=50", {"system": 10, "state": 0, "conversation": 43, "summary": 50}),
    ],
)
def test_typed_values_are_parsed_by_their_kind(name: str, typed: str, value: object) -> None:
    """Typed values are parsed as a number, on or off, or one of the allowed words."""
    assert limits.checked(name, typed) == value


@pytest.mark.parametrize(
    ("name", "typed"),
    [
        ("strategy", "cleen"),
        ("max_messages", "-1"),
        ("min_recent", "-1"),
        ("shares", "system=60,state=30,conversation=20"),
        ("shares", "free=7"),
        ("shares", "state"),
        ("shares", "state=40,state=30"),
        ("shares", "conversation=0"),
        ("shares", "summary=101"),
        ("colour", "red"),
        ("top_k", "x"),
        ("max_chars", "9" * 5_000),
    ],
)
def test_invalid_values_are_refused(name: str, typed: str) -> None:
    """An invalid value is refused with the name of the setting."""
    with pytest.raises(UsageError) as refused:
        limits.checked(name, typed)
    assert refused.value.code == "bad-setting"
    assert name in refused.value.message


def test_a_change_in_a_session_overrides_the_settings(tmp_path: Path) -> None:
    """A change in the session overrides the settings, even if it removes a limit; an unchanged value is not written again."""
    one, chosen = writer(tmp_path), settings.Settings(window_max_messages=5, window_hard_limit=900)
    session_options.set_limit(SessionState(one), chosen, "hard_limit", 0, "--hard-limit")
    session_options.set_limit(SessionState(one), chosen, "strategy", "clean", "/window strategy clean")
    session_options.set_limit(SessionState(one), chosen, "strategy", "clean", "/window strategy clean")
    found = limits.of_session(one.history, one, chosen)
    assert (found.hard_limit, found.strategy, found.max_messages) == (None, "clean", 5)
    assert len(one.history.versions("window", "strategy")) == 1
    assert one.history.versions("window", "strategy")[0].reason == "/window strategy clean"
