"""What an application for builds by hand can do."""

from __future__ import annotations

import contextlib
import importlib
import subprocess
from collections.abc import Generator, Iterator, Mapping
from pathlib import Path
from typing import Protocol, cast

from nodes.values import Json
from tests.builds.apps import programs
from tests.builds.goal import Goal


class App(Protocol):
    """A module of this package: an application on loopback, with its data in a folder."""

    GOAL: Goal
    SECRETS: Mapping[str, str]
    """The secrets, by the names of their variables."""

    def install(self, home: Path) -> None:
        """Install the programs where they are missing."""
        ...

    def start(self, home: Path, port: int) -> list[subprocess.Popen[bytes]]:
        """The processes, as soon as the application answers."""
        ...

    def reset(self, home: Path, port: int) -> None:
        """Put the data back to the beginning, while it serves; all sessions of browsers may end."""
        ...

    def state(self, home: Path, port: int) -> Json:
        """The application's own data that the goal is about: from its database or interface, never from a page."""
        ...

    def judged(self, before: Json, after: Json, inputs: Mapping[str, Json], output: Json) -> Iterator[str]:
        """The deviations of a finished run from the goal, by the data; ``before`` and ``after`` are states."""
        ...


APPS = {
    "airflow": 4301,
    "directus": 4302,
    "labelstudio": 4303,
    "buildbot": 4304,
    "fava": 4305,
    "syncthing": 4306,
    "octoprint": 4307,
    "ihatemoney": 4308,
    "cups": 4309,
    "calibre": 4310,
}
"""The applications, with the port that each gets where none is given."""


def of(name: str) -> App:
    """The application of that name."""
    return cast("App", importlib.import_module(f"tests.builds.apps.{name}"))


@contextlib.contextmanager
def serving(app: App, home: Path, port: int) -> Generator[None]:
    """The application with its first data, installed where it is missing; all its processes end with the block."""
    home.mkdir(parents=True, exist_ok=True)
    app.install(home)
    processes = app.start(home, port)
    try:
        app.reset(home, port)
        yield
    finally:
        programs.ended(processes)
