"""Executes tools with effects outside the session's log: the call is synced first, so that nothing is done twice after a crash."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable

from nodes.errors import Paused, RunOpsError
from nodes.values import Json, normalise
from runtime.log import entries, session
from runtime.log.writer import LogWriter
from runtime.models.turns import call_checks, turn

ENDS = frozenset({"operator", "cancelled", "replaced", "internal", "budget", "paused"})
"""Categories of errors that end or suspend the session's work."""


async def done(
    writer: LogWriter[session.Session],
    name: str,
    arguments: dict[str, Json],
    place: turn.Place,
    work: Callable[[entries.Call], Awaitable[turn.Outcome]],
) -> turn.Outcome:
    """Do a tool's work once its call is logged and synced.

    An error that a model can act on becomes the outcome. Other errors (``ENDS``) propagate, and leave the call open. An open call is never
    repeated: after a crash ``Toolset.outcome_of_open_call`` gives its outcome. The exception is a call that waits for a person before any run was
    begun. It has done nothing, is closed as skipped, and is repeated with the answer.
    """
    before = [each for each in writer.history.actions.values() if each.call.path == place.path]
    call = await writer.announce(
        entries.Call(
            thread=place.thread,
            path=place.path,
            node="session",
            action=name,
            asked=place.asked,
            attempt=len(before) + 1,
            effect="effect",
            args=arguments,
            fingerprint="",
        ),
    )
    begun = time.monotonic()
    try:
        outcome = await work(call)
    except RunOpsError as error:
        if isinstance(error, Paused) and call.call not in writer.history.runs_of:
            writer.result(call, "skipped")
        if error.who in ENDS:
            raise
        recorded = writer.masker.json(error.as_json())
        outcome = turn.Outcome(call_checks.render_error(recorded), error=recorded)
    status: entries.Status = "ok" if outcome.error is None else "error"
    seconds = round(time.monotonic() - begun, 4)
    writer.result(call, status, value=normalise(outcome.value), error=outcome.error, seconds=seconds)
    return turn.Outcome(outcome.text, outcome.value, outcome.error, written=True)
