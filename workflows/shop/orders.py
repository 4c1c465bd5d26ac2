"""The pages of orders: the list, one order, payments and notes."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from math import ceil
from urllib.parse import parse_qsl, urlencode, urlsplit

from workflows.shop import layout
from workflows.shop.store import LedgerRow, Order, Status
from workflows.shop.web import RefusedError, Request, Response, Route, Shop, json_response, redirect, route

FILTERS: tuple[tuple[str, Status | None], ...] = (("All", None), ("Open", "open"), ("Paid", "paid"))

# With `?pay=fetch` the same forms are sent by script, and the row is changed in place: no navigation happens.
PAY_BY_FETCH = """<script>
document.addEventListener("submit", async event => {
  const form = event.target.closest("form.pay");
  if (!form) return;
  event.preventDefault();
  const message = document.getElementById("message");
  const button = form.querySelector("button");
  const place = form.closest("[data-order]");
  button.disabled = true;
  try {
    const body = new URLSearchParams(new FormData(form));
    const answer = await fetch(form.action, {method: "POST", body, headers: {Accept: "application/json"}});
    if (!answer.ok) throw new Error("the shop answered " + answer.status);
    const order = await answer.json();
    const badge = place.querySelector(".badge");
    badge.textContent = order.status;
    badge.classList.add("paid");
    form.remove();
    message.className = "message";
    message.textContent = "Order " + order.number + " is paid.";
  } catch (error) {
    button.disabled = false;
    message.className = "message bad";
    message.textContent = "Order " + place.dataset.order + " could not be paid: " + error.message + ".";
  }
});
</script>"""


def home(shop: Shop, request: Request, part: Mapping[str, str]) -> Response:
    """Redirect to the list of orders."""
    return redirect("/orders")


def show_list(shop: Shop, request: Request, part: Mapping[str, str]) -> Response:
    """Show a page of the list: `?status=open|paid`, `?page=2`, `?pay=fetch`.

    `?paid=1003` says that this order was just paid, and keeps its row.
    """
    name = request.query.get("status", "")
    status: Status | None = "open" if name in ("open", "unpaid") else "paid" if name == "paid" else None
    paid = shop.store.order(request.query.get("paid", ""))
    keep = paid.number if paid is not None and paid.paid else None
    size = shop.page_size
    _, total = shop.store.orders(status, keep=keep, size=0)
    pages = max(1, ceil(total / size))
    page = min(max(1, _number(request.query.get("page"))), pages)
    orders, _ = shop.store.orders(status, keep=keep, page=page, size=size)
    by_fetch = request.query.get("pay") == "fetch"
    back = _list_url(status, page, by_fetch)
    message = f"Order {keep} is paid." if keep else ""
    links = " ".join(_filter_link(title, each, status, by_fetch) for title, each in FILTERS)
    body = (
        f'<div class="bar"><h1>Orders</h1><nav aria-label="Filter">{links}</nav></div>\n'
        f'<p id="message" class="message" role="status">{message}</p>\n'
        f"{_table(orders, back) if orders else '<p class=card>No orders here.</p>'}\n"
        f"{_pager(status, page, pages, by_fetch)}{PAY_BY_FETCH if by_fetch else ''}"
    )
    return layout.page("Orders", body, user=request.user, here="/orders")


def show(shop: Shop, request: Request, part: Mapping[str, str]) -> Response:
    """Show one order with its notes; `?pay=fetch` as in the list."""
    order = one(shop, part)
    by_fetch = request.query.get("pay") == "fetch"
    here = f"/orders/{order.number}" + ("?pay=fetch" if by_fetch else "")
    notes = "".join(f"<li>{escape(row.detail['text'])}</li>" for row in shop.store.ledger("note", order.number))
    body = (
        f'<p><a href="/orders">All orders</a></p>\n<h1>Order {order.number}</h1>\n<p id="message" class="message" role="status"></p>\n'
        f'<section class="card" data-order="{order.number}" aria-label="Order {order.number}"><dl>'
        f'<dt>Customer</dt><dd data-testid="customer">{escape(order.customer)}</dd>'
        f'<dt>Ordered</dt><dd data-testid="ordered">{order.ordered}</dd>'
        f'<dt>Total</dt><dd data-testid="total">{order.total}</dd>'
        f"<dt>Status</dt><dd>{_badge(order, ' data-testid=status')}</dd></dl>{_pay_form(order, here)}</section>\n"
        f'<p><a href="/orders/{order.number}/documents">Documents</a> · <a href="/orders/{order.number}/refund">Refund</a></p>\n'
        f"<h2>Notes</h2>\n{f'<ul class=notes>{notes}</ul>' if notes else '<p class=hint>No notes yet.</p>'}\n"
        f'<form class="card" method="post" action="/orders/{order.number}/notes">{layout.request_id_field()}'
        f"{layout.text_area('text', 'Note', attributes='required')}<button>Add note</button></form>"
        f"{PAY_BY_FETCH if by_fetch else ''}"
    )
    return layout.page(f"Order {order.number}", body, user=request.user, here="/orders")


def pay(shop: Shop, request: Request, part: Mapping[str, str]) -> Response:
    """Record a payment, even for a paid order, and go back to the page with the button."""
    order = one(shop, part)
    shop.store.record(request.request_id, "payment", order.number, {"total": order.total})
    if request.wants_json:
        return json_response({"number": order.number, "status": "paid"})
    return redirect(_back(request.form.get("back", ""), order))


def note(shop: Shop, request: Request, part: Mapping[str, str]) -> Response:
    """Record a note, as it was typed, and show the order again."""
    order = one(shop, part)
    # Browsers send the line ends of a text area as CRLF, whatever was typed.
    text = request.form.get("text", "").replace("\r\n", "\n")
    if not text.strip():
        raise RefusedError(400, "A note needs a text.")
    shop.store.record(request.request_id, "note", order.number, {"text": text})
    return redirect(f"/orders/{order.number}")


def as_json(order: Order, payments: list[LedgerRow]) -> dict[str, object]:
    return {
        "number": order.number,
        "customer": order.customer,
        "total": order.total,
        "status": order.status,
        "payments": sum(row.subject == order.number for row in payments),
    }


def one(shop: Shop, part: Mapping[str, str]) -> Order:
    """Return the order with the number in the path. Raises `RefusedError`."""
    order = shop.store.order(part["number"])
    if order is None:
        raise RefusedError(404, f"There is no order {part['number']}.")
    return order


def _number(text: str | None) -> int:
    return int(text) if text and text.isdecimal() and len(text) < 10 else 1


def _list_url(status: Status | None, page: int, by_fetch: bool) -> str:
    query = {"status": status or "", "page": str(page) if page > 1 else "", "pay": "fetch" if by_fetch else ""}
    text = urlencode({name: value for name, value in query.items() if value})
    return f"/orders?{text}" if text else "/orders"


def _back(url: str, order: Order) -> str:
    parts = urlsplit(url)
    if parts.scheme or parts.netloc or parts.path not in ("/orders", f"/orders/{order.number}"):
        return f"/orders/{order.number}"
    query = dict(parse_qsl(parts.query))
    if parts.path == "/orders" and "status" in query:
        # A filtered list would drop the row that was just paid, and not show that it worked.
        query["paid"] = order.number
    return parts.path + (f"?{urlencode(query)}" if query else "")


def _table(orders: list[Order], back: str) -> str:
    rows = "\n".join(
        f'<tr data-order="{order.number}"><td class="no"><a href="/orders/{order.number}">{order.number}</a></td>'
        f'<td class="customer">{escape(order.customer)}</td><td class="ordered">{order.ordered}</td><td class="total">{order.total}</td>'
        f'<td class="status">{_badge(order)}</td><td class="action">{_pay_form(order, back)}</td></tr>'
        for order in orders
    )
    return (
        '<table id="orders"><caption class="hidden">Orders</caption><thead><tr><th scope="col">No.</th><th scope="col">Customer</th>'
        '<th scope="col">Ordered</th><th scope="col" class="total">Total</th><th scope="col">Status</th><th scope="col"></th></tr></thead>\n'
        f"<tbody>\n{rows}\n</tbody></table>"
    )


def _badge(order: Order, attributes: str = "") -> str:
    return f'<span class="badge{" paid" if order.paid else ""}"{attributes}>{order.status}</span>'


def _pay_form(order: Order, back: str) -> str:
    if order.paid:
        return ""
    return (
        f'<form class="pay" method="post" action="/orders/{order.number}/pay">{layout.request_id_field()}'
        f'<input type="hidden" name="back" value="{escape(back)}"><button>Pay</button></form>'
    )


def _filter_link(title: str, status: Status | None, current: Status | None, by_fetch: bool) -> str:
    mark = ' aria-current="true"' if status == current else ""
    return f'<a href="{escape(_list_url(status, 1, by_fetch))}"{mark}>{title}</a>'


def _pager(status: Status | None, page: int, pages: int, by_fetch: bool) -> str:
    if pages == 1:
        return ""
    before = f'<a href="{escape(_list_url(status, page - 1, by_fetch))}" rel="prev">Previous</a>' if page > 1 else ""
    after = f'<a href="{escape(_list_url(status, page + 1, by_fetch))}" rel="next">Next</a>' if page < pages else ""
    return f'<nav class="pager" aria-label="Pages">{before}<span>Page {page} of {pages}</span>{after}</nav>'


ROUTES: tuple[Route, ...] = (
    route("GET", "/", home),
    route("GET", "/orders", show_list),
    route("GET", r"/orders/(?P<number>\w+)", show),
    route("POST", r"/orders/(?P<number>\w+)/pay", pay),
    route("POST", r"/orders/(?P<number>\w+)/notes", note),
)
