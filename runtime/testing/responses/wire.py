"""The fake API over HTTP: connections, streams, and their failures."""

from __future__ import annotations

import contextlib
import http
import io
import json
import selectors
import socket
import struct
import sys
import threading
from collections.abc import Iterable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from typing_extensions import override

from runtime.testing import scripted_model
from runtime.testing.responses import events
from runtime.testing.responses.api import Api, Made
from runtime.testing.responses.record import Received, Record
from runtime.testing.responses.rules import ApiError
from runtime.testing.scripted_model import Broken, Failure

HOST = "127.0.0.1"

_DEADLINE = 0.02
"""Seconds between two checks of an answer's gate, and of the server's end."""


class Wire(ThreadingHTTPServer):
    """A server with a thread for each connection; all are joined at the end."""

    daemon_threads = False
    request_queue_size = 128

    def __init__(self, port: int, api: Api, key: str, record: Record) -> None:
        self.api = api
        self.key = key
        self.record = record
        self.closing = threading.Event()
        self.waker, self._wake = socket.socketpair()
        self._lock = threading.Lock()
        self._live = set[socket.socket]()
        self.dropped = set[socket.socket]()
        """Connections that are reset at their end."""
        try:
            super().__init__((HOST, port), _Handler)
        except BaseException:
            self.waker.close()
            self._wake.close()
            raise

    @override
    def server_bind(self) -> None:
        # Skip HTTPServer's look-up of the host's name, which is slow and not needed.
        TCPServer.server_bind(self)

    @override
    def process_request(self, request: Any, client_address: Any) -> None:
        with self._lock:
            self._live.add(request)
        super().process_request(request, client_address)

    @override
    def shutdown_request(self, request: Any) -> None:
        with self._lock:
            self._live.discard(request)
        if request in self.dropped:
            self.dropped.discard(request)
            # Closing with no linger time resets the connection.
            request.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            request.close()
            return
        super().shutdown_request(request)

    @override
    def handle_error(self, request: Any, client_address: Any) -> None:
        error = sys.exception()
        if not isinstance(error, ConnectionError) and not self.closing.is_set():
            self.api.problems.append(f"the fake server failed: {type(error).__name__}: {error}")

    def serve(self) -> None:
        """Accept connections until ``shutdown``."""
        self.serve_forever(_DEADLINE)

    def hang_up(self) -> None:
        """End every connection, whatever it waits for."""
        self.closing.set()
        self._wake.close()
        with self._lock:
            for connection in self._live:
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)

    @override
    def server_close(self) -> None:
        super().server_close()
        self.waker.close()


class _Recorder(io.BufferedReader):
    """Reads, and keeps the bytes read."""

    taken: bytes = b""

    @override
    def readline(self, size: int | None = -1, /) -> bytes:
        line = super().readline(size)
        self.taken += line
        return line

    @override
    def read(self, size: int | None = -1, /) -> bytes:
        data = super().read(size)
        self.taken += data
        return data


class _Handler(BaseHTTPRequestHandler):
    server: Wire
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    received: Received

    @override
    def setup(self) -> None:
        super().setup()
        self.rfile = _Recorder(self.rfile.detach())

    @override
    def log_message(self, format: str, *args: Any) -> None:
        """Print nothing: ``Server.requests`` has it all."""

    @override
    def handle_one_request(self) -> None:
        assert isinstance(self.rfile, _Recorder)
        self.rfile.taken = b""
        super().handle_one_request()

    def do_GET(self) -> None:
        self._serve()

    def do_POST(self) -> None:
        self._serve()

    def do_DELETE(self) -> None:
        self._serve()

    def _serve(self) -> None:
        assert isinstance(self.rfile, _Recorder)
        length = int(self.headers.get("content-length") or 0)
        body = self.rfile.read(length)
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.received = Received(0, self.command, self.path, headers, self.rfile.taken)
        parsed = True
        if body:
            try:
                self.received.body = json.loads(body)
            except ValueError:
                parsed = False
        self.server.record.came(self.received)
        if len(body) < length:
            # The sender died in the middle of the request: no answer is needed, and no violation counts.
            self.received.gone.set()
            self.close_connection = True
            return
        try:
            if not parsed:
                raise ApiError(400, "We could not parse the JSON body of your request.")
            self._check_key()
            self._route()
        except ApiError as error:
            if error.violation:
                self.server.api.problems.append(f"request {self.received.number}: {error.status} {error.message}")
            self.server.record.decided(self.received)
            self._refuse(error.status, error.message, error.code, error.kind, error.param)
        except ConnectionError:
            self._lost()

    def _check_key(self) -> None:
        given = self.received.headers.get("authorization", "").removeprefix("Bearer ")
        given = given or self.received.headers.get("api-key", "")
        if not given:
            raise ApiError(
                401,
                "You didn't provide an API key. You need to provide your API key in an Authorization header using Bearer auth.",
                violation=False,
            )
        if given != self.server.key:
            shown = f"{given[:3]}{'*' * 8}{given[-4:]}" if len(given) > 8 else "*" * 8
            raise ApiError(401, f"Incorrect API key provided: {shown}.", code="invalid_api_key", violation=False)

    def _route(self) -> None:
        url = urlsplit(self.path)
        api = self.server.api
        match [self.command, *url.path.strip("/").split("/")]:
            case ["POST", "v1", "responses"]:
                self._create(api.create(self.received.body))
            case ["GET", "v1", "responses", name]:
                query = parse_qs(url.query)
                if query.get("stream") == ["true"]:
                    self._stream(api.again(name), after=int(query.get("starting_after", ["-1"])[0]))
                else:
                    self._give(api.retrieve(name))
            case ["POST", "v1", "responses", name, "cancel"]:
                self._give(api.cancel(name))
            case ["DELETE", "v1", "responses", name]:
                self._give(api.delete(name))
            case ["GET", "v1", "models"]:
                self._give(api.models())
            case _:
                raise ApiError(404, f"Invalid URL ({self.command} {url.path})")

    def _create(self, made: Made) -> None:
        self.received.items = made.asked.items
        self.server.record.decided(self.received)
        if isinstance(made.answer, Failure):
            self._give(made.answer)
        elif isinstance(made.answer, Broken):
            self._break(made, made.answer)
        elif made.asked.body.get("stream"):
            self._stream(made)
        elif made.begun["background"]:
            self._give({**made.begun, "status": "queued"})
        elif self._wait(made.answer.gate):
            self._give(made.ended)

    def _give(self, answer: dict[str, Any] | Failure) -> None:
        """Answer with JSON, or with a failure."""
        if not isinstance(answer, Failure):
            self._whole(200, json.dumps(answer).encode())
        elif answer.body is not None:
            self._whole(answer.status, answer.body, answer.headers, kind="text/html")
        else:
            self._refuse(answer.status, answer.message, answer.code, answer.kind, answer.param, answer.headers)

    def _refuse(
        self,
        status: int,
        message: str,
        code: str | None,
        kind: str,
        param: str | None = None,
        headers: Iterable[tuple[str, str]] = (),
    ) -> None:
        error = {"message": message, "type": kind, "param": param, "code": code}
        self._whole(status, json.dumps({"error": error}).encode(), headers)

    def _whole(
        self, status: int, body: bytes, headers: Iterable[tuple[str, str]] = (), kind: str = "application/json"
    ) -> None:
        self._head(status, ("Content-Type", kind), ("Content-Length", str(len(body))), *headers)
        self.received.complete = True
        self._send(body)

    def _head(self, status: int, *headers: tuple[str, str]) -> None:
        # No date and no library's name: equal requests get equal answers.
        self.send_response_only(status, http.HTTPStatus(status).phrase)
        self.send_header("x-request-id", f"req_{self.received.number:04d}")
        for name, value in headers:
            self.send_header(name, value)
        # Recorded first, so that a client with the answer finds it here.
        self.received.status = status
        self.end_headers()

    def _send(self, data: bytes) -> None:
        self.received.sent += data
        self.wfile.write(data)

    def _stream(self, made: Made, *, after: int = -1) -> None:
        """Answer with the events of a response after the one with this number."""
        assert isinstance(made.answer, scripted_model.Answer)
        if not self._wait(made.answer.gate):
            return
        self._begin_stream()
        for event in events.of(made.begun, made.ended):
            if event["sequence_number"] > after:
                self._event(event)
        self.server.api.end(made.begun["id"])
        self._end_stream()

    def _begin_stream(self) -> None:
        self._head(200, ("Content-Type", "text/event-stream; charset=utf-8"), ("Transfer-Encoding", "chunked"))

    def _event(self, event: events.Event) -> None:
        data = f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode()
        self.received.sent += data
        self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))

    def _end_stream(self) -> None:
        self.received.complete = True
        self.wfile.write(b"0\r\n\r\n")

    def _break(self, made: Made, broken: Broken) -> None:
        """Send the part of the answer that comes before the break, then break."""
        if broken.before is not None:
            if made.asked.body.get("stream"):
                self._break_stream(made, broken)
            elif broken.how == "error":
                return self._refuse(500, broken.message, broken.code, "server_error")
            else:
                self._break_body(made, broken)
        if broken.how == "reset":
            self.server.dropped.add(self.connection)
        elif broken.how == "stall":
            self._watch(threading.Event())
        if not (broken.how in ("end", "error") and self.received.complete):
            self.close_connection = True
        return None

    def _break_stream(self, made: Made, broken: Broken) -> None:
        self._begin_stream()
        number = 0
        for event in events.before_end(made.begun, made.ended):
            self._event(event)
            number += 1
        if broken.how == "error":
            self._event(events.error(number, broken.code, broken.message, nested=broken.nested))
        if broken.how in ("end", "error"):
            self._end_stream()

    def _break_body(self, made: Made, broken: Broken) -> None:
        """Send the first half of the response as JSON; if it is to look complete, no length is sent."""
        body = json.dumps(made.ended).encode()
        length = ("Connection", "close") if broken.how == "end" else ("Content-Length", str(len(body)))
        self._head(200, ("Content-Type", "application/json"), length)
        self._send(body[: len(body) // 2])

    def _wait(self, gate: threading.Event | None) -> bool:
        """Wait until the gate is set, if there is one. False: the client has gone, or the server is closing."""
        return gate is None or self._watch(gate)

    def _watch(self, gate: threading.Event) -> bool:
        with selectors.DefaultSelector() as selector:
            selector.register(self.connection, selectors.EVENT_READ)
            selector.register(self.server.waker, selectors.EVENT_READ)
            while not gate.is_set():
                ready = selector.select(_DEADLINE)
                if self.server.closing.is_set():
                    self.close_connection = True
                    return False
                if ready:
                    self._lost()
                    return False
        return True

    def _lost(self) -> None:
        """Note that the client has gone."""
        self.received.complete = False
        self.received.gone.set()
        self.close_connection = True
