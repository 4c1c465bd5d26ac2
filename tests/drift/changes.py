"""The changes of the site, each with its kind and the right fix."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable

from director.repair import failure_kinds
from tests.drift.changing import Change, Changing, Page, adding, replacing, waiting
from tests.shop_process import Shop

ORDER = "/orders/1003"


@dataclasses.dataclass(frozen=True)
class Case:
    """A change."""

    name: str
    flow: str
    kind: failure_kinds.Kind
    """The kind of failure, known from the change itself."""
    begin: Callable[[Changing, Shop], None]
    right: str | None = None
    """A part of each right fix; None where no fix is right."""
    repaired_under: Callable[[Changing, Shop], None] | None = None
    """The change after the run has failed, before it is repaired."""


def _change(change: Change) -> Callable[[Changing, Shop], None]:
    return lambda proxy, _shop: proxy.begin(change)


def _late(milliseconds: int) -> Change:
    """The content of the page appears late, by script."""
    script = f"<script>const late = document.querySelector('main'); const kept = late.innerHTML; late.innerHTML = '<p>Loading</p>'; setTimeout(() => {{ late.innerHTML = kept; }}, {milliseconds});</script></body>"
    return replacing({"</body>": script}, ORDER)


def _divided(page: Page) -> None:
    """The table becomes a list of cards."""
    html = re.sub(r"<tr data-order=", '<div role="listitem" data-order=', page.html)
    html = re.sub(r"(</td>)</tr>", r"\1</div>", html)
    html = html.replace('<table id="orders">', '<div id="orders" role="list">').replace("</tbody></table>", "</div>")
    html = re.sub(r"<caption.*?</thead>\s*<tbody>", "", html, flags=re.DOTALL)
    page.html = re.sub(r"<(/?)td\b", r"<\1div", html)


def _said(title: str, text: str, status: int, path: str = ORDER) -> Change:
    def change(page: Page) -> None:
        if page.path == path:
            page.status = status
            page.html = f"<!doctype html><title>{title}</title><h1>{title}</h1><p>{text}</p>"

    return change


def _signed_out(proxy: Changing, _shop: Shop) -> None:
    def change(page: Page) -> None:
        if page.path == ORDER:
            page.status, page.headers, page.html = 302, {"location": "/login"}, ""

    proxy.begin(change)


def _down(proxy: Changing, _shop: Shop) -> None:
    """The site goes down once the list was opened."""

    def before(_method: str, path: str) -> None:
        if path == ORDER:
            raise ConnectionError

    proxy.begin(None, before)


def _paid(orders: tuple[str, ...]) -> Callable[[Changing, Shop], None]:
    def begin(proxy: Changing, shop: Shop) -> None:
        proxy.begin(lambda page: _without(page, orders))

    return begin


def _without(page: Page, orders: tuple[str, ...]) -> None:
    for each in orders:
        page.html = re.sub(rf'<tr data-order="{each}">.*?</tr>\n?', "", page.html, flags=re.DOTALL)


def _nothing_open(page: Page) -> None:
    page.html = re.sub(
        r'<table id="orders">.*?</table>', "<p class=card>No orders here.</p>", page.html, flags=re.DOTALL
    )


BANNER = (
    '<div style="position: fixed; inset: 0; z-index: 9; background: #fffd" id=cookies><p>We use cookies.</p>'
    '<button onclick="cookies.remove()">Accept all</button><button onclick="cookies.remove()">Reject all</button></div>'
)
MODAL = (
    '<dialog id=news aria-label="News"><p>We have a new look.</p><button onclick="news.close()">Close</button></dialog>'
    "<script>document.getElementById('news').showModal()</script>"
)
SIGN_IN_LINK = '<a href="#" onclick="this.closest(\'form\').submit()">Sign in</a>'

CASES = [
    Case(
        "renamed, a word stays", "note", "drift", _change(replacing({">Add note<": ">Save note<"})), "name: Save note"
    ),
    Case(
        "renamed to another word",
        "row",
        "drift",
        _change(replacing({"<button>Pay<": "<button>Settle<"})),
        "name: Settle",
    ),
    Case(
        "renamed by a synonym",
        "order",
        "drift",
        _change(replacing({"<button>Sign in<": "<button>Log in<"})),
        "name: Log in",
    ),
    Case(
        "renamed, with a decoy that is called alike",
        "order",
        "drift",
        _change(replacing({"<button>Sign in<": "<button type=button>Sign up</button><button>Enter<"})),
        "name: Enter",
    ),
    Case(
        "renamed, and another one has the old name",
        "order",
        "drift",
        _change(replacing({"<button>Pay<": "<button>Settle<", "<h2>Notes": "<button>Pay</button><h2>Notes"}, ORDER)),
    ),
    Case(
        "re-labelled",
        "order",
        "drift",
        _change(replacing({">Username<": ">User or e-mail<"})),
        "label: User or e-mail",
    ),
    Case("renamed, and two share a word with it", "filter", "drift", lambda proxy, _shop: proxy.begin(None)),
    Case(
        "renamed, and one in its place shares a word",
        "bar",
        "drift",
        lambda proxy, _shop: proxy.begin(None),
        "name: Open,",
    ),
    Case(
        "a secret, and a field that shows what is typed is called alike",
        "password",
        "drift",
        lambda proxy, _shop: proxy.begin(None),
        "label: Password",
    ),
    Case("a header, renamed to another word", "table", "drift", lambda proxy, _shop: proxy.begin(None)),
    Case("a header, a word stays", "totals", "drift", lambda proxy, _shop: proxy.begin(None), "header: Total,"),
    Case("another id", "list", "drift", _change(replacing({'id="orders"': 'id="order-list"'})), "#order-list tbody tr"),
    Case(
        "another test id",
        "status",
        "drift",
        _change(replacing({"data-testid=status": "data-testid=order-status"})),
        "order-status",
    ),
    Case(
        "moved out of its card",
        "card",
        "drift",
        _change(replacing({'<section class="card"': '<section class="panel"'}, ORDER)),
        "name: Pay",
    ),
    Case("in other markup", "row", "drift", _change(_divided), "role: listitem"),
    Case(
        "a link in the place of the button",
        "order",
        "drift",
        _change(replacing({"<button>Sign in</button>": SIGN_IN_LINK})),
        "role: link, name: Sign in",
    ),
    Case(
        "there are two of it",
        "order",
        "drift",
        _change(replacing({"<h2>Notes": "<aside aria-label=Offers><button>Pay</button></aside><h2>Notes"}, ORDER)),
        "Pay",
    ),
    Case("renamed, and nothing says to what", "note", "drift", _change(replacing({">Add note<": ">Go on<"}))),
    Case(
        "what verify waits for is said otherwise", "order", "drift", _change(replacing({">paid<": ">settled<"}, ORDER))
    ),
    Case("a banner over it", "order", "overlay", _change(adding(BANNER, ORDER)), "Reject all"),
    Case("a dialog over it", "order", "overlay", _change(adding(MODAL, ORDER)), "name: Close"),
    Case("shown late", "order", "slow page", _change(_late(3000)), "timeout: "),
    Case(
        "answered late", "status", "slow page", lambda proxy, _shop: proxy.begin(None, waiting(ORDER, 4.5)), "timeout: "
    ),
    Case("led to the sign-in page", "order", "signed out", _signed_out),
    Case("session expired", "order", "drift", _change(_said("Corner Shop", "Your session has expired.", 200))),
    Case("the row is gone", "row", "data changed", _paid(("1003",))),
    Case("the list is empty", "list", "drift", _change(_nothing_open)),
    Case("the order is gone", "order", "data changed", _change(_said("Not found", "There is no page.", 404))),
    Case("error 500", "order", "site error", _change(_said("Something broke", "This is a mistake in the shop.", 500))),
    Case("maintenance", "order", "site error", _change(_said("Closed", "We are under maintenance.", 503))),
    Case("no answer", "order", "site error", _down),
    Case("a finding", "status", "finding", _change(replacing({">unpaid<": ">in doubt<"}))),
]
"""All of them."""
