"""Model faults in a conversation with tools, over real HTTP: retryable ones are retried, and no call is repeated."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from pathlib import Path
from typing import Any

import pytest

from nodes import budgets
from nodes.errors import RunOpsError
from runtime.log import entries, history
from runtime.log.writer import LogWriter
from runtime.messages.messages import Message, Request
from runtime.models import requests, run_models, selection
from runtime.models.client import client as model_client
from runtime.models.client import polling, profiles
from runtime.models.client.errors import Failed
from runtime.secrets import masking
from runtime.testing import memory_store, responses, scripted_model
from runtime.workspace import host
from tests import models
from tests.unit.test_cognition_faults import BACKGROUND, PLAIN
from tests.unit.test_turn import Tools, turns_of

CLICK = scripted_model.call("click", {"ref": "e1"}).in_background(polls=0)
FINISH = scripted_model.call("finish", {"done": True}).in_background(polls=0)
PART = "I will"

STREAMED: dict[str, tuple[list[scripted_model.Scripted], list[str], bool]] = {
    "429": ([scripted_model.rate_limited(milliseconds=1), FINISH], ["model-rate-limited"], True),
    "429 with a date": ([scripted_model.rate_limited(0), FINISH], ["model-rate-limited"], True),
    "quota": ([scripted_model.quota()], ["model-quota"], False),
    "500": ([scripted_model.server_error(), FINISH], ["model-failed"], True),
    "503 twice": (
        [scripted_model.server_error(503), scripted_model.server_error(503), FINISH],
        ["model-failed"] * 2,
        True,
    ),
    "hang": ([scripted_model.hang(), FINISH], ["model-timeout"], True),
    "reset": ([scripted_model.reset(), FINISH], ["model-unreachable"], True),
    "reset in the middle": ([scripted_model.reset(PART), FINISH], ["model-stream-broken"], True),
    "reset in the middle of a call": ([scripted_model.reset(FINISH), FINISH], None, True),  # type: ignore[dict-item]
    "stall": ([scripted_model.stall(PART), FINISH], ["model-timeout"], True),
    "end without the last event": ([scripted_model.cut(PART), FINISH], ["model-stream-broken"], True),
    "error event": ([scripted_model.error_event(PART), FINISH], ["model-failed"], True),
    "failed response": ([scripted_model.failed(said=PART), FINISH], ["model-failed"], True),
    "no JSON": ([scripted_model.not_json(status=502), FINISH], ["model-failed"], True),
    "refusal": ([scripted_model.refusal()], ["model-refused"], False),
    "incomplete": ([scripted_model.incomplete(PART)], ["model-cut-short"], False),
    "a call cut short": ([scripted_model.incomplete(FINISH)], ["model-cut-short"], False),
    "arguments that are no JSON": ([scripted_model.call("click", "{no"), FINISH], [], True),
    "a tool that is not there": ([scripted_model.call("fly", {}), FINISH], [], True),
    "a call named as one before": (
        [scripted_model.call("look", {"ref": None}, call_id="call_0001_0"), FINISH],
        [],
        True,
    ),
}
CHAINED = {"a chain that is lost": ([scripted_model.chain_lost(), FINISH], ["model-chain-lost"], True)}


def finishing(
    fault: tuple[list[scripted_model.Scripted], list[str], bool],
) -> tuple[list[scripted_model.Scripted], list[str], bool]:
    """The same fault, followed by ``FINISH``."""
    answers, codes, passes = fault
    if not passes:
        return fault
    last = answers[-1]
    assert isinstance(last, scripted_model.Answer)
    return [*answers[:-1], last + FINISH], codes, passes


WAYS: dict[str, tuple[dict[str, Any], Any]] = {
    "streamed": ({}, STREAMED),
    "chained": ({"model_store": True}, STREAMED | CHAINED),
    "background": ({"model_background": True}, {name: finishing(each) for name, each in BACKGROUND.items() if "fixed" not in name}),
    "plain": ({"model_profile": "compatible"}, {name: finishing(each) for name, each in PLAIN.items()}),
}  # fmt: skip
CASES = [
    pytest.param(settings, each, id=f"{way}: {name}")
    for way, (settings, faults) in WAYS.items()
    for name, each in faults.items()
]


@pytest.mark.drawn(12)
@pytest.mark.parametrize(("settings", "fault"), CASES)
async def test_a_fault_after_an_action_does_not_repeat_it(
    settings: dict[str, Any],
    fault: tuple[list[scripted_model.Scripted], list[str], bool],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """After an action a retryable fault is retried until the work ends, and any other is raised. The action is done once."""
    answers, codes, passes = fault
    monkeypatch.setattr(requests, "FIRST_WAIT", 0.01)
    monkeypatch.setattr(polling, "POLL_SECONDS", 0.01)
    with responses.serve([CLICK, *answers], strict=True) as server:
        more = {"model_timeout": 0.5} if codes == ["model-timeout"] else {}
        chosen = models.asked_at(server, monkeypatch, **settings, **more)
        supplied = run_models.RunModels(
            chosen, selection.server(chosen, host.ENVIRONMENT), None, tmp_path / "f.yaml", tmp_path, {}, {}
        )
        store = memory_store.MemoryStore(tmp_path)
        writer = LogWriter(await store.create("r"), history.History(), masking.Masker({}), store.reader)
        call = entries.Call(path="do", node="agent", attempt=1, effect="effect", fingerprint="f")
        call = await writer.announce(call)
        toolset = Tools(writer, [])
        requester = requests.RequestScope(
            call.path, entries.thread_of(call), "agent", lambda: 60.0, lambda _what: None, lambda: "RUN_DIRECTIVE now"
        )
        thread = requests.Exchanges(supplied, writer, requester, None, budgets.parse("calls=20"))
        turns = turns_of(thread, toolset, writer, call)
        turns.say("Reach the goal.")
        raised: str | None = None
        async with contextlib.aclosing(writer.conversation):
            try:
                while (await turns.turn()).final(toolset) is None:
                    pass
            except RunOpsError as error:
                raised = error.code
            finally:
                await supplied.close()
        assert len(server.asked) == 1 + len(answers)
        assert [each.body["instructions"] for each in server.asked] == ["Work.\n\nRUN_DIRECTIVE now"] * len(
            server.asked
        )
        for each in server.asked:
            assert [tool["name"] for tool in each.body["tools"]] == ["look", "click", "finish"]
            for tool in each.body["tools"]:
                assert tool["strict"] is (settings.get("model_profile") is None)
                assert tool["strict"] is ("additionalProperties" in tool["parameters"])
        if settings.get("model_store"):
            # The server stores the rest: only the call's output is sent, and everything again where the chain is lost.
            sent = [(len(each.body["input"]), "previous_response_id" in each.body) for each in server.asked[:2]]
            assert sent == [(1, False), (1, True)]
            assert codes != ["model-chain-lost"] or len(server.asked[-1].body["input"]) == 3
    errors = [each.error["code"] for each in store.reader.read("r").entries if isinstance(each, entries.ModelError)]
    assert codes is None or errors == codes
    assert (raised is None) is passes
    assert passes or raised == codes[-1]
    assert toolset.actions == ["e1"]
    assert [row.status for row in writer.history.ledger.rows].count("open") == 0


@pytest.mark.parametrize(("more", "once"), [({}, True), ({"model_timeout": 0.1}, False)])
@pytest.mark.parametrize("profile", ["openai", "compatible"])
async def test_a_request_that_the_server_works_on_is_not_sent_again(
    profile: str, more: dict[str, Any], once: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A patient request is sent once, however long the server works on it or a stream pauses, unless a person has set a limit."""
    monkeypatch.setattr(requests, "FIRST_WAIT", 0.01)
    monkeypatch.setattr(model_client, "STALL_SECONDS", 0.05)
    gate = threading.Event()
    slow = scripted_model.text("Done.").held(gate)
    with responses.serve([slow] * requests.TRIES) as server:
        chosen = models.asked_at(server, monkeypatch, model_profile=profile, **more)
        supplied = run_models.RunModels(
            chosen, selection.server(chosen, host.ENVIRONMENT), None, tmp_path / "f.yaml", tmp_path, {}, {}
        )
        supplied.seconds = 0.1
        store = memory_store.MemoryStore(tmp_path)
        writer = LogWriter(await store.create("r"), history.History(), masking.Masker({}), store.reader)
        thread = entries.SESSION_THREAD
        requester = requests.RequestScope("", thread, "director", lambda: 60.0, lambda _what: None, patient=True)
        exchanges = requests.Exchanges(supplied, writer, requester, None, None)
        request = Request(models.MODEL, "", (Message("user", "Work."),), None, 100)
        async with contextlib.aclosing(writer.conversation):
            asking = asyncio.create_task(exchanges.exchange(request))
            await asyncio.sleep(0.8)
            assert (len(server.asked) == 1) is once
            gate.set()
            await asyncio.wait([asking])
            assert (len(server.asked) == 1) is once
            assert not once or asking.exception() is None
            await supplied.close()


async def test_a_pause_within_a_patient_stream_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stream that pauses, as for a thought, is not asked for again while its connection lasts."""
    monkeypatch.setattr(requests, "FIRST_WAIT", 0.01)
    monkeypatch.setattr(model_client, "STALL_SECONDS", 0.05)
    with responses.serve([scripted_model.stall(PART)] * requests.TRIES) as server:
        client = model_client.Client(server.url, server.key, profiles.PROFILES["openai"])
        request = Request(models.MODEL, "", (Message("user", "Work."),), None, 100)
        for patient, code in ((True, "model-timeout"), (False, "model-stream-broken")):
            with pytest.raises(Failed) as failed:
                await client.ask(request, 0.6, model_client.ClientOptions(patient=patient))
            assert failed.value.error.code == code
        await client.close()
