"""A registration in two steps: who you are, what you wish.

The first step makes a draft, the second a registration of it; both are ledger rows. The address of the second page names
the draft, so that the page can be opened again in another browser.
"""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

from workflows.shop import layout
from workflows.shop.store import LedgerRow
from workflows.shop.web import RefusedError, Request, Response, Route, Shop, redirect, route

COUNTRIES = ("France", "Germany", "Italy", "Portugal", "Sweden")


def show_first(shop: Shop, request: Request, part: Mapping[str, str]) -> Response:
    body = (
        '<h1>Register</h1>\n<p class="hint">Step 1 of 2: who you are</p>\n'
        f'<form class="card" method="post" action="/register">{layout.request_id_field()}'
        f"{layout.text_field('name', 'Name', attributes='required')}{layout.text_field('email', 'Email', type='email', attributes='required')}"
        f"{layout.select('country', 'Country', COUNTRIES, attributes='required')}<button>Continue</button></form>"
    )
    return layout.page("Register", body, user=request.user, here="/register", narrow=True)


def send_first(shop: Shop, request: Request, part: Mapping[str, str]) -> Response:
    """Keep a draft and show the second step."""
    entered = {name: request.form.get(name, "") for name in ("name", "email", "country")}
    if not all(entered.values()):
        raise RefusedError(400, "A registration needs a name, an email address and a country.")
    row = shop.store.record(request.request_id, "registration_draft", entered["email"], entered)
    return redirect(f"/register/wishes?draft={row.id}")


def show_second(shop: Shop, request: Request, part: Mapping[str, str]) -> Response:
    """Show the second step, of the draft in `?draft=`."""
    draft = _draft(shop, request.query)
    body = (
        f'<h1>Register</h1>\n<p class="hint">Step 2 of 2: what you wish, {escape(draft.detail["name"])}. '
        f'Draft <span data-testid="draft">{draft.id}</span></p>\n'
        f'<form class="card" method="post" action="/register/wishes">{layout.request_id_field()}'
        f'<input type="hidden" name="draft" value="{draft.id}">{layout.checkbox("newsletter", "Newsletter")}'
        f"{layout.text_area('comment', 'Comment')}<button>Submit</button></form>"
    )
    return layout.page("Register", body, user=request.user, here="/register", narrow=True)


def send_second(shop: Shop, request: Request, part: Mapping[str, str]) -> Response:
    """Make the registration of a draft, each time anew."""
    draft = _draft(shop, request.form)
    # Browsers send the line ends of a text area as CRLF, whatever was typed.
    comment = request.form.get("comment", "").replace("\r\n", "\n")
    detail = {**draft.detail, "newsletter": "newsletter" in request.form, "comment": comment, "draft": draft.id}
    row = shop.store.record(request.request_id, "registration", draft.subject, detail)
    return redirect(f"/register/done/{row.id}")


def show_done(shop: Shop, request: Request, part: Mapping[str, str]) -> Response:
    row = _row(shop, part["id"], "registration")
    body = (
        f'<h1>Welcome</h1>\n<div class="card"><p role="status">Thank you, {escape(row.detail["name"])}.</p>\n'
        f'<dl><dt>Registration</dt><dd data-testid="registration">{row.id}</dd>'
        f'<dt>Email</dt><dd data-testid="email">{escape(row.subject)}</dd></dl></div>'
    )
    return layout.page("Welcome", body, user=request.user, here="/register", narrow=True)


def show_status(shop: Shop, request: Request, part: Mapping[str, str]) -> Response:
    """Show whether the draft in `?draft=` became a registration, with the number of the last one."""
    draft = _draft(shop, request.query)
    rows = [row for row in shop.store.ledger("registration", draft.subject) if row.detail["draft"] == draft.id]
    number = f'<dt>Registration</dt><dd data-testid="registration">{rows[-1].id}</dd>' if rows else ""
    body = (
        f'<h1>Draft {draft.id} of {escape(draft.subject)}</h1>\n<div class="card"><dl><dt>Registered</dt>'
        f'<dd data-testid="registered">{"yes" if rows else "no"}</dd>{number}</dl></div>'
    )
    return layout.page("Registration", body, user=request.user, here="/register", narrow=True)


def _draft(shop: Shop, fields: Mapping[str, str]) -> LedgerRow:
    return _row(shop, fields.get("draft", ""), "registration_draft")


def _row(shop: Shop, id: str, kind: str) -> LedgerRow:
    row = shop.store.ledger_row(int(id), kind) if id.isdecimal() and len(id) < 13 else None
    if row is None:
        raise RefusedError(404, "This registration is not known here; begin again at /register.")
    return row


ROUTES: tuple[Route, ...] = (
    route("GET", "/register", show_first, open=True),
    route("POST", "/register", send_first, open=True),
    route("GET", "/register/wishes", show_second, open=True),
    route("POST", "/register/wishes", send_second, open=True),
    route("GET", r"/register/done/(?P<id>\d{1,12})", show_done, open=True),
    route("GET", "/register/status", show_status, open=True),
)
