"""``runops validate``: check workflow files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nodes.errors import UsageError
from nodes.values import Json
from runtime import pythons
from runtime.cli import console
from runtime.cli.flags import JsonFlag
from runtime.display.text import count
from runtime.language import workflow
from runtime.language.diagnostics import WorkflowInvalid


def validate(
    files: Annotated[list[Path], typer.Argument(metavar="FILES...", help="Workflow files.", show_default=False)],
    as_json: JsonFlag = False,
) -> None:
    """Check workflow files, without a browser or the network.

    Prints a line for each valid file on stdout, and every mistake, with its place, on stderr. Exit code 2 if there is one.
    """
    told: list[dict[str, Json]] = []
    for file in files:
        try:
            pythons.check(workflow.load(file))
        except UsageError as error:
            told.append({"file": str(file), "valid": False, "problems": problems_of(error, file)})
            if not as_json:
                said = error.render() if isinstance(error, WorkflowInvalid) else console.failure(error)
                console.say(f"{said}\n")
        else:
            told.append({"file": str(file), "valid": True, "problems": []})
            if not as_json:
                console.result(f"ok  {file}")
    invalid = [each for each in told if not each["valid"]]
    if as_json:
        console.result(console.as_json(valid=not invalid, files=told))
    elif invalid:
        mistakes = sum(len(each["problems"]) for each in invalid)
        of = f" in {len(invalid)} of {len(told)} files" if len(told) > 1 else ""
        console.say(f"{count(mistakes, 'mistake')}{of}")
    if invalid:
        raise typer.Exit(2)


def problems_of(error: UsageError, file: Path) -> list[Json]:
    """The mistakes of a file, for programs."""
    if isinstance(error, WorkflowInvalid):
        return [each.as_json() for each in error.diagnostics]
    return [
        {"code": error.code, "message": error.message, "file": str(file), "help": [error.mend] if error.mend else []}
    ]
