"""Finds elements in an observation by role, name, row and text."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable

from runtime.observation.folding import bounded
from runtime.observation.lines import NAME_MOST, chosen, line_of, name_of, options, quoted, row_text
from runtime.observation.tree import FIELDS, LANDMARKS, ROWS, URGENT, Node, folded, inner

ROW_MOST = 120
_REGIONS = LANDMARKS | URGENT | {"table", "grid", "group", "radiogroup", "tablist", "menu"}


_HOLDING = frozenset({"table", "grid", "treegrid", "list", "listitem", "article", "row", "figure"})


@dataclasses.dataclass(frozen=True, slots=True)
class Element:
    ref: str
    role: str
    name: str
    value: str  # value of a field; dots for a password
    states: tuple[str, ...]
    row: str
    """Text of its row, list item or card. Outside of those, an element without name or caption has the text around it."""
    region: str  # role and name of the part of the page around it
    caption: str = ""  # text beside it that names it, if it has no name


def plain(text: str) -> str:
    """Return the text for comparison: white space folded, lower case."""
    return folded(text).casefold()


class Finder:
    def __init__(self, root: Node) -> None:
        self._every = list(root.walk())
        self._nodes = [each for each in self._every if _found_at_all(each)]
        self._rows: dict[int, str] = {}
        self._texts: dict[int, str] = {}
        self._cards: dict[int, bool] = {}

    def find(self, role: str | None, name: str | None, row: str | None, text: str | None, budget: int) -> str:
        """List the matching elements, one a line, in at most ``budget`` characters. Reports omitted and less exact matches."""
        found, parts = self._matched(role, name, row, text)
        if not found:
            return self._nothing(role, name, row, text, budget)
        first = [f"nothing has {' or '.join(parts)} as whole words; as a part:"] if parts else []
        last: list[str] = []
        if name and (more := len(self._matched(role, name, row, text, exact=False)[0]) - len(found)) > 0:
            last = [f"… {more:,} more with other words beside {quoted(name, 40)}: find text={quoted(name, 40)}"]
        rest = f"… {{}} more: give more of name=…, row=…{'' if row is None else ', text=…'}"
        left = budget - sum(len(each) + 1 for each in [*first, *last])
        return "\n".join([*first, bounded([self._line(node) for node in found], left, rest), *last])

    def matches(self, role: str | None, name: str | None, row: str | None, text: str | None) -> list[Node]:
        return self._matched(role, name, row, text)[0]

    def _matched(
        self, role: str | None, name: str | None, row: str | None, text: str | None, *, exact: bool = True
    ) -> tuple[list[Node], list[str]]:
        """Return the matches, and the criteria matched only as parts of words; ``exact`` prefers whole names."""
        # Containers are found by role alone: their text is that of their content.
        nodes = self._nodes if role not in _HOLDING else [each for each in self._every if each.ref is not None]
        found = [each for each in nodes if role is None or each.role == role]
        parts: list[str] = []
        if name is not None:
            called, part = _by_name(found, name, exact=exact)
            # As for a target of a role: what has no name is called by its text.
            found = called if called or role is None else _by_text(found, name)
            parts += [f"name={quoted(name, 40)}"] if part else []
        if row is not None:
            found, part = _closest(
                found, row.replace("|", " "), lambda node: self.row(node).replace("|", " "), exact=False
            )
            parts += [f"row={quoted(row, 40)}"] if part else []
        if text is not None:
            wanted = plain(text)
            found = [each for each in found if wanted in plain(_said(each))]
        return found, parts

    def row(self, node: Node) -> str:
        if id(node) not in self._rows:
            self._rows[id(node)] = self._row(node)
        return self._rows[id(node)]

    def _row(self, node: Node) -> str:
        if node.role in ROWS and not node.name:
            return row_text(node)
        for above in node.above():
            if above.role in ROWS or self._is_card(above):
                if id(above) not in self._texts:
                    self._texts[id(above)] = row_text(above)
                return self._texts[id(above)]
        if not _called(node):
            for above in node.above():
                if above.role != "page" and (said := inner(above, ROW_MOST)):
                    return said
        return ""

    def _is_card(self, node: Node) -> bool:
        if id(node) not in self._cards:
            self._cards[id(node)] = _is_card(node)
        return self._cards[id(node)]

    def _line(self, node: Node) -> str:
        if node.role == "option" and not node.acting:
            selected = " (selected)" if "selected" in node.states else ""
            words = f"option {quoted(node.name or node.text, NAME_MOST)}{selected}"
            above = next((each for each in node.above() if options(each)), None)
            of = f" of {above.role} {quoted(name_of(above), NAME_MOST)} [ref={above.ref}]" if above is not None else ""
            return words + of
        words = line_of(node)
        if not node.acting and node.ref is not None and f"[ref={node.ref}]" not in words:
            # An observation shows no ref for elements to read; here it is requested.
            words = f"{words} [ref={node.ref}]"
        elif node.role == "text" and (around := node.parent) is not None and around.ref is not None:
            return f"{words} in {around.role} [ref={around.ref}] {around.own_mark}".rstrip()
        if node.own_mark and not node.mark:
            words = f"{words} {node.own_mark}"
        if (row := self.row(node)) and row != name_of(node):
            words += f"{':' if node.role in ROWS else ' in'} {quoted(row, ROW_MOST)}"
        elif region := region_of(node):
            words += f" in {region}"
        return words

    def _nothing(self, role: str | None, name: str | None, row: str | None, text: str | None, budget: int) -> str:
        asked = ", ".join(
            f"{key}={quoted(value, 40)}"
            for key, value in (("role", role), ("name", name), ("row", row), ("text", text))
            if value is not None
        )
        said = f"nothing found with {asked}"
        if name is not None and role is not None and (others := self.matches(None, name, row, text)):
            return bounded([f"{said}; of other roles:", *map(self._line, others)], budget, "… {} more lines")
        if role is not None and not any(each.role == role for each in self._nodes):
            roles = sorted({each.role for each in self._nodes})
            said += f"; there are: {', '.join(roles)}"
        return said if len(said) <= budget else f"{said[: budget - 1]}…"

    def element(self, node: Node) -> Element:
        assert node.ref is not None
        value = node.text if node.role in ("textbox", "searchbox", "spinbutton", "slider", "combobox") else ""
        return Element(
            node.ref,
            node.role,
            name_of(node),
            value or ", ".join(chosen(node)),
            node.states,
            self.row(node),
            region_of(node),
            node.caption,
        )


def _closest(nodes: list[Node], wanted: str, said: Callable[[Node], str], *, exact: bool) -> tuple[list[Node], bool]:
    """Return the nodes with the wanted text: as the whole text if ``exact``, else as whole words, else as a part (then True)."""
    sought = plain(wanted)
    texts = [plain(said(node)) for node in nodes]
    if not sought:
        return [node for node, text in zip(nodes, texts, strict=True) if not text], False
    part = re.compile(re.escape(sought))
    for fits in (*([part.fullmatch] if exact else []), _words(sought).search, part.search):
        if found := [node for node, text in zip(nodes, texts, strict=True) if fits(text)]:
            return found, fits == part.search
    return [], False


def _by_name(nodes: list[Node], name: str, *, exact: bool) -> tuple[list[Node], bool]:
    """Return the nodes with that name or caption, else those with that placeholder, as ``_closest`` does."""
    found, part = _closest(nodes, name, _called if plain(name) else name_of, exact=exact)
    if (found and not part) or not plain(name):
        return found, part
    fields = [node for node in nodes if node.placeholder]
    hinted, hinted_part = _closest(fields, name, lambda node: node.placeholder, exact=exact)
    return (hinted, hinted_part) if hinted and not (found and hinted_part) else (found, part)


def _by_text(nodes: list[Node], name: str) -> list[Node]:
    """Return the nodes without a name, fields aside, whose text has it as a part; the innermost ones."""
    wanted = plain(name.replace("|", " "))
    nameless = (node for node in nodes if not (_called(node) or node.role in FIELDS))
    found = [node for node in nameless if wanted and wanted in plain(inner(node))]
    outer = {id(above) for node in found for above in node.above()}
    return [node for node in found if id(node) not in outer]


def _words(sought: str) -> re.Pattern[str]:
    """Match the text as whole words. A number is one word: 10 is in neither 100 nor 10.50."""
    begins = r"(?<!\d[.,])" if sought[0].isdigit() else ""
    ends = r"(?![.,]\d)" if sought[-1].isdigit() else ""
    return re.compile(rf"{begins}(?:(?<!\w)|(?!\w)){re.escape(sought)}(?:(?!\w)|(?<!\w)){ends}")


def region_of(node: Node) -> str:
    for above in node.above():
        if above.role in _REGIONS and (above.name or above.role in LANDMARKS | URGENT):
            return f"{above.role} {quoted(above.name, 60)}" if above.name else above.role
    return ""


def _called(node: Node) -> str:
    return name_of(node) or node.caption or node.guess


def _found_at_all(node: Node) -> bool:
    if node.acting or node.reach or node.role in ("heading", "option") or node.role in URGENT:
        return True
    return node.role in LANDMARKS or bool(node.text) or (node.role in ("img", "row") and bool(node.name))


def _said(node: Node) -> str:
    return f"{node.name} {node.caption} {node.guess} {node.text} {node.placeholder} {inner(node, 1000) if node.children else ''}"


def _is_card(node: Node) -> bool:
    """Return True for one of several sibling elements without a role that contain the same kinds of elements."""
    if node.role != "generic" or node.parent is None or not node.children:
        return False
    beside = [each for each in node.parent.children if each.role == "generic" and each.children]
    if len(beside) < 3:
        return False
    kinds = {each.role for each in node.children}
    return sum(1 for each in beside if {child.role for child in each.children} & kinds) >= 3
