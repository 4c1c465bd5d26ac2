"""Serves the shop over HTTP, and applies the switches."""

from __future__ import annotations

import sys
import time
import traceback
from http.cookies import CookieError, SimpleCookie
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from workflows.shop import forms, site
from workflows.shop.switches import Switch
from workflows.shop.web import RefusedError, Request, Response, Shop

HOST = "127.0.0.1"
LARGEST_BODY = 1 << 20
NO_ANSWER = b"?"


class ShopServer(ThreadingHTTPServer):
    """A thread for each connection; all end with the process."""

    daemon_threads = True
    request_queue_size = 128
    shop: Shop

    def __init__(self, port: int, quiet: bool) -> None:
        self.quiet = quiet
        self.ending = False
        super().__init__((HOST, port), _Handler)

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.server_address[1]}"

    def server_bind(self) -> None:
        """Bind the port, without HTTPServer's look-up of the host name, which is slow and not needed."""
        TCPServer.server_bind(self)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Report an error of a connection, unless the browser has gone or the shop is ending."""
        if not isinstance(sys.exception(), ConnectionError) and not self.ending:
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    server: ShopServer
    protocol_version = "HTTP/1.1"
    # Head and body in one packet, at once: Nagle's algorithm would add 40 ms to each page.
    wbufsize = -1
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        self._serve()

    def do_HEAD(self) -> None:
        self._serve()

    def do_POST(self) -> None:
        self._serve()

    def do_DELETE(self) -> None:
        self._serve()

    def log_message(self, format: str, *args: Any) -> None:
        if not self.server.quiet:
            sys.stderr.write(f"{time.strftime('%H:%M:%S')} {format % args}\n")

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        # Without the query, which the mirror fills with secrets.
        self.log_message("%s %s %s", self.command, urlsplit(self.path).path, code)

    def _serve(self) -> None:
        try:
            request = self._read()
        except RefusedError as refusal:
            # The body is unread, so where the next request begins is unknown.
            self.close_connection = True
            self._send(site.refuse(Request(self.command, urlsplit(self.path).path, self.path, {}, {}), refusal))
            return
        response = self._answer(request) if site.is_api(request.path) else self._conduct(request)
        if response is None:
            self.log_message("%s %s unanswered", self.command, request.path)
            # If an open connection closes without a byte, Chromium repeats the request by itself, even a POST: then the browser
            # would pay twice. Bytes that are no HTTP answer count as a bad answer, and are not repeated.
            self.wfile.write(NO_ANSWER)
            self.close_connection = True
        else:
            self._send(response)

    def _conduct(self, request: Request) -> Response | None:
        """Carry a request out under the switches; `None` if it gets no answer."""
        shop = self.server.shop
        taken = shop.board.take(request.method, request.path)
        if any(each.kind == "logout" for each in taken):
            shop.store.sign_everyone_out()
        if not self._pass(taken, "before", request):
            return None
        if any(each.kind == "break" for each in taken):
            return site.refuse(request, RefusedError(500, "The shop was told to fail here; nothing was carried out."))
        response = self._answer(request)
        if not self._pass(taken, "after", request) or any(each.kind == "drop" for each in taken):
            return None
        return response

    def _answer(self, request: Request) -> Response:
        try:
            return site.answer(self.server.shop, request)
        except Exception:  # noqa: BLE001  # the last fence: a mistake in a page is logged and shown as a page
            if not self.server.ending:
                traceback.print_exc()
            return site.refuse(request, RefusedError(500, "This is a mistake in the shop; its log says more."))

    def _pass(self, taken: list[Switch], moment: str, request: Request) -> bool:
        for each in taken:
            if each.moment == moment and each.kind == "delay":
                time.sleep(each.ms / 1000)
            if (
                each.moment == moment
                and each.kind == "hold"
                and not self.server.shop.board.hold(each, request.method, request.path)
            ):
                return False
        return True

    def _read(self) -> Request:
        parts = urlsplit(self.path)
        path, length = unquote(parts.path), self.headers.get("Content-Length", "0")
        if "Transfer-Encoding" in self.headers or not length.isdecimal():
            raise RefusedError(411, "The shop wants to know the length of a body beforehand.")
        if int(length) > LARGEST_BODY:
            raise RefusedError(413, "The shop takes bodies up to one megabyte.")
        body = self.rfile.read(int(length))
        if len(body) < int(length):
            raise ConnectionAbortedError("the browser went away while it sent")
        fields, files = forms.read(self.headers.get("Content-Type", ""), body)
        return Request(
            self.command,
            path,
            self.path,
            query=dict(parse_qsl(parts.query, keep_blank_values=True)),
            form=fields,
            files=files,
            body=body,
            cookies=_cookies(self.headers.get("Cookie", "")),
            wants_json=self.headers.get("Accept", "").startswith("application/json"),
        )

    def _send(self, response: Response) -> None:
        self.send_response(response.status)
        for name, value in (
            ("Content-Type", response.content_type),
            ("Content-Length", str(len(response.body))),
            ("Cache-Control", "no-store"),
            *response.headers,
            *((("Connection", "close"),) if self.close_connection else ()),
        ):
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(response.body)


def _cookies(header: str) -> dict[str, str]:
    try:
        return {name: morsel.value for name, morsel in SimpleCookie(header).items()}
    except CookieError:
        return {}
