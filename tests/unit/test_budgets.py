"""Budgets: their text form, what is left of one, and that spending stays within it."""

import math
import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from nodes import budgets as written
from nodes.budgets import BadBudget, Budget, default
from nodes.errors import BudgetReached, UsageError, can_be_passed
from nodes.part import Part
from runtime.log import entries
from runtime.log.ledger import Ledger, Spent
from runtime.messages.messages import Message, Request, Usage
from runtime.models import budgets, run_models
from runtime.settings import prices, settings

BUDGETS = st.builds(
    lambda **parts: Budget.model_validate({name: value for name, value in parts.items() if value is not None}),
    money=st.none() | st.decimals("0.000001", "1000000", places=6),
    tokens=st.none() | st.integers(1, 10**12),
    calls=st.none() | st.integers(1, 10**9),
    time=st.integers(1, 30 * 24 * 3600) | st.decimals("0.001", "2000", places=3),
)

OWN = {"m": prices.Price.model_validate({"input": 2, "cached": 1, "output": 10})}


class Holder(Part):
    budget: Budget | None = None


# The text form.


@given(BUDGETS)
def test_a_budget_and_its_text_are_the_same(budget: Budget) -> None:
    """The text of a budget parses to that budget, also with spaces, in any order or case, and as a map."""
    text = str(budget)
    parts = text.split(",")
    assert written.parse(text) == budget
    assert written.parse("  ,".join(reversed(parts)).replace("=", " = ").upper()) == budget
    as_map = dict(each.split("=") for each in parts)
    assert Holder.model_validate({"budget": as_map}).budget == budget == Holder.model_validate({"budget": text}).budget


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("tokens=1.5k", {"tokens": 1500}),
        ("tokens=2M", {"tokens": 2_000_000}),
        ("tokens=200_000", {"tokens": 200_000}),
        ("money=$0.50", {"money": Decimal("0.5")}),
        ("money = 3 USD , time=90", {"money": Decimal(3), "time": Decimal(90)}),
        ("time=1.5h", {"time": Decimal(5400)}),
        ("time=5m,calls=7", {"time": Decimal(300), "calls": 7}),
    ],
)
def test_the_units_of_a_budget(text: str, wanted: dict[str, Any]) -> None:
    """Suffixes multiply tokens and time; bare numbers are tokens, dollars, requests or seconds."""
    assert {name: value for name, value in written.parse(text).model_dump().items() if value is not None} == wanted


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("money=$1,time=90", "money=1.00usd,time=90s"),
        ("money=100,tokens=200000", "money=100.00usd,tokens=200k"),
        ("money=0.0012500,tokens=3000k", "money=0.00125usd,tokens=3m"),
        ("calls=07,time=1.5h", "calls=7,time=90m"),
        ("tokens=1234,time=7200", "tokens=1234,time=2h"),
        ("time=0.25m,tokens=0.1k", "tokens=100,time=15s"),
    ],
)
def test_the_canonical_text_of_a_budget(text: str, wanted: str) -> None:
    """Parts have a fixed order, money has cents, and units are the largest that give a whole number."""
    assert str(written.parse(text)) == wanted


@pytest.mark.parametrize(
    ("text", "named", "fix"),
    [
        ("token=200k", "`token`", "did you mean `tokens=200k`?"),
        ("calls=4,monney=1usd", "`monney`", "did you mean `money=1usd`?"),
        ("tokens=200,000", "`000`", "a comma separates parts"),
        ("tokens=1.5", "`tokens`", "money="),
        ("tokens=5x", "`tokens`", "money="),
        ("calls=0", "`calls`", "leave `calls` out"),
        ("calls=-3", "`calls`", "money="),
        ("calls=4k", "`calls`", "money="),
        ("money=0usd", "`money`", "leave `money` out"),
        ("money=5eur", "US dollars", "money="),
        ("money=1e9", "`money`", "money="),
        ("money=2000000", "`money`", "money="),
        ("time=3d", "`time`", "money="),
        ("time=", "`time`", "money="),
        ("time", "`time`", "money="),
        ("calls=4,calls=5", "`calls` is given twice", "money="),
        ("calls=4,", "comma too many", "money="),
        ("", "is empty", "money="),
    ],
)
def test_a_bad_part_is_named(text: str, named: str, fix: str) -> None:
    """An invalid budget is refused with its wrong part, and the fix shows the intended text and the grammar."""
    with pytest.raises(BadBudget) as caught:
        written.parse(text)
    assert named in str(caught.value)
    assert fix in caught.value.fix
    assert written.GRAMMAR in caught.value.fix


@pytest.mark.parametrize("given_", [{"token": 3}, {}, {"calls": True}, {"calls": [1]}, 7, ["calls=1"], {"money": None}])
def test_a_node_takes_no_other_budget(given_: Any) -> None:
    """Unknown parts, no parts, and values of other types are refused at a node."""
    with pytest.raises(ValidationError):
        Holder.model_validate({"budget": given_})


def test_the_default_has_no_money() -> None:
    """The default budget of a model node limits tokens, requests and time, which need no price."""
    assert str(default()) == "tokens=100k,calls=20,time=10m"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty current folder without settings."""
    monkeypatch.chdir(tmp_path)
    for name in ("RUNOPS_BUDGET", "RUNOPS_PRICES"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path / "pyproject.toml"


def test_a_budget_is_a_setting(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A budget comes from a flag, a variable, or pyproject.toml as text or table."""
    assert settings.load().budget is None
    assert str(settings.load(budget="calls=4").budget) == "calls=4"
    project.write_text('[tool.runops]\nbudget = {tokens = "200k", money = 0.5}\n')
    assert str(settings.load().budget) == "money=0.50usd,tokens=200k"
    monkeypatch.setenv("RUNOPS_BUDGET", "time=5m")
    assert str(settings.load().budget) == "time=5m"


@pytest.mark.parametrize(
    ("text", "place", "fix"),
    [
        ('budget = "token=3"', "pyproject.toml", "did you mean `tokens=3`?"),
        ("budget = {token = 3}", "pyproject.toml", "did you mean `tokens=3`?"),
        ("budget = 7", "pyproject.toml", written.GRAMMAR),
        ("flag", "--budget", "did you mean `calls=7`?"),
    ],
)
def test_a_bad_setting_names_its_place(project: Path, text: str, place: str, fix: str) -> None:
    """A bad budget is ``bad-budget`` (exit 2), with its place, the value and the grammar."""
    given_ = {"budget": "call=7"} if text == "flag" else {}
    if not given_:
        project.write_text(f"[tool.runops]\n{text}\n")
    with pytest.raises(UsageError) as caught:
        settings.load(**given_)
    assert (caught.value.code, caught.value.exit) == ("bad-budget", 2)
    assert place in caught.value.message
    assert fix in str(caught.value.fix)


# What is left of a budget.


def request(max_output: int = 100, model: str = "m") -> Request:
    """A request with this model and output limit."""
    return Request(model, "", (Message("user", "?"),), None, max_output)


def row(path: str = "a", *, usage: tuple[int, int] | None = (0, 0), **more: Any) -> Spent:
    """A request of the ledger; ``usage`` is input and output."""
    counted = entries.Usage(input=usage[0], cached=0, output=usage[1], reasoning=0) if usage is not None else None
    given_: dict[str, Any] = {"model": "m", "estimate": 0, "limit": 0, "status": "ok", **more}
    return Spent(1, "", path, "model:1", usage=counted, **given_)


def ledger(*rows: Spent) -> Ledger:
    """A ledger with these requests."""
    made = Ledger()
    for each in rows:
        had(made, each)
    return made


def had(made: Ledger, spent: Spent) -> None:
    """Adds a completed request to the ledger."""
    made.rows.append(spent)
    made.settle(spent)


def afford(
    made: Ledger, run: str | None, step: str, *, estimate: int = 10, limit: int = 100, path: str = "a", own: Any = OWN
) -> float:
    """Checks whether a request of the step at ``path`` fits."""
    asked = budgets.Requester(path, written.parse(step))
    return fits(made, written.parse(run) if run else None, asked, request(limit), estimate, own)


def fits(
    made: Ledger,
    run: Budget | None,
    asked: budgets.Requester,
    sent: Request,
    estimate: int,
    own: Any = OWN,
    allowance: budgets.Allowance | None = None,
) -> float:
    """Checks a request with the models of a run."""
    chosen = settings.Settings(prices=own)
    models = run_models.RunModels(chosen, None, run, Path("a.yaml"), Path("private"), {}, {}, allowance=allowance)
    return models.afford(made, asked, sent, estimate)


def reached(*args: Any, **more: Any) -> BudgetReached:
    """The error for a request that does not fit."""
    with pytest.raises(BudgetReached) as caught:
        afford(*args, **more)
    return caught.value


def test_a_request_fits_to_the_last_token() -> None:
    """Estimated input and the whole output limit must be left: one token less is refused."""
    made = ledger(row(usage=(500, 90)))
    assert afford(made, None, "tokens=700") == math.inf
    error = reached(made, None, "tokens=699")
    assert (error.code, error.exit, can_be_passed(error)) == ("budget-reached", 5, False)
    wanted = {"of": "step", "part": "tokens", "limit": "699", "spent": "590", "needed": "110", "budget": "tokens=699"}
    assert error.evidence == wanted
    assert "the step `a` has 109 left of its budget of 699 (tokens)" in error.message


@pytest.mark.parametrize(
    ("budget", "fits"),
    [("calls=3", True), ("calls=2", False), ("money=0.00224usd", True), ("money=0.002239usd", False)],
)
def test_calls_and_money_are_limited(budget: str, fits: bool) -> None:
    """Requests are counted, and money covers earlier requests and the most that the next one may cost."""
    # In millionths of a dollar: 800 in the ledger, 10 × 2 + 40 × 10 before, and at most 10 × 2 + 100 × 10 next are 2,240.
    second = row(usage=(10, 40 if budget.startswith("money") else 10))
    made = ledger(row(usage=(100, 10), dollars=Decimal("0.0008")), second, row("b", usage=None, source="cassette"))
    if fits:
        afford(made, None, budget)
    else:
        assert reached(made, None, budget).evidence["part"] == budget.partition("=")[0]


def test_unknown_usage_counts_with_its_estimate() -> None:
    """A request that crashed or failed without usage counts in full; one without work, or from a cassette, costs nothing."""
    crashed, broken = (row(usage=None, status=each, estimate=40, limit=60) for each in ("open", "error"))
    free, played = row(usage=None, status="error", free=True, limit=60), row(source="cassette", usage=(5, 5))
    assert afford(ledger(crashed, broken, free, played), None, "tokens=310") == math.inf
    assert reached(ledger(crashed, broken, free, played), None, "tokens=309").evidence["spent"] == "200"
    assert reached(ledger(crashed, broken, free, played), None, "calls=3").evidence["spent"] == "3"
    assert reached(ledger(crashed, broken), None, "money=0.002usd").evidence["part"] == "money"


def test_a_request_waits_no_longer_than_is_left() -> None:
    """The shortest time left limits the wait for an answer; without time left no request is sent."""
    made = ledger(row(seconds=50.0), row("b", seconds=200.0))
    assert afford(made, "time=5m", "time=90") == 40
    assert afford(made, "time=260", "time=90") == 10
    assert afford(made, None, "calls=5") == math.inf
    error = reached(made, "time=250", "calls=5")
    assert error.evidence == {"of": "run", "part": "time", "limit": "250s", "spent": "250s", "budget": "time=250s"}


def test_a_step_has_no_more_than_its_run() -> None:
    """The run's budget counts all steps, a step's budget only the step; both must allow a request."""
    made = ledger(row("a", usage=(100, 0)), row("b", usage=(800, 0)))
    assert afford(made, "tokens=1010", "tokens=210") == math.inf
    assert reached(made, "tokens=1009", "tokens=900").evidence["of"] == "run"
    assert reached(made, "tokens=5k", "tokens=209").evidence["of"] == "step"
    assert afford(made, "tokens=5k", "tokens=110", path="c") == math.inf


@given(BUDGETS, st.integers(1, 3000), st.integers(16, 3000), st.sampled_from(["run", "step"]))
def test_the_fix_fixes(budget: Budget, estimate: int, limit: int, whose: str) -> None:
    """With the budget named in the fix the request fits, and no part of it is smaller than before."""
    made = ledger(row(usage=(900, 100), seconds=10.0))

    def ask(text: str) -> None:
        run, step = (text, "calls=9") if whose == "run" else (None, text)
        afford(made, run, step, estimate=estimate, limit=limit)

    try:
        ask(str(budget))
    except BudgetReached as error:
        fix = str(error.fix)
        assert "runops resume last" in fix
        larger = re.findall(r"--budget (\S+)`|budget: (\S+)`", fix)[0][0 if whose == "run" else 1]
        ask(larger)
        parts = written.parse(larger).model_dump()
        assert all(value is None or parts[name] >= value for name, value in budget.model_dump().items())


def test_money_without_a_price_is_refused() -> None:
    """A money limit needs the prices of the next and earlier requests; the error says what to add."""
    with pytest.raises(UsageError) as caught:
        afford(ledger(), "money=1usd", "calls=5", own={})
    assert (caught.value.code, caught.value.exit) == ("price-unknown", 2)
    with pytest.raises(UsageError, match="the price of"):
        afford(ledger(row(usage=(10, 10), model="other")), None, "money=1usd")
    assert afford(ledger(row(usage=(10, 10), model="other")), "calls=7", "tokens=1k", own={}) == math.inf


# A session and its runs.


def followed(*spent: tuple[int, int], session: Ledger | None = None) -> Ledger:
    """The ledger of a session that followed runs with these requests and tokens."""
    made = session if session is not None else Ledger()
    for number, (calls, tokens) in enumerate(spent):
        ran_ = entries.Ran(calls=calls, tokens=tokens, dollars="0.001", seconds=2.5)
        made.add(entries.Event(run=f"R{number}", spent=ran_), "")
    return made


def test_runs_spend_the_budget_of_their_session() -> None:
    """Requests, tokens, money and time of followed runs count for the session, but are no rows of its ledger."""
    made = followed((3, 500), (1, 40), session=ledger(row("", usage=(60, 0))))
    assert len(made.rows) == 1
    for fits, over in (("calls=6", "calls=5"), ("tokens=710", "tokens=709"), ("time=6", "time=5")):
        assert afford(made, fits, "calls=9", path="") > 0
        assert reached(made, over, "calls=9", path="").evidence["of"] == "session"
    # 0.001 for each run, 0.00012 for its own request, at most 0.00102 for the next.
    assert afford(made, "money=0.00314usd", "calls=9", path="") == math.inf
    assert reached(made, "money=0.00313usd", "calls=9", path="").evidence["part"] == "money"


def test_a_run_spends_what_its_session_has_left() -> None:
    """The allowance counts the session's earlier spending and the run's own, except what the run spent before the session followed it."""
    run = ledger(row(usage=(100, 0)), row(usage=(100, 0)))
    price = prices_of_m
    before = budgets.ran(ledger(run.rows[0]), price)
    spent = budgets.spent_in_all(followed((2, 300)), price) - budgets.amount(before)
    asked = budgets.Requester("a", None)

    def left(budget: str, own: str | None = None) -> float:
        allowance = budgets.Allowance("S1", written.parse(budget), spent)
        return fits(run, written.parse(own) if own else None, asked, request(), 10, allowance=allowance)

    assert left("calls=4,tokens=510") == math.inf
    for over in ("calls=3", "tokens=509"):
        with pytest.raises(BudgetReached) as caught:
            left(over)
        assert (caught.value.evidence["of"], caught.value.evidence["session"]) == ("session", "S1")
        assert "runops chat --resume S1 --budget " in str(caught.value.fix)
    with pytest.raises(BudgetReached, match="the run has 0 left"):
        left("calls=4", own="calls=2")


def test_new_spending_of_a_run_is_the_difference() -> None:
    """An unknown price makes only the cost unknown; requests and tokens are still reported."""
    known, more, free = row(usage=(100, 10)), row(usage=(20, 5), seconds=1.5), row(model="free", usage=(1, 1))
    for each in (known, more):
        each.dollars = Decimal("0.001")
    before = budgets.ran(ledger(known), prices_of_m)
    since = budgets.ran(ledger(known, more), prices_of_m, before)
    assert (since.calls, since.tokens, since.dollars, since.seconds) == (1, 25, "0.001", 1.5)
    assert since.totals is not None
    assert (since.totals["requests"], since.totals["input_tokens"], since.totals["dollars"]) == (1, 20, "0.001")
    unknown = budgets.ran(ledger(known, free), prices_of_m, before)
    assert (unknown.calls, unknown.dollars) == (1, None)
    assert unknown.totals is not None
    assert (unknown.totals["dollars"], unknown.totals["known_dollars"]) == (None, "0")
    assert budgets.ran(ledger(), prices_of_m).totals is None


def prices_of_m(usage: Usage, model: str) -> Decimal | None:
    """The cost for the model `m`, None for others."""
    return prices.dollars(usage, model, OWN, "compatible")


# Spending stays within a budget.

STEPS = st.lists(
    st.tuples(
        st.sampled_from(["a", "b"]),
        st.integers(1, 3000),  # estimate
        st.integers(16, 2000),  # limit of the output
        st.floats(0, 1 / 0.95),  # actual input, as a share of the estimate
        st.floats(0, 1),  # actual output, as a share of the limit
        st.sampled_from(["ok", "open", "error", "free"]),
        st.floats(0, 20),
    ),
    max_size=25,
)


@given(STEPS, BUDGETS, BUDGETS)
def test_spending_stays_within_a_budget(steps: list[Any], run: Budget, step: Budget) -> None:
    """With estimates at most 5 % too low, spending exceeds a budget only by that error of one input. Calls and time are never exceeded."""
    made, real = Ledger(), list[tuple[str, int, Decimal, float]]()
    slack: dict[str, float] = dict.fromkeys(("a", "b", "all"), 0.0)
    for path, estimate, limit, actual, part, ends, seconds in steps:
        try:
            left = fits(made, run, budgets.Requester(path, step), request(limit), estimate)
        except BudgetReached:
            continue
        assert left > 0
        used = (math.floor(estimate * actual), math.floor(limit * part))
        free = ends == "free"
        cost = Decimal(0) if free else (2 * Decimal(used[0]) + 10 * Decimal(used[1])) / 1_000_000
        had(
            made,
            row(
                path,
                usage=used if ends == "ok" else None,
                status="error" if free else ends,
                free=free,
                estimate=estimate,
                limit=limit,
                seconds=min(seconds, left),
            ),
        )
        real.append((path, 0 if free else sum(used), cost, min(seconds, left)))
        error = max(0, used[0] - estimate)
        slack["all"], slack[path] = max(slack["all"], error), max(slack[path], error)
        # An unknown outcome counts with its estimate.
        if ends in ("open", "error"):
            real[-1] = (path, estimate + limit, (2 * Decimal(estimate) + 10 * Decimal(limit)) / 1_000_000, real[-1][3])
    for whose, budget in (("all", run), ("a", step), ("b", step)):
        mine = [each for each in real if whose in ("all", each[0])]
        more = slack[whose]
        if budget.tokens is not None:
            assert sum(each[1] for each in mine) <= budget.tokens + more
        if budget.money is not None:
            assert sum(each[2] for each in mine) <= budget.money + 2 * Decimal(math.ceil(more)) / 1_000_000
        if budget.calls is not None:
            assert len(mine) <= budget.calls
        if budget.time is not None:
            assert sum(each[3] for each in mine) <= float(budget.time) + 0.01
