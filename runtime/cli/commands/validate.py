"""``runops validate``: checks workflow files."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from nodes.errors import UsageError
from nodes.values import Json
from runtime.cli import console, flags
from runtime.display import escapes
from runtime.display.stream import Talk, coloured
from runtime.display.text import count, joined, one_line
from runtime.language import hints, workflow
from runtime.language.checks import sql
from runtime.language.diagnostics import WorkflowInvalid
from runtime.models import selection
from runtime.runs import collect
from runtime.services import functions
from runtime.settings import settings


def validate(
    files: Annotated[list[Path], flags.argument("FILES...", "Workflow files, and folders of them.")],
    as_json: flags.JsonFlag = False,
) -> None:
    """Check workflow files, without a browser or the network.

    On stdout, prints a line for each valid file, and its nodes that ask a model with their budgets. On stderr, prints every mistake with its
    place, and hints for better files. Of a folder those files are checked that ``runops run`` takes. Exit code 2 if there is a mistake.
    """
    checked: list[dict[str, Json]] = []
    allowed = settings.load().python_modules
    for given in collect.collect(files):
        file, loaded = given.file, given.loaded
        entry: dict[str, Json] = {"file": str(file), "valid": True, "problems": [], "hints": [], "models": []}
        checked.append(entry)
        try:
            if loaded is None:
                assert given.error is not None
                raise given.error
            functions.check(loaded, allowed)
            if problems := sql.check(loaded):
                raise WorkflowInvalid(problems, str(file))
        except UsageError as error:
            entry |= {"valid": False, "problems": problems_of(error, file)}
            if not as_json:
                console.say(f"{error.render() if isinstance(error, WorkflowInvalid) else console.failure(error)}\n")
            continue
        found = [each.diagnostic for each in hints.of(loaded)]
        entry |= {"hints": [each.as_json() for each in found]}
        entry |= {"models": [_asks(each) for each in selection.asking(loaded)]}
        if not as_json:
            console.result("\n".join([f"ok  {escapes.line(str(file))}", *_lines(entry["models"], loaded)]))
            for each in found:
                console.say(f"{each.render(colour=coloured(Talk(sys.stderr)))}\n")
    invalid = [each for each in checked if not each["valid"]]
    if as_json:
        console.result(console.as_json(valid=not invalid, files=checked))
    elif invalid:
        mistakes = sum(len(each["problems"]) for each in invalid)
        of = f" in {len(invalid)} of {len(checked)} files" if len(checked) > 1 else ""
        console.say(f"{count(mistakes, 'mistake')}{of}")
    if invalid:
        raise typer.Exit(2)


def problems_of(error: UsageError, file: Path) -> list[Json]:
    if isinstance(error, WorkflowInvalid):
        return [each.as_json() for each in error.diagnostics]
    return [{"code": error.code, "message": error.message, "file": str(file), "help": [error.fix] if error.fix else []}]


def _asks(each: selection.ModelUse) -> dict[str, Json]:
    return {
        "node": each.node.id,
        "type": each.node.type,
        "place": each.place,
        "model": each.model,
        "budget": str(each.node.allowance),
        "default": getattr(each.node, "budget", None) is None,
    }


def _lines(asking: list[dict[str, Json]], loaded: workflow.Loaded) -> list[str]:
    return [
        joined(
            f"    {each['node']}",
            each["type"],
            f"model {one_line(each['model'])}" if each["model"] is not None else "",
            f"budget {each['budget']}{' (default)' if each['default'] else ''}",
            "" if each["place"].startswith(f"{loaded.path}:") else escapes.line(each["place"]),
        )
        for each in asking
    ]
