"""The JSON interface for tests: it reads the ledger, and sets the switches with which the shop misbehaves.

It needs no session, and no switch applies to it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, cast

from workflows.shop import form, mirror, orders, prices
from workflows.shop.switches import SwitchError, read_switch
from workflows.shop.web import RefusedError, Request, Response, Route, Shop, json_response, route

LONGEST_WAIT = 60
"""Limit of one wait, in seconds; a client that waits longer asks again."""


def ledger(shop: Shop, request: Request, part: Mapping[str, str]) -> Response:
    """List the ledger rows, oldest first; `?kind=payment&subject=1003` selects."""
    rows = shop.store.ledger(request.query.get("kind"), request.query.get("subject"))
    return json_response([asdict(row) for row in rows])


def ledger_row(shop: Shop, request: Request, part: Mapping[str, str]) -> Response:
    row = shop.store.ledger_row(int(part["id"]))
    if row is None:
        raise RefusedError(404, f"There is no ledger row {part['id']}.")
    return json_response(asdict(row))


def all_orders(shop: Shop, request: Request, part: Mapping[str, str]) -> Response:
    """List all orders, with the number of their payments in the ledger."""
    payments = shop.store.ledger("payment")
    return json_response([orders.as_json(order, payments) for order in shop.store.orders()[0]])


def change_price(shop: Shop, request: Request, part: Mapping[str, str]) -> Response:
    """Change a price, by `{"article": "TEA-1", "price": "9.90"}`; answer with all prices."""
    goal = _json(request)
    article, price = goal.get("article"), goal.get("price")
    if (
        not isinstance(article, str)
        or article not in prices.PRODUCTS
        or not (isinstance(price, str) and re.fullmatch(r"\d{1,6}\.\d\d", price))
    ):
        raise RefusedError(400, f"`article` is one of {', '.join(prices.PRODUCTS)}, `price` is a text like 9.90.")
    prices.change(shop.store, request.request_id, article, price)
    return json_response(prices.prices(shop.store))


def form_fields(shop: Shop, request: Request, part: Mapping[str, str]) -> Response:
    """List the fields of `/form`, in its order."""
    return json_response(form.describe())


def switches(shop: Shop, request: Request, part: Mapping[str, str]) -> Response:
    """List the active switches and the held requests."""
    return json_response(
        {
            "switches": [asdict(each) for each in shop.board.switches()],
            "held": [asdict(each) for each in shop.board.held()],
        },
    )


def add_switch(shop: Shop, request: Request, part: Mapping[str, str]) -> Response:
    """Add a switch; answer with it and its id."""
    try:
        added = shop.board.add(read_switch(_json(request)))
    except SwitchError as error:
        raise RefusedError(400, f"{error}.") from error
    return json_response(asdict(added), 201)


def remove_switches(shop: Shop, request: Request, part: Mapping[str, str]) -> Response:
    """Remove one switch, or all; held requests stay held."""
    return json_response({"removed": shop.board.remove(int(part["id"]) if "id" in part else None)})


def release(shop: Shop, request: Request, part: Mapping[str, str]) -> Response:
    """Release held requests: `{}` all, `{"id": 3}` one; with `{"go_on": false}` they end unanswered."""
    goal = _json(request)
    id, go_on = goal.get("id"), goal.get("go_on", True)
    if not isinstance(go_on, bool) or not (id is None or isinstance(id, int)):
        raise RefusedError(400, "`id` is the number of a held request, `go_on` is true or false.")
    return json_response({"released": shop.board.release(id, go_on=go_on)})


def wait(shop: Shop, request: Request, part: Mapping[str, str]) -> Response:
    """Answer once an event has happened, or after `timeout` seconds (10) that it has not.

    `?event=held&count=1&path=REGEX`: that many requests are held.
    `?event=ledger&count=1&kind=payment&subject=1003`: there are that many rows.
    """
    query = request.query
    count, timeout, path = _whole(query, "count", 1), _whole(query, "timeout", 10), query.get("path", ".*")
    timeout = min(timeout, LONGEST_WAIT)
    try:
        re.compile(path)
    except re.error as error:
        raise RefusedError(400, f"`path` is not a regular expression: {error}.") from error
    match query.get("event"):
        case "held":
            rows = [asdict(each) for each in shop.board.wait_for_held(count, timeout, path)]
        case "ledger":
            rows = [
                asdict(row) for row in shop.store.wait_for_rows(count, timeout, query.get("kind"), query.get("subject"))
            ]
        case _:
            raise RefusedError(400, "`event` is held or ledger.")
    return json_response({"happened": len(rows) >= count, "rows": rows})


def show_mirror(shop: Shop, request: Request, part: Mapping[str, str]) -> Response:
    """Return the mirror's source and text."""
    return json_response(mirror.read(shop.store))


def set_mirror(shop: Shop, request: Request, part: Mapping[str, str]) -> Response:
    """Set the mirror by `{"source": "password"}` or `{"source": "text", "text": "…"}`."""
    goal = _json(request)
    source, text = goal.get("source"), goal.get("text")
    if source not in ("password", "text") or not (text is None or isinstance(text, str)):
        raise RefusedError(400, "`source` is password or text, `text` is a text.")
    mirror.write(shop.store, source, text)
    return json_response(mirror.read(shop.store))


def _json(request: Request) -> dict[str, Any]:
    try:
        value = json.loads(request.body or b"{}")
    except ValueError as error:
        raise RefusedError(400, f"The body is not JSON: {error}.") from error
    if not isinstance(value, dict):
        raise RefusedError(400, "The body is a JSON object.")
    return cast("dict[str, Any]", value)


def _whole(query: Mapping[str, str], name: str, default: int) -> int:
    text = query.get(name, str(default))
    if not text.isdecimal():
        raise RefusedError(400, f"`{name}` is a whole number.")
    return int(text)


ROUTES: tuple[Route, ...] = (
    route("GET", "/_ledger", ledger, open=True),
    route("GET", r"/_ledger/(?P<id>\d{1,12})", ledger_row, open=True),
    route("GET", "/_orders", all_orders, open=True),
    route("POST", "/_price", change_price, open=True),
    route("GET", "/_form", form_fields, open=True),
    route("GET", "/_switches", switches, open=True),
    route("POST", "/_switch", add_switch, open=True),
    route("DELETE", "/_switches", remove_switches, open=True),
    route("DELETE", r"/_switch/(?P<id>\d{1,12})", remove_switches, open=True),
    route("POST", "/_release", release, open=True),
    route("GET", "/_wait", wait, open=True),
    route("GET", "/_mirror", show_mirror, open=True),
    route("POST", "/_mirror", set_mirror, open=True),
)
