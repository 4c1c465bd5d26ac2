"""Lines of an observation: one for each element, with its ref if one can act on it; wrappers without text get none."""

from __future__ import annotations

import dataclasses
import itertools
import json
import re
from collections.abc import Iterator

from runtime.observation.captions import header
from runtime.observation.tree import ACTING, FIELDS, LANDMARKS, ROWS, SPOTS, URGENT, Node, folded, inner

NAME_MOST = 100
TEXT_MOST = 300
HOLDERS = ("row ", "item ", "card ", "article ")  # how the line of a part begins that holds others
VALUE_MOST = 30  # most characters of a text that stands alone and gets a ref: a number, with its unit
OPTIONS_MOST = 12
"""Most options of a select on its line, without the chosen one; of more, the first three and the last."""
ADDRESS_MOST = 60
ROWS_SHOWN = 7  # most rows of the same kind that are all shown; of more, the first three and the last
ELEMENTS_SHOWN = 12  # most similar sibling elements that are all shown; of more, the first three and the last

_PLAIN = frozenset({
    "generic", "paragraph", "strong", "emphasis", "rowgroup", "caption", "code", "none", "presentation", "time", "term", "definition",
    "mark", "subscript", "superscript", "insertion", "deletion", "blockquote", "document", "cell", "gridcell", "columnheader", "rowheader",
    "list", "toolbar", "legend", "text", "fragment",
})  # fmt: skip
_REGIONS = LANDMARKS | URGENT | {"table", "grid", "treegrid", "iframe", "tablist", "menu", "menubar", "listbox", "tree", "radiogroup", "group", "feed"}  # fmt: skip
UNNAMED = "(unnamed)"  # text for an element to act on that no target finds by a name
SEPARATOR = " | "  # stands between cells, and between texts of separate elements
_INLINE = frozenset({"text", "strong", "emphasis", "code", "mark", "subscript", "superscript", "insertion", "deletion", "time"})  # fmt: skip
_ENCODER = json.JSONEncoder(ensure_ascii=False)
_CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]+")
_PUNCTUATION = re.compile(
    r"[\s!-/:-@\[-`{-~\xa1\xa7\xab\xb7\xbb\xbf\u2010-\u2015\u2018-\u201f\u2022\u2026\u2039\u203a]+"
)
_REPEATED = (
    "link",
    "button",
    "checkbox",
    "radio",
    "option",
    "menuitem",
    "tab",
    "treeitem",
    "clickable",
    "draggable",
    "droppable",
)


@dataclasses.dataclass(slots=True, eq=False)
class Item:
    node: Node
    line: str
    children: list[Item] = dataclasses.field(default_factory=list)
    parent: Item | None = None
    depth: int = 0
    alike: str = ""  # kind that it shares with similar siblings; empty if it is like none
    run: int = 0  # number of the run of similar items whose middle contains it; 0 for none

    @property
    def size(self) -> int:
        return 2 * self.depth + len(self.line) + 1

    def walk(self) -> Iterator[Item]:
        open_: list[Item] = [self]
        while open_:
            item = open_.pop()
            yield item
            open_.extend(reversed(item.children))


def quoted(text: str, most: int) -> str:
    """Return the text in quotation marks, on one line, cut at ``most`` characters."""
    text = text if text.isprintable() else _CONTROLS.sub(" ", text)
    text = text if len(text) <= most else f"{text[: most - 1].rstrip()}…"
    return _ENCODER.encode(text)


def name_of(node: Node) -> str:
    """Return the node's name, else the text inside an element to act on, else its placeholder."""
    if node.name:
        return node.name
    if node.role == "heading":
        return folded(inner(node, TEXT_MOST))
    if node.acting and node.role not in FIELDS:
        return folded(node.text if node.text and not node.children else inner(node, TEXT_MOST))
    return node.placeholder


def line_of(node: Node, role: str | None = None, name: str | None = None, *, address: bool = True) -> str:
    """Return the line of an element: role, name, value, states, ref; with ``address``, also that of a link it alone distinguishes."""
    role = role or node.role
    name = name_of(node) if name is None else name
    parts = [role, *_known_by(node, name)]
    parts += [node.size] if node.size else []
    parts += [_state(state, role) for state in node.states]
    if (node.acting or node.reach or (node.caption and role == node.role)) and node.ref is not None:
        parts.append(f"[ref={node.ref}]")
    if node.apart and address:
        parts.append(f"to {quoted(node.address, ADDRESS_MOST)}")
    if value := _value(node, name):
        parts.append(value)
    if choices := options(node):
        parts.append(_choices(choices))
    if node.mark:
        parts.append(node.mark)
    if node.error:
        parts.append(f"error: {quoted(node.error, TEXT_MOST)}")
    return " ".join(parts)


def _known_by(node: Node, name: str) -> list[str]:
    """Return the words by which one knows the node: its name, else what is beside it, else what it may be called."""
    if name:
        return [quoted(name, NAME_MOST)]
    if not (node.caption or node.guess):
        return [UNNAMED] if node.acting and not node.mark else []
    said = f"beside {quoted(node.caption, NAME_MOST)}" if node.caption else f"guessed {quoted(node.guess, NAME_MOST)}"
    return [said] if node.mark else [UNNAMED, said]


def _value(node: Node, name: str) -> str:
    """Return what an element holds, an empty field its placeholder, other elements the text that is not their name."""
    if names := chosen(node):
        return f"= {_chosen(names)}"
    if _is_value(node):
        return f"= {quoted(inner(node, TEXT_MOST), TEXT_MOST)}"
    if node.role in FIELDS and node.text:
        return f"= {quoted(node.text, NAME_MOST)}"
    if node.role in FIELDS and node.placeholder not in ("", name):
        return f"placeholder {quoted(node.placeholder, NAME_MOST)}"
    text = node.text or (_on_button(node) if node.role == "button" and node.name else "")
    return quoted(text, TEXT_MOST) if text and folded(text) != name else ""


def _on_button(node: Node) -> str:
    """Return what one reads on a button in elements of its own, if its name does not have it."""
    text = folded(" ".join(each.text for each in node.walk() if each.text and not each.acting))
    return text if len(text) <= NAME_MOST and text not in node.name else ""


def _state(state: str, role: str) -> str:
    if not state.startswith("level="):
        return f"({state})"
    return state.removeprefix("level=") if role == "heading" else state.replace("=", " ")


def text_of(node: Node) -> str:
    """Return the line of a text, with its mark if it has one."""
    said = quoted(node.text or node.name, TEXT_MOST)
    return f"text {said} {node.mark}" if node.mark else said


def options(node: Node) -> list[Node]:
    """Return the options of a select, which its line shows because they have no refs; empty for other elements."""
    if node.role not in ("combobox", "listbox"):
        return []
    return [each for each in node.walk() if each.role == "option" and not each.acting]


def chosen(node: Node) -> list[str]:
    """Return the chosen options of a select or a list of options, with or without refs."""
    if node.role not in ("combobox", "listbox"):
        return []
    return [each.name or each.text for each in node.walk() if each.role == "option" and "selected" in each.states]


def _chosen(names: list[str]) -> str:
    words = [quoted(name, NAME_MOST) for name in names]
    return ", ".join(words if len(words) <= 6 else [*words[:2], f"… {len(words) - 3} more", words[-1]])


def _choices(choices: list[Node]) -> str:
    shown = choices if len(choices) <= OPTIONS_MOST else [*choices[:3], choices[-1]]
    words = [quoted(each.name or each.text, 40) for each in shown]
    if len(choices) > OPTIONS_MOST:
        words.insert(3, f"… {len(choices) - 4} more")
    return f"of {len(choices)}: {', '.join(words)}"


def items(root: Node) -> Item:
    """Return the lines of a node and its content. For the page, the top item has an empty line."""
    top = Item(root, "" if root.role == "page" else line_of(root))
    top.children = _children(root)
    number = 0
    open_ = [top]
    while open_:
        item = open_.pop()
        _drop_name(item)
        number = _fold(item.children, number)
        for child in item.children:
            child.parent = item
            child.depth = item.depth + (1 if item.line else 0)
            open_.append(child)
    for item in top.walk():
        _refer(item)
    return top


def _refer(item: Item) -> None:
    """Add the ref of a row or card, and of a value that stands alone: what holds others, or is read, can be asked about too."""
    node = item.node
    if node.acting or node.reach or node.ref is None:
        return
    said = json.loads(item.line) if _is_text(item) else node.text if node.role == "status" else ""
    alone = said == (node.text or node.name) and len(said) <= VALUE_MOST and any(map(str.isdigit, said))
    holds = item.line.startswith(HOLDERS) and not any(each.role == "columnheader" for each in node.children)
    if (alone or holds) and f"[ref={node.ref}]" not in item.line:
        item.line += f" [ref={node.ref}]"


def _children(node: Node, *, texts: bool = True) -> list[Item]:
    """Return the items of what is in the node; without ``texts``, of parts that are more than text."""
    if not node.children:
        return []
    made: list[Item] = []
    shown = [each for each in node.children if node.behind or not each.behind]
    alike = _alike(shown)
    for child in shown:
        if texts or _is_more_than_text(child):
            made += _items(child, alike.get(id(child), ""))
    return [each for each in _merged(_without_labels(made)) if not (_is_text(each) and is_noise(json.loads(each.line)))]


def _items(node: Node, alike: str) -> list[Item]:
    says_nothing = node.role in ("separator", "img") and not (node.acting or node.reach or node.name or node.children)
    if node.as_caption or (node.role == "option" and not node.acting) or says_nothing or _is_handle(node):
        return []
    if _is_value(node):
        return [Item(node, line_of(node))]
    if alike or (node.role == "row" and not node.acting):
        return _row(node, f"{alike}{_fields(node)}" if node.role == "generic" else alike)
    shown = node.acting or node.reach
    if node.role in _PLAIN and not shown and not node.caption:
        own = [Item(node, text_of(node))] if node.text or (node.name and not node.children) else []
        return own + _children(node)
    if node.role == "listitem" and not shown:
        within = _children(node)
        if node.text:
            within.insert(0, Item(node, quoted(node.text, TEXT_MOST)))
        if len(within) < 2:
            return within
    if node.role in ("group", "list", "figure", "img") and not (shown or node.name or node.text):
        return _children(node)
    item = Item(node, line_of(node))
    item.children = _children(node)
    if options(node):
        item.children = [each for each in item.children if _matters(each)]
    elif node.acting:
        _drop_said(item)
    if node.role in ("clickable", "draggable") or (node.role in _REPEATED and not item.children):
        item.alike = f"{node.role}{_fields(node)}"
    return [item]


def _is_handle(node: Node) -> bool:
    """Return True for a draggable without a name in another: it sizes or moves that one, such as a heading of a table."""
    if (
        node.role != "draggable"
        or node.reach
        or node.children
        or name_of(node)
        or node.caption
        or node.guess
        or node.mark
    ):
        return False
    return any(each.role in ("draggable", "columnheader") for each in node.above())


def _is_value(node: Node) -> bool:
    """Return True for a value after its term, without elements to act on."""
    return node.role == "definition" and bool(node.caption) and not any(each.acting for each in node.walk())


def _row(node: Node, alike: str) -> list[Item]:
    """Return a row, a list item or a card: its text on one line, its elements to act on under it."""
    role = "card" if node.role == "generic" else "item" if node.role == "listitem" else node.role
    if node.reach:
        return [Item(node, line_of(node), _children(node), alike=alike)]
    under = [each for each in _children(node, texts=False) if _matters(each)]
    if node.acting:
        return [Item(node, line_of(node), under, alike=alike or node.role)]
    text = row_text(node)
    if not text and not under:
        return []
    if role != "row" and len(under) == 1 and not under[0].children:
        name = folded(name_of(under[0].node))
        # A card that is the label of its box says it twice.
        if text in (name, f"{name} {name}"):
            under[0].alike = alike
            return under
    states = "".join(f" ({state})" for state in node.states)
    return [Item(node, f"{role}{states} {quoted(text, TEXT_MOST)}", under, alike=alike)]


def _is_more_than_text(node: Node) -> bool:
    return any(each.acting or each.reach or each.caption or each.role not in _PLAIN for each in node.walk())


def _matters(item: Item) -> bool:
    return (
        item.node.acting
        or item.node.reach
        or item.node.role in URGENT
        or item.node.role == "heading"
        or bool(item.children)
    )


def row_text(node: Node) -> str:
    """Return the text of a row as a person reads it, with separated cells."""
    if node.role == "row" and node.children:
        return SEPARATOR.join(
            header(each) if each.role == "columnheader" else inner(each, TEXT_MOST) for each in node.children
        )
    return folded(inner(node, 2 * TEXT_MOST) or node.name)


def _alike(children: list[Node]) -> dict[int, str]:
    """Group children into rows, by identity: rows and list items by role, others by the actions that they offer."""
    if len(children) < 3:
        return {}
    shapes: list[str] = []
    for child in children:
        if child.role in ROWS:
            heads = child.role == "row" and any(each.role == "columnheader" for each in child.children)
            shapes.append("" if heads else child.role)
        elif child.role == "generic" and not child.acting and child.children:
            acts = sorted({each.role for each in child.walk() if each.acting and each.role not in FIELDS})
            size = sum(1 for _each in child.walk())
            shapes.append(f"card of {', '.join(acts)}" if acts and size > 2 else "")
        else:
            shapes.append("")
    runs = [(shapes[run.start], children[run.start : run.stop]) for run in _runs(shapes) if len(run) >= 3]
    return {id(child): shape for shape, run in runs if shape for child in run}


def _fields(node: Node) -> str:
    """Return the names of the fields in a node without a role of its own: rows have the same ones, parts of a form have others."""
    names = sorted({each.name for each in node.walk() if each.acting and each.role in FIELDS and each.name})
    return f" with {', '.join(names)}" if names else ""


def _runs(kinds: list[str]) -> Iterator[range]:
    """Yield the places of each run of equal kinds."""
    first = 0
    for _kind, run in itertools.groupby(kinds):
        end = first + len(list(run))
        yield range(first, end)
        first = end


def _merged(made: list[Item]) -> list[Item]:
    """Put texts beside each other into one line; those of separate elements are separated there, as cells are."""
    merged: list[Item] = []
    for last, item in zip([None, *made], made, strict=False):
        if last is not None and _is_text(last) and _is_text(item):
            before = merged[-1]
            text = f"{json.loads(before.line)}{_between(last, item)}{json.loads(item.line)}"
            if len(text) <= TEXT_MOST:
                merged[-1] = Item(before.node, quoted(text, TEXT_MOST))
                continue
        merged.append(item)
    return merged


def _between(one: Item, other: Item) -> str:
    """Return what separates two texts: nothing but a blank within a sentence, and beside punctuation."""
    beside = one.node.parent is other.node.parent and not _INLINE.isdisjoint((one.node.role, other.node.role))
    within = one.node is other.node.parent or beside
    return " " if within or is_noise(json.loads(one.line)) or is_noise(json.loads(other.line)) else SEPARATOR


def is_noise(text: str) -> bool:
    return _PUNCTUATION.fullmatch(text) is not None


def _is_text(item: Item) -> bool:
    return item.line.startswith('"')


def _without_labels(made: list[Item]) -> list[Item]:
    """Remove texts that repeat the name of an element beside them."""
    names = {name_of(each.node) for each in made if each.node.acting}
    return [each for each in made if not (_is_text(each) and _said(each) in names)] if names else made


def _said(item: Item) -> str:
    """Return the text of a line as a name has it."""
    return str(json.loads(item.line)).replace(SEPARATOR, " ")


def labels(root: Node) -> set[int]:
    """Return the identities of texts that only name an element beside or around them: the page's lines omit them."""
    around: dict[int, Node] = {}
    names: dict[int, set[str]] = {id(root): set()}
    for node in root.walk():
        above = node.parent
        if above is None:
            continue
        line = around[id(node)] = around[id(above)] if id(above) in around and _is_wrapper(above) else above
        if node.acting:
            names.setdefault(id(line), {name_of(line)}).add(name_of(node))
    return {
        id(node)
        for node in root.walk()
        if node.text and not node.acting and node.role in _PLAIN and node is not root
        if node.text in names.get(id(around[id(node)]), ())
    }


def _is_wrapper(node: Node) -> bool:
    if node.acting:
        return False
    return node.role in _PLAIN or (node.role in ("group", "figure", "img") and not (node.name or node.text))


def _drop_name(item: Item) -> None:
    name = name_of(item.node)
    item.children = [each for each in item.children if not (_is_text(each) and _said(each) == name)]


def _drop_said(item: Item) -> None:
    name = name_of(item.node)
    item.children = [
        each
        for each in item.children
        if _matters(each) or not ((_is_text(each) and _said(each).rstrip("…") in name) or each.node.name in name)
    ]


def _fold(children: list[Item], number: int) -> int:
    """Number the middles of runs of similar items, continuing from ``number``."""
    for run in _runs([each.alike for each in children]):
        first = children[run.start]
        single = first.alike in ACTING | SPOTS and not first.children
        if first.alike and len(run) > (ELEMENTS_SHOWN if single else ROWS_SHOWN):
            number += 1
            for child in children[run.start + 3 : run.stop - 1]:
                child.run = number
    return number


def is_region(item: Item) -> bool:
    return item.node.role in _REGIONS or item.node.reach
