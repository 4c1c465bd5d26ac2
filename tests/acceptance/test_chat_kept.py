"""Flags of `runops chat` that are kept with the session, for each later resume."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from runtime.testing.scripted_model import text
from tests.chats import Chats, session_of, text_of, typed


@pytest.fixture
def chats(tmp_path: Path) -> Iterator[Chats]:
    """Chat sessions in a project."""
    made = Chats(tmp_path)
    yield made
    made.close()


def delegate_of(body: dict[str, Any]) -> str:
    """The description of the tool `delegate`."""
    return next(each["description"] for each in body["tools"] if each["name"] == "delegate")


def test_a_session_keeps_its_model_knowledge_and_delegate_flags(chats: Chats) -> None:
    """Flags persist for a resume or fork without flags, in another folder and with other variables. A later flag overrides them from then on."""
    project = chats.answers(*[text("Yes.")] * 6, RUNOPS_MODEL_DIRECTOR="from-variable")
    for folder, known in (("known", "Prices are in euro."), ("other", "Prices are in crowns.")):
        (project.folder / folder).mkdir()
        (project.folder / folder / "shop.md").write_text(f"# Prices\n{known}\n")
    flags = ("--model", "said", "--knowledge", "known", "--delegate-clean")
    done = project.runops("chat", *flags, "-m", "Which prices?")
    session = session_of(done)
    assert project.runops("chat", "--resume", session, "-m", "Which prices, again?").returncode == 0
    assert project.runops("chat", "--fork", session, "-m", "Which prices, in a fork?").returncode == 0
    first, *others = chats.bodies()
    for body in others:
        assert body["model"] == "said"
        assert "Prices are in euro." in text_of(body)
        assert delegate_of(body) == delegate_of(first)
    changed = ("--model", "later", "--knowledge", "other", "--delegate-inherit")
    typed(project, "Which prices, at last?\n", "chat", "--resume", session, *changed)
    typed(project, "Which prices, once more?\n", "chat", "--resume", session)
    for body in chats.bodies()[-2:]:
        assert body["model"] == "later"
        assert "Prices are in crowns." in text_of(body)
        assert "Prices are in euro." not in text_of(body)
        assert delegate_of(body) != delegate_of(first)
    # Anything that no flag has set comes from the settings.
    assert project.runops("chat", "-m", "Which prices, in another session?").returncode == 0
    assert chats.bodies()[-1]["model"] == "from-variable"
    assert "Prices are in" not in text_of(chats.bodies()[-1])


def test_a_repeated_flag_is_kept_once(chats: Chats) -> None:
    """A resume with the same flags, or with none, adds no further version of the setting."""
    project = chats.answers(text("Yes."), text("Yes."), text("Yes."))
    for arguments in (("--model", "said"), ("--resume", "last", "--model", "said"), ("--resume", "last")):
        assert project.runops("chat", *arguments, "-m", "Hello").returncode == 0
    (file,) = (project.folder / ".runops" / "conversations").glob("*.jsonl")
    assert file.read_text().count('"of":"setting"') == 1
    assert "setting model_director  version 1  by the person: --model said" in project.runops("show", file.stem).stdout


def test_a_session_with_a_model_flag_needs_no_model_setting(chats: Chats) -> None:
    """The session keeps its model although the variable is unset."""
    project = chats.answers(text("Yes."), text("Yes."))
    del project.environment["RUNOPS_MODEL"]
    assert project.runops("chat", "-m", "Hello").returncode == 3
    assert project.runops("chat", "--model", "said", "-m", "Hello").returncode == 0
    assert project.runops("chat", "--resume", "last", "-m", "Hello").returncode == 0
    assert [each["model"] for each in chats.bodies()] == ["said", "said"]
