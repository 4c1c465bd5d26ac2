"""Names of tabs: ``open_tab`` and ``opens`` set them, ``tab`` uses them. A name that no node sets is a mistake."""

from __future__ import annotations

from collections.abc import Iterator

from nodes import errors
from nodes.tabs import MAIN
from runtime.language.diagnostics import Diagnostic
from runtime.language.node_tree import Anatomy, NodeSource
from runtime.language.yaml_text import Document


def check(anatomy: Anatomy, document: Document) -> list[Diagnostic]:
    """Report every use of a tab that no node opens, and tab fields in a ``confirm``, which uses one fresh tab."""
    units = list(anatomy.every_unit())
    names = sorted({MAIN} | {name for unit in units if (name := _given(unit)) is not None})
    problems: list[Diagnostic] = []
    for unit in units:
        used = unit.data.get("tab")
        if not isinstance(used, str) or _gives_by_tab(unit) or used in names:
            continue
        near = errors.near(used, names)
        problems.append(
            document.source.diagnostic(
                "unknown-tab",
                f"no node opens a tab called `{used}`",
                document.mark(anatomy.written((*unit.path, "tab"))),
                help=[f"did you mean `{near}`?" if near else f"the tabs here are {', '.join(names)}"],
            )
        )
    looking = [each for unit in units for each in _within(unit.confirm)]
    problems += [
        document.source.diagnostic(
            "not-in-confirm",
            f"`{field}` does not belong in a `confirm`",
            document.mark(anatomy.written((*unit.path, field))),
            help=["it looks in a fresh tab of its own"],
        )
        for unit in looking
        for field in ("tab", "opens")
        if field in unit.data
    ]
    return problems


def _within(units: list[NodeSource]) -> Iterator[NodeSource]:
    """Yield these nodes and all in their blocks."""
    for unit in units:
        yield unit
        for _path, block in unit.blocks:
            yield from _within(block)


def _gives_by_tab(unit: NodeSource) -> bool:
    return unit.data.get("action") == "open_tab"


def _given(unit: NodeSource) -> str | None:
    """Return the name that a node gives to a tab."""
    name = unit.data.get("tab" if _gives_by_tab(unit) else "opens")
    return name if isinstance(name, str) else None
