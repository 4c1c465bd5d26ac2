"""Workflow files: the model of a file, and a file that was read, checked and is ready to run."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import operator
import os
import pathlib
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, StringConstraints

from nodes.base import Block, Leaf, Node
from nodes.part import Part
from nodes.template import JsonValue, Text
from nodes.values import Json
from runtime.browser.options import BrowserOptions, Mode, Overlay
from runtime.language import inputs, origins
from runtime.language.diagnostics import Diagnostic, Mark
from runtime.language.examples import WorkflowTest
from runtime.language.expressions.references import Compiled
from runtime.language.inputs import Input
from runtime.language.yaml_text import Document, Path

Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$", max_length=80)]
Tag = Annotated[str, StringConstraints(pattern=r"^[^\s,]+$", max_length=80)]


def _browser(value: Any) -> Any:
    return {"mode": value} if isinstance(value, str) else value


class Workflow(Part):
    """A workflow file."""

    called = "a workflow"

    version: Literal[1]
    """Version of the file language."""
    run: Literal["auto", "manual"] = "auto"
    """``manual``: a run of the whole folder skips the file. It runs only if it is named, or used by another file."""
    rerun: Literal["allowed", "never"] = "allowed"
    """``never``: ``runops run --retries`` starts no new run of it."""
    run_timeout: float | None = Field(default=None, gt=0, le=7 * 86400)
    """Seconds that a run may take; the setting ``run_timeout`` can only make it shorter."""
    tags: list[Tag] = Field(default_factory=list)
    """Words by which ``runops run --tag`` selects the workflow."""
    name: str = ""
    """Name of the workflow; default: the name of the file."""
    description: str | None = None
    """Purpose of the workflow, in your words."""
    inputs: dict[Name, Input] = Field(default_factory=dict)
    """Values given when a run is started, read as ``inputs.NAME``. An input without a ``default`` is required."""
    secrets: list[Name] = Field(default_factory=list)
    """Names of secrets: environment variables or lines of ``.env``. Fields that take secrets read them as ``secrets.NAME``."""
    allowed_origins: list[Text] | None = None
    """Origins whose documents may load, such as ``https://shop.test``. Default: those in ``goto`` and in inputs, here and in used files."""
    browser: (
        Annotated[BrowserOptions, BeforeValidator(_browser, json_schema_input_type=Mode | BrowserOptions)] | None
    ) = None
    """Browser options: ``own``, ``shared``, or a map of options."""
    dismiss: list[Overlay] = Field(default_factory=list)
    """Overlays that may come over a page at any time, such as cookie banners: closed while a step waits. That is no side effect."""
    timeout: float | None = Field(default=None, gt=0, le=86400)
    """Seconds that one attempt of a step may take, if the step has no ``timeout``. Default: the setting ``step_timeout``, else 30."""
    on_redo: Literal["confirm", "redo", "ask"] | None = None
    """Default for repeating an action that may already have happened when a run is resumed. A container can override it for its block."""
    nodes: Block = Field(min_length=1)
    """Steps and containers, in order."""
    output: JsonValue = None
    """Result of a run."""
    tests: list[WorkflowTest] = Field(default_factory=list)
    """Runs with given inputs, and how each must end: tests for ``pytest --runops``."""


@dataclasses.dataclass(frozen=True, slots=True)
class Loaded:
    path: pathlib.Path  # its path, or a name for a text without one
    text: str
    workflow: Workflow
    templates: Mapping[str, Compiled]  # every text of the file with a reference, compiled
    index: Mapping[str, tuple[Node, tuple[Node, ...]]]
    """Each node by its id, with the nodes around it, outermost first; includes ``confirm`` blocks."""
    fingerprints: Mapping[str, str]
    """SHA-256 of each node by id, over all its fields except its description and the nodes in its blocks."""
    document: Document
    places: Mapping[str, Path]  # path of each node in the document
    callees: Mapping[str, Loaded]
    """File that each ``group`` with ``use`` runs, by the group's id. Groups that use the same file share one object."""

    def mark(self, node_id: str, *field: str | int) -> Mark | None:
        place = self.places.get(node_id)
        return None if place is None else self.document.mark((*place, *field))

    def check_inputs(self, given: Mapping[str, Json]) -> dict[str, Json]:
        """Return the value of every input; converts texts to the input's type. Raises UsageError for invalid values."""
        return inputs.check(self.workflow.inputs, given)

    def origins(self, values: Mapping[str, Json]) -> list[str]:
        """Return the origins whose documents a run may load. Raises UsageError for an invalid one."""
        nodes = [node for file in self.files() for node in file.nodes()]
        return origins.allowed(self.workflow.allowed_origins, nodes, self.templates, values)

    def place(self, step_path: str | None) -> str | None:
        """Return file, line and column of a step's node; None if unknown."""
        found = self.find(step_path) if step_path else None
        return None if found is None else found.place

    def nodes(self) -> list[Node]:
        return [node for node, _around in self.index.values()]

    def limit_steps(self, seconds: float | None) -> None:
        """Give each step its time limit: by default that of its file, else of this one, else ``seconds``."""
        for file in self.files():
            for node in file.nodes():
                if isinstance(node, Leaf):
                    node.by_default(file.workflow.timeout or self.workflow.timeout or seconds)

    def files(self) -> list[Loaded]:
        found: dict[pathlib.Path, Loaded] = {self.path: self}
        pending: list[Loaded] = [self]
        for each in pending:
            new = {callee.path: callee for callee in each.callees.values() if callee.path not in found}
            found |= new
            pending += new.values()
        return pending

    def texts(self) -> dict[str, str]:
        """Return the texts of the files that it uses, by path from its own folder. ``parse`` takes them to rebuild the same workflow."""
        folder = self.path.parent
        return {os.path.relpath(each.path, folder): each.text for each in self.files()[1:]}

    @property
    def depth(self) -> int:
        """Length of the longest chain of files below this one that use one another."""
        return max((1 + each.depth for each in self.callees.values()), default=0)

    def find(self, path: str) -> Found | None:
        """Return the step at ``path`` of a run; None if this file, or the one used there, has no such node."""
        file, steps = self, path.split("/")
        users: tuple[Workflow | Node, ...] = (self.workflow,)
        within: list[str] = []
        user = ""
        for number, step in enumerate(steps[:-1], start=1):
            name = step.partition("[")[0]
            callee = file.callees.get(name)
            if callee is None:
                within.append(name)
                continue
            node, around = file.index[name]
            # A step path also names branches and blocks, which may be called like a group elsewhere.
            if (around[-1].id not in within[-2:]) if around else within:
                within.append(name)
                continue
            users = (*users, *around, node, callee.workflow)
            file, within, user = callee, [], "/".join(steps[:number])
        name = steps[-1].partition("[")[0]
        if name not in file.index:
            return None
        node, around = file.index[name]
        return Found(file, user, node, (*users, *around))


@dataclasses.dataclass(frozen=True, slots=True)
class Found:
    """A step of a run in its file."""

    file: Loaded
    user: str  # path of the group that uses the file; empty for the run's own file
    node: Node
    around: tuple[Workflow | Node, ...]
    """Files and nodes around it, outermost first; a used file follows the group that uses it."""

    @property
    def fingerprint(self) -> str:
        return self.file.fingerprints[self.node.id]

    @property
    def place(self) -> str:
        mark = self.file.mark(self.node.id)
        return f"{self.file.path}:{mark.line}:{mark.column}" if mark is not None else str(self.file.path)


def in_order(problems: list[Diagnostic]) -> list[Diagnostic]:
    once = dict.fromkeys(problems)
    return sorted(once, key=lambda each: (each.mark.start, each.mark.stop) if each.mark else (0, 0))


def indexed(nodes: list[Node], around: tuple[Node, ...]) -> Iterator[tuple[str, tuple[Node, tuple[Node, ...]]]]:
    for node in nodes:
        yield node.id, (node, around)
        for _field, block in node.blocks():
            yield from indexed(block, (*around, node))
        if isinstance(node, Leaf) and node.confirm is not None:
            yield from indexed(node.confirm.nodes, (*around, node))


def below(node: Node) -> Iterator[Node]:
    """Yield the nodes in the blocks of ``node``, each before those inside it."""
    for _field, block in node.blocks():
        for each in block:
            yield each
            yield from below(each)


def does(loaded: Loaded) -> Json:
    """Return a workflow's behaviour as data: independent of names, descriptions, layout and comments."""
    head: Json = loaded.workflow.model_dump(
        mode="json",
        by_alias=True,
        exclude_defaults=True,
        exclude={"name", "description", "tags", "rerun", "run_timeout", "tests", "nodes"},
        warnings=False,
    )
    return {"head": head, "nodes": _tree(loaded.workflow.nodes)}


def _tree(nodes: list[Node]) -> list[Json]:
    found: list[Json] = []
    for each in nodes:
        blocks = {str(field): _tree(block) for field, block in each.blocks()}
        found.append({"id": each.id, "does": fingerprint(each), "blocks": blocks})
    return found


def fingerprint(node: Node, but: frozenset[str] = frozenset({"description"})) -> str:
    """Return the SHA-256 of a node without the nodes in its blocks; the fields ``but``, layout and comments do not count."""
    text = json.dumps(plain(node, but), sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def plain(node: Node, but: frozenset[str] = frozenset()) -> dict[str, Json]:
    """Return a node's fields by their names in the file, without defaults, the fields ``but``, and the nodes in its blocks."""
    data: Json = node.model_dump(mode="json", by_alias=True, exclude_defaults=True, warnings=False)
    for field, _block in node.blocks():
        *way, last = field
        owner: Json = functools.reduce(operator.getitem, way, data)
        owner.pop(last, None)
    data["type"] = node.type  # a default, but it identifies the node
    return {name: value for name, value in data.items() if name not in but}


def workspace(folder: pathlib.Path) -> pathlib.Path:
    """Return the project of a workflow in ``folder``: the nearest parent with ``.runops``, pyproject.toml or ``.git``, else itself."""
    marks = (".runops", "pyproject.toml", ".git")
    return next((each for each in (folder, *folder.parents) if any((each / mark).exists() for mark in marks)), folder)
