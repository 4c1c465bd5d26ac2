"""What is pure of scouting: which lines of a page an instruction picks, which page a tool means, and how an action is written down."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from director.scouting import actions, relevance, tools
from nodes.errors import RunOpsError
from nodes.values import Json
from runtime.language import writer
from runtime.observation.observation import Observation
from tests import build_contexts

ROWS = "\n".join(
    f"""\
  - row "{number} {"Ada" if number % 2 else "Grace"} unpaid" [ref=r{number}]:
    - cell "{number}" [ref=c{number}]
    - button "Pay" [ref=p{number}]"""
    for number in range(1000, 1100)
)
PAGE = f"""\
- navigation "Main" [ref=e1]:
  - link "Orders" [ref=e2]
  - link "Prices" [ref=e3]
- heading "Lookup" [level=2] [ref=e4]
- textbox "Number" [ref=e5]
- heading "Orders" [level=2] [ref=e6]
- table "Open" [ref=e7]:
{ROWS}
- alert [ref=e9]: Closed on Monday"""


def page() -> Observation:
    """A page with far more than has room."""
    return Observation.read(PAGE, "http://shop.test/orders", "Orders")


def test_an_instruction_picks_the_lines_that_its_words_are_about() -> None:
    """The row that is named, where it stands, and what is in it; fields of a heading that is named; what the page calls out always."""
    chosen = relevance.select(page(), "How is order 1042 paid?")
    assert 'button "Pay" [ref=p1042]' in chosen
    assert 'table "Open"' in chosen
    assert "p1041" not in chosen
    assert 'textbox "Number"' in relevance.select(page(), "the lookup")
    assert "Monday" in relevance.select(page(), "How is order 1042 paid?")
    assert 'link "Prices"' in relevance.select(page(), "price list")
    nothing = relevance.select(page(), "zebra")
    assert "none of the words" in nothing
    assert 'link "Orders"' in nothing


WORDS = st.lists(
    st.sampled_from(["pay", "order", "1042", "ada", "field", "the", "zebra", "price", "alert"]), max_size=5
)


@settings(max_examples=40)
@given(WORDS, st.integers(400, 3000))
def test_what_is_picked_keeps_to_its_size_and_stands_on_the_page(words: list[str], most: int) -> None:
    """Never more than there is room for, only lines of the page, in its order."""
    view = page()
    chosen = relevance.select(view, " ".join(words), most)
    assert len(chosen) <= most
    lines = view.render(relevance.EVERYTHING).split("\n")
    shown = [each for each in chosen.split("\n") if not each.lstrip().startswith(("…", "(none"))]
    places = [lines.index(each) if lines.count(each) == 1 else None for each in shown]
    known = [each for each in places if each is not None]
    assert [each for each in shown if each not in lines] == []
    assert known == sorted(known)


async def test_which_page_a_tool_means(tmp_path: Path) -> None:
    """Without a name the scout's, until the bench has one; a page that is not there is told with what is."""
    build = build_contexts.opened(tmp_path, "http://shop.test/")
    observer: Any = build.observer
    try:
        assert observer.place(None) == ("scout", None)
        assert observer.place("bench") == ("bench", None)
        assert observer.place("bench/tab2") == ("bench", "tab2")
        assert observer.place("scout/main") == observer.place("main") == ("scout", "main")
        for where in ("bench", "scout"):
            with pytest.raises(RunOpsError) as raised:
                observer.page(where)
            assert raised.value.code == "page-unknown"
        for name, more in (("inspect_tab", {"instruction": None, "ref": None}), ("debug_close_tab", {})):
            field = {"name": "x"} if name == "debug_close_tab" else {"tab": None}
            outcome = await build_contexts.call(build, name, tools.toolsets(build), reason="x", **field, **more)
            assert outcome.error is not None
            assert outcome.error["code"] == "page-unknown"
            assert "http://shop.test/" in outcome.text
    finally:
        await build.close()


@settings(max_examples=40)
@given(st.text(max_size=40))
def test_what_a_page_says_is_written_down_as_it_is(text: str) -> None:
    """Whatever an element is called, references and characters that no YAML takes too, the node finds just that."""
    fields: dict[str, Json] = {"action": "click", "target": {"role": "button", "name": text or "x"}}
    loaded, literal = actions.written(fields, [], ["http://shop.test"])
    said: Any = loaded.workflow.nodes[0].model_dump(mode="json")["target"]["name"]
    assert said == writer.literal(text or "x")
    assert (text or "x") in literal.summary() or "{{" not in text
