"""One checkout that dies as it is told, twice, and is gone on with to its end; the shop's ledger is the judge."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import shutil
import signal
import subprocess
from pathlib import Path
from typing import Any, Literal

import psutil

from runtime import history, store
from tests import warm
from tests.command import Project
from tests.kills import disk, flow, mortal
from tests.shop_process import Moment, Shop

Mode = Literal["surviving", "gone", "power"]
"""What is left besides the disk: the browser; nothing; nothing, and of the disk only what was synced."""

MODES: tuple[Mode, ...] = ("surviving", "gone", "power")

SECONDS = 180.0
"""How long a command may take. None does; one that hangs is to be seen."""

MOST_LIVES = 12

KINDS = {"add": "cart", "pay": "checkout"}
"""What the deeds are in the shop's ledger."""


@dataclasses.dataclass(frozen=True)
class Held:
    """The engine dies while the shop has its request: not carried out yet, or carried out and not answered."""

    deed: Literal["add", "pay"]
    order: int
    """From 1."""
    moment: Moment
    goes_on: bool = True
    """Whether the shop carries out what it has, once the engine is dead."""

    def __str__(self) -> str:
        what = "answer-held" if self.moment == "after" else "received" + ("" if self.goes_on else "-and-dropped")
        return f"{what} {self.deed}#{self.order}"


@dataclasses.dataclass(frozen=True)
class At:
    """The engine dies at a crash point."""

    point: str
    number: int
    """At which passing of it, from 1."""

    def __str__(self) -> str:
        return f"{self.point}#{self.number}"


@dataclasses.dataclass(frozen=True)
class Case:
    """What is to be done to one checkout."""

    mode: Mode
    how: flow.How
    first: At | Held
    second: int = 0
    """At which crash point, from 1, the resume dies too; 0: it lives."""
    control: str = ""
    orders: int = flow.ORDERS

    def __str__(self) -> str:
        again = f", then at point {self.second}" if self.second else ""
        return f"{self.mode}, {self.how}: killed at {self.first}{again}"


class NotReached(Exception):
    """The run ended before it came to where it should have died."""


@dataclasses.dataclass
class Report:
    """What came of it."""

    case: Case
    kills: list[str] = dataclasses.field(default_factory=list)
    """Where it was killed, each as mode and point."""
    resumed: int = 0
    paused: int = 0
    lost: list[str] = dataclasses.field(default_factory=list)
    doubled: list[str] = dataclasses.field(default_factory=list)
    wrong: list[str] = dataclasses.field(default_factory=list)
    """What else is not as it should be."""

    @property
    def fine(self) -> bool:
        """Whether every promise was kept."""
        return not (self.lost or self.doubled or self.wrong)


class Trial:
    """A checkout in a folder of its own, on a shop that others use too."""

    def __init__(self, case: Case, name: str, folder: Path, shop: Shop, server: warm.Warm) -> None:
        """``name`` is in every order reference."""
        self.case = case
        self.report = Report(case)
        self._shop = shop
        self._server = server
        folder.mkdir(parents=True)
        self._project = Project(folder, SHOP_PASSWORD=shop.password, RUNOPS_LINGER="120")
        self.orders = [f"{name}-{number}" for number in range(1, case.orders + 1)]
        given = {"base_url": shop.url, "references": self.orders}
        files = [
            self._project.write("flow.yaml", flow.text(case.how)),
            self._project.write("inputs.json", json.dumps(given)),
        ]
        self._record = folder.parent / f"{name}.record"
        self._disk = disk.Disk(
            folder, {str(each): each.stat().st_size for each in files}, {str(each) for each in files}
        )
        self._read = 0
        self.output: Any = None

    @property
    def home(self) -> Path:
        """Where the run is kept."""
        return self._project.folder / ".runops"

    def run(self) -> Report:
        """Kill it, go on, judge."""
        try:
            self._first_life()
            self._go_on()
            self._judge()
        except Exception as error:  # noqa: BLE001 - whatever it is, it was found
            self.report.wrong.append(f"{type(error).__name__}: {error}")
            self._count_doubled()
            self.report.lost += [each for each in self._wrongly_settled() if each not in self.report.lost]
        finally:
            self._end_browsers()
        return self.report

    def passed(self) -> list[str]:
        """The crash points that were passed so far, in order."""
        return [each["point"] for each in disk.read(self._record) if "point" in each]

    # Its lives

    def _first_life(self) -> None:
        first = self.case.first
        if isinstance(first, At) and not first.number:
            return  # this one is left alone
        if isinstance(first, At):
            if self._life(first.point, first.number) is not None:
                raise NotReached(str(first))
            return
        path = f"/cart/{self.orders[first.order - 1]}/{first.deed}"
        self._shop.switch("hold", path, method="POST", moment=first.moment)
        with self._start("", 1) as engine:
            (held,) = self._shop.wait("held", path=path, timeout=120)
            os.kill(engine.pid, signal.SIGKILL)
            engine.wait(SECONDS)
        self._died(str(first))
        self._shop.api("POST", "/_release", {"id": held["id"], "go_on": first.goes_on})

    def _life(self, point: str, number: int) -> subprocess.CompletedProcess[str] | None:
        """Begin or go on; None where it died as it was told."""
        before = len(self.passed())
        with self._start(point, number) as engine:
            ended = engine.wait(SECONDS)
        if "Traceback" in ended.stderr:
            self.report.wrong.append(f"a traceback: {ended.stderr[-800:]}")
        if ended.returncode != -signal.SIGKILL:
            return ended
        self._died(self.passed()[-1] if len(self.passed()) > before else "?")
        return None

    def _start(self, point: str, number: int) -> warm.Forked:
        fate = mortal.Fate(str(self._record), point, number, self.case.control)
        arguments = ["resume", "last", "--json"]
        if not self._begun():
            arguments = ["run", "flow.yaml", "--inputs", "inputs.json", "--json"]
        else:
            self.report.resumed += 1
        return self._server.start(arguments, self._project.folder, {**self._project.environment, **fate.environment()})

    def _begun(self) -> bool:
        logs = list(self.home.glob("conversations/*.jsonl"))
        return any(b"\n" in each.read_bytes() for each in logs)

    def _died(self, where: str) -> None:
        self.report.kills.append(f"{self.case.mode} {where}")
        if self.case.mode != "surviving":
            self._end_browsers()
        told = disk.read(self._record)
        self._disk.learn(told[self._read :])
        self._read = len(told)
        if self.case.mode == "power":
            self._disk.cut()

    def _go_on(self) -> None:
        """Resume until it has passed; the first resume dies too, where the case says so and it gets that far."""
        ended = self._life(mortal.ANY, self.case.second) if self.case.second else None
        for _ in range(MOST_LIVES):
            ended = ended or self._life("", 1)
            assert ended is not None
            said = json.loads(ended.stdout) if ended.stdout else {}
            told = said["runs"][0] if "runs" in said else said
            if ended.returncode == 0:
                self.output = told["output"]
                return
            if ended.returncode != 4:
                raise RuntimeError(f"exit {ended.returncode}: {ended.stderr[-1500:]}")
            self._answer(told["question"])
            ended = None
        raise RuntimeError("it does not end")

    def _answer(self, question: dict[str, Any]) -> None:
        """Answer a question truthfully, as a person would who looks at the site."""
        self.report.paused += 1
        if self.case.how == "confirm":
            self.report.wrong.append(f"asked a person although `confirm` can tell: {question['message']}")
        self._count_doubled()
        step = str(question["path"])
        order, deed = step.partition("#")[2].partition("]")[0], step.rpartition("/")[2]
        verdict = "done" if self._times(KINDS[deed], order) else "not-done"
        decided = self._project.runops("decide", "last", verdict)
        if decided.returncode not in (0, 4):
            raise RuntimeError(f"decide: exit {decided.returncode}: {decided.stderr}")

    # Its judge

    def _times(self, kind: str, order: str) -> int:
        return len(self._shop.ledger(kind, order))

    def _count_doubled(self) -> None:
        for order in self.orders:
            for kind in KINDS.values():
                if self._times(kind, order) > 1 and f"{kind} {order}" not in self.report.doubled:
                    self.report.doubled.append(f"{kind} {order}")

    def _judge(self) -> None:
        self._count_doubled()
        for order in self.orders:
            self.report.lost += [f"{kind} {order}" for kind in KINDS.values() if not self._times(kind, order)]
        if self.report.lost:
            return
        got = [{name: each[name] for name in ("order", "receipt")} for each in self.output["orders"]]
        due = [{"order": order, "receipt": f"{order}-1"} for order in self.orders]
        if got != due:
            self.report.wrong.append(f"its output is {got}, and should be {due}")
        self._judge_forms()
        self._judge_files()

    def _wrongly_settled(self) -> list[str]:
        """Deeds that the log has as done and the shop has not."""
        found: list[str] = []
        kept = store.FileStore(self.home)
        for run in kept.ids():
            past = history.History(kept.read(run).entries)
            for path in past.order:
                deed, order = path.rpartition("/")[2], path.partition("#")[2].partition("]")[0]
                if deed in KINDS and past.done(path) is not None and not self._times(KINDS[deed], order):
                    found.append(f"{KINDS[deed]} {order}")
        return found

    def _judge_forms(self) -> None:
        """What was typed went out with the deed, also where it was typed again."""
        for order in self.orders:
            detail = self._shop.ledger("checkout", order)[0]["detail"]
            if (detail["name"], detail["note"]) != (f"Ada {order}", f"Ring at {order}"):
                self.report.wrong.append(f"{order} was sent {detail}")

    def _judge_files(self) -> None:
        (files,) = self.home.glob("files/*")
        for each in self.output["orders"]:
            written = files / each["file"]
            if not written.exists() or hashlib.sha256(written.read_bytes()).hexdigest() != each["sha256"]:
                self.report.wrong.append(f"the file {each['file']} of {each['order']} is not what its step says")

    # Tidying up

    def _end_browsers(self) -> None:
        """End the browser that a killed engine left, by what its file says of it; wait until nothing of it is there."""
        for file in self.home.glob("private/*/browser.json"):
            state = json.loads(file.read_text())
            left = [each for pid in (state["watcher"], state["chromium"]) if (each := _process(pid)) is not None]
            left += [child for each in left for child in each.children(recursive=True)]
            for each in left:
                if each.is_running():
                    each.kill()
            psutil.wait_procs(left, timeout=20)
            for folder in state["folders"]:
                shutil.rmtree(folder, ignore_errors=True)


def _process(pid: int) -> psutil.Process | None:
    try:
        return psutil.Process(pid)
    except psutil.NoSuchProcess:
        return None
