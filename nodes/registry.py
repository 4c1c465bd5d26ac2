"""The node types: those of this package, and those of other packages in the entry-point group ``runops.nodes``."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping
from typing import Any, LiteralString, cast

from pydantic import ValidationError
from pydantic_core import InitErrorDetails, PydanticCustomError

from nodes import (
    agent,
    base,
    browser_action,
    browser_query,
    cognition,
    context,
    group,
    handle,
    iterate,
    plugins,
    route,
    transform,
)
from nodes.base import Node


@dataclasses.dataclass(frozen=True, slots=True)
class NodeType:
    """A node type: one model, or one model for each value of its discriminator field (``action``, ``query``)."""

    name: str
    base: type[Node]
    field: str | None
    variants: Mapping[str, type[Node]]

    @property
    def models(self) -> list[type[Node]]:
        return list(self.variants.values()) or [self.base]

    def label(self, model: type[Node]) -> str:
        """Return the name of one of its models in messages: ``browser_action click``, ``iterate``."""
        return " ".join([self.name, *(name for name, each in self.variants.items() if each is model)])


def _single(model: type[Node]) -> NodeType:
    return NodeType(_literal(model, "type"), model, None, {})


def _variants(base: type[Node], field: str, models: tuple[type[Node], ...]) -> NodeType:
    return NodeType(_literal(base, "type"), base, field, {_literal(model, field): model for model in models})


def _literal(model: type[Node], field: str) -> str:
    (value,) = model.model_fields[field].annotation.__args__  # type: ignore[union-attr]
    return value


BUILT_IN = (
    _variants(browser_action.BrowserAction, "action", browser_action.VARIANTS),
    _variants(browser_query.BrowserQuery, "query", browser_query.VARIANTS),
    _single(transform.Transform),
    _single(cognition.Cognition),
    _single(agent.Agent),
    _single(iterate.Iterate),
    _single(route.Route),
    _single(handle.Handle),
    _single(context.Context),
    _single(group.Group),
)


@functools.cache
def node_types() -> Mapping[str, NodeType]:
    """Return every node type by name; read once in a process. Raises SetupError ``node-type-broken`` for an unusable one of another package."""
    types = {each.name: each for each in BUILT_IN}
    types |= {name: NodeType(name, model, None, {}) for name, model in plugins.models().items()}
    return types


def type_of(model: type[Node]) -> NodeType | None:
    """Return the node type that has this model as its base or as a variant."""
    return next((each for each in node_types().values() if model is each.base or model in each.models), None)


def parse_block(value: Any) -> list[Node]:
    """Parse the nodes of a block. Raises pydantic's ValidationError with every problem of every node, each located by position and field."""
    if not isinstance(value, list):
        raise PydanticCustomError("block", "a block is a list of nodes")
    if not value:
        raise PydanticCustomError("empty_block", "a block needs at least one node")
    nodes: list[Node] = []
    problems: list[InitErrorDetails] = []
    for index, item in enumerate(value):
        try:
            nodes.append(parse_node(item))
        except ValidationError as error:
            problems.extend(_moved(error, index))
        except PydanticCustomError as error:
            problems.append({"type": error, "loc": (index,), "input": item})
    if problems:
        raise ValidationError.from_exception_data("block", problems)
    return nodes


base.block_parser = parse_block


def parse_node(value: Any) -> Node:
    """Parse one node, by its ``type`` and, if the type has variants, its ``action`` or ``query``."""
    if isinstance(value, Node):
        return value
    if not isinstance(value, dict):
        raise PydanticCustomError("node", "a node is a map with at least `id` and `type`")
    kind = _pick(value, "type", node_types(), "node type")
    if kind.field is None:
        return kind.base.model_validate(value)
    return _pick(value, kind.field, kind.variants, f"`{kind.name}` {kind.field}").model_validate(value)


def _pick(value: dict[str, Any], field: str, choices: Mapping[str, Any], what: str) -> Any:
    name = value.get(field)
    if isinstance(name, str) and name in choices:
        return choices[name]
    if name is None:
        error = PydanticCustomError("missing", "Field required")
    else:
        context = {"name": str(name), "what": what, "choices": list(choices)}
        error = PydanticCustomError("choice", "`{name}` is not a {what}", context)
    raise ValidationError.from_exception_data("node", [{"type": error, "loc": (field,), "input": value}])


def _moved(error: ValidationError, index: int) -> list[InitErrorDetails]:
    moved: list[InitErrorDetails] = []
    for each in error.errors():
        kind = PydanticCustomError(
            cast("LiteralString", each["type"]), "{text}", {"text": each["msg"], **(each.get("ctx") or {})}
        )
        moved.append({"type": kind, "loc": (index, *each["loc"]), "input": each["input"]})
    return moved
