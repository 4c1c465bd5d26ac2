"""Settings that a session keeps, besides those of its window: a flag applies to all later commands of the session."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from director.session.state import SessionState
from nodes.values import Json
from runtime.log import entries, session
from runtime.log.writer import Texts
from runtime.settings import settings as all_settings
from runtime.settings.settings import Settings

FLAGS = {
    "model_director": "--model",
    "model_store": "--store",
    "session_max_output": "--max-output",
    "chat_knowledge": "--knowledge",
    "delegate_clean_context": "--delegate-clean",
    "reset": "--reset",
}
"""The flag of each setting, by the setting's name."""

NOT = {"model_store": "--no-store", "delegate_clean_context": "--delegate-inherit"}  # the flags that turn one off

HIDDEN = frozenset({"reset"})  # those whose value no model sees

OF_BUILDS = {"build_effects": "--effects", "build_runs": "--runs"}  # those that override the goal of a build


def given(settings: Settings, flags: Mapping[str, object]) -> dict[str, Json]:
    values = {name: getattr(settings, name) for name in FLAGS if flags.get(name) is not None}
    return {name: str(value) if isinstance(value, Path) else value for name, value in values.items()}


def keep(own: SessionState, said: Mapping[str, Json]) -> None:
    for name, value in said.items():
        if own.value("setting", name) != value:
            flag = f"{({**FLAGS, **OF_BUILDS})[name]} {value}"
            if name in HIDDEN:
                flag = FLAGS[name]
            elif isinstance(value, bool):
                flag = FLAGS[name] if value else NOT[name]
            own.keep(entries.Version(of="setting", name=name, number=0, reason=flag, by="person"), value)


def of_session(
    history: session.Session, texts: Texts, settings: Settings, said: Mapping[str, Json] | None = None
) -> Settings:
    """Return the settings of a session: kept ones replace those in ``settings``, unless a flag is ``said`` now."""
    kept: dict[str, Any] = {}
    for name in FLAGS:
        found = history.latest("setting", name)
        if found is not None and name not in (said or {}):
            value = texts.value_of(found)
            kept[name] = Path(value) if isinstance(value, str) and name == "chat_knowledge" else value
    return settings.model_copy(update=kept)


def origin(own: SessionState, name: str) -> str:
    """Return where the session has a setting from: the flag that it keeps, or see ``runtime.settings.settings.origin``."""
    kept = own.history.latest("setting", name)
    return kept.reason if kept is not None else all_settings.origin(name)
