"""Hints on a valid file: risks of side effects, most of them after a crash, found without a run.

- ``confirm-reads-one-page``, ``verify-reads-one-page``: a side effect is checked on one page of a list that the file itself pages through.
- ``retry-acts-twice``: a side effect is retried although it may have happened.
- ``effect-without-goto``: a step reads the page that a side effect leads to; after a crash that page may be gone.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Generator, Iterator, Sequence

from nodes.base import Container, Leaf, Node
from nodes.browser_action import BrowserAction, Click, Goto
from nodes.iterate import Iterate
from nodes.route import Route
from nodes.targets import Target
from nodes.template import OPENING
from runtime.language.diagnostics import Diagnostic
from runtime.language.workflow import Loaded, below
from runtime.log import step_states


@dataclasses.dataclass(frozen=True, slots=True)
class Hint:
    file: Loaded
    code: str
    node: str
    text: str
    fix: str

    @property
    def diagnostic(self) -> Diagnostic:
        mark = self.file.mark(self.node, "id")
        made = self.file.document.source.diagnostic(self.code, self.text, mark, help=[self.fix])
        return dataclasses.replace(made, level="hint")


def of(file: Loaded) -> list[Hint]:
    return [*_of_lists(file), *_of_retries(file), *_without_goto(file)]


def _effects(file: Loaded) -> Iterator[tuple[Leaf, tuple[Node, ...]]]:
    for node, around in file.index.values():
        if isinstance(node, Leaf) and node.effect_class == "effect" and not _in_confirm(around):
            yield node, around


def _in_confirm(around: Sequence[Node]) -> bool:
    return any(isinstance(each, Leaf) for each in around)


@dataclasses.dataclass(frozen=True, slots=True)
class _PagedList:
    loop: Iterate
    address: str | None  # address of the page with the list, as written; None if a click leads to it
    read: frozenset[str]  # targets that the loop reads on each page


def _of_lists(file: Loaded) -> Iterator[Hint]:
    lists = list(_paged_lists(file))
    for node, around in _effects(file) if lists else ():
        if node.confirm is not None and (asked := [each for each in lists if _asks_one_page(node.confirm.nodes, each)]):
            text = _one_page(node, "confirm", asked[0], "an item on a later page counts as not done, and is done again")
            fix = "let it go through all pages too: a query with `next` does"
            yield Hint(file, "confirm-reads-one-page", node.id, text, fix)
        looks = {_kind(target) for rule in node.verify for target in (rule.target, rule.visible) if target is not None}
        if seen := [each for each in lists if each.loop not in around and looks & each.read]:
            text = _one_page(node, "verify", seen[0], "an item on another page is not found")
            fix = "name what the action itself shows, such as a message; or ask the whole list after it"
            yield Hint(file, "verify-reads-one-page", node.id, text, fix)


def _one_page(node: Leaf, field: str, each: _PagedList, what: str) -> str:
    return f"the `{field}` of `{node.id}` reads one page of a list that `{each.loop.id}` pages through: {what}"


def _paged_lists(file: Loaded) -> Iterator[_PagedList]:
    """Yield the lists that loops of the file page through: by a ``read`` click on the same element of each page."""
    address: str | None = None
    for node, around in file.index.values():
        if _in_confirm(around):
            continue
        if isinstance(node, Goto):
            address = node.url
        elif isinstance(node, Iterate) and any(turns_page(each) for each in below(node)):
            within = list(below(node))
            if not any(isinstance(each, BrowserAction) and _moves(each) and not turns_page(each) for each in within):
                read = {_kind(target) for each in within if (target := _target(each)) is not None and not _moves(each)}
                yield _PagedList(node, address, frozenset(read))
        elif isinstance(node, Click) and not any(turns_page(node) and isinstance(each, Iterate) for each in around):
            address = None


def turns_page(node: Node) -> bool:
    """Return whether a node in a loop goes to the next page of a list: a click of ``effect: read`` on the same element each time."""
    if not isinstance(node, Click) or node.effect_class != "read":
        return False
    return node.opens is None and OPENING not in str(node.target)


def _asks_one_page(nodes: Sequence[Node], each: _PagedList) -> bool:
    steps = [step for node in nodes for step in (node, *below(node))]
    if any(turns_page(step) or getattr(step, "next", None) is not None for step in steps):
        return False
    if each.address is not None:
        return [step.url for step in steps if isinstance(step, Goto)][-1:] == [each.address]
    return any((target := _target(step)) is not None and _kind(target) in each.read for step in steps)


def _moves(node: Node) -> bool:
    return isinstance(node, Leaf) and node.moves_page


def _target(node: Node) -> Target | None:
    found = getattr(node, "target", None)
    return found if isinstance(found, Target) else None


def _kind(target: Target) -> str:
    """Return the target without the fields that select among elements of one kind."""
    return target.model_dump_json(exclude_none=True, exclude={"has_text", "nth", "exact"})


def _of_retries(file: Loaded) -> Iterator[Hint]:
    for node, _around in _effects(file):
        on = [code for code in (node.retry.on or () if node.retry else ()) if code in step_states.LOST]
        if on:
            codes = " and ".join(f"`{code}`" for code in on)
            text = f"`{node.id}` is tried again on {codes}, which does not tell if it happened: it may happen twice"
            fix = "leave that out of `retry.on`, and give the node a `confirm`: with it `retry` asks the site first"
            yield Hint(file, "retry-acts-twice", node.id, text, fix)


def _without_goto(file: Loaded) -> Iterator[Hint]:
    reported: set[str] = set()
    for node, around in _effects(file):
        for reader in _next_on_page(file, node, around) if node.confirm is not None else ():
            if not _moves(reader) and reader.id not in reported and reader.id in file.index:
                reported.add(reader.id)
                text = f"`{reader.id}` reads the page to which `{node.id}` leads: if that is found done after a crash, the page may be gone"
                yield Hint(file, "effect-without-goto", reader.id, text, "begin with a `goto` of the page that is read")


def _next_on_page(file: Loaded, node: Node, around: Sequence[Node]) -> Iterator[Leaf]:
    """Yield the page steps that may run right after ``node``."""
    for owner in (*reversed(around), None):
        blocks = [file.workflow.nodes] if owner is None else [each for _field, each in owner.blocks()]
        block = next(each for each in blocks if any(inner is node for inner in each))
        place = next(number for number, each in enumerate(block) if each is node)
        if (yield from _first(file, block[place + 1 :])) or owner is None:
            return
        if isinstance(owner, Iterate):
            # Or the next iteration begins.
            yield from _first(file, block)
        node = owner


def _first(file: Loaded, nodes: Sequence[Node]) -> Generator[Leaf, None, bool]:
    """Yield the page steps that may be the first of ``nodes``; return True if one of them certainly runs."""
    for node in nodes:
        surely = isinstance(node, Leaf) and node.touches_page
        if isinstance(node, Leaf) and surely:
            yield node
        elif isinstance(node, Container):
            used = file.callees.get(node.id)
            blocks = [used.workflow.nodes] if used is not None else [each for _field, each in node.blocks()]
            surely = not isinstance(node, Iterate | Route)
            for block in blocks if isinstance(node, Route) else blocks[:1]:
                surely = (yield from _first(used or file, block)) and surely
        if surely and node.when is None:
            return True
    return False
