"""How applications are installed, started, asked and ended."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

READY_SECONDS = 300


class Failed(Exception):
    """An application could not be installed, started or asked."""


def python_packages(home: Path, *packages: str) -> Path:
    """The folder with the programs of packages, installed at the first call into an environment of their own."""
    return _installed(
        home / "venv", packages, [sys.executable, "-m", "venv"], ["bin/python", "-m", "pip", "install", "-q"]
    )


def node_packages(home: Path, *packages: str) -> Path:
    """The folder with the programs of npm packages, installed at the first call."""
    folder = home / "node"
    folder.mkdir(parents=True, exist_ok=True)
    done = folder / "installed"
    if not done.exists():
        ran(["npm", "install", "--no-audit", "--no-fund", "--prefix", str(folder), *packages])
        done.touch()
    return folder / "node_modules" / ".bin"


def debian_packages(*packages: str, program: str) -> Path:
    """The path of a program of a Debian package, installed where it is missing."""
    if shutil.which(program) is None:
        ran(["apt-get", "install", "-y", "--no-install-recommends", *packages])
    return Path(shutil.which(program) or program)


def _installed(folder: Path, packages: Sequence[str], make: list[str], install: list[str]) -> Path:
    done = folder / "installed"
    if not done.exists():
        ran([*make, str(folder)])
        ran([str(folder / install[0]), *install[1:], *packages])
        done.touch()
    return folder / "bin"


def ran(command: Sequence[str], cwd: Path | None = None, given: str = "", **environment: str) -> str:
    """The standard output of a program that ends by itself."""
    done = subprocess.run(
        command, cwd=cwd, input=given, env={**os.environ, **environment}, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise Failed(f"{' '.join(command)}: exit {done.returncode}\n{done.stdout[-1000:]}\n{done.stderr[-2000:]}")
    return done.stdout


def started(command: Sequence[str], log: Path, cwd: Path | None = None, **environment: str) -> subprocess.Popen[bytes]:
    """A program that serves, in a process group of its own; its output goes into ``log``."""
    with log.open("ab") as out:
        return subprocess.Popen(
            command,
            cwd=cwd,
            env={**os.environ, **environment},
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            start_new_session=True,
        )


def ended(processes: Sequence[subprocess.Popen[bytes]]) -> None:
    """End programs with all that they started, the last one first."""
    for process in reversed(processes):
        for number in (signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(10)
                break


def until_it_answers(url: str, seconds: float = READY_SECONDS) -> None:
    """Wait for any answer of a server that is no error of its own."""
    end = time.monotonic() + seconds
    while True:
        try:
            with urllib.request.urlopen(url, timeout=10):
                return
        except urllib.error.HTTPError as error:
            if error.code < 500:
                return
            last: Exception = error
        except OSError as error:
            last = error
        if time.monotonic() > end:
            raise Failed(f"{url} did not answer within {seconds:.0f} s: {last}")
        time.sleep(0.25)


def asked(
    url: str, body: Any = None, method: str | None = None, headers: Mapping[str, str] | None = None, seconds: float = 60
) -> Any:
    """The JSON answer to a request with a JSON body; None if it is empty."""
    request = urllib.request.Request(
        url,
        data=None if body is None else json.dumps(body).encode(),
        method=method,
        headers={"Content-Type": "application/json", **(headers or {})},
    )
    with urllib.request.urlopen(request, timeout=seconds) as answer:
        text = answer.read()
    return json.loads(text) if text.strip() else None


def rows(database: Path, query: str, *values: object) -> list[dict[str, Any]]:
    """The rows of a query on an SQLite file that is only read."""
    with contextlib.closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
        connection.row_factory = sqlite3.Row
        return [dict(each) for each in connection.execute(query, values)]


def copied(source: Path, target: Path) -> None:
    """Copy an SQLite database through SQLite: a program that has the target open sees the old data or the new."""
    with contextlib.closing(sqlite3.connect(source)) as old, contextlib.closing(sqlite3.connect(target)) as new:
        old.backup(new)


def texts(value: Any) -> list[str]:
    """Every text and number in an output."""
    if isinstance(value, dict):
        return [text for each in value.values() for text in texts(each)]
    if isinstance(value, list):
        return [text for each in value for text in texts(each)]
    return [] if value is None or isinstance(value, bool) else [str(value)]
