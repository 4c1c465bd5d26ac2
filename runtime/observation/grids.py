"""Grids whose rows are split over pinned parts are shown as one table; columns that are not rendered are counted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from typing_extensions import TypedDict

from runtime.observation.tree import Node


class Split(TypedDict):
    """A grid as its page describes it, by refs; None for an element that has none."""

    ref: str
    of: int  # number of its columns
    columns: int  # number of columns that are rendered
    rows: list[tuple[list[str | None], list[str | None]]]
    """For each row, from the first to the last, its parts and its cells in the order of the columns; empty if no row has parts."""


def add(split: Sequence[Split], refs: Mapping[str, Node]) -> None:
    """Put the parts of each row together, and note on a grid how many of its columns are there; ``refs`` are the nodes by ref."""
    for each in split:
        grid = refs.get(each["ref"])
        if grid is None:
            continue
        if each["columns"] < each["of"]:
            grid.states = (*grid.states, f"{each['columns']} of {each['of']} columns rendered")
        rows = [row for parts, cells in each["rows"] if (row := _joined(parts, cells, refs)) is not None]
        if rows:
            _take(grid, {id(row) for row in rows})
            for row in rows:
                row.parent = grid
            grid.children[:0] = rows


def _joined(parts: list[str | None], cells: list[str | None], refs: Mapping[str, Node]) -> Node | None:
    """Move all cells of a row into its first part, in order. None for a row that the observation lacks."""
    found = [refs[ref] for ref in parts if ref is not None and ref in refs]
    if not found:
        return None
    first = found[0]
    if len(parts) > 1:
        # A name of cells is that of one part only; the cells are shown.
        first.name = ""
    inside = [refs[ref] for ref in cells if ref is not None and ref in refs]
    taken = {id(cell) for cell in inside}
    around = (*found, *(cell.parent for cell in inside if cell.parent is not None))
    for node in {id(each): each for each in around}.values():
        node.children = [each for each in node.children if id(each) not in taken]
        if node is not first and node.role == "row":
            node.name = ""
    beside = [child for node in found for child in node.children]
    for node in found[1:]:
        node.children = []
        first.states += tuple(state for state in node.states if state not in first.states)
    first.children = inside + beside
    for child in first.children:
        child.parent = first
    return first


def _take(grid: Node, rows: set[int]) -> None:
    """Take rows away from wherever they stand in a grid, and what then holds nothing."""
    kept: list[Node] = []
    for child in grid.children:
        if id(child) in rows or (child.role == "row" and not (child.children or child.text or child.name)):
            continue
        had = bool(child.children)
        _take(child, rows)
        if child.children or not had or child.text or child.name or child.acting:
            kept.append(child)
    grid.children = kept
