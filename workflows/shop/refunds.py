"""Refunds: a form that asks for confirmation before it is sent."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from html import escape

from workflows.shop import layout, orders
from workflows.shop.web import RefusedError, Request, Response, Route, Shop, redirect, route

REASONS = ("Damaged", "Late", "Not wanted", "Wrong goods")

# The browser's own dialog, which blocks the page until it is answered.
ASK_FIRST = """<script>
document.getElementById("refund").addEventListener("submit", event => {
  const form = event.target;
  if (!confirm(`Refund ${form.amount.value} to ${form.dataset.customer}?`)) event.preventDefault();
});
</script>"""


def show(shop: Shop, request: Request, part: Mapping[str, str]) -> Response:
    """Show the refunds of an order, and if it is paid, the form for one."""
    order = orders.one(shop, part)
    refunded = sum((Decimal(row.detail["amount"]) for row in shop.store.ledger("refund", order.number)), Decimal(0))
    if order.paid:
        form = (
            f'<form id="refund" class="card" method="post" action="/orders/{order.number}/refund"'
            f' data-customer="{escape(order.customer)}">{layout.request_id_field()}'
            f"{layout.text_field('amount', 'Amount', value=order.total, attributes='required inputmode=decimal')}"
            f"{layout.select('reason', 'Reason', REASONS, attributes='required')}<button>Refund</button></form>{ASK_FIRST}"
        )
    else:
        form = '<p class="card">This order is not paid; there is nothing to give back.</p>'
    body = (
        f'<p><a href="/orders/{order.number}">Order {order.number}</a></p>\n<h1>Refund of order {order.number}</h1>\n'
        f'<section class="card"><dl><dt>Customer</dt><dd data-testid="customer">{escape(order.customer)}</dd>'
        f'<dt>Paid</dt><dd data-testid="paid">{order.total if order.paid else "0.00"}</dd>'
        f'<dt>Refunded</dt><dd data-testid="refunded">{refunded:.2f}</dd></dl></section>\n{form}'
    )
    return layout.page(f"Refund of {order.number}", body, user=request.user, here="/orders")


def refund(shop: Shop, request: Request, part: Mapping[str, str]) -> Response:
    """Record a refund, even a second one, and show the refunds."""
    order = orders.one(shop, part)
    amount, reason = request.form.get("amount", ""), request.form.get("reason", "")
    if not order.paid:
        raise RefusedError(409, f"Order {order.number} is not paid; there is nothing to give back.")
    if not re.fullmatch(r"\d{1,6}\.\d\d", amount) or reason not in REASONS:
        raise RefusedError(400, "A refund needs an amount like 12.50 and a reason.")
    shop.store.record(request.request_id, "refund", order.number, {"amount": amount, "reason": reason})
    return redirect(f"/orders/{order.number}/refund")


ROUTES: tuple[Route, ...] = (
    route("GET", r"/orders/(?P<number>\w+)/refund", show),
    route("POST", r"/orders/(?P<number>\w+)/refund", refund),
)
