"""The loading dock: a gate is reserved, a label is printed there, and the gate is released.

The label printer of gate A2 is broken: printing there is answered with HTTP 500, and the gate stays reserved.
"""

from __future__ import annotations

from collections.abc import Mapping

from workflows.shop import layout
from workflows.shop.store import Store
from workflows.shop.web import RefusedError, Request, Response, Route, Shop, redirect, route

GATES = ("A1", "A2", "A3", "A4")
WITHOUT_PRINTER = "A2"


def reserved(store: Store, gate: str) -> bool:
    return len(store.ledger("gate_reserved", gate)) > len(store.ledger("gate_released", gate))


def show_all(shop: Shop, request: Request, part: Mapping[str, str]) -> Response:
    rows = "\n".join(
        f'<tr><td class="gate"><a href="/dock/{gate}">{gate}</a></td><td class="state">{_state(shop.store, gate)}</td></tr>'
        for gate in GATES
    )
    body = f'<h1>Dock</h1>\n<table id="gates"><caption class="hidden">Gates</caption><tbody>\n{rows}\n</tbody></table>'
    return layout.page("Dock", body, user=request.user, here="/dock")


def show(shop: Shop, request: Request, part: Mapping[str, str]) -> Response:
    """Show one gate, with the buttons that its state allows."""
    gate = _gate(part)
    labels = len(shop.store.ledger("label", gate))
    actions = {"label": "Print label", "release": "Release"} if reserved(shop.store, gate) else {"reserve": "Reserve"}
    forms = "".join(
        f'<form method="post" action="/dock/{gate}/{action}">{layout.request_id_field()}<button>{name}</button></form>'
        for action, name in actions.items()
    )
    body = (
        f'<p><a href="/dock">All gates</a></p>\n<h1>Gate {gate}</h1>\n<section class="card"><dl><dt>State</dt>'
        f'<dd data-testid="state">{_state(shop.store, gate)}</dd><dt>Labels printed</dt><dd data-testid="labels">{labels}</dd>'
        f"</dl>{forms}</section>"
    )
    return layout.page(f"Gate {gate}", body, user=request.user, here="/dock")


def reserve(shop: Shop, request: Request, part: Mapping[str, str]) -> Response:
    """Reserve a free gate."""
    gate = _gate(part)
    if reserved(shop.store, gate):
        raise RefusedError(409, f"Gate {gate} is reserved already.")
    shop.store.record(request.request_id, "gate_reserved", gate)
    return redirect(f"/dock/{gate}")


def print_label(shop: Shop, request: Request, part: Mapping[str, str]) -> Response:
    """Print one more label, if the gate's printer works."""
    gate = _gate(part)
    if gate == WITHOUT_PRINTER:
        raise RefusedError(500, f"The label printer of gate {gate} does not answer.")
    shop.store.record(request.request_id, "label", gate)
    return redirect(f"/dock/{gate}")


def release(shop: Shop, request: Request, part: Mapping[str, str]) -> Response:
    gate = _gate(part)
    if not reserved(shop.store, gate):
        raise RefusedError(409, f"Gate {gate} is free.")
    shop.store.record(request.request_id, "gate_released", gate)
    return redirect(f"/dock/{gate}")


def _state(store: Store, gate: str) -> str:
    return "reserved" if reserved(store, gate) else "free"


def _gate(part: Mapping[str, str]) -> str:
    if part["gate"] not in GATES:
        raise RefusedError(404, f"There is no gate {part['gate']}.")
    return part["gate"]


ROUTES: tuple[Route, ...] = (
    route("GET", "/dock", show_all),
    route("GET", r"/dock/(?P<gate>\w+)", show),
    route("POST", r"/dock/(?P<gate>\w+)/reserve", reserve),
    route("POST", r"/dock/(?P<gate>\w+)/label", print_label),
    route("POST", r"/dock/(?P<gate>\w+)/release", release),
)
