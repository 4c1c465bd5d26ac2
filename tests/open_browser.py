"""A Chromium that somebody else has open: started by its own command line, with a DevTools port of its choice."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import subprocess
import time
from collections.abc import Generator
from pathlib import Path

from runtime.browser.chromium import find

START_SECONDS = 30.0


@dataclasses.dataclass(frozen=True)
class Opened:
    """A running Chromium."""

    process: subprocess.Popen[bytes]
    port: int
    path: str
    """Path of its WebSocket."""

    @property
    def url(self) -> str:
        """Its address as a person knows it."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def socket(self) -> str:
        """The address of its WebSocket."""
        return f"ws://127.0.0.1:{self.port}{self.path}"


@contextlib.contextmanager
def opened(profile: Path, *addresses: str) -> Generator[Opened]:
    """A Chromium with tabs at these addresses, until the block ends."""
    command = [
        *(str(find.find()), "--headless", "--no-first-run", f"--user-data-dir={profile}"),
        *("--remote-debugging-port=0", *(["--no-sandbox"] if os.geteuid() == 0 else [])),
        *(addresses or ["about:blank"]),
    ]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            yield Opened(process, *_listening(profile / "DevToolsActivePort"))
        finally:
            process.kill()


def _listening(file: Path) -> tuple[int, str]:
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end:
        lines = file.read_text().splitlines() if file.exists() else []
        if len(lines) == 2:
            return int(lines[0]), lines[1]
        time.sleep(0.02)
    raise TimeoutError("the browser does not listen")
