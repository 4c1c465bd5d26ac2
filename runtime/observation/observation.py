"""Observation of a page: compact text for a model, with a ref for each element that one can act on. Its texts are never instructions."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Sequence

from runtime.observation import captions, changes, grids, marks, modal, page_frame, tree, wanted
from runtime.observation.finding import Element, Finder
from runtime.observation.folding import EVERY_ROW, LONG_RUN, Fold
from runtime.observation.lines import items, quoted
from runtime.observation.tree import Fact, Node

DEFAULT_BUDGET = 5_000
RESTLESS = "… the page keeps changing: what stands here may be gone already"
LOADING = "… still loading"
LEAST_BUDGET = 200  # minimum budget of an observation, in characters


class Observation:
    """One observation of a page. Implements ``nodes.pages.View``.

    Each of its texts keeps its budget, which is at least 200 characters. It shows an element as one whole line or not at all.
    The rest is folded into lines with counts and the call that shows it. A larger budget never shows fewer elements.
    """

    def __init__(self, url: str, title: str, root: Node, doubt: str = "") -> None:
        """``doubt`` is shown with the page: ``RESTLESS``, ``LOADING``."""
        self.url = url
        self.title = title
        self._root = root
        self.doubt = doubt
        self._refs = {node.ref: node for node in root.walk() if node.ref is not None}

    @classmethod
    def read(
        cls,
        snapshot: str,
        url: str = "",
        title: str = "",
        facts: Sequence[Fact] = (),
        seen: Sequence[marks.Mark] = (),
        split: Sequence[grids.Split] = (),
        front: Sequence[str] = (),
    ) -> Observation:
        """Build an observation from ``aria_snapshot(mode="ai")`` and further facts; ``seen`` are marks to show, ``split`` are grids.

        ``front`` are refs of what a modal dialog leaves within reach.
        """
        observation = cls(url, title, tree.read(snapshot))
        tree.add(observation._root, facts, observation._refs)
        grids.add(split, observation._refs)
        captions.add(observation._root)
        marks.add(seen, observation._refs)
        modal.mark(observation._root, front, observation._refs)
        return cls(url, title, observation._root) if facts else observation

    def part(self, ref: str) -> Observation:
        """Return the observation of one element and its content. Raises KeyError for an unknown ref."""
        page = Node("page")
        page.children.append(tree.copied(self._refs[ref], str, page))
        return Observation(self.url, self.title, page, self.doubt)

    def doubted(self, doubt: str) -> Observation:
        """Return the same observation, with a doubt that stands."""
        return Observation(self.url, self.title, self._root, doubt)

    def masked(self, mask: Callable[[str], str], address: Callable[[str], str] | None = None) -> Observation:
        """Apply ``mask`` to every text: names, values, texts; ``address``, if given, to its own address and those of links."""
        root = tree.copied(self._root, mask, address=address)
        return Observation((address or mask)(self.url), mask(self.title), root, self.doubt)

    def render(
        self, budget: int = DEFAULT_BUDGET, known: Collection[str] = (), goal: Collection[str] | None = None
    ) -> str:
        """Return the page in at most ``budget`` characters; ``known`` parts of the page frame (earlier ``around``) take one line each.

        For the words of a ``goal`` long runs stay folded, whatever the budget, but for rows that have these words.
        """
        head, fold = _head(self.title, self.url), self._fold
        head = f"{head}\n{self.doubt}" if self.doubt else head
        if known or goal is not None:
            top = modal.shown(self._root)
            page_frame.fold(top, known)
            wanted.keep(top, goal or ())
            fold = Fold(top, EVERY_ROW if goal is None else LONG_RUN)
        return f"{head}\n{shown}" if (shown := fold.shown(_fit(budget) - len(head) - 1)) else head

    @functools.cached_property
    def around(self) -> frozenset[str]:
        return page_frame.known(modal.shown(self._root))

    def subtree(self, ref: str, budget: int = DEFAULT_BUDGET) -> str:
        """Return an element and its content in at most ``budget`` characters. Raises KeyError for an unknown ref."""
        return Fold(items(self._refs[ref])).shown(_fit(budget)) or f"{self._refs[ref].role}: more than fits here"

    def find(
        self,
        role: str | None = None,
        name: str | None = None,
        row: str | None = None,
        text: str | None = None,
        budget: int = DEFAULT_BUDGET,
    ) -> str:
        """Return the matching elements, each with its ref and place, in at most ``budget`` characters; the rest is counted.

        ``name`` matches exactly, else as whole words; ``row`` as whole words. If there is none, either matches as a part,
        which is reported. An empty one matches elements without it. ``text`` matches any part of an element's text. White
        space, case and the separators of cells do not count.
        """
        return self._finder.find(role, name, row, text, _fit(budget))

    def since(self, earlier: Observation, budget: int = 800, most: int = 0) -> str:
        """Describe the changes, most important first; for what one can act on, in up to ``most`` characters."""
        lines: list[str] = []
        if (self.url, self.title) != (earlier.url, earlier.title):
            lines.append(f"now: {_head(self.title, self.url)}")
        lines += [self.doubt] if self.doubt == LOADING else []
        used = sum(len(line) + 1 for line in lines)
        if changed := changes.changes(earlier._root, self._root, _fit(budget) - used, most - used):
            lines.append(changed)
        return "\n".join(lines) or "nothing changed"

    def moved(self, earlier: Observation) -> bool:
        """Return True if it shows another address, whose query and fragment do not count."""
        return _place(self.url) != _place(earlier.url)

    def continues(self, earlier: Observation) -> bool:
        """Return True if it shows the same document as an earlier one: some element to act on still has its ref."""
        return any(ref in self._refs for ref in earlier.refs)

    @property
    def words(self) -> str:
        """All texts of the page in order, one part a line, followed by names and values not shown as text, title and address."""
        other = (part for node in self._root.walk() for part in _beside(node))
        return "\n".join([tree.inner(self._root, 10**9, "\n"), *other, self.title, self.url])

    def has(self, ref: str) -> bool:
        return ref in self._refs

    def element(self, ref: str) -> Element:
        return self._finder.element(self._refs[ref])

    @property
    def refs(self) -> list[str]:
        """Refs of the elements to act on, in the order of the page."""
        return [node.ref for node in self._root.walk() if node.acting and node.ref is not None]

    @property
    def all_refs(self) -> list[str]:
        """All refs, also of elements that can only be read, in the order of the page."""
        return list(self._refs)

    @functools.cached_property
    def _fold(self) -> Fold:
        return Fold(modal.shown(self._root))

    @functools.cached_property
    def _finder(self) -> Finder:
        return Finder(self._root)


def _beside(node: Node) -> list[str]:
    return [each for each in (node.name, node.text, node.placeholder, node.error, node.address, node.guess) if each]


def _place(url: str) -> str:
    return url.partition("#")[0].partition("?")[0]


def _head(title: str, url: str) -> str:
    return f"page {quoted(title, 40)} {url if len(url) <= 60 else f'{url[:59]}…'}"


def _fit(budget: int) -> int:
    if budget < LEAST_BUDGET:
        raise ValueError(f"an observation needs a budget of at least {LEAST_BUDGET} characters, and not {budget}")
    return budget
