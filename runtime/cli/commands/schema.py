"""``runops schema``: the JSON Schemas of workflow files and of commands' output."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import TypeAdapter

from nodes.errors import UsageError
from nodes.values import Json
from runtime.cli import console, flags
from runtime.display import escapes
from runtime.language.agent_files import agent_schema
from runtime.language.schema import DIALECT, Plain, tidied, workflow_schema
from runtime.report import batch_events, chat_events, differences, endings, models
from runtime.system import regular_files

Name = Literal[
    "workflow",
    "agent",
    "run",
    "session",
    "run-diff",
    "run-ending",
    "batch-ending",
    "batch-report",
    "batch-event",
    "case-list",
    "chat-ending",
    "build-ending",
    "repair-ending",
    "verify-ending",
    "chat-event",
    "chat-line",
]

REPORTS: dict[Name, Any] = {
    "run": models.RunReport,
    "session": models.SessionReport,
    "run-diff": differences.RunDiff,
    "run-ending": endings.RunEnding | endings.AnswerKept,
    "batch-ending": endings.BatchEnding,
    "batch-report": endings.BatchReport,
    "batch-event": batch_events.BatchEvent,
    "case-list": endings.CaseList,
    "chat-ending": endings.ChatEnding,
    "chat-event": chat_events.ChatEvent,
    "chat-line": chat_events.ChatLine,
    "build-ending": endings.BuildEnding,
    "verify-ending": endings.VerifyEnding,
    "repair-ending": endings.RepairEnding | endings.NothingToRepair | endings.RepairApplied,
}


def schema(
    of: Annotated[Name, flags.option("--of", "The schema to print.")] = "workflow",
    output: Annotated[Path | None, flags.option("--output, -o FILE", "Write it there.")] = None,
) -> None:
    """Print the JSON Schema (draft 2020-12) of workflow files, or with `--of agent` of agent files, so that an editor can complete and check them.

    Most editors find it by a first line such as `# yaml-language-server: $schema=./runops.schema.json`. With `--of` it can also be the schema of JSON
    output: of `show` (`run`, `session`), `diff` (`run-diff`), `resume` (`run-ending`), `run` (`batch-ending`, and `case-list` of `--list`; `batch-report` and the lines `batch-event` of its files), `chat`, `build`, `repair`, `verify`; and of the lines of `chat --json-lines` (`chat-event`, `chat-line`).
    """
    text = escapes.as_json(schema_of(of), indent=2)
    if output is None:
        console.result(text)
        return
    try:
        regular_files.write(output, f"{text}\n".encode())
    except OSError as error:
        raise UsageError(
            "file-not-written", f"{output} cannot be written: {error.strerror}", fix=regular_files.fix(error)
        ) from None
    console.say(f"wrote {escapes.line(str(output))}")


def schema_of(name: Name) -> dict[str, Json]:
    if name == "workflow":
        return workflow_schema()
    if name == "agent":
        return agent_schema()
    schema = TypeAdapter[Any](REPORTS[name]).json_schema(mode="serialization", schema_generator=Plain)
    return {"$schema": DIALECT, **tidied(schema), "title": f"RunOps {name.replace('-', ' ')}"}
