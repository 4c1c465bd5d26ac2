"""Prepares a run: checks its file, its inputs and its secrets. Writes nothing."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from nodes.errors import RunOpsError, UsageError
from nodes.values import Json
from runtime.language import callees, reader, workflow
from runtime.secrets import masking, sources


@dataclasses.dataclass(frozen=True, slots=True)
class Prepared:
    """A workflow that was checked and can run, with everything that a run of it gets. Nothing is written yet."""

    loaded: workflow.Loaded
    inputs: Mapping[str, Json]
    """Value of every input, typed."""
    secrets: Mapping[str, str] = dataclasses.field(repr=False)


def prepare(loaded: workflow.Loaded, inputs: Mapping[str, Json], source: sources.SecretSource) -> Prepared:
    """Check what a run of ``loaded`` needs. ``inputs`` may be text (from a command line) or values. Writes nothing.

    Raises RunOpsError if the run cannot start: inputs, origins, secrets, a secret in the file or in an input.
    """
    typed = loaded.check_inputs(inputs)
    loaded.origins(typed)
    known = sources.read(source, loaded.workflow.secrets, loaded.path.parent)
    masker = masking.Masker(known)
    _refuse_secret_in_file(loaded, masker)
    if masker.json(typed) != typed:
        named = ", ".join(f"`{name}`" for name, value in typed.items() if masker.json(value) != value)
        raise UsageError(
            "secret-in-input",
            f"the input {named} holds a secret, and inputs are kept in the log",
            fix="give it as a secret (`secrets:` in the file, the value in the environment) or without it",
        )
    return Prepared(loaded, typed, known)


def _refuse_secret_in_file(loaded: workflow.Loaded, masker: masking.Masker) -> None:
    """Refuse a secret in the file or in one that it uses. A comment may contain it.

    The stored text is masked, and a resumed run uses that text: a mask outside comments would become a value.
    """
    hidden = {path: masker.text(text) for path, text in loaded.texts().items()}
    touched = [each for each in loaded.files() if masker.text(each.text) != each.text]
    if not touched:
        return
    try:
        files = callees.Texts(hidden, str(loaded.path.parent))
        if workflows(reader.parse(masker.text(loaded.text), str(loaded.path), files)) == workflows(loaded):
            return
    except RunOpsError:
        pass
    places = [(each.path, number) for each in touched if (number := _line_with_secret(each.text, masker))]
    file, number = places[0] if places else (touched[0].path, 1)
    raise UsageError(
        "secret-in-file",
        f"{file}:{number}: a secret stands in the workflow file itself",
        fix="write `{{ secrets.NAME }}` in its place; if it only happens to be the same text, choose another secret",
    )


def _line_with_secret(text: str, masker: masking.Masker) -> int | None:
    lines = enumerate(zip(text.splitlines(), masker.text(text).splitlines(), strict=False), start=1)
    return next((n for n, (line, hidden) in lines if line != hidden and not line.lstrip().startswith("#")), None)


def workflows(loaded: workflow.Loaded) -> list[workflow.Workflow]:
    return [each.workflow for each in loaded.files()]
