"""A run that asks models, in its own folder: a real command, Chromium, model client and shop ledger.

It is killed at crash points by number, and resumed to its end; where it pauses, the answer is the truth from the shop.
"""

from __future__ import annotations

import collections
import dataclasses
import json
import signal
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from nodes.values import Json
from runtime.log import entries, history
from runtime.log.store import file_store
from runtime.testing import responses, scripted_model
from tests import warm
from tests.command import Project
from tests.kills import disk, mortal
from tests.shop_process import Shop

SECONDS = 180.0
"""Timeout of a command. None takes so long, unless it hangs."""

MOST_PAUSES = 4
"""The most pauses of a run. None needs so many, unless it asks for ever."""

NOTHING_SENT = ("requested", "request-synced")
"""Crash points at which a request is announced but not yet sent."""

PAUSED = 4


@dataclasses.dataclass(frozen=True)
class Plot:
    """The subject of the runs."""

    flow: str
    orders: int
    """The number of orders given as the input ``references``."""
    due: Callable[[Sequence[str]], Json]
    """The expected output for these orders."""
    voice: Callable[[], scripted_model.Script]
    """The model of one run."""
    environment: Mapping[str, str] = dataclasses.field(default_factory=dict[str, str])


@dataclasses.dataclass
class Trial:
    """One run."""

    name: str
    folder: Path
    plot: Plot
    shop: Shop
    server: warm.Warm
    background: bool = False
    survives: bool = True
    """True if the browser outlives the process that drives it."""
    kills: list[str] = dataclasses.field(default_factory=list[str])
    """The crash points at which it died."""
    on_the_way: int = 0
    """The number of deaths with a request sent and unanswered."""
    answers: int = 0
    """The number of answers that the model gave."""
    paused: int = 0
    """The number of questions to a person."""
    output: Json = None
    wrong: list[str] = dataclasses.field(default_factory=list[str])

    def __post_init__(self) -> None:
        """Make the folder."""
        self.folder.mkdir()
        self.orders = [f"{self.name}-{number}" for number in range(1, self.plot.orders + 1)]
        linger = "120" if self.survives else "0"
        self._project = Project(
            self.folder, SHOP_PASSWORD=self.shop.password, RUNOPS_LINGER=linger, **self.plot.environment
        )
        self._project.write("flow.yaml", self.plot.flow)
        given = {"base_url": self.shop.url, "references": self.orders}
        self._project.write("inputs.json", json.dumps(given))
        self._record = self.folder.parent / f"{self.name}.record"

    @property
    def passed(self) -> list[str]:
        """The crash points so far, in order."""
        return [each["point"][1] for each in disk.read(self._record) if "point" in each]

    def run(self, deaths: Sequence[int]) -> Trial:
        """Run it to its end. Its lives die at these crash points, each from 1."""
        with responses.serve(self.plot.voice()) as model:
            self._project.environment |= {
                "RUNOPS_MODEL": "test-model",
                "RUNOPS_MODEL_BASE_URL": model.url,
                "RUNOPS_MODEL_KEY": model.key,
                "RUNOPS_MODEL_PROFILE": "openai",
                "RUNOPS_MODEL_BACKGROUND": str(self.background).lower(),
            }
            left = [*deaths]
            answer: str | None = None
            while True:
                code = self._life(left.pop(0) if left else 0, answer)
                answer = self._decision() if code == PAUSED else None
                if (code is not None and answer is None) or self.paused > MOST_PAUSES:
                    break
            self.answers = sum(each.status == 200 for each in model.asked)
            self.wrong += model.problems
        self._judge()
        return self

    def _life(self, deadly: int, answer: str | None) -> int | None:
        """Start or resume; its exit code, None where it was killed."""
        begins = not any(b"\n" in each.read_bytes() for each in self.folder.glob(".runops/conversations/*.jsonl"))
        arguments = ["resume", "last"]
        if begins:
            arguments = ["run", "flow.yaml", "--inputs", "inputs.json"]
        elif answer is not None:
            arguments = ["decide", "last", answer]
        fate = mortal.Fate(str(self._record), any=deadly, begins=begins)
        environment = {**self._project.environment, **fate.environment()}
        with self.server.start([*arguments, "--json"], self.folder, environment) as process:
            ended = process.result(SECONDS)
        if ended.returncode == -signal.SIGKILL:
            self.kills.append(self.passed[-1])
            sent = self.kills[-1] not in NOTHING_SENT
            self.on_the_way += sent and any(row.status == "open" for row in self._history().ledger.rows)
            return None
        if ended.returncode not in (0, PAUSED):
            self.wrong.append(f"exit {ended.returncode}: {ended.stderr[-1500:]}")
        elif ended.returncode == 0:
            result = json.loads(ended.stdout)
            self.output = result.get("runs", [result])[0]["output"]
        return ended.returncode

    def _decision(self) -> str | None:
        """The answer of a person who has looked at the shop; None to another question, which this site gives no reason for."""
        self.paused += 1
        question = self._history().question
        assert question is not None
        ref = next((each for each in self.orders if f"#{each}]" in (question.data["path"] or "")), None)
        if ref is None:
            self.wrong.append(f"asked {question.data}")
            return None
        return "done" if self.shop.ledger("cart", ref) else "not-done"

    def _entries(self) -> list[entries.AnyEntry]:
        store = file_store.Files(self.folder / ".runops")
        return [entry for run in store.ids() for entry in store.read(run).entries]

    def _history(self) -> history.History:
        return history.History(self._entries())

    def _judge(self) -> None:
        past = self._history()
        self.wrong += [f"the call {each.call.call} is open" for each in past.open_calls()]
        paid = [row.response for row in past.ledger.rows if row.status == "ok" and row.source == "model"]
        self.wrong += [
            f"{each} was paid {times} times" for each, times in collections.Counter(paid).items() if times > 1
        ]
        if self.output != self.plot.due(self.orders):
            self.wrong.append(f"the output is {self.output}")
        for ref in self.orders:
            times = len(self.shop.ledger("cart", ref))
            if times != 1:
                self.wrong.append(f"{ref} was put into the cart {times} times")
