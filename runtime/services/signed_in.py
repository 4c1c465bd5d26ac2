"""Signed-in states by name, in the private part of the home. They are never shown, scanned or uploaded."""

from __future__ import annotations

import asyncio
import dataclasses
import datetime as dt
import json
from pathlib import Path
from typing import Any, NotRequired

import pydantic
from typing_extensions import TypedDict, override

from nodes import ports
from nodes.errors import UsageError
from nodes.values import Json
from runtime.system import files, regular_files

FORMAT = 1


class _Cookie(TypedDict):
    name: str
    value: str
    domain: str
    path: str
    expires: float
    httpOnly: bool
    secure: bool


class _Entry(TypedDict):
    name: str
    value: str


class _Origin(TypedDict):
    origin: str
    localStorage: list[_Entry]


class _File(TypedDict):
    cookies: list[_Cookie]
    origins: list[_Origin]
    saved_at: NotRequired[pydantic.AwareDatetime]


_FILE: pydantic.TypeAdapter[_File] = pydantic.TypeAdapter(_File)
"""A file of Playwright's ``storageState``, whose further fields are kept as they are; ``saved_at`` is ours."""


@dataclasses.dataclass(frozen=True, slots=True)
class SignIn:
    """Facts about a signed-in state, without anything that signs in."""

    name: str
    saved_at: str
    sites: list[str]
    """Domains of its cookies, and origins with stored data."""


class SignIns(ports.Sessions):
    """The states in one folder, which is created with the first one."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @override
    async def save(self, name: str, content: Json) -> str:
        saved_at = _now()
        await self._keep(name, content, saved_at)
        return saved_at

    @override
    async def load(self, name: str) -> ports.SavedSession | None:
        return await asyncio.to_thread(self.read, name)

    async def _keep(self, name: str, content: Json, saved_at: str) -> None:
        file = self._file(name)
        data = json.dumps({"format": FORMAT, "saved_at": saved_at, "content": content}).encode()
        try:
            await files.keep(file, data)
        except OSError as error:
            raise files.not_kept("the signed-in state", file, error) from None

    def _file(self, name: str) -> Path:
        return self._folder / f"{name}.json"

    def read(self, name: str) -> ports.SavedSession | None:
        try:
            kept: dict[str, Any] = json.loads(regular_files.read(self._file(name)))
            if kept["format"] != FORMAT:
                return None
            saved_at = dt.datetime.fromisoformat(kept["saved_at"])
            age = (dt.datetime.now(dt.UTC) - saved_at).total_seconds()
            return ports.SavedSession(kept["content"], kept["saved_at"], max(0.0, age))
        except (OSError, ValueError, KeyError, TypeError):
            # An unreadable state counts as missing: the workflow signs in again, and saves a new one.
            return None

    def every(self) -> list[SignIn]:
        """Return all readable states, by name."""
        names = sorted(file.stem for file in self._folder.glob("[!.]*.json"))
        return [
            SignIn(name, state.saved_at, _sites(state.content))
            for name in names
            if (state := self.read(name)) is not None
        ]

    def exported(self, name: str) -> bytes:
        """Return the state as a file for another machine. Raises UsageError ``session-not-found``."""
        state = self.read(name)
        if state is None:
            raise self._missing(name)
        return json.dumps({**state.content, "saved_at": state.saved_at}).encode()

    async def bring(self, name: str, data: bytes) -> str:
        """Save the state in ``data``, a file of ``exported`` or of Playwright; return its time. Raises UsageError ``session-unreadable``."""
        try:
            checked = _FILE.validate_json(data)
            whole: dict[str, Json] = json.loads(data)
        except pydantic.ValidationError as error:
            # Its message quotes the file, which signs in.
            first = error.errors(include_input=False, include_url=False, include_context=False)[0]
            where = ".".join(map(str, first["loc"]))
            why = f"`{where}` is missing or of another kind" if where else "it is no JSON object"
            raise UsageError(
                "session-unreadable",
                f"the file has no signed-in state: {why}",
                fix="give a file that `runops sign-ins export` or Playwright's `storageState` wrote",
            ) from None
        saved = checked.get("saved_at")
        saved_at = _now() if saved is None else _written(saved)
        whole.pop("saved_at", None)
        await self._keep(name, whole, saved_at)
        return saved_at

    def delete(self, name: str) -> None:
        """Delete the state. Raises UsageError ``session-not-found``."""
        try:
            self._file(name).unlink()
        except FileNotFoundError:
            raise self._missing(name) from None

    def _missing(self, name: str) -> UsageError:
        return UsageError(
            "session-not-found",
            f"there is no signed-in state `{name}`",
            fix="`runops sign-ins` lists them; `save_session` of a workflow saves one",
        )


def _sites(content: Json) -> list[str]:
    try:
        cookies = {str(each["domain"]).lstrip(".") for each in content["cookies"]}
        return sorted({*cookies, *(str(each["origin"]) for each in content["origins"])})
    except (KeyError, TypeError):
        return []


def _now() -> str:
    return _written(dt.datetime.now(dt.UTC))


def _written(moment: dt.datetime) -> str:
    return moment.astimezone(dt.UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
