"""A site on loopback for tests of the browser: pages by path, and a record of every request that arrives."""

from __future__ import annotations

import contextlib
import dataclasses
import http.server
import ssl
import threading
import urllib.parse
from collections.abc import Callable, Generator
from pathlib import Path

from typing_extensions import override


@dataclasses.dataclass(frozen=True)
class Request:
    """A request as it arrived."""

    method: str
    path: str
    """Without the query."""
    query: dict[str, str]
    headers: dict[str, str]
    """By lower-case name."""
    body: str


@dataclasses.dataclass(frozen=True)
class Answer:
    """An answer of the site; ``drop`` closes the connection instead, ``midway`` is called when half of the body is sent."""

    body: str = ""
    status: int = 200
    headers: dict[str, str] = dataclasses.field(default_factory=dict)
    drop: bool = False
    midway: Callable[[], None] | None = None


Handler = Callable[[Request], Answer]


class Site:
    """One origin. ``serve()`` runs it on a free port until the block ends."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.origin = ""
        self._handlers: dict[str, Handler] = {}

    def page(self, path: str, body: str, **headers: str) -> str:
        """Serve ``body`` at ``path``; returns the address. Headers are given with underscores: ``set_cookie="a=1"``."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.answer(path, lambda _request: Answer(body, headers=named))

    def redirect(self, path: str, to: str) -> str:
        """Redirect ``path`` to ``to``; returns the address."""
        return self.answer(path, lambda _request: Answer(status=302, headers={"location": to}))

    def answer(self, path: str, handler: Handler) -> str:
        """Answer requests for ``path`` with ``handler``; returns the address."""
        self._handlers[path] = handler
        return self.origin + path

    def arrived(self, path: str | None = None) -> list[Request]:
        """The requests so far, in order, for ``path`` or all; without those for the icon."""
        return [each for each in self.requests if each.path == (path or each.path) and each.path != "/favicon.ico"]

    def _take(self, request: Request) -> Answer:
        self.requests.append(request)
        handler = self._handlers.get(request.path)
        return handler(request) if handler else Answer("<!doctype html><title>Nothing here</title>", 404)


@contextlib.contextmanager
def serve(*, secure: bool = False) -> Generator[Site]:
    """A site that runs until the block ends; the certificate of a ``secure`` one is untrusted.

    It also answers proxy requests (``GET http://elsewhere/path``), as if it were elsewhere itself.
    """
    site = Site()

    class Server(http.server.ThreadingHTTPServer):
        daemon_threads = True

        @override
        def handle_error(self, request: object, client_address: object) -> None:
            """Ignore a browser that hangs up."""

    class Incoming(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            address = urllib.parse.urlsplit(self.path)
            body = self.rfile.read(int(self.headers.get("content-length") or 0)).decode()
            headers = {name.lower(): value for name, value in self.headers.items()}
            query = dict(urllib.parse.parse_qsl(address.query))
            answer = site._take(Request(self.command, address.path, query, headers, body))
            if answer.drop:
                self.close_connection = True
                return
            data = answer.body.encode()
            self.send_response(answer.status)
            for name, value in {"content-type": "text/html; charset=utf-8", **answer.headers}.items():
                self.send_header(name, value)
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            if answer.midway is not None:
                half, data = data[: len(data) // 2], data[len(data) // 2 :]
                self.wfile.write(half)
                self.wfile.flush()
                answer.midway()
            self.wfile.write(data)

        do_POST = do_PUT = do_GET  # noqa: N815 - the names that the server looks for

        @override
        def log_message(self, format: str, *args: object) -> None:
            """Tests read ``requests``."""

    server = Server(("127.0.0.1", 0), Incoming)
    if secure:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(Path(__file__).with_name("untrusted.pem"))
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    site.origin = f"http{'s' if secure else ''}://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield site
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
