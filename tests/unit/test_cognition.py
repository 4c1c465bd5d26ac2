"""``cognition``: one answer of a model over data, from the node to the log, against a server that holds clients to the protocol."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from runtime import log
from runtime.testing import responses, scripted
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
    return [each.name if isinstance(each, log.Note) else each.kind for each in entries]


async def test_an_answer_is_the_value(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The model is sent instruction, input and schema; its answer is the step's value, and the exchange stands in a thread of its own."""
    with responses.serve([scripted.text(REFUND)], strict=True) as server:
        rig = Rig(tmp_path, ASK, chosen=models.asked_at(server, monkeypatch))
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
