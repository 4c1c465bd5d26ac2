"""Checks of a machine: its browser, the folder for runs, its disk, memory, clock and fonts. They change nothing and use no network."""

from __future__ import annotations

import contextlib
import dataclasses
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import psutil

from nodes.errors import RunOpsError, SetupError
from runtime import version
from runtime.browser.chromium import find, launch
from runtime.display.text import duration, size
from runtime.settings import settings
from runtime.system import locks

State = Literal["ok", "note", "wrong"]

# Free bytes on a disk below which runs fail, and below which they soon may: a browser's profile, logs, files.
LEAST_ROOM, LITTLE_ROOM = 200_000_000, 1_000_000_000
# File systems that several machines may share: their locks may not be reliable.
NETWORK = frozenset({"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "ceph", "glusterfs", "lustre", "fuse.sshfs"})
IN_MEMORY = frozenset({"tmpfs", "ramfs"})
FAR = 12  # major versions of Chromium: a year
LEAST_MEMORY, LITTLE_MEMORY = (
    300_000_000,
    1_000_000_000,
)  # bytes below which a browser dies, and below which it soon may
CGROUP = Path("/sys/fs/cgroup")
AHEAD = 300  # seconds by which a file may be from the future
FONTS = ("/usr/share/fonts", "/usr/local/share/fonts", "~/.fonts", "~/.local/share/fonts")
FONT = (".otf", ".pcf", ".pfb", ".ttc", ".ttf", ".gz")


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


def playwright(named: Path | None) -> Check:
    """Compare Playwright with RunOps, and the browser with Playwright."""
    found = version.untested()
    if found is not None:
        return Check("playwright", "note", *found)
    text = f"{version.playwright()} is one that RunOps is tested with"
    made_for, there = _made_for(), _major(named)
    if made_for is None or there is None:
        return Check("playwright", "ok", text)
    text += f"; it is made for Chromium {made_for}, and drives {there}"
    if abs(made_for - there) <= FAR:
        return Check("playwright", "ok", text)
    fix = (
        "take one that fits: `playwright install chromium` brings it, and is preferred where RUNOPS_BROWSER is not set"
    )
    return Check("playwright", "note", text, fix)


def _made_for() -> int | None:
    """Return the major version of Chromium that Playwright was made for."""
    spec = importlib.util.find_spec("playwright")
    if spec is None or spec.origin is None:
        return None
    try:
        file = Path(spec.origin).parent / "driver/package/browsers.json"
        listed = json.loads(file.read_text(encoding="utf-8"))["browsers"]
        (of_chromium,) = [each["browserVersion"] for each in listed if each["name"] == "chromium"]
        return int(of_chromium.partition(".")[0])
    except (OSError, ValueError, KeyError):
        return None


def _major(named: Path | None) -> int | None:
    """Return the major version of the browser that a run would drive."""
    try:
        done = subprocess.run([find.find(named), "--version"], capture_output=True, text=True, timeout=10, check=False)
    except (SetupError, OSError, subprocess.TimeoutExpired):
        return None
    said = re.search(r"(\d+)\.\d+", done.stdout)
    return int(said[1]) if said else None


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
    """Return the kernel's name for the folder's file system; ``unknown`` if it has none."""
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


def memory() -> Check:
    """Measure what is free, also within the limit of a container."""
    free = psutil.virtual_memory().available
    text = f"free: {size(free)}"
    limit, used = _number(CGROUP / "memory.max"), _number(CGROUP / "memory.current")
    if limit is not None and used is not None and limit - used < free:
        free = max(limit - used, 0)
        text = f"free: {size(free)} of the container's {size(limit)}"
    if free >= LITTLE_MEMORY:
        return Check("memory", "ok", text)
    fix = "give the machine or the container more memory, or let fewer programs run beside it"
    return Check("memory", "note" if free >= LEAST_MEMORY else "wrong", f"{text}, and a browser needs more", fix)


def _number(file: Path) -> int | None:
    try:
        return int(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):  # `max`: no limit
        return None


def clock(folder: Path) -> Check:
    """Compare the clock with what was written before."""
    files = [Path(version.__file__)]
    with contextlib.suppress(OSError):
        files += sorted((folder / "conversations").glob("*.jsonl"))[-1:]
    written = {file: file.stat().st_mtime for file in files if file.is_file()}
    newest = max(written, key=lambda file: written[file])
    behind = written[newest] - time.time()
    if behind <= AHEAD:
        return Check("clock", "ok", time.strftime("%Y-%m-%d %H:%M %Z"))
    text = f"it is {time.strftime('%Y-%m-%d %H:%M %Z')}, {duration(behind)} before {newest} was written"
    return Check("clock", "note", f"{text}: certificates and one-time codes may be refused", "set the clock, or wait")


def fonts() -> Check:
    if sys.platform == "darwin" or any(True for _ in _fonts()):
        return Check("fonts", "ok", "there are fonts")
    package = (
        "type: apt-get install -y fonts-dejavu-core" if shutil.which("apt-get") else "install DejaVu, or another font"
    )
    return Check("fonts", "note", "there is no font: pages have boxes in place of letters, in pictures too", package)


def _fonts() -> Iterator[str]:
    for folder in FONTS:
        for _, _, names in os.walk(Path(folder).expanduser()):
            yield from (name for name in names if name.endswith(FONT))
