"""Signed-in states by name, in the private part of the home. They are never shown, scanned or uploaded."""

from __future__ import annotations

import asyncio
import datetime as dt
import json
from pathlib import Path
from typing import Any

from typing_extensions import override

from nodes import ports
from nodes.values import Json
from runtime.system import files, regular_files

FORMAT = 1


class SignIns(ports.Sessions):
    """The states in one folder, which is created with the first one."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @override
    async def save(self, name: str, content: Json) -> str:
        file = self._folder / f"{name}.json"
        saved_at = dt.datetime.now(dt.UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
        data = json.dumps({"format": FORMAT, "saved_at": saved_at, "content": content}).encode()
        try:
            await files.keep(file, data)
        except OSError as error:
            raise files.not_kept("the signed-in state", file, error) from None
        return saved_at

    @override
    async def load(self, name: str) -> ports.SavedSession | None:
        try:
            kept: dict[str, Any] = json.loads(
                await asyncio.to_thread(regular_files.read, self._folder / f"{name}.json")
            )
            if kept["format"] != FORMAT:
                return None
            saved_at = dt.datetime.fromisoformat(kept["saved_at"])
            age = (dt.datetime.now(dt.UTC) - saved_at).total_seconds()
            return ports.SavedSession(kept["content"], kept["saved_at"], max(0.0, age))
        except (OSError, ValueError, KeyError, TypeError):
            # An unreadable state counts as missing: the workflow signs in again, and saves a new one.
            return None
