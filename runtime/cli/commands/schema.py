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
    of: Annotated[
        schemas.Name,
        flags.option(
            "--of NAME",
            "Of what: `workflow` files; `run` or `session` (`show --json`); `run-ending` (`resume --json`), `batch-ending` (`run --json`), `chat-ending`, `build-ending`, `repair-ending`.",
        ),
    ] = "workflow",
    output: Annotated[Path | None, flags.option("--output, -o FILE", "Write it there.")] = None,
) -> None:
    """Print the JSON Schema of workflow files (draft 2020-12), so that an editor can complete and check them; or that of a report.

    Most editors take it from a first line such as `# yaml-language-server: $schema=./runops.schema.json`.
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
