"""Checkout in the shop over real HTTP: carts, payments, receipts and ledger."""

from __future__ import annotations

import hashlib
import http.client
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.shop_process import Moment, Shop
from tests.unit.test_shop import Page, Visitor


@pytest.fixture(scope="module")
def buyer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Visitor]:
    """A visitor signed in at one shop; each test uses separate order references."""
    with Shop.start(tmp_path_factory.mktemp("checkout"), orders=0) as shop:
        visitor = Visitor(shop)
        visitor.sign_in()
        yield visitor


def _add(buyer: Visitor, reference: str, article: str = "TEA-1") -> Page:
    return buyer.get(f"/cart/{reference}/add", {"article": article, "request_id": f"add-{reference}"})


def _pay(buyer: Visitor, reference: str) -> Page:
    form = {"name": "Ada <3", "note": "At the\r\ndoor", "request_id": f"pay-{reference}"}
    return buyer.get(f"/cart/{reference}/pay", form)


def _status(buyer: Visitor, reference: str) -> tuple[str, str]:
    page = buyer.get(f"/checkouts/{reference}")
    return page.test_id("status"), page.test_id("pieces")


class TestCart:
    def test_twice_is_two_pieces(self, buyer: Visitor) -> None:
        """Adding leads back to the articles; an article added twice has quantity two, two ledger rows and twice the price."""
        assert _add(buyer, "A-1").url == f"{buyer.shop.url}/articles?for=A-1"
        _add(buyer, "A-1", "SOAP-4")
        page = _add(buyer, "A-1")
        cart = buyer.get("/cart/A-1")
        assert (page.test_id("in-cart"), cart.test_id("total")) == ("3", "22.20")
        assert '<td class="quantity">2</td><td class="total">18.60</td>' in cart.text
        assert [(row["request_id"], row["detail"]) for row in buyer.shop.ledger("cart", "A-1")] == [
            ("add-A-1", {"article": article, "quantity": 1}) for article in ("TEA-1", "SOAP-4", "TEA-1")
        ]

    def test_carts_are_apart(self, buyer: Visitor) -> None:
        """An article in the cart of one reference is in no other cart."""
        _add(buyer, "B-1")
        assert "Nothing is in this cart." in buyer.get("/cart/B-2").text
        assert [_status(buyer, each) for each in ("B-1", "B-2")] == [("in cart", "1"), ("open", "0")]

    def test_reference_is_asked_for(self, buyer: Visitor) -> None:
        """Without a reference the articles page asks for one; an invalid one is refused."""
        assert "Order reference" in buyer.get("/articles").text
        assert buyer.get("/articles?for=A/1").status == 400
        assert buyer.get("/articles?for=").status == 400

    @pytest.mark.parametrize("path", ["/articles?for=A-1", "/cart/A-1", "/checkouts/A-1", "/receipts/A-1-1"])
    def test_sign_in_is_asked_for(self, buyer: Visitor, path: str) -> None:
        """Every page leads a visitor without a session to the sign-in form."""
        assert Visitor(buyer.shop).get(path).url.endswith("/login")


class TestPayment:
    def test_receipt(self, buyer: Visitor) -> None:
        """Paying leads to a receipt with the total and the form's texts; the ledger has the same."""
        _add(buyer, "C-1", "OIL-2")
        page = _pay(buyer, "C-1")
        assert page.url == f"{buyer.shop.url}/receipts/C-1-1"
        shown = {name: page.test_id(name) for name in ("receipt", "reference", "total", "name", "note")}
        assert shown == {
            "receipt": "C-1-1", "reference": "C-1", "total": "13.80", "name": "Ada <3", "note": "At the\ndoor",
        }  # fmt: skip
        row = buyer.shop.ledger("checkout", "C-1")[0]
        lines = [{"article": "OIL-2", "quantity": 1, "price": "13.80"}]
        assert row["detail"] == {"total": "13.80", "lines": lines, "name": "Ada <3", "note": "At the\ndoor"}
        assert row["request_id"] == "pay-C-1"

    def test_download(self, buyer: Visitor) -> None:
        """The downloaded receipt has the hash that its page states, and the download is in the ledger."""
        _add(buyer, "D-1")
        page = _pay(buyer, "D-1")
        text = buyer.get("/receipts/D-1-1.txt").text
        assert hashlib.sha256(text.encode()).hexdigest() == page.test_id("sha256")
        assert ("Receipt D-1-1\n" in text, "   1 x TEA-1         9.30\n" in text) == (True, True)
        assert [row["detail"] for row in buyer.shop.ledger("receipt", "D-1")] == [{"receipt": "D-1-1"}]

    def test_twice_is_charged_twice(self, buyer: Visitor) -> None:
        """A cart paid again is charged again, with a separate receipt."""
        _add(buyer, "E-1")
        urls = [_pay(buyer, "E-1").url.removeprefix(buyer.shop.url) for _ in range(2)]
        assert urls == ["/receipts/E-1-1", "/receipts/E-1-2"]
        assert [row["detail"]["total"] for row in buyer.shop.ledger("checkout", "E-1")] == ["9.30", "9.30"]
        assert buyer.get("/checkouts/E-1").test_id("receipt") == "E-1-2"

    def test_status_follows(self, buyer: Visitor) -> None:
        """A reference is open, then in the cart, then paid."""
        seen = [_status(buyer, "F-1")]
        _add(buyer, "F-1")
        seen.append(_status(buyer, "F-1"))
        _pay(buyer, "F-1")
        assert [*seen, _status(buyer, "F-1")] == [("open", "0"), ("in cart", "1"), ("paid", "1")]

    def test_refusals(self, buyer: Visitor) -> None:
        """Invalid requests are refused and leave no ledger row."""
        assert _add(buyer, "G-1", "TEA-9").status == 400
        assert _pay(buyer, "G-1").status == 409
        _add(buyer, "G-2")
        assert buyer.get("/cart/G-2/pay", {"name": " "}).status == 400
        assert [buyer.get(f"/receipts/{each}").status for each in ("G-2-1", "G-2-0", "G-2-1.txt")] == [404, 404, 404]
        assert [row["kind"] for each in ("G-1", "G-2") for row in buyer.shop.ledger(subject=each)] == ["cart"]


class TestSwitches:
    @pytest.mark.parametrize(("path", "kind"), [("/cart/{}/add", "cart"), ("/cart/{}/pay", "checkout")])
    @pytest.mark.parametrize(("moment", "rows"), [("before", 0), ("after", 1)])
    def test_hold(self, buyer: Visitor, path: str, kind: str, moment: Moment, rows: int) -> None:
        """Adding and paying can be held before or after they are carried out."""
        reference, send = (f"H-{moment}-{kind}", _add if kind == "cart" else _pay)
        if kind == "checkout":
            _add(buyer, reference)
        buyer.shop.switch("hold", path.format(reference), method="POST", moment=moment)
        with ThreadPoolExecutor() as pool:
            answer = pool.submit(send, buyer, reference)
            buyer.shop.wait("held", path=path.format(reference))
            assert len(buyer.shop.ledger(kind, reference)) == rows
            buyer.shop.release()
            assert answer.result(20).status == 200
        assert len(buyer.shop.ledger(kind, reference)) == 1

    def test_drop_and_break(self, buyer: Visitor) -> None:
        """A payment whose answer is lost took place; one answered with an error did not."""
        _add(buyer, "I-1")
        buyer.shop.switch("break", "/cart/I-1/pay")
        buyer.shop.switch("drop", "/cart/I-1/pay", skip=1)
        assert (_pay(buyer, "I-1").status, len(buyer.shop.ledger("checkout", "I-1"))) == (500, 0)
        with pytest.raises(http.client.BadStatusLine):
            _pay(buyer, "I-1")
        assert len(buyer.shop.ledger("checkout", "I-1")) == 1

    def test_killed_shop_continues(self, tmp_path: Path) -> None:
        """After a kill and restart, carts and payments are unchanged."""
        with Shop.start(tmp_path, orders=0) as shop:
            buyer = Visitor(shop)
            buyer.sign_in()
            _add(buyer, "J-1")
            _add(buyer, "J-2")
            _pay(buyer, "J-2")
            shop.kill()
            shop.restart()
            assert [_status(buyer, each)[0] for each in ("J-1", "J-2")] == ["in cart", "paid"]
            assert buyer.get("/receipts/J-2-1").test_id("total") == "9.30"
