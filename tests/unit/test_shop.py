"""The shop over real HTTP: its pages, its ledger, and the faults that its switches cause."""

from __future__ import annotations

import dataclasses
import http.client
import inspect
import json
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from html import unescape
from http.cookiejar import CookieJar
from pathlib import Path
from typing import get_args
from urllib.parse import urlencode

import pytest
import typer
from typer.testing import CliRunner

from tests.shop_process import ROOT, Moment, Shop
from workflows.shop.command import demo_site
from workflows.shop.form import FIELDS
from workflows.shop.layout import MENU
from workflows.shop.mirror import PLACES
from workflows.shop.seed import seed_orders
from workflows.shop.switches import Kind, Switch, read_switch

PASSWORD = "correct-horse"


@dataclass
class Page:
    """A page as a browser shows it."""

    status: int
    url: str
    text: str

    def rows(self) -> dict[str, str]:
        """The status of each order in the table."""
        return dict(re.findall(r'<td class="no"><a[^>]*>(\d+)</a>.*?<td class="status"><span[^>]*>(\w+)<', self.text))

    def test_id(self, name: str) -> str:
        """The text of the element with that test id."""
        found = re.search(rf'data-testid="?{name}"?[^>]*>([^<]*)<', self.text)
        assert found, f"{name} is not on {self.url}"
        return unescape(found[1])


@dataclass
class Visitor:
    """An HTTP client that stores cookies and follows redirects."""

    shop: Shop
    cookies: CookieJar = field(default_factory=CookieJar)

    def get(self, path: str, fields: dict[str, str] | None = None, **headers: str) -> Page:
        """Opens a page, or sends a form if there are fields."""
        data = None if fields is None else urlencode(fields).encode()
        request = urllib.request.Request(self.shop.url + path, data, headers)
        try:
            with urllib.request.build_opener(urllib.request.HTTPCookieProcessor(self.cookies)).open(
                request, timeout=20
            ) as answer:
                return Page(answer.status, answer.url, answer.read().decode())
        except urllib.error.HTTPError as error:
            with error:
                return Page(error.code, error.url or "", error.read().decode())

    def sign_in(self, password: str = PASSWORD) -> Page:
        """Sends the sign-in form."""
        return self.get("/login", {"username": "admin", "password": password})

    def pay(self, number: str, back: str = "/orders") -> Page:
        """Presses the Pay button of an order."""
        return self.get(f"/orders/{number}/pay", {"back": back, "request_id": f"request-{number}"})


@pytest.fixture(scope="module")
def quiet_shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    """A shop for tests that do not disturb each other."""
    with Shop.start(tmp_path_factory.mktemp("shop")) as shop:
        yield shop


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    """A separate shop with three open orders."""
    with Shop.start(tmp_path, orders=3, paid=0) as shop:
        yield shop


@pytest.fixture
def visitor(shop: Shop) -> Visitor:
    """A visitor who is signed in at `shop`."""
    visitor = Visitor(shop)
    visitor.sign_in()
    return visitor


@pytest.fixture
def later() -> Iterator[Callable[[Callable[[], Page]], Future[Page]]]:
    """Sends a request in the background."""
    with ThreadPoolExecutor() as pool:
        yield pool.submit


class TestSigningIn:
    def test_leads_to_the_orders(self, quiet_shop: Shop) -> None:
        """The right password leads to /orders and is recorded, without the password."""
        assert Visitor(quiet_shop).sign_in().url == f"{quiet_shop.url}/orders"
        assert quiet_shop.ledger("sign_in")[-1]["subject"] == "admin"
        assert PASSWORD not in str(quiet_shop.ledger())

    def test_wrong_password(self, quiet_shop: Shop) -> None:
        """A wrong password shows the form again and opens nothing."""
        visitor = Visitor(quiet_shop)
        page = visitor.sign_in("wrong")
        assert (page.status, "Wrong username or password" in page.text) == (401, True)
        assert visitor.get("/orders").url.endswith("/login")

    @pytest.mark.parametrize("path", ["/", "/orders", "/orders/1001", "/mirror", "/mirror/message"])
    def test_is_asked_for(self, quiet_shop: Shop, path: str) -> None:
        """Without a session every page leads to the sign-in form."""
        assert Visitor(quiet_shop).get(path).url == f"{quiet_shop.url}/login"

    def test_script_gets_a_status(self, quiet_shop: Shop) -> None:
        """A script without a session gets a status, not a page."""
        page = Visitor(quiet_shop).get("/orders/1001/pay", {}, Accept="application/json")
        assert (page.status, page.text) == (401, '{"error": "Nobody is signed in."}')

    def test_sign_out(self, visitor: Visitor) -> None:
        """Signing out ends the session on the server, not only the cookie."""
        stolen = "; ".join(f"{cookie.name}={cookie.value}" for cookie in visitor.cookies)
        visitor.get("/logout", {})
        assert Visitor(visitor.shop).get("/orders", Cookie=stolen).url.endswith("/login")
        assert [row["kind"] for row in visitor.shop.ledger()] == ["sign_in", "sign_out"]


class TestSeed:
    def test_same_every_time(self) -> None:
        """Two shops of one size open with the same orders."""
        assert seed_orders(30) == seed_orders(30)

    @pytest.mark.parametrize(("count", "paid"), [(0, 0), (1, 1), (3, 0), (12, None), (12, 5), (12, 12), (12, 99)])
    def test_counts(self, count: int, paid: int | None) -> None:
        """The shop has the requested number of orders, and the requested number of paid ones, a quarter by default."""
        orders = seed_orders(count, paid)
        assert len({order.number for order in orders}) == count
        assert sum(order.paid for order in orders) == min(count, count // 4 if paid is None else paid)

    def test_only_its_number_names_an_order(self) -> None:
        """No other text in a row contains an order number, so a row can be found by it."""
        orders = seed_orders(500)
        numbers = {order.number for order in orders}
        for order in orders:
            others = f"{order.customer} {order.ordered} {order.cents / 100:.2f}"
            assert not numbers & set(re.findall(r"\w+", others))


class TestList:
    def test_pages(self, quiet_shop: Shop) -> None:
        """The pager leads through all orders, each on one page; a page number that is too high gives the last page."""
        visitor = Visitor(quiet_shop)
        first, second = visitor.sign_in(), visitor.get("/orders?page=2")
        assert (len(first.rows()), len(second.rows())) == (10, 2)
        assert list(first.rows() | second.rows()) == ["100", *(str(number) for number in range(1001, 1012))]
        assert ('href="/orders?page=2" rel="next">Next<' in first.text, "Next" in second.text) == (True, False)
        assert visitor.get("/orders?page=99").rows() == second.rows()

    @pytest.mark.parametrize(("status", "shown"), [("open", {"unpaid"}), ("paid", {"paid"}), ("", {"paid", "unpaid"})])
    def test_filter(self, quiet_shop: Shop, status: str, shown: set[str]) -> None:
        """A filter shows the orders of its status and no others."""
        visitor = Visitor(quiet_shop)
        visitor.sign_in()
        assert set(visitor.get(f"/orders?status={status}").rows().values()) == shown

    def test_only_open_orders_have_a_button(self, quiet_shop: Shop) -> None:
        """Every open order has a Pay button, and no paid one has."""
        page = Visitor(quiet_shop).sign_in()
        assert page.text.count("<button>Pay</button>") == list(page.rows().values()).count("unpaid")

    def test_empty(self, tmp_path: Path) -> None:
        """A list without orders has no table row."""
        with Shop.start(tmp_path, orders=0) as shop:
            page = Visitor(shop).sign_in()
        assert ("<tr" in page.text, "No orders here." in page.text) == (False, True)


class TestPaying:
    @pytest.mark.parametrize("back", ["/orders", "/orders?page=1", "/orders/1001"])
    def test_goes_back(self, visitor: Visitor, back: str) -> None:
        """Paying records it and leads back to where the button was, with the new status."""
        page = visitor.pay("1001", back)
        assert page.url == visitor.shop.url + back
        assert page.rows() == {"100": "unpaid", "1001": "paid", "1002": "unpaid"} or page.test_id("status") == "paid"
        row = visitor.shop.ledger("payment")[0]
        assert (row["subject"], row["request_id"], row["detail"]) == ("1001", "request-1001", {"total": "180.19"})

    def test_keeps_the_row_in_the_open_list(self, visitor: Visitor) -> None:
        """The list of open orders shows the order just paid once, as paid, and then no more."""
        page = visitor.pay("1001", "/orders?status=open")
        assert page.rows() == {"100": "unpaid", "1001": "paid", "1002": "unpaid"}
        assert visitor.get("/orders?status=open").rows() == {"100": "unpaid", "1002": "unpaid"}

    def test_twice_is_two_payments(self, visitor: Visitor) -> None:
        """The same form sent twice is two payments with one request id."""
        visitor.pay("1001")
        visitor.pay("1001")
        assert [row["request_id"] for row in visitor.shop.ledger("payment", "1001")] == ["request-1001"] * 2
        assert {order["number"]: order["payments"] for order in visitor.shop.orders()} == {
            "100": 0,
            "1001": 2,
            "1002": 0,
        }

    def test_by_script(self, visitor: Visitor) -> None:
        """A script gets JSON, and no redirect."""
        page = visitor.get("/orders/1001/pay", {}, Accept="application/json")
        assert (page.url, page.text) == (f"{visitor.shop.url}/orders/1001/pay", '{"number": "1001", "status": "paid"}')

    @pytest.mark.parametrize("back", ["http://evil.test/orders", "//evil.test/orders", "/orders/100", "/logout", ""])
    def test_goes_nowhere_else(self, visitor: Visitor, back: str) -> None:
        """A return address other than the list or the order's page is ignored."""
        assert visitor.pay("1001", back).url == f"{visitor.shop.url}/orders/1001"

    def test_forms_have_separate_ids(self, visitor: Visitor) -> None:
        """No two forms share a request id, not even the same form shown twice."""
        text = visitor.get("/orders").text + visitor.get("/orders").text
        found = re.findall(r'name="request_id" value="(\w+)"', text)
        assert (len(found), len(set(found))) == (8, 8)

    def test_unknown_order(self, visitor: Visitor) -> None:
        """An order that does not exist cannot be paid or opened."""
        assert (visitor.pay("7").status, visitor.get("/orders/7").status) == (404, 404)
        assert visitor.shop.ledger("payment") == []


class TestForms:
    def test_note(self, visitor: Visitor) -> None:
        """A note appears on its order as text, not as HTML, with normalised line ends."""
        page = visitor.get("/orders/1001/notes", {"text": "Ring <b>twice</b>\r\nthen wait"})
        assert "<li>Ring &lt;b&gt;twice&lt;/b&gt;\nthen wait</li>" in page.text
        assert visitor.shop.ledger("note", "1001")[0]["detail"] == {"text": "Ring <b>twice</b>\nthen wait"}

    def test_form_has_fifty_fields(self) -> None:
        """The long form has 20 texts, 10 lists, 10 boxes, 5 radio groups, 4 texts to read and a button."""
        kinds = [field.kind for field in FIELDS]
        counts = {"text": 20, "select": 10, "checkbox": 10, "radio": 5, "read": 4, "submit": 1}
        assert {kind: kinds.count(kind) for kind in counts} == counts

    def test_labels_find_one_field(self) -> None:
        """No label of the long form is contained in another, whatever the case."""
        labels = [
            label.lower() for each in FIELDS for label in (each.label, *(each.options if each.kind == "radio" else ()))
        ]
        assert [(one, other) for one in labels for other in labels if one in other] == [(each, each) for each in labels]

    def test_form_keeps_its_values(self, shop: Shop) -> None:
        """The record has exactly the submitted values, on its page and in the ledger."""
        entered = {each.name: f" {each.label} & <é> " for each in FIELDS if each.kind == "text"}
        page = Visitor(shop).get("/form", {**entered, "country": "Italy", "samples": "yes", "shipping": "Express"})
        row = shop.ledger("form")[0]
        assert page.url == f"{shop.url}/form/record/{row['id']}"
        assert row["detail"].items() >= {**entered, "country": "Italy", "samples": True, "shipping": "Express"}.items()
        assert [row["detail"][name] for name in ("currency", "partial", "cooling")] == ["", False, None]
        assert (page.test_id("street"), page.test_id("samples"), page.test_id("partial")) == (
            " Street & <é> ",
            "yes",
            "no",
        )
        assert len(row["detail"]) == 45

    def test_form_describes_itself(self, quiet_shop: Shop) -> None:
        """The JSON description names every label and option on the page."""
        page = Visitor(quiet_shop).get("/form").text
        described = quiet_shop.api("GET", "/_form")
        assert len(described) == 50
        for each in described:
            assert each["label"] in page
            assert all(option in page for option in each["options"])

    def test_registration(self, shop: Shop) -> None:
        """Two steps make one registration with the data of both, and its status page confirms it."""
        visitor = Visitor(shop)
        second = visitor.get("/register", {"name": "Ada", "email": "ada@shop.test", "country": "Italy"})
        draft = second.url.removeprefix(f"{shop.url}/register/wishes?draft=")
        assert (second.test_id("draft"), shop.ledger("registration")) == (draft, [])
        assert visitor.get(f"/register/status?draft={draft}").test_id("registered") == "no"
        done = visitor.get("/register/wishes", {"draft": draft, "newsletter": "yes", "comment": "a\r\nb"})
        row = shop.ledger("registration", "ada@shop.test")[0]
        assert row["detail"] == {
            "name": "Ada", "email": "ada@shop.test", "country": "Italy", "newsletter": True, "comment": "a\nb",
            "draft": int(draft),
        }  # fmt: skip
        status = visitor.get(f"/register/status?draft={draft}")
        assert (status.test_id("registered"), status.test_id("registration")) == ("yes", done.test_id("registration"))

    @pytest.mark.parametrize("draft", ["", "7", "x", "9" * 40])
    def test_registration_without_a_draft(self, shop: Shop, draft: str) -> None:
        """The second step without the first is refused."""
        assert Visitor(shop).get("/register/wishes", {"draft": draft}).status == 404


class TestDesk:
    def test_menu_leads_to_pages(self, quiet_shop: Shop) -> None:
        """Each menu entry opens a page on which it is marked as current."""
        visitor = Visitor(quiet_shop)
        visitor.sign_in()
        for path, name in MENU.items():
            page = visitor.get(path)
            assert (page.status, f'<a href="{path}" aria-current=page>{name}</a>' in page.text) == (200, True), path

    def test_changed_price(self, shop: Shop) -> None:
        """A changed price is on the list at once, the ledger has both prices, and an unknown article is refused."""
        assert shop.set_price("TEA-1", "9.90")["TEA-1"] == "9.90"
        assert '<td class="total">9.90</td>' in Visitor(shop).get("/prices").text
        assert shop.ledger("price", "TEA-1")[0]["detail"] == {"from": "9.30", "to": "9.90"}
        with pytest.raises(RuntimeError, match="`article` is one of BREAD-1"):
            shop.set_price("TEA-9", "9.90")

    def test_messages(self, visitor: Visitor) -> None:
        """An assigned message leaves the inbox, its page shows the last queue, and the ledger has both assignments."""
        assert re.findall(r'class="no"><a href="/messages/(\d+)"', visitor.get("/messages").text) == ["1001"]
        assert visitor.get("/messages/1001").test_id("given-to") == "nobody"
        given = {"queue": "Refunds", "note": " Two <jars>\n"}
        assert visitor.get("/messages/1001", {**given, "urgent": "yes"}).test_id("note") == "Two <jars>"
        assert visitor.get("/messages/1001", given | {"queue": "General"}).test_id("given-to") == "General"
        assert [row["detail"] for row in visitor.shop.ledger("assignment", "1001")] == [
            {"queue": "Refunds", "urgent": True, "note": "Two <jars>"},
            {"queue": "General", "urgent": False, "note": "Two <jars>"},
        ]
        assert "Every message was given to somebody." in visitor.get("/messages").text

    def test_refusals(self, visitor: Visitor) -> None:
        """Requests that make no sense are refused and leave no ledger row."""
        for path, fields, status in (
            ("/orders/1001/refund", {"amount": "1.00", "reason": "Late"}, 409),
            ("/triage/1001", {"decision": "escalate", "note": " "}, 400),
            ("/triage/1001", {"decision": "forget"}, 400),
            ("/messages/1001", {"queue": "Nobody"}, 400),
            ("/messages/1002", {"queue": "General"}, 404),
            ("/orders/1001/documents", {}, 400),
            ("/delivery", {"recipient": "Ada"}, 400),
            ("/delivery/terms", {"draft": "7", "account": "1"}, 404),
            ("/dock/A1/release", {}, 409),
            ("/dock/B1/reserve", {}, 404),
        ):
            assert visitor.get(path, fields).status == status, path
        assert {row["kind"] for row in visitor.shop.ledger()} == {"sign_in"}


class TestMirror:
    @pytest.mark.parametrize("place", [place for place in PLACES if place not in ("encoded", "error")])
    def test_shows_the_typed_password(self, quiet_shop: Shop, place: str) -> None:
        """The typed password comes back in each place."""
        visitor = Visitor(quiet_shop)
        visitor.sign_in()
        page = visitor.get(f"/mirror/{place}")
        assert PASSWORD in page.text + page.url

    def test_error(self, quiet_shop: Shop) -> None:
        """The error page is an HTTP 500 with the text."""
        visitor = Visitor(quiet_shop)
        visitor.sign_in()
        page = visitor.get("/mirror/error")
        assert (page.status, PASSWORD in page.text) == (500, True)

    def test_given_text(self, visitor: Visitor) -> None:
        """A given text replaces the password, escaped in the page and encoded in every usual way."""
        visitor.shop.mirror('a "b"/</script>ü')
        page = visitor.get("/mirror/encoded")
        assert page.test_id("base64") == "YSAiYiIvPC9zY3JpcHQ+w7w="
        assert page.test_id("percent") == "a%20%22b%22%2F%3C%2Fscript%3E%C3%BC"
        assert page.test_id("json") == '"a \\"b\\"/</script>\\u00fc"'
        assert "</script>ü" not in visitor.get("/mirror/all").text
        visitor.shop.mirror()
        assert PASSWORD in visitor.get("/mirror/message").text

    def test_form(self, visitor: Visitor) -> None:
        """The form on /mirror submits a text and leads to the page that shows it."""
        page = visitor.get("/mirror", {"text": "hello there", "place": "url"})
        assert page.url == f"{visitor.shop.url}/mirror/url?q=hello+there"


class TestSwitches:
    def test_break(self, visitor: Visitor) -> None:
        """A broken request is answered with HTTP 500 and not carried out; the next one works."""
        visitor.shop.switch("break", "/orders/1001/pay")
        assert (visitor.pay("1001").status, visitor.shop.ledger("payment")) == (500, [])
        assert visitor.pay("1001").status == 200

    def test_drop(self, visitor: Visitor) -> None:
        """A dropped answer is lost after the payment was carried out."""
        visitor.shop.switch("drop", "/orders/1001/pay")
        with pytest.raises(http.client.BadStatusLine):
            visitor.pay("1001")
        assert len(visitor.shop.ledger("payment")) == 1

    @pytest.mark.parametrize(("moment", "paid"), [("before", 0), ("after", 1)])
    def test_hold(self, visitor: Visitor, later: Callable[..., Future[Page]], moment: Moment, paid: int) -> None:
        """A held request is carried out before or after the hold, as its moment says, and answered when released."""
        visitor.shop.switch("hold", "/orders/1001/pay", method="POST", moment=moment)
        answer = later(visitor.pay, "1001")
        held = visitor.shop.wait("held", path="/orders/1001/pay")
        assert [(each["method"], each["path"], each["moment"]) for each in held] == [
            ("POST", "/orders/1001/pay", moment)
        ]
        assert (len(visitor.shop.ledger("payment")), answer.done()) == (paid, False)
        assert visitor.shop.release() == 1
        assert answer.result(10).status == 200
        assert (len(visitor.shop.ledger("payment")), visitor.shop.held()) == (1, [])

    def test_held_request_can_end_there(self, visitor: Visitor, later: Callable[..., Future[Page]]) -> None:
        """A held request released with `go_on=False` is never carried out and gets no answer."""
        visitor.shop.switch("hold", "/orders/1001/pay")
        answer = later(visitor.pay, "1001")
        visitor.shop.wait("held")
        visitor.shop.release(go_on=False)
        with pytest.raises(http.client.BadStatusLine):
            answer.result(10)
        assert visitor.shop.ledger("payment") == []

    def test_held_request_outlives_its_browser(self, visitor: Visitor) -> None:
        """A held request is carried out when released, even if its client has disconnected."""
        visitor.shop.switch("hold", "/orders/1001/pay")
        cookies = "; ".join(f"{cookie.name}={cookie.value}" for cookie in visitor.cookies)
        with socket.create_connection(("127.0.0.1", visitor.shop.port)) as browser:
            browser.sendall(f"POST /orders/1001/pay HTTP/1.1\r\nHost: x\r\nCookie: {cookies}\r\n\r\n".encode())
            visitor.shop.wait("held")
        assert visitor.shop.ledger("payment") == []
        visitor.shop.release()
        assert len(visitor.shop.wait("ledger", kind="payment")) == 1

    @pytest.mark.parametrize("moment", ["before", "after"])
    def test_delay(self, visitor: Visitor, later: Callable[..., Future[Page]], moment: Moment) -> None:
        """A delay takes its time before or after the payment, but before the answer."""
        visitor.shop.switch("delay", "/orders/1001/pay", ms=600, moment=moment)
        began = time.monotonic()
        answer = later(visitor.pay, "1001")
        visitor.shop.wait("ledger", kind="payment")
        assert not answer.done() if moment == "after" else time.monotonic() - began >= 0.6
        assert (answer.result(10).status, time.monotonic() - began >= 0.6) == (200, True)

    def test_logout_at_the_nth_request(self, visitor: Visitor) -> None:
        """All visitors are signed out once, just before the third request."""
        visitor.shop.switch("logout", skip=2)
        urls = [visitor.get("/orders").url.removeprefix(visitor.shop.url) for _ in range(3)]
        assert urls == ["/orders", "/orders", "/login"]
        assert visitor.sign_in().url.endswith("/orders")
        assert visitor.get("/orders").url.endswith("/orders")

    def test_counts(self, visitor: Visitor) -> None:
        """A switch affects the given number of requests with its method and path, and is then removed."""
        visitor.shop.switch("break", r"/orders/\d+", method="GET", times=2, skip=1)
        found = [
            visitor.get(path).status
            for path in ("/orders/100", "/orders", "/orders/100", "/orders/1001", "/orders/100")
        ]
        assert found == [200, 200, 500, 500, 200]
        assert visitor.shop.switches() == []

    def test_stays_until_cleared(self, visitor: Visitor) -> None:
        """A switch without a count stays until it is cleared."""
        visitor.shop.switch("break", "/orders", times=None)
        assert [visitor.get("/orders").status for _ in range(3)] == [500, 500, 500]
        visitor.shop.clear()
        assert visitor.get("/orders").status == 200

    @pytest.mark.parametrize(
        ("body", "complaint"),
        [
            ({"kind": "explode"}, "`kind` is one of delay, break, drop, hold, logout."),
            ({"kind": "hold", "path": "("}, "`path` is not a regular expression"),
            ({"kind": "hold", "pth": "/"}, "a switch has no `pth`"),
            ({"kind": "drop", "moment": "before"}, "`moment` of `drop` is always after"),
            ({"kind": "break", "moment": "after"}, "`moment` of `break` is always before"),
            ({"kind": "hold", "times": 0}, "`times` is a whole number from 1."),
            ({"kind": "delay", "ms": "5"}, "`ms` is a whole number from 0."),
            ({"kind": "hold", "moment": "during"}, "`moment` is before or after."),
            ({"kind": "hold", "path": None}, "`path` is a text."),
            ([], "The body is a JSON object."),
        ],
    )
    def test_refuses_nonsense(self, quiet_shop: Shop, body: object, complaint: str) -> None:
        """An invalid switch is refused with the reason."""
        with pytest.raises(RuntimeError, match=re.escape(complaint)):
            quiet_shop.api("POST", "/_switch", body)

    def test_wait_gives_up(self, quiet_shop: Shop) -> None:
        """A wait for an event that does not happen times out."""
        with pytest.raises(TimeoutError, match="0 of 1 held"):
            quiet_shop.wait("held", timeout=0)

    def test_lost_answer_is_not_empty(self, quiet_shop: Shop) -> None:
        """A lost answer is one byte and the end, because a browser repeats a request that got nothing at all."""
        quiet_shop.switch("drop", "/login")
        with socket.create_connection(("127.0.0.1", quiet_shop.port), timeout=10) as browser:
            browser.sendall(b"GET /login HTTP/1.1\r\nHost: x\r\n\r\n")
            assert browser.makefile("rb").read() == b"?"


class TestProcess:
    def test_killed_shop_continues(self, visitor: Visitor, later: Callable[..., Future[Page]]) -> None:
        """After a kill and restart the shop has its port, ledger, sessions and switches; a held request is not carried out."""
        shop = visitor.shop
        visitor.pay("100")
        url = shop.url
        shop.switch("hold", "/orders/1001/pay")
        shop.switch("break", "/form", times=5, skip=1)
        visitor.get("/form")
        answer = later(visitor.pay, "1001")
        shop.wait("held")
        before, switches = shop.ledger(), shop.switches()
        shop.kill()
        with pytest.raises((OSError, http.client.HTTPException)):
            answer.result(10)
        shop.restart()
        assert (shop.url, shop.ledger(), shop.switches(), shop.held()) == (url, before, switches, [])
        assert visitor.get("/orders").rows() == {"100": "paid", "1001": "unpaid", "1002": "unpaid"}

    @pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
    def test_signals_end_it(self, tmp_path: Path, number: int, code: int) -> None:
        """SIGTERM ends the shop with 0, Ctrl-C with 130, at once and silently, even while it holds a request."""
        process = _start("--port", "0", "--db", str(tmp_path / "shop.sqlite"), "--switch", '{"kind": "hold"}')
        assert process.stdout is not None
        line = process.stdout.readline()
        found = re.fullmatch(r"shop on http://127\.0\.0\.1:(\d+)  \(Ctrl-C ends it\)\n", line)
        assert found, line
        with socket.create_connection(("127.0.0.1", int(found[1]))) as browser:
            browser.sendall(b"GET /login HTTP/1.1\r\nHost: x\r\n\r\n")
            with urllib.request.urlopen(
                f"http://127.0.0.1:{found[1]}/_wait?event=held&timeout=10", timeout=20
            ) as answer:
                assert b'"happened": true' in answer.read()
            process.send_signal(number)
            out, err = process.communicate(timeout=10)
        assert (process.returncode, out, "Traceback" in err) == (code, "", False)

    def test_ends_with_its_input(self, tmp_path: Path) -> None:
        """With --until-eof the shop ends when its standard input is closed."""
        process = _start("--port", "0", "--db", str(tmp_path / "shop.sqlite"), "--until-eof")
        assert process.stdout is not None
        process.stdout.readline()
        process.communicate(timeout=10)
        assert process.returncode == 0

    def test_password_from_the_environment(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """SHOP_PASSWORD sets the password."""
        monkeypatch.setenv("SHOP_PASSWORD", "from-outside")
        process = _start("--port", "0", "--db", str(tmp_path / "shop.sqlite"))
        assert process.stdout is not None
        url = process.stdout.readline().split()[2]
        fields = urlencode({"username": "admin", "password": "from-outside"}).encode()
        with urllib.request.urlopen(f"{url}/login", fields, timeout=10) as answer:
            assert answer.status == 200
        process.terminate()
        process.communicate(timeout=10)

    def test_many_at_once(self, visitor: Visitor) -> None:
        """Simultaneous payments are all recorded, with separate ids."""
        threads = [threading.Thread(target=visitor.pay, args=("1001",)) for _ in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len({row["id"] for row in visitor.shop.ledger("payment")}) == 16


class TestCommand:
    @pytest.mark.parametrize("ways", ["module", "typer"])
    def test_port_in_use(self, quiet_shop: Shop, tmp_path: Path, ways: str) -> None:
        """A port in use ends the command with exit code 3 and one sentence with the fix."""
        arguments = ["--port", str(quiet_shop.port), "--db", str(tmp_path / "shop.sqlite")]
        if ways == "module":
            process = _start(*arguments)
            _, text = process.communicate(timeout=10)
            code = process.returncode
        else:
            code, text = _command(*arguments)
        assert code == 3
        assert text == (
            f"The shop cannot use port {quiet_shop.port} (Address already in use): "
            "end the program that uses it, or start with `--port 0` to get a free one.\n"
        )

    def test_no_database(self, tmp_path: Path) -> None:
        """A file that is no database ends the command with exit code 3 and one sentence, and stays unchanged."""
        (tmp_path / "diary.txt").write_text("Dear diary, " * 100)
        code, text = _command("--port", "0", "--db", str(tmp_path / "diary.txt"))
        assert (code, text.count("\n")) == (3, 1)
        assert "file is not a database" in text
        assert (tmp_path / "diary.txt").read_text() == "Dear diary, " * 100

    def test_the_help_has_all_of_a_switch(self) -> None:
        """Every kind and field is explained, and the example holds up a payment for three seconds."""
        text = inspect.getdoc(demo_site) or ""
        named = {line.split()[0] for line in text.splitlines() if line.startswith("  ")}
        fields = {each.name for each in dataclasses.fields(Switch)} - {"id", "kind", "ms"}
        assert {*get_args(Kind), *fields} <= named
        example = json.loads(text.partition("--switch '")[2].partition("'")[0])
        assert read_switch(example) == Switch("delay", "/orders/.*/pay", "POST", 1, 2, 3000)

    def test_bad_switch(self) -> None:
        """An invalid switch is a usage error."""
        code, text = _command("--switch", '{"kind": "explode"}')
        assert (code, "is one of delay, break" in text) == (2, True)


class TestHttp:
    def test_keeps_connections(self, quiet_shop: Shop) -> None:
        """One connection serves many requests."""
        browser = http.client.HTTPConnection("127.0.0.1", quiet_shop.port)
        browser.connect()
        first = browser.sock
        for _ in range(3):
            browser.request("GET", "/login")
            assert b"Username" in browser.getresponse().read()
        assert browser.sock is first
        browser.close()

    @pytest.mark.parametrize(
        ("request_text", "status"),
        [
            ("GET /nowhere HTTP/1.1", 404),
            ("DELETE /orders HTTP/1.1", 405),
            ("GET /_nowhere HTTP/1.1", 404),
            ("POST /login HTTP/1.1\r\nContent-Length: many", 411),
            ("POST /login HTTP/1.1\r\nTransfer-Encoding: chunked", 411),
            ("POST /login HTTP/1.1\r\nContent-Length: 99999999", 413),
            ("GET /_wait?event=held&path=( HTTP/1.1", 400),
            ("GET /_wait?event=held&count=x HTTP/1.1", 400),
            ("HEAD /login HTTP/1.1", 200),
        ],
    )
    def test_odd_requests(self, quiet_shop: Shop, request_text: str, status: int) -> None:
        """An invalid request gets its status, and the shop logs no traceback."""
        with socket.create_connection(("127.0.0.1", quiet_shop.port), timeout=10) as browser:
            browser.sendall(f"{request_text}\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
            answer = browser.makefile("rb").read().decode()
        head, _, body = answer.partition("\r\n\r\n")
        assert head.startswith(f"HTTP/1.1 {status} ")
        assert bool(body) is not request_text.startswith("HEAD")
        assert "Traceback" not in quiet_shop.log


def _start(*arguments: str) -> subprocess.Popen[str]:
    pipe = subprocess.PIPE
    command = [sys.executable, "-m", "workflows.shop", *arguments]
    return subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe, stderr=pipe, text=True)


def _command(*arguments: str) -> tuple[int, str]:
    app = typer.Typer()
    app.command()(demo_site)
    result = CliRunner().invoke(app, list(arguments))
    return result.exit_code, result.stderr
