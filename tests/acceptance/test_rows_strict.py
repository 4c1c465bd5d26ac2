"""Row 4 of the five context strategies: a hard limit on the whole request."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from runtime.context import items
from runtime.messages import estimates
from runtime.testing import scripted_model
from runtime.testing.scripted_model import Answer, AskedFor, text
from tests.chats import Chats, text_of, typed, words_of
from tests.rows import SUM_UP, agrees, is_for_summary, last, parts_of, rendered, said, summaries, talked

KNOWLEDGE = """\
# Notes
Of prices, of returns: this is the first section.
LONG
# Opening hours
From nine to five.
# Returns
They take 14 days; the price is paid back.
# Prices
In euro; `n/a` stands for none.
# Shipping
Shipping is free from 50 euro.
""".replace("LONG", "It continues for long.\n" * 150)
"""Three sections concern prices and returns: two by their titles, one by two words of its long text."""

THINGS, LAST = 14, "prices, returns?"


@pytest.fixture
def chats(tmp_path: Path) -> Iterator[Chats]:
    """Chat sessions in a project."""
    made = Chats(tmp_path)
    yield made
    made.close()


def strict(asked: AskedFor) -> Answer:
    """A model that answers in some sentences, and with more than fits in a summary."""
    if asked.instructions.startswith(SUM_UP):
        return text("The colour was asked for: it is blue (decided). " + "It is so, and it was so before. " * 60)
    return text("It is so, and it was so before. " * 6)


STRICT = ("--strategy", "clean", "--knowledge", "known", "--strict")
SETTINGS: dict[str, tuple[str, ...]] = {
    "1500": STRICT,
    "hard_limit_900": (*STRICT[:-1], "--hard-limit", "900"),
    "hard_limit_20000": (*STRICT[:-1], "--hard-limit", "20000"),
    "prune": (*STRICT, "--overflow", "prune"),
    "min_recent_9": (*STRICT, "--min-recent", "9"),
    "top_k_1": (*STRICT, "--top-k", "1"),
}
"""Settings of the row, each with a value besides its default."""


def known(chats: Chats) -> None:
    """Write the folder of knowledge files."""
    (folder := chats.folder / "known").mkdir()
    (folder / "shop.md").write_text(KNOWLEDGE, encoding="utf-8")


@pytest.mark.drawn(share=0.15)
@pytest.mark.parametrize("name", SETTINGS)
def test_strict_budget(name: str, chats: Chats) -> None:
    """The whole request respects a hard limit: knowledge by keyword, the rest summarised or dropped. A too large message is not sent, and `/save` has everything."""
    project = chats.answers(strict)
    known(chats)
    limit = int(name.removeprefix("hard_limit_")) if name.startswith("hard_limit_") else 1_500
    words = "".join(f"What about thing {number}, its price, its returns?\n" for number in range(1, THINGS + 1))
    too_large = limit < 20_000
    words += "word " * limit * 2 * too_large + f"\n{LAST}\n/save all.md\n"
    done = typed(project, words, "chat", *SETTINGS[name])
    assert done.returncode == 0, done.stderr
    agrees(chats, f"strict_budget-{name}")
    bodies = chats.bodies()
    # Never above the limit, and a message that is too large alone is not sent.
    assert ("error[window-too-large]" in done.stderr) == too_large
    assert not any("word word" in text_of(body) for body in bodies)
    sizes = [int(found.replace(",", "")) for found in re.findall(r"window ([\d,]+) of", done.stderr)]
    assert len(sizes) == len(talked(chats)) == THINGS + 1
    assert max(sizes) <= limit * 93 // 100
    # Tools, within their share.
    offered = {len(body.get("tools") or ()) for body in bodies if not is_for_summary(body)}
    assert (len(offered), offered == {0}) == (1, limit < 20_000)
    # Knowledge: the rarer word, a title and a short section count more, and what is shown has its share, with the rule how it is used.
    assert last(chats).count(f"user: {LAST}") == 1
    rule, *found = parts_of(last(chats))
    three = ["shop.md: Prices", "shop.md: Returns", "shop.md: Notes"]
    assert (rule, found) == ("knowledge", three[:1] if name == "top_k_1" else three)
    assert estimates.of_text(rendered(last(chats))) <= limit * 40 // 100
    assert ("(cut)" in rendered(last(chats))) == (name != "top_k_1" and too_large)
    if too_large:
        demand_narrow(chats, limit, prunes=name == "prune", least=9 if name == "min_recent_9" else 4)
    else:
        assert (said(last(chats))[0], summaries(chats)) == ("user: What about thing 1, its price, its returns?", [])
    saved = (project.folder / "all.md").read_text()
    assert all(f"What about thing {number}," in saved for number in range(1, THINGS + 1))


def demand_narrow(chats: Chats, limit: int, *, prunes: bool, least: int) -> None:
    """The oldest messages are dropped, or summarised in at most a third of the conversation's share. The summary covers none of the newest messages."""
    words = said(last(chats))
    assert not any("thing 1," in each for each in words)
    assert bool(summaries(chats)) == (not prunes)
    found = [each.removeprefix("user: ") for each in words if items.SUMMED_UP in each]
    assert bool(found) == (not prunes)
    if prunes:
        return
    assert limit // 20 < items.size_of(found[0]).tokens <= limit * 43 * 33 // 10_000
    # The number of messages after a summary made for that request: the newest ones, verbatim.
    after = [words_of(then) for body, then in itertools.pairwise(chats.bodies()) if is_for_summary(body)]
    kept = [len(said(each)) - 1 for each in after if f"user: {LAST}" not in each]
    assert min(kept, default=least) >= least
    assert max(kept, default=0) < 9 or least == 9


def test_without_a_summary_the_oldest_messages_are_left_out(chats: Chats) -> None:
    """Each message is answered within the limit. After three failed summaries none is requested until a later message was answered."""

    def refuses(asked: AskedFor) -> Answer:
        return scripted_model.refusal() if asked.instructions.startswith(SUM_UP) else strict(asked)

    project = chats.answers(refuses)
    known(chats)
    words = "".join(f"What about thing {number}, its price, its returns?\n" for number in range(1, THINGS + 1))
    done = typed(project, words, "chat", *STRICT)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == THINGS
    sizes = [int(found.replace(",", "")) for found in re.findall(r"window ([\d,]+) of", done.stderr)]
    assert max(sizes) <= 1_500
    assert not any("thing 1," in each for each in last(chats))
    order = "".join("s" if is_for_summary(body) else "." for body in chats.bodies())
    assert re.fullmatch(r"\.+(s\.){3}(\.s\.|\.)*", order), order
    assert order.endswith("."), order
    assert len(summaries(chats)) > 3, order
