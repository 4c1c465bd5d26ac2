"""An observation: one look at a page, as compact text for a model, with a ref for each element that one can act on.

Pure: ``runtime.browser.page.observer`` takes it from a tab. What it says is what the page says; nothing of it is to be obeyed.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Sequence

from runtime.observation import captions, changes, page_frame, test_ids, tree
from runtime.observation.finding import Element, Finder
from runtime.observation.folding import Fold
from runtime.observation.lines import items, quoted
from runtime.observation.tree import Fact, Node

DEFAULT_BUDGET = 5_000
"""Characters of an observation where nobody says how many."""
LEAST_BUDGET = 200
"""Characters that every observation may have."""


class Observation:
    """One look at a page. Implements ``nodes.pages.View``.

    Every text that it gives is at most as long as its budget, of at least 200 characters, and shows an element as one whole line or not at all;
    what has no room is folded into lines that say how many of what, and how to see it. A larger budget never shows fewer elements.
    """

    def __init__(self, url: str, title: str, root: Node) -> None:
        self.url = url
        """Address of the document."""
        self.title = title
        """Title of the document."""
        self._root = root
        self._refs = {node.ref: node for node in root.walk() if node.ref is not None}

    @classmethod
    def read(
        cls,
        snapshot: str,
        url: str = "",
        title: str = "",
        facts: Sequence[Fact] = (),
        seen: Sequence[test_ids.Mark] = (),
    ) -> Observation:
        """The observation of what ``aria_snapshot(mode="ai")`` tells, and of facts that it does not; ``seen`` are marks that are to be shown."""
        observation = cls(url, title, tree.read(snapshot))
        tree.add(observation._root, facts, observation._refs)
        captions.add(observation._root)
        test_ids.add(seen, observation._refs)
        return cls(url, title, observation._root) if facts else observation

    def part(self, ref: str) -> Observation:
        """The observation of one element and what is in it. Raises KeyError where the observation has no such ref."""
        page = Node("page")
        page.children.append(tree.copied(self._refs[ref], str, page))
        return Observation(self.url, self.title, page)

    def masked(self, mask: Callable[[str], str], address: Callable[[str], str] | None = None) -> Observation:
        """The observation with every text in it changed by ``mask``: names, values, texts; its own address and those of links by ``address``, where one is given."""
        root = tree.copied(self._root, mask, address=address)
        return Observation((address or mask)(self.url), mask(self.title), root)

    def render(self, budget: int = DEFAULT_BUDGET, known: Collection[str] = ()) -> str:
        """The page in at most ``budget`` characters.

        Parts around what it is about (banner, navigation, side bars) that are among the ``known`` ones (``around`` of what was told) are one line each.
        """
        head, fold = _head(self.title, self.url), self._fold
        if known:
            top = items(self._root)
            page_frame.fold(top, known)
            fold = Fold(top)
        return f"{head}\n{shown}" if (shown := fold.shown(_fit(budget) - len(head) - 1)) else head

    @functools.cached_property
    def around(self) -> frozenset[str]:
        """What the parts around what the page is about say, each without its refs."""
        return page_frame.known(items(self._root))

    def subtree(self, ref: str, budget: int = DEFAULT_BUDGET) -> str:
        """An element and what is in it, in at most ``budget`` characters. Raises KeyError where the observation has no such ref."""
        return Fold(items(self._refs[ref])).shown(_fit(budget)) or f"{self._refs[ref].role}: more than fits here"

    def find(
        self,
        role: str | None = None,
        name: str | None = None,
        row: str | None = None,
        text: str | None = None,
        budget: int = DEFAULT_BUDGET,
    ) -> str:
        """The elements of that role, name, row and text, each with its ref and where it stands, in at most ``budget`` characters.

        ``name`` is found exactly, or, where nothing is called just so, as whole words; ``row`` as whole words; either as a part where it is no whole word
        anywhere, and that is said. The empty one is that of what has none. ``text`` is a part of what the element says. White space and case do not count,
        nor what stands between the cells of a row. What does not fit is counted.
        """
        return self._finder.find(role, name, row, text, _fit(budget))

    def since(self, earlier: Observation, budget: int = 800) -> str:
        """What changed since an earlier look, the most telling first, in at most ``budget`` characters.

        Where a document of another address is shown by now, that is what is new on it, and of the page before how much of it is gone.
        """
        lines: list[str] = []
        if (self.url, self.title) != (earlier.url, earlier.title):
            lines.append(f"now: {_head(self.title, self.url)}")
        left = _fit(budget) - sum(len(line) + 1 for line in lines)
        elsewhere = _place(self.url) != _place(earlier.url) and not self._refs.keys() & earlier._refs.keys()
        if told := changes.changes(earlier._root, self._root, left, elsewhere=elsewhere):
            lines.append(told)
        return "\n".join(lines) or "nothing changed"

    def continues(self, earlier: Observation) -> bool:
        """Whether it is of the document of an earlier look: something that one could act on there has its ref still."""
        return any(ref in self._refs for ref in earlier.refs)

    @property
    def words(self) -> str:
        """All that stands on the page, in order, one part a line; behind it names and values that are not shown as text, title and address."""
        other = (part for node in self._root.walk() for part in _beside(node))
        return "\n".join([tree.inner(self._root, 10**9, "\n"), *other, self.title, self.url])

    def has(self, ref: str) -> bool:
        """Whether an element of the page has this ref."""
        return ref in self._refs

    def element(self, ref: str) -> Element:
        """What is known of an element. Raises KeyError where the observation has no such ref."""
        return self._finder.element(self._refs[ref])

    @property
    def refs(self) -> list[str]:
        """The refs of what one can act on, in the order of the page."""
        return [node.ref for node in self._root.walk() if node.acting and node.ref is not None]

    @property
    def all_refs(self) -> list[str]:
        """The refs of everything that has one, also of what is only there to be read, in the order of the page."""
        return list(self._refs)

    @functools.cached_property
    def _fold(self) -> Fold:
        return Fold(items(self._root))

    @functools.cached_property
    def _finder(self) -> Finder:
        return Finder(self._root)


def _beside(node: Node) -> list[str]:
    """Every text that a node has."""
    return [each for each in (node.name, node.text, node.placeholder, node.error, node.address) if each]


def _place(url: str) -> str:
    """The address without what only says how a page is shown."""
    return url.partition("#")[0].partition("?")[0]


def _head(title: str, url: str) -> str:
    return f"page {quoted(title, 40)} {url if len(url) <= 60 else f'{url[:59]}…'}"


def _fit(budget: int) -> int:
    if budget < LEAST_BUDGET:
        raise ValueError(f"an observation needs a budget of at least {LEAST_BUDGET} characters, and not {budget}")
    return budget
