"""Grids and trees in an observation: rows of several parts, missing columns, items with their own name, level and state."""

from __future__ import annotations

from runtime.observation import grids
from runtime.observation.observation import Observation
from runtime.observation.tree import Fact

SPLIT = """- treegrid "Runs" [ref=e1]:
  - rowgroup [ref=e2]:
    - row "Name" [ref=e3]:
      - columnheader "Name" [ref=e4]:
        - generic [aria-hidden] [ref=e5] [cursor=pointer]: "\\ue900"
  - rowgroup [ref=e6]:
    - row "C3 C2" [ref=e7]:
      - columnheader "C3" [ref=e8]
      - columnheader "C2" [ref=e9]
  - rowgroup [ref=e10]:
    - row "run 1" [ref=e11]:
      - gridcell "run 1" [ref=e12]
    - row "run 0" [ref=e13]:
      - gridcell "run 0" [ref=e14]
  - rowgroup [ref=e15]:
    - row "b2 b3" [selected]:
      - gridcell "b2" [ref=e16]
      - gridcell "b3" [ref=e17]:
        - button "Open" [ref=e18]
    - row "a2 a3" [ref=e19]:
      - gridcell "a2" [ref=e20]
      - gridcell "a3" [ref=e21]
    - text: Loading more"""

ROWS: list[tuple[list[str | None], list[str | None]]] = [
    (["e3", "e7"], ["e4", "e9", "e8"]),
    (["e13", "e19"], ["e14", "e20", "e21"]),
    (["e11", None], ["e12", "e16", "e17"]),
    ([None, "e99"], [None]),
]


def lines(snapshot: str, *facts: Fact, split: list[grids.Split] | None = None) -> list[str]:
    """The lines of a page."""
    shown = Observation.read(snapshot, facts=facts, split=split or []).render(5_000)
    return [line.strip() for line in shown.split("\n")][1:]


def test_parts_of_a_row_are_one_line() -> None:
    """The cells of all parts stand in one row, in the order of columns and rows; nothing else of the grid is lost, nor shown twice."""
    split = grids.Split(ref="e1", of=9, columns=3, rows=ROWS)
    assert lines(SPLIT, split=[split]) == [
        'treegrid "Runs" (3 of 9 columns rendered)',
        'row "Name | C2 | C3"',
        'clickable "\ue900" [ref=e5]',
        'row "run 0 | a2 | a3" [ref=e13]',
        'row "run 1 | b2 | Open" [ref=e11]',
        'button "Open" [ref=e18]',
        '"Loading more"',
    ]


def test_a_grid_that_the_page_does_not_show_is_left_out() -> None:
    """A grid without a place in the snapshot changes nothing, and one whose columns are all there says nothing of them."""
    whole = grids.Split(ref="e1", of=3, columns=3, rows=[])
    gone = grids.Split(ref="e98", of=9, columns=3, rows=ROWS)
    assert lines(SPLIT, split=[whole, gone]) == lines(SPLIT)


def test_an_item_of_a_tree_has_its_own_name_level_and_state() -> None:
    """Items in an item are no part of its name; a level that the page does not give is counted, and one that is closed says so."""
    tree = """- tree [ref=e1]:
  - treeitem "src lib main.py" [expanded] [ref=e2]:
    - generic [ref=e3]: src
    - group [ref=e4]:
      - treeitem "lib" [ref=e5]
      - treeitem [ref=e6]:
        - text: main.py
        - list [ref=e7]:
          - treeitem "inner" [level=7] [ref=e8]"""
    assert lines(tree, Fact("e5", "", collapsed=True)) == [
        "tree",
        'treeitem "src" level 1 (expanded) [ref=e2]',
        'treeitem "lib" level 2 (collapsed) [ref=e5]',
        'treeitem "main.py" level 2 [ref=e6]',
        'treeitem "inner" level 7 [ref=e8]',
    ]


def test_a_field_with_a_placeholder_has_its_value() -> None:
    """A field shows its value, and its placeholder only while it is empty; both its label and its placeholder find it."""
    page = """- textbox "Name" [ref=e1]:
  - /placeholder: Ada
  - text: Grace
- textbox "City" [ref=e2]:
  - /placeholder: Your town
- button "Your town hall" [ref=e3]"""
    assert lines(page)[:2] == [
        'textbox "Name" [ref=e1] = "Grace"',
        'textbox "City" [ref=e2] placeholder "Your town"',
    ]
    view = Observation.read(page)
    assert "[ref=e1]" in view.find(name="Ada")
    assert "[ref=e2]" in view.find(role="textbox", name="Your town")
    assert "[ref=e3]" in view.find(name="Your town hall")
