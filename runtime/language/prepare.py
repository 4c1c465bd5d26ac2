"""Prepares a run: checks its file, its inputs and its secrets. Writes nothing."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping, Sequence

from nodes.errors import RunOpsError, UsageError
from nodes.values import Json
from runtime.language import callees, node_tree, reader, workflow
from runtime.secrets import masking, sources

SECRET_REFERENCE = re.compile(r"\bsecrets\.\w+")


@dataclasses.dataclass(frozen=True, slots=True)
class Prepared:
    """A checked workflow, with the inputs and secrets of a run."""

    loaded: workflow.Loaded
    inputs: Mapping[str, Json]
    secrets: Mapping[str, str] = dataclasses.field(repr=False)


def prepare(loaded: workflow.Loaded, inputs: Mapping[str, Json], source: sources.SecretSource) -> Prepared:
    """Check what a run of ``loaded`` needs. ``inputs`` may be text (from a command line) or values. Writes nothing.

    Raises RunOpsError if the run cannot start: inputs, origins, secrets, a secret in the file or in an input.
    """
    typed = loaded.check_inputs(inputs)
    loaded.origins(typed)
    known = sources.read(source, loaded.workflow.secrets, loaded.path.parent)
    masker = masking.Masker(known)
    _check_no_secret_in_file(loaded, masker)
    if masker.json(typed) != typed:
        named = ", ".join(f"`{name}`" for name, value in typed.items() if masker.json(value) != value)
        message = f"the input {named} holds the secret {', '.join(masker.named(typed))}, and inputs are kept in the log"
        fix = "give it as a secret (`secrets:` in the file, the value in the environment) or without it"
        raise UsageError("secret-in-input", message, fix=fix)
    return Prepared(loaded, typed, known)


def _check_no_secret_in_file(loaded: workflow.Loaded, masker: masking.Masker) -> None:
    """Refuse a secret in the file or in one that it uses. A comment may contain it.

    The stored text is masked, and a resumed run uses that text: a mask outside comments would become a value.
    A secret that equals an ordinary word is stored as that word, so it counts only where it would be typed or sent.
    """
    for file in loaded.files():
        for path, text in node_tree.texts_for_secrets(file.workflow):
            if names := masker.words_in(SECRET_REFERENCE.sub("", text)):
                mark = file.document.mark(path)
                raise _in_file(loaded, f"{file.path}:{mark.line}:{mark.column}" if mark else str(file.path), names)
    masker = masker.but_words
    hidden = {path: masker.text(text) for path, text in loaded.texts().items()}
    touched = [each for each in loaded.files() if masker.holds(each.text)]
    if not touched:
        return
    try:
        files = callees.Texts(hidden, str(loaded.path.parent))
        if workflows(reader.parse(masker.text(loaded.text), str(loaded.path), files)) == workflows(loaded):
            return
    except RunOpsError:
        pass
    places = [(each, number) for each in touched if (number := _line_with_secret(each.text, masker))]
    file, number = places[0] if places else (touched[0], 1)
    raise _in_file(loaded, f"{file.path}:{number}", masker.named(file.text))


def _in_file(loaded: workflow.Loaded, place: str, names: Sequence[str]) -> UsageError:
    return UsageError(
        "secret-in-file",
        f"{place}: the value of the secret {', '.join(names)} is in the workflow file itself",
        fix=f"write `{{{{ secrets.{names[0]} }}}}` in its place, then `runops run {loaded.path}`; if it is the same text by chance, choose another secret",
    )


def _line_with_secret(text: str, masker: masking.Masker) -> int | None:
    lines = enumerate(zip(text.splitlines(), masker.text(text).splitlines(), strict=False), start=1)
    return next((n for n, (line, hidden) in lines if line != hidden and not line.lstrip().startswith("#")), None)


def workflows(loaded: workflow.Loaded) -> list[workflow.Workflow]:
    return [each.workflow for each in loaded.files()]
