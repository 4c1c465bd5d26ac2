"""Finds what the output of a draft depends on, outputs that depend on nothing, and inputs that nothing reads. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from director.effects import effects
from nodes.base import Container, Node
from nodes.context import Context
from nodes.iterate import Iterate
from nodes.template import OPENING
from nodes.transform import Transform
from nodes.values import Json
from runtime.language import workflow

_CALLS = ("now(", "uuid(")  # functions that read nothing, but yield another value each time


def unread(loaded: workflow.Loaded, names: Sequence[str]) -> list[str]:
    """Return the inputs among these that nothing in the file reads."""
    chains = [tuple(map(str, use.chain)) for each in loaded.templates.values() for use in each.names]
    if ("inputs",) in chains:
        return []
    statements = "\n".join(filter(None, (getattr(each, "sql", None) for each in loaded.nodes())))
    return [each for each in names if ("inputs", each) not in {c[:2] for c in chains} and each not in statements]


def constant(name: str) -> str:
    return f"`{name}` of the output is the same whatever a run finds"


def constant_outputs(loaded: workflow.Loaded) -> list[str]:
    """Return the output fields that are the same whatever a run finds; those that repeat inputs only if no field depends on a run."""
    output = loaded.workflow.output
    if output is None:
        return []
    fields: dict[str, Json] = output if isinstance(output, dict) and output else {"output": output}
    site = [name for name, each in fields.items() if _tells(loaded, each)]
    return [
        name for name, each in fields.items() if name not in site and not (site and "inputs" in _roots(loaded, each))
    ]


def read_for_output(loaded: workflow.Loaded) -> set[str]:
    """Return the ids of the nodes that read something for the output, directly or through nodes that only compute."""
    found: set[str] = set()
    seen: set[str] = set()
    pending: list[Json] = [loaded.workflow.output]
    while pending:
        for root in set(_roots(loaded, pending.pop())) - seen:
            seen.add(root)
            for each in _within(loaded, list(_givers(loaded, root))):
                if _only_reckons(each):
                    pending.append(each.model_dump(mode="json", by_alias=True, warnings=False))
                else:
                    found.add(each.id)
    return found


def _tells(loaded: workflow.Loaded, said: Json) -> bool:
    """Return whether a value depends on a run: on a page, a model, a time. If uncertain, it does."""
    seen: set[str] = set()
    pending = [said]
    while pending:
        each = pending.pop()
        if any(call in text for text in effects.texts(each) for call in _CALLS if OPENING in text):
            return True
        for root in _roots(loaded, each):
            if root in seen or root in ("inputs", "secrets"):
                continue
            seen.add(root)
            givers = list(_givers(loaded, root))
            if not givers or not all(map(_only_reckons, _within(loaded, givers))):
                return True
            pending += [giver.model_dump(mode="json", by_alias=True, warnings=False) for giver in givers]
    return False


def _roots(loaded: workflow.Loaded, said: Json) -> list[str]:
    known = (loaded.templates[text] for text in effects.texts(said) if text in loaded.templates)
    return [str(use.chain[0]) for each in known for use in each.names]


def _givers(loaded: workflow.Loaded, root: str) -> Iterator[Node]:
    """Yield the nodes that give a name its value; none for ``run`` and its facts."""
    for node in loaded.nodes():
        named = node.id == root or (isinstance(node, Iterate) and root in (node.as_, "loop", f"{node.as_}_loop"))
        if named or (root == "vars" and isinstance(node, Context)):
            yield node


def _within(loaded: workflow.Loaded, nodes: Sequence[Node]) -> Iterator[Node]:
    for node, around in loaded.index.values():
        if any(node is each or any(outer is each for outer in around) for each in nodes):
            yield node


def _only_reckons(node: Node) -> bool:
    """Return whether a node computes its value from others alone."""
    if isinstance(node, Container):
        # A used file may read a page.
        return getattr(node, "use", None) is None
    if isinstance(node, Transform):
        return node.python is None and node.sql is None
    return isinstance(node, Context) and not node.ask
