"""The files that a draft may use: those of the project and folder in which it will be saved."""

from __future__ import annotations

from pathlib import Path

from nodes.errors import UsageError
from runtime.language import callees, reader, workflow, yaml_text
from runtime.language.diagnostics import WorkflowInvalid
from runtime.system import regular_files


def text_of(file: Path) -> str:
    """Return the exact text of a workflow file, with its line ends and byte order mark. Raises UsageError ``file-not-found``."""
    try:
        return regular_files.read(file).decode()
    except (OSError, UnicodeError) as error:
        raise UsageError("file-not-found", f"{file} cannot be read: {error}", fix="name the file") from None


class Beside:
    """Implements ``callees.Files`` for a draft that is not saved yet."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def read(self, name: str) -> bytes:
        """Return the content of a file of the project that is a valid workflow. Raises Unusable.

        A mistake is shown with its lines, and a model must not see files that are no workflows.
        """
        project = callees.Project(workflow.workspace(self._folder))
        path = callees.joined(str(self._folder), name)
        try:
            text = project.read(path)
        except callees.Unusable as error:
            # Name the file as the draft does.
            raise callees.Unusable(error.code, error.message.replace(path, name), *error.fix) from None
        if len(text) <= yaml_text.LARGEST_FILE:
            try:
                reader.parse(text, path, project)
            except WorkflowInvalid:
                raise callees.Unusable(
                    "use-not-valid",
                    f"{name} is no valid workflow",
                    "use another one, or ask the person to fix it: `runops validate` shows what is wrong",
                ) from None
        return text
