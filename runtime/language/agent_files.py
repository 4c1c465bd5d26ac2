"""Agent files: delegates of a session by name, one YAML file each in the folder ``agents`` of the project."""

from __future__ import annotations

import pathlib
import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, cast

from pydantic import AfterValidator, Field, ValidationError, ValidationInfo, WithJsonSchema, field_validator
from pydantic.json_schema import models_json_schema
from pydantic_core import PydanticCustomError

from nodes.budgets import Budget
from nodes.errors import UsageError
from nodes.part import Part
from nodes.values import Json
from runtime.language import schema, workflow, yaml_text
from runtime.language.checks import model_errors
from runtime.language.diagnostics import Diagnostic, FileInvalid
from runtime.language.node_tree import Anatomy
from runtime.system import regular_files

FOLDER = "agents"
SUFFIX = ".yaml"
DEEPEST = 2  # limit of the levels of delegates below a delegate

READING: Mapping[str, tuple[str, ...]] = {
    "session": (
        "get_workflow_summary",
        "get_workflow_nodes",
        "get_workflow_variables",
        "get_workflow_variable",
        "get_current_plan",
        "get_workflow_description",
        "get_browser_state",
        "read_state",
    ),
    "pages": ("inspect_tab", "find", "try_target", "get_html", "wait_for"),
    "nodes": ("get_node_type",),
}
"""The tools of a session that only look, by toolset."""

ACTING: Mapping[str, tuple[str, ...]] = {
    "session": (
        "update_plan",
        "patch_plan_task",
        "update_workflow_description",
        "set_variable",
        "clear_variable",
        "clear_all_variables",
    ),
    "pages": ("debug_navigate", "debug_action"),
    "nodes": (
        "create_nodes",
        "update_node",
        "move_nodes",
        "delete_nodes",
        "execute_nodes",
        "propose_target",
        "run_draft",
    ),
}
"""The tools that change something, by toolset."""

LOOKS = frozenset(name for names in READING.values() for name in names)
NAMES = (*READING, *LOOKS, *(name for names in ACTING.values() for name in names))

_NAME = re.compile(r"[a-z][a-z0-9_-]{0,63}")


def _known(name: str) -> str:
    if name not in NAMES:
        message = "there is no tool or toolset `{name}`"
        raise PydanticCustomError("choice", message, {"name": name, "choices": sorted(NAMES)})
    return name


Tool = Annotated[str, AfterValidator(_known), WithJsonSchema({"type": "string", "enum": sorted(NAMES)})]


class Agent(Part):
    """An agent: a delegate by name."""

    called = "an agent"

    description: str = Field(min_length=1, max_length=300)
    """What it is for. The model that chooses a delegate sees this."""
    prompt: str = Field(default="", max_length=20_000)
    """Instructions of its own, after those that every delegate has."""
    acts: bool = False
    """Whether it may change something, under the permissions of the session. Otherwise it only looks."""
    tools: list[Tool] | None = Field(default=None, min_length=1)
    """Names of tools, or of toolsets: ``session``, ``pages``, ``nodes``. By default the reading ones of ``session``, and ``pages`` if it acts."""
    model: str | None = Field(default=None, min_length=1)
    """Its model, if it is another one than the session's."""
    budget: Budget | None = None
    """What one delegate may spend, with those that it sends. It never spends more than its parent has left."""
    max_output: int | None = Field(default=None, ge=1)
    """Limit of one answer, in tokens, reasoning included."""
    context: Literal["clean", "inherit"] | None = None
    """What it begins with: its task alone, or the conversation. By default as the session says."""
    delegates: int = Field(default=1, ge=0, le=DEEPEST)
    """Levels of delegates that it may send below itself; 0: none."""

    @field_validator("tools")
    @classmethod
    def _fits(cls, tools: list[str] | None, info: ValidationInfo) -> list[str] | None:
        acting = [each for each in tools or () if each not in LOOKS and each not in READING]
        if acting and info.data.get("acts") is False:
            raise ValueError(f"an agent that only looks cannot have `{acting[0]}`: write `acts: true`")
        return tools

    @property
    def names(self) -> frozenset[str]:
        """Names of the tools that it may have, if the session offers them."""
        wanted = (
            self.tools if self.tools is not None else ["session"] if not self.acts else [*READING["session"], "pages"]
        )
        every = {
            name
            for each in wanted
            for name in (*READING.get(each, ()), *ACTING.get(each, ())) or (each,)
            if self.acts or name in LOOKS
        }
        return frozenset(every)


def folder() -> pathlib.Path:
    """Return the folder of the project's agents: ``agents`` beside ``.runops``, pyproject.toml or ``.git``, else here."""
    return workflow.workspace(pathlib.Path.cwd()) / FOLDER


def of_project() -> dict[str, Agent]:
    """Return the agents of the project, by name. Raises FileInvalid ``agent-invalid`` with every mistake, UsageError ``file-not-read``."""
    place = folder()
    try:
        files = sorted(each for each in place.iterdir() if each.suffix == SUFFIX)
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as error:
        message = f"{place} cannot be read: {error.strerror}"
        raise UsageError("file-not-read", message, fix=regular_files.fix(error)) from None
    found: dict[str, Agent] = {}
    problems: list[Diagnostic] = []
    for file in files:
        shown = f"{FOLDER}/{file.name}"
        agent = read(shown, _content(file, shown), problems)
        if agent is not None:
            found[file.stem] = agent
    if problems:
        raise FileInvalid(
            "agent-invalid",
            problems,
            message=f"the agents have {len(problems)} mistakes" if len(problems) > 1 else "",
            fix="fix it, or move it out of the folder; `runops agents` checks it again",
        )
    return found


def _content(file: pathlib.Path, shown: str) -> bytes:
    try:
        with regular_files.opened(file) as opened:
            return opened.read(yaml_text.LARGEST_FILE + 1)
    except OSError as error:
        message = f"{shown} cannot be read: {error.strerror}"
        raise UsageError("file-not-read", message, fix=regular_files.fix(error)) from None


def read(name: str, content: bytes, problems: list[Diagnostic]) -> Agent | None:
    """Return the agent in a text; None with its ``problems`` if it is invalid."""
    document = yaml_text.read(name, content)
    before = len(problems)
    problems += document.problems
    if not _NAME.fullmatch(pathlib.PurePath(name).stem):
        fix = "its name has lower case letters, digits, `-` and `_`, and begins with a letter"
        problems.append(document.problem("bad-name", "the file's name is no name of an agent", (), fix))
    if not document.readable:
        return None
    data: Json = document.data
    if not isinstance(data, dict):
        problems.append(document.problem("not-an-agent", "an agent file is a map with `description`", ()))
        return None
    anatomy = Anatomy(cast("dict[str, Json]", data), Agent)
    problems += model_errors.misspelt(anatomy, document)
    try:
        agent = Agent.model_validate(anatomy.clean)
    except ValidationError as error:
        problems += model_errors.explain(error, anatomy, document)
        return None
    return agent if len(problems) == before else None


def agent_schema() -> dict[str, Json]:
    """Return the JSON Schema of agent files, in draft 2020-12, for editors."""
    names, whole = models_json_schema(
        [(Agent, "validation")], ref_template="#/$defs/{model}", schema_generator=schema.Plain
    )
    defs: dict[str, Any] = {name: schema.tidied(each) for name, each in whole["$defs"].items()}
    root = defs.pop(names[Agent, "validation"]["$ref"].rpartition("/")[2])
    root["patternProperties"] = {"^x-": {}}
    return {"$schema": schema.DIALECT, **root, "title": "RunOps agent", "$defs": defs}
