"""Cases of found files: each file once, or once for each row of a table of inputs."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path

from nodes import errors
from nodes.errors import UsageError
from nodes.values import Json
from runtime.language import inputs, workflow
from runtime.runs import collect, results

LABEL = "case"
"""The column that labels a row."""


@dataclasses.dataclass(frozen=True, slots=True)
class Row:
    number: int
    """From 1."""
    label: str
    values: Mapping[str, Json]


@dataclasses.dataclass(frozen=True, slots=True)
class Rows:
    file: Path
    rows: Sequence[Row]

    @property
    def columns(self) -> list[str]:
        return [*dict.fromkeys(name for row in self.rows for name in row.values)]

    def refuse_unknown(self, files: Sequence[workflow.Loaded]) -> None:
        """Raise UsageError ``unknown-input`` for a column that none of the files declares as an input."""
        declared = [name for loaded in files for name in loaded.workflow.inputs]
        for name in self.columns:
            if name not in declared and name != LABEL:
                message = f"{self.file}: the column `{name}` is an input of no workflow here"
                otherwise = f"there is {', '.join(dict.fromkeys(declared))}" if declared else "no workflow has inputs"
                raise UsageError("unknown-input", message, fix=errors.did_you_mean(name, declared, otherwise))


def rows(file: Path, content: Json) -> Rows:
    """Return the rows of a table: a list of maps. Raises UsageError ``rows-invalid``."""
    listed: list[Json] = content if isinstance(content, list) else []
    maps: list[dict[str, Json]] = [each for each in listed if isinstance(each, dict)]
    if not isinstance(content, list) or len(maps) < len(listed):
        raise _invalid(file, "it is no list of maps", "write a CSV file with a header, or a JSON list of objects")
    if not maps:
        raise _invalid(file, "it has no row", "give at least one row")
    found: dict[str, Row] = {}
    for number, values in enumerate(maps, start=1):
        label = str(number) if values.get(LABEL) in (None, "") else str(values[LABEL])
        if label in found:
            fix = f"give each row a `{LABEL}` of its own"
            raise _invalid(file, f"two rows are called {label!r}; the second is row {number}", fix)
        if not label.isprintable():
            raise _invalid(file, f"row {number}: a `{LABEL}` is one line of text", "write it on one line")
        found[label] = Row(number, label, values)
    return Rows(file, [*found.values()])


def _invalid(file: Path, message: str, fix: str) -> UsageError:
    return UsageError("rows-invalid", f"{file}: {message}", fix=fix)


def of(found: Sequence[collect.Found], table: Rows | None = None) -> list[results.Outcome]:
    """Return an outcome for each case, in order of the files, and of the rows within a file.

    A file that declares none of the columns is one case, and so is one that cannot be read: its outcome is the error, as it is for a row
    with a value that does not fit.
    """
    outcomes: list[results.Outcome] = []
    for each in found:
        if each.loaded is None:
            outcomes.append(results.Outcome(results.Case(each.file), refused=each.error))
            continue
        declared = each.loaded.workflow.inputs
        if table is None or not any(name in declared for name in table.columns):
            outcomes.append(results.Outcome(results.Case(each.file, each.loaded)))
            continue
        for row in table.rows:
            values = {name: value for name, value in row.values.items() if name in declared}
            case = results.Case(each.file, each.loaded, row.label, values)
            outcomes.append(results.Outcome(case, refused=_unfit(table.file, row, declared, values)))
    return outcomes


def _unfit(file: Path, row: Row, declared: Mapping[str, inputs.Input], values: Mapping[str, Json]) -> UsageError | None:
    try:
        for name, value in values.items():
            inputs.read(name, declared[name], value)
    except UsageError as error:
        fix = "correct it there, or leave the value out (in a list of maps, JSON or YAML)"
        return UsageError(error.code, f"{file}: row {row.number}: {error.message}", fix=fix)
    return None
