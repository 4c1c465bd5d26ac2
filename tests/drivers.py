"""A process that has Playwright's driver loaded: loading it is half the cost of a short run on a page.

Instead of node a run starts a process with the same lifetime and a driver's streams, connected to the run's own driver in that process.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import playwright

VARIABLE = "PLAYWRIGHT_NODEJS_PATH"
"""The environment variable with the path of the node that Playwright starts."""

PACKAGE = Path(playwright.__file__).parent / "driver"

# Where the serving process is gone, it is the real driver.
STAND_IN = """#!{python} -IS
import os, select, socket, sys
link = socket.socket(socket.AF_UNIX)
try:
    link.connect({address!r})
except OSError:
    os.execv({node!r}, [{node!r}, *sys.argv[1:]])
there = link.fileno()
onto = {{0: there, there: 1}}
# Where either side is gone, it ends without a word, as node does.
try:
    while True:
        for ready in select.select(list(onto), [], [])[0]:
            data = memoryview(os.read(ready, 1 << 16))
            if not data:
                os._exit(0)
            while data:
                data = data[os.write(onto[ready], data):]
except OSError:
    os._exit(0)
"""


class Drivers:
    """The serving process, of one worker of the tests."""

    def __init__(self) -> None:
        """Start it."""
        self._folder = tempfile.TemporaryDirectory(prefix="runops-drivers-")
        address, node = f"{self._folder.name}/socket", str(PACKAGE / "node")
        serving = Path(__file__).with_suffix(".js")
        self._server = subprocess.Popen(
            [node, str(serving), str(PACKAGE / "package" / "lib"), address],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            # Ctrl-C ends the tests, which then end it.
            start_new_session=True,
        )
        assert self._server.stdout is not None
        if not self._server.stdout.readline():
            raise RuntimeError(f"{serving} ended with {self._server.wait()}")
        self.node = Path(self._folder.name, "node")
        self.node.write_text(STAND_IN.format(python=sys.executable, address=address, node=node))
        self.node.chmod(0o755)

    def close(self) -> None:
        """End it."""
        self._server.communicate()
        self._folder.cleanup()


def served() -> bool:
    """True if this system supports it: Playwright's node is at its usual place, and no other is configured."""
    return (PACKAGE / "node").exists() and not os.environ.get(VARIABLE)
