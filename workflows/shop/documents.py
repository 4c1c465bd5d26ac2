"""The documents of an order: an invoice to download, and uploaded files."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from html import escape
from urllib.parse import quote

from workflows.shop import layout, orders
from workflows.shop.store import Order
from workflows.shop.web import RefusedError, Request, Response, Route, Shop, redirect, route


def show(shop: Shop, request: Request, part: Mapping[str, str]) -> Response:
    """Show the invoice and the files of the order, each with its hash, and the form that uploads more."""
    order = orders.one(shop, part)
    filed = "\n".join(
        f'<tr><td class="name"><a href="/documents/{row.id}">{escape(row.detail["name"])}</a></td>'
        f'<td class="total size">{row.detail["size"]}</td><td class="sha256">{row.detail["sha256"]}</td></tr>'
        for row in shop.store.ledger("document", order.number)
    )
    table = (
        '<table id="documents"><caption class="hidden">Documents</caption><thead><tr><th scope="col">Name</th>'
        f'<th scope="col" class="total">Bytes</th><th scope="col">SHA-256</th></tr></thead>\n<tbody>\n{filed}\n</tbody></table>'
    )
    body = (
        f'<p><a href="/orders/{order.number}">Order {order.number}</a></p>\n<h1>Documents of order {order.number}</h1>\n'
        f'<section class="card"><dl><dt>Invoice</dt><dd><a href="/orders/{order.number}/invoice">Download invoice</a></dd>'
        f'<dt>SHA-256</dt><dd data-testid="invoice-sha256">{_sha256(_invoice(order))}</dd></dl></section>\n<h2>Filed</h2>\n'
        f"{table if filed else '<p class=hint>Nothing was filed yet.</p>'}\n"
        f'<form class="card" method="post" action="/orders/{order.number}/documents" enctype="multipart/form-data">'
        f"{layout.request_id_field()}{layout.text_field('files', 'Files', type='file', attributes='multiple required')}"
        "<button>File them</button></form>"
    )
    return layout.page(f"Documents of {order.number}", body, user=request.user, here="/orders")


def file(shop: Shop, request: Request, part: Mapping[str, str]) -> Response:
    """Store uploaded files, each as a ledger row, even under a name that exists."""
    order = orders.one(shop, part)
    if not request.files:
        raise RefusedError(400, "There is no file in this form.")
    for each in request.files:
        detail = {"name": each.name, "size": len(each.content), "sha256": _sha256(each.content)}
        shop.store.record_file(request.request_id, "document", order.number, detail, each.content)
    return redirect(f"/orders/{order.number}/documents")


def invoice(shop: Shop, request: Request, part: Mapping[str, str]) -> Response:
    """Send the invoice as a file, and record that in the ledger."""
    order = orders.one(shop, part)
    content = _invoice(order)
    detail = {"size": len(content), "sha256": _sha256(content)}
    shop.store.record(request.request_id, "invoice", order.number, detail)
    return _attachment(f"invoice-{order.number}.txt", content)


def document(shop: Shop, request: Request, part: Mapping[str, str]) -> Response:
    row = shop.store.ledger_row(int(part["id"]), "document")
    if row is None:
        raise RefusedError(404, f"There is no document {part['id']}.")
    return _attachment(row.detail["name"], shop.store.content(row.id))


def _invoice(order: Order) -> bytes:
    return (
        f"Corner Shop\n\nInvoice {order.number}\nOrdered  {order.ordered}\nFor      {order.customer}\n"
        f"Total    {order.total}\n\nThank you for your order.\n"
    ).encode()


def _attachment(name: str, content: bytes) -> Response:
    disposition = f"attachment; filename*=UTF-8''{quote(name, safe='')}"
    return Response(200, content, "application/octet-stream", (("Content-Disposition", disposition),))


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


ROUTES: tuple[Route, ...] = (
    route("GET", r"/orders/(?P<number>\w+)/documents", show),
    route("POST", r"/orders/(?P<number>\w+)/documents", file),
    route("GET", r"/orders/(?P<number>\w+)/invoice", invoice),
    route("GET", r"/documents/(?P<id>\d{1,12})", document),
)
