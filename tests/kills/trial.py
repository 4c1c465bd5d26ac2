"""One checkout that is killed as scheduled, again and again, and resumed to its end; the shop's ledger is the judge."""

from __future__ import annotations

import concurrent.futures
import contextlib
import dataclasses
import hashlib
import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import psutil

from runtime.log import history
from runtime.log.store import file_store
from tests import warm
from tests.command import Project
from tests.kills import disk, flow, mortal
from tests.shop_process import Moment, Shop

Mode = Literal["surviving", "gone", "power"]
"""The state that survives besides the disk: the browser; nothing; nothing, and of the disk only synced data."""

MODES: tuple[Mode, ...] = ("surviving", "gone", "power")

Victim = Literal["engine", "renderer", "network"]
"""The victim: the engine, or the browser's processes for pages or for the network. In the latter cases the engine survives."""

_PROCESSES: dict[Victim, str] = {"renderer": "--type=renderer", "network": "network.mojom.NetworkService"}
"""Text in the command line of such a process of the browser."""

SECONDS = 180.0
"""Timeout of a command. None takes so long, unless it hangs."""

MOST_LIVES = 12
"""Besides those that end as scheduled."""

CONTROL_SECONDS = 3
"""Timeout of a control that waits for the button of an action it should not repeat, and that is gone."""

LOOK_SECONDS = 0.1
"""Seconds between two looks at the shop."""

KINDS = {"add": "cart", "pay": "checkout"}
"""The names of the actions in the shop's ledger."""


@dataclasses.dataclass(frozen=True)
class Held:
    """The engine dies while the shop has its request: not carried out yet, or carried out and not answered."""

    part: str
    """The order, by its number from 1."""
    action: Literal["add", "pay"]
    moment: Moment
    accepts: bool = True
    """True if the shop carries out the request once the victim is dead."""
    victim: Victim = "engine"

    def __str__(self) -> str:
        what = "answer-held" if self.moment == "after" else "received" + ("" if self.accepts else "-and-dropped")
        whose = "" if self.victim == "engine" else f" {self.victim}"
        return f"{what}{whose} {self.action}#{self.part}"


@dataclasses.dataclass(frozen=True)
class At:
    """The engine dies at a crash point."""

    part: str
    """The number of the order, from 1; or before the first, or after the last one (``flow.START``, ``flow.END``)."""
    point: str
    number: int
    """The number of its passing in this part, from 1."""

    def __str__(self) -> str:
        return f"{self.point}#{self.part}.{self.number}"


@dataclasses.dataclass(frozen=True)
class Case:
    """The kills of one checkout: the engine dies at each of these crash points, and resumes between them die, too."""

    mode: Mode
    how: flow.How
    kills: tuple[At | Held, ...] = ()
    """At most one in each part, in the order of the parts."""
    again: tuple[int, ...] = ()
    """For each kill the crash point, from 1, at which the following resume dies, too. Further resumes survive."""
    control: str = ""
    orders: int = flow.ORDERS
    by: flow.By = "click"

    def __str__(self) -> str:
        kills = ", ".join(map(str, self.kills))
        return f"{self.mode}, {self.how}, by {self.by}: killed at {kills}; resumes at their points {', '.join(map(str, self.again))}"


@dataclasses.dataclass
class Report:
    """The result of a checkout."""

    case: Case
    kills: list[str] = dataclasses.field(default_factory=list)
    """The kills, each as mode and crash point."""
    reached: list[At | Held] = dataclasses.field(default_factory=list)
    """The kills of the case that were reached. Others are in a part that a resume had begun before it died."""
    resumed: int = 0
    paused: int = 0
    lost: list[str] = dataclasses.field(default_factory=list)
    doubled: list[str] = dataclasses.field(default_factory=list)
    wrong: list[str] = dataclasses.field(default_factory=list)
    """All other deviations."""

    @property
    def fine(self) -> bool:
        """True if every promise was kept."""
        return not (self.lost or self.doubled or self.wrong)


class Trial:
    """A checkout in its own folder, on a shop that others use, too."""

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
            self._project.write("flow.yaml", flow.text(case.how, CONTROL_SECONDS if case.control else 10, case.by)),
            self._project.write("inputs.json", json.dumps(given)),
        ]
        self._record = folder.parent / f"{name}.record"
        self._disk = disk.Disk(
            folder, {str(each): each.stat().st_size for each in files}, {str(each) for each in files}
        )
        self._read = 0
        self._last: At | Held | None = None
        self._hurt = False
        """True if the browser of the last life was hurt."""
        self.output: Any = None

    @property
    def home(self) -> Path:
        """The folder of the run."""
        return self._project.folder / ".runops"

    def run(self) -> Report:
        """Kill it, resume it, judge it."""
        try:
            self._lives()
            self._judge()
        except Exception as error:  # noqa: BLE001 - whatever it is, it was found
            self.report.wrong.append(f"{type(error).__name__}: {error}")
            self._count_doubled()
            self.report.lost += [each for each in self._wrongly_settled() if each not in self.report.lost]
        finally:
            self._end_browsers()
        return self.report

    def passed(self) -> list[tuple[str, str, int]]:
        """The crash points so far, in order: part, name, and number of its passing in that part of that process."""
        return [tuple(each["point"]) for each in disk.read(self._record) if "point" in each]

    # The lives

    def _lives(self) -> None:
        """Start; resume whenever it died or waits for an answer, until it has passed."""
        left, again = list(self.case.kills), list(self.case.again)
        in_resume = 0
        for _ in range(2 * len(left) + MOST_LIVES):
            ended = self._life([] if in_resume else left, in_resume)
            in_resume = 0
            if ended is None:
                if self._last is not None:
                    # Crash points in a part that is over cannot be reached any more.
                    left = left[left.index(self._last) + 1 :]
                    in_resume = again.pop(0) if again else 0
                continue
            said = json.loads(ended.stdout) if ended.stdout else {}
            result = said["runs"][0] if "runs" in said else said
            left = [each for each in left if each not in self.report.reached]
            if ended.returncode == 1 and self._hurt:
                # With its browser hurt a step fails whose action was found not done; the resume performs it.
                continue
            if ended.returncode == 0:
                self.output = result["output"]
                return
            if ended.returncode != 4:
                raise RuntimeError(f"exit {ended.returncode}: {ended.stderr[-1500:]}")
            self._answer(result["question"])
        raise RuntimeError("it does not end")

    def _life(self, kills: Sequence[At | Held], in_resume: int) -> subprocess.CompletedProcess[str] | None:
        """Start or resume; None where it died, and then ``_last`` is the one of ``kills`` that killed it."""
        before = len(self.passed())
        self._last, self._hurt = None, False
        points = [(each.part, each.point, each.number) for each in kills if isinstance(each, At)]
        due = {self._path(each): each for each in kills if isinstance(each, Held)}
        switches = [self._shop.switch("hold", path, method="POST", moment=each.moment) for path, each in due.items()]
        with self._start(points, in_resume) as engine, concurrent.futures.ThreadPoolExecutor(1) as pool:
            ending = pool.submit(engine.result, SECONDS)
            while (waits := self._await_request(due, ending)) is not None:
                self._last = due.pop(waits["path"])
                self._kill(self._last.victim, engine.pid)
                if self._last.victim == "engine":
                    break
                self._hurt = True
                self.report.kills.append(f"{self.case.mode} {self._last}")
                self.report.reached.append(self._last)
                self._shop.api("POST", "/_release", {"id": waits["id"], "go_on": self._last.accepts})
            ended = ending.result()
        for each in switches:
            self._shop.api("DELETE", f"/_switch/{each}")
        if "Traceback" in ended.stderr:
            self.report.wrong.append(f"a traceback: {ended.stderr[-800:]}")
        if ended.returncode != -signal.SIGKILL:
            return ended
        if waits is not None:
            assert isinstance(self._last, Held)
            self._died(str(self._last))
            self._shop.api("POST", "/_release", {"id": waits["id"], "go_on": self._last.accepts})
        else:
            part, point, number = self.passed()[-1] if len(self.passed()) > before else ("", "?", 0)
            self._last = next((each for each in kills if each == At(part, point, number)), None)
            self._died(str(At(part, point, number)))
        if self._last is not None:
            self.report.reached.append(self._last)
        return None

    def _kill(self, victim: Victim, engine: int) -> None:
        if victim == "engine":
            os.kill(engine, signal.SIGKILL)
            return
        (file,) = self.home.glob("private/*/browser.json")
        for process in psutil.Process(json.loads(file.read_text())["chromium"]).children(recursive=True):
            with contextlib.suppress(psutil.NoSuchProcess):
                if any(_PROCESSES[victim] in each for each in process.cmdline()):
                    process.kill()

    def _await_request(self, due: Mapping[str, Held], ending: concurrent.futures.Future[Any]) -> dict[str, Any] | None:
        """The first expected request that the shop has received; None where the engine ended before."""
        while due and not ending.done():
            if found := [each for each in self._shop.held() if each["path"] in due]:
                return found[0]
            concurrent.futures.wait([ending], timeout=LOOK_SECONDS)
        return None

    def _path(self, held: Held) -> str:
        return f"/cart/{self.orders[int(held.part) - 1]}/{held.action}"

    def _start(self, points: Sequence[tuple[str, str, int]], in_resume: int) -> warm.Forked:
        begins = not self._begun()
        fate = mortal.Fate(str(self._record), points, in_resume, begins, self.case.control)
        arguments = ["resume", "last", "--json"]
        if begins:
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
        events = disk.read(self._record)
        self._disk.learn(events[self._read :])
        self._read = len(events)
        if self.case.mode == "power":
            self._disk.cut()

    def _answer(self, question: dict[str, Any]) -> None:
        """Answer a question truthfully, as a person who looks at the site."""
        self.report.paused += 1
        # The network process took session cookies with it, so `confirm` may find a sign-in page.
        if self.case.how == "confirm" and not self._hurt:
            self.report.wrong.append(f"asked a person although `confirm` can tell: {question['message']}")
        self._count_doubled()
        step = str(question["path"])
        order, action = step.partition("#")[2].partition("]")[0], step.rpartition("/")[2]
        verdict = "done" if self._times(KINDS[action], order) else "not-done"
        decided = self._project.runops("decide", "last", verdict)
        if decided.returncode not in (0, 4):
            raise RuntimeError(f"decide: exit {decided.returncode}: {decided.stderr}")

    # The judge

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
        """Actions that are done in the log but not in the shop."""
        found: list[str] = []
        store = file_store.Files(self.home)
        for run in store.ids():
            past = history.History(store.read(run).entries)
            for path in past.order:
                action, order = path.rpartition("/")[2], path.partition("#")[2].partition("]")[0]
                if action in KINDS and past.done(path) is not None and not self._times(KINDS[action], order):
                    found.append(f"{KINDS[action]} {order}")
        return found

    def _judge_forms(self) -> None:
        """Typed values were sent with the action, also where they were typed again."""
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

    # Cleanup

    def _end_browsers(self) -> None:
        """Kill the browser that a killed engine left, by its state file, and wait until it is gone."""
        for file in self.home.glob("private/*/browser.json"):
            state = json.loads(file.read_text())
            left = [each for pid in (state["watcher"], state["chromium"]) for each in _with_children(pid)]
            for each in left:
                with contextlib.suppress(psutil.NoSuchProcess):
                    each.kill()
            until = time.monotonic() + SECONDS
            while not all(map(_is_over, left)) and time.monotonic() < until:
                time.sleep(0.01)
            for folder in state["folders"]:
                shutil.rmtree(folder, ignore_errors=True)


def _is_over(process: psutil.Process) -> bool:
    """True if it has ended, even if not reaped yet."""
    try:
        return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def _with_children(pid: int) -> list[psutil.Process]:
    """The process and its descendants; empty where it has ended."""
    try:
        process = psutil.Process(pid)
        return [process, *process.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []
