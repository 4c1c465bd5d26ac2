"""Buying: articles go into a cart, the cart is paid, and there is a receipt.

A cart belongs to an order reference that the buyer chooses. The address of its pages contains the reference, so that its
status can be looked up later. Carts and payments are ledger rows: what is put in twice counts twice, and a cart that is
paid twice is charged twice.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from html import escape
from typing import Literal

from workflows.shop import layout, prices
from workflows.shop.store import LedgerRow, Store
from workflows.shop.web import RefusedError, Request, Response, Route, Shop, redirect, route

Status = Literal["open", "in cart", "paid"]

REFERENCE = r"(?P<reference>[A-Za-z0-9-]{1,40})"
RECEIPT = REFERENCE + r"-(?P<place>\d{1,6})"

ASK_REFERENCE = (
    '<h1>Articles</h1>\n<form class="card" method="get" action="/articles">'
    f"{layout.text_field('for', 'Order reference', attributes='required pattern=[A-Za-z0-9-]{1,40}')}"
    "<button>Begin</button></form>"
)


@dataclass(frozen=True)
class Line:
    """One article of a cart."""

    article: str
    name: str
    price: str
    quantity: int

    @property
    def sum(self) -> Decimal:
        return Decimal(self.price) * self.quantity


def show_articles(shop: Shop, request: Request, part: Mapping[str, str]) -> Response:
    """Show all articles, each with a button that puts it into the cart of `?for=`; without one, ask for the reference."""
    reference = request.query.get("for")
    if reference is None:
        return layout.page("Articles", ASK_REFERENCE, user=request.user, here="/articles", narrow=True)
    if not re.fullmatch(REFERENCE, reference):
        raise RefusedError(400, "An order reference has letters, digits and hyphens, 40 at most.")
    count = sum(line.quantity for line in lines(shop.store, reference))
    rows = "\n".join(
        f'<tr data-article="{sku}"><td class="sku">{sku}</td><td class="name">{escape(prices.PRODUCTS[sku][0])}</td>'
        f'<td class="total">{price}</td><td class="action">{_add_form(reference, sku)}</td></tr>'
        for sku, price in prices.prices(shop.store).items()
    )
    body = (
        f'<div class="bar"><h1>Articles for {escape(reference)}</h1><nav aria-label="Cart">'
        f'<a href="/cart/{reference}">Cart (<span data-testid="in-cart">{count}</span>)</a></nav></div>\n'
        '<table id="articles"><caption class="hidden">Articles</caption><thead><tr><th scope="col">Article</th>'
        '<th scope="col">Product</th><th scope="col" class="total">Price</th><th scope="col"></th></tr></thead>\n'
        f"<tbody>\n{rows}\n</tbody></table>"
    )
    return layout.page(f"Articles for {reference}", body, user=request.user, here="/articles")


def add(shop: Shop, request: Request, part: Mapping[str, str]) -> Response:
    """Put one piece of an article into a cart, even a paid one, and show the articles again."""
    article = request.form.get("article", "")
    if article not in prices.PRODUCTS:
        raise RefusedError(400, f"There is no article {article}.")
    shop.store.record(request.request_id, "cart", part["reference"], {"article": article, "quantity": 1})
    return redirect(f"/articles?for={part['reference']}")


def show_cart(shop: Shop, request: Request, part: Mapping[str, str]) -> Response:
    """Show a cart, and unless it is empty, the form that pays it."""
    reference, bought = part["reference"], lines(shop.store, part["reference"])
    again = f'<p><a href="/articles?for={reference}">Articles</a> · <a href="/checkouts/{reference}">Status</a></p>\n'
    form = (
        f'<form class="card" method="post" action="/cart/{reference}/pay">{layout.request_id_field()}'
        f"{layout.text_field('name', 'Name', attributes='required')}{layout.text_area('note', 'Delivery note')}"
        "<button>Pay</button></form>"
    )
    content = f"{_table(bought)}\n{form}" if bought else '<p class="card">Nothing is in this cart.</p>'
    body = f"{again}<h1>Cart {reference}</h1>\n{content}"
    return layout.page(f"Cart {reference}", body, user=request.user, here="/articles")


def pay(shop: Shop, request: Request, part: Mapping[str, str]) -> Response:
    """Charge a cart, even if it was charged before, and show the receipt."""
    reference, bought = part["reference"], lines(shop.store, part["reference"])
    name = request.form.get("name", "").strip()
    if not bought:
        raise RefusedError(409, f"Nothing is in the cart {reference}; there is nothing to pay.")
    if not name:
        raise RefusedError(400, "A payment needs a name.")
    detail = {
        "total": _total(bought),
        "lines": [{"article": line.article, "quantity": line.quantity, "price": line.price} for line in bought],
        "name": name,
        # Browsers send the line ends of a text area as CRLF, whatever was typed.
        "note": request.form.get("note", "").replace("\r\n", "\n"),
    }
    row = shop.store.record(request.request_id, "checkout", reference, detail)
    paid = [each.id for each in payments(shop.store, reference)]
    return redirect(f"/receipts/{reference}-{paid.index(row.id) + 1}")


def show_receipt(shop: Shop, request: Request, part: Mapping[str, str]) -> Response:
    """Show a receipt, with a link to it as a file."""
    row, number = _payment(shop.store, part), _number(part)
    body = (
        f'<h1>Thank you</h1>\n<section class="card"><dl><dt>Receipt</dt><dd data-testid="receipt">{number}</dd>'
        f'<dt>Order reference</dt><dd data-testid="reference">{row.subject}</dd>'
        f'<dt>Name</dt><dd data-testid="name">{escape(row.detail["name"])}</dd>'
        f'<dt>Delivery note</dt><dd data-testid="note">{escape(row.detail["note"])}</dd>'
        f'<dt>Total</dt><dd data-testid="total">{row.detail["total"]}</dd>'
        f'<dt>SHA-256</dt><dd data-testid="sha256">{hashlib.sha256(_text(row, number)).hexdigest()}</dd></dl></section>\n'
        f'<p><a href="/receipts/{number}.txt">Download receipt</a></p>'
    )
    return layout.page(f"Receipt {number}", body, user=request.user, here="/articles")


def download(shop: Shop, request: Request, part: Mapping[str, str]) -> Response:
    """Send the receipt as a file, and record that in the ledger."""
    row, number = _payment(shop.store, part), _number(part)
    shop.store.record(request.request_id, "receipt", row.subject, {"receipt": number})
    name = f'attachment; filename="receipt-{number}.txt"'
    return Response(200, _text(row, number), "text/plain; charset=utf-8", (("Content-Disposition", name),))


def show_status(shop: Shop, request: Request, part: Mapping[str, str]) -> Response:
    """Show the status of a reference: `open`, `in cart` or `paid`, the pieces in its cart, and its last receipt."""
    reference = part["reference"]
    paid, bought = payments(shop.store, reference), lines(shop.store, reference)
    receipt = f'<dt>Receipt</dt><dd data-testid="receipt">{reference}-{len(paid)}</dd>' if paid else ""
    body = (
        f'<h1>Order {reference}</h1>\n<section class="card"><dl>'
        f'<dt>Status</dt><dd data-testid="status">{status(shop.store, reference)}</dd>'
        f'<dt>Pieces</dt><dd data-testid="pieces">{sum(line.quantity for line in bought)}</dd>{receipt}</dl></section>'
    )
    return layout.page(f"Order {reference}", body, user=request.user, here="/articles")


def lines(store: Store, reference: str) -> list[Line]:
    """Return the cart of a reference, in the order of the price list, at current prices."""
    counts: Counter[str] = Counter()
    for row in store.ledger("cart", reference):
        counts[row.detail["article"]] += row.detail["quantity"]
    return [
        Line(sku, prices.PRODUCTS[sku][0], price, counts[sku])
        for sku, price in prices.prices(store).items()
        if counts[sku]
    ]


def payments(store: Store, reference: str) -> list[LedgerRow]:
    """Return the payments of a reference, oldest first; more than one means charged twice."""
    return store.ledger("checkout", reference)


def status(store: Store, reference: str) -> Status:
    """Return the status of a reference."""
    if payments(store, reference):
        return "paid"
    return "in cart" if store.ledger("cart", reference) else "open"


def _payment(store: Store, part: Mapping[str, str]) -> LedgerRow:
    paid, place = payments(store, part["reference"]), int(part["place"])
    if not 1 <= place <= len(paid):
        raise RefusedError(404, f"There is no receipt {_number(part)}.")
    return paid[place - 1]


def _number(part: Mapping[str, str]) -> str:
    # Receipts are numbered within a reference, so that the number says which of its payments this is.
    return f"{part['reference']}-{part['place']}"


def _total(bought: list[Line]) -> str:
    return f"{sum((line.sum for line in bought), Decimal(0)):.2f}"


def _text(row: LedgerRow, number: str) -> bytes:
    rows = "".join(f"{each['quantity']:>4} x {each['article']:<10}{each['price']:>8}\n" for each in row.detail["lines"])
    return (
        f"Corner Shop\n\nReceipt {number}\nFor      {row.detail['name']}\n\n{rows}\nTotal    {row.detail['total']}\n"
    ).encode()


def _add_form(reference: str, sku: str) -> str:
    return (
        f'<form method="post" action="/cart/{reference}/add">{layout.request_id_field()}'
        f'<input type="hidden" name="article" value="{sku}"><button>Add to cart</button></form>'
    )


def _table(bought: list[Line]) -> str:
    rows = "\n".join(
        f'<tr data-article="{line.article}"><td class="sku">{line.article}</td><td class="name">{escape(line.name)}</td>'
        f'<td class="quantity">{line.quantity}</td><td class="total">{line.sum:.2f}</td></tr>'
        for line in bought
    )
    return (
        '<table id="cart"><caption class="hidden">Cart</caption><thead><tr><th scope="col">Article</th><th scope="col">Product</th>'
        f'<th scope="col">Quantity</th><th scope="col" class="total">Price</th></tr></thead>\n<tbody>\n{rows}\n</tbody></table>\n'
        f'<section class="card"><dl><dt>Total</dt><dd data-testid="total">{_total(bought)}</dd></dl></section>'
    )


ROUTES: tuple[Route, ...] = (
    route("GET", "/articles", show_articles),
    route("POST", f"/cart/{REFERENCE}/add", add),
    route("GET", f"/cart/{REFERENCE}", show_cart),
    route("POST", f"/cart/{REFERENCE}/pay", pay),
    route("GET", f"/receipts/{RECEIPT}", show_receipt),
    route("GET", rf"/receipts/{RECEIPT}\.txt", download),
    route("GET", f"/checkouts/{REFERENCE}", show_status),
)
