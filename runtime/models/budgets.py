"""Budget check before each request: the budgets of its step and its run must have enough left. Reads only the ledger.

Each must have the estimated input and the whole maximum output left. An answered request counts with its real cost, one with an unknown
outcome with its estimate. So a budget is exceeded at most by the estimate's error for one request's input.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import ROUND_UP, Decimal

from nodes import budgets
from nodes.budgets import Budget, BudgetPart
from nodes.errors import BudgetReached, RunOpsError
from nodes.values import Json
from runtime.log import entries
from runtime.log.ledger import Ledger, Spent, less, plain
from runtime.messages.messages import Request, Usage


@dataclasses.dataclass(frozen=True, slots=True)
class Requester:
    """Sender of a request: a step, or a session."""

    path: str
    budget: Budget | None
    """Limit for all its attempts and for everything that works for it; None if it has no own budget."""
    within: Requester | None = None  # the requester it works for, whose budget applies as well


@dataclasses.dataclass(frozen=True, slots=True)
class Amount:
    calls: int = 0
    tokens: int = 0
    dollars: Decimal | None = Decimal(0)  # None if a price is unknown
    seconds: float = 0.0

    def __add__(self, other: Amount) -> Amount:
        known = self.dollars is not None and other.dollars is not None
        return Amount(
            self.calls + other.calls,
            self.tokens + other.tokens,
            (self.dollars or Decimal(0)) + (other.dollars or Decimal(0)) if known else None,
            self.seconds + other.seconds,
        )

    def __sub__(self, other: Amount) -> Amount:
        dollars = -other.dollars if other.dollars is not None else None
        return self + Amount(-other.calls, -other.tokens, dollars, -other.seconds)


@dataclasses.dataclass(frozen=True, slots=True)
class Account:
    budget: Budget
    spent: Amount
    path: str | None = None  # the step that has the budget; None for that of the run
    session: str | None = None
    """Name of the session with the budget, as commands take it, also for a delegate's budget; None for a run or a step."""
    command: str = "chat"

    @property
    def left_seconds(self) -> float:
        """Seconds left to wait for models; infinite without a limit, never below 0."""
        limit = self.budget.time
        return math.inf if limit is None else max(0.0, float(limit) - self.spent.seconds)

    @property
    def share_left(self) -> float:
        """The smallest share left of any part of the budget, from 0 to 1; 1 without a limit."""
        parts = self._parts(Amount())
        left = (float(max(Decimal(0), 1 - spent / limit)) if limit else 0.0 for _part, limit, spent, _need in parts)
        return min(left, default=1.0)

    def check(self, need: Amount) -> None:
        """Raise BudgetReached where a request that may cost ``need`` does not fit."""
        over: list[tuple[BudgetPart, Decimal, Decimal, Decimal]] = [
            (part, limit, spent, needed)
            for part, limit, spent, needed in self._parts(need)
            if spent + needed > limit or (part == "time" and spent >= limit)
        ]
        if over:
            # Propose a budget that is enough in all parts at once.
            larger = {part: _larger(part, max(limit, spent + needed)) for part, limit, spent, needed in over}
            raise self._reached(*over[0], self.budget.model_copy(update=larger))

    def _parts(self, need: Amount) -> Iterator[tuple[BudgetPart, Decimal, Decimal, Decimal]]:
        """Yield each part that is limited, with its limit, what was spent, and what is needed."""
        budget, spent = self.budget, self.spent
        parts: dict[BudgetPart, tuple[Decimal | int | None, Decimal, Decimal]] = {
            "calls": (budget.calls, Decimal(spent.calls), Decimal(need.calls)),
            "tokens": (budget.tokens, Decimal(spent.tokens), Decimal(need.tokens)),
            "money": (budget.money, spent.dollars or Decimal(0), need.dollars or Decimal(0)),
            "time": (budget.time, Decimal(repr(round(spent.seconds, 3))), Decimal(0)),
        }
        for part, (limit, had, needed) in parts.items():
            if limit is not None:
                yield part, Decimal(limit), had, needed

    def _reached(
        self, part: BudgetPart, limit: Decimal, spent: Decimal, needed: Decimal, larger: Budget
    ) -> BudgetReached:
        names = ("the run", "the step") if self.session is None else ("the session", "the delegate")
        whose = names[0] if self.path is None else f"{names[1]} `{self.path}`"
        written = FORMATS[part]
        left = max(Decimal(0), limit - spent)
        wants = f", and the next request may need {written(needed)}" if needed else ""
        evidence: dict[str, Json] = {
            "of": "step" if self.path is not None else "run" if self.session is None else "session",
            "session": self.session,
            "command": self.command if self.command != "chat" else None,
            "part": part,
            "limit": written(limit),
            "spent": written(spent),
            "needed": written(needed) if needed else None,
            "budget": str(self.budget),
        }
        return BudgetReached(
            "budget-reached",
            f"{whose} has {written(left)} left of its budget of {written(limit)} ({part}){wants}",
            fix=self._fix(larger),
            evidence={name: value for name, value in evidence.items() if value is not None},
        )

    def _fix(self, larger: Budget) -> str:
        if self.path is None:
            command = "resume last" if self.session is None else f"{self.command} --resume {self.session}"
            return f"continue with more: `runops {command} --budget {larger}`"
        if self.session is not None:
            return "ask for less in one task"
        return f"give the step more in its file (`budget: {larger}`) and continue: `runops resume last --allow-changed`"


FORMATS: dict[BudgetPart, Callable[[Decimal], str]] = {
    "money": budgets.money,
    "tokens": lambda value: budgets.tokens(int(value)),
    "calls": lambda value: str(int(value)),
    "time": budgets.time,
}


def _larger(part: BudgetPart, amount: Decimal) -> Decimal | int:
    wanted = 2 * amount
    step = Decimal(1).scaleb(wanted.adjusted() - 1)
    wanted = (wanted / step).quantize(Decimal(1), rounding=ROUND_UP) * step
    wanted = min(wanted, budgets.LARGEST[part])
    return math.ceil(wanted) if part in ("tokens", "calls") else wanted


Price = Callable[[Usage, str], Decimal | None]


def spent(rows: Iterable[Spent], price: Price) -> Amount:
    return sum((_of(row, price) for row in rows), Amount())


def spent_within(ledger: Ledger, price: Price, path: str | None = None) -> Amount:
    """Return the cost of all requests of the step at ``path`` and of everything that works for it; without a path, of the whole ledger."""
    settled = ledger.settled(path)
    dollars: Decimal | None = settled.dollars
    for row in settled.unpriced:
        if (each := _price(row, price)) is None:
            dollars = None
            break
        dollars += each
    return Amount(settled.calls, settled.tokens, dollars, settled.seconds) + spent(ledger.unsettled(path), price)


def _of(row: Spent, price: Price) -> Amount:
    if row.source != "model":
        return Amount()
    if row.free:
        return Amount(calls=1, seconds=row.seconds)
    return Amount(1, row.tokens, row.dollars if row.dollars is not None else _price(row, price), row.seconds)


def _price(row: Spent, price: Price) -> Decimal | None:
    usage = row.usage
    counted = (
        Usage(usage.input, usage.cached, usage.output, usage.reasoning)
        if usage is not None
        else Usage(row.estimate, 0, row.limit, 0)
    )
    # A server may answer with another model name than the one requested.
    return price(counted, row.asked or row.model)


def need(request: Request, estimate: int, price: Price) -> Amount:
    """Return the most that a request may cost; ``estimate`` are the tokens of its input."""
    most = Usage(estimate, 0, request.max_output, 0)
    return Amount(1, estimate + request.max_output, price(most, request.model))


@dataclasses.dataclass(frozen=True, slots=True)
class Allowance:
    """Budget of the session that follows a run: the run spends from it, too."""

    session: str
    budget: Budget
    spent: Amount  # spent by the session so far, minus the run's costs before the session followed it
    command: str = "chat"


def accounts(
    ledger: Ledger, run: Budget | None, asked: Requester, price: Price, allowance: Allowance | None = None
) -> list[Account]:
    """Return the budgets that a request of a step falls under, its own first; ``allowance`` comes from the session that follows the run."""
    chain = [asked]
    while (more := chain[-1].within) is not None:
        chain.append(more)
    # A requester without a step path exists only in a session: it is the session itself.
    session = None if chain[-1].path else "last"
    found = [
        Account(each.budget, spent_within(ledger, price, each.path), each.path, session)
        for each in chain
        if each.budget is not None
    ]
    if run is not None:
        found.append(Account(run, spent_in_all(ledger, price), session=session))
    if allowance is not None:
        own = allowance.spent + spent_within(ledger, price)
        found.append(Account(allowance.budget, own, session=allowance.session, command=allowance.command))
    return found


def spent_in_all(ledger: Ledger, price: Price) -> Amount:
    return sum((amount(each) for _run, each in ledger.runs), spent_within(ledger, price))


def amount(ran: entries.Ran) -> Amount:
    return Amount(ran.calls, ran.tokens, Decimal(ran.dollars) if ran.dollars is not None else None, ran.seconds)


def ran(ledger: Ledger, price: Price, before: entries.Ran | None = None) -> entries.Ran:
    now, totals = spent_within(ledger, price), ledger.totals()
    if before is not None:
        now -= amount(before)
        totals = less(totals, before.totals) if totals is not None and before.totals is not None else totals
    return entries.Ran(
        calls=now.calls,
        tokens=now.tokens,
        dollars=plain(now.dollars) if now.dollars is not None else None,
        seconds=round(now.seconds, 3),
        totals=totals,
    )


def afford(found: Sequence[Account], needed: Amount, unknown: Callable[[], RunOpsError]) -> float:
    """Return the seconds that these budgets leave for a request; infinite without a limit. Raises BudgetReached, and ``unknown``."""
    for each in found:
        if each.budget.money is not None and None in (needed.dollars, each.spent.dollars):
            raise unknown()
        each.check(needed)
    return min((each.left_seconds for each in found), default=math.inf)
