"""Runs killed in the middle of a payment: a real command and Chromium, with the shop's ledger as the judge."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import psutil
import pytest

from tests import shop_flows
from tests.benchmarks import forms
from tests.command import Project, Started
from tests.shop_process import Shop
from tests.terminal import still_running

WORKFLOW = shop_flows.sign_in("Pay") + shop_flows.PAY_EACH
PAY = "/orders/.*/pay"
How = Literal["confirm", "nothing"]
KNOWS: dict[How, str] = {"confirm": shop_flows.VERIFY + shop_flows.CONFIRM, "nothing": ""}


class Operator:
    """A person whose runs die: starts, kills and resumes them."""

    def __init__(self, folder: Path, shop: Shop) -> None:
        self.project = Project(folder, SHOP_PASSWORD=shop.password, RUNOPS_LINGER="60", RUNOPS_STEP_TIMEOUT="10")
        self.shop = shop

    def start(self, text: str) -> Started:
        """Start a run of the workflow."""
        self.project.write("flow.yaml", text)
        return self.project.start("run", "flow.yaml", "-i", f"base_url={self.shop.url}", "--json")

    def kill(self, process: Started, *, chromium: Literal["survives", "gone"]) -> None:
        """Kill the engine with SIGKILL, and optionally its browser."""
        state = json.loads(next(self.project.folder.glob(".runops/private/*/browser.json")).read_text())
        browser = psutil.Process(state["chromium"])
        process.send_signal(signal.SIGKILL)
        process.communicate()
        if chromium == "gone":
            browser.kill()
            assert still_running([browser]) == []

    def resume(self) -> tuple[int, dict[str, Any]]:
        """Resume the run; the exit code and the JSON on stdout."""
        done = self.project.runops("resume", "last", "--json")
        assert "Traceback" not in done.stderr
        return done.returncode, json.loads(done.stdout)

    def paid(self) -> dict[str, int]:
        """The number of payments for each order, from the shop's ledger."""
        payments = [row["subject"] for row in self.shop.ledger("payment")]
        return {number: payments.count(number) for number in payments}


@pytest.fixture
def operator(tmp_path: Path) -> Iterator[Operator]:
    """An operator, and a shop with three open orders."""
    folder = tmp_path / "project"
    folder.mkdir()
    with Shop.start(tmp_path, orders=3, paid=0) as shop:
        made = Operator(folder, shop)
        try:
            yield made
        finally:
            shop.clear()
            end_browsers(folder)


def end_browsers(folder: Path) -> None:
    """Kill the browsers that a killed run left, by pid and start time."""
    for file in folder.glob(".runops/private/*/browser.json"):
        state = json.loads(file.read_text())
        for pid in (state["chromium"], state["watcher"]):
            try:
                psutil.Process(pid).kill()
            except psutil.NoSuchProcess:
                continue


@pytest.mark.drawn(1, of="crash")
def test_the_shop_answers_late(operator: Operator) -> None:
    """The request is still pending at the first `confirm`. The second one sees the payment, and nothing is paid twice."""
    operator.shop.switch("hold", PAY, method="POST", skip=1, moment="before")
    engine = operator.start(WORKFLOW + KNOWS["confirm"].replace("settle: 2", "settle: 6"))
    operator.shop.wait("held", path="/orders/1001/pay")
    operator.kill(engine, chromium="gone")
    resuming = operator.project.start("resume", "last", "--json")
    operator.shop.wait_for_request("GET /orders/1001")
    operator.shop.release()
    out, err = resuming.communicate(timeout=60)
    assert resuming.returncode == 0, err
    assert json.loads(out)["status"] == "passed"
    assert operator.paid() == {"100": 1, "1001": 1, "1002": 1}


@pytest.mark.drawn(1, of="crash")
def test_filled_fields_are_filled_again(operator: Operator) -> None:
    """After a kill before the submit, with the browser gone, fields filled by top-level leaves and two groups are filled again and all arrive."""
    flow = forms.workflow()
    (opening, *fields, submit) = flow["nodes"]
    flow["nodes"] = [
        opening,
        *fields[:20],
        {"id": "one", "type": "group", "nodes": fields[20:34]},
        {"id": "two", "type": "group", "nodes": fields[34:]},
        {**submit, "after_crash": "retry"},
    ]
    flow["inputs"]["n"]["default"] = "1"
    operator.shop.switch("hold", "/form", method="POST", moment="before")
    engine = operator.start(json.dumps(flow))
    operator.shop.wait("held", path="/form", timeout=60)
    operator.kill(engine, chromium="gone")
    operator.shop.release(go_on=False)
    code, said = operator.resume()
    assert (code, said["status"]) == (0, "passed")
    assert [row["detail"] for row in operator.shop.ledger("form")] == [forms.record()]


@pytest.mark.drawn(1, of="crash")
@pytest.mark.parametrize(("how", "code", "actions"), [("confirm", 0, 1), ("nothing", 4, 1)])
def test_an_answer_that_never_comes(operator: Operator, how: How, code: int, actions: int) -> None:
    """The shop acts and drops its response, without a kill. `confirm` detects the payment, and without it the run pauses; it is paid once in either case."""
    operator.shop.switch("drop", PAY, method="POST", moment="after")
    one = WORKFLOW.replace('over: "{{ orders }}"', 'over: "{{ orders | batch(1) | first }}"')
    engine = operator.start(one + KNOWS[how])
    out, err = engine.communicate(timeout=60)
    assert engine.returncode == code, err
    assert operator.paid() == {"100": actions}
    if code == 4:
        assert json.loads(out)["runs"][0]["question"]["reason"] == "outcome-unknown"
