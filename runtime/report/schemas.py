"""The JSON Schemas that RunOps publishes: of workflow files, and of the reports that ``--json`` prints."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import TypeAdapter

from nodes.values import Json
from runtime.language.schema import DIALECT, Plain, tidied, workflow_schema
from runtime.report import endings, models

Name = Literal[
    "workflow", "run", "session", "run-ending", "batch-ending", "chat-ending", "build-ending", "repair-ending"
]

REPORTS: dict[Name, Any] = {
    "run": models.RunReport,
    "session": models.SessionReport,
    "run-ending": endings.RunEnding | endings.AnswerKept,
    "batch-ending": endings.BatchEnding,
    "chat-ending": endings.ChatEnding,
    "build-ending": endings.BuildEnding,
    "repair-ending": endings.RepairEnding | endings.NothingToRepair | endings.RepairApplied,
}


def schema_of(name: Name) -> dict[str, Json]:
    if name == "workflow":
        return workflow_schema()
    schema = TypeAdapter[Any](REPORTS[name]).json_schema(mode="serialization", schema_generator=Plain)
    return {"$schema": DIALECT, **tidied(schema), "title": f"RunOps {name.replace('-', ' ')}"}
