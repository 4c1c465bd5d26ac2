"""Tasks of MiniWoB, served from the installed package; the package itself is not imported."""

from __future__ import annotations

import contextlib
import functools
import http.server
import importlib.util
import threading
from collections.abc import Generator
from pathlib import Path

from typing_extensions import override

BEGIN = """() => { Math.seedrandom('7'); core.startEpisodeReal(); }"""
"""JavaScript that begins a task, always with the same content."""


class _Files(http.server.SimpleHTTPRequestHandler):
    @override
    def log_message(self, format: str, *args: object) -> None:
        """Nobody reads it."""


@contextlib.contextmanager
def served() -> Generator[str]:
    """The origin of a site that has the tasks at ``/miniwob/NAME.html``, until the block ends."""
    found = importlib.util.find_spec("miniwob")
    assert found is not None
    assert found.origin is not None
    handler = functools.partial(_Files, directory=str(Path(found.origin).parent / "html"))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
