"""Reasoning of a model survives without server state (row 000-24): the fake server refuses a call without the reasoning that led to it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from runtime.testing import responses, scripted_model
from runtime.testing.responses import rules
from runtime.testing.scripted_model import call, text, thought
from tests.chats import Chats, session_of, words_of

LOOK = call("get_workflow_summary", {})
INCLUDED = ["reasoning.encrypted_content"]

KIND = """\
version: 1
nodes:
  - {id: kind, type: cognition, instruction: Sort it., input: tea, output: [a, b]}
output: "{{ kind }}"
"""


def sealed(body: dict[str, Any]) -> list[str]:
    """The encrypted reasoning in a request, in order."""
    return [each["encrypted_content"] for each in body["input"] if each.get("type") == "reasoning"]


def kinds(body: dict[str, Any]) -> list[str]:
    """The kinds of the items of a request, in order."""
    return [each.get("type", each.get("role")) for each in body["input"]]


def logged(chats: Chats, session: str) -> list[dict[str, Any]]:
    """The answers in the log of a session."""
    [log] = (chats.folder / ".runops" / "conversations").glob(f"{session}*")
    return [each for each in map(json.loads, log.read_text().splitlines()) if each["kind"] == "assistant"]


def test_reasoning_goes_back_with_its_call(chats: Chats) -> None:
    """000-24: without server state each request holds the encrypted reasoning before the call that it led to, byte for byte, also when resumed."""
    # Longer than what the log holds in a line, and with what looks like a key.
    large = "gAAAAsk-" + "Zm9v" * 2000
    project = chats.answers(
        thought("First.") + LOOK,
        thought("Second.", sealed=large) + LOOK + thought("Third.") + LOOK,
        thought("Fourth.") + text("It adds up."),
        text("Again."),
    )
    done = project.here("chat", "prices.yaml", "-m", "What does it do?")
    assert done.returncode == 0, done.stderr
    session = session_of(done)
    assert project.here("chat", "--resume", session, "-m", "Sure?").returncode == 0
    first, second, third, last = chats.bodies()
    assert [each["include"] for each in chats.bodies()] == [INCLUDED] * 4
    assert [each["store"] for each in chats.bodies()] == [False] * 4
    assert (sealed(first), sealed(second)) == ([], ["sealed_0001_0"])
    assert sealed(third) == ["sealed_0001_0", large, "sealed_0002_2"]
    assert sealed(last) == [*sealed(third), "sealed_0003_0"]
    assert kinds(third)[1:] == [
        *("reasoning", "function_call", "function_call_output"),
        *("reasoning", "function_call", "reasoning", "function_call", "function_call_output", "function_call_output"),
        "developer",
    ]
    kept = [each for entry in logged(chats, session) for each in entry.get("thoughts", ())]
    assert [each["before"] for each in kept] == [1, 1, 2, 0]
    assert ["blob" in each for each in kept] == [False, True, False, False]


def test_another_model_is_not_sent_it(chats: Chats) -> None:
    """000-24: reasoning is for its model and server alone: another model gets the calls without it, and the first one has it again later."""
    project = chats.answers(thought("First.") + LOOK, text("It adds up."), text("Yes."), text("Yes."), text("Yes."))
    session = session_of(project.here("chat", "prices.yaml", "-m", "What does it do?"))
    assert project.here("chat", "--resume", session, "--model", "other", "-m", "Sure?").returncode == 0
    assert project.here("chat", "--resume", session, "--model", "test-model", "-m", "And now?").returncode == 0
    assert list(map(sealed, chats.bodies())) == [[], ["sealed_0001_0"], [], ["sealed_0001_0"]]


def test_another_server_is_not_sent_it(chats: Chats) -> None:
    """000-24: a model of the same name at another address is not the one that can read it."""
    session = session_of(chats.answers(thought("First.") + text("It adds up.")).here("chat", "-m", "What?"))
    assert chats.answers(text("Yes.")).here("chat", "--resume", session, "-m", "Sure?").returncode == 0
    assert list(map(sealed, chats.bodies())) == [[]]


def test_reasoning_goes_with_its_exchange(chats: Chats) -> None:
    """000-24: what leaves the window leaves it with its reasoning, and reasoning counts in the size of the window."""
    look = (thought("Hm.") + LOOK).using(input=100, output=3_000, reasoning=2_900)
    project = chats.answers(look, text("It adds up."), text("Yes."))
    session = session_of(project.here("chat", "prices.yaml", "-m", "What does it do?"))
    done = project.here("chat", "--resume", session, "--hard-limit", "2500", "--overflow", "prune", "-m", "Sure?")
    assert done.returncode == 0, done.stderr
    assert [bool(sealed(body)) for body in chats.bodies()] == [False, True, False]
    assert "call get_workflow_summary" not in words_of(chats.bodies()[-1])


def test_a_chain_asks_for_none(chats: Chats) -> None:
    """000-24: where the server continues from its stored response, it has the reasoning itself, and none is asked for."""
    project = chats.answers(thought("First.") + LOOK, text("It adds up."), RUNOPS_MODEL_STORE="true")
    done = project.here("chat", "prices.yaml", "--strategy", "clean", "-m", "What does it do?")
    assert done.returncode == 0, done.stderr
    first, second = chats.bodies()
    assert "include" not in first
    assert "include" not in second
    assert second["previous_response_id"]


def test_reasoning_survives_in_the_background_and_in_a_fork(chats: Chats) -> None:
    """000-24: a background response gives its reasoning, too, where the state behind the thread prevents a chain; a fork has it, also a large one."""
    large = "Zm9v" * 2000
    project = chats.answers(
        thought("Hm.", sealed=large) + LOOK, text("It adds up."), text("Yes."), RUNOPS_MODEL_BACKGROUND="true"
    )
    session = session_of(project.here("chat", "prices.yaml", "-m", "What does it do?"))
    assert project.here("chat", "--fork", session, "-m", "Sure?").returncode == 0
    assert [body["background"] for body in chats.bodies()] == [True] * 3
    assert list(map(sealed, chats.bodies())) == [[], [large], [large]]


def test_a_delegate_takes_over_the_reasoning(chats: Chats) -> None:
    """000-24: a delegate that sees the conversation is sent it with the reasoning, and keeps its own between its calls."""
    task = {"goal": "Look.", "deliverable": "A word.", "end": "It is known.", "context": "inherit"}

    def answer(asked: scripted_model.AskedFor) -> scripted_model.Answer:
        delegate = "You are a delegate" in asked.instructions
        calls = sum(each.get("type") == "function_call" for each in asked.items)
        if not delegate:
            return thought("I look.") + (LOOK, call("delegate", task), text("So."))[min(calls, 2)]
        return thought("It looks.") + (LOOK if calls == 1 else text("It adds up."))

    project = chats.answers(answer)
    done = project.here("chat", "prices.yaml", "--mode", "agent", "-m", "Send one.")
    assert done.returncode == 0, done.stderr
    assert list(map(len, map(sealed, chats.bodies()))) == [0, 1, 1, 2, 2]


def test_a_model_that_does_not_reason_is_asked_without(chats: Chats) -> None:
    """000-24: a model that refuses to be asked for its reasoning gets the request without, and is not asked for it again."""
    project = chats.answers(LOOK, text("It adds up."))
    assert chats.server is not None
    chats.server.api.profile = rules.Profile(unsealed=frozenset({"test-model"}))
    done = project.here("chat", "prices.yaml", "-m", "What does it do?")
    assert done.returncode == 0, done.stderr
    assert ["include" in body for body in chats.bodies()] == [True, False, False]


@pytest.mark.drawn(share=0.5)
@pytest.mark.parametrize("profile", ["vllm", "compatible"])
def test_a_server_without_it_is_not_asked(profile: str, chats: Chats) -> None:
    """000-24: only profiles with encrypted reasoning ask for it."""
    project = chats.answers(text("It adds up."), RUNOPS_MODEL_PROFILE=profile)
    assert project.here("chat", "prices.yaml", "-m", "What does it do?").returncode == 0
    assert "include" not in chats.bodies()[0]


def test_a_step_of_a_run_keeps_its_reasoning(chats: Chats) -> None:
    """000-24: a step that has its answer corrected sends the reasoning with it; a recording has none of it, and plays without it."""
    wrong, right = thought("Hm.") + text({"value": "c"}), thought("Ah.") + text({"value": "a"})
    project = chats.answers(wrong, right)
    project.write("kind.yaml", KIND)
    done = project.here("run", "kind.yaml", "--model-calls", "record", "--quiet")
    assert done.returncode == 0, done.stderr
    assert list(map(sealed, chats.bodies())) == [[], ["sealed_0001_0"]]
    assert "sealed" not in (project.folder / "cassettes" / "kind.json").read_text()
    chats.answers()
    assert project.here("run", "kind.yaml", "--model-calls", "replay", "--quiet").returncode == 0


def test_what_shows_a_secret_is_not_kept(chats: Chats) -> None:
    """000-24: encrypted reasoning is never masked, as that would damage it; from a server that encrypts nothing, what shows a secret is left out."""
    project = chats.answers(
        thought("Hm.", sealed="I saw swordfish-9") + text("A."), text("B."), SHOP_PASSWORD="swordfish-9"
    )
    project.write("signed.yaml", 'version: 1\nsecrets: [SHOP_PASSWORD]\nnodes: [{id: a, type: transform, expr: "1"}]\n')
    session = session_of(project.here("chat", "signed.yaml", "-m", "What does it do?"))
    assert project.here("chat", "--resume", session, "-m", "Sure?").returncode == 0
    assert list(map(sealed, chats.bodies())) == [[], []]
    assert "swordfish" not in "".join(map(str, logged(chats, session)))


def test_a_chain_begins_only_on_what_was_stored(chats: Chats) -> None:
    """Bug 2: after requests with `store: false`, `model_store` sends the whole conversation once, and chains from there on."""
    project = chats.answers(text("It adds up."), text("Yes."), text("Yes, yes."))
    clean = ("--strategy", "clean")
    session = session_of(project.here("chat", "prices.yaml", *clean, "-m", "What does it do?"))
    stored = type(project)(project.folder, **project.environment, RUNOPS_MODEL_STORE="true")
    for word in ("Sure?", "And now?"):
        assert stored.here("chat", "--resume", session, "-m", word).returncode == 0
    first, second, third = chats.bodies()
    assert (first["store"], second["store"]) == (False, True)
    assert "previous_response_id" not in second
    assert len(second["input"]) == 3
    assert third["previous_response_id"] == "resp_0002"
    assert all(each.status == 200 for each in chats.asked)


def refused(items: list[dict[str, Any]], model: str = "m") -> str:
    """What the fake server says of a request that continues an answer with reasoning and a call; empty if it accepts it."""
    given = {"c1": [rules.Sealed("rs_1", "x", "m")]}
    try:
        rules.check_sealed(items, model, given)
    except rules.ApiError as error:
        return error.message
    return ""


THOUGHT = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x"}
CALLED = {"type": "function_call", "call_id": "c1", "name": "look", "arguments": "{}"}


def test_the_fake_server_checks_reasoning_like_the_api() -> None:
    """The fake refuses a call without the reasoning that it gave with it, reasoning that was changed, and that of another model."""
    assert refused([THOUGHT, CALLED]) == ""
    assert "without its required 'reasoning' item: 'rs_1'" in refused([CALLED])
    assert "could not be verified" in refused([{**THOUGHT, "encrypted_content": "[hidden]"}, CALLED])
    assert "could not be verified" in refused([THOUGHT, CALLED], "other")
    assert refused([CALLED], "other") == ""
    assert "without its required 'reasoning' item" in refused([CALLED, THOUGHT])


def test_a_client_without_the_reasoning_is_refused(chats: Chats) -> None:
    """The fake server notes what it gave by the call, over HTTP too."""
    with responses.serve([thought("Hm.") + call("look", {}, call_id="c1"), text("So.")]) as server:
        api = server.api
        asked = {"model": "m", "input": "Go.", "include": INCLUDED, "store": False}
        api.create(asked)
        output = {"type": "function_call_output", "call_id": "c1", "output": "A page."}
        with pytest.raises(rules.ApiError, match="without its required 'reasoning' item"):
            api.create({**asked, "input": [{"role": "user", "content": "Go."}, CALLED, output]})
        sent = {**THOUGHT, "id": "rs_0001_0", "encrypted_content": "sealed_0001_0"}
        assert isinstance(
            api.create({**asked, "input": [{"role": "user", "content": "Go."}, sent, CALLED, output]}).answer,
            scripted_model.Answer,
        )


def test_show_leaves_encrypted_reasoning_out(chats: Chats) -> None:
    """000-24: `show` lists an answer without what only its model can read."""
    project = chats.answers(thought("First.") + LOOK, text("It adds up."))
    session = session_of(project.here("chat", "prices.yaml", "-m", "What does it do?"))
    shown = project.show(session)
    assert [each["text"] for each in shown["said"] if each["kind"] == "reasoning"] == ["First."]
    assert "sealed" not in json.dumps(shown)
    assert project.here("show", session).returncode == 0
