"""The command on a terminal: its display, and its reaction to Ctrl-C."""

import json
import re
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from runtime.cli import foreground
from tests.command import Project
from tests.shop_process import ROOT, Shop
from tests.terminal import Terminal, processes_of, still_running

pytestmark = pytest.mark.drawn(share=0.2, of="command_terminal")

PAY_ORDERS = (
    (ROOT / "workflows" / "pay_orders.yaml")
    .read_text()
    .replace("        verify: [{text", "        timeout: 4\n        verify: [{text")
)
"""The example, with a shorter wait for a payment in a new browser after a resume."""

COLOURS = re.compile(r"\x1b\[[0-9;]*m")
ADD = """
version: 1
name: Add
nodes:
  - {id: add, type: transform, expr: "{{ 1 + 1 }}"}
"""
RUN_ID = re.compile(r"\b[0-9A-HJKMNP-TV-Z]{26}\b")


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    """A shop with five open orders, on pages of three."""
    folder = tmp_path / "shop"
    folder.mkdir()
    with Shop.start(folder, orders=5, paid=0, page_size=10) as shop:
        yield shop


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """An empty project that knows the shop's password."""
    folder = tmp_path / "project"
    folder.mkdir()
    project = Project(folder, SHOP_PASSWORD="correct-horse")
    project.write("pay_orders.yaml", PAY_ORDERS)
    return project


def pay(project: Project, shop: Shop, *, columns: int = 80, rows: int = 24) -> Terminal:
    """Start to pay the open orders, on a terminal."""
    return project.terminal("run", "pay_orders.yaml", "-i", f"base_url={shop.url}", columns=columns, rows=rows)


@pytest.mark.drawn(1)
@pytest.mark.parametrize("columns", [60, 120])
def test_the_tree_fits_the_terminal_and_shows_the_position(columns: int, project: Project, shop: Shop) -> None:
    """While a payment is pending the screen names its step and its position in the loop, the clock advances, and no line wraps."""
    shop.switch("hold", path="/orders/1002/pay", method="POST")
    with pay(project, shop, columns=columns, rows=12) as terminal:
        terminal.wait_for(lambda: bool(re.search(r">>  each_order +3/5  #1002", terminal.text)))
        terminal.wait_for(lambda: bool(re.search(r">>  pay  click .*  0\.[1-9] s", terminal.text)))
        terminal.wait_for(lambda: bool(re.search(r">>  pay  click .*  [1-9]\.\d s", terminal.text)))
        assert "Pay the open orders" in terminal.text
        assert RUN_ID.search(terminal.text)
        shop.release()
        assert terminal.wait() == 0
        assert terminal.screen.wrapped == []
        assert ">>" not in terminal.everything
        assert "passed" in terminal.text
        assert "paid: 5" in terminal.text


@pytest.mark.parametrize(
    ("variable", "value", "forbidden"), [("NO_COLOR", "1", COLOURS), ("TERM", "dumb", re.compile("\x1b"))]
)
def test_a_terminal_gets_no_more_than_it_can_take(
    variable: str, value: str, forbidden: re.Pattern[str], project: Project
) -> None:
    """`NO_COLOR` prints the tree without colours, and `TERM=dumb` one line per step without control sequences."""
    project.write("add.yaml", ADD)
    project.environment[variable] = value
    with project.terminal("run", "add.yaml") as terminal:
        assert terminal.wait() == 0
        assert forbidden.search(terminal.raw) is None
        assert "ok  add" in terminal.everything
        assert "passed" in terminal.everything


def test_ctrl_c_in_a_step_leaves_a_run_that_resumes(project: Project, shop: Shop) -> None:
    """Ctrl-C exits 130, prints the command to resume and leaves no process. That command pays every order exactly once."""
    shop.switch("hold", path="/orders/1003/pay", method="POST")
    with pay(project, shop) as terminal:
        shop.wait("held", path="/orders/1003/pay")
        assert terminal.note_children()
        terminal.press("\x03")
        assert terminal.wait() == 130
        assert terminal.survivors() == []
        assert "Traceback" not in terminal.everything
        again = re.search(r"runops (resume \w+)", terminal.everything)
        assert again is not None, terminal.raw
    shop.clear()
    with project.terminal(*again[1].split()) as terminal:
        assert terminal.wait() == 0
        assert terminal.screen.wrapped == []
    assert sorted(row["subject"] for row in shop.ledger("payment")) == ["100", "1001", "1002", "1003", "1004"]


def test_a_second_ctrl_c_ends_at_once(project: Project, shop: Shop) -> None:
    """When the browser driver no longer responds, the second Ctrl-C ends the run and its processes, like a crash."""
    shop.switch("hold", path="/orders/1002/pay", method="POST")
    with pay(project, shop) as terminal:
        shop.wait("held", path="/orders/1002/pay")
        terminal.note_children()
        for child in psutil.Process(terminal.process.pid).children():
            child.suspend()
        terminal.press("\x03")
        terminal.wait_for(lambda: "again: at once" in terminal.text)
        # Presses within a tenth of a second count as one.
        pressed = time.monotonic()
        terminal.wait_for(lambda: time.monotonic() - pressed > 0.2)
        terminal.press("\x03")
        assert terminal.wait() == 130
        assert terminal.survivors() == []
        assert "runops resume" in terminal.everything
    assert project.runs()[0]["state"] in ("interrupted", "died")
    resumes(project, shop)


def test_the_browser_of_a_run_can_be_closed_from_outside(project: Project, shop: Shop) -> None:
    """The function behind the second Ctrl-C ends a browser that outlived its engine at once, without its linger time."""
    shop.switch("hold", path="/orders/1002/pay", method="POST")
    with project.start("run", "pay_orders.yaml", "-i", f"base_url={shop.url}") as process:
        shop.wait("held", path="/orders/1002/pay")
        below = processes_of(process.pid, project.folder)
        process.kill()
    assert any("chrom" in each.name() for each in still_running(below, deadline=0))
    foreground.end_browser(project.folder / ".runops" / "private" / project.runs()[0]["id"])
    assert still_running(below) == []


@pytest.mark.drawn(1)
@pytest.mark.parametrize("moment", ["the display begins", "the browser starts"])
def test_ctrl_c_during_start_up(moment: str, project: Project, shop: Shop) -> None:
    """Ctrl-C before the first step also exits 130, without a traceback or a remaining process."""
    with pay(project, shop) as terminal:
        if moment == "the display begins":
            terminal.wait_for(lambda: "starting" in terminal.text or "Pay the" in terminal.text)
        else:
            terminal.wait_for(lambda: bool(terminal.note_children()))
        terminal.press("\x03")
        assert terminal.wait() == 130
        terminal.note_children()
        assert terminal.survivors() == []
        assert "Traceback" not in terminal.everything
        assert "interrupted" in terminal.everything


@pytest.mark.parametrize("module", ["typer", "yaml"])
def test_ctrl_c_during_the_imports(module: str, project: Project, tmp_path: Path) -> None:
    """Ctrl-C during an import ends the command at once, without Python's own output."""
    slow = tmp_path / "slow"
    slow.mkdir()
    (slow / f"{module}.py").write_text("import time\nprint('importing', flush=True)\ntime.sleep(60)\n")
    with project.terminal("run", "pay_orders.yaml", anew=True, PYTHONPATH=str(slow)) as terminal:
        terminal.wait_for(lambda: "importing" in terminal.text)
        terminal.press("\x03")
        assert terminal.wait() == 130
        assert "Traceback" not in terminal.everything
        assert "KeyboardInterrupt" not in terminal.everything


@pytest.mark.drawn(1)
@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_signal_interrupts_a_run_without_a_terminal(number: int, code: int, project: Project, shop: Shop) -> None:
    """A cancelled CI job exits in order: stdout, stderr and log report it, and no process is left."""
    shop.switch("hold", path="/orders/1002/pay", method="POST")
    with project.start("run", "pay_orders.yaml", "-i", f"base_url={shop.url}", "--json") as process:
        shop.wait("held", path="/orders/1002/pay")
        assert [run["state"] for run in project.runs()] == ["running"]
        assert project.show()["open"] == ["each_order[#1002]/pay"]
        below = processes_of(process.pid, project.folder)
        assert any("chrom" in each.name() for each in below)
        process.send_signal(number)
        out, err = process.communicate(timeout=30)
    assert process.returncode == code
    said = json.loads(out)
    assert (said["version"], said["exit"]) == (1, code)
    assert [(run["status"], run["exit"]) for run in said["runs"]] == [("interrupted", code)]
    assert still_running(below) == []
    assert "runops resume" in err
    assert "Traceback" not in err
    assert [run["state"] for run in project.runs()] == ["interrupted"]
    resumes(project, shop)


def resumes(project: Project, shop: Shop) -> None:
    """The interrupted run is resumed to its end, and every order is paid exactly once."""
    shop.clear()
    assert project.runops("resume", "last").returncode == 0
    paid = [row["subject"] for row in shop.ledger("payment")]
    assert len(paid) == len(set(paid))
    assert {"1001", "1002", "1003"} <= set(paid)
