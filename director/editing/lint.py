"""Improvements of a valid draft, found without a run, and shown as hints. Only the value of a secret is an error."""

from __future__ import annotations

import dataclasses
import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from director.draft.draft import Draft
from director.draft.goal import Goal
from director.effects import effects as effects_effects
from director.effects import requests
from nodes.base import Container, Leaf, Node
from nodes.iterate import Iterate
from nodes.rules import Rule, with_query
from nodes.targets import Target
from nodes.template import OPENING
from nodes.values import Json
from runtime.browser.origins import origin
from runtime.language import hints as of_file
from runtime.language import workflow

SHORTEST = 3
"""Least length of an input's value that is searched for; shorter ones are everywhere."""

_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]*://\S+", re.IGNORECASE)
_POSITION = re.compile(r":nth-|:(?:first|last)-(?:child|of-type)|\bnth=|\[\s*(?:\d+\s*\]|last\(\)|position\(\))")
"""Parts of css or xpath selectors that count elements."""

CLICKS = frozenset({"click", "dblclick"})
"""Actions with an unpredictable effect."""

_CLOSED = frozenset(
    {
        "id",
        "type",
        "description",
        "action",
        "query",
        "role",
        "tab",
        "opens",
        "effect",
        "on_error",
        "after_crash",
        "each_error",
        "on_redo",
    }
)
"""Fields with keywords of the language, or names of the file itself."""


@dataclasses.dataclass(frozen=True, slots=True)
class Hint:
    """A possible improvement."""

    level: Literal["error", "hint"]
    code: str
    node: str
    text: str
    fix: str

    def __str__(self) -> str:
        return f"{self.node}: {self.text}; {self.fix}"


def hints(draft: Draft, goal: Goal, secrets: Mapping[str, str] | None = None) -> list[Hint]:
    """Return all hints: ``literals``, ``effects``, ``after_crashes``, ``defaults``, ``addresses``, ``positions``, ``descriptions``."""
    found = [
        effects(draft),
        after_crashes(draft),
        defaults(draft, goal),
        addresses(draft),
        positions(draft),
        descriptions(draft),
    ]
    return [*literals(draft, goal, secrets), *itertools.chain.from_iterable(found)]


def literals(draft: Draft, goal: Goal, secrets: Mapping[str, str] | None = None) -> list[Hint]:
    """Return literal values of inputs in nodes, addresses of the site, and (errors) values of ``secrets``, which must be given by name.

    A value counts if it is a whole field, or whole words of a text; never within an address.
    """
    found: list[Hint] = []
    declared = draft.loaded.workflow.inputs
    given = {name: goal.inputs.get(name, each.default) for name, each in declared.items()}
    sites = {known: name for name, value in given.items() if isinstance(value, str) and (known := origin(value))}
    values = {
        name: value
        for name, value in given.items()
        if _telling(value) and not (isinstance(value, str) and origin(value))
    }
    for node in draft.loaded.nodes():
        for text in _said(node):
            found += _secret(node, text, secrets or {})
            found += _address(node, text, sites)
            found += _values(node, text, values)
    return list(dict.fromkeys(found))


def _secret(node: Node, text: Json, secrets: Mapping[str, str]) -> Iterator[Hint]:
    for name, value in secrets.items():
        if isinstance(text, str) and value and value in text:
            yield Hint(
                "error",
                "literal-secret",
                node.id,
                f"the value of `{name}` stands in it",
                f"write `{{{{ secrets.{name} }}}}`",
            )


def _address(node: Node, text: Json, sites: Mapping[str, str]) -> Iterator[Hint]:
    for address in _ADDRESS.findall(text) if isinstance(text, str) else ():
        name = sites.get(origin(address.partition(OPENING)[0]) or "")
        if name is not None:
            known = origin(address.partition(OPENING)[0])
            yield Hint(
                "hint", "literal-address", node.id, f"{known} stands in it as it is", f"write `{{{{ inputs.{name} }}}}`"
            )


def _values(node: Node, text: Json, values: Mapping[str, Json]) -> Iterator[Hint]:
    for name, value in values.items():
        if _holds(text, value):
            yield Hint(
                "hint",
                "literal-input",
                node.id,
                f"`{_short(value)}` stands in it as it is, the value of the input `{name}`",
                f"if that is meant, write `{{{{ inputs.{name} }}}}`",
            )


def _holds(text: Json, value: Json) -> bool:
    """Return whether a text is a value, or has it as whole words; text next to a slash is a part of an address."""
    if isinstance(text, bool) or text is None:
        return False
    if str(text) == str(value):
        return True
    words = rf"(?<![\w/.#-]){re.escape(str(value))}(?![\w/-])"
    return isinstance(text, str) and re.search(words, _ADDRESS.sub(" ", _outside_references(text))) is not None


def _short(value: Json) -> str:
    return str(value) if len(str(value)) <= 40 else f"{str(value)[:39]}…"


def _outside_references(text: str) -> str:
    return re.sub(r"\{\{.*?\}\}", " ", text, flags=re.DOTALL)


def _telling(value: Json) -> bool:
    """Return whether a value is specific: no other text equals it by chance."""
    return (isinstance(value, str) and len(value.strip()) >= SHORTEST) or (
        isinstance(value, int | float) and not isinstance(value, bool) and len(str(abs(value))) >= SHORTEST
    )


def _said(node: Node) -> Iterator[Json]:
    """Yield the values in a node's fields, without nested nodes."""
    said: dict[str, Any] = workflow.plain(node)
    confirm = said.pop("confirm", None)
    yield from _texts({**said, "done": confirm["done"] if confirm is not None else None})


def _texts(value: Any) -> Iterator[Json]:
    if isinstance(value, dict):
        fields: dict[str, Any] = value
        for name, each in fields.items():
            if name not in _CLOSED and not name.startswith("x-"):
                yield from _texts(each)
    elif isinstance(value, list):
        every: list[Any] = value
        for each in every:
            yield from _texts(each)
    else:
        yield value


def effects(draft: Draft) -> list[Hint]:
    """Return actions that may not be repeated, and have no check of their success."""
    found: list[Hint] = []
    for node, around in draft.loaded.index.values():
        if isinstance(node, Leaf) and effects_effects.presses(node) and not _in_confirm(node, around):
            why = "its click may do more than give a file, so it is governed as an action"
            fix = "`effect: idempotent`, where it only gives the file; or load its `url`"
            found.append(Hint("hint", "download-by-click", node.id, why, fix))
        if not isinstance(node, Leaf) or node.effect_class != "effect" or _in_confirm(node, around):
            continue
        if not node.postconditions and not _read_next(node, around):
            fix = "add `verify` rules"
            if getattr(node, "action", None) in CLICKS:
                fix += ", or `effect: read` where it only opens a page"
            found.append(Hint("hint", "effect-without-verify", node.id, "nothing says that the action succeeded", fix))
        if node.confirm is None and node.after_crash is None:
            found.append(
                Hint(
                    "hint",
                    "effect-without-confirm",
                    node.id,
                    "after a crash nobody can tell whether it happened",
                    "add `confirm`, where the site can be asked; `effect: idempotent`, where twice does no harm",
                )
            )
    return found


def after_crashes(draft: Draft) -> list[Hint]:
    """Return the hints of `runops validate` for a valid file."""
    return [Hint("hint", each.code, each.node, each.text, each.fix) for each in of_file.of(draft.loaded)]


def defaults(draft: Draft, goal: Goal) -> list[Hint]:
    """Return inputs that select an action's target, with this build's value as default: later runs without them would repeat the action."""
    loaded, found = draft.loaded, dict[str, Hint]()
    same = {
        name: each.default
        for name, each in loaded.workflow.inputs.items()
        if each.default is not None and goal.inputs.get(name) == each.default and not origin(str(each.default))
    }
    for leaf, path in effects_effects.actions_of(loaded) if same else ():
        for name in sorted(requests.decided_by(loaded, leaf, path, same)):
            why = f"the input `{name}`, on which its action depends, has `{_short(same[name])}` of this build for a default"
            fix = f"leave out the default of `{name}`: who forgets it would do the action on that again"
            found.setdefault(name, Hint("hint", "default-decides", leaf.id, why, fix))
    return list(found.values())


def _read_next(node: Leaf, around: Sequence[Node]) -> bool:
    """Return whether a click is in a loop in which the next node reads the page: for the same item, or, after its last node, for the next."""
    if getattr(node, "action", None) not in CLICKS or not around or not isinstance(around[-1], Iterate):
        return False
    block = next(each for _field, each in around[-1].blocks() if any(one is node for one in each))
    number = next(number for number, each in enumerate(block) if each is node)
    after = block[(number + 1) % len(block)]
    return isinstance(after, Leaf) and after.touches_page and not after.moves_page


def _in_confirm(node: Node, around: Sequence[Node]) -> bool:
    return any(isinstance(each, Leaf) for each in around)


def addresses(draft: Draft) -> list[Hint]:
    """Return address rules with a query that does not count."""
    return [
        Hint(
            "hint",
            "query-not-counted",
            node.id,
            f"`{rule.url}` has no `?`, and without one the query of an address does not count",
            f"write `{meant}`",
        )
        for node in draft.loaded.nodes()
        if isinstance(node, Leaf)
        for rule in [*node.verify, *(getattr(node, "rules", None) or ()), *(getattr(node, "success", None) or ())]
        if rule.url is not None and (meant := with_query(rule.url)) is not None
    ]


def positions(draft: Draft) -> list[Hint]:
    """Return targets that count elements: they change when something is added."""
    found: list[Hint] = []
    for node in draft.loaded.nodes():
        for target in _targets(node):
            selector = target.css or target.xpath or ""
            if target.nth is not None or _POSITION.search(selector):
                found.append(
                    Hint(
                        "hint",
                        "positional-target",
                        node.id,
                        f"it finds an element by its position: {target}",
                        "anchor it by text: `within` a row or card with `has_text`",
                    )
                )
    return list(dict.fromkeys(found))


def _targets(value: Any) -> Iterator[Target]:
    """Yield the targets in the fields of a node, without those in its blocks."""
    if isinstance(value, Target):
        yield value
        yield from _targets([value.within, *(value.any_of or [])])
    elif isinstance(value, Container):
        return
    elif isinstance(value, Leaf):
        yield from _targets([getattr(value, name) for name in type(value).model_fields if name != "confirm"])
    elif isinstance(value, Rule):
        yield from _targets([value.visible, value.hidden, value.target])
    elif isinstance(value, list):
        for each in value:
            yield from _targets(each)
    elif isinstance(value, dict):
        for each in value.values():
            yield from _targets(each)


def descriptions(draft: Draft) -> list[Hint]:
    """Return containers without a description."""
    return [
        Hint("hint", "no-description", node.id, "it does not say what it is for", "add a `description`")
        for node in draft.loaded.nodes()
        if isinstance(node, Container) and not node.description
    ]
