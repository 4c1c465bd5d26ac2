"""Writes an action of the scout as a workflow with one node. Pure."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Mapping, Sequence
from typing import cast

from nodes import registry
from nodes.base import Leaf
from nodes.template import OPENING
from nodes.values import Json
from runtime.language import reader, workflow

FILE = "scouting.yaml"
"""Name of the workflow."""

_NOT_PLAIN = re.compile("[\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]")
"""Characters that are literal in JSON, but not in YAML."""


@dataclasses.dataclass(frozen=True, slots=True)
class Written:
    """One action."""

    loaded: workflow.Loaded
    inputs: Mapping[str, Json]
    """Literal texts that look like references."""
    literal: Leaf
    """The node with the page's literal texts: it is shown to a person, and never run."""

    @property
    def node(self) -> Leaf:
        """The node that runs."""
        return cast("Leaf", self.loaded.workflow.nodes[0])


def written(fields: Mapping[str, Json], secrets: Sequence[str], origins: Sequence[str]) -> Written:
    """Return the workflow of an action with these fields and, in its ``value``, these secrets; all else is literal. Raises WorkflowInvalid."""
    given: dict[str, Json] = {}
    plain = {name: _plain(value, given) for name, value in fields.items() if not secrets or name != "value"}
    head: dict[str, Json] = {"id": f"debug_{fields['action']}", "type": "browser_action"}
    text = json.dumps(
        {
            "version": 1,
            "name": "an action of the scout",
            "inputs": {name: {"type": "string"} for name in given},
            "secrets": list[Json](secrets),
            "allowed_origins": list[Json](origins),
            "nodes": [{**head, **fields, **plain}],
        },
        ensure_ascii=False,
    )
    text = _NOT_PLAIN.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
    loaded = reader.parse(text, FILE)
    literal = registry.parse_node({**head, **fields})
    assert isinstance(literal, Leaf)
    return Written(loaded, given, literal)


def _plain(value: Json, given: dict[str, Json]) -> Json:
    """Return ``value`` with each text that looks like a reference replaced by an input, which is added to ``given``."""
    if isinstance(value, str) and OPENING in value:
        name = f"text{len(given) + 1}"
        given[name] = value
        return f"{{{{ inputs.{name} }}}}"
    if isinstance(value, dict):
        return {key: _plain(each, given) for key, each in value.items()}
    return [_plain(each, given) for each in value] if isinstance(value, list) else value
