"""Origins whose documents a workflow may load."""

from __future__ import annotations

import re
import urllib.parse
from collections.abc import Iterator, Mapping, Sequence

from nodes.agent import Agent
from nodes.base import Node
from nodes.browser_action import Goto
from nodes.errors import UsageError
from nodes.group import Group
from nodes.values import Json
from runtime.browser.origins import origin
from runtime.language.diagnostics import Diagnostic
from runtime.language.expressions.references import OPENING, Clock, Compiled
from runtime.language.node_tree import Anatomy
from runtime.language.yaml_text import Document

LITERAL = re.compile(r"(https?://[^/?#{}\s]+)(?:[/?#]|$)", re.IGNORECASE)
"""Address with a literal origin, whatever references follow it."""


def allowed(
    declared: Sequence[str] | None, nodes: Sequence[Node], templates: Mapping[str, Compiled], inputs: Mapping[str, Json]
) -> list[str]:
    """Return the allowed origins in the order of the file, each once. ``nodes`` are those of the file and of all files that it uses.

    Without a list: the literal origins of addresses in ``goto`` nodes and in the ``with`` of groups, and of inputs that are
    addresses. Raises UsageError ``bad-origin`` for an invalid entry of the list.
    """
    if declared is None:
        addresses = [*_spelt_out(nodes), *(value for value in inputs.values() if isinstance(value, str))]
        return list(dict.fromkeys(known for address in addresses if (known := origin(address))))
    found: list[str] = []
    for entry in declared:
        value = templates[entry].render({"inputs": inputs}, _NoClock()) if entry in templates else entry
        known = origin(value) if isinstance(value, str) else None
        if known is None:
            raise UsageError(
                "bad-origin",
                f"`allowed_origins` holds {entry!r}, which is no origin with these inputs",
                fix="an origin is like https://shop.test or http://127.0.0.1:8765",
            )
        found.append(known)
    return list(dict.fromkeys(found))


def _spelt_out(nodes: Sequence[Node]) -> Iterator[str]:
    for node in nodes:
        addresses = (
            [node.url] if isinstance(node, Goto) else (node.with_ or {}).values() if isinstance(node, Group) else ()
        )
        for address in addresses:
            if isinstance(address, str) and (found := LITERAL.match(address)):
                yield found[1]


class _NoClock(Clock):
    """Refuses time functions: origins are computed before the run has a time."""

    def now(self) -> str:
        raise UsageError("bad-origin", "`now()` has no place in `allowed_origins`")

    def uuid(self) -> str:
        raise UsageError("bad-origin", "`uuid()` has no place in `allowed_origins`")


def check(anatomy: Anatomy, document: Document) -> list[Diagnostic]:
    """Report invalid entries of ``allowed_origins``, and agents in a file without that field."""
    declared = anatomy.clean.get("allowed_origins")
    problems: list[Diagnostic] = []
    if declared is None:
        problems += [
            document.source.diagnostic(
                "agent-without-origins",
                "an `agent` goes where its model and the pages lead it, and this file does not say how far",
                document.mark((*unit.path, "type")),
                help=[
                    'write `allowed_origins: ["https://shop.test"]` at the top of the file, with every site that it may open'
                ],
            )
            for unit in anatomy.every_unit()
            if unit.model is Agent
        ]
    for index, entry in enumerate(declared if isinstance(declared, list) else []):
        if not isinstance(entry, str) or OPENING in entry:
            continue
        path = ("allowed_origins", index)
        known = origin(entry)
        if known is None:
            problems.append(
                document.source.diagnostic(
                    "bad-origin",
                    f"`{entry}` is not an origin",
                    document.mark(path),
                    help=["an origin is like https://shop.test"],
                )
            )
        elif urllib.parse.urlsplit(entry.strip()).path not in ("", "/"):
            problems.append(
                document.source.diagnostic(
                    "bad-origin",
                    "an origin has no path: all documents of a site are allowed, or none",
                    document.mark(path),
                    help=[f"write `{known}`"],
                )
            )
    return problems
