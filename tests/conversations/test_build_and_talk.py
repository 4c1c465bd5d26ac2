"""One session to talk and to build: row 000-21."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from runtime.testing.scripted_model import call, text
from tests.chats import PRICES, Chats, words_of

GUARDED = PRICES.partition("nodes:\n")[2].partition("output:")[0].replace("map('number')", "map('number', none)")
EDIT = call(
    "update_node",
    {
        "id": "total",
        "yaml": "{id: total, type: transform, expr: \"{{ parts | reject('eq', 'n/a') | map('number') | sum }}\"}",
        "reason": "n/a is no price",
    },
)
TRY = call(
    "execute_nodes",
    {"nodes": "all", "mode": None, "from": None, "item": None, "reason": "to see what comes of it"},
)
FINISH = call(
    "finish", {"done": True, "summary": "Adds up what is a price.", "unproved": None, "reason": "all is proved"}
)


@pytest.fixture
def chats(tmp_path: Path) -> Iterator[Chats]:
    given = Chats(tmp_path)
    yield given
    given.close()


def test_000_21_a_chat_about_a_file_builds_on_it(chats: Chats) -> None:
    """In mode agent the draft begins as the file; edits, trials, proof and the saved file are of one session, and the talk goes on."""
    project = chats.answers(EDIT, TRY, FINISH, text("It leaves out n/a."))
    done = project.here("chat", "prices.yaml", "--mode", "agent", "-m", "Leave out what is no number.", "--json")
    assert done.returncode == 0, done.stderr
    saved = (project.folder / "prices.yaml").read_text()
    assert "reject" in saved
    assert project.here("run", "prices.yaml", "--quiet").returncode == 0
    again = project.here("chat", "--resume", "last", "-m", "What does it do?", "-q")
    assert (again.stdout, again.returncode) == ("It leaves out n/a.\n", 0)
    last = words_of(chats.bodies()[-1])
    assert "proved and saved" in last[-1]
