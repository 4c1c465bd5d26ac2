"""The layout of the shop: the frame around every page, and elements that several pages use."""

from __future__ import annotations

from html import escape
from uuid import uuid4

from workflows.shop.web import Response

STYLE = """
:root { --ink: #1d2733; --soft: #5b6876; --line: #dfe4ea; --paper: #fff; --ground: #f4f6f8; --deep: #17485c; --good: #1b7a43; --open: #a1540b; }
* { box-sizing: border-box; }
body { margin: 0; font: 15px/1.5 system-ui, "DejaVu Sans", sans-serif; color: var(--ink); background: var(--ground); }
body > header { display: flex; align-items: center; gap: 1.5rem; padding: .7rem 1.5rem; color: #fff; background: var(--deep); }
body > header nav { display: flex; gap: 1.2rem; flex: 1; }
body > header a { color: #dcebf1; text-decoration: none; }
body > header a:hover, body > header a[aria-current] { color: #fff; text-decoration: underline; text-underline-offset: .35em; }
body > header strong { font-size: 1.1rem; letter-spacing: .02em; }
body > header button { color: #fff; background: transparent; border-color: #7fa6b5; }
main { max-width: 60rem; margin: 1.5rem auto 3rem; padding: 0 1.5rem; }
main.narrow { max-width: 29rem; }
h1 { margin: 0 0 1rem; font-size: 1.5rem; }
h2 { margin: 1.8rem 0 .6rem; font-size: 1.1rem; }
a { color: #14607f; }
.card { padding: 1.2rem 1.4rem; background: var(--paper); border: 1px solid var(--line); border-radius: 8px; }
.card + .card { margin-top: 1rem; }
table { width: 100%; border-collapse: collapse; background: var(--paper); border: 1px solid var(--line); border-radius: 8px; overflow: hidden; }
th, td { padding: .5rem .9rem; text-align: left; border-top: 1px solid var(--line); }
thead th { font-size: .82rem; color: var(--soft); background: #eef2f5; border-top: 0; }
tbody th { width: 14rem; font-weight: 500; color: var(--soft); }
td.total, th.total { text-align: right; font-variant-numeric: tabular-nums; }
td.action { width: 6rem; padding-block: .3rem; text-align: right; }
td.action form { margin: 0; }
tr { height: 2.9rem; }
.badge { display: inline-block; padding: .05rem .6rem; border-radius: 99px; font-size: .85rem; color: var(--open); background: #fbefe2; }
.badge.paid { color: var(--good); background: #e3f4ea; }
button { padding: .38rem 1rem; font: inherit; color: #fff; background: var(--deep); border: 1px solid var(--deep); border-radius: 6px; cursor: pointer; }
button:hover { filter: brightness(1.12); }
button:focus-visible, a:focus-visible, input:focus-visible, select:focus-visible, textarea:focus-visible { outline: 2px solid #e0992f; outline-offset: 1px; }
button:disabled { opacity: .5; }
label { font-weight: 500; }
.field { display: flex; flex-direction: column; gap: .25rem; }
.field + .field, .field + button, .choice + button, .field + .choice { margin-top: .9rem; }
input:not([type=checkbox], [type=radio]), select, textarea { width: 100%; padding: .42rem .6rem; font: inherit; color: inherit; background: #fff; border: 1px solid #b9c3cd; border-radius: 6px; }
textarea { min-height: 5rem; resize: vertical; }
.choice { display: flex; align-items: center; gap: .5rem; }
.choice label { font-weight: 400; }
fieldset { margin: 0 0 1rem; padding: .9rem 1.2rem 1.1rem; background: var(--paper); border: 1px solid var(--line); border-radius: 8px; }
fieldset fieldset { margin: 0; padding: .3rem .8rem .5rem; }
legend { padding: 0 .4rem; font-weight: 600; }
.columns { display: grid; grid-template-columns: repeat(auto-fill, minmax(15rem, 1fr)); gap: .8rem 1.2rem; }
.columns > * { margin: 0 !important; }
.bar { display: flex; justify-content: space-between; align-items: center; gap: 1rem; margin-bottom: .8rem; }
.bar h1 { margin: 0; }
.bar nav, .pager { display: flex; gap: 1rem; align-items: center; }
.bar a[aria-current] { color: var(--ink); font-weight: 600; text-decoration: none; }
.pager { margin-top: .9rem; color: var(--soft); }
dl { display: grid; grid-template-columns: 9rem 1fr; gap: .4rem 1rem; margin: 0; }
dt { color: var(--soft); }
dd { margin: 0; }
dl + form { margin-top: 1.2rem; }
form + form { margin-top: .6rem; }
table + .card { margin-top: 1rem; }
iframe { border: 1px solid var(--line); border-radius: 8px; }
.message { margin: 0 0 1rem; padding: .55rem .9rem; background: #e3f4ea; border-left: 4px solid var(--good); border-radius: 4px; }
.message.bad { background: #fdecea; border-color: #b3261e; }
.message:empty { display: none; }
.hint { color: var(--soft); }
ul.notes { white-space: pre-line; margin: 0 0 1rem; padding-left: 1.2rem; }
.hidden { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
"""


MENU = {
    "/orders": "Orders",
    "/triage": "Triage",
    "/messages": "Messages",
    "/delivery": "Delivery",
    "/dock": "Dock",
    "/prices": "Prices",
    "/articles": "Articles",
    "/form": "Application",
    "/register": "Register",
}
"""The menu of a signed-in user, by path."""


def page(
    title: str, body: str, *, user: str | None = None, here: str = "", narrow: bool = False, status: int = 200
) -> Response:
    """Return a whole page; `body` is HTML, `title` is text, `here` is the path of the menu entry to mark."""
    menu = ""
    if user is not None:
        links = "".join(_menu_link(path, name, here) for path, name in MENU.items())
        menu = f'<nav aria-label="Main">{links}</nav><span>{escape(user)}</span>{_sign_out()}'
    html = (
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>{escape(title)} – Corner Shop</title>\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        # With an empty icon the browser sends no request for /favicon.ico, which tests could count.
        f'<link rel="icon" href="data:,">\n<style>{STYLE}</style>\n</head>\n<body>\n'
        f'<header><strong>Corner Shop</strong>{menu}</header>\n<main class="{"narrow" if narrow else "wide"}">\n{body}\n</main>\n</body>\n</html>\n'
    )
    return Response(status, html.encode())


def notice(title: str, sentence: str, *, user: str | None = None, status: int = 200) -> Response:
    """Return a page with one sentence."""
    return page(title, f'<h1>{escape(title)}</h1>\n<p class="card">{escape(sentence)}</p>', user=user, status=status)


def request_id_field() -> str:
    """Return the hidden one-time id of a form, new each time the form is shown."""
    return f'<input type="hidden" name="request_id" value="{uuid4().hex}">'


def text_field(name: str, label: str, *, type: str = "text", value: str = "", attributes: str = "") -> str:
    return (
        f'<div class="field"><label for="{name}">{escape(label)}</label>'
        f'<input id="{name}" name="{name}" type="{type}" value="{escape(value)}" {attributes}></div>'
    )


def text_area(name: str, label: str, *, attributes: str = "") -> str:
    return f'<div class="field"><label for="{name}">{escape(label)}</label><textarea id="{name}" name="{name}" {attributes}></textarea></div>'


def select(name: str, label: str, options: tuple[str, ...], *, attributes: str = "") -> str:
    """Return a labelled list without a choice."""
    choices = "".join(f"<option>{escape(each)}</option>" for each in options)
    return (
        f'<div class="field"><label for="{name}">{escape(label)}</label>'
        f'<select id="{name}" name="{name}" {attributes}><option value="">Please choose</option>{choices}</select></div>'
    )


def checkbox(name: str, label: str) -> str:
    return f'<div class="choice"><input id="{name}" name="{name}" type="checkbox" value="yes"><label for="{name}">{escape(label)}</label></div>'


def radio(name: str, label: str, options: tuple[str, ...]) -> str:
    choices = "".join(
        f'<div class="choice"><input id="{name}-{place}" name="{name}" type="radio" value="{escape(each)}">'
        f'<label for="{name}-{place}">{escape(each)}</label></div>'
        for place, each in enumerate(options, 1)
    )
    return f'<fieldset role="radiogroup" aria-labelledby="{name}-legend"><legend id="{name}-legend">{escape(label)}</legend>{choices}</fieldset>'


def _menu_link(path: str, name: str, here: str) -> str:
    return f'<a href="{path}"{" aria-current=page" if path == here else ""}>{name}</a>'


def _sign_out() -> str:
    return f'<form method="post" action="/logout">{request_id_field()}<button>Sign out</button></form>'
