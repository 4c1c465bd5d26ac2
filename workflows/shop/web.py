"""The interface between the HTTP server and the pages: requests, responses, routes, and the shop itself."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from uuid import uuid4

from workflows.shop.store import Store
from workflows.shop.switches import Switchboard


@dataclass(frozen=True)
class Shop:
    store: Store
    board: Switchboard
    password: str
    """The password of the user `admin`."""
    page_size: int
    """The number of orders on a page of the list."""


@dataclass(frozen=True)
class Upload:
    """A file that a form sent."""

    field: str
    name: str
    content: bytes


@dataclass(frozen=True)
class Request:
    """One HTTP request, read and decoded."""

    method: str
    path: str
    """Decoded, without the query."""
    target: str
    """Path and query as they were sent."""
    query: Mapping[str, str]
    form: Mapping[str, str]
    """The fields of a form that are no files."""
    files: tuple[Upload, ...] = ()
    """The files of a form; those of one field in the order of their choice."""
    body: bytes = b""
    cookies: Mapping[str, str] = field(default_factory=dict[str, str])
    wants_json: bool = False
    """True for the request of a script, which gets JSON where a person gets a page."""
    user: str | None = None
    """The signed-in user; set by the site."""

    @property
    def request_id(self) -> str:
        """The one-time id of the form that was sent; a new one for a request without a form.

        Two ledger rows with the same id mean one form sent twice. The shop records both, as a careless site would.
        """
        return self.form.get("request_id") or uuid4().hex


@dataclass(frozen=True)
class Response:
    """One HTTP response; the server adds length and connection headers."""

    status: int
    body: bytes = b""
    content_type: str = "text/html; charset=utf-8"
    headers: tuple[tuple[str, str], ...] = ()


class RefusedError(Exception):
    """A refused request, with the HTTP status and one sentence for the reader."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status
        self.sentence = sentence


Handler = Callable[[Shop, Request, Mapping[str, str]], Response]


@dataclass(frozen=True)
class Route:
    """One method and path (a regular expression for the whole path) with its handler."""

    method: str
    path: re.Pattern[str]
    handler: Handler
    open: bool = False
    """True if it is answered without a session."""


def route(method: str, path: str, handler: Handler, *, open: bool = False) -> Route:
    """Return a route; named groups of `path` are the third argument of the handler."""
    return Route(method, re.compile(path), handler, open)


def redirect(url: str, *headers: tuple[str, str]) -> Response:
    """Redirect the browser to a GET, so that reloading the next page repeats nothing."""
    return Response(303, headers=(("Location", url), *headers))


def json_response(value: object, status: int = 200) -> Response:
    return Response(status, json.dumps(value, ensure_ascii=False).encode(), "application/json")
