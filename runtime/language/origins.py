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

    Without a list: the literal origins of ``goto`` nodes, of the ``with`` of groups, and of inputs. Raises UsageError ``bad-origin``.
    """
    if declared is None:
        addresses = [*_spelt_out(nodes), *(value for value in inputs.values() if isinstance(value, str))]
        return list(dict.fromkeys(known for address in addresses if (known := origin(address))))
    found: list[str] = []
    for entry in declared:
        value = templates[entry].render({"inputs": inputs}, _NoClock()) if entry in templates else entry
        known = origin(value) if isinstance(value, str) else None
        if known is None:
            message = f"`allowed_origins` holds {entry!r}, which is no origin with these inputs"
            raise UsageError("bad-origin", message, fix="an origin is like https://shop.test or http://127.0.0.1:8765")
        found.append(known)
    return list(dict.fromkeys(found))


def _spelt_out(nodes: Sequence[Node]) -> Iterator[str]:
    for node in nodes:
        addresses: list[Json] = [node.url] if isinstance(node, Goto) else []
        if isinstance(node, Group):
            addresses += (node.with_ or {}).values()
        for address in addresses:
            if isinstance(address, str) and (found := LITERAL.match(address)):
                yield found[1]


class _NoClock(Clock):
    """Refuses time functions: origins are computed before the run has a time."""

    def now(self) -> str:
        raise UsageError("bad-origin", "`allowed_origins` cannot use `now()` or `uuid()`")

    uuid = now

    def totp(self, secret: str) -> str:
        raise UsageError("bad-origin", "`allowed_origins` cannot use `totp()`")


def check(anatomy: Anatomy, document: Document) -> list[Diagnostic]:
    declared = anatomy.clean.get("allowed_origins")
    problems: list[Diagnostic] = []
    if declared is None:
        message = "an `agent` follows its model and the pages, and this file does not limit the sites"
        fix = 'write `allowed_origins: ["https://shop.test"]` at the top of the file, with every site that it may open'
        agents = (unit for unit in anatomy.every_unit() if unit.model is Agent)
        problems += [document.problem("agent-without-origins", message, (*unit.path, "type"), fix) for unit in agents]
    for index, entry in enumerate(declared if isinstance(declared, list) else []):
        if not isinstance(entry, str) or OPENING in entry:
            continue
        path = ("allowed_origins", index)
        if (known := origin(entry)) is None:
            fix = "an origin is like https://shop.test"
            problems.append(document.problem("bad-origin", f"`{entry}` is not an origin", path, fix))
        elif urllib.parse.urlsplit(entry.strip()).path not in ("", "/"):
            message = "an origin has no path: all documents of a site are allowed, or none"
            problems.append(document.problem("bad-origin", message, path, f"write `{known}`"))
    return problems
