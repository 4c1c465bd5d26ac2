"""Names of tabs: ``open_tab`` and ``opens`` set them, ``tab`` uses them. A name that no node sets is a mistake."""

from __future__ import annotations

from collections.abc import Iterator

from nodes import errors
from nodes.tabs import MAIN
from runtime.language.diagnostics import Diagnostic
from runtime.language.node_tree import Anatomy, NodeSource
from runtime.language.yaml_text import Document


def check(anatomy: Anatomy, document: Document) -> list[Diagnostic]:
    units = list(anatomy.every_unit())
    names = sorted({MAIN} | {name for unit in units if (name := _given(unit)) is not None})
    problems: list[Diagnostic] = []
    for unit in units:
        used = unit.data.get("tab")
        if isinstance(used, str) and not _gives_by_tab(unit) and used not in names:
            near = errors.near(used, names)
            fix = f"did you mean `{near}`?" if near else f"the tabs here are {', '.join(names)}"
            path = anatomy.written((*unit.path, "tab"))
            problems.append(document.problem("unknown-tab", f"no node opens a tab called `{used}`", path, fix))
    for unit in (each for outer in units for each in _within(outer.confirm)):
        for field in {"tab", "opens"} & unit.data.keys():
            path = anatomy.written((*unit.path, field))
            message, fix = f"`{field}` does not belong in a `confirm`", "it looks in a fresh tab of its own"
            problems.append(document.problem("not-in-confirm", message, path, fix))
    return problems


def _within(units: list[NodeSource]) -> Iterator[NodeSource]:
    for unit in units:
        yield unit
        for _path, block in unit.blocks:
            yield from _within(block)


def _gives_by_tab(unit: NodeSource) -> bool:
    return unit.data.get("action") == "open_tab"


def _given(unit: NodeSource) -> str | None:
    name = unit.data.get("tab" if _gives_by_tab(unit) else "opens")
    return name if isinstance(name, str) else None
