"""Scouting without a browser: lines that an instruction selects, the page that a tool means, and actions as nodes."""

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
from runtime.log import entries
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
    """A page far larger than the limit."""
    return Observation.read(PAGE, "http://shop.test/orders", "Orders")


def test_an_instruction_picks_the_lines_that_its_words_are_about() -> None:
    """An instruction selects the named row with its content and table, and fields below a named heading. Alerts are always included."""
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
def test_selected_lines_keep_to_the_limit_and_the_pages_order(words: list[str], most: int) -> None:
    """The selection keeps to its limit, and has only lines of the page, in its order."""
    view = page()
    chosen = relevance.select(view, " ".join(words), most)
    assert len(chosen) <= most
    lines = view.render(relevance.EVERYTHING).split("\n")
    shown = [each for each in chosen.split("\n") if not each.lstrip().startswith(("…", "(none"))]
    places = [lines.index(each) if lines.count(each) == 1 else None for each in shown]
    known = [each for each in places if each is not None]
    assert [each for each in shown if each not in lines] == []
    assert known == sorted(known)


async def test_the_page_of_a_tool_call(tmp_path: Path) -> None:
    """Without a name a tool means the scout's page. A missing page is an error that names the known ones."""
    build = build_contexts.opened(tmp_path, "http://shop.test/")
    observer: Any = build.observer
    try:
        assert observer.place(None, entries.SESSION_THREAD) == ("scout", None)
        assert observer.place("bench", entries.SESSION_THREAD) == ("bench", None)
        assert observer.place("bench/tab2", entries.SESSION_THREAD) == ("bench", "tab2")
        assert (
            observer.place("scout/main", entries.SESSION_THREAD)
            == observer.place("main", entries.SESSION_THREAD)
            == ("scout", "main")
        )
        for where in ("bench", "scout"):
            with pytest.raises(RunOpsError) as raised:
                observer.page(where)
            assert raised.value.code == "page-unknown"
        for name, more in (
            ("inspect_tab", {"instruction": None, "ref": None, "dom": None, "screenshot": None}),
            ("debug_action", {"action": "close_tab", "ref": None, "value": None, "options": None}),
        ):
            outcome = await build_contexts.call(build, name, tools.toolsets(build), reason="x", tab=None, **more)
            assert outcome.error is not None
            assert outcome.error["code"] == "page-unknown"
            assert "http://shop.test/" in outcome.text
    finally:
        await build.close()


@settings(max_examples=40)
@given(st.text(max_size=40))
def test_element_names_are_written_literally(text: str) -> None:
    """Any element name, also with references or invalid YAML characters, becomes a literal in the node."""
    fields: dict[str, Json] = {"action": "click", "target": {"role": "button", "name": text or "x"}}
    loaded, literal = actions.written(fields, [], ["http://shop.test"])
    said: Any = loaded.workflow.nodes[0].model_dump(mode="json")["target"]["name"]
    assert said == writer.literal(text or "x")
    assert (text or "x") in literal.summary() or "{{" not in text


async def test_an_unknown_action_of_the_scout_is_told_with_what_is_meant(tmp_path: Path) -> None:
    """An action that no node has is refused before any browser opens, with the closest name or all of them."""
    build = build_contexts.opened(tmp_path, "http://shop.test/")
    more = {"tab": None, "ref": "e1", "value": None, "options": None, "reason": "r"}
    for action, fix in (("clik", "did you mean `click`?"), ("zzz", "there are: ")):
        outcome = await build_contexts.call(build, "debug_action", tools.toolsets(build), action=action, **more)
        assert outcome.error is not None
        assert str(outcome.error["fix"]).startswith(fix)
    await build.close()
