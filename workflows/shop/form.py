"""A form of 50 fields, for benchmarks and for tests of what a resumed run types again.

It has 20 texts, 10 lists, 10 boxes and 5 radio groups to fill, 4 texts to read, and a button. Its record is a ledger
row.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from html import escape
from typing import Literal

from workflows.shop import layout
from workflows.shop.store import LedgerRow
from workflows.shop.web import RefusedError, Request, Response, Route, Shop, redirect, route


@dataclass(frozen=True)
class Field:
    """One field of the form. No label is contained in another, so that a label finds one field."""

    name: str
    """Its name in the record; of a text to read, its test id."""
    kind: Literal["text", "select", "checkbox", "radio", "read", "submit"]
    label: str
    options: tuple[str, ...] = ()
    """The choices of a list or a radio group; for a text to read, only that text."""


def _texts(*labels: str) -> tuple[Field, ...]:
    return tuple(Field(label.lower().replace(" ", "_").replace("-", ""), "text", label) for label in labels)


SECTIONS: tuple[tuple[str, tuple[Field, ...]], ...] = (
    (
        "For your reference",
        (
            Field("clerk", "read", "Handled by", ("Ida Brandt",)),
            Field("price-list", "read", "Price list", ("Spring, second edition",)),
            Field("discount", "read", "Discount", ("12.5",)),
            Field("case", "read", "Case", ("W-4711",)),
        ),
    ),
    ("Company", _texts("Company name", "Trade name", "Registration number", "Tax number", "Website")),
    ("Contact", _texts("First name", "Last name", "Job title", "E-mail", "Telephone")),
    ("Delivery address", _texts("Street", "House number", "Postcode", "City", "Way in")),
    ("Invoices", _texts("Invoice recipient", "Purchase reference", "Account holder", "Cost centre", "Closing remark")),
    (
        "Terms",
        (
            Field("country", "select", "Country", ("France", "Germany", "Italy", "Portugal", "Sweden")),
            Field("currency", "select", "Currency", ("CHF", "EUR", "GBP", "SEK")),
            Field("language", "select", "Language", ("English", "French", "German", "Portuguese")),
            Field(
                "legal_form", "select", "Legal form", ("Association", "Limited company", "Partnership", "Sole trader")
            ),
            Field("branch", "select", "Branch", ("Café", "Grocer", "Hotel", "School")),
            Field("staff", "select", "Staff", ("1 to 9", "10 to 49", "50 or more")),
            Field("delivery_day", "select", "Delivery day", ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday")),
            Field("delivery_hour", "select", "Delivery hour", ("06:00", "09:00", "12:00", "15:00")),
            Field("payment_term", "select", "Payment term", ("7 days", "14 days", "30 days")),
            Field("packaging", "select", "Packaging", ("Cardboard", "Crates", "Pallets")),
        ),
    ),
    (
        "Wishes",
        (
            Field("newsletter", "checkbox", "Send me the newsletter"),
            Field("samples", "checkbox", "Include samples"),
            Field("partial", "checkbox", "Deliver in parts"),
            Field("saturday", "checkbox", "Deliver on Saturdays"),
            Field("neighbour", "checkbox", "Leave it with a neighbour"),
            Field("call_first", "checkbox", "Call before arriving"),
            Field("signature", "checkbox", "Ask for a signature"),
            Field("organic", "checkbox", "Organic goods only"),
            Field("returnable", "checkbox", "Use returnable bottles"),
            Field("terms", "checkbox", "I accept the conditions"),
        ),
    ),
    (
        "Choices",
        (
            Field("shipping", "radio", "Shipping", ("Standard", "Express", "Collection")),
            Field("invoice_by", "radio", "Invoice sent by", ("Paper post", "Fax", "Portal")),
            Field("insurance", "radio", "Insurance", ("None", "Basic cover", "Full cover")),
            Field("cooling", "radio", "Cooling", ("Room temperature", "Chilled", "Frozen")),
            Field("returns", "radio", "Returns", ("Exchange", "Refund", "Voucher")),
        ),
    ),
)

SUBMIT = Field("submit", "submit", "Send application")
FIELDS: tuple[Field, ...] = (*(field for _, fields in SECTIONS for field in fields), SUBMIT)


def describe() -> list[dict[str, object]]:
    """Return the fields for the JSON interface, so that a benchmark can write the workflow that fills them."""
    return [asdict(field) for field in FIELDS]


def show(shop: Shop, request: Request, part: Mapping[str, str]) -> Response:
    sections = "\n".join(
        f'<fieldset><legend>{title}</legend><div class="columns">{"".join(map(_input, fields))}</div></fieldset>'
        for title, fields in SECTIONS
    )
    body = (
        '<h1>Application for a trade account</h1>\n<form method="post" action="/form" autocomplete="off">'
        f"{layout.request_id_field()}\n{sections}\n<button>{SUBMIT.label}</button></form>"
    )
    return layout.page("Application", body, user=request.user, here="/form")


def send(shop: Shop, request: Request, part: Mapping[str, str]) -> Response:
    """Record exactly what was entered, and show it.

    Texts and lists are recorded as texts (empty without input), boxes as true or false, radio groups as texts (null
    without a choice).
    """
    row = shop.store.record(request.request_id, "form", request.form.get("company_name", ""), _entered(request.form))
    return redirect(f"/form/record/{row.id}")


def show_record(shop: Shop, request: Request, part: Mapping[str, str]) -> Response:
    row: LedgerRow | None = shop.store.ledger_row(int(part["id"]), "form")
    if row is None:
        raise RefusedError(404, f"There is no record {part['id']}.")
    rows = "\n".join(
        f'<tr><th scope="row">{escape(field.label)}</th><td data-testid="{field.name}">{escape(_shown(row.detail[field.name]))}</td></tr>'
        for field in FIELDS
        if field.name in row.detail
    )
    body = (
        f'<h1>Application received</h1>\n<p class="message" role="status">Your application has the number <b data-testid="record">{row.id}</b>.</p>\n'
        f'<table><caption class="hidden">What you entered</caption><tbody>\n{rows}\n</tbody></table>'
    )
    return layout.page("Application received", body, user=request.user, here="/form")


def _input(field: Field) -> str:
    match field.kind:
        case "text":
            return layout.text_field(field.name, field.label)
        case "select":
            return layout.select(field.name, field.label, field.options)
        case "checkbox":
            return layout.checkbox(field.name, field.label)
        case "radio":
            return layout.radio(field.name, field.label, field.options)
        case "read":
            return f'<div class="field"><span class="hint">{field.label}</span><span data-testid="{field.name}">{field.options[0]}</span></div>'
        case "submit":
            return f"<button>{field.label}</button>"


def _entered(form: Mapping[str, str]) -> dict[str, object]:
    entered: dict[str, object] = {}
    for field in FIELDS:
        if field.kind == "checkbox":
            entered[field.name] = field.name in form
        elif field.kind == "radio":
            entered[field.name] = form.get(field.name)
        elif field.kind in ("text", "select"):
            entered[field.name] = form.get(field.name, "")
    return entered


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "" if value is None else str(value)


ROUTES: tuple[Route, ...] = (
    route("GET", "/form", show, open=True),
    route("POST", "/form", send, open=True),
    route("GET", r"/form/record/(?P<id>\d{1,12})", show_record, open=True),
)
