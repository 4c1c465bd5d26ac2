"""Files that a workflow uses: their paths, and checks of the calls.

A file is identified by its normalized path from the root file: ``workflows/shop.yaml`` with ``use: parts/pay.yaml`` uses
``workflows/parts/pay.yaml``. A run stores the texts by that path.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Protocol

from nodes import errors
from nodes.group import Group
from nodes.template import OPENING
from nodes.values import Json
from runtime.language import inputs, yaml_text
from runtime.language.checks.declarations import names_in
from runtime.language.diagnostics import Diagnostic
from runtime.language.node_tree import Anatomy, NodeSource
from runtime.language.yaml_text import Document
from runtime.system import regular_files

if TYPE_CHECKING:
    from runtime.language.workflow import Workflow

SUFFIXES = (".yaml", ".yml")

DEEPEST = 16  # longest chain of files that use one another, without the first one


class Unusable(Exception):
    def __init__(self, code: str, message: str, *fix: str | None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.fix = fix


class Files(Protocol):
    def read(self, name: str) -> bytes | str:
        """Return the text of the file at path ``name``. Raises Unusable."""
        ...


class Texts:
    """Files from texts in memory: those that a run was started with."""

    def __init__(self, texts: Mapping[str, str], folder: str = "") -> None:
        self._texts = {joined(folder, path): text for path, text in texts.items()}

    def read(self, name: str) -> str:
        if name not in self._texts:
            raise _not_found(name, self._texts)
        return self._texts[name]


class Project:
    """Files of a project, read from disk. A file outside it is refused."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder.resolve()

    def read(self, name: str) -> bytes:
        file = Path(name)
        try:
            real = file.resolve()
        except (OSError, RuntimeError) as error:
            raise Unusable("use-not-read", f"{name} cannot be read: {error}") from None
        if not real.is_relative_to(self._folder):
            message = f"{name} is outside the project in {self._folder}"
            raise Unusable("use-outside", message, "a workflow uses files of its own project: copy it there")
        try:
            with regular_files.opened(real) as opened:
                if real.suffix not in SUFFIXES:
                    # Diagnostics show lines of a file, and those of `.env` are private.
                    fix = f"name a workflow file: it ends with {' or '.join(SUFFIXES)}"
                    raise Unusable("use-not-yaml", f"{name} is no YAML file", fix)
                return opened.read(yaml_text.LARGEST_FILE + 1)
        except FileNotFoundError:
            raise _not_found(name, workflows_in(file.parent)) from None
        except IsADirectoryError:
            raise Unusable("use-not-found", f"{name} is a folder", "name the workflow file in it") from None
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else "its name is invalid"
            raise Unusable("use-not-read", f"{name} cannot be read: {reason}", regular_files.fix(error)) from None


def _not_found(name: str, known: Iterable[str]) -> Unusable:
    close = errors.near(name, list(known))
    meant = f"did you mean `{PurePath(close).name}`?" if close else None
    return Unusable("use-not-found", f"there is no file {name}", meant, "the path is relative to this file's folder")


def workflows_in(folder: Path) -> list[str]:
    try:
        return [str(each) for each in folder.iterdir() if each.suffix in SUFFIXES]
    except OSError:
        return []


def joined(folder: str, path: str) -> str:
    return os.path.normpath(os.path.join(folder, path))  # noqa: PTH118 — a PurePath keeps `..`


def named(user: str, use: str) -> str:
    """Return the path that ``use`` in the file ``user`` means. Raises Unusable for an absolute one, which may leave the project."""
    if PurePath(use).is_absolute() or use.startswith("~"):
        raise Unusable("use-outside", f"`{use}` is an absolute path", "write the path from this file's folder")
    return joined(str(PurePath(user).parent), use)


def units(anatomy: Anatomy) -> list[NodeSource]:
    """Return the groups that use a file, in file order. Skips a path with a reference, which is reported as another mistake."""
    groups = (unit for unit in anatomy.every_unit() if unit.model is Group)
    return [unit for unit in groups if (use := unit.text("use")) and OPENING not in use]


class Calls:
    def __init__(self, anatomy: Anatomy, document: Document) -> None:
        self.problems: list[Diagnostic] = []
        self._anatomy = anatomy
        self._document = document

    def report(
        self, unit: NodeSource, field: str, code: str, message: str, *fix: str | None, at: Sequence[str | int] = ()
    ) -> None:
        path = self._anatomy.written((*unit.path, field, *at))
        self.problems.append(self._document.problem(code, message, path, *fix, key=code == "unknown-input"))

    def check_inputs(self, unit: NodeSource, callee: Workflow, file: str) -> None:
        given: Json = unit.data.get("with") or {}
        if not isinstance(given, dict):
            return
        for name, value in given.items():
            declared = callee.inputs.get(name)
            if declared is None:
                fix = errors.did_you_mean(name, callee.inputs, f"it has {', '.join(callee.inputs) or 'none'}")
                self.report(unit, "with", "unknown-input", f"{file} has no input `{name}`", fix, at=[name])
            elif not (isinstance(value, str) and OPENING in value) and (wrong := inputs.mismatch(declared, value)):
                fix = "values are not converted here: write it in that type"
                self.report(unit, "with", "wrong-type", f"`{name}` {wrong}", fix, at=[name])
        missing = [f"`{name}`" for name, each in callee.inputs.items() if each.required and name not in given]
        if missing:
            needs = f"{file} needs the input{'s' if len(missing) > 1 else ''} {', '.join(missing)}"
            self.report(unit, "with" if "with" in unit.data else "use", "missing-input", needs, "give it in `with:`")

    def check_secrets(self, unit: NodeSource, callee: Workflow, file: str) -> None:
        given = names_in(unit.data.get("secrets") or [])
        own = names_in(self._anatomy.clean.get("secrets", []))
        if given is None or own is None:
            return
        for index, name in enumerate(given):
            if name not in callee.secrets:
                fix = errors.did_you_mean(name, callee.secrets, "a file gets only the secrets that it declares")
                self.report(unit, "secrets", "unknown-secret", f"{file} declares no secret `{name}`", fix, at=[index])
            elif name not in own:
                fix = "add it to the `secrets:` of this file"
                self.report(unit, "secrets", "unknown-secret", f"there is no secret `{name}` here", fix, at=[index])
        missing = [name for name in callee.secrets if name not in given]
        if missing:
            needs = f"{file} needs the secret{'s' if len(missing) > 1 else ''} {', '.join(missing)}"
            field = "secrets" if "secrets" in unit.data else "use"
            self.report(unit, field, "missing-secret", needs, f"write `secrets: [{', '.join(callee.secrets)}]`")
