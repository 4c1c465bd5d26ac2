"""Where the threads of a session are summed up: each in a thread of its own, put to whoever spoke in the thread."""

from __future__ import annotations

from collections.abc import Callable

from nodes.budgets import Budget
from runtime.context import summaries
from runtime.log import session, writer
from runtime.models import budgets, requests, run_models


def asks(
    models: run_models.Supply,
    pen: writer.Journal[session.Session],
    left: Callable[[], float],
    tell: Callable[[str], None],
    budget: Budget | None = None,
    within: budgets.Asked | None = None,
) -> summaries.Asks:
    """Opens such threads: ``left`` are the seconds that are left, ``tell`` says what is waited for, ``budget`` and ``within`` are those of who speaks."""

    def opened(thread: str) -> requests.Exchanges:
        asker = requests.Asker(
            pen.history.path_of(thread), thread, "summary", left, lambda what: tell(f"a summary: {what}")
        )
        return requests.Exchanges(models, pen, asker, None, budget, within)

    return opened
