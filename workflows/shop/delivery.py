"""Booking a delivery in two pages: the first opens an address book in a window, the second has the carrier's terms in a frame.

As in the registration, the first page makes a draft and the second books it; both are ledger rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

from workflows.shop import layout
from workflows.shop.store import LedgerRow
from workflows.shop.web import RefusedError, Request, Response, Route, Shop, redirect, route

FIELDS: Mapping[str, str] = {"recipient": "Recipient", "street": "Street", "city": "City"}

ADDRESSES: tuple[tuple[str, str, str], ...] = (
    ("Ada Okafor", "Rua da Rosa 14", "Lisbon"),
    ("Greta Lindqvist", "Storgatan 3", "Uppsala"),
    ("Klaus Weber", "Lindenstraße 8", "Leipzig"),
)

OPEN_BOOK = """<script>
document.getElementById("book").addEventListener("click", () =>
  window.open("/delivery/addresses", "addresses", "popup,width=640,height=420"));
</script>"""

# The window writes into the page that opened it, and closes itself.
USE_ADDRESS = """<script>
document.addEventListener("click", event => {
  const row = event.target.closest("button") && event.target.closest("tr");
  if (!row) return;
  for (const name of ["recipient", "street", "city"])
    window.opener.document.getElementById(name).value = row.querySelector("." + name).textContent;
  window.close();
});
</script>"""

# The frame tells the page around it what was agreed, as the form of a payment service does.
CONFIRM_TERMS = """<script>
document.querySelector("form").addEventListener("submit", event => {
  event.preventDefault();
  document.querySelector("[role=status]").textContent = "Terms confirmed.";
  parent.postMessage({account: event.target.account.value}, location.origin);
});
</script>"""

TAKE_TERMS = """<script>
addEventListener("message", event => {
  if (event.origin !== location.origin) return;
  document.getElementById("account").value = event.data.account;
  document.getElementById("send").disabled = false;
});
</script>"""


def show_first(shop: Shop, request: Request, part: Mapping[str, str]) -> Response:
    """Show the first page, which asks for the address."""
    fields = "".join(layout.text_field(name, label, attributes="required") for name, label in FIELDS.items())
    body = (
        '<h1>Book a delivery</h1>\n<p class="hint">Page 1 of 2: where to</p>\n<form class="card" method="post" action="/delivery">'
        f'{layout.request_id_field()}<p><button type="button" id="book">Address book</button></p>{fields}'
        f"<button>Continue</button></form>{OPEN_BOOK}"
    )
    return layout.page("Book a delivery", body, user=request.user, here="/delivery", narrow=True)


def show_addresses(shop: Shop, request: Request, part: Mapping[str, str]) -> Response:
    """Show the address book, for the window that the first page opens."""
    rows = "\n".join(
        f'<tr><td class="recipient">{recipient}</td><td class="street">{street}</td><td class="city">{city}</td>'
        '<td class="action"><button type="button">Use</button></td></tr>'
        for recipient, street, city in ADDRESSES
    )
    body = f'<h1>Address book</h1>\n<table id="addresses"><tbody>\n{rows}\n</tbody></table>{USE_ADDRESS}'
    return layout.page("Address book", body)


def send_first(shop: Shop, request: Request, part: Mapping[str, str]) -> Response:
    """Keep a draft and show the second page."""
    entered = {name: request.form.get(name, "").strip() for name in FIELDS}
    if not all(entered.values()):
        raise RefusedError(400, "A delivery needs a recipient, a street and a city.")
    row = shop.store.record(request.request_id, "delivery_draft", entered["recipient"], entered)
    return redirect(f"/delivery/terms?draft={row.id}")


def show_second(shop: Shop, request: Request, part: Mapping[str, str]) -> Response:
    """Show the second page, of the draft in `?draft=`; its button needs the agreement to the terms in the frame."""
    draft = _draft(shop, request.query)
    address = ", ".join(draft.detail[name] for name in FIELDS)
    body = (
        '<h1>Book a delivery</h1>\n<p class="hint">Page 2 of 2: terms and payment. Draft '
        f'<span data-testid="draft">{draft.id}</span></p>\n<p data-testid="address">{escape(address)}</p>\n'
        '<iframe title="Terms of the carrier" name="terms" src="/delivery/terms/frame" width="100%" height="330"></iframe>\n'
        f'<form class="card" method="post" action="/delivery/terms">{layout.request_id_field()}'
        f'<input type="hidden" name="draft" value="{draft.id}"><input type="hidden" id="account" name="account">'
        f'<button id="send" disabled>Book delivery</button></form>{TAKE_TERMS}'
    )
    return layout.page("Book a delivery", body, user=request.user, here="/delivery", narrow=True)


def show_frame(shop: Shop, request: Request, part: Mapping[str, str]) -> Response:
    """Show the carrier's terms, for the frame."""
    body = (
        '<h2>Terms of the carrier</h2>\n<p class="message" role="status"></p>\n<form class="card">'
        f"{layout.text_field('account', 'Account', attributes='required')}"
        '<div class="choice"><input id="accept" type="checkbox" required><label for="accept">I accept the terms</label></div>'
        f"<button>Confirm terms</button></form>{CONFIRM_TERMS}"
    )
    return layout.page("Terms", body)


def send_second(shop: Shop, request: Request, part: Mapping[str, str]) -> Response:
    """Book the delivery of a draft, each time anew."""
    draft, account = _draft(shop, request.form), request.form.get("account", "")
    if not account:
        raise RefusedError(400, "The terms of the carrier are not confirmed.")
    row = shop.store.record(
        request.request_id, "delivery", draft.subject, {**draft.detail, "account": account, "draft": draft.id}
    )
    return redirect(f"/delivery/done/{row.id}")


def show_done(shop: Shop, request: Request, part: Mapping[str, str]) -> Response:
    row = _row(shop, part["id"], "delivery")
    body = (
        f'<h1>Booked</h1>\n<div class="card"><p role="status">A parcel for {escape(row.subject)} will be fetched.</p>\n'
        f'<dl><dt>Delivery</dt><dd data-testid="delivery">{row.id}</dd></dl></div>'
    )
    return layout.page("Booked", body, user=request.user, here="/delivery", narrow=True)


def show_status(shop: Shop, request: Request, part: Mapping[str, str]) -> Response:
    """Show whether the draft in `?draft=` was booked, with the number of the last booking."""
    draft = _draft(shop, request.query)
    rows = [row for row in shop.store.ledger("delivery", draft.subject) if row.detail["draft"] == draft.id]
    number = f'<dt>Delivery</dt><dd data-testid="delivery">{rows[-1].id}</dd>' if rows else ""
    body = (
        f'<h1>Draft {draft.id} for {escape(draft.subject)}</h1>\n<div class="card"><dl><dt>Booked</dt>'
        f'<dd data-testid="booked">{"yes" if rows else "no"}</dd>{number}</dl></div>'
    )
    return layout.page("Delivery", body, user=request.user, here="/delivery", narrow=True)


def _draft(shop: Shop, fields: Mapping[str, str]) -> LedgerRow:
    return _row(shop, fields.get("draft", ""), "delivery_draft")


def _row(shop: Shop, id: str, kind: str) -> LedgerRow:
    row = shop.store.ledger_row(int(id), kind) if id.isdecimal() and len(id) < 13 else None
    if row is None:
        raise RefusedError(404, "This delivery is not known here; begin again at /delivery.")
    return row


ROUTES: tuple[Route, ...] = (
    route("GET", "/delivery", show_first),
    route("POST", "/delivery", send_first),
    route("GET", "/delivery/addresses", show_addresses),
    route("GET", "/delivery/terms", show_second),
    route("POST", "/delivery/terms", send_second),
    route("GET", "/delivery/terms/frame", show_frame),
    route("GET", r"/delivery/done/(?P<id>\d{1,12})", show_done),
    route("GET", "/delivery/status", show_status),
)
