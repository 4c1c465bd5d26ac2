"""Finds improvements of a valid draft without a run. All are hints, except the value of a secret, which is an error."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from pydantic import BaseModel

from director.draft.draft import Draft
from director.draft.goal import Goal
from director.effects import effects as effects_effects
from director.effects import requests
from nodes.base import Container, Leaf, Node
from nodes.iterate import Iterate
from nodes.targets import Target
from nodes.template import OPENING
from nodes.values import Json
from runtime.browser.origins import origin
from runtime.display.text import cut
from runtime.language import hints as of_file
from runtime.language import workflow

SHORTEST = 3  # least length of an input's value that is searched for; shorter values are in every text

MOST_SHOWN = 3  # most hints shown at once
PATH = "@state/hints"  # where all hints on the draft are

_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]*://\S+", re.IGNORECASE)
_POSITION = re.compile(
    r"(?<!\bt[dh]):(?:nth-|(?:first|last)-(?:child|of-type))|\bnth=|\[\s*(?:\d+\s*\]|last\(\)|position\(\))"
)
"""Parts of css or xpath selectors that count elements. A cell of a row has its place by its column."""

CLICKS = frozenset({"click", "dblclick"})  # actions with an unpredictable effect

_KEYWORDS = "id type description action query role tab opens effect on_error after_crash each_error on_redo"
_CLOSED = frozenset(_KEYWORDS.split())  # fields with keywords of the language, or names of the file itself


@dataclasses.dataclass(frozen=True, slots=True)
class Hint:
    node: str
    code: str
    text: str
    fix: str
    level: Literal["error", "hint"] = "hint"

    def __str__(self) -> str:
        return f"{self.node}: {self.text}; {self.fix}"


def shown(found: Sequence[Hint]) -> list[str]:
    """Return the first hints as lines, and where the others are."""
    more = [f"… {len(found) - MOST_SHOWN} more: `read_state` {PATH}"] if len(found) > MOST_SHOWN else []
    return [*map(str, found[:MOST_SHOWN]), *more]


def hints(draft: Draft, goal: Goal, secrets: Mapping[str, str] | None = None) -> list[Hint]:
    """Return all hints, each once, those of side effects first; before them, as errors, values of ``secrets``, which must be given by name."""
    literal = [*_literals(draft, goal, secrets or {})]
    found = [*(each for each in literal if each.level == "error"), *effects(draft)]
    found += [Hint(each.node, each.code, each.text, each.fix) for each in of_file.of(draft.loaded)]
    found += [*defaults(draft, goal), *literal]
    for node in draft.loaded.nodes():
        found += _positions(node)
        if isinstance(node, Container) and not node.description:
            found.append(Hint(node.id, "no-description", "it does not say what it is for", "add a `description`"))
    return list(dict.fromkeys(found))


def _literals(draft: Draft, goal: Goal, secrets: Mapping[str, str]) -> Iterator[Hint]:
    """Yield literal values of inputs, addresses of the site and values of secrets in nodes.

    The value of an input counts if it is all of a field: as a word of a text it may be one by chance.
    """
    declared = draft.loaded.workflow.inputs
    given = {name: goal.inputs.get(name, each.default) for name, each in declared.items()}
    sites = {known: name for name, value in given.items() if isinstance(value, str) and (known := origin(value))}
    values = {name: value for name, value in given.items() if _telling(value) and not origin(str(value))}
    for node in draft.loaded.nodes():
        data: dict[str, Any] = workflow.plain(node)
        confirm = data.pop("confirm", None)
        for text in _texts({**data, "done": confirm["done"] if confirm is not None else None}):
            for name, value in secrets.items():
                if isinstance(text, str) and value and value in text:
                    fix = f"write `{{{{ secrets.{name} }}}}`"
                    yield Hint(node.id, "literal-secret", f"it contains the value of `{name}`", fix, "error")
            for address in _ADDRESS.findall(text) if isinstance(text, str) else ():
                site = origin(address.partition(OPENING)[0]) or ""
                if site in sites:
                    fix = f"write `{{{{ inputs.{sites[site]} }}}}`"
                    yield Hint(node.id, "literal-address", f"it contains {site} literally", fix)
            for name, value in values.items():
                if not isinstance(text, bool) and text is not None and str(text).strip() == str(value):
                    why = f"it has `{cut(str(value), 40)}` literally, the value of the input `{name}`"
                    yield Hint(node.id, "literal-input", why, f"if that is meant, write `{{{{ inputs.{name} }}}}`")


def _telling(value: Json) -> bool:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return (isinstance(value, str) or number) and len(str(value).strip().lstrip("-")) >= SHORTEST


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


def effects(draft: Draft) -> Iterator[Hint]:
    """Yield side effects without a check of their success or a ``confirm``, and downloads by a click."""
    for node, around in draft.loaded.index.values():
        if not isinstance(node, Leaf) or any(isinstance(each, Leaf) for each in around):
            continue
        if effects_effects.presses(node):
            why = "its click may do more than give a file, so it is governed as an action"
            fix = "`effect: idempotent`, where it only gives the file; or load its `url`"
            yield Hint(node.id, "download-by-click", why, fix)
        if node.effect_class != "effect":
            continue
        if not node.postconditions and not _read_next(node, around):
            opens = ", or `effect: read` where it only opens a page" if _clicks(node) else ""
            why = "nothing says that the action succeeded"
            yield Hint(node.id, "effect-without-verify", why, f"add `verify` rules{opens}")
        if node.confirm is None and node.after_crash is None:
            why = "after a crash it is unknown whether it happened"
            fix = "add `confirm`, where the site can be asked; `effect: idempotent`, where twice does no harm"
            yield Hint(node.id, "effect-without-confirm", why, fix)


def _clicks(node: Leaf) -> bool:
    return getattr(node, "action", None) in CLICKS


def _read_next(node: Leaf, around: Sequence[Node]) -> bool:
    """Return whether a click is in a loop and the next node reads the page, for the same item or at the start of the next."""
    if not _clicks(node) or not around or not isinstance(around[-1], Iterate):
        return False
    block = next(each for _field, each in around[-1].blocks() if any(one is node for one in each))
    number = next(number for number, each in enumerate(block) if each is node)
    after = block[(number + 1) % len(block)]
    return isinstance(after, Leaf) and after.touches_page and not after.moves_page


def defaults(draft: Draft, goal: Goal) -> list[Hint]:
    """Return inputs that decide an action and default to this build's value: a run without them would repeat the action."""
    loaded, found = draft.loaded, dict[str, Hint]()
    same = {
        name: each.default
        for name, each in loaded.workflow.inputs.items()
        if each.default is not None and goal.inputs.get(name) == each.default and not origin(str(each.default))
    }
    for leaf, path in effects_effects.actions_of(loaded) if same else ():
        for name in sorted(requests.decided_by(loaded, leaf, path, same)):
            value = cut(str(same[name]), 40)
            why = f"the input `{name}`, on which its action depends, has `{value}` of this build for a default"
            fix = f"leave out the default of `{name}`: a run without it would repeat the action on that"
            found.setdefault(name, Hint(leaf.id, "default-decides", why, fix))
    return list(found.values())


def _positions(node: Node) -> Iterator[Hint]:
    """Yield targets that count elements: they match another element once one is added."""
    for target in _targets(node):
        if target.nth is not None or _POSITION.search(target.css or target.xpath or ""):
            fix = "anchor it by text: `within` a row or card with `has_text`"
            yield Hint(node.id, "positional-target", f"it finds an element by its position: {target}", fix)


def _targets(value: Any) -> Iterator[Target]:
    if isinstance(value, Target):
        yield value
    if isinstance(value, BaseModel) and not isinstance(value, Container):
        value = [getattr(value, name) for name in type(value).model_fields if name != "confirm"]
    if isinstance(value, dict):
        fields: dict[str, Any] = value
        value = list(fields.values())
    if isinstance(value, list):
        every: list[Any] = value
        for each in every:
            yield from _targets(each)
