"""HTTP server of the fake Responses API: connections, streams and failures, and a record of all requests."""

from __future__ import annotations

import contextlib
import dataclasses
import http
import json
import os
import selectors
import socket
import struct
import sys
import threading
import time
import weakref
from collections.abc import Callable, Generator, Iterable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from typing_extensions import override

from nodes.values import Json
from runtime.testing import scripted_model
from runtime.testing.responses import shapes
from runtime.testing.responses.api import Api, Made
from runtime.testing.responses.rules import OPENAI, ApiError, Profile
from runtime.testing.scripted_model import Broken, Failure

HOST = "127.0.0.1"

KEY = "key-of-the-fake-server"  # the key that it accepts by default
_DEADLINE = 0.02  # seconds between two checks of an answer's gate, and of the server's end


@dataclasses.dataclass(slots=True)
class Received:
    """A request, and its answer."""

    number: int  # counted from 1
    method: str
    path: str  # with its query
    headers: dict[str, str]  # by name in lower case
    raw: bytes  # the whole request, byte for byte
    body: Json = None  # None if there is none, or it is no JSON
    items: tuple[dict[str, Json], ...] = ()
    """Whole input of a request to the model, that of the responses it continues included."""
    status: int | None = None  # status of the answer; None: there was none
    sent: bytes = b""  # the body of the answer, as far as it was sent
    complete: bool = False  # true if the whole answer was sent
    decided: bool = False  # true once its answer is chosen: the next request gets the script's next answer
    gone: threading.Event = dataclasses.field(default_factory=threading.Event)
    """Set once the client has closed the connection before the answer was complete."""

    @property
    def asks(self) -> bool:
        """True for a request to the model, false for one about an earlier response."""
        return self.method == "POST" and urlsplit(self.path).path.rstrip("/").endswith("/responses")


class Server(ThreadingHTTPServer):
    """A fake Responses server with a thread for each connection. It runs until ``close``; ``serve`` runs one for a ``with`` block."""

    daemon_threads = False
    request_queue_size = 128

    def __init__(
        self,
        model: scripted_model.Model,
        *,
        key: str = KEY,
        models: tuple[str, ...] | None = None,
        ending: Mapping[str, str] | None = None,
        profile: Profile = OPENAI,
        tokens: shapes.Tokens = shapes.four_bytes,
        clock: Callable[[], float] = time.monotonic,
        port: int = 0,
    ) -> None:
        """``models`` None: any; ``ending``: shutdown dates by model; ``clock`` times background responses; ``port`` 0: a free one."""
        self.key = key
        self.api = Api(model, profile, models, ending or {}, tokens, clock)
        self.problems = self.api.problems
        """Violations by clients, and requests that the script could not answer, in order."""
        self.requests = list[Received]()  # every request, in the order of arrival
        self.closing = threading.Event()
        self._changed = threading.Condition()
        self._live = weakref.WeakSet[socket.socket]()
        super().__init__((HOST, port), _Handler)
        self.url = f"http://{HOST}:{self.server_address[1]}/v1"  # the base URL for a client
        self._thread = threading.Thread(target=self.serve_forever, args=(_DEADLINE,), name="fake-responses")
        self._thread.start()

    @property
    def asked(self) -> list[Received]:
        """The requests to the model: no polls, no cancelling, no list of models."""
        with self._changed:
            return [each for each in self.requests if each.asks]

    def wait(self, count: int, timeout: float = 30.0) -> list[Received]:
        """Return the requests to the model once ``count`` have an answer chosen. Raises TimeoutError after ``timeout`` seconds."""
        with self._changed:
            if not self._changed.wait_for(lambda: sum(each.decided for each in self.asked) >= count, timeout):
                raise TimeoutError(f"{len(self.asked)} of {count} requests came within {timeout:g} s")
            return self.asked

    def forget(self) -> None:
        """Lose all responses, as a server may at a restart: continuing or fetching one gives "not found"."""
        self.api.forget()

    def close(self) -> None:
        """End every connection and every thread. A waiting client finds its connection closed."""
        self.shutdown()
        self._thread.join()
        self.closing.set()
        for connection in list(self._live):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        self.server_close()

    def came(self, received: Received) -> None:
        with self._changed:
            received.number = len(self.requests) + 1
            self.requests.append(received)

    def decided(self, received: Received) -> None:
        with self._changed:
            received.decided = True
            self._changed.notify_all()

    @override
    def server_bind(self) -> None:
        # Skip HTTPServer's look-up of the host's name, which is slow and not needed.
        TCPServer.server_bind(self)

    @override
    def process_request(self, request: Any, client_address: Any) -> None:
        self._live.add(request)
        super().process_request(request, client_address)

    @override
    def handle_error(self, request: Any, client_address: Any) -> None:
        error = sys.exception()
        if not isinstance(error, ConnectionError) and not self.closing.is_set():
            self.problems.append(f"the fake server failed: {type(error).__name__}: {error}")


@contextlib.contextmanager
def serve(
    model: scripted_model.Model | Iterable[scripted_model.Scripted] | scripted_model.Script,
    *,
    strict: bool = False,
    **options: Any,
) -> Generator[Server]:
    """Run a ``Server`` with these options for the block. ``strict``: raises AssertionError at its end if there were problems."""
    server = Server(model if isinstance(model, scripted_model.Model) else scripted_model.Model(model), **options)
    try:
        yield server
    finally:
        server.close()
    if strict and server.problems:
        raise AssertionError("the fake server saw what must not be:\n" + "\n".join(server.problems))


class _Handler(BaseHTTPRequestHandler):
    server: Server
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    received: Received
    raw_requestline: bytes

    @override
    def log_message(self, format: str, *args: Any) -> None:
        """Print nothing, as ``Server.requests`` has everything."""

    def do_GET(self) -> None:
        length = int(self.headers.get("content-length") or 0)
        body = self.rfile.read(length)
        headers = {name.lower(): value for name, value in self.headers.items()}
        head = "".join(f"{name}: {value}\r\n" for name, value in self.headers.items())
        raw = self.raw_requestline + head.encode("latin-1") + b"\r\n" + body
        self.received = Received(0, self.command, self.path, headers, raw)
        parsed = True
        if body:
            try:
                self.received.body = json.loads(body)
            except ValueError:
                parsed = False
        self.server.came(self.received)
        if len(body) < length:
            # The client died in the middle of the request: it needs no answer, and this is no violation.
            self._lost()
            return
        try:
            if not parsed:
                raise ApiError("We could not parse the JSON body of your request.")
            self._check_key()
            self._route()
        except ApiError as error:
            if error.violation:
                self.server.problems.append(f"request {self.received.number}: {error.status} {error.message}")
            self.server.decided(self.received)
            self._refuse(error)
        except ConnectionError:
            self._lost()

    do_POST = do_DELETE = do_GET  # noqa: N815 — the names that the library calls

    def _check_key(self) -> None:
        given = self.received.headers.get("authorization", "").removeprefix("Bearer ")
        given = given or self.received.headers.get("api-key", "")
        if not given:
            said = "You didn't provide an API key. You need to provide your API key in an Authorization header using Bearer auth."
            raise ApiError(said, status=401, violation=False)
        if given != self.server.key:
            shown = f"{given[:3]}{'*' * 8}{given[-4:]}" if len(given) > 8 else "*" * 8
            raise ApiError(f"Incorrect API key provided: {shown}.", "invalid_api_key", status=401, violation=False)

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
                self._give(api.list_models())
            case _:
                raise ApiError(f"Invalid URL ({self.command} {url.path})", status=404)

    def _create(self, made: Made) -> None:
        self.received.items = made.asked.items
        self.server.decided(self.received)
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
        if not isinstance(answer, Failure):
            self._whole(200, json.dumps(answer).encode())
        elif answer.body is not None:
            self._whole(answer.status, answer.body, answer.headers, kind="text/html")
        else:
            self._refuse(answer)

    def _refuse(self, said: ApiError | Failure) -> None:
        error = {"message": said.message, "type": said.kind, "param": said.param, "code": said.code}
        headers = said.headers if isinstance(said, Failure) else ()
        self._whole(said.status, json.dumps({"error": error}).encode(), headers)

    def _whole(
        self, status: int, body: bytes, headers: Iterable[tuple[str, str]] = (), kind: str = "application/json"
    ) -> None:
        self._head(status, ("Content-Type", kind), ("Content-Length", str(len(body))), *headers)
        self.received.complete = True
        self._send(body)

    def _head(self, status: int, *headers: tuple[str, str]) -> None:
        # Send no date and no name of the library, so that equal requests get equal answers.
        self.send_response_only(status, http.HTTPStatus(status).phrase)
        self.send_header("x-request-id", f"req_{self.received.number:04d}")
        for name, value in headers:
            self.send_header(name, value)
        # Record the status before sending, so that a client with the answer finds it here.
        self.received.status = status
        self.end_headers()

    def _send(self, data: bytes) -> None:
        self.received.sent += data
        self.wfile.write(data)

    def _stream(self, made: Made, *, after: int = -1) -> None:
        """Answer with the events of a response after number ``after``."""
        assert isinstance(made.answer, scripted_model.Answer)
        if not self._wait(made.answer.gate):
            return
        self._begin_stream()
        for event in shapes.stream_of(made.begun, made.ended):
            if event["sequence_number"] > after:
                self._event(event)
        self.server.api.end(made.begun["id"])
        self._end_stream()

    def _begin_stream(self) -> None:
        self._head(200, ("Content-Type", "text/event-stream; charset=utf-8"), ("Transfer-Encoding", "chunked"))

    def _event(self, event: shapes.Event) -> None:
        data = f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode()
        self.received.sent += data
        self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))

    def _end_stream(self) -> None:
        self.received.complete = True
        self.wfile.write(b"0\r\n\r\n")

    def _break(self, made: Made, broken: Broken) -> None:
        if broken.before is not None:
            if made.asked.body.get("stream"):
                self._break_stream(made, broken)
            elif broken.how == "error":
                return self._refuse(Failure(500, broken.message, broken.code))
            else:
                self._break_body(made, broken)
        if broken.how == "reset":
            # Closing with a linger time of 0 resets the connection. The library would close it normally.
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            os.close(self.connection.detach())
        elif broken.how == "stall":
            self._wait(threading.Event())
        if not (broken.how in ("end", "error") and self.received.complete):
            self.close_connection = True
        return None

    def _break_stream(self, made: Made, broken: Broken) -> None:
        self._begin_stream()
        events = [*shapes.stream_of(made.begun, made.ended, finished=False)]
        if broken.how == "error":
            error = {"code": broken.code, "message": broken.message, "param": None}
            fields = {"error": error} if broken.nested else error
            events.append({"type": "error", "sequence_number": len(events), **fields})
        for event in events:
            self._event(event)
        if broken.how in ("end", "error"):
            self._end_stream()

    def _break_body(self, made: Made, broken: Broken) -> None:
        """Send the first half of the response as JSON, without its length if it is to look complete."""
        body = json.dumps(made.ended).encode()
        length = ("Connection", "close") if broken.how == "end" else ("Content-Length", str(len(body)))
        self._head(200, ("Content-Type", "application/json"), length)
        self._send(body[: len(body) // 2])

    def _wait(self, gate: threading.Event | None) -> bool:
        """Wait until the gate, if any, is set. Returns False if the client has gone or the server is closing."""
        if gate is None:
            return True
        with selectors.DefaultSelector() as selector:
            selector.register(self.connection, selectors.EVENT_READ)
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
        self.received.complete = False
        self.received.gone.set()
        self.close_connection = True
