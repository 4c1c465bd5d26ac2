"""``runops schema``: the JSON Schema of workflow files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nodes.errors import UsageError
from runtime import regular
from runtime.cli import console
from runtime.display import escapes
from runtime.language.schema import workflow_schema


def schema(
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write it there.", show_default=False)
    ] = None,
) -> None:
    """Print the JSON Schema of workflow files (draft 2020-12), so that an editor can complete and check them.

    Most editors take it from a first line such as `# yaml-language-server: $schema=./runops.schema.json`.
    """
    text = escapes.as_json(workflow_schema(), indent=2)
    if output is None:
        console.result(text)
        return
    try:
        regular.write(output, f"{text}\n".encode())
    except OSError as error:
        raise UsageError(
            "file-not-written", f"{output} cannot be written: {error.strerror}", mend=regular.fix(error)
        ) from None
    console.say(f"wrote {escapes.line(str(output))}")
