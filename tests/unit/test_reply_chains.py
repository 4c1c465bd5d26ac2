"""Conversations with a server that stores responses: only new items are sent, and the model sees the same as without a chain."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path

import pytest

from nodes.values import Json
from runtime.context import window
from runtime.log import entries
from runtime.models import run_models, selection
from runtime.models.client import client
from runtime.testing import responses, scripted_model
from runtime.workspace import host
from tests import models, talks

CLEAN = window.Limits(strategy="clean")
LOOK = scripted_model.call("get_workflow_summary", {})


@contextlib.asynccontextmanager
async def talking(
    script: Sequence[scripted_model.Scripted] | scripted_model.Script,
    patch: pytest.MonkeyPatch,
    folder: Path,
    limits: window.Limits = CLEAN,
) -> AsyncGenerator[tuple[responses.Server, talks.Life]]:
    """A session with the model of this script, on a server that stores responses."""
    with responses.serve(script, strict=True) as server:
        chosen = models.asked_at(server, patch, model_store=True)
        supplied = run_models.RunModels(
            chosen, selection.server(chosen, host.ENVIRONMENT), None, folder / "f.yaml", folder, {}, {}
        )
        try:
            yield server, talks.Life(supplied, limits=limits)
        finally:
            await supplied.close()


def sent(server: responses.Server) -> list[tuple[int, bool]]:
    """For each request, the number of items sent, and whether it continues a stored response."""
    return [(len(each.body["input"]), "previous_response_id" in each.body) for each in server.asked]


def seen(server: responses.Server, number: int = -1) -> list[dict[str, Json]]:
    """The items that the model saw with that request, in the form of a request."""
    kept: list[dict[str, Json]] = []
    for item in server.asked[number].items:
        if item.get("type", "message") == "message":
            kept.append({"role": item["role"], "content": scripted_model.text_of(item)})
        else:
            kept.append(
                {name: item[name] for name in ("type", "call_id", "name", "arguments", "output") if name in item}
            )
    return kept


def would_send(life: talks.Life) -> list[dict[str, Json]]:
    """The items that the last request would have without a chain: the window without the answer that came since."""
    items = [client._item(each) for each in life.talk._items()]
    while items and (items[-1].get("role") == "assistant" or items[-1].get("type") == "function_call"):
        items.pop()
    return items


async def test_only_new_items_are_sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first request has the whole window, each next one the items after the last answer; the model sees the same as without a chain."""
    script = [LOOK, scripted_model.text("It buys tea."), scripted_model.text("No.")]
    async with talking(script, monkeypatch, tmp_path) as (server, life):
        await life.hear(["What is it?", "Is it green?"])
        assert life.answers == ["It buys tea.", "No."]
        assert sent(server) == [(1, False), (1, True), (1, True)]
        assert seen(server) == would_send(life)


async def test_a_chain_continues_after_a_crash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a crash, the next process continues from the last response that the log names."""
    async with talking([scripted_model.text("Tea."), scripted_model.text("No.")], monkeypatch, tmp_path) as (
        server,
        life,
    ):
        await life.hear(["What is it?"])
        again = life.cut(len(life.now))
        await again.hear(["Is it green?"])
        assert again.answers == ["No."]
        assert sent(server) == [(1, False), (1, True)]
        assert seen(server) == would_send(again)


async def test_a_chain_that_is_lost_is_built_anew_from_the_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the server has forgotten the chain, the whole window is sent once, and the chain continues from there."""
    script = [scripted_model.text("Tea."), scripted_model.text("No."), scripted_model.text("Well.")]
    async with talking(script, monkeypatch, tmp_path) as (server, life):
        await life.hear(["What is it?"])
        server.forget()
        await life.hear(["Is it green?", "Sure?"])
        assert life.answers == ["Tea.", "No.", "Well."]
        assert sent(server) == [(1, False), (1, True), (3, False), (1, True)]
        assert seen(server) == would_send(life)
    failed = [each.error["code"] for each in life.now if isinstance(each, entries.ModelError)]
    assert failed == ["model-chain-lost"]


async def test_a_window_that_has_changed_begins_a_new_chain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If items were left out or reworded, the whole window is sent, and never more than the window."""
    script = [scripted_model.text(f"Answer {number}.") for number in range(4)]
    async with talking(script, monkeypatch, tmp_path) as (server, life):
        await life.hear(["one", "two"])
        life.limits = CLEAN.model_copy(update={"max_messages": 3, "overflow": "prune"})
        await life.hear(["three"])
        assert sent(server) == [(1, False), (1, True), (3, False)]
        assert [each["content"] for each in seen(server)] == ["two", "Answer 1.", "three"]
        life.limits = CLEAN
        await life.hear(["four"])
        assert sent(server)[-1] == (7, False), "what the chain lacks is sent again"
        assert seen(server) == would_send(life)


async def test_a_session_that_shows_its_state_chains_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A request with the current state neither continues a chain nor starts one, because the server would store that state."""
    script = [
        scripted_model.text("one"),
        scripted_model.text("two"),
        scripted_model.text("three"),
        scripted_model.text("four"),
        scripted_model.text("five"),
    ]
    async with talking(script, monkeypatch, tmp_path, window.Limits(strategy="hybrid")) as (server, life):
        await life.hear(["a", "b"])
        life.limits = CLEAN
        await life.hear(["c", "d"])
        assert [each for _count, each in sent(server)] == [False, False, False, True]
        assert server.asked[1].body["input"][-1]["role"] == "developer"
        assert "developer" not in str(server.asked[-1].items)
        assert seen(server) == would_send(life)
        life.limits = window.Limits(strategy="hybrid")
        await life.hear(["e"])
        assert not sent(server)[-1][1], "the state is told beside the whole conversation, and kept by nobody"


async def test_another_mode_begins_a_new_chain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a mode switch everything is sent with the new instructions, and the chain continues in that mode."""
    script = [scripted_model.text("one"), scripted_model.text("two"), scripted_model.text("three")]
    async with talking(script, monkeypatch, tmp_path) as (server, life):
        await life.hear(["a"])
        life.talk.mode = "agent"
        await life.hear(["b", "c"])
        assert sent(server) == [(1, False), (3, False), (1, True)]
        assert "Mode: agent" in server.asked[2].body["instructions"]
        assert seen(server) == would_send(life)


async def test_a_partial_answer_is_sent_again_with_the_next_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server stores no response for a partial answer: its text is sent after the message it answered, with the next message."""
    script = [
        scripted_model.text("one"),
        scripted_model.incomplete("It failed beca"),
        scripted_model.text("use of tea."),
    ]
    async with talking(script, monkeypatch, tmp_path) as (server, life):
        await life.hear(["a", "Why?", "continue"])
        assert life.answers == ["one", "model-cut-short", "use of tea."]
        assert sent(server) == [(1, False), (1, True), (3, True)]
        assert "It failed beca" in str(server.asked[-1].body["input"][1])
        assert seen(server) == would_send(life)


async def test_a_summary_begins_a_chain_that_continues(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A conversation larger than its window sends the summary with recent items once, and from there only new items."""
    long = "word " * 1500
    summary = "They talked about tea, and about words."

    def answers(asked: scripted_model.AskedFor) -> scripted_model.Scripted:
        summing = "Sum up" in asked.instructions or "Sum up" in asked.newest
        return scripted_model.text(summary if summing else f"Answer {asked.number}: {long}")

    limits = window.Limits(strategy="clean", compress_at=12_000, compress_to=500, min_recent=1, max_chars=None)
    async with talking(answers, monkeypatch, tmp_path, limits) as (server, life):
        await life.hear([f"Say {number}." for number in range(9)])
    talked = [each for each in server.asked if "Mode: chat" in each.body["instructions"]]
    summed = next(number for number, each in enumerate(talked) if summary in str(each.items))
    assert "previous_response_id" not in talked[summed].body
    assert "previous_response_id" in talked[summed + 1].body
    assert len(talked[summed + 1].body["input"]) == 1
    assert summary in str(talked[summed + 1].items)
    assert not [each for each in life.answers if each is None or not each.startswith("Answer")]
