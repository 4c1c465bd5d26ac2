"""Hints on a valid file: risks for the case that a run of it dies, found without a run.

- ``confirm-reads-one-page``, ``verify-reads-one-page``: a side effect is checked on one page of a list that the file itself pages through.
- ``retry-acts-twice``: a side effect is retried although it is unknown if it happened.
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
from runtime.language.workflow import Loaded
from runtime.log import step_states

_WHICH = frozenset({"has_text", "nth", "exact"})
"""Fields of a target that select among elements of one kind."""


@dataclasses.dataclass(frozen=True, slots=True)
class Hint:
    """A possible improvement of a file."""

    file: Loaded
    code: str
    node: str
    """Id of the node."""
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


# Lists with pages


@dataclasses.dataclass(frozen=True, slots=True)
class _List:
    """A list that a loop pages through."""

    loop: Iterate
    address: str | None
    """Address of the page with the list, as written; None if a click leads to it."""
    read: frozenset[str]
    """Targets that the loop reads on each page."""


def _of_lists(file: Loaded) -> Iterator[Hint]:
    lists = list(_lists(file))
    for node, around in _effects(file) if lists else ():
        for each in lists:
            if node.confirm is not None and _asks_one_page(node.confirm.nodes, each):
                yield Hint(
                    file,
                    "confirm-reads-one-page",
                    node.id,
                    f"the `confirm` of `{node.id}` reads one page of a list through which `{each.loop.id}` leafs: what is on a later page counts as not done, and is done again",
                    "let it go through all pages too: `confirm` may hold `iterate` and clicks with `effect: read`",
                )
                break
        for each in lists:
            if each.loop not in around and any(_kind(target) in each.read for target in _verified(node)):
                yield Hint(
                    file,
                    "verify-reads-one-page",
                    node.id,
                    f"the `verify` of `{node.id}` looks at one page of a list through which `{each.loop.id}` leafs: what is on another page is not there",
                    "name what the action itself shows, such as a message; or ask the whole list after it",
                )
                break


def _lists(file: Loaded) -> Iterator[_List]:
    """Yield the lists that loops of the file page through: by a click that only reads, at the same element on each page."""
    address: str | None = None
    for node, around in file.index.values():
        if _in_confirm(around):
            continue
        if isinstance(node, Goto):
            address = node.url
        elif isinstance(node, Iterate) and any(_leafs(each) for each in _below(node)):
            within = list(_below(node))
            if not any(isinstance(each, BrowserAction) and each.moves_page and not _leafs(each) for each in within):
                read = {_kind(target) for each in within if (target := _target(each)) is not None and not _moves(each)}
                yield _List(node, address, frozenset(read))
        elif isinstance(node, Click) and not any(_leafs(node) and isinstance(each, Iterate) for each in around):
            address = None


def _leafs(node: Node) -> bool:
    return (
        isinstance(node, Click)
        and node.effect_class == "read"
        and node.opens is None
        and OPENING not in str(node.target)
    )


def _asks_one_page(nodes: Sequence[Node], each: _List) -> bool:
    steps = [step for node in nodes for step in (node, *_below(node))]
    if any(_leafs(step) for step in steps):
        return False
    gotos = [step.url for step in steps if isinstance(step, Goto)]
    if each.address is not None:
        return gotos[-1:] == [each.address]
    return any((target := _target(step)) is not None and _kind(target) in each.read for step in steps)


def _below(node: Node) -> Iterator[Node]:
    for _field, block in node.blocks():
        for each in block:
            yield each
            yield from _below(each)


def _moves(node: Node) -> bool:
    return isinstance(node, Leaf) and node.moves_page


def _target(node: Node) -> Target | None:
    found = getattr(node, "target", None)
    return found if isinstance(found, Target) else None


def _verified(node: Leaf) -> Iterator[Target]:
    for rule in node.verify:
        yield from (each for each in (rule.target, rule.visible) if each is not None)


def _kind(target: Target) -> str:
    return target.model_dump_json(exclude_none=True, exclude=set(_WHICH))


# Retries


def _of_retries(file: Loaded) -> Iterator[Hint]:
    for node, _around in _effects(file):
        on = [code for code in (node.retry.on or () if node.retry else ()) if code in step_states.LOST]
        if on:
            yield Hint(
                file,
                "retry-acts-twice",
                node.id,
                f"`{node.id}` is tried again on {' and '.join(f'`{code}`' for code in on)}, after which nobody knows whether it happened: it may happen twice",
                "leave that out of `retry.on`, and give the node a `confirm`: with it `retry` asks the site first",
            )


# The page after a side effect


def _without_goto(file: Loaded) -> Iterator[Hint]:
    told: set[str] = set()
    for node, around in _effects(file):
        if node.confirm is None:
            continue
        for reader in _next_on_page(file, node, around):
            if not _moves(reader) and reader.id not in told and reader.id in file.index:
                told.add(reader.id)
                yield Hint(
                    file,
                    "effect-without-goto",
                    reader.id,
                    f"`{reader.id}` reads the page to which `{node.id}` leads: where that is found done after a crash, the page may be gone",
                    "begin with a `goto` of the page that is read",
                )


def _next_on_page(file: Loaded, node: Node, around: Sequence[Node]) -> Iterator[Leaf]:
    """Yield the page steps that may run right after ``node``."""
    outer: list[Node] = list(around)
    while True:
        block = _block_of(file, node, outer[-1] if outer else None)
        place = next(number for number, each in enumerate(block) if each is node)
        if (yield from _first(file, block[place + 1 :])):
            return
        if not outer:
            return
        node = outer.pop()
        if isinstance(node, Iterate):
            # Or the next iteration begins.
            yield from _first(file, block)


def _block_of(file: Loaded, node: Node, owner: Node | None) -> Sequence[Node]:
    blocks: list[Sequence[Node]] = [file.workflow.nodes] if owner is None else [each for _field, each in owner.blocks()]
    return next(each for each in blocks if any(one is node for one in each))


def _first(file: Loaded, nodes: Sequence[Node]) -> Generator[Leaf, None, bool]:
    """Yield the page steps that may be the first of ``nodes``; return True if one of them certainly runs."""
    for node in nodes:
        surely = False
        if isinstance(node, Leaf):
            surely = node.touches_page
            if surely:
                yield node
        elif isinstance(node, Container):
            used = file.callees.get(node.id)
            blocks = [used.workflow.nodes] if used is not None else [each for _field, each in node.blocks()][:1]
            if isinstance(node, Route):
                blocks = [each for _field, each in node.blocks()]
            surely = not isinstance(node, Iterate | Route)
            for block in blocks:
                surely = (yield from _first(used or file, block)) and surely
        if surely and node.when is None:
            return True
    return False
