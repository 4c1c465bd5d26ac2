"""The command as a process, in its own project, as a person or a CI job uses it."""

from __future__ import annotations

import contextlib
import io
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

from runtime.cli import app
from runtime.secrets import sources
from tests import drivers, reports, warm
from tests.terminal import Terminal

RUNOPS = Path(sys.executable).parent / "runops"
TIMEOUT = 60.0

Started = subprocess.Popen[str] | warm.Forked
"""A command that runs."""

warm_server = warm.server


def heed_signals() -> None:
    """Handle signals like a foreground process, even if the tests run in the background."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


class Project:
    """An empty folder with a clean environment, and `runops` in it."""

    def __init__(self, folder: Path, **environment: str) -> None:
        self.folder = folder
        names = ("HOME", "PATH", "RUNOPS_BROWSER", drivers.VARIABLE)
        kept = {name: os.environ[name] for name in names if name in os.environ}
        self.environment = {**kept, "LANG": "C.UTF-8", "TERM": "xterm-256color", "RUNOPS_LINGER": "30", **environment}

    def write(self, name: str, text: str) -> Path:
        """Put a file into the folder."""
        file = self.folder / name
        file.write_text(text)
        return file

    def _server(self, **environment: str) -> warm.Warm | None:
        """The server that forks commands with this additional environment; None where a command needs a new Python."""
        server = warm.server()
        return server if server is not None and server.takes({**self.environment, **environment}) else None

    def start(self, *arguments: str, prepare: Callable[[], None] | None = None, asks: bool = False) -> Started:
        """Start `runops` with pipes for stdout and stderr, and for stdin if it ``asks``; `prepare` is called first in the new process."""
        if prepare is None and (server := self._server()) is not None:
            return server.start(arguments, self.folder, self.environment, asks=asks)
        return subprocess.Popen(
            [str(RUNOPS), *arguments],
            stdin=subprocess.PIPE if asks else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=self.folder,
            env=self.environment,
            encoding="utf-8",
            preexec_fn=prepare or heed_signals,  # noqa: PLW1509 — it only sets signals, which no other thread does
        )

    def runops(
        self,
        *arguments: str,
        prepare: Callable[[], None] | None = None,
        said: str | None = None,
        seconds: float = TIMEOUT,
    ) -> subprocess.CompletedProcess[str]:
        """Run `runops` to its end with this text on standard input; a longer run than ``seconds`` fails the test."""
        with self.start(*arguments, prepare=prepare, asks=said is not None) as process:
            try:
                out, err = process.communicate(said, timeout=seconds)
            except BaseException:
                process.kill()
                raise
            return subprocess.CompletedProcess(process.args, process.wait(), out, err)

    def here(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run `runops` within this process, ten times as fast, where no process is needed. Beside other threads it is a process anyway."""
        if threading.current_thread() is not threading.main_thread():
            return self.runops(*arguments)
        out, err = io.StringIO(), io.StringIO()
        with (
            contextlib.chdir(self.folder),
            mock.patch.dict(os.environ, self.environment, clear=True),
            mock.patch.object(sources, "SEEN", {}),
            mock.patch.object(sys, "unraisablehook", sys.unraisablehook),
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
        ):
            code = app.run(list(arguments))
        return subprocess.CompletedProcess(arguments, code, out.getvalue(), err.getvalue())

    def path(self, **environment: str) -> str:
        """A PATH that contains `runops`, for a shell with ``environment`` in addition to that of the project."""
        server = self._server(**environment)
        folder = server.script.parent if server is not None else RUNOPS.parent
        return os.pathsep.join((str(folder), str(RUNOPS.parent), self.environment["PATH"]))

    def shell(self, line: str) -> subprocess.CompletedProcess[str]:
        """Run a line of shell with `runops` on its PATH; the exit code is that of the first failed program."""
        return subprocess.run(
            ["bash", "-c", f"set -o pipefail; {line}"],
            cwd=self.folder,
            env={**self.environment, "PATH": self.path()},
            capture_output=True,
            encoding="utf-8",
            timeout=TIMEOUT,
            check=False,
        )

    def terminal(
        self, *arguments: str, columns: int = 80, rows: int = 24, anew: bool = False, **environment: str
    ) -> Terminal:
        """Start `runops` on a terminal; ``anew``: with a Python that has imported nothing."""
        return Terminal(
            [str(RUNOPS), *arguments],
            columns=columns,
            rows=rows,
            environment={**self.environment, **environment},
            folder=self.folder,
            server=None if anew else self._server(**environment),
        )

    def runs(self) -> list[dict[str, Any]]:
        """The runs that `runops runs --all --json` lists."""
        return json.loads(self.here("runs", "--all", "--json").stdout)["runs"]

    def show(self, conversation: str = "last", *more: str) -> dict[str, Any]:
        """The output of `runops show --json` for a run or a session, checked against its schema."""
        shown = json.loads(self.here("show", conversation, "--json", *more).stdout)
        reports.check("session" if "session" in shown else "run", shown)
        return shown
