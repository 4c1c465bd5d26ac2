"""Model faults over several requests: in the background, without streaming, and with unknown usage."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from pathlib import Path
from typing import Any

import pytest

from nodes.values import Json
from runtime.log import entries
from runtime.system import crash_points
from runtime.system.crash_points import CrashPoint
from runtime.testing import responses, scripted_model
from tests import models
from tests.rig import Killed, Rig

ASK = """
version: 1
name: Ask
nodes:
  - {id: kind, type: cognition, instruction: Sort it., input: tea, output: [a, b], max_output: 300}
output: "{{ kind }}"
"""

GOOD = scripted_model.text({"value": "a"}).in_background(polls=0)
PART = '{"val'

BACKGROUND: dict[str, tuple[list[scripted_model.Scripted], list[str], bool]] = {
    "hang": ([scripted_model.hang(), GOOD], ["model-timeout"], True),
    "reset": ([scripted_model.reset(), GOOD], ["model-unreachable"], True),
    "500": ([scripted_model.server_error(), GOOD], ["model-failed"], True),
    "quota": ([scripted_model.quota()], ["model-quota"], False),
    "failed response": ([scripted_model.failed(said=PART).in_background(polls=1), GOOD], ["model-failed"], True),
    "response that is final": (
        [scripted_model.failed("invalid_prompt", said=PART).in_background(polls=0)],
        ["model-failed"],
        False,
    ),
    "refusal": ([scripted_model.refusal().in_background(polls=0)], ["model-refused"], False),
    "incomplete": ([scripted_model.incomplete(PART).in_background(polls=0)], ["model-cut-short"], False),
    "polls that fail": (
        [GOOD.in_background(polls=0, faults=[scripted_model.server_error(), scripted_model.rate_limited()])],
        [],
        True,
    ),
    "polls that are no JSON": ([GOOD.in_background(polls=0, faults=[scripted_model.not_json(status=502)])], [], True),
    "malformed, then fixed": ([scripted_model.text(PART).in_background(polls=0), GOOD], [], True),
}
"""The answers of the model, the errors in the log, and whether the step passes."""

PLAIN: dict[str, tuple[list[scripted_model.Scripted], list[str], bool]] = {
    "error event": ([scripted_model.error_event(PART), GOOD], ["model-failed"], True),
    "a gateway's page": ([scripted_model.not_json(status=502), GOOD], ["model-failed"], True),
    "a page in place of a response": ([scripted_model.not_json()], ["model-unknown"], False),
    "reset in the middle": ([scripted_model.reset(PART), GOOD], ["model-unreachable"], True),
    "hang": ([scripted_model.hang(), GOOD], ["model-timeout"], True),
    "failed response": ([scripted_model.failed(), GOOD], ["model-failed"], True),
    "refusal": ([scripted_model.refusal()], ["model-refused"], False),
    "incomplete": ([scripted_model.incomplete(PART)], ["model-cut-short"], False),
}
"""The same without streaming."""

CASES = [
    *(pytest.param(each, {"model_background": True}, id=f"background: {name}") for name, each in BACKGROUND.items()),
    *(pytest.param(each, {"model_profile": "compatible"}, id=f"plain: {name}") for name, each in PLAIN.items()),
]


KINDS = {
    "cognition": ASK,
    "ai_extract": ASK.replace("type: cognition", "type: browser_query, query: ai_extract").replace("input: tea, ", ""),
}
"""The node types that request one answer."""


@pytest.mark.drawn(7)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("fault", "settings"), CASES)
async def test_each_fault_is_handled_as_with_a_stream(
    kind: str,
    fault: tuple[list[scripted_model.Scripted], list[str], bool],
    settings: dict[str, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Transient faults are retried, others end the step; each request is sent once and closed in the log."""
    answers, codes, passes = fault
    hangs = codes == ["model-timeout"]
    with responses.serve(answers, strict=True) as server:
        chosen = models.asked_at(server, monkeypatch, model_timeout=0.5 if hangs else 30, **settings)
        rig = Rig(tmp_path, KINDS[kind], settings=chosen)
        ended = await rig.start()
        assert len(server.asked) == len(answers)
    errors = [each.error["code"] for each in rig.store.read(rig.id).entries if isinstance(each, entries.ModelError)]
    assert errors == codes
    assert [row.status for row in rig.history.ledger.rows].count("open") == 0
    assert (ended.status, ended.output) == ("passed", "a") if passes else ended.status == "failed"


async def test_an_answer_without_usage_counts_with_its_estimate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If a server reports no usage, the most that it may have been counts, so the budget stays effective."""
    text = ASK.replace("max_output: 300", "max_output: 300, budget: {tokens: 700}")
    unfit = scripted_model.text("Hm.").without_usage()
    with responses.serve([unfit, unfit]) as server:
        rig = Rig(tmp_path, text, settings=models.asked_at(server, monkeypatch))
        ended = await rig.start()
        assert (ended.status, len(server.asked)) == ("out-of-budget", 1)
    (row,) = rig.history.ledger.rows
    assert (row.status, row.usage, row.limit) == ("ok", None, 300)


def live(rig: Rig, deadly: CrashPoint | None = None) -> Json:
    """Starts or resumes the run and dies at a crash point. Returns the output, or None after a death."""

    def hook(point: CrashPoint) -> None:
        if point == deadly:
            raise Killed

    async def go() -> Json:
        try:
            ended = await (rig.resume() if rig.id in rig.store.ids() else rig.start())
            return ended.output or (ended.error or {}).get("code")
        finally:
            if rig.models is not None:
                await rig.models.close()

    crash_points.hook = hook
    try:
        with contextlib.suppress(Killed):
            return asyncio.run(go())
    finally:
        crash_points.hook = None
    rig.die()
    return None


def test_a_response_that_the_server_lost_is_requested_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the server lost the response while the run was dead, the resume sends a new request."""
    with responses.serve([GOOD, GOOD]) as server:
        rig = Rig(tmp_path, ASK, settings=models.asked_at(server, monkeypatch, model_background=True))
        assert live(rig, CrashPoint.SUBMISSION_SYNCED) is None
        server.forget()
        assert live(rig) == "a"
        assert len(server.asked) == 2


def test_a_response_that_failed_meanwhile_is_requested_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the response failed while the run was dead, the resume logs that and sends a new request."""
    with responses.serve([scripted_model.failed().in_background(polls=0), GOOD], strict=True) as server:
        rig = Rig(tmp_path, ASK, settings=models.asked_at(server, monkeypatch, model_background=True))
        assert live(rig, CrashPoint.SUBMISSION_SYNCED) is None
        assert live(rig) == "a"
        assert len(server.asked) == 2
    assert [row.status for row in rig.history.ledger.rows] == ["error", "ok"]


@pytest.mark.parametrize(
    ("ends", "code"),
    [(scripted_model.refusal(), "model-refused"), (scripted_model.incomplete(PART), "model-cut-short")],
)
def test_a_final_fault_of_a_response_ends_the_step_after_a_crash(
    ends: scripted_model.Answer, code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the model refused or was cut short while the run was dead, the resume fails without another request."""
    with responses.serve([ends.in_background(polls=0), GOOD], strict=False) as server:
        rig = Rig(tmp_path, ASK, settings=models.asked_at(server, monkeypatch, model_background=True))
        assert live(rig, CrashPoint.SUBMISSION_SYNCED) is None
        assert live(rig) == code
        assert len(server.asked) == 1
    assert [row.status for row in rig.history.ledger.rows] == ["error"]


def test_a_response_that_exceeds_the_time_budget_is_cancelled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The resume waits only as long as its budget allows, then cancels the response and fails."""
    slow = GOOD.held(threading.Event())
    with responses.serve([slow], strict=True) as server:
        rig = Rig(tmp_path, ASK, settings=models.asked_at(server, monkeypatch, model_background=True))
        assert live(rig, CrashPoint.SUBMISSION_SYNCED) is None
        rig.settings = models.asked_at(server, monkeypatch, model_background=True, budget="time=0.4s")
        assert live(rig) == "budget-reached"
        assert len(server.asked) == 1
        assert server.requests[-1].path.endswith("/cancel")
