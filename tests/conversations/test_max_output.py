"""Limits of one answer, chaining and strategy of sessions: settings and flags that a session keeps."""

from __future__ import annotations

import json

import pytest

from runtime.testing import scripted_model
from runtime.testing.scripted_model import call, incomplete, text
from tests.chats import Chats, session_of, words_of

CUT = incomplete("It adds")


def limits(chats: Chats) -> list[int]:
    """The tokens that each request allows for its answer."""
    return [body["max_output_tokens"] for body in chats.bodies()]


def test_a_cut_answer_names_what_allows_a_longer_one(chats: Chats) -> None:
    """Bug 8: in a chat the fix of a cut answer names the flag and the setting, with twice the tokens; the flag holds for the session."""
    project = chats.answers(CUT, text("It adds up."), text("Yes."))
    done = project.here("chat", "prices.yaml", "-m", "What does it do?")
    assert "`--max-output 32000` (the setting `session_max_output`)" in done.stderr
    assert "node" not in done.stderr.partition("error[")[2]
    session = session_of(done)
    assert project.here("chat", "--resume", session, "--max-output", "32000", "-m", "continue").returncode == 0
    assert project.here("chat", "--resume", session, "-m", "Sure?").returncode == 0
    assert limits(chats) == [16_000, 32_000, 32_000]


def test_a_cut_answer_of_a_node_names_its_field(chats: Chats) -> None:
    """Bug 8: for a node the fix names the field `max_output`."""
    project = chats.answers(CUT)
    project.write(
        "kind.yaml",
        "version: 1\nnodes:\n  - {id: kind, type: cognition, instruction: Sort., input: tea, output: string}\n",
    )
    done = project.here("run", "kind.yaml", "--quiet")
    assert done.returncode == 1
    assert "give the node a larger `max_output`" in done.stderr


def test_a_delegate_that_is_cut_names_its_own_limit(chats: Chats) -> None:
    """Bug 8: a delegate has a limit of its own, which its cut answer names; its sender is told."""
    task = {"goal": "Look.", "deliverable": "A word.", "end": "It is known.", "context": "clean"}
    script = scripted_model.first_of(
        scripted_model.when(lambda asked: "You are a delegate" in asked.instructions, CUT),
        scripted_model.when("Send one.", call("delegate", task)),
        otherwise=text("It was cut."),
    )
    project = chats.answers(script, RUNOPS_DELEGATE_MAX_OUTPUT="500")
    done = project.here("chat", "prices.yaml", "--mode", "agent", "-m", "Send one.")
    assert done.returncode == 0, done.stderr
    assert limits(chats)[:2] == [16_000, 500]
    shown = json.dumps(project.show(session_of(done)))
    assert "RUNOPS_DELEGATE_MAX_OUTPUT=1000" in shown


@pytest.mark.drawn(share=0.3)
@pytest.mark.parametrize(("profile", "limit"), [("openrouter", 16_000), ("vllm", 4_000), ("compatible", 4_000)])
def test_the_default_is_by_provider(profile: str, limit: int, chats: Chats) -> None:
    """An answer may be longer by default where models reason; a setting is stronger."""
    project = chats.answers(text("Yes."), text("Yes."), RUNOPS_MODEL_PROFILE=profile)
    assert project.here("chat", "-m", "Sure?").returncode == 0
    said = type(project)(project.folder, **project.environment, RUNOPS_SESSION_MAX_OUTPUT="5000")
    assert said.here("chat", "-m", "Sure?").returncode == 0
    assert limits(chats) == [limit, 5_000]


def test_a_session_keeps_whether_the_provider_stores(chats: Chats) -> None:
    """`--store` and `--no-store` hold for the session from then on, whatever the variable says."""
    project = chats.answers(*[text("Yes.")] * 4)
    session = session_of(project.here("chat", "--store", "--strategy", "clean", "-m", "One?"))
    for flags in ((), ("--no-store",), ()):
        assert project.here("chat", "--resume", session, *flags, "-m", "Sure?").returncode == 0
    assert [body["store"] for body in chats.bodies()] == [True, True, False, False]
    follows = [body.get("previous_response_id") for body in chats.bodies()]
    assert follows == [None, "resp_0001", None, None]


def test_a_build_keeps_its_strategy_and_limits(chats: Chats) -> None:
    """`build` has `--strategy`, `--store` and `--max-output`, and a resume keeps them."""
    plan = call("get_current_plan", {})
    project = chats.answers(plan, text("I stop."), text("I stop."), plan, text("I stop."), text("I stop."))
    flags = ("--strategy", "injected", "--store", "--max-output", "9000")
    done = project.here("build", "Add up the prices", *flags, "--yes", "--quiet")
    assert done.returncode == 1, done.stderr
    done = project.here("build", "--resume", "last", "--yes", "--quiet")
    assert done.returncode == 1, done.stderr
    assert limits(chats) == [9_000] * 6
    assert [body["store"] for body in chats.bodies()] == [True] * 6
    for body in chats.bodies():
        assert "## variables" in words_of(body)[-1]
