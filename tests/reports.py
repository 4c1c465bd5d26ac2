"""JSON output of commands, checked against its published schemas."""

from __future__ import annotations

import functools
import json

import jsonschema_rs
import pytest

from runtime.cli.commands import schema as schemas
from runtime.report import differences, endings, models, parts

NAMES: dict[type[parts.Printed], schemas.Name] = {
    models.RunReport: "run",
    models.SessionReport: "session",
    differences.RunDiff: "run-diff",
    endings.RunEnding: "run-ending",
    endings.AnswerKept: "run-ending",
    endings.BatchEnding: "batch-ending",
    endings.BatchReport: "batch-report",
    endings.CaseList: "case-list",
    endings.ChatEnding: "chat-ending",
    endings.BuildEnding: "build-ending",
    endings.VerifyEnding: "verify-ending",
    endings.RepairEnding: "repair-ending",
    endings.NothingToRepair: "repair-ending",
    endings.RepairApplied: "repair-ending",
}
"""The schema of each printed report."""


@functools.cache
def _validator(name: schemas.Name) -> jsonschema_rs.Draft202012Validator:
    return jsonschema_rs.Draft202012Validator(schemas.schema_of(name))


def fits(name: schemas.Name, printed: object) -> bool:
    """True if something matches the schema."""
    return _validator(name).is_valid(printed)


def check(name: schemas.Name, printed: object) -> None:
    """Fail where something does not match the schema."""
    _validator(name).validate(printed)


def check_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """Check every report that this process prints from now on."""
    print_it = parts.Printed.as_json

    def printed(report: parts.Printed) -> str:
        text = print_it(report)
        check(NAMES[type(report)], json.loads(text))
        return text

    monkeypatch.setattr(parts.Printed, "as_json", printed)
