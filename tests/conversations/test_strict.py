"""The strict budget: shares as settings (003-4, 003-11), knowledge (003-5, 003-7), no word on tools where none are sent."""

from __future__ import annotations

import json
from typing import Any

import pytest

from runtime.testing import scripted_model
from runtime.testing.scripted_model import text
from tests.chats import Chats, session_of, words_of
from tests.command import Project
from tests.rows import is_for_summary, rendered

KNOWN = """\
# Tea
Tea is kept in a cold room.
# Prices
The price of tea: price in euro, price without tax, price by piece, price of the day.
# Staff
Ask Anna where the tea is, she knows the price as well.
"""


def knowing(chats: Chats, *said: scripted_model.Scripted) -> Project:
    """A project with a folder of knowledge."""
    project = chats.answers(*said)
    (project.folder / "known").mkdir()
    project.write("known/shop.md", KNOWN)
    return project


def sections(project: Project, session: str) -> dict[str, dict[str, Any]]:
    """The sections of the next request of a session, by name."""
    shown = json.loads(project.here("show", session, "--window", "--json").stdout)
    return {each["name"]: each for each in shown["sections"]}


def test_shares_are_a_setting(chats: Chats) -> None:
    """003-4: `--shares` divides the hard limit; it holds for the session, and a variable or a table of pyproject.toml does the same."""
    project = chats.answers(text("Yes."), text("Yes."))
    session = session_of(project.here("chat", "--strict", "-m", "Sure?"))
    few = len(chats.bodies()[-1].get("tools") or ())
    wide = ("--shares", "system=70,state=0,conversation=20")
    assert project.here("chat", "--resume", session, *wide, "-m", "Sure?").returncode == 0
    assert len(chats.bodies()[-1]["tools"]) > few == 0
    found = sections(project, session)
    assert (found["system"]["share"], found["thread"]["share"]) == (0.7, 0.2)
    project.write("pyproject.toml", "[tool.runops]\nwindow_shares = {system = 20, state = 20}\n")
    project.write("runops.txt", "")
    other = session_of(chats.answers(text("Yes.")).here("chat", "--strict", "-m", "Sure?"))
    assert sections(project, other)["system"]["share"] == 0.2


@pytest.mark.parametrize(
    ("shares", "said"),
    [
        ("system=60,state=30,conversation=20", "system, state and conversation are 110 % together, and may be 100"),
        ("tools=10", "`tools=10` is no share"),
        ("summary=101", "summary"),
    ],
)
def test_shares_that_do_not_add_up_are_refused(shares: str, said: str, chats: Chats) -> None:
    """003-4: the sum is checked before anything is sent, by flag and by variable."""
    project = chats.answers()
    done = project.here("chat", "--strict", "--shares", shares, "-m", "Sure?")
    assert (done.returncode, "error[bad-setting]" in done.stderr) == (2, True)
    assert said in done.stderr
    set_so = Project(project.folder, **project.environment, RUNOPS_WINDOW_SHARES=shares)
    done = set_so.here("chat", "--strict", "-m", "Sure?")
    assert (done.returncode, "RUNOPS_WINDOW_SHARES" in done.stderr) == (2, True)
    assert chats.bodies() == []


def summing(asked: scripted_model.AskedFor) -> scripted_model.Answer:
    """A model whose summary is as long as it may be."""
    return text("All was said. " * 200) if "Sum up" in asked.instructions else text("word " * 60)


@pytest.mark.drawn(share=0.5)
@pytest.mark.parametrize(("share", "least", "most"), [(33, 100, 212), (70, 213, 451)])
def test_the_share_of_the_summary_is_a_setting(share: int, least: int, most: int, chats: Chats) -> None:
    """003-11: a summary takes at most its share of the conversation's."""
    project = chats.answers(summing)
    flags = ("--strict", "--shares", f"summary={share}", "--min-recent", "0")
    session = session_of(project.here("chat", *flags, "-m", "word " * 50))
    while not any(map(is_for_summary, chats.bodies())):
        assert project.here("chat", "--resume", session, "-m", "word " * 50).returncode == 0
    assert least <= sections(project, session)["summary"]["tokens"] <= most


def test_no_message_need_be_spared(chats: Chats) -> None:
    """003-4: with `--min-recent 0` a summary includes even the newest messages, where the room demands it."""
    project = chats.answers(summing)
    session = session_of(project.here("chat", "--strict", "--min-recent", "0", "-m", "one " * 700))
    assert project.here("chat", "--resume", session, "-m", "two " * 600).returncode == 0
    last = words_of(chats.bodies()[-1])
    assert "All was said." in last[0]
    assert [each[:9] for each in last[1:-1]] == ["user: two"]


def test_nothing_is_sent_where_a_summary_is_missing(chats: Chats) -> None:
    """003-4: with `--overflow summarize-only` nothing is left out without a summary: the request is not sent, and says why."""

    def failing(asked: scripted_model.AskedFor) -> scripted_model.Answer:
        return text("") if "Sum up" in asked.instructions else text("word " * 60)

    project = chats.answers(failing)
    session = session_of(project.here("chat", "--strict", "--overflow", "summarize-only", "-m", "one " * 700))
    done = project.here("chat", "--resume", session, "-m", "two " * 600)
    assert done.returncode == 1
    assert "error[window-unsummed]" in done.stderr
    assert "the model said nothing" in done.stderr
    assert is_for_summary(chats.bodies()[-1])
    assert project.here("chat", "--resume", session, "--overflow", "summarize", "-m", "Sure?").returncode == 0
    assert "one one" not in str(words_of(chats.bodies()[-1]))


def test_tools_are_mentioned_only_where_some_are_sent(chats: Chats) -> None:
    """Bug 9: where no tool has room, the prompt does not ask for them, and its tokens are free for others."""
    project = chats.answers(text("Yes."), text("Yes."))
    session = session_of(project.here("chat", "--strict", "-m", "Sure?"))
    assert project.here("chat", "--resume", session, "--hard-limit", "0", "-m", "Sure?").returncode == 0
    strict, whole = chats.bodies()
    assert ("tools" in strict, "tools" in whole) == (False, True)
    assert "tool" not in strict["instructions"]
    assert "Look with your tools" in whole["instructions"]


def test_a_rule_says_how_knowledge_is_used(chats: Chats) -> None:
    """003-7: where sections are sent, a rule before them says to use them first for facts, and to say what they do not have."""
    project = knowing(chats, text("In euro."), text("Hm."), text("Hm."))
    session = session_of(project.here("chat", "--strict", "--knowledge", "known", "-m", "Which prices?"))
    assert project.here("chat", "--resume", session, "-m", "Hello?").returncode == 0
    assert project.here("chat", "--resume", session, "--shares", "state=1", "-m", "Which prices?").returncode == 0
    first, second, narrow = (rendered(words_of(body)) for body in chats.bodies())
    rule, _, rest = first.partition("## shop.md: Prices")
    assert "## knowledge\nThe parts below are what the person knows. For facts look there first" in rule
    assert "price in euro" in rest
    assert "knowledge" not in second
    assert "knowledge" not in narrow


def test_a_section_counts_by_how_often_it_has_a_word(chats: Chats) -> None:
    """003-5: of sections with the same words, that which has them most often for its length comes first, and the title counts three times."""
    project = knowing(chats, text("In euro."), text("In a cold room."))
    session = session_of(
        project.here("chat", "--knowledge", "known", "--top-k", "1", "-m", "What does tea cost, which price?")
    )
    assert project.here("chat", "--resume", session, "-m", "Is there tea?").returncode == 0
    found = [rendered(words_of(body)) for body in chats.bodies()]
    assert ["## shop.md: Prices" in found[0], "## shop.md: Tea" in found[1]] == [True, True]
