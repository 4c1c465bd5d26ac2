"""Cost ledger, folded from a log: every model request with its cost, and the answers that a resumed run need not pay again."""

from __future__ import annotations

import dataclasses
import datetime as dt
import decimal
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from nodes.values import Json
from runtime.log import entries, step_paths

MONEY = ("dollars", "known_dollars")  # parts of totals that are sums of money, as texts


@dataclasses.dataclass(slots=True)
class Spent:
    line: int  # line of the log that announced it; for an answer from a cassette the line of the answer
    at: str
    path: str
    thread: str
    model: str  # model as requested; as the server names it once it has answered
    estimate: int  # input tokens, as estimated before it was sent
    limit: int
    status: str = "open"  # `ok`; `error`; `open` while it has no outcome, also if its process died
    source: entries.Source = "model"
    usage: entries.Usage | None = None
    dollars: decimal.Decimal | None = None
    seconds: float = 0.0
    free: bool = False  # true if the server did not work on it
    error: str | None = None
    response: str | None = None
    key: str = ""
    asked: str = ""
    raw: int = 0  # input tokens by the token list alone, without what was learnt about the model
    waited: float = 0.0
    """Seconds for which an earlier process waited for the same response in the background; part of ``seconds``."""
    allowed: float = 0.0

    def is_within(self, path: str) -> bool:
        return self.path == path or self.path.startswith(f"{path}/")

    @property
    def paid(self) -> bool:
        return self.source == "model" and not self.free

    @property
    def tokens(self) -> int:
        """Tokens that it had; if unknown, the maximum that it may have had."""
        return self.usage.input + self.usage.output if self.usage else self.estimate + self.limit


@dataclasses.dataclass(slots=True)
class Settled:
    calls: int = 0
    tokens: int = 0
    seconds: float = 0.0
    dollars: decimal.Decimal = decimal.Decimal(0)
    unpriced: list[Spent] = dataclasses.field(default_factory=list)
    """Paid requests whose price the log does not hold; ``dollars`` is without them."""

    def add(self, row: Spent) -> None:
        if row.source != "model":
            return
        self.calls, self.seconds = self.calls + 1, self.seconds + row.seconds
        if row.free:
            return
        self.tokens += row.tokens
        if row.dollars is None:
            self.unpriced.append(row)
        else:
            self.dollars += row.dollars


class Ledger:
    """Fold of all model requests. ``add`` takes the entries of model threads in order."""

    def __init__(self) -> None:
        self.rows: list[Spent] = []
        self._open: dict[str, Spent] = {}
        self._settled: dict[str | None, Settled] = {}
        """Sums by the path of each step, including all work done for it; the sum of all is under None."""
        self._answers: dict[str, dict[str, entries.Assistant]] = {}
        self._waiting: dict[str, dict[str, str]] = {}
        self.exchanges = 0  # number of answers from models and from the cassette; one that was used again counts once
        self.answered = False
        self.runs: list[tuple[str, entries.Ran]] = []
        """Spending of runs that a session followed, in order; their requests are not in ``rows``."""

    def add(self, entry: entries.AnyEntry, path: str) -> None:
        """Take an entry of the step at ``path``. Entries that do not concern a model change nothing here."""
        match entry:
            case entries.Note(name="requested"):
                self._requested(entry, path)
            case entries.Note(name="submitted"):
                key, response = str(entry.data["key"]), str(entry.data["response"])
                self._waiting.setdefault(entry.thread, {})[key] = response
                row = self._open.get(entry.thread)
                if row is not None and row.response == response:
                    # The process that asked is gone, and one that continues its thread waits for the same response.
                    row.waited = row.seconds
                row = row or self._adopted(entry.thread, response)
                if row is not None:
                    row.response = response
            case entries.Assistant():
                self._answered(entry, path)
            case entries.ModelError(pending=True):
                if (row := self._open.get(entry.thread)) is not None:
                    row.error, row.seconds = str(entry.error.get("code")), row.waited + (entry.seconds or 0.0)
            case entries.ModelError():
                row = self._open.pop(entry.thread, None)
                if row is not None:
                    row.status, row.usage, row.free = "error", entry.usage, bool(entry.free)
                    row.dollars, row.seconds = _decimal(entry.dollars), row.waited + (entry.seconds or 0.0)
                    row.error = str(entry.error.get("code"))
                    self.settle(row)
                    # The background request failed, so its response is never fetched.
                    self._waiting.get(entry.thread, {}).pop(row.key, None)
            case entries.Event(run=str(run), spent=entries.Ran() as spent):
                self.runs.append((run, spent))
            case entries.Note(name="child-ended") if entry.data.get("spent") is not None:
                self.runs.append((str(entry.data["run"]), entries.Ran.model_validate(entry.data["spent"])))
            case _:
                pass

    def _requested(self, entry: entries.Note, path: str) -> None:
        data: dict[str, Any] = entry.data
        row = Spent(entry.seq, entry.at, path, entry.thread, data["model"], data["estimate"], data["limit"])
        row.key, row.asked, row.raw, row.allowed = data["key"], data["model"], data["raw"], float(data["seconds"])
        self.rows.append(row)
        if (lost := self._open.pop(entry.thread, None)) is not None:
            self.settle(lost)
        self._open[entry.thread] = row

    def stopped(self, at: str) -> None:
        """Record that the asking process is gone, at the latest at ``at``. Its wait counts until then, limited by the allowed time."""
        self.answered = False
        for row in self._open.values():
            if not row.seconds:
                passed = dt.datetime.fromisoformat(at) - dt.datetime.fromisoformat(row.at)
                row.seconds = max(0.0, min(passed.total_seconds(), row.allowed))

    def _adopted(self, thread: str, response: str) -> Spent | None:
        found = next((each for each, row in self._open.items() if row.response == response), None)
        if found is None:
            return None
        self._waiting.pop(found, None)
        row = self._open[thread] = self._open.pop(found)
        row.waited = row.seconds
        return row

    def _answered(self, entry: entries.Assistant, path: str) -> None:
        if not entry.masked:
            # A masked answer cannot be used again.
            self._answers.setdefault(entry.thread, {})[entry.key] = entry
        self._waiting.get(entry.thread, {}).pop(entry.key, None)
        row = self._open.pop(entry.thread, None)
        if entry.source != "log":
            self.exchanges += 1
            self.answered = True
        if row is None:
            if entry.source != "cassette":
                return
            row = Spent(entry.seq, entry.at, path, entry.thread, entry.model, 0, 0, key=entry.key)
            self.rows.append(row)
        row.status, row.source, row.usage, row.model = "ok", entry.source, entry.usage, entry.model
        row.dollars, row.seconds = _decimal(entry.dollars), row.waited + (entry.seconds or 0.0)
        row.response = entry.response
        self.settle(row)

    def settle(self, row: Spent) -> None:
        for path in (None, row.path, *step_paths.around(row.path)):
            self._settled.setdefault(path, Settled()).add(row)

    def settled(self, path: str | None = None) -> Settled:
        """Return the sum of the requests that are over: of the step at ``path`` and all work for it, or of all."""
        return self._settled.get(path) or Settled()

    def unsettled(self, path: str | None = None) -> Iterator[Spent]:
        return (row for row in self._open.values() if path is None or row.is_within(path))

    def answer(self, threads: Iterable[str], key: str) -> entries.Assistant | None:
        return _first(self._answers, threads, key)

    def waiting(self, threads: Iterable[str], key: str) -> str | None:
        """Return the id of the background response to the request ``key`` that one of these threads still waits for."""
        return _first(self._waiting, threads, key)

    def within(self, path: str) -> Iterator[Spent]:
        return (row for row in self.rows if row.is_within(path))

    def totals(self) -> dict[str, Json] | None:
        return totals(self.rows) if self.rows else None

    def totals_by_run(self) -> dict[str, dict[str, Json]]:
        runs: dict[str, list[Mapping[str, Json]]] = {}
        for run, spent in self.runs:
            if spent.totals is not None:
                runs.setdefault(run, []).append(spent.totals)
        return {run: together(each) for run, each in runs.items()}

    def totals_by_step(self) -> dict[str, dict[str, Json]]:
        steps: dict[str, list[Spent]] = {}
        for row in self.rows:
            steps.setdefault(row.path, []).append(row)
        return {path: totals(rows) for path, rows in steps.items()}


Found = TypeVar("Found")


def _first(known: Mapping[str, Mapping[str, Found]], threads: Iterable[str], key: str) -> Found | None:
    return next((found for each in threads if (found := known.get(each, {}).get(key)) is not None), None)


def totals(rows: Sequence[Spent]) -> dict[str, Json]:
    """Return the totals of these requests, as the log and programs read them.

    ``dollars`` is a text, and null if the price of any possibly paid request is unknown. ``known_dollars`` is the cost of the others.
    """
    paid = [row for row in rows if row.paid]
    known = all(row.dollars is not None for row in paid)
    money = sum((row.dollars for row in paid if row.dollars is not None), decimal.Decimal(0))
    return {
        "requests": len(rows),
        "paid": len(paid),
        "input_tokens": sum(row.usage.input for row in rows if row.usage),
        "cached_tokens": sum(row.usage.cached for row in rows if row.usage),
        "output_tokens": sum(row.usage.output for row in rows if row.usage),
        "reasoning_tokens": sum(row.usage.reasoning for row in rows if row.usage),
        "dollars": plain(money) if known else None,
        "known_dollars": plain(money),
        "seconds": round(sum(row.seconds for row in rows), 3),
    }


def together(spent: Sequence[Mapping[str, Json]]) -> dict[str, Json]:
    return {name: _sum(name, [each[name] for each in spent]) for name in spent[0]}


def less(spent: Mapping[str, Json], before: Mapping[str, Json]) -> dict[str, Json]:
    return {name: _sum(name, [spent[name]], [before[name]]) for name in spent}


def _sum(name: str, values: Sequence[Json], minus: Sequence[Json] = ()) -> Json:
    """Return one part of totals; null if it is null in any of them."""
    if None in (*values, *minus):
        return None
    plus, less = ([decimal.Decimal(str(each)) for each in those] for those in (values, minus))
    exact = sum(plus, decimal.Decimal(0)) - sum(less, decimal.Decimal(0))
    if name in MONEY:
        return plain(exact)
    return round(float(exact), 3) if name == "seconds" else int(exact)


def plain(dollars: decimal.Decimal) -> str:
    return f"{dollars.normalize():f}" if dollars else "0"


def _decimal(text: str | None) -> decimal.Decimal | None:
    return decimal.Decimal(text) if text is not None else None
