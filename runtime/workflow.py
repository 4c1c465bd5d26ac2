"""Workflow files: the model of a whole file, and a file read, checked and ready to run."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import operator
import pathlib
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal, cast

from pydantic import BeforeValidator, Field, StringConstraints, ValidationError

from nodes import registry
from nodes.base import Block, Leaf, Node
from nodes.errors import UsageError
from nodes.part import Part
from nodes.template import JsonValue, Text
from nodes.values import Json
from runtime import inputs, misfits, names, origins, references, yaml_text
from runtime.anatomy import Anatomy
from runtime.browser.options import BrowserOptions, Mode
from runtime.diagnostics import Diagnostic, Mark, WorkflowInvalid
from runtime.inputs import Input
from runtime.references import Compiled, ReferenceInvalid
from runtime.yaml_text import Document, Path

Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$", max_length=80)]


def _browser(value: Any) -> Any:
    return {"mode": value} if isinstance(value, str) else value


class Workflow(Part):
    """A workflow file."""

    version: Literal[1]
    """Version of the file language."""
    name: str = ""
    """What the workflow is called; default: the name of the file."""
    description: str | None = None
    """What the workflow is for, in your words."""
    inputs: dict[Name, Input] = Field(default_factory=dict)
    """Values given when a run is started, read as ``inputs.NAME``. Without a ``default`` an input must be given."""
    secrets: list[Name] = Field(default_factory=list)
    """Names of secrets, each an environment variable (or a line of ``.env``), read as ``secrets.NAME`` where a field takes secrets."""
    allowed_origins: list[Text] | None = None
    """Origins whose documents the browser may load, such as ``https://shop.test``. Default: those of the addresses in ``goto`` and in inputs."""
    browser: (
        Annotated[BrowserOptions, BeforeValidator(_browser, json_schema_input_type=Mode | BrowserOptions)] | None
    ) = None
    """How the browser is made: ``own``, ``shared``, or a map of options."""
    on_redo: Literal["confirm", "redo", "ask"] | None = None
    """What to do when a resumed run would have to do again what may already have happened; a container may say otherwise for its block."""
    nodes: Block = Field(min_length=1)
    """What to do, in order."""
    output: JsonValue = None
    """What a run yields."""


@dataclasses.dataclass(frozen=True, slots=True)
class Loaded:
    """A workflow file that was read and found valid."""

    path: pathlib.Path
    """Where it was read, or what it was called."""
    text: str
    workflow: Workflow
    templates: Mapping[str, Compiled]
    """Every text of the file with a reference in it, compiled."""
    index: Mapping[str, tuple[Node, tuple[Node, ...]]]
    """Each node by its id, with the nodes around it, outermost first; those of ``confirm`` blocks too."""
    fingerprints: Mapping[str, str]
    """For each id a SHA-256 of what the node does: all its fields but its description and the nodes in its blocks."""
    document: Document
    places: Mapping[str, Path]
    """Where in the document each node stands."""

    def mark(self, node_id: str, *field: str | int) -> Mark | None:
        """Where a node, or a field of it, stands in the text."""
        place = self.places.get(node_id)
        return None if place is None else self.document.mark((*place, *field))

    def check_inputs(self, given: Mapping[str, Json]) -> dict[str, Json]:
        """The value of every input, defaults filled in; a text is read as the input's type. Raises UsageError for what does not fit."""
        return inputs.check(self.workflow.inputs, given)

    def origins(self, values: Mapping[str, Json]) -> list[str]:
        """The origins whose documents a run with these inputs may load. Raises UsageError for one that is none."""
        return origins.allowed(self.workflow.allowed_origins, list(self.nodes()), self.templates, values)

    def nodes(self) -> list[Node]:
        """Every node of the file."""
        return [node for node, _around in self.index.values()]


def load(path: pathlib.Path | str) -> Loaded:
    """The workflow in a file. Raises WorkflowInvalid with every mistake in it, UsageError where it cannot be read."""
    path = pathlib.Path(path)
    try:
        with path.open("rb") as file:
            content = file.read(yaml_text.LARGEST_FILE + 1)
    except FileNotFoundError:
        raise UsageError("file-not-found", f"there is no file {path}", mend=_similar(path)) from None
    except IsADirectoryError:
        raise UsageError("not-a-file", f"{path} is a folder", mend="name the workflow file in it") from None
    except OSError as error:
        raise UsageError("file-not-read", f"{path} cannot be read: {error.strerror}") from None
    return parse(content, str(path))


def parse(content: str | bytes, name: str) -> Loaded:
    """The workflow in a text, called ``name`` in messages. Raises WorkflowInvalid with every mistake in it, in the order of the text."""
    document = yaml_text.read(name, content)
    if not document.readable:
        raise WorkflowInvalid(document.problems)
    data: Json = document.data
    if not isinstance(data, dict):
        mark = document.mark(())
        problem = document.source.diagnostic(
            "not-a-workflow", "a workflow file is a map that begins with `version: 1`", mark
        )
        raise WorkflowInvalid([*document.problems, problem])
    anatomy = Anatomy(cast("dict[str, Json]", data), Workflow)
    problems = document.problems + misfits.misspelt(anatomy, document)
    workflow = _fitted(anatomy, document, problems)
    templates = _compiled(anatomy, document, problems)
    problems += names.check(anatomy, templates, document)
    problems += origins.check(anatomy, document)
    if problems or workflow is None:
        raise WorkflowInvalid(in_order(problems))
    if not workflow.name:
        workflow = workflow.model_copy(update={"name": pathlib.PurePath(name).stem})
    index = dict(_indexed(workflow.nodes, ()))
    return Loaded(
        path=pathlib.Path(name),
        text=document.source.text,
        workflow=workflow,
        templates=templates,
        index=index,
        fingerprints={each: fingerprint(node) for each, (node, _around) in index.items()},
        document=document,
        places={unit.id: unit.path for unit in anatomy.every_unit() if unit.id},
    )


def _fitted(anatomy: Anatomy, document: Document, problems: list[Diagnostic]) -> Workflow | None:
    try:
        return Workflow.model_validate(anatomy.clean)
    except ValidationError as error:
        problems += misfits.explain(error, anatomy, document)
        return None


def _compiled(anatomy: Anatomy, document: Document, problems: list[Diagnostic]) -> dict[str, Compiled]:
    compiled: dict[str, Compiled] = {}
    for slot in anatomy.every_slot():
        if slot.ref is None:
            mark = document.mark(slot.path)
            problems.append(
                document.source.diagnostic(
                    "no-reference-here", f"`{slot.path[-1]}` takes no references", mark, help=["write the value itself"]
                )
            )
            continue
        try:
            compiled[slot.text] = references.compile(slot.text)
        except ReferenceInvalid as error:
            mark = document.within(slot.path, slot.text, error.start, error.end)
            problems.append(document.source.diagnostic(error.code, error.message, mark, help=[error.mend]))
    return compiled


def in_order(problems: list[Diagnostic]) -> list[Diagnostic]:
    """The problems in the order of the file, each once."""
    once = dict.fromkeys(problems)
    return sorted(once, key=lambda each: (each.mark.start, each.mark.stop) if each.mark else (0, 0))


def _indexed(nodes: list[Node], around: tuple[Node, ...]) -> Iterator[tuple[str, tuple[Node, tuple[Node, ...]]]]:
    for node in nodes:
        yield node.id, (node, around)
        for _field, block in node.blocks():
            yield from _indexed(block, (*around, node))
        if isinstance(node, Leaf) and node.confirm is not None:
            yield from _indexed(node.confirm.nodes, (*around, node))


def fingerprint(node: Node) -> str:
    """SHA-256 of what a node does, the nodes in its blocks aside. Layout, comments and descriptions do not count."""
    plain: Json = node.model_dump(
        mode="json", by_alias=True, exclude_defaults=True, exclude={"description"}, warnings=False
    )
    plain["type"] = node.type  # a default, and yet what it is
    for field, _block in node.blocks():
        *way, last = field
        owner: Json = functools.reduce(operator.getitem, way, plain)
        owner.pop(last, None)
    return hashlib.sha256(
        json.dumps(plain, sort_keys=True, ensure_ascii=False, separators=(",", ":")).encode()
    ).hexdigest()


def _similar(path: pathlib.Path) -> str | None:
    try:
        close = registry.near(
            path.name, [each.name for each in path.parent.iterdir() if each.suffix in (".yaml", ".yml")]
        )
    except OSError:
        return None
    return f"did you mean {path.parent / close}?" if close else None
