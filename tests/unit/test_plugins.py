"""Node types of packages: an unusable type is refused when loaded, and a package's mistakes are reported as its own."""

from __future__ import annotations

import importlib.metadata
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar, Literal

import pytest
from pydantic import Field

from nodes import plugins, registry
from nodes.base import Block, Container, Leaf, Node
from nodes.errors import SetupError
from nodes.ports import Item
from nodes.template import Number
from runtime.language import reader
from runtime.language.diagnostics import WorkflowInvalid
from tests.rig import Rig

with warnings.catch_warnings():
    warnings.simplefilter("ignore", UserWarning)

    class Slow(Leaf):
        """A leaf with a field that would never have the value in the file."""

        type: Literal["acme.slow"] = "acme.slow"
        seconds: Number = 1.0  # pyright: ignore[reportIncompatibleMethodOverride]

        async def run(self, ctx: Any) -> Any: ...


class Elsewhere(Leaf):
    """A leaf that accepts `tab` and ignores it."""

    type: Literal["acme.elsewhere"] = "acme.elsewhere"
    tab: str | None = None

    async def run(self, ctx: Any) -> Any: ...


class Wrong(Leaf):
    """A leaf with a bug."""

    effect_default = "read"
    type: Literal["acme.wrong"] = "acme.wrong"

    async def run(self, ctx: Any) -> Any:
        await ctx.act()
        return 1 / 0


class Silent(Leaf):
    """A leaf that acts without announcing the action."""

    type: Literal["acme.silent"] = "acme.silent"

    async def run(self, ctx: Any) -> Any:
        return 1


class Twice(Container):
    """A container that runs its block twice."""

    in_turns: ClassVar[bool] = True
    type: Literal["acme.twice"] = "acme.twice"
    nodes: Block

    def blocks(self) -> Iterator[tuple[tuple[str | int, ...], list[Node]]]:
        yield ("nodes",), self.nodes

    async def run(self, ctx: Any) -> Any:
        return [await ctx.block(self.nodes), await ctx.block(self.nodes)]


class Thrice(Container):
    """A container that runs its block in three iterations, and gives up one that fails."""

    in_turns: ClassVar[bool] = True
    type: Literal["acme.thrice"] = "acme.thrice"
    as_: str = Field(alias="as")
    nodes: Block

    def blocks(self) -> Iterator[tuple[tuple[str | int, ...], list[Node]]]:
        yield ("nodes",), self.nodes

    async def run(self, ctx: Any) -> Any:
        iterations = [await ctx.turn(self.nodes, Item(self.as_, n, n, 3, None), give_up=True) for n in (1, 2, 3)]
        return [iteration.value for iteration in iterations if not iteration.given_up]


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A package with four of these types."""
    types = {"acme.wrong": Wrong, "acme.silent": Silent, "acme.twice": Twice, "acme.thrice": Thrice}
    found = [importlib.metadata.EntryPoint(name, f"{__name__}:{name}", plugins.GROUP) for name in types]
    monkeypatch.setattr(importlib.metadata.EntryPoint, "load", lambda entry: types[entry.name])
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda group: found if group == plugins.GROUP else [])
    known = registry.node_types
    known.cache_clear()
    yield
    known.cache_clear()


@pytest.mark.parametrize(("model", "message"), [(Slow, "`seconds` is a word of every node"), (Elsewhere, "`tab`")])
def test_a_field_that_would_do_nothing_is_refused(
    model: type[Leaf], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A field that shadows one the engine reads of every node is refused when the type is loaded, with the entry point's name."""
    name = model.model_fields["type"].default
    entry = importlib.metadata.EntryPoint(name, "acme:model", plugins.GROUP)
    monkeypatch.setattr(importlib.metadata.EntryPoint, "load", lambda _entry: model)
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda group: [entry])
    with pytest.raises(SetupError, match=message) as raised:
        plugins.models()
    assert raised.value.code == "node-type-broken"
    assert name in raised.value.message


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(
    ("node", "code", "message"),
    [
        ("{id: it, type: acme.wrong}", "node-type-failed", "ZeroDivisionError: division by zero"),
        ("{id: it, type: acme.silent}", "node-type-broken", "acted without"),
        (
            "{id: it, type: acme.twice, nodes: [{id: a, type: transform, expr: 1}]}",
            "node-type-broken",
            "one block twice",
        ),
    ],
)
async def test_a_mistake_of_a_package_is_no_bug_of_runops(node: str, code: str, message: str, tmp_path: Path) -> None:
    """The run fails with exit code 3, and the error names the node type instead of a bug in RunOps."""
    ended = await Rig(tmp_path, f"version: 1\nnodes: [{node}]\n").start()
    assert ended.exit == 3
    assert ended.error is not None
    assert ended.error["code"] == code
    assert message in ended.error["message"]
    assert "acme." in ended.error["message"]


@pytest.mark.usefixtures("installed")
def test_names_that_stay_inside_are_unknown_outside() -> None:
    """Nodes in a container that runs iterations are unknown after it."""
    text = "version: 1\nnodes:\n  - {id: t, type: acme.twice, nodes: [{id: a, type: transform, expr: 1}]}\n"
    with pytest.raises(WorkflowInvalid, match="`a`"):
        reader.parse(text + '  - {id: b, type: transform, expr: "{{ a }}"}\n', "inside.yaml")


@pytest.mark.usefixtures("installed")
async def test_iterations_that_are_given_up_are_listed(tmp_path: Path) -> None:
    """A container of a package runs its block in iterations like ``iterate``, and ``run.failures`` lists those that failed."""
    text = (
        "version: 1\nnodes:\n"
        "  - {id: t, type: acme.thrice, as: n, nodes: [{id: a, type: transform, expr: '{{ 6 // (n - 2) + loop.index }}'}]}\n"
        "output: {values: '{{ t }}', failed: '{{ run.failures.t }}'}\n"
    )
    ended = await Rig(tmp_path, text).start()
    assert ended.status == "passed", ended.error
    output: Any = ended.output
    assert output["values"] == [-5, 9]
    assert [(each["index"], each["step"]) for each in output["failed"]] == [(2, "t[2]/a")]
