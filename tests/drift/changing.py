"""A site that changes: a proxy on loopback for the shop, which rewrites the shop's answers."""

from __future__ import annotations

import contextlib
import dataclasses
import http.client
import http.server
import threading
import time
from collections.abc import Callable, Generator, Mapping
from typing import Any

from typing_extensions import override


@dataclasses.dataclass
class Page:
    """An answer of the shop on its way to the browser."""

    method: str
    path: str
    """Without the query."""
    status: int
    html: str
    headers: dict[str, str]
    """Headers sent in addition to those of the shop."""
    number: int
    """The number of requests for this path since the change began, including this one."""


Change = Callable[[Page], None]
"""Changes an answer."""


@dataclasses.dataclass
class Changing:
    """The proxy."""

    port: int
    """The port of the shop."""
    change: Change | None = None
    before: Callable[[str, str], None] | None = None
    """Called with method and path before the shop is asked; may wait."""
    own: int = 0
    """Its own port."""
    seen: dict[str, int] = dataclasses.field(default_factory=dict)
    _server: Any = None
    _thread: threading.Thread | None = None

    @property
    def url(self) -> str:
        """Its address, also while it is closed."""
        return f"http://127.0.0.1:{self.own}"

    def begin(self, change: Change | None, before: Callable[[str, str], None] | None = None) -> None:
        """Change all answers like this from now on."""
        self.change, self.before = change, before
        self.seen.clear()

    def open(self) -> None:
        """Answer, on the same port as before."""
        proxy = self

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True
            allow_reuse_address = True

            @override
            def handle_error(self, request: object, client_address: object) -> None:
                """Ignore a browser that hangs up."""

        class Incoming(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length") or 0))
                page, headers = proxy._asked(self.command, self.path, self.headers.items(), body)
                data = page.html.encode()
                self.send_response(page.status)
                for name, value in [*headers, *page.headers.items(), ("content-length", str(len(data)))]:
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(data)

            do_POST = do_GET  # noqa: N815 - the name that the server looks for

            @override
            def log_message(self, format: str, *args: object) -> None:
                """The shop has a log."""

        self._server = Server(("127.0.0.1", self.own), Incoming)
        self.own = self._server.server_port
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02})
        self._thread.start()

    def close(self) -> None:
        """Stop answering: connections are refused."""
        if self._server is not None and self._thread is not None:
            self._server.shutdown()
            self._server.server_close()
            self._thread.join()
            self._server = None

    def _asked(self, method: str, target: str, headers: Any, body: bytes) -> tuple[Page, list[tuple[str, str]]]:
        path = target.partition("?")[0]
        self.seen[path] = self.seen.get(path, 0) + 1
        if self.before is not None:
            self.before(method, path)
        shop = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            passed = {
                name: value for name, value in headers if name.lower() not in ("host", "accept-encoding", "connection")
            }
            shop.request(method, target, body or None, passed)
            answer = shop.getresponse()
            passed_on = [
                (name, value)
                for name, value in answer.getheaders()
                if name.lower() not in ("content-length", "connection", "date", "server")
            ]
            page = Page(method, path, answer.status, answer.read().decode(), {}, self.seen[path])
        finally:
            shop.close()
        if self.change is not None and dict(passed_on).get("Content-Type", "").startswith("text/html"):
            self.change(page)
        return page, passed_on


@contextlib.contextmanager
def before(port: int) -> Generator[Changing]:
    """A proxy before the shop at ``port``, until the block ends."""
    proxy = Changing(port)
    proxy.open()
    try:
        yield proxy
    finally:
        proxy.close()


def replacing(words: Mapping[str, str], path: str | None = None) -> Change:
    """Replaces texts of the pages (of one path, if given). Each must occur on the pages where it matters."""

    def change(page: Page) -> None:
        if path is None or page.path == path:
            for old, new in words.items():
                page.html = page.html.replace(old, new)

    return change


def adding(html: str, path: str | None = None, at: str = "<main") -> Change:
    """Adds something in front of the content of the pages."""

    def change(page: Page) -> None:
        if (path is None or page.path == path) and page.status == 200:
            page.html = page.html.replace(at, f"{html}{at}", 1)

    return change


def waiting(path: str, seconds: float, method: str = "GET") -> Callable[[str, str], None]:
    """Delays the answers for one path."""

    def before(asked: str, at: str) -> None:
        if at == path and asked == method:
            time.sleep(seconds)  # that the site is slow is what is tested

    return before
