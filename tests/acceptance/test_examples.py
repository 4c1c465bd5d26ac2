"""The examples do what they claim, several times in a row on one shop, judged by their output and the shop's ledger.

Nothing is reset in between. An example with nothing left to do reports that; one that creates something (a delivery, a
label, a file of the run) creates one more.
"""

from __future__ import annotations

import csv
import hashlib
import json
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests import breadth, one_browser
from tests.command import Project
from tests.shop_process import Shop

pytestmark = pytest.mark.drawn(share=0.08, of="examples")

ROOT = Path(__file__).parents[2]
SECONDS = 180.0
TIMES = breadth.of(2, 3)
"""Number of runs of each example in a row."""
PAGE_SIZE = 5
PAGES_OF_THE_LIST = 3


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    """A shop with twelve orders on three pages; each example works on different data in it."""
    with Shop.start(tmp_path_factory.mktemp("shop"), page_size=PAGE_SIZE) as shop:
        yield shop


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A project with the examples."""
    shutil.copytree(ROOT / "workflows", tmp_path / "workflows")
    return Project(tmp_path, SHOP_PASSWORD="correct-horse")


def run(project: Project, name: str, shop: Shop, **inputs: str) -> Any:
    """The output of an example."""
    (output,) = run_files(project, [f"workflows/{name}.yaml"], shop, **inputs)
    return output


def run_files(project: Project, files: Sequence[str], shop: Shop, *options: str, **inputs: str) -> list[Any]:
    """The outputs of these files, run by one command."""
    given = [f"--input={each}={value}" for each, value in {"base_url": shop.url, **inputs}.items()]
    ended = project.runops("run", *files, "--json", *options, *given, seconds=SECONDS)
    assert ended.returncode == 0, ended.stderr
    return [each["output"] for each in json.loads(ended.stdout)["runs"]]


def run_often(project: Project, name: str, shop: Shop, *options: str) -> list[Any]:
    """The outputs of an example that one command runs several times in a row, each run in its own browser context."""
    text = (project.folder / "workflows" / f"{name}.yaml").read_text()
    files = [f"workflows/{name}_{number}.yaml" for number in range(TIMES)]
    for number, file in enumerate(files):
        project.write(file, text)
        if (cassette := project.folder / "workflows" / "cassettes" / f"{name}.json").is_file():
            shutil.copy(cassette, cassette.with_name(f"{name}_{number}.json"))
    project.environment[one_browser.VARIABLE] = "yes"
    try:
        return run_files(project, files, shop, "--browser=shared", *options)
    finally:
        del project.environment[one_browser.VARIABLE]


def test_triage_orders(project: Project, shop: Shop) -> None:
    """Each order gets one decision: suspicious ones are escalated with a reason, large ones held, the rest approved. Later runs find none."""
    first, *later = run_often(project, "triage_orders", shop)
    assert first == {
        "approved": ["100", "1001", "1006"],
        "held": ["1002", "1004", "1005", "1008", "1009", "1010"],
        "escalated": ["1003", "1007", "1011"],
    }
    assert later == [{"approved": [], "held": [], "escalated": []}] * (TIMES - 1)
    decisions = {row["subject"]: row["detail"] for row in shop.ledger("decision")}
    assert len(shop.ledger("decision")) == len(decisions) == 12
    said = {"approve": "approved", "hold": "held", "escalate": "escalated"}
    assert all(number in first[said[detail["decision"]]] for number, detail in decisions.items())
    assert decisions["1003"]["note"] == "Ships to Portugal, the card is from Sweden."


def test_sort_messages(project: Project, shop: Shop) -> None:
    """Each message is assigned to one queue, as in the cassette. Later runs find none and need no model."""
    first, *later = run_often(project, "sort_messages", shop, "--model-calls=replay")
    assert (first["queues"], first["urgent"]) == (["Delivery", "General", "Invoices", "Refunds"], ["1001"])
    assert first["report"].startswith("Order 1001 must be found before Saturday")
    assert later == [{"queues": [], "urgent": [], "sorted": [], "report": "Nothing came in."}] * (TIMES - 1)
    given = [{"order": row["subject"], **row["detail"]} for row in shop.ledger("assignment")]
    assert [{name: each[name] for name in first["sorted"][0]} for each in given] == first["sorted"]


def test_buy_breakfast(project: Project, tmp_path: Path) -> None:
    """The agent buys once what the cassette's model read from the price list, and later runs need no model. A new shop on another port: prices count."""
    (tmp_path / "own").mkdir()
    with Shop.start(tmp_path / "own") as shop:
        first, *later = run_often(project, "buy_breakfast", shop, "--model-calls=replay")
        bought = {"reference": "breakfast-1", "bought_now": True, "receipt": "breakfast-1-1", "total": 13.5}
        assert first == bought
        assert later == [{**bought, "bought_now": False, "receipt": None, "total": None}] * (TIMES - 1)
        assert [row["detail"]["article"] for row in shop.ledger("cart")] == ["HONEY-3", "JAM-1"]
        (paid,) = shop.ledger("checkout")
    assert (paid["subject"], paid["detail"]["name"], paid["detail"]["total"]) == (
        "breakfast-1",
        "Ada Lovelace",
        "13.50",
    )


def test_refund_order(project: Project, shop: Shop) -> None:
    """An order is refunded once, however often the example runs, also where the shop's response after the dialog is lost."""
    outputs = run_often(project, "refund_order", shop)
    assert [each["given_back_now"] for each in outputs] == [True, *[False] * (TIMES - 1)]
    assert outputs[0]["amount"] == 338.57
    assert [row["detail"] for row in shop.ledger("refund", "1003")] == [{"amount": "338.57", "reason": "Damaged"}]

    shop.switch("drop", "/orders/1007/refund", method="POST")
    assert run(project, "refund_order", shop, order="1007")["given_back_now"] is True
    assert len(shop.ledger("refund", "1007")) == 1


def test_refund_of_an_order_that_is_not_paid(project: Project, shop: Shop) -> None:
    """An unpaid order exits 1 with `assert-failed`, and nothing is refunded."""
    ended = project.runops(
        "run", "workflows/refund_order.yaml", f"--input=base_url={shop.url}", "--input=order=1002", "--json"
    )
    assert ended.returncode == 1
    assert json.loads(ended.stdout)["runs"][0]["error"]["code"] == "assert-failed"
    assert shop.ledger("refund", "1002") == []


def test_watch_prices(project: Project, shop: Shop) -> None:
    """Risen, fallen, removed and new prices since the known list are named. A run against the saved list finds the one change."""
    first = run(project, "watch_prices", shop)
    saved = first.pop("saved")
    assert first == {
        "rose": ["COFFEE-1"],
        "fell": ["OIL-2"],
        "gone": ["RICE-1"],
        "new": ["BREAD-1", "CHEESE-2", "HONEY-3", "JAM-1", "SOAP-4"],
    }
    assert run(project, "watch_prices", shop, known=f"@{saved}")["rose"] == []
    prices = shop.set_price("TEA-1", "9.90")
    third = run(project, "watch_prices", shop, known=f"@{saved}")
    assert json.loads(Path(third.pop("saved")).read_text())[-1] == {
        "article": "TEA-1",
        "product": "Black tea, 250 g",
        "price": float(prices["TEA-1"]),
    }
    assert third == {"rose": ["TEA-1"], "fell": [], "gone": [], "new": []}


def test_file_papers(project: Project, shop: Shop) -> None:
    """The invoice and two papers are filed once, byte for byte, and downloaded completely each time."""
    outputs = run_often(project, "file_papers", shop)
    names = ["invoice-1002.txt", "delivery_note.txt", "packing_list.csv"]
    assert outputs == [{"invoice": "invoice-1002.txt", "filed": names}] * TIMES
    filed = {row["detail"]["name"]: row["detail"]["sha256"] for row in shop.ledger("document", "1002")}
    fetched = {row["detail"]["sha256"] for row in shop.ledger("invoice", "1002")}
    papers = [hashlib.sha256((ROOT / "workflows/papers" / name).read_bytes()).hexdigest() for name in names[1:]]
    assert list(filed) == names
    assert list(filed.values()) == [*fetched, *papers]
    assert (len(shop.ledger("document", "1002")), len(shop.ledger("invoice", "1002"))) == (3, TIMES)


def test_remember_me_and_open_total(project: Project, shop: Shop) -> None:
    """One sign-in serves all later runs of the other workflow without a password. When the shop forgets it, one more follows."""

    def signed_in() -> int:
        return len(shop.ledger("sign_in"))

    before = signed_in()
    assert run(project, "remember_me", shop) == {"kept": "shop-admin"}
    still_open = [float(order["total"]) for order in shop.orders() if order["status"] == "unpaid"][:PAGE_SIZE]
    sums = {"open": len(still_open), "total": round(sum(still_open), 2)}
    assert run_often(project, "open_total", shop) == [{"how": "remembered", **sums}] * TIMES
    assert signed_in() == before + 1
    shop.switch("logout", "/orders")
    assert run(project, "open_total", shop) == {"how": "signed in again, after verify-failed", **sums}
    assert signed_in() == before + 2
    assert run(project, "open_total", shop)["how"] == "remembered"


def test_book_delivery(project: Project, shop: Shop) -> None:
    """Each run books one delivery, with the address from the window and the account from the frame."""
    outputs = run_often(project, "book_delivery", shop)
    rows = shop.ledger("delivery")
    assert outputs == [{"delivery": str(row["id"]), "recipient": "Greta Lindqvist"} for row in rows]
    for row in rows:
        address = {"recipient": "Greta Lindqvist", "street": "Storgatan 3", "city": "Uppsala"}
        assert row["detail"].items() >= {**address, "account": "SE45 5000 0000 0583"}.items()


def test_export_orders(project: Project, shop: Shop) -> None:
    """The file has every order of the shop, from all pages, in list order."""
    for output in run_often(project, "export_orders", shop):
        with Path(output["saved"]).open(newline="") as file:
            rows = list(csv.DictReader(file))
        wanted = [{**order, "total": float(order["total"])} for order in shop.orders()]
        assert (output["orders"], output["pages"]) == (len(wanted), PAGES_OF_THE_LIST)
        shown = ("number", "customer", "total", "status")
        assert [[{**row, "total": float(row["total"])}[name] for name in shown] for row in rows] == [
            [order[name] for name in shown] for order in wanted
        ]


def test_print_label(project: Project, shop: Shop) -> None:
    """The gate is released, whether the printer fails or the shop responds with an error 500."""
    problem = "The label printer of gate A2 does not answer."
    assert run_often(project, "print_label", shop) == [{"gate": "A2", "printed": False, "problem": problem}] * TIMES
    kinds = ("gate_reserved", "label", "gate_released")
    assert [len(shop.ledger(kind, "A2")) for kind in kinds] == [TIMES, 0, TIMES]
    rows = [row["kind"] for row in shop.ledger(subject="A2")]
    assert rows == ["gate_reserved", "gate_released"] * TIMES
    assert run(project, "print_label", shop, gate="A1") == {"gate": "A1", "printed": True, "problem": None}
    assert [len(shop.ledger(kind, "A1")) for kind in kinds] == [1, 1, 1]
