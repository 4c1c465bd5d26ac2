"""What flags of `runops chat` say is kept with the session, for whoever continues with it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from runtime.testing.scripted_model import text
from tests.chats import Chats, session_of, text_of, typed


@pytest.fixture
def chats(tmp_path: Path) -> Iterator[Chats]:
    """Conversations in a project."""
    made = Chats(tmp_path)
    yield made
    made.close()


def delegate_of(body: dict[str, Any]) -> str:
    """How the tool `delegate` is described."""
    return next(each["description"] for each in body["tools"] if each["name"] == "delegate")


def test_a_session_goes_on_with_the_model_the_knowledge_and_the_delegates_that_were_said(chats: Chats) -> None:
    """Without a flag, in another folder, with other variables; also its fork. A later flag changes it, and then that holds."""
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
    # What nothing was said of is as the settings have it.
    assert project.runops("chat", "-m", "Which prices, in another session?").returncode == 0
    assert chats.bodies()[-1]["model"] == "from-variable"
    assert "Prices are in" not in text_of(chats.bodies()[-1])


def test_what_a_flag_says_once_more_is_kept_once(chats: Chats) -> None:
    """A session that is resumed with the flags that it has holds no further version of them; without any it holds none."""
    project = chats.answers(text("Yes."), text("Yes."), text("Yes."))
    for arguments in (("--model", "said"), ("--resume", "last", "--model", "said"), ("--resume", "last")):
        assert project.runops("chat", *arguments, "-m", "Hello").returncode == 0
    (file,) = (project.folder / ".runops" / "conversations").glob("*.jsonl")
    assert file.read_text().count('"of":"setting"') == 1
    assert "setting model_director  version 1  by the person: --model said" in project.runops("show", file.stem).stdout


def test_a_session_needs_no_model_in_the_settings_that_was_said_to_it(chats: Chats) -> None:
    """Where the variable is gone, the session has its model all the same."""
    project = chats.answers(text("Yes."), text("Yes."))
    del project.environment["RUNOPS_MODEL"]
    assert project.runops("chat", "-m", "Hello").returncode == 3
    assert project.runops("chat", "--model", "said", "-m", "Hello").returncode == 0
    assert project.runops("chat", "--resume", "last", "-m", "Hello").returncode == 0
    assert [each["model"] for each in chats.bodies()] == ["said", "said"]
