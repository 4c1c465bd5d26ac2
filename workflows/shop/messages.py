"""Messages of customers about their orders, and the team's queue to which each was assigned."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from html import escape

from workflows.shop import layout, orders
from workflows.shop.store import LedgerRow, Order
from workflows.shop.web import RefusedError, Request, Response, Route, Shop, redirect, route

MESSAGES: Mapping[str, str] = {
    "1001": "It has been two weeks now. Where is my parcel? My daughter's birthday is on Saturday!",
    "1003": "Two of the six jars of honey arrived broken, they were 24.80 together. I'd like that money back, please.",
    "1004": "I ordered twice by mistake. The parcel goes back unopened, so please return what I have paid.",
    "1006": "Merci beaucoup, tout est arrivé en parfait état. Le café est excellent !",
    "1008": "Our bookkeeper needs the invoice once more, with our VAT number on it: DK 12 34 56 78.",
}
"""The messages, by order number. A shop with fewer orders has fewer messages."""

QUEUES = ("Delivery", "General", "Invoices", "Refunds")

APART = timedelta(minutes=37)
"""The time between two messages; the last one came when the shop was opened."""


def show_inbox(shop: Shop, request: Request, part: Mapping[str, str]) -> Response:
    """Show the messages without a queue."""
    given = {row.subject for row in shop.store.ledger("assignment")}
    waiting = [each for each in shop.store.orders()[0] if each.number in MESSAGES and each.number not in given]
    rows = "\n".join(
        f'<tr><td class="no"><a href="/messages/{each.number}">{each.number}</a></td>'
        f'<td class="came">{_came(shop, each)}</td><td class="customer">{escape(each.customer)}</td>'
        f'<td class="total">{each.total}</td><td class="message">{escape(MESSAGES[each.number])}</td></tr>'
        for each in waiting
    )
    table = (
        '<table id="messages"><caption class="hidden">Messages to give to somebody</caption><thead><tr><th scope="col">Order</th>'
        '<th scope="col">Came</th><th scope="col">Customer</th><th scope="col" class="total">Total</th>'
        f'<th scope="col">Message</th></tr></thead>\n<tbody>\n{rows}\n</tbody></table>'
    )
    body = f"<h1>Messages</h1>\n{table if waiting else '<p class=card>Every message was given to somebody.</p>'}"
    return layout.page("Messages", body, user=request.user, here="/messages")


def show(shop: Shop, request: Request, part: Mapping[str, str]) -> Response:
    """Show one message, its last queue, and the form that assigns it."""
    order = _with_message(shop, part)
    last = _last_assignment(shop, order)
    note = f'<dt>Note</dt><dd data-testid="note">{escape(last.detail["note"])}</dd>' if last else ""
    body = (
        f'<p><a href="/messages">All messages</a></p>\n<h1>Message about order {order.number}</h1>\n<section class="card"><dl>'
        f'<dt>Customer</dt><dd data-testid="customer">{escape(order.customer)}</dd>'
        f'<dt>Total</dt><dd data-testid="total">{order.total}</dd>'
        f'<dt>Came</dt><dd data-testid="came">{_came(shop, order)}</dd>'
        f'<dt>Message</dt><dd data-testid="message">{escape(MESSAGES[order.number])}</dd>'
        f'<dt>Given to</dt><dd data-testid="given-to">{last.detail["queue"] if last else "nobody"}</dd>{note}</dl></section>\n'
        f'<form class="card" method="post" action="/messages/{order.number}">{layout.request_id_field()}'
        f"{layout.select('queue', 'Queue', QUEUES, attributes='required')}{layout.checkbox('urgent', 'Urgent')}"
        f"{layout.text_area('note', 'Note')}<p><button>Assign</button></p></form>"
    )
    return layout.page(f"Message about {order.number}", body, user=request.user, here="/messages")


def assign(shop: Shop, request: Request, part: Mapping[str, str]) -> Response:
    """Assign a message to a queue, even an assigned one, and show it again."""
    order = _with_message(shop, part)
    queue, note = request.form.get("queue", ""), request.form.get("note", "").strip()
    if queue not in QUEUES:
        raise RefusedError(400, f"A queue is one of {', '.join(QUEUES)}.")
    detail = {"queue": queue, "urgent": "urgent" in request.form, "note": note}
    shop.store.record(request.request_id, "assignment", order.number, detail)
    return redirect(f"/messages/{order.number}")


def _with_message(shop: Shop, part: Mapping[str, str]) -> Order:
    order = orders.one(shop, part)
    if order.number not in MESSAGES:
        raise RefusedError(404, f"Nobody wrote about order {order.number}.")
    return order


def _came(shop: Shop, order: Order) -> str:
    """Return the time of a message, in UTC: `APART` before the next."""
    later = len(MESSAGES) - 1 - list(MESSAGES).index(order.number)
    opened = datetime.fromisoformat(shop.store.setting("opened") or "")
    return (opened - later * APART).isoformat(timespec="seconds")


def _last_assignment(shop: Shop, order: Order) -> LedgerRow | None:
    rows = shop.store.ledger("assignment", order.number)
    return rows[-1] if rows else None


ROUTES: tuple[Route, ...] = (
    route("GET", "/messages", show_inbox),
    route("GET", r"/messages/(?P<number>\w+)", show),
    route("POST", r"/messages/(?P<number>\w+)", assign),
)
