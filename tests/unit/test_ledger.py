"""Model usage of a run, folded from the entries of its log."""

import datetime as dt
from decimal import Decimal
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from runtime.log import entries
from runtime.log.ledger import Ledger
from runtime.messages.messages import Usage
from runtime.models import budgets

AT = dt.datetime(2026, 1, 1, tzinfo=dt.UTC).isoformat()

THREADS = {f"model:{number}": path for number, path in enumerate(["", "a", "a/b", "a/b", "ab", "c[2]/d"])}

EVENTS = st.lists(
    st.tuples(
        st.sampled_from(sorted(THREADS)),
        st.sampled_from(["asked", "submitted", "answer", "cassette", "error", "free", "pending", "died"]),
        st.integers(0, 500),
        st.sampled_from([None, "0.25", "0.001"]),
    ),
    max_size=40,
)


def entry(number: int, thread: str, what: str, tokens: int, dollars: str | None) -> entries.AnyEntry:
    """One entry of a thread with a model."""
    common: dict[str, Any] = {"seq": number, "at": AT, "thread": thread}
    usage = entries.Usage(input=tokens, cached=0, output=1, reasoning=0)
    error = {"code": "model-unreachable", "message": "gone"}
    match what:
        case "asked":
            asked = {"model": "m", "estimate": tokens, "limit": 10, "key": "k", "raw": tokens, "seconds": 5, "try": 1}
            return entries.Note(name="requested", data=asked, **common)
        case "submitted":
            return entries.Note(name="submitted", data={"key": "k", "response": f"r{tokens % 3}"}, **common)
        case "answer" | "cassette":
            source: Any = "model" if what == "answer" else "cassette"
            return entries.Assistant(
                key="k", source=source, usage=usage, model="m", dollars=dollars, seconds=0.5, response="r", **common
            )
        case _:
            marks = {what: True} if what in ("free", "pending") else {}
            return entries.ModelError(error=error, seconds=0.25, **marks, **common)


@given(EVENTS)
def test_spending_of_a_step_is_the_sum_of_its_requests(drawn: list[tuple[str, str, int, str | None]]) -> None:
    """Running totals of each step with its subtree, and of all, are the sum of the rows in any order of entries."""
    made = Ledger()
    for number, (thread, what, tokens, dollars) in enumerate(drawn, 1):
        if what == "died":
            made.stopped(AT)
        else:
            made.add(entry(number, thread, what, tokens, dollars), THREADS[thread])
    for price in (lambda _usage, _model: None, cents):
        assert budgets.spent_within(made, price) == budgets.spent(made.rows, price)
        for path in {*THREADS.values(), "c[2]", "none"}:
            rows = [each for each in made.rows if each.path == path or each.path.startswith(f"{path}/")]
            assert budgets.spent_within(made, price, path) == budgets.spent(rows, price)


def cents(usage: Usage, _model: str) -> Decimal:
    """A cent for each token."""
    return Decimal(usage.input + usage.output) / 100
