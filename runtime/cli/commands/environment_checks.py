"""Checks of this machine: browser, home folder, disk space, settings. They change nothing, and use no network."""

from __future__ import annotations

import dataclasses
import difflib
import os
import shutil
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import psutil

from nodes.errors import RunOpsError
from runtime import version
from runtime.browser.chromium import find, launch
from runtime.display.text import duration, size
from runtime.models import selection
from runtime.settings import settings
from runtime.system import locks
from runtime.workspace import host

State = Literal["ok", "note", "wrong"]

LEAST_ROOM, LITTLE_ROOM = 200_000_000, 1_000_000_000
"""Free bytes on a disk below which runs fail, and below which they soon may: a browser's profile, logs, files."""

NETWORK = frozenset({"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "ceph", "glusterfs", "lustre", "fuse.sshfs"})
"""File systems that several machines may share."""

IN_MEMORY = frozenset({"tmpfs", "ramfs"})


@dataclasses.dataclass(frozen=True, slots=True)
class Check:
    """The result of one check: ``ok``; ``note``: it works, with a remark; ``wrong``: something is missing."""

    name: str
    state: State
    text: str
    fix: str | None = None

    @classmethod
    def failed(cls, name: str, error: RunOpsError) -> Check:
        return cls(name, "wrong", error.message, error.fix)


async def browser(config: settings.Settings) -> Check:
    try:
        path = find.find(config.browser)
        begun = time.monotonic()
        chromium = await launch.start(path, None, linger=0, headed=config.headed)
        took = time.monotonic() - begun
        await chromium.end()
    except RunOpsError as error:
        said = str(error.evidence.get("log", "")).strip().splitlines()
        return dataclasses.replace(Check.failed("browser", error), text=" – ".join([error.message, *said[-1:]]))
    return Check("browser", "ok", f"{path} starts in {duration(took)}")


def playwright() -> Check:
    found = version.untested()
    if found is not None:
        return Check("playwright", "note", *found)
    return Check("playwright", "ok", f"{version.playwright()} is one that RunOps is tested with")


def home(folder: Path) -> Check:
    place = _existing(folder)
    try:
        handle, name = tempfile.mkstemp(prefix=".doctor.", dir=place)
        try:
            os.write(handle, b"x")
            os.fsync(handle)
            locked = _locks(Path(name))
        finally:
            os.close(handle)
            Path(name).unlink()
    except OSError as error:
        fix = "make the folder writable for you, or set RUNOPS_HOME to one that is"
        return Check("home", "wrong", f"{folder} cannot be used: {place}: {error.strerror}", fix)
    kind = file_system(place)
    text = f"{folder}  {kind}" if place == folder else f"{folder}  {kind}, made by the first run"
    if not locked:
        text += ": a file there cannot be locked, so two processes could take one run"
        return Check("home", "wrong", text, "set RUNOPS_HOME to a folder on a disk of this machine")
    if kind in NETWORK:
        fix = "keep it on a disk of this machine, or let one machine alone use it"
        return Check("home", "note", f"{text}: a lock there may not hold for another machine", fix)
    if kind in IN_MEMORY:
        return Check("home", "note", f"{text}: what is kept there ends with the machine", "set RUNOPS_HOME to a disk")
    return Check("home", "ok", text)


def _existing(folder: Path) -> Path:
    return next(each for each in (folder, *folder.parents) if os.path.exists(each))  # noqa: PTH110 — never raises


def _locks(file: Path) -> bool:
    """True if a lock on the file is visible to another opener."""
    handle = locks.hold(file)
    if handle is None:
        return False
    try:
        return locks.is_held(file)
    finally:
        os.close(handle)


def file_system(folder: Path) -> str:
    """Return the kernel's name for the folder's file system; ``unknown`` where it gives none."""
    real = folder.resolve()
    found = [each for each in psutil.disk_partitions(all=True) if real.is_relative_to(each.mountpoint)]
    # The later of two mounts at one place counts.
    best = max(enumerate(found), key=lambda each: (len(Path(each[1].mountpoint).parts), each[0]), default=None)
    return best[1].fstype or "unknown" if best is not None else "unknown"


def room(folder: Path) -> Check:
    places = list(dict.fromkeys((_existing(folder), Path(tempfile.gettempdir()))))
    free = {place: shutil.disk_usage(place).free for place in places}
    text = ", ".join(f"{size(number)} in {place}" for place, number in free.items())
    least = min(free.values())
    if least >= LITTLE_ROOM:
        return Check("room", "ok", f"free: {text}")
    state: State = "note" if least >= LEAST_ROOM else "wrong"
    return Check("room", state, f"little is free: {text}", "make room; `runops prune` deletes what no run needs")


def misspelt(environ: Mapping[str, str]) -> list[Check]:
    known = {f"{settings.PREFIX}{name}".upper() for name in settings.Settings.model_fields} | {*OTHERS}
    strange = [name for name in sorted(environ) if name.startswith(settings.PREFIX) and name.upper() not in known]
    near = {name: difflib.get_close_matches(name.upper(), known, 1, 0.85) for name in strange}
    return [
        Check("settings", "note", f"{name} is not a setting, so it has no effect", f"did you mean {close[0]}?")
        for name, close in near.items()
        if close
    ]


OTHERS = (selection.KEY, "RUNOPS_TRACEBACK")  # variables that are read and are no settings


ROLES: tuple[selection.Role, ...] = ("cognition", "agent", "director", "summary")


def models_by_role(config: settings.Settings) -> dict[str, str]:
    return {role: selection.model_for(role, config) for role in ROLES if selection.is_set(role, config)}


def models(given: host.Host) -> list[Check]:
    config = given.settings
    by_role = models_by_role(config)
    if not by_role:
        fix = 'for workflows that ask one, set RUNOPS_MODEL, or `model = "…"` in [tool.runops] of pyproject.toml'
        return [Check("models", "ok", "none is set, and only a workflow that asks one needs it", fix)]
    uses: dict[str, list[str]] = {}
    for role, model in by_role.items():
        uses.setdefault(model, []).append(role)
    text = "; ".join(
        f"{model} for {'everything' if len(roles) == len(ROLES) else ', '.join(roles)}" for model, roles in uses.items()
    )
    found = [Check("models", "ok", text)]
    try:
        server = selection.server(config, given.secrets)
    except RunOpsError as error:
        return [*found, Check.failed("server", error)]
    key = "no key is set, and none is needed there" if server.key == selection.NO_KEY else "a key is set"
    by = "as set" if config.model_profile is not None else "by its address"
    return [*found, Check("server", "ok", f"{server.base_url}  profile {server.profile.name} ({by}), {key}")]
