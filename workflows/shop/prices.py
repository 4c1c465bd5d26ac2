"""The price list, open without a session. Prices change; the ledger has each change."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

from workflows.shop import layout
from workflows.shop.store import Store
from workflows.shop.web import Request, Response, Route, Shop, route

PRODUCTS: Mapping[str, tuple[str, str]] = {
    "BREAD-1": ("Rye bread, 1 kg", "4.20"),
    "CHEESE-2": ("Hard cheese, 500 g", "11.90"),
    "COFFEE-1": ("Coffee beans, 1 kg", "17.50"),
    "HONEY-3": ("Heather honey, 350 g", "8.40"),
    "JAM-1": ("Plum jam, 450 g", "5.10"),
    "OIL-2": ("Olive oil, 750 ml", "13.80"),
    "SOAP-4": ("Lavender soap, 100 g", "3.60"),
    "TEA-1": ("Black tea, 250 g", "9.30"),
}
"""Name and first price of each product, by its article number."""


def prices(store: Store) -> dict[str, str]:
    """Return the current price of each product."""
    changed = {row.subject: row.detail["to"] for row in store.ledger("price")}
    return {sku: changed.get(sku, first) for sku, (_, first) in PRODUCTS.items()}


def change(store: Store, request_id: str, sku: str, price: str) -> None:
    store.record(request_id, "price", sku, {"from": prices(store)[sku], "to": price})


def show(shop: Shop, request: Request, part: Mapping[str, str]) -> Response:
    rows = "\n".join(
        f'<tr><td class="sku">{sku}</td><td class="name">{escape(PRODUCTS[sku][0])}</td><td class="total">{price}</td></tr>'
        for sku, price in prices(shop.store).items()
    )
    body = (
        '<h1>Prices</h1>\n<table id="prices"><caption class="hidden">Prices</caption><thead><tr><th scope="col">Article</th>'
        f'<th scope="col">Product</th><th scope="col" class="total">Price</th></tr></thead>\n<tbody>\n{rows}\n</tbody></table>'
    )
    return layout.page("Prices", body, user=request.user, here="/prices")


ROUTES: tuple[Route, ...] = (route("GET", "/prices", show, open=True),)
