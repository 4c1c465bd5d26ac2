"""Parses an accessibility snapshot into a tree of nodes: roles, names, values, states and refs."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence

MOST_DEEP = 150  # most levels of the tree; deeper nodes are put on the last one

FIELDS = frozenset({"textbox", "searchbox", "spinbutton", "slider", "combobox", "listbox"})
ACTING = FIELDS | {
    "link", "button", "checkbox", "radio", "switch", "menuitem", "menuitemcheckbox", "menuitemradio", "tab", "option", "treeitem",
}  # fmt: skip
LANDMARKS = frozenset({"banner", "navigation", "main", "contentinfo", "complementary", "search", "form", "region"})
ASIDE = frozenset({"banner", "navigation", "contentinfo", "complementary"})  # landmarks beside what a page is about
ROWS = frozenset({"row", "listitem", "article", "option", "treeitem"})  # roles of items in rows
TABLES = frozenset({"table", "grid", "treegrid"})
CELLS = frozenset({"cell", "gridcell", "columnheader", "rowheader"})
DIALOGS = frozenset({"alertdialog", "dialog"})
URGENT = DIALOGS | {"alert", "status"}  # roles of a page's messages to its user
_NAMED_BY_CONTENT = frozenset({
    "row", "cell", "gridcell", "columnheader", "rowheader", "heading", "link", "button", "option", "listitem", "tab", "menuitem", "treeitem",
})  # fmt: skip
TEXTS = ("name", "text", "error", "placeholder", "caption", "mark", "own_mark", "guess")
"""Fields of a node that hold text of the page, beside its address."""
HIDDEN_VALUE = "••••"
SPOTS = frozenset({"clickable", "editable", "draggable", "droppable", "scrollable", "canvas"})
"""Roles that are no roles of a document: what can be done with an element that has none."""


@dataclasses.dataclass(slots=True, eq=False)
class Node:
    """An element, or a text of the page."""

    role: str
    """Role for assistive programs. ``text``: a text outside elements; ``SPOTS``: an element without a role."""
    name: str = ""
    text: str = ""  # value of a field; for other elements their text
    states: tuple[str, ...] = ()
    ref: str | None = None
    acting: bool = False  # true if one can act on it
    reach: bool = False
    """True if a hand needs it though it is read by its content: to drop on it, to scroll in it, to draw on it."""
    error: str = ""  # error of the field according to the page
    placeholder: str = ""
    address: str = ""  # address of a link, as written
    apart: bool = False  # true if only its address distinguishes it from other links
    caption: str = ""  # caption beside a field without a name, or the term before a value
    mark: str = ""
    """Target by its test id, as in a file. If it finds only a part of the node, the text of that part follows."""
    own_mark: str = ""  # target by its own test id, id or name, also where it needs none
    guess: str = ""  # what it may be called, if nothing in it or beside it says so
    size: str = ""  # width and height in pixels, for a place in it
    behind: bool = False  # true if a modal dialog keeps a hand from it
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
    within: Sequence[str] = ()  # refs of its ancestors, the nearest first
    role: str | None = None  # one of ``SPOTS`` for an element to act on without such a role
    name: str = ""
    password: bool = False  # true if its value must not be shown
    error: str = ""
    shown: bool = True
    framed: bool = False
    ghost: str = ""  # A hidden text in it that the snapshot contains
    before: Sequence[str] = ()  # refs of elements in front of it, the nearest first
    holds: Sequence[str] = ()  # refs of elements in it, in the order of the page
    reach: bool = False
    states: Sequence[str] = ()
    guess: str = ""
    placeholder: str = ""
    value: str = ""  # text of an editable part with the role of a field
    size: str = ""
    out: str = ""  # what of its content is out of view
    collapsed: bool = False  # true if what is in it is closed


_SAYS = re.compile(r"\w")
_GLYPH = re.compile("[\ue000-\uf8ff\U000f0000-\U0010ffff]")
_GLYPHS = re.compile(f" ?{_GLYPH.pattern}+ ?")
"""Characters of private planes: icon fonts draw pictures for them, and no person reads them as text."""
_QUOTED_KEY = re.compile(r"'((?:[^']|'')*)'(?::(?: (.*))?)?\Z")
_KEY = re.compile(
    r'(?P<role>[\w-]+)(?: (?P<name>"(?:[^"\\]|\\.)*"))?(?P<states>(?: \[[^\[\]]*\])*)(?::(?: (?P<value>.*))?)?\Z'
)
_PLAIN = frozenset({"generic", "paragraph", "emphasis", "strong"})  # roles that say nothing of what an element is for
PANE = 300  # characters of text from which on what is dragged is a pane that is shown with its content, and no thing with a name
POINTER = "cursor=pointer"
_NO_STATES = ("active", "aria-hidden", POINTER)
_STATE = re.compile(r"\[([^\[\]]*)\]")
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|.)")
_CONTROL = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}


def folded(text: str) -> str:
    return " ".join(text.split())


def readable(text: str) -> str:
    """Return the text without the pictures of icon fonts."""
    return folded(_GLYPHS.sub(" ", text))


def read(snapshot: str) -> Node:
    """Parse the output of ``aria_snapshot(mode="ai")``; the root is a node of role ``page``."""
    root = Node("page")
    # The last node on each level.
    path = [root]
    items: list[Node] = []
    for written in _GLYPHS.sub(" ", snapshot).split("\n") if _GLYPH.search(snapshot) else snapshot.split("\n"):
        body = written.lstrip(" ")
        if not body.startswith("- "):
            continue
        level = min((len(written) - len(body)) // 2 + 1, MOST_DEEP, len(path))
        above = path[level - 1]
        if body.startswith("- /"):
            _property(above, body[2:])
            continue
        node = _node(body[2:])
        node.parent = above
        if node.role == "text" and above.role in FIELDS and not (above.text or above.children):
            # Of a field with a placeholder, also an empty one, the snapshot writes the value on a line of its own.
            above.text = node.text
            continue
        above.children.append(node)
        del path[level:]
        path.append(node)
        if node.role == "treeitem":
            items.append(node)
    for node in items:
        _item(node)
    return root


def _item(node: Node) -> None:
    """Give an item of a tree its level if it has none, and call it what it says itself, without the items in it."""
    if not any(state.startswith("level=") for state in node.states):
        node.states = (f"level={1 + sum(each.role == 'treeitem' for each in node.above())}", *node.states)
    said = [node.text]
    open_ = list(reversed(node.children))
    while open_:
        each = open_.pop()
        if each.role not in ("treeitem", "group", "tree"):
            said.append(each.text or ("" if each.children else each.name))
            open_.extend(reversed(each.children))
    own = folded(" ".join(said))
    if own and node.children and (not node.name or node.name.startswith(own)):
        node.name = own


def _property(node: Node, body: str) -> None:
    key, _, value = body.partition(": ")
    if key == "/url":
        node.address = _text(value)
    elif key == "/placeholder":
        node.placeholder = _text(value)


def _node(body: str) -> Node:
    after: str | None = None
    if quoted := _QUOTED_KEY.match(body):
        found, after = _KEY.match(quoted[1].replace("''", "'")), quoted[2]
    else:
        found = _KEY.match(body)
    if found is None:
        return Node("text", text=folded(body))
    role, name, written, value = found.groups()
    value = after if quoted else value
    node = Node(role, _text(name).strip() if name else "", folded(_text(value)) if value else "")
    if not written:
        return node
    states: list[str] = []
    for each in _STATE.findall(written):
        if each.startswith("ref="):
            node.ref = each[4:]
        elif each not in _NO_STATES:
            states.append(each)
    node.states = tuple(states)
    node.acting = node.ref is not None and (role in ACTING or POINTER in written)
    if node.acting and role == "generic":
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


def add(root: Node, facts: Sequence[Fact], refs: MutableMapping[str, Node]) -> None:
    """Add the facts that the snapshot lacks; ``refs`` are the tree's nodes by ref."""
    for fact in facts:
        node = _first((fact.ref or "", *(fact.within if fact.ghost else ())), refs)
        if node is None:
            if fact.role is not None and fact.shown:
                _adopt(root, fact, refs)
            continue
        if fact.ghost:
            _lay(node, fact.ghost)
        if fact.collapsed:
            node.states = (*node.states, "collapsed")
        if fact.password and node.text:
            node.text = HIDDEN_VALUE
        if fact.error:
            node.error = folded(fact.error)
        _use(node, fact)


def _use(node: Node, fact: Fact) -> None:
    """Note what a hand can do with a node."""
    node.guess = fact.guess or node.guess
    node.placeholder = fact.placeholder or node.placeholder
    node.text = node.text or folded(fact.value)
    if fact.role is None:
        return
    node.size = fact.size
    if node.role in _PLAIN or (node.role == "clickable" and fact.role in SPOTS):
        node.role = fact.role
    node.reach = fact.reach or (node.role == "draggable" and len(inner(node, PANE)) >= PANE)
    node.acting = node.acting or not node.reach
    said = [each for each in fact.states if each != node.role]
    if fact.out:
        said.append(fact.out if node.role == "scrollable" else f"scrollable, {fact.out}")
    node.states += tuple(said)


def _lay(node: Node, ghost: str) -> None:
    """Remove a ghost from an element, and from the names of its ancestors, which consist of their content."""
    ghost = folded(ghost)
    beside = [each for each in node.children if each.role == "text"]
    for each in (node, *beside, *(above for above in node.above() if above.role in _NAMED_BY_CONTENT)):
        each.name, each.text = _without(each.name, ghost), _without(each.text, ghost)
    node.children = [each for each in node.children if each.role != "text" or each.text or each.children]


def _without(text: str, ghost: str) -> str:
    if ghost not in text:
        return text
    # A ghost may be a part of another word of the text.
    whole = re.search(rf"(?<!\w){re.escape(ghost)}(?!\w)", text)
    begins = whole.start() if whole else text.index(ghost)
    return folded(f"{text[:begins]} {text[begins + len(ghost) :]}")


def _adopt(root: Node, fact: Fact, refs: MutableMapping[str, Node]) -> None:
    """Give its own ref to an element without a ref in the snapshot, or add the missing element."""
    above = _first(fact.within, refs) or (None if fact.framed else root)
    if above is None or fact.role is None:
        return
    name = readable(fact.name)
    for node in above.walk():
        if node.role == fact.role and node.ref is None and node.name == name:
            node.ref, node.acting = fact.own, True
            node.error = folded(fact.error)
            if fact.password and node.text:
                node.text = HIDDEN_VALUE
            return
    made = Node(fact.role, name, ref=fact.own, acting=not fact.reach, error=folded(fact.error), parent=above)
    if fact.ref is None or fact.role not in SPOTS or not _restore(made, above, _first(fact.holds, refs)):
        above.children.insert(_place(above, fact, refs), made)
    if fact.ref is not None:
        # The next one may stand beside it.
        refs[fact.ref] = made
    _use(made, fact)


def _first(wanted: Sequence[str], refs: Mapping[str, Node]) -> Node | None:
    return next((refs[each] for each in wanted if each in refs), None)


def _restore(made: Node, above: Node, held: Node | None) -> bool:
    """Put back an element that the snapshot has left out because it adds nothing to what it holds or is in; False if it shows nothing itself.

    Of elements without a role, one that holds only another is dropped, and one with only the text of what is around it as well.
    """
    said = made.name
    if held is not None and held.parent is not None:
        around = held.parent
        around.children[around.children.index(held)] = made
        made.name, made.parent, made.children, held.parent = "", around, [held], made
    elif said and not above.children and said in (above.text, above.name):
        made.name, made.text, above.text = "", said, ""
        above.children.append(made)
    else:
        return False
    return True


def _place(above: Node, fact: Fact, refs: Mapping[str, Node]) -> int:
    """Return the place among the children of ``above``: right after the nearest element in front of it, else the last."""
    for ref in fact.before:
        for each in (refs[ref], *refs[ref].above()) if ref in refs else ():
            if each.parent is above:
                return above.children.index(each) + 1
    return len(above.children)


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


def _is_silent(node: Node) -> bool:
    """Return True for a cell with a name in which nothing says anything, such as a header with only an icon to reach."""
    if node.role not in CELLS or not node.name:
        return False
    return not any(_SAYS.search(each.text or each.name) for each in node.walk() if each is not node)


def inner(node: Node, most: int = 100_000, between: str = " ") -> str:
    """Return the text of a node as a person reads it: texts, names of elements without text, values; about ``most`` characters."""
    parts: list[str] = []
    length = 0
    open_ = [node]
    while open_ and length < most:
        each = open_.pop()
        silent = _is_silent(each)
        part = each.text or (each.name if not each.children or each.role in ACTING or silent else "")
        if each.role in FIELDS and each.text and each.name:
            part = f"{each.name} {each.text}"
        if part and (not parts or parts[-1] != part):
            parts.append(part)
            length += len(part) + 1
        if each.role in ACTING and each.name and each.role not in ("option", "treeitem"):
            # Its name consists of its content.
            open_.extend(reversed([child for child in each.children if child.acting]))
        elif not silent:
            open_.extend(reversed(each.children))
    return between.join(parts)
