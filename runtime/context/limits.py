"""Which limits the windows of a session have: those of the settings, and what was changed in the session since."""

from __future__ import annotations

from pydantic import ValidationError

from nodes.errors import UsageError
from nodes.values import Json
from runtime.context import window
from runtime.log import session
from runtime.log.writer import Texts
from runtime.settings import settings

PREFIX = "window_"
"""What the names of such settings begin with."""

UNLIMITED = frozenset({"max_messages", "max_chars", "hard_limit", "recent_outputs", "checkpoint_at"})
"""Those of which 0 says that there is no limit."""

DIGITS = 15
"""Of a number that is typed, at the most."""

BY_STRATEGY: dict[window.Strategy, dict[str, int | None]] = {
    "injected": {
        "max_messages": None,
        "max_chars": None,
        "recent_outputs": None,
        "checkpoint_at": None,
        "compress_to": 20_000,
    },
    "hybrid": {
        "max_messages": 80,
        "max_chars": 120_000,
        "recent_outputs": 2_500,
        "checkpoint_at": None,
        "compress_to": 20_000,
    },
    "clean": {
        "max_messages": None,
        "max_chars": None,
        "recent_outputs": 1_500,
        "checkpoint_at": 8_000,
        "compress_to": 1_500,
    },
}
"""What holds where nothing is said. Who is told everything has the whole conversation; who has a tool for each part has what is recent, and a way back."""

NAMES = tuple(window.Limits.model_fields)
"""Their names, as a session has them."""


def of_settings(chosen: settings.Settings, strategy: window.Strategy | None = None) -> window.Limits:
    """The limits with which a session begins; those of another ``strategy``, where it has changed."""
    strategy = strategy or chosen.window_strategy
    said = {name: getattr(chosen, f"{PREFIX}{name}") for name in NAMES}
    wanted = {name: known(name, value) for name, value in said.items() if value is not None}
    return window.Limits.model_validate({**BY_STRATEGY[strategy], **wanted, "strategy": strategy})


def of_session(history: session.Session, texts: Texts, chosen: settings.Settings) -> window.Limits:
    """The limits of a session: what was changed in it goes before the settings."""
    changed: dict[str, Json] = {}
    for name in NAMES:
        if (found := history.latest("window", name)) is not None:
            changed[name] = texts.value_of(found)
    return window.Limits.model_validate({**of_settings(chosen, changed.get("strategy")).model_dump(), **changed})


def known(name: str, value: Json) -> Json:
    """A value as ``Limits`` has it: 0 says that there is no limit."""
    return None if name in UNLIMITED and value == 0 else value


def checked(name: str, text: Json) -> Json:
    """The value of one of them as it is kept, from what somebody has typed. Raises UsageError ``bad-setting``."""
    if name not in NAMES:
        raise UsageError("bad-setting", f"the window has no setting `{name}`", fix=f"it has {', '.join(NAMES)}")
    value = {"on": True, "off": False}.get(text, text) if isinstance(text, str) else text
    value = 0 if value == "none" else value
    try:
        # A number with more digits is none that anybody means, and Python reads no endless ones.
        value = int(value) if isinstance(value, str) and value.isdecimal() and len(value) <= DIGITS else value
        return window.Limits(**{name: known(name, value)}).model_dump()[name]
    except ValidationError as error:
        message = str(error.errors(include_url=False)[0]["msg"]).removeprefix("Value error, ")
        raise UsageError(
            "bad-setting",
            f"`{name}` of the window cannot be {str(text)[:80]!r}: {message[0].lower()}{message[1:]}",
            fix="docs/conversation.md says what it takes",
        ) from None
