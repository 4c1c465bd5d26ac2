"""``runops schema``: the JSON Schemas of workflow files and of commands' output."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from nodes.errors import UsageError
from runtime.cli import console, flags
from runtime.display import escapes
from runtime.report import schemas
from runtime.system import regular_files


def schema(
    of: Annotated[schemas.Name, flags.option("--of", "The schema to print.")] = "workflow",
    output: Annotated[Path | None, flags.option("--output, -o FILE", "Write it there.")] = None,
) -> None:
    """Print the JSON Schema (draft 2020-12) of workflow files, so that an editor can complete and check them.

    Most editors find it by a first line such as `# yaml-language-server: $schema=./runops.schema.json`. With `--of` it is the schema of JSON
    output: of `show` (`run`, `session`), `resume` (`run-ending`), `run` (`batch-ending`), `chat`, `build`, `repair`.
    """
    text = escapes.as_json(schemas.schema_of(of), indent=2)
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
