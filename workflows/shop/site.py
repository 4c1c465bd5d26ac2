"""The site as a function from a request to a response."""

from __future__ import annotations

from dataclasses import replace

from workflows.shop import (
    api,
    checkout,
    delivery,
    dock,
    documents,
    form,
    layout,
    messages,
    mirror,
    orders,
    prices,
    refunds,
    register,
    sign_in,
    triage,
)
from workflows.shop.web import RefusedError, Request, Response, Route, Shop, json_response, redirect

ROUTES: tuple[Route, ...] = (
    *sign_in.ROUTES, *orders.ROUTES, *refunds.ROUTES, *documents.ROUTES, *triage.ROUTES, *messages.ROUTES, *delivery.ROUTES,
    *dock.ROUTES, *prices.ROUTES, *checkout.ROUTES, *form.ROUTES, *register.ROUTES, *mirror.ROUTES, *api.ROUTES,
)  # fmt: skip


def is_api(path: str) -> bool:
    """Return whether a path belongs to the JSON interface for tests, to which no switch applies."""
    return path.startswith("/_")


def answer(shop: Shop, request: Request) -> Response:
    """Carry the request out. Its changes are committed when this returns."""
    request = replace(request, user=shop.store.user(request.cookies.get(sign_in.COOKIE, "")))
    try:
        return _dispatch(shop, request)
    except RefusedError as refusal:
        return refuse(request, refusal)


def refuse(request: Request, refusal: RefusedError) -> Response:
    """Return the answer to a refused request: a page for a person, JSON for a script."""
    if is_api(request.path) or request.wants_json:
        return json_response({"error": refusal.sentence}, refusal.status)
    title = {404: "Not found", 500: "Something broke"}.get(refusal.status, "This did not work")
    return layout.notice(title, refusal.sentence, user=request.user, status=refusal.status)


def _dispatch(shop: Shop, request: Request) -> Response:
    # HEAD is a GET whose body the server leaves out.
    method = "GET" if request.method == "HEAD" else request.method
    known = False
    for each in ROUTES:
        found = each.path.fullmatch(request.path)
        if found is None:
            continue
        if each.method != method:
            known = True
            continue
        if not each.open and request.user is None:
            if request.wants_json:
                raise RefusedError(401, "Nobody is signed in.")
            return redirect("/login")
        return each.handler(
            shop, request, {name: value for name, value in found.groupdict().items() if value is not None}
        )
    if known:
        raise RefusedError(405, f"{request.path} does not answer to {request.method}.")
    raise RefusedError(404, f"There is no page {request.path}.")
