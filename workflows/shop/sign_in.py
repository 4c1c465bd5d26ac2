"""Sign-in and sign-out."""

from __future__ import annotations

from collections.abc import Mapping
from hmac import compare_digest

from workflows.shop import layout
from workflows.shop.web import Request, Response, Route, Shop, redirect, route

USER = "admin"
COOKIE = "shop_session"
TYPED_PASSWORD = "typed_password"  # noqa: S105  # a name
"""The setting with the last input of the password field, which the mirror can show."""


def show(shop: Shop, request: Request, part: Mapping[str, str]) -> Response:
    """Show the form, even to a signed-in user, so that a workflow can always begin with it."""
    return _form("", 200)


def sign_in(shop: Shop, request: Request, part: Mapping[str, str]) -> Response:
    """Begin a session and go to the orders; after a wrong name or password show the form again, with HTTP 401."""
    name, password = request.form.get("username", ""), request.form.get("password", "")
    shop.store.keep(TYPED_PASSWORD, password)
    if name != USER or not compare_digest(password.encode(), shop.password.encode()):
        return _form("Wrong username or password.", 401)
    token = shop.store.sign_in(request.request_id, name)
    return redirect("/orders", ("Set-Cookie", f"{COOKIE}={token}; Path=/; HttpOnly; SameSite=Lax"))


def sign_out(shop: Shop, request: Request, part: Mapping[str, str]) -> Response:
    """End the session and go to the form."""
    if request.user is not None:
        shop.store.sign_out(request.request_id, request.cookies[COOKIE], request.user)
    return redirect("/login", ("Set-Cookie", f"{COOKIE}=; Path=/; Max-Age=0"))


def _form(problem: str, status: int) -> Response:
    alert = f'<p class="message bad" role="alert">{problem}</p>' if problem else ""
    body = (
        f'<h1>Sign in</h1>\n{alert}\n<form class="card" method="post" action="/login">{layout.request_id_field()}'
        f"{layout.text_field('username', 'Username', attributes='autocomplete=username required')}"
        f"{layout.text_field('password', 'Password', type='password', attributes='autocomplete=current-password required')}"
        "<button>Sign in</button></form>"
    )
    return layout.page("Sign in", body, narrow=True, status=status)


ROUTES: tuple[Route, ...] = (
    route("GET", "/login", show, open=True),
    route("POST", "/login", sign_in, open=True),
    route("POST", "/logout", sign_out),
)
