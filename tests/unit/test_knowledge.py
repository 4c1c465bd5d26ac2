"""Knowledge from Markdown files: sections by heading, and those that match a question."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from director.conversation import knowledge
from nodes.errors import UsageError
from runtime.context.window import Part

SHOP = """\
The shop sells hats.

# Orders ##

Each order has a number.

```yaml
# Refunds
refund: none
```

## Refunds

Money goes back within a week. Ask for the order.

# Empty
# Hats

Hats come in three sizes.
"""


def known(*files: str) -> knowledge.Knowledge:
    """The knowledge of these texts."""
    return knowledge.Knowledge(
        each for number, text in enumerate(files) for each in knowledge.split(f"f{number}.md", text)
    )


def titles(found: list[knowledge.Section]) -> list[str]:
    """The titles of the sections."""
    return [each.title for each in found]


def test_a_file_is_split_at_its_headings() -> None:
    """Text before the first heading is titled like the file; a comment in a code block is no heading; an empty section is left out."""
    sections = known(SHOP).sections
    assert titles(list(sections)) == ["f0", "Orders", "Refunds", "Hats"]
    assert "# Refunds" in sections[1].text
    assert sections[2].text == "Money goes back within a week. Ask for the order."


def test_a_word_in_the_title_counts_three_times_one_in_the_text() -> None:
    """The best section comes first, of equals the earlier one, a long one later; unrelated sections are left out."""
    sections = known("# Alpha\nbeta\n# Beta\ngamma\n# Gamma\nbeta delta gamma\n# Other\nbeta")
    assert titles(sections.best("BETA, please?", 9)) == ["Beta", "Alpha", "Other", "Gamma"]
    assert titles(sections.best("gamma beta delta", 9))[:2] == ["Gamma", "Beta"]
    assert titles(sections.best("beta", 2)) == ["Beta", "Alpha"]
    assert sections.best("beta", 0) == []
    assert sections.best("nothing of it", 3) == []


def test_a_word_counts_by_how_often_a_section_has_it() -> None:
    """003-5: of sections of the same length, that which has a word most often comes first; how often the question has it does not matter."""
    rest = "It is kept in a cold room behind the shop."
    sections = known(
        f"# One\ntea. {rest} {rest}\n# Two\n{'tea, ' * 10} {rest}\n# Three\nmilk\n# Four\nmilk\n# Five\nrum"
    )
    assert titles(sections.best("Where is the tea?", 2)) == ["Two", "One"]
    assert titles(sections.best("milk tea tea tea tea", 9)) == titles(sections.best("milk tea", 9))


def test_a_rare_word_counts_more_than_one_of_every_section() -> None:
    """003-5: a word of a single section decides against one that most sections have."""
    sections = known(
        "# One\nprice price price of tea\n# Two\nprice of sugar\n# Three\nprice of milk\n# Four\nprice of rum"
    )
    assert titles(sections.best("the price of rum", 1)) == ["Four"]


@given(st.text(), st.text())
def test_any_question_is_a_question(question: str, text: str) -> None:
    """No character of a question is an operator of the search, and a section that has its words is found."""
    # A text that is a heading begins a section of its own, without content.
    sections = known(f"# Title\n tea {text}")
    assert titles(sections.best(f"{question} tea", 1)) in (["Title"], ["f0"])


def test_text_without_blanks_is_found_by_its_characters() -> None:
    """A question in Chinese finds its section."""
    sections = known("# 订单\n每个订单都有号码。\n# 帽子\n三种尺寸。")
    assert titles(sections.best("订单怎么付款", 1)) == ["订单"]


def test_a_part_names_its_file_and_section() -> None:
    """A part for the window is named after its file and section."""
    assert known(SHOP).parts("What of refunds?", 1) == (
        Part("f0.md: Refunds", "Money goes back within a week. Ask for the order."),
    )


def test_files_and_folders_are_read_in_order(tmp_path: Path) -> None:
    """A folder is all its Markdown files, sorted by path; nothing else in it is read."""
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "one.md").write_text("# One\ntea", encoding="utf-8")
    (tmp_path / "a.md").write_text("# Two\ntea", encoding="utf-8")
    (tmp_path / ".env").write_text("TOKEN=tea", encoding="utf-8")
    (tmp_path / "c.txt").write_text("tea", encoding="utf-8")
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "x.md").write_text("tea", encoding="utf-8")
    assert titles(list(knowledge.Knowledge.read([tmp_path]).sections)) == ["Two", "One"]


def test_unusable_files_are_refused(tmp_path: Path) -> None:
    """Missing files, files that are no Markdown or no text, too large or too many files are refused, without waiting for a pipe."""
    large, binary, other = tmp_path / "l.md", tmp_path / "b.md", tmp_path / "x.txt"
    linked, pipe = tmp_path / "linked.md", tmp_path / "pipe.md"
    linked.symlink_to(other)
    os.mkfifo(pipe)
    large.write_bytes(b"x" * (knowledge.LARGEST_FILE + 1))
    binary.write_bytes(b"\xff\xfe\xff")
    other.write_text("x")
    many = [tmp_path / "l.md"] * (knowledge.MOST_FILES + 1)
    for paths, code in (
        ([tmp_path / "none.md"], "file-not-found"),
        ([tmp_path / "none"], "file-not-found"),
        ([other], "file-not-read"),
        ([linked], "file-not-read"),
        ([pipe], "file-not-read"),
        ([binary], "file-not-read"),
        ([large], "knowledge-too-large"),
        (many, "knowledge-too-large"),
    ):
        with pytest.raises(UsageError) as caught:
            knowledge.Knowledge.read(paths)
        assert caught.value.code == code
        assert caught.value.fix


def test_a_file_name_that_is_no_text_can_be_sent(tmp_path: Path) -> None:
    """Characters of a file name that are no UTF-8 are replaced, because a request contains UTF-8 only."""
    (tmp_path / os.fsdecode(b"n\xff.md")).write_text("tea")
    (part,) = knowledge.Knowledge.read([tmp_path]).parts("tea", 1)
    assert part.name.encode() == "n\N{REPLACEMENT CHARACTER}.md: n\N{REPLACEMENT CHARACTER}".encode()


def test_a_section_has_an_end() -> None:
    """A section longer than the limit is cut, and says so."""
    (section,) = known("# One\n" + "tea " * 9000).sections
    assert len(section.text) < knowledge.LONGEST + 20
    assert section.text.endswith("… (cut)")


@given(st.lists(st.text(alphabet="ab# `~\n", max_size=60), max_size=3), st.text(alphabet="ab ", max_size=9), st.integers(0, 4))  # fmt: skip
def test_the_same_question_has_the_same_answer(texts: list[str], question: str, top_k: int) -> None:
    """A search gives at most so many sections that share a word, the same each time; a larger number only adds sections."""
    sections = known(*texts)
    words = {*knowledge.words_of(question)}
    found = sections.best(question, top_k)
    assert found == known(*texts).best(question, top_k)
    assert found == sections.best(question, top_k + 1)[:top_k]
    sharing = [each for each in sections.sections if words & {*knowledge.words_of(f"{each.title} {each.text}")}]
    assert len(found) == min(top_k, len(sharing))
    assert all(each in sharing for each in found)
