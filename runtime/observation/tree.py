"""An accessibility snapshot read into a tree of nodes: roles, names, values, states and refs."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterator, Mapping, Sequence

MOST_DEEP = 150
"""Levels of the tree; what lies deeper is put on the last of them."""

FIELDS = frozenset({"textbox", "searchbox", "spinbutton", "slider", "combobox", "listbox"})
"""Roles that hold a value."""
ACTING = FIELDS | {
    "link", "button", "checkbox", "radio", "switch", "menuitem", "menuitemcheckbox", "menuitemradio", "tab", "option", "treeitem",
}  # fmt: skip
"""Roles of what one acts on."""
LANDMARKS = frozenset({"banner", "navigation", "main", "contentinfo", "complementary", "search", "form", "region"})
"""Roles of the parts of a page."""
ROWS = frozenset({"row", "listitem", "article", "option", "treeitem"})
"""Roles of what stands in rows, alike."""
URGENT = frozenset({"alert", "alertdialog", "dialog", "status"})
"""Roles of what a page says to whoever looks."""
_NAMED_BY_CONTENT = frozenset({
    "row", "cell", "gridcell", "columnheader", "rowheader", "heading", "link", "button", "option", "listitem", "tab", "menuitem", "treeitem",
})  # fmt: skip
HIDDEN_VALUE = "••••"
"""What stands in the place of a password."""


@dataclasses.dataclass(slots=True, eq=False)
class Node:
    """An element, or a text of the page."""

    role: str
    """As assistive programs see it; ``text`` is a text that is no element, ``clickable`` and ``editable`` an element of no role of its own."""
    name: str = ""
    text: str = ""
    """What a field holds; of others the text that stands in it."""
    states: tuple[str, ...] = ()
    ref: str | None = None
    acting: bool = False
    """Whether one can act on it."""
    error: str = ""
    """What the page says to be wrong with the field."""
    placeholder: str = ""
    address: str = ""
    """Where a link leads, as it is written."""
    apart: bool = False
    """Whether only its address tells it from other links."""
    caption: str = ""
    """What stands beside a field that has no name, or before a value, and says what it is."""
    mark: str = ""
    """The target that its test id makes, as a file has it; with what it says behind it, where that is a part of the node only."""
    told: bool = False
    """Whether it is the caption of what stands beside it, and is told there."""
    children: list[Node] = dataclasses.field(default_factory=list)
    parent: Node | None = None

    def walk(self) -> Iterator[Node]:
        """The node and everything in it, in the order of the page."""
        open_: list[Node] = [self]
        while open_:
            node = open_.pop()
            yield node
            open_.extend(reversed(node.children))

    def above(self) -> Iterator[Node]:
        """The nodes that it stands in, the nearest first."""
        node = self.parent
        while node is not None:
            yield node
            node = node.parent


@dataclasses.dataclass(frozen=True, slots=True)
class Fact:
    """What the snapshot may not tell of an element that one can act on, or that something is wrong with."""

    ref: str | None
    """Its ref where the snapshot gave it one once."""
    own: str
    """Another ref, for where the snapshot has no such element, or gives it no ref."""
    within: str | None = None
    """The ref of the nearest element around it that has one."""
    role: str | None = None
    """``clickable`` or ``editable`` for what has no role that says that one can act on it."""
    name: str = ""
    password: bool = False
    """Whether what it holds may not be shown."""
    error: str = ""
    """What the page says to be wrong with it."""
    shown: bool = True
    """Whether it is to be seen."""
    framed: bool = False
    """Whether it stands in a frame."""
    ghost: str = ""
    """A text in it that is hidden, though the snapshot reads it out."""


_LINE = re.compile(r"( *)- (.*)")
_QUOTED_KEY = re.compile(r"'((?:[^']|'')*)'(?::(?: (.*))?)?\Z")
_KEY = re.compile(
    r'(?P<role>[\w-]+)(?: (?P<name>"(?:[^"\\]|\\.)*"))?(?P<states>(?: \[[^\[\]]*\])*)(?::(?: (?P<value>.*))?)?\Z'
)
_STATE = re.compile(r"\[([^\[\]]*)\]")
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|.)")
_CONTROL = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}


def folded(text: str) -> str:
    """The text with white space folded."""
    return " ".join(text.split())


def read(snapshot: str) -> Node:
    """The tree of what ``aria_snapshot(mode="ai")`` tells; its root is a node of role ``page``."""
    root = Node("page")
    # The node last seen on each level.
    path = [root]
    for written in snapshot.split("\n"):
        found = _LINE.fullmatch(written)
        if found is None:
            continue
        level = min(len(found[1]) // 2 + 1, MOST_DEEP, len(path))
        above = path[level - 1]
        if found[2].startswith("/"):
            _property(above, found[2])
            continue
        node = _node(found[2])
        node.parent = above
        above.children.append(node)
        del path[level:]
        path.append(node)
    return root


def _property(node: Node, body: str) -> None:
    key, _, value = body.partition(": ")
    if key == "/url":
        node.address = _text(value)
    elif key == "/placeholder":
        node.placeholder = _text(value)


def _node(body: str) -> Node:
    value: str | None
    if quoted := _QUOTED_KEY.match(body):
        found, value = _KEY.match(quoted[1].replace("''", "'")), quoted[2]
    else:
        found = _KEY.match(body)
        value = found["value"] if found else None
    if found is None:
        return Node("text", text=folded(body))
    node = Node(found["role"], _text(found["name"] or ""), folded(_text(value or "")))
    if written := found["states"]:
        states: list[str] = []
        pointer = False
        for state in _STATE.findall(written):
            if state.startswith("ref="):
                node.ref = state[4:]
            elif state == "cursor=pointer":
                pointer = True
            elif state != "active":
                states.append(state)
        node.states = tuple(states)
        if node.ref is not None:
            if node.role in ACTING:
                node.acting = True
            elif pointer:
                node.acting = True
                if node.role == "generic":
                    node.role = "clickable"
    return node


def _text(written: str) -> str:
    if len(written) < 2 or written[0] != '"' or written[-1] != '"':
        return written
    if "\\" not in written:
        return written[1:-1]
    return _ESCAPE.sub(_unescaped, written[1:-1])


def _unescaped(found: re.Match[str]) -> str:
    code = found[1]
    if len(code) > 1:
        return chr(int(code[1:], 16))
    return _CONTROL.get(code, code)


def add(root: Node, facts: Sequence[Fact], refs: Mapping[str, Node]) -> None:
    """Put into the tree what the snapshot does not tell; ``refs`` are the nodes of the tree by their refs."""
    for fact in facts:
        node = refs.get(fact.ref or "")
        if node is None:
            if fact.role is not None and fact.shown:
                _adopt(root, fact, refs)
            continue
        if fact.ghost:
            _lay(node, fact.ghost)
        if fact.password and node.text:
            node.text = HIDDEN_VALUE
        if fact.error:
            node.error = folded(fact.error)
        if fact.role is not None and not node.acting:
            node.acting = True
            if node.role in ("generic", "paragraph", "emphasis", "strong"):
                node.role = fact.role


def _lay(node: Node, ghost: str) -> None:
    """Take a ghost out of an element, and out of the names of what it stands in: those are made of what stands in them."""
    ghost = folded(ghost)
    beside = [each for each in node.children if each.role == "text"]
    for each in (node, *beside, *(above for above in node.above() if above.role in _NAMED_BY_CONTENT)):
        each.name, each.text = _without(each.name, ghost), _without(each.text, ghost)
    node.children = [each for each in node.children if each.role != "text" or each.text or each.children]


def _without(text: str, ghost: str) -> str:
    return folded(text.replace(ghost, " ", 1)) if ghost in text else text


def _adopt(root: Node, fact: Fact, refs: Mapping[str, Node]) -> None:
    """Give its own ref to an element that the snapshot has without one, or has not at all."""
    above = refs.get(fact.within or "", None if fact.framed else root)
    if above is None or fact.role is None:
        return
    name = folded(fact.name)
    for node in above.walk():
        if node.role == fact.role and node.ref is None and node.name == name:
            node.ref, node.acting = fact.own, True
            node.error = folded(fact.error)
            if fact.password and node.text:
                node.text = HIDDEN_VALUE
            return
    above.children.append(Node(fact.role, name, ref=fact.own, acting=True, error=folded(fact.error), parent=above))


def copied(
    node: Node, change: Callable[[str], str], parent: Node | None = None, address: Callable[[str], str] | None = None
) -> Node:
    """The tree with every text in it changed; ``address`` changes where links lead, where that is to be changed otherwise."""
    led = address or change

    def one(old: Node, above: Node | None) -> Node:
        return dataclasses.replace(
            old,
            name=change(old.name) if old.name else "",
            text=change(old.text) if old.text else "",
            error=change(old.error) if old.error else "",
            placeholder=change(old.placeholder) if old.placeholder else "",
            address=led(old.address) if old.address else "",
            caption=change(old.caption) if old.caption else "",
            mark=change(old.mark) if old.mark else "",
            children=[],
            parent=above,
        )

    top = one(node, parent)
    open_: list[tuple[Node, Node]] = [(node, top)]
    while open_:
        old, new = open_.pop()
        for child in old.children:
            made = one(child, new)
            new.children.append(made)
            open_.append((child, made))
    return top


def inner(node: Node, most: int = 100_000, between: str = " ") -> str:
    """What a person reads in the node: its texts, names of what has no text, values; at most about ``most`` characters."""
    parts: list[str] = []
    length = 0
    open_ = [node]
    while open_ and length < most:
        each = open_.pop()
        part = each.text or ("" if each.children and each.role not in ACTING else each.name)
        if each.role in FIELDS and each.text and each.name:
            part = f"{each.name} {each.text}"
        if part and (not parts or parts[-1] != part):
            parts.append(part)
            length += len(part) + 1
        if each.role in ACTING and each.name and each.role not in ("option", "treeitem"):
            # Its name is what stands in it.
            open_.extend(reversed([child for child in each.children if child.acting]))
        else:
            open_.extend(reversed(each.children))
    return between.join(parts)
