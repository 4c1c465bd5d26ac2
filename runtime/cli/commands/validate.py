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
from runtime.display.text import count, one_line
from runtime.language import hints, reader, workflow
from runtime.language.checks import sql
from runtime.language.diagnostics import WorkflowInvalid
from runtime.models import selection
from runtime.services import functions
from runtime.settings import settings


def validate(
    files: Annotated[list[Path], flags.argument("FILES...", "Workflow files.")], as_json: flags.JsonFlag = False
) -> None:
    """Check workflow files, without a browser or the network.

    Prints a line for each valid file on stdout, below it the nodes that ask a model with what each may spend. On stderr it prints every
    mistake with its place, and hints: what a valid file could say better. Exit code 2 if there is a mistake.
    """
    told: list[dict[str, Json]] = []
    allowed = settings.load().python_modules
    for file in files:
        try:
            loaded = reader.load(file)
            functions.check(loaded, allowed)
            if problems := sql.check(loaded):
                raise WorkflowInvalid(problems, str(file))
        except UsageError as error:
            wrong = problems_of(error, file)
            told.append({"file": str(file), "valid": False, "problems": wrong, "hints": [], "models": []})
            if not as_json:
                said = error.render() if isinstance(error, WorkflowInvalid) else console.failure(error)
                console.say(f"{said}\n")
        else:
            asking = [_asks(each) for each in selection.asking(loaded)]
            better = [each.diagnostic for each in hints.of(loaded)]
            shown: list[Json] = [each.as_json() for each in better]
            told.append({"file": str(file), "valid": True, "problems": [], "hints": shown, "models": asking})
            if not as_json:
                console.result("\n".join([f"ok  {escapes.line(str(file))}", *_lines(asking, loaded)]))
                for each in better:
                    console.say(f"{each.render(colour=coloured(Talk(sys.stderr)))}\n")
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
        "  ".join(
            filter(
                None,
                [
                    f"    {each['node']}",
                    each["type"],
                    f"model {one_line(each['model'])}" if each["model"] is not None else "",
                    f"budget {each['budget']}{' (default)' if each['default'] else ''}",
                    "" if each["place"].startswith(f"{loaded.path}:") else escapes.line(each["place"]),
                ],
            )
        )
        for each in asking
    ]
