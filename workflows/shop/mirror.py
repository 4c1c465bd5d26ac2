"""A signed-in page that shows a text in every place a page has: for tests that look for secrets in what a run wrote.

The source of the text is the last input of the password field of the sign-in form, or a given text. It is set with the
form on `/mirror` or with `POST /_mirror`; `/mirror/<place>` then shows the text in that place.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping
from html import escape
from typing import Literal
from urllib.parse import quote, urlencode

from workflows.shop import layout
from workflows.shop.sign_in import TYPED_PASSWORD
from workflows.shop.store import Store
from workflows.shop.web import RefusedError, Request, Response, Route, Shop, redirect, route

SOURCE, TEXT = "mirror_source", "mirror_text"
Source = Literal["password", "text"]


def _script(text: str) -> str:
    # "</script>" in the text would end the script.
    return json.dumps(text).replace("<", "\\u003c")


PIECES: Mapping[str, Callable[[str], str]] = {
    "message": lambda text: f'<p class="message" role="status" data-testid="message">You typed {escape(text)}.</p>',
    "table": lambda text: (
        f'<table id="mirror"><thead><tr><th scope="col">Field</th><th scope="col">Value</th></tr></thead><tbody>'
        f'<tr><td class="name">text</td><td class="value">{escape(text)}</td></tr>'
        f'<tr><td class="name">in a sentence</td><td class="value">before {escape(text)} after</td></tr></tbody></table>'
    ),
    "button": lambda text: f'<p><button type="button">{escape(text)}</button></p>',
    "label": lambda text: f'<p><label for="labelled">{escape(text)}</label> <input id="labelled"></p>',
    "value": lambda text: (
        f'<p><label for="filled">Filled</label> <input id="filled" value="{escape(text)}" placeholder="{escape(text)}"></p>'
    ),
    "link": lambda text: (
        f'<p><a href="/mirror/url?{escape(urlencode({"q": text}))}" title="{escape(text)}">A link</a></p>'
    ),
    "hidden": lambda text: (
        f'<p><input type="hidden" name="kept" value="{escape(text)}"><span hidden>{escape(text)}</span>Nothing to see.</p>'
    ),
    "console": lambda text: f"<p>Look at the console.</p><script>console.error({_script(text)})</script>",
    "storage": lambda text: (
        f"<p>Kept in the browser.</p><script>localStorage.setItem('kept', {_script(text)})</script>"
    ),
    "encoded": lambda text: (
        f'<dl><dt>base64</dt><dd data-testid="base64">{base64.b64encode(text.encode()).decode()}</dd>'
        f'<dt>percent</dt><dd data-testid="percent">{quote(text, safe="")}</dd>'
        f'<dt>JSON</dt><dd data-testid="json">{escape(json.dumps(text))}</dd></dl>'
    ),
}
"""The places in the body of a page."""

PLACES = (*PIECES, "title", "url", "error", "all", "dialog", "download")
"""Every place; `all` is the title and the body's places together (so it neither leaves the page nor blocks it)."""


def read(store: Store) -> dict[str, str]:
    """Return the source, and the text that the mirror shows now."""
    source = store.setting(SOURCE) or "password"
    return {"source": source, "text": store.setting(TYPED_PASSWORD if source == "password" else TEXT) or ""}


def write(store: Store, source: Source, text: str | None = None) -> None:
    """Set the source, with the text if it is `text`."""
    store.keep(SOURCE, source)
    if text is not None:
        store.keep(TEXT, text)


def show(shop: Shop, request: Request, part: Mapping[str, str]) -> Response:
    """Show the form that gives the mirror a text."""
    body = (
        f'<h1>Mirror</h1>\n<form class="card" method="post" action="/mirror">{layout.request_id_field()}'
        f"{layout.text_field('text', 'Text', attributes='autocomplete=off')}{layout.select('place', 'Place', PLACES, attributes='required')}"
        "<button>Show</button></form>"
    )
    return layout.page("Mirror", body, user=request.user, narrow=True)


def set_text(shop: Shop, request: Request, part: Mapping[str, str]) -> Response:
    """Take the text of the form, and redirect to where it is shown."""
    write(shop.store, "text", request.form.get("text", ""))
    return redirect(f"/mirror/{request.form.get('place') or 'all'}")


def reflect(shop: Shop, request: Request, part: Mapping[str, str]) -> Response:
    """Show the text in one place."""
    text, place = read(shop.store)["text"], part["place"]
    title = text if place in ("title", "all") else "Mirror"
    match place:
        case "url" if request.query.get("q") != text:
            return redirect(f"/mirror/url?{urlencode({'q': text})}")
        case "error":
            return layout.notice("Something broke", f"Cannot work with {text}", user=request.user, status=500)
        case "download":
            name = quote(text or "empty", safe="")
            return Response(
                200,
                text.encode(),
                "text/plain; charset=utf-8",
                (("Content-Disposition", f"attachment; filename*=UTF-8''{name}.txt"),),
            )
        case "dialog":
            body = f"<script>alert({_script(text)})</script>"
        case "all":
            body = "\n".join(piece(text) for piece in PIECES.values())
        case "title" | "url":
            body = "<p>It is not on the page.</p>"
        case _:
            if place not in PIECES:
                raise RefusedError(404, f"The mirror has no place {place}; it has {', '.join(PLACES)}.")
            body = PIECES[place](text)
    return layout.page(title, f"<h1>Mirror</h1>\n{body}", user=request.user)


ROUTES: tuple[Route, ...] = (
    route("GET", "/mirror", show),
    route("POST", "/mirror", set_text),
    route("GET", r"/mirror/(?P<place>\w+)", reflect),
)
