"""Limits of a session's windows: the settings, and changes made in the session."""

from __future__ import annotations

from pydantic import ValidationError

from nodes.errors import UsageError
from nodes.values import Json
from runtime.context import window
from runtime.log import session
from runtime.log.writer import Texts
from runtime.settings.settings import Settings

PREFIX = "window_"

UNLIMITED = frozenset(
    {"max_messages", "max_chars", "hard_limit", "recent_outputs", "checkpoint_at", "checkpoint_messages"}
)
"""Limits that 0 turns off."""

DIGITS = 15

_BY_STRATEGY = ("recent_outputs", "checkpoint_at", "compress_to")
BY_STRATEGY: dict[window.Strategy, dict[str, int | None]] = {
    "injected": dict(zip(_BY_STRATEGY, (None, None, 20_000), strict=True)),
    "hybrid": dict(zip(_BY_STRATEGY, (2_500, 14_000, 2_000), strict=True)),
    "clean": dict(zip(_BY_STRATEGY, (1_000, 8_000, 1_500), strict=True)),
}
"""Defaults by strategy: with the whole state injected, everything; with tools for the state, recent outputs, and a summary of the rest."""

NAMES = tuple(window.Limits.model_fields)


def of_settings(settings: Settings, strategy: window.Strategy | None = None) -> window.Limits:
    """Return the limits of a new session; ``strategy`` overrides that of the settings."""
    strategy = strategy or settings.window_strategy
    said = {name: getattr(settings, f"{PREFIX}{name}") for name in NAMES}
    wanted = {name: known(name, value) for name, value in said.items() if value is not None}
    return window.Limits.model_validate({**BY_STRATEGY[strategy], **wanted, "strategy": strategy})


def of_session(history: session.Session, texts: Texts, settings: Settings) -> window.Limits:
    """Return the limits of a session: its own changes override the settings."""
    changed: dict[str, Json] = {}
    for name in NAMES:
        if (found := history.latest("window", name)) is not None:
            changed[name] = texts.value_of(found)
    return window.Limits.model_validate({**of_settings(settings, changed.get("strategy")).model_dump(), **changed})


def known(name: str, value: Json) -> Json:
    """Convert a value for ``Limits``: 0 becomes None where it turns a limit off."""
    return None if name in UNLIMITED and value == 0 else value


def checked(name: str, text: Json) -> Json:
    """Check a typed value, and return it as ``Limits`` has it. Raises UsageError ``bad-setting``."""
    if name not in NAMES:
        raise UsageError("bad-setting", f"the window has no setting `{name}`", fix=f"it has {', '.join(NAMES)}")
    value = {"on": True, "off": False}.get(text, text) if isinstance(text, str) else text
    value = 0 if value == "none" else value
    try:
        # No real limit has more digits, and Python refuses to parse very long numbers.
        value = int(value) if isinstance(value, str) and value.isdecimal() and len(value) <= DIGITS else value
        return window.Limits(**{name: known(name, value)}).model_dump()[name]
    except ValidationError as error:
        message = str(error.errors(include_url=False)[0]["msg"]).removeprefix("Value error, ")
        raise UsageError(
            "bad-setting",
            f"`{name}` of the window cannot be {str(text)[:80]!r}: {message[0].lower()}{message[1:]}",
            fix="docs/conversation.md says what it takes",
        ) from None
