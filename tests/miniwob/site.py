"""Serves the pages of MiniWoB++ from the installed package, begins their episodes, and hears how they end.

The package itself is not imported. A page that is asked for with ``?episode=KEY&seed=SEED`` begins an episode when it is loaded.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import http.server
import importlib.util
import threading
import urllib.parse
from collections.abc import Generator
from pathlib import Path

from typing_extensions import override

BEGIN = """<script>
addEventListener('load', () => {
  const asked = new URLSearchParams(location.search);
  if (window !== top || !asked.has('seed')) return;
  const ended = core.endEpisode;
  core.endEpisode = (...given) => {
    const before = WOB_DONE_GLOBAL;
    ended(...given);
    if (before || !WOB_DONE_GLOBAL) return;
    const request = new XMLHttpRequest();
    // The step that ends the episode is over only when it is heard.
    request.open('POST', `/ended?${new URLSearchParams({episode: asked.get('episode'), reward: WOB_RAW_REWARD_GLOBAL})}`, false);
    request.send();
  };
  const begin = () => {
    if (!WOB_TASK_READY || core.cover_div === null) return setTimeout(begin, 10);
    core.EPISODE_MAX_TIME = 600000;
    Math.seedrandom(asked.get('seed'));
    core.startEpisodeReal();
  };
  begin();
});
</script>"""
"""Stands at the end of a page. It is the judge's, and no workflow knows of it."""


@dataclasses.dataclass
class Judge:
    """What the pages said at the ends of their episodes."""

    origin: str = ""
    rewards: dict[str, float] = dataclasses.field(default_factory=dict)
    """By episode, only the first one: afterwards the page ignores what is done."""

    def page(self, task: str, episode: str, seed: str) -> str:
        """The address at which an episode begins."""
        return f"{self.origin}/miniwob/{task}.html?{urllib.parse.urlencode({'episode': episode, 'seed': seed})}"


class _Pages(http.server.SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    extensions_map = {  # noqa: RUF012 - it is the base class's
        **http.server.SimpleHTTPRequestHandler.extensions_map,
        ".html": "text/html; charset=utf-8",
        ".js": "text/javascript; charset=utf-8",
        ".css": "text/css; charset=utf-8",
    }

    def __init__(self, *args: object, judge: Judge, directory: str) -> None:
        self._judge = judge
        super().__init__(*args, directory=directory)  # pyright: ignore[reportArgumentType]

    @override
    def do_GET(self) -> None:
        path, _, asked = self.path.partition("?")
        if "seed=" not in asked or not path.startswith("/miniwob/"):
            super().do_GET()
            return
        text = Path(self.translate_path(path)).read_text(encoding="utf-8")
        body = f"{text}\n{BEGIN}".encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self) -> None:
        asked = urllib.parse.parse_qs(self.path.partition("?")[2])
        self._judge.rewards.setdefault(asked["episode"][0], float(asked["reward"][0]))
        self.send_response(204)
        self.end_headers()

    @override
    def log_message(self, format: str, *args: object) -> None:
        """Nobody reads it."""


def folder() -> Path:
    """The folder with the package's pages."""
    found = importlib.util.find_spec("miniwob")
    assert found is not None
    assert found.origin is not None
    return Path(found.origin).parent / "html"


@contextlib.contextmanager
def served() -> Generator[Judge]:
    """A site that has the tasks at ``/miniwob/NAME.html``, until the block ends."""
    judge = Judge()
    handler = functools.partial(_Pages, judge=judge, directory=str(folder()))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    judge.origin = f"http://127.0.0.1:{server.server_port}"
    try:
        yield judge
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
