"""``cognition``: one model answer over data, from node to log, against a strict model server."""

from __future__ import annotations

import dataclasses
import datetime as dt
import json
from pathlib import Path

import pytest

from runtime.log import entries as log_entries
from runtime.testing import responses, scripted_model
from tests import models
from tests.rig import Rig

ASK = """
version: 1
name: Ask
nodes:
  - id: kind
    type: cognition
    instruction: Say what the customer wants.
    input: {note: "I want my money back."}
    output: {wish: [refund, delivery, other], urgent: boolean}
output: "{{ kind }}"
"""

REFUND = {"wish": "refund", "urgent": False}


def kinds(rig: Rig, thread: str) -> list[str]:
    """The kinds of a thread's entries, notes by their names."""
    entries = [each for each in rig.store.read(rig.id).entries if each.thread == thread]
    return [each.name if isinstance(each, log_entries.Note) else each.kind for each in entries]


async def test_an_answer_is_the_value(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The model receives instruction, input and schema; its answer is the value, and the exchange has its own thread."""
    with responses.serve([scripted_model.text(REFUND)], strict=True) as server:
        rig = Rig(tmp_path, ASK, settings=models.asked_at(server, monkeypatch))
        ended = await rig.start()
    assert (ended.status, ended.output) == ("passed", REFUND)
    (asked,) = server.asked
    assert asked.body["store"] is False
    assert "Say what the customer wants." in asked.body["instructions"]
    assert "money back" in json.dumps(asked.body["input"])
    assert asked.body["text"]["format"]["strict"] is True
    (attempt,) = rig.history.attempts["kind"]
    assert kinds(rig, f"model:{attempt.call.call}") == ["user", "requested", "assistant"]
    assert ended.costs is not None
    assert ended.costs["requests"] == 1


@dataclasses.dataclass(frozen=True)
class Fault:
    """A fault of a server, once or always, and how the step ends."""

    answers: list[scripted_model.Scripted]
    codes: list[str]
    """The codes of the errors in the log, in order."""
    passes: bool = True
    partial: str = ""
    """The partial answer in the log."""
    exit: int = 1


GOOD = scripted_model.text(REFUND)
PART = '{"wish": "ref'

FAULTS = {
    "429 with seconds": Fault([scripted_model.rate_limited(0), GOOD], ["model-rate-limited"]),
    "429 with milliseconds": Fault([scripted_model.rate_limited(milliseconds=20), GOOD], ["model-rate-limited"]),
    "429 with a date": Fault([scripted_model.rate_limited(dt.datetime.now(dt.UTC)), GOOD], ["model-rate-limited"]),
    "429 without": Fault([scripted_model.rate_limited(), GOOD], ["model-rate-limited"]),
    "429 for a day": Fault([scripted_model.rate_limited(86400)], ["model-rate-limited"], passes=False),
    "quota": Fault([scripted_model.quota()], ["model-quota"], passes=False),
    "500": Fault([scripted_model.server_error(), GOOD], ["model-failed"]),
    "503 twice": Fault(
        [scripted_model.server_error(503), scripted_model.server_error(503), GOOD], ["model-failed"] * 2
    ),
    "hang": Fault([scripted_model.hang(), GOOD], ["model-timeout"]),
    "reset": Fault([scripted_model.reset(), GOOD], ["model-unreachable"]),
    "reset in the middle": Fault([scripted_model.reset(PART), GOOD], ["model-stream-broken"], partial=PART),
    "stall": Fault([scripted_model.stall(PART), GOOD], ["model-timeout"], partial=PART),
    "end without the last event": Fault([scripted_model.cut(PART), GOOD], ["model-stream-broken"], partial=PART),
    "error event": Fault([scripted_model.error_event(PART), GOOD], ["model-failed"], partial=PART),
    "error event, nested": Fault([scripted_model.error_event(PART, nested=True), GOOD], ["model-failed"], partial=PART),
    "error event of quota": Fault(
        [scripted_model.error_event(PART, code="insufficient_quota")], ["model-quota"], passes=False, partial=PART
    ),
    "failed response": Fault([scripted_model.failed(said=PART), GOOD], ["model-failed"], partial=PART),
    "no JSON": Fault([scripted_model.not_json(status=502), GOOD], ["model-failed"]),
    "an event that is no JSON": Fault([scripted_model.not_json(b"data: {\n\n"), GOOD], ["model-stream-broken"]),
    "refusal": Fault([scripted_model.refusal()], ["model-refused"], passes=False),
    "incomplete": Fault([scripted_model.incomplete(PART)], ["model-cut-short"], passes=False, partial=PART),
    "filtered": Fault(
        [scripted_model.incomplete(PART, "content_filter")], ["model-cut-short"], passes=False, partial=PART
    ),
    "malformed, then fixed": Fault([scripted_model.text(PART), GOOD], []),
    "mismatch, then fixed": Fault([scripted_model.text({"wish": "tea", "urgent": 1}), GOOD], []),
    "never fixed": Fault([scripted_model.text(PART)] * 3, [], passes=False),
}


KINDS = {
    "cognition": ASK,
    "ai_extract": ASK.replace("type: cognition", "type: browser_query\n    query: ai_extract").replace(
        '    input: {note: "I want my money back."}\n', ""
    ),
}
"""The node types that request one answer."""


@pytest.mark.drawn(share=0.5)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", FAULTS)
async def test_each_fault_is_handled_as_documented(
    name: str, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Transient faults are retried, others end the step; the log has each try with the partial answer."""
    fault = FAULTS[name]
    with responses.serve(fault.answers) as server:
        # A request that hangs times out quickly.
        rig = Rig(
            tmp_path,
            KINDS[kind],
            settings=models.asked_at(server, monkeypatch, model_timeout=0.4 if "model-timeout" in fault.codes else 20),
        )
        ended = await rig.start()
        assert len(server.asked) == len(fault.answers)
        assert server.problems == []
    (attempt,) = rig.history.attempts["kind"]
    thread = f"model:{attempt.call.call}"
    errors = [each for each in rig.store.read(rig.id).entries if isinstance(each, log_entries.ModelError)]
    assert [each.error["code"] for each in errors] == fault.codes
    assert "".join(each.text or "" for each in errors) == fault.partial
    # Each announced request has a result, and the last error without a retry says so.
    assert kinds(rig, thread).count("requested") == len(fault.answers)
    assert [each.status for each in rig.history.ledger.rows].count("open") == 0
    assert all((each.again is None) == (each is errors[-1] and not fault.passes) for each in errors)
    if fault.passes:
        assert (ended.status, ended.output) == ("passed", REFUND)
    else:
        assert ended.error is not None
        assert (ended.status, ended.exit) == ("failed", fault.exit)
        assert ended.error["code"] == (fault.codes or ["model-output-invalid"])[-1]
        assert ended.error["fix"]


async def test_a_resume_retries_a_failed_model_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that failed because of its model resumes with a new attempt in its own thread."""
    with responses.serve([scripted_model.quota(), GOOD], strict=True) as server:
        rig = Rig(tmp_path, ASK, settings=models.asked_at(server, monkeypatch))
        assert (await rig.start()).exit == 1
        assert (await rig.resume()).output == REFUND
    assert rig.calls("kind") == ["error", "ok"]
    assert len({each.thread for each in rig.history.ledger.rows}) == 2


async def test_a_repair_request_contains_the_invalid_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A repair request has the whole thread: the question, the invalid answer, and each validation error with its place."""
    with responses.serve([scripted_model.text({"wish": "tea", "urgent": "no"}), GOOD], strict=True) as server:
        rig = Rig(tmp_path, ASK, settings=models.asked_at(server, monkeypatch))
        assert (await rig.start()).output == REFUND
    first, second = (each.body["input"] for each in server.asked)
    assert second[: len(first)] == first
    assert [each["role"] for each in second] == ["user", "assistant", "user"]
    assert '"tea"' in second[1]["content"]
    assert "$.wish" in second[2]["content"]
    assert "$.urgent" in second[2]["content"]
    assert "previous_response_id" not in server.asked[1].body


async def test_a_server_that_stores_responses_receives_only_new_items(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With ``model_store`` a later request names the previous response; if the server lost it, the whole thread is sent."""
    wrong = scripted_model.text({"wish": "tea", "urgent": False})
    with responses.serve([wrong, GOOD], strict=True) as server:
        rig = Rig(tmp_path, ASK, settings=models.asked_at(server, monkeypatch, model_store=True))
        assert (await rig.start()).output == REFUND
        second = server.asked[1].body
    assert second["previous_response_id"]
    assert [each["role"] for each in second["input"]] == ["user"]
    with responses.serve([wrong, scripted_model.chain_lost(), GOOD]) as server:
        rig = Rig(tmp_path / "lost", ASK, settings=models.asked_at(server, monkeypatch, model_store=True))
        assert (await rig.start()).output == REFUND
        third = server.asked[2].body
    assert "previous_response_id" not in third
    assert len(third["input"]) == 3


async def test_a_background_response_is_polled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With ``model_background`` the response id is logged before polling, failed polls repeat, and the request is sent once."""
    slow = GOOD.in_background(polls=1, faults=[scripted_model.server_error()])
    with responses.serve([slow], strict=True) as server:
        rig = Rig(tmp_path, ASK, settings=models.asked_at(server, monkeypatch, model_background=True))
        ended = await rig.start()
        assert ended.output == REFUND
        assert len(server.asked) == 1
        assert server.asked[0].body["background"] is True
        assert server.asked[0].body["store"] is True
    (row,) = rig.history.ledger.rows
    assert (row.status, row.usage is not None, bool(row.response)) == ("ok", True, True)
    assert "submitted" in kinds(rig, row.thread)


@pytest.mark.parametrize("secret", ["hunter2hunter2", "instructions"])
async def test_a_secret_is_never_sent(secret: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A request that contains a secret is not sent, and the step fails with the name of the secret."""
    text = ASK.replace('{note: "I want my money back."}', '"{{ said }}"').replace(
        "nodes:", "secrets: [TOKEN]\nnodes:\n  - {id: said, type: browser_query, query: text, target: {css: note}}"
    )
    with responses.serve([GOOD]) as server:
        rig = Rig(tmp_path, text, settings=models.asked_at(server, monkeypatch), secrets={"TOKEN": secret})
        rig.site.texts["css=note"] = f"the code is {secret}"
        ended = await rig.start()
        assert server.requests == []
    assert ended.error is not None
    assert ended.error["code"] == "secret-in-request"
    assert "the value of the secret TOKEN is in the messages" in str(ended.error["message"])


async def test_a_word_of_our_instructions_is_no_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A secret that equals a word of the fixed instructions does not stop a request."""
    with responses.serve([GOOD]) as server:
        rig = Rig(tmp_path, ASK, settings=models.asked_at(server, monkeypatch), secrets={"TOKEN": "instructions"})
        assert (await rig.start()).status == "passed"
        assert "instructions" in server.asked[0].body["instructions"]
