"""Finds the side effects of a workflow: their leaves, their paths, and the fields that define each action."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence

from nodes.base import Leaf, Node
from nodes.browser_action import Download
from nodes.route import Route
from nodes.template import OPENING
from nodes.values import Json
from runtime.language import workflow

NO_ACTION = frozenset({"description", "verify", "retry", "timeout", "on_error", "after_crash", "confirm"})
"""Fields of a leaf that do not change its action on the site."""

NO_ACTION_OF_AGENT = NO_ACTION | {"max_turns", "max_output", "budget", "model", "output"}

FIELDS = frozenset({"fill", "type", "check", "uncheck", "select"})  # actions that fill in a form without sending it

MARKS = frozenset({"check", "uncheck"})

OPENS = frozenset({"goto", "open_tab"})  # actions that open an address: earlier actions on the page no longer matter

HARMLESS = frozenset({"http:", "https:", "about:"})
"""Beginnings of addresses whose documents come from the site, or are blank."""

_INVISIBLE = re.compile(r"[\x00-\x20]")  # characters that browsers remove from an address before they read its scheme

_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*:")
_KEYS = re.compile(r"\[[^\]]*\]")
_NAMES = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*")


def changes(leaf: Leaf) -> bool:
    """Return whether the leaf counts as a side effect.

    Opening an address of no site counts, whatever its declared class: it may be a script, or a local page that sends a form to the site.
    The click of a download counts, unless it is on a link or the file declares its class: a button may send a form.
    """
    if leaf.effect_class == "effect" or presses(leaf):
        return True
    url = _INVISIBLE.sub("", str(getattr(leaf, "url", None) or "")).lower()
    scheme = _SCHEME.match(url)
    return scheme is not None and scheme[0] not in HARMLESS


def presses(leaf: Leaf) -> bool:
    """Return whether a download clicks something other than a link, and the file does not declare its class."""
    if not isinstance(leaf, Download) or leaf.target is None or leaf.effect is not None:
        return False
    return any(each.role != "link" for each in leaf.target.any_of or [leaf.target])


def is_repeatable(leaf: Leaf) -> bool:
    """Return whether the leaf counts as no side effect, and may still change something on the site for good.

    So does a check mark, as a switch is often saved at once, and what the file declares ``idempotent``.
    """
    if changes(leaf) or leaf.effect_class != "idempotent":
        return False
    return leaf.effect_default == "effect" or getattr(leaf, "action", None) in MARKS


def core(leaf: Leaf) -> dict[str, Json]:
    """Return the fields that define a leaf's action: all but those for checks, waiting and harmless retries."""
    left_out = set(NO_ACTION_OF_AGENT if leaf.asks == "agent" else NO_ACTION)
    if repeats(leaf):
        left_out.remove("retry")
    return leaf.model_dump(mode="json", by_alias=True, exclude_defaults=True, exclude=left_out, warnings=False)


def repeats(leaf: Leaf) -> bool:
    """Return whether the file repeats the action after some errors, even if it may have happened."""
    return leaf.retry is not None and leaf.retry.on is not None


def is_filled(said: Json, written: Json) -> bool:
    """Return whether the fields ``said`` are those ``written`` in the file, references resolved or not."""
    if isinstance(written, str) and OPENING in written:
        return True
    if isinstance(said, dict) and isinstance(written, dict):
        one: dict[str, Json] = said
        other: dict[str, Json] = written
        return all(is_filled(one.get(name), other.get(name)) for name in one.keys() | other.keys())
    if isinstance(said, list) and isinstance(written, list) and len(said) == len(written):
        return all(map(is_filled, said, written))
    return said == written


def static(path: str) -> str:
    """Return a step path without items, the same for every item of a loop."""
    return _KEYS.sub("", path)


def key_of(loaded: workflow.Loaded | None, path: str) -> str:
    """Return the key of a step, the same for all items: its id, after the groups that use its file."""
    found = loaded.find(path) if loaded is not None else None
    if found is None:
        return static(path)
    users = static(found.user)
    if not users:
        return found.node.id
    # Groups of the path count only if they use a file.
    assert loaded is not None
    return f"{key_of(loaded, found.user)}/{found.node.id}"


def above(loaded: workflow.Loaded | None, path: str) -> Iterator[str]:
    parts = path.split("/")
    for number in range(len(parts) - 1, 0, -1):
        yield key_of(loaded, "/".join(parts[:number]))


def actions_of(loaded: workflow.Loaded) -> list[tuple[Leaf, str]]:
    """Return every side effect of a file and of the files that it uses, with its path (``key_of``), in file order."""
    return [(leaf, path) for leaf, path in leaves_of(loaded) if changes(leaf)]


def together(loaded: workflow.Loaded, keys: Collection[str]) -> list[str]:
    """Return these leaves (``leaves_of``), in file order: where they are all of a container or branch, it alone: ``way/left``."""
    return list(_together(loaded, loaded.workflow.nodes, "", keys))


def _together(
    loaded: workflow.Loaded, nodes: Sequence[Node], within: str, keys: Collection[str], name: str = ""
) -> Iterator[str]:
    """``name`` is that of the block, if it may stand for its leaves."""
    whole = list(inside(loaded, nodes, within))
    if name and len(whole) > 1 and all(each in keys for each in whole):
        yield name
        return
    for node in nodes:
        key = f"{within}{node.id}"
        callee = loaded.callees.get(node.id)
        if callee is not None:
            yield from _together(callee, callee.workflow.nodes, f"{key}/", keys, key)
        elif isinstance(node, Leaf):
            yield from (key,) if key in keys else ()
        else:
            blocks = list(node.blocks())
            whole = [each for _place, block in blocks for each in block]
            if len(blocks) < 2 or all(each in keys for each in inside(loaded, whole, within)):
                yield from _together(loaded, whole, within, keys, key)
                continue
            for place, block in blocks:
                yield from _together(loaded, block, within, keys, f"{key}/{_name(node, place)}")


def inside(loaded: workflow.Loaded, nodes: Sequence[Node], within: str) -> Iterator[str]:
    """Yield the keys of the leaves in these nodes, those of used files too; ``within`` begins each."""
    for node in nodes:
        if (callee := loaded.callees.get(node.id)) is not None:
            yield from inside(callee, callee.workflow.nodes, f"{within}{node.id}/")
        elif isinstance(node, Leaf):
            yield f"{within}{node.id}"
        else:
            for _place, block in node.blocks():
                yield from inside(loaded, block, within)


def _name(node: Node, place: Sequence[str | int]) -> str:
    """Return the name of a block of a container: that of the branch, else of its field."""
    if isinstance(node, Route) and isinstance(number := place[1] if len(place) > 1 else None, int):
        return node.branches[number].name
    return str(place[0])


def repeatable_of(loaded: workflow.Loaded) -> list[tuple[Leaf, str]]:
    """Return the leaves that may change something on the site though they count as no side effect, without those that only sign in."""
    return [(leaf, path) for leaf, path in leaves_of(loaded) if is_repeatable(leaf) and not only_signs_in(loaded, path)]


def leaves_of(loaded: workflow.Loaded, within: str = "") -> Iterator[tuple[Leaf, str]]:
    """Yield each leaf that a run can reach, with its path (``key_of``): those of used files too, but not of ``confirm``."""
    for node in loaded.nodes():
        if isinstance(node, Leaf) and not confirms(loaded, node):
            yield node, f"{within}{node.id}"
        elif (callee := loaded.callees.get(node.id)) is not None:
            yield from leaves_of(callee, f"{within}{node.id}/")


def confirms(loaded: workflow.Loaded, node: Leaf) -> bool:
    """Return whether the node belongs to a ``confirm``, which changes nothing and is not executed in builds."""
    return any(isinstance(each, Leaf) for each in loaded.index[node.id][1])


def only_signs_in(loaded: workflow.Loaded, path: str) -> bool:
    """Return whether an action seems only to sign in: it directly follows form fields, one of them filled with a secret."""
    found, typed = loaded.find(path), False
    if found is None:
        return False
    for node in found.file.nodes():
        if node.id == found.node.id:
            return typed
        if isinstance(node, Leaf):
            written = [each for each in texts(without_checks(node)) if each in found.file.templates]
            secret = any(use.root == "secrets" for each in written for use in found.file.templates[each].names)
            typed = getattr(node, "action", None) in FIELDS and (typed or secret)
    return False


def fills_in(loaded: workflow.Loaded, path: str) -> bool:
    """Return whether a check mark is only a field of a form: fields follow, and then an action that sends it. A switch is saved at once."""
    found = loaded.find(path)
    if found is None or getattr(found.node, "action", None) not in MARKS:
        return False
    target = getattr(found.node, "target", None)
    leaves = [node for node in found.file.nodes() if isinstance(node, Leaf)]
    number = next((number for number, node in enumerate(leaves) if node.id == found.node.id), len(leaves))
    sends = next((node for node in leaves[number:] if getattr(node, "action", None) not in FIELDS), None)
    return getattr(target, "role", None) != "switch" and sends is not None and changes(sends)


def without_checks(node: Node) -> Json:
    """Return the fields of a node that define its action."""
    return node.model_dump(mode="json", by_alias=True, exclude_defaults=True, exclude=set(NO_ACTION), warnings=False)


def names_in_sql(statement: str) -> list[tuple[str, ...]]:
    """Return every name in an SQL statement: some of them are the tables that it reads."""
    return [tuple(each.split(".")) for each in _NAMES.findall(statement)]


def texts(value: Json) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from texts(each)
