"""Two processes want one run at the same time: one gets it, the other names the owner, and nothing happens twice."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from nodes.errors import SiteError
from runtime.log import entries
from runtime.log.store import file_store, owners
from tests import shop_flows
from tests.command import TIMEOUT, Project, Started
from tests.fakes import FakePage, FakeSite
from tests.rig import Rig
from tests.shop_process import Shop

WAIT = """
version: 1
name: Wait
nodes:
  - {id: first, type: transform, expr: "{{ 1 + 1 }}"}
  - {id: wait, type: transform, python: "waiting:until_told", timeout: 600}
output: "{{ wait }}"
"""

PAY = shop_flows.sign_in("Pay") + shop_flows.PAY_EACH + shop_flows.VERIFY + shop_flows.CONFIRM


def wait_until(happened: Callable[[], object], what: str) -> None:
    """Wait for a condition that must come true."""
    until = time.monotonic() + TIMEOUT
    while not happened():
        assert time.monotonic() < until, what
        time.sleep(0.02)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A project with a workflow that waits for a signal file to continue, and needs no browser."""
    folder = tmp_path / "project"
    folder.mkdir()
    project = Project(folder)
    project.write("waiting.py", shop_flows.WAITING)
    project.write("pyproject.toml", '[tool.runops]\npython_modules = ["waiting"]\n')
    project.write("wait.yaml", WAIT)
    return project


def log_of(project: Project) -> Path:
    """The log of the project's only run."""
    (file,) = project.folder.glob(".runops/conversations/*.jsonl")
    return file


def begun(project: Project, *arguments: str) -> Started:
    """A process whose run waits, and has written that the run is its own: lines wait for the blobs before them."""
    process = project.start(*arguments)
    wait_until((project.folder / "begun").exists, "the run has not begun to wait")
    wait_until(lambda: b'"claimed"' in log_of(project).read_bytes(), "the run is not claimed")
    (project.folder / "begun").unlink()
    return process


def test_only_one_of_two_resumes_wins(project: Project) -> None:
    """When two processes resume one dead run, one passes. The other exits 1 and names the owning process and since when."""
    with begun(project, "run", "wait.yaml") as dead:
        dead.kill()
    both = [project.start("resume", "last") for _ in range(2)]
    try:
        wait_until(lambda: any(each.poll() is not None for each in both), "neither was refused")
        (loser,) = [each for each in both if each.poll() is not None]
        (winner,) = [each for each in both if each is not loser]
        wait_until((project.folder / "begun").exists, "the other one does not continue")
        _out, said = loser.communicate(timeout=TIMEOUT)
        owner = owners.last(file_store.Files(project.folder / ".runops").read(log_of(project).stem).entries)
        assert owner is not None
        assert loser.returncode == 1
        assert f"is held by process {winner.pid} on {owner.host} since {owner.since}" in said
        assert "--take-over" in said
        (project.folder / "go").touch()
        out, _err = winner.communicate(timeout=TIMEOUT)
        assert (winner.returncode, out) == (0, "told\n")
    finally:
        for each in both:
            each.kill()
            each.communicate()
    (ran,) = project.runs()
    assert ran["state"] == "passed"


def test_a_run_is_taken_over_by_one_of_two(project: Project) -> None:
    """When two processes take a run over, its owner is killed and one of them passes. The other one is refused or killed."""
    with begun(project, "run", "wait.yaml") as owner:
        owner.send_signal(signal.SIGSTOP)
        both = [project.start("resume", "last", "--take-over") for _ in range(2)]
        try:
            assert owner.wait(TIMEOUT) == -signal.SIGKILL
            wait_until(lambda: any(each.poll() is not None for each in both), "both continue")
            (loser,) = [each for each in both if each.poll() is not None]
            (winner,) = [each for each in both if each is not loser]
            assert loser.returncode in (1, -signal.SIGKILL)
            (project.folder / "go").touch()
            # It took the run over, or found it free between the owner's end and the other claim.
            out, _said = winner.communicate(timeout=TIMEOUT)
            assert (winner.returncode, out) == (0, "told\n")
        finally:
            for each in (owner, *both):
                each.kill()
                each.communicate()
    (ran,) = project.runs()
    assert ran["state"] == "passed"


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    """A shop with three open orders."""
    with Shop.start(tmp_path, orders=3, paid=0) as shop:
        yield shop


def test_a_stopped_owner_is_taken_over(tmp_path: Path, shop: Shop) -> None:
    """An owner stopped during a payment keeps its run, except under `--take-over`: then it passes in its browser, and each order is paid once."""
    folder = tmp_path / "project"
    folder.mkdir()
    project = Project(folder, SHOP_PASSWORD=shop.password, RUNOPS_LINGER="60")
    project.write("flow.yaml", PAY)
    shop.switch("hold", "/orders/.*/pay", method="POST", skip=1, moment="before")
    with project.start("run", "flow.yaml", "-i", f"base_url={shop.url}") as owner:
        try:
            shop.wait("held", path="/orders/1001/pay")
            owner.send_signal(signal.SIGSTOP)
            before = log_of(project).read_bytes()
            refused = project.runops("resume", "last")
            assert refused.returncode == 1
            assert f"is held by process {owner.pid} " in refused.stderr
            assert "--take-over" in refused.stderr
            assert log_of(project).read_bytes() == before
            assert psutil.Process(owner.pid).status() == psutil.STATUS_STOPPED
            shop.release()
            taken = project.runops("resume", "last", "--take-over")
            assert taken.returncode == 0, taken.stderr
            assert f"took the run over from process {owner.pid}, which held it since 20" in taken.stderr
            assert "the browser is still there" in taken.stderr
            assert owner.wait(TIMEOUT) == -signal.SIGKILL
        finally:
            shop.clear()
            owner.kill()
            end_browsers(folder)
    assert sorted(str(row["subject"]) for row in shop.ledger("payment")) == ["100", "1001", "1002"]


def end_browsers(folder: Path) -> None:
    """Kill the browsers that a killed run left, by pid and start time."""
    for file in folder.glob(".runops/private/*/browser.json"):
        state = json.loads(file.read_text())
        for pid in (state["chromium"], state["watcher"]):
            try:
                psutil.Process(pid).kill()
            except psutil.NoSuchProcess:
                continue


async def test_only_one_of_two_decisions_is_recorded(tmp_path: Path) -> None:
    """When two people give different answers to one question, one answer is recorded. The other command says so."""

    async def lose(_target: str, _page: FakePage) -> None:
        raise SiteError("answer-lost", "nobody knows", phase="after")

    project = Project(tmp_path)
    text = "version: 1\nname: test\nnodes:\n  - {id: pay, type: browser_action, action: click, target: {css: pay}}\n"
    rig = Rig(tmp_path / ".runops", text, site=FakeSite(on_click=lose))
    assert (await rig.start()).status == "paused"
    both = [project.start("decide", rig.id, verdict, "--only") for verdict in ("done", "not-done")]
    said = [each.communicate(timeout=TIMEOUT)[1] for each in both]
    codes = [each.wait() for each in both]
    assert min(codes) == 0, said
    assert max(codes) in (1, 2), said
    loser = said[codes.index(max(codes))]
    assert "answered already" in loser or "is held by" in loser
    decided = [
        entry
        for entry in rig.reader.read(rig.id).entries
        if isinstance(entry, entries.Note) and entry.name == "decided"
    ]
    assert [entry.data["verdict"] for entry in decided] == [("done", "not-done")[codes.index(0)]]
