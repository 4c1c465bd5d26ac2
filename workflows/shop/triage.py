"""Triage: each order is approved, held or escalated before it is packed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from html import escape

from workflows.shop import layout, orders
from workflows.shop.store import LedgerRow, Order
from workflows.shop.web import RefusedError, Request, Response, Route, Shop, redirect, route

DECISIONS: Mapping[str, str] = {"approve": "approved", "hold": "held", "escalate": "escalated"}
"""The decisions, with the status that the page shows."""

COUNTRIES = ("France", "Germany", "Italy", "Portugal", "Sweden")


@dataclass(frozen=True)
class Origin:
    """The country to which an order goes, and that of the card that pays for it."""

    ships_to: str
    card_from: str


def origin(order: Order) -> Origin:
    """Return the countries of an order: every fourth card is from another one."""
    place = int(order.number)
    return Origin(COUNTRIES[place % len(COUNTRIES)], COUNTRIES[(place + (place % 4 == 3)) % len(COUNTRIES)])


def show_queue(shop: Shop, request: Request, part: Mapping[str, str]) -> Response:
    """Show the orders without a decision."""
    decided = {row.subject for row in shop.store.ledger("decision")}
    waiting = [order for order in shop.store.orders()[0] if order.number not in decided]
    rows = "\n".join(
        f'<tr><td class="no"><a href="/triage/{order.number}">{order.number}</a></td>'
        f'<td class="customer">{escape(order.customer)}</td><td class="total">{order.total}</td>'
        f'<td class="ships-to">{origin(order).ships_to}</td><td class="card-from">{origin(order).card_from}</td></tr>'
        for order in waiting
    )
    table = (
        '<table id="queue"><caption class="hidden">Orders to look at</caption><thead><tr><th scope="col">No.</th>'
        '<th scope="col">Customer</th><th scope="col" class="total">Total</th><th scope="col">Ships to</th>'
        f'<th scope="col">Card from</th></tr></thead>\n<tbody>\n{rows}\n</tbody></table>'
    )
    body = f"<h1>Triage</h1>\n{table if waiting else '<p class=card>Nothing to look at.</p>'}"
    return layout.page("Triage", body, user=request.user, here="/triage")


def show(shop: Shop, request: Request, part: Mapping[str, str]) -> Response:
    """Show one order, its last decision, and the buttons that decide."""
    order = orders.one(shop, part)
    last = _last_decision(shop, order)
    status = DECISIONS[last.detail["decision"]] if last else "open"
    reason = f'<dt>Note</dt><dd data-testid="note">{escape(last.detail["note"])}</dd>' if last else ""
    buttons = " ".join(f'<button name="decision" value="{each}">{each.capitalize()}</button>' for each in DECISIONS)
    body = (
        f'<p><a href="/triage">All orders to look at</a></p>\n<h1>Order {order.number}</h1>\n<section class="card"><dl>'
        f'<dt>Customer</dt><dd data-testid="customer">{escape(order.customer)}</dd>'
        f'<dt>Total</dt><dd data-testid="total">{order.total}</dd>'
        f'<dt>Ships to</dt><dd data-testid="ships-to">{origin(order).ships_to}</dd>'
        f'<dt>Card from</dt><dd data-testid="card-from">{origin(order).card_from}</dd>'
        f'<dt>Decision</dt><dd data-testid="decision">{status}</dd>{reason}</dl></section>\n'
        f'<form class="card" method="post" action="/triage/{order.number}">{layout.request_id_field()}'
        f"{layout.text_area('note', 'Note')}<p>{buttons}</p></form>"
    )
    return layout.page(f"Triage {order.number}", body, user=request.user, here="/triage")


def decide(shop: Shop, request: Request, part: Mapping[str, str]) -> Response:
    """Record a decision, even on an order that has one, and show the order again."""
    order = orders.one(shop, part)
    decision, note = request.form.get("decision", ""), request.form.get("note", "").strip()
    if decision not in DECISIONS:
        raise RefusedError(400, f"A decision is one of {', '.join(DECISIONS)}.")
    if decision == "escalate" and not note:
        raise RefusedError(400, "Whoever escalates an order says why, in the note.")
    shop.store.record(request.request_id, "decision", order.number, {"decision": decision, "note": note})
    return redirect(f"/triage/{order.number}")


def _last_decision(shop: Shop, order: Order) -> LedgerRow | None:
    rows = shop.store.ledger("decision", order.number)
    return rows[-1] if rows else None


ROUTES: tuple[Route, ...] = (
    route("GET", "/triage", show_queue),
    route("GET", r"/triage/(?P<number>\w+)", show),
    route("POST", r"/triage/(?P<number>\w+)", decide),
)
