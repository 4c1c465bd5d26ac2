"""Parses an accessibility snapshot into a tree of nodes: roles, names, values, states and refs."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterator, Mapping, Sequence

MOST_DEEP = 150  # most levels of the tree; deeper nodes are put on the last one

FIELDS = frozenset({"textbox", "searchbox", "spinbutton", "slider", "combobox", "listbox"})
ACTING = FIELDS | {
    "link", "button", "checkbox", "radio", "switch", "menuitem", "menuitemcheckbox", "menuitemradio", "tab", "option", "treeitem",
}  # fmt: skip
LANDMARKS = frozenset({"banner", "navigation", "main", "contentinfo", "complementary", "search", "form", "region"})
ROWS = frozenset({"row", "listitem", "article", "option", "treeitem"})  # roles of items in rows
URGENT = frozenset({"alert", "alertdialog", "dialog", "status"})  # roles of a page's messages to its user
_NAMED_BY_CONTENT = frozenset({
    "row", "cell", "gridcell", "columnheader", "rowheader", "heading", "link", "button", "option", "listitem", "tab", "menuitem", "treeitem",
})  # fmt: skip
TEXTS = ("name", "text", "error", "placeholder", "caption", "mark")
"""Fields of a node that hold text of the page, beside its address."""
HIDDEN_VALUE = "••••"


@dataclasses.dataclass(slots=True, eq=False)
class Node:
    """An element, or a text of the page."""

    role: str
    """Role for assistive programs. ``text``: a text outside elements; ``clickable``, ``editable``: an element without a role."""
    name: str = ""
    text: str = ""  # value of a field; for other elements their text
    states: tuple[str, ...] = ()
    ref: str | None = None
    acting: bool = False  # true if one can act on it
    error: str = ""  # error of the field according to the page
    placeholder: str = ""
    address: str = ""  # address of a link, as written
    apart: bool = False  # true if only its address distinguishes it from other links
    caption: str = ""  # caption beside a field without a name, or the term before a value
    mark: str = ""
    """Target by its test id, as in a file. If it finds only a part of the node, the text of that part follows."""
    as_caption: bool = False  # true if it is shown as the caption of its neighbour
    children: list[Node] = dataclasses.field(default_factory=list)
    parent: Node | None = None

    def walk(self) -> Iterator[Node]:
        open_: list[Node] = [self]
        while open_:
            node = open_.pop()
            yield node
            open_.extend(reversed(node.children))

    def above(self) -> Iterator[Node]:
        """Yield its ancestors, the nearest first."""
        node = self.parent
        while node is not None:
            yield node
            node = node.parent


@dataclasses.dataclass(frozen=True, slots=True)
class Fact:
    """Fact that the snapshot may lack about an element with an action or an error."""

    ref: str | None  # its ref, if the snapshot ever gave it one
    own: str  # A separate ref, for an element that the snapshot lacks or gives no ref
    within: str | None = None  # ref of its nearest ancestor with one
    role: str | None = None  # `clickable` or `editable` for an element to act on without such a role
    name: str = ""
    password: bool = False  # true if its value must not be shown
    error: str = ""
    shown: bool = True
    framed: bool = False
    ghost: str = ""  # A hidden text in it that the snapshot contains


_LINE = re.compile(r"( *)- (.*)")
_QUOTED_KEY = re.compile(r"'((?:[^']|'')*)'(?::(?: (.*))?)?\Z")
_KEY = re.compile(
    r'(?P<role>[\w-]+)(?: (?P<name>"(?:[^"\\]|\\.)*"))?(?P<states>(?: \[[^\[\]]*\])*)(?::(?: (?P<value>.*))?)?\Z'
)
POINTER = "cursor=pointer"
_NO_STATES = ("active", POINTER)
_STATE = re.compile(r"\[([^\[\]]*)\]")
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|.)")
_CONTROL = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}


def folded(text: str) -> str:
    return " ".join(text.split())


def read(snapshot: str) -> Node:
    """Parse the output of ``aria_snapshot(mode="ai")``; the root is a node of role ``page``."""
    root = Node("page")
    # The last node on each level.
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
        states: list[str] = _STATE.findall(written)
        node.ref = next((each[4:] for each in states if each.startswith("ref=")), None)
        node.states = tuple(each for each in states if not each.startswith("ref=") and each not in _NO_STATES)
        node.acting = node.ref is not None and (node.role in ACTING or POINTER in states)
        if node.acting and node.role == "generic":
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
    """Add the facts that the snapshot lacks; ``refs`` are the tree's nodes by ref."""
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
    """Remove a ghost from an element, and from the names of its ancestors, which consist of their content."""
    ghost = folded(ghost)
    beside = [each for each in node.children if each.role == "text"]
    for each in (node, *beside, *(above for above in node.above() if above.role in _NAMED_BY_CONTENT)):
        each.name, each.text = _without(each.name, ghost), _without(each.text, ghost)
    node.children = [each for each in node.children if each.role != "text" or each.text or each.children]


def _without(text: str, ghost: str) -> str:
    return folded(text.replace(ghost, " ", 1)) if ghost in text else text


def _adopt(root: Node, fact: Fact, refs: Mapping[str, Node]) -> None:
    """Give its own ref to an element without a ref in the snapshot, or add the missing element."""
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
    """Copy the tree and change every text in it; ``address``, if given, changes the addresses of links instead."""
    led = address or change

    def one(old: Node, above: Node | None) -> Node:
        texts = {name: change(text) for name in TEXTS if (text := getattr(old, name))}
        link = led(old.address) if old.address else ""
        return dataclasses.replace(old, **texts, address=link, children=[], parent=above)

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
    """Return the text of a node as a person reads it: texts, names of elements without text, values; about ``most`` characters."""
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
            # Its name consists of its content.
            open_.extend(reversed([child for child in each.children if child.acting]))
        else:
            open_.extend(reversed(each.children))
    return between.join(parts)
