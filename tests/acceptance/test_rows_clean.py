"""Row 3 of the five context strategies: no state is injected, each part has its tool, and a server that stores requests gets only new items."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from runtime.context import items
from runtime.testing.scripted_model import Answer, AskedFor, call, text
from tests.chats import Chats, typed, words_of
from tests.rows import agrees, begun, is_for_summary, rendered, said

GETS: list[tuple[str, dict[str, Any], str]] = [
    ("get_workflow_summary", {}, "expression-failed"),
    ("get_workflow_nodes", {"which": "1-2", "type": "transform"}, "id: total"),
    ("get_workflow_nodes", {"which": "recent", "type": None}, "id: parts"),
    ("get_workflow_nodes", {"which": "all", "type": None}, "id: notes"),
    ("get_workflow_variables", {"key": None, "run": None}, "parts"),
    ("get_workflow_variables", {"key": "parts", "run": None}, "8.00"),
    ("get_current_plan", {}, "no plan"),
    ("get_workflow_description", {}, ""),
    ("get_browser_state", {}, ""),
]
"""Each tool with its arguments, and some text of its answer."""


@pytest.fixture
def chats(tmp_path: Path) -> Iterator[Chats]:
    """Chat sessions in a project."""
    made = Chats(tmp_path)
    yield made
    made.close()


def clean(asked: AskedFor) -> Answer:
    """A model that calls all tools at once, and summarises."""
    if asked.instructions.startswith("Sum up"):
        return text("Everything about the run was asked, and answered.")
    if "Look at all" in asked.newest:
        calls = [call(name, arguments) for name, arguments, _holds in GETS]
        return sum(calls[1:], calls[0])
    return text(f"Answer {sum(item.get('role') == 'assistant' for item in asked.items) + 1}.")


SUMMED_UP = items.SUMMED_UP.strip()

STORE = {"RUNOPS_MODEL_STORE": "true"}
CLEAN = ("--strategy", "clean")
SETTINGS: dict[str, tuple[tuple[str, ...], dict[str, str]]] = {
    "clean": (CLEAN, {}),
    "injected": (("--strategy", "injected"), {}),
    "chained": ((*CLEAN, "--recent-outputs", "3000"), STORE),
    "not_proved": ((*CLEAN, "--recent-outputs", "3000"), {**STORE, "RUNOPS_MODEL_PROFILE": "openrouter"}),
    "not_clean": (("--strategy", "injected"), STORE),
    "checkpoint_at_1000": ((*CLEAN, "--checkpoint-at", "1000"), STORE),
}
"""Settings of the row, each with a value besides its default: flags and environment."""


@pytest.mark.drawn(share=0.15)
@pytest.mark.parametrize("name", SETTINGS)
def test_clean_with_retrieval_tools(name: str, chats: Chats) -> None:
    """No state is injected, and each part has its tool. A storing server gets only new items until a summary, and everything after a loss."""
    flags, more = SETTINGS[name]
    project = chats.answers(clean, **more)
    run = begun(project)
    done = typed(project, "Look at all.\nSecond?\nThird?\n", "chat", run, *flags)
    assert done.returncode == 0, done.stderr
    assert chats.server is not None
    chats.server.forget()
    done = typed(project, "Fourth?\n", "chat", "--resume", "last")
    assert done.returncode == 0, done.stderr
    agrees(chats, f"clean_with_retrieval_tools-{name}")
    bodies = [body for body in chats.bodies() if not is_for_summary(body)]
    assert any(rendered(words_of(body)) for body in bodies) == ("injected" in flags)
    read = words_of(bodies[1])
    if SUMMED_UP not in str(read):
        # The items before the message are the steps of the run itself.
        answers = [each for each in read if each.startswith("output: ")][-len(GETS) :]
        assert [holds in each for each, (_name, _arguments, holds) in zip(answers, GETS, strict=True)] == [True] * 9
    follows = [body.get("previous_response_id") is not None for body in bodies]
    assert chats.bodies()[0]["store"] == bool(more)
    summed = any(is_for_summary(body) for body in chats.bodies())
    assert summed == (name == "checkpoint_at_1000")
    match name:
        case "chained":
            # The fourth is sent twice: the server has lost the response before it.
            assert follows == [False, True, True, True, True, False]
            assert words_of(bodies[3]) == ["user: Third?"]
            assert words_of(bodies[4]) == ["user: Fourth?"]
            assert "user: Look at all." in words_of(bodies[-1])
        case "checkpoint_at_1000":
            begins = next(number for number, body in enumerate(bodies) if SUMMED_UP in str(words_of(body)))
            assert follows[begins] is False
            assert "Everything about the run was asked" in str(words_of(bodies[begins]))
            assert follows[-2:] == [True, False]
            assert "Everything about the run was asked" in str(words_of(bodies[-1]))
        case _:
            assert not any(follows)
            assert "user: Look at all." in said(words_of(bodies[3]))
