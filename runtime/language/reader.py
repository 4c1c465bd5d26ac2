"""Reads a workflow file and the files that it uses, and reports every mistake in them."""

from __future__ import annotations

import pathlib
from typing import cast

from pydantic import ValidationError

from nodes import errors
from nodes.errors import UsageError
from nodes.values import Json
from runtime.language import callees, origins, workflow, yaml_text
from runtime.language.checks import declarations, model_errors, names
from runtime.language.diagnostics import Diagnostic, WorkflowInvalid
from runtime.language.expressions import references
from runtime.language.expressions.references import Compiled, ReferenceInvalid
from runtime.language.node_tree import Anatomy
from runtime.language.yaml_text import Document
from runtime.system import regular_files

INSTEAD = {"sql": "write `$name` and give the value as one of `params`; a list of maps is a table by its name"}
"""Fixes for fields that take no references but need values."""


def load(path: pathlib.Path | str) -> workflow.Loaded:
    """Read a workflow file and those that it uses. Raises WorkflowInvalid with every mistake, UsageError if it cannot be read."""
    path = pathlib.Path(path)
    if path.name == ".env" or path.name.startswith(".env."):
        # Diagnostics show the lines of a file.
        raise UsageError("file-not-read", f"{path} holds secrets, and is no workflow", fix="name a workflow file")
    try:
        str(path.absolute()).encode()
    except UnicodeEncodeError:
        # A log is UTF-8 text and contains the path.
        message = f"the path {str(path)!r} is not in UTF-8"
        raise UsageError("file-not-read", message, fix="rename the file, or its folder") from None
    try:
        with regular_files.opened(path) as file:
            content = file.read(yaml_text.LARGEST_FILE + 1)
    except FileNotFoundError:
        close = errors.near(path.name, [pathlib.PurePath(each).name for each in callees.workflows_in(path.parent)])
        fix = f"did you mean {path.parent / close}?" if close else None
        raise UsageError("file-not-found", f"there is no file {path}", fix=fix) from None
    except IsADirectoryError:
        raise UsageError("not-a-file", f"{path} is a folder", fix="name the workflow file in it") from None
    except OSError as error:
        message = f"{path} cannot be read: {error.strerror}"
        raise UsageError("file-not-read", message, fix=regular_files.fix(error)) from None
    return parse(content, str(path), callees.Project(workflow.workspace(path.absolute().parent)))


def parse(content: str | bytes, name: str, files: callees.Files | None = None) -> workflow.Loaded:
    """Read a workflow from a text, called ``name`` in messages. ``files`` provides the files that it uses; by default none.

    Raises WorkflowInvalid with every mistake in all of them: file by file in order of use, each in the order of its text.
    """
    reading = _Reading(files or callees.Texts({}))
    loaded = reading.file(content, name, ())
    if loaded is None or reading.problems:
        raise WorkflowInvalid(
            [each for problems in reading.problems.values() for each in workflow.in_order(problems)], name
        )
    return loaded


class _Reading:
    """Reads a file and those that it uses, each once, and collects their mistakes."""

    def __init__(self, files: callees.Files) -> None:
        self.problems: dict[str, list[Diagnostic]] = {}  # by path of the file; only files with mistakes
        self._files = files
        self._read: dict[str, workflow.Loaded | None] = {}
        self._root: workflow.Workflow | None = None

    def file(self, content: str | bytes, name: str, users: tuple[str, ...]) -> workflow.Loaded | None:
        """Return the workflow in a text, or None if it or a file below it is invalid. ``users`` are the files that use it, root first."""
        document = yaml_text.read(name, content)
        problems = self.problems.setdefault(name, list(document.problems))
        try:
            return self._workflow(document, problems, name, users)
        finally:
            if not problems:
                del self.problems[name]

    def _workflow(
        self, document: Document, problems: list[Diagnostic], name: str, users: tuple[str, ...]
    ) -> workflow.Loaded | None:
        if not document.readable:
            return None
        data: Json = document.data
        if not isinstance(data, dict):
            message = "a workflow file is a map that begins with `version: 1`"
            problems.append(document.problem("not-a-workflow", message, ()))
            return None
        anatomy = Anatomy(cast("dict[str, Json]", data), workflow.Workflow)
        problems += model_errors.misspelt(anatomy, document)
        parsed: workflow.Workflow | None = None
        try:
            parsed = workflow.Workflow.model_validate(anatomy.clean)
        except ValidationError as error:
            problems += model_errors.explain(error, anatomy, document)
        if parsed is not None:
            problems += declarations.check_tests(parsed, document)
        templates = _compiled(anatomy, document, problems)
        problems += names.check(anatomy, templates, document)
        problems += origins.check(anatomy, document)
        problems += declarations.check_tabs(anatomy, document)
        if not users:
            self._root = parsed
        elif parsed is not None and self._root is not None and parsed.browser not in (None, self._root.browser):
            has = "has no `browser`" if self._root.browser is None else "makes another one"
            message = f"this file works in the browser of {users[0]}, which {has}"
            fix = "leave `browser` out here, or write the same there"
            problems.append(document.problem("browser-differs", message, ("browser",), fix))
        elif parsed is not None and self._root is not None and parsed.dismiss not in ([], self._root.dismiss):
            message = f"this file works in the browser of {users[0]}, which dismisses other overlays"
            fix = "leave `dismiss` out here, or write the same there"
            problems.append(document.problem("dismiss-differs", message, ("dismiss",), fix))
        if self._root is not None and self._root.browser is not None and self._root.browser.engine != "chromium":
            secrets = bool(self._root.secrets or (parsed is not None and parsed.secrets))
            problems += declarations.check_engine(anatomy, document, self._root.browser.engine, secrets=secrets)
        used = self._callees(anatomy, document, problems, (*users, name))
        if problems or parsed is None or None in used.values():
            return None
        if not parsed.name:
            parsed = parsed.model_copy(update={"name": pathlib.PurePath(name).stem})
        index = dict(workflow.indexed(parsed.nodes, ()))
        return workflow.Loaded(
            path=pathlib.Path(name),
            text=document.source.text,
            workflow=parsed,
            templates=templates,
            index=index,
            fingerprints={each: workflow.fingerprint(node) for each, (node, _around) in index.items()},
            document=document,
            places={unit.id: unit.path for unit in anatomy.every_unit() if unit.id},
            callees={each: loaded for each, loaded in used.items() if loaded is not None},
        )

    def _callees(
        self, anatomy: Anatomy, document: Document, problems: list[Diagnostic], users: tuple[str, ...]
    ) -> dict[str, workflow.Loaded | None]:
        calls = callees.Calls(anatomy, document)
        used: dict[str, workflow.Loaded | None] = {}
        for unit in callees.units(anatomy):
            callee: workflow.Loaded | None = None
            try:
                callee = self._callee(str(unit.text("use")), users)
            except callees.Unusable as error:
                calls.report(unit, "use", error.code, error.message, *error.fix)
            if callee is not None:
                calls.check_inputs(unit, callee.workflow, str(callee.path))
                calls.check_secrets(unit, callee.workflow, str(callee.path))
            used[unit.id or ""] = callee
        problems += calls.problems
        return used

    def _callee(self, use: str, users: tuple[str, ...]) -> workflow.Loaded | None:
        name = callees.named(users[-1], use)
        chain = (callees.joined("", users[0]), *users[1:])
        if name in chain:
            circle = " → ".join((*chain[chain.index(name) :], name))
            raise callees.Unusable("use-cycle", f"the file would use itself: {circle}", "take one of these `use:` out")
        if len(users) <= callees.DEEPEST and name not in self._read:
            content = self._files.read(name)
            self._read[name] = self.file(content, name, users)
        callee = self._read.get(name)
        if len(users) + (callee.depth if callee is not None else 0) > callees.DEEPEST:
            message = f"more than {callees.DEEPEST} files use one another in a row"
            raise callees.Unusable("use-too-deep", message, "let one file use several others, rather than one the next")
        return callee


def _compiled(anatomy: Anatomy, document: Document, problems: list[Diagnostic]) -> dict[str, Compiled]:
    compiled: dict[str, Compiled] = {}
    for slot in anatomy.every_slot():
        if slot.ref is None:
            message, fix = f"`{slot.path[-1]}` takes no references", INSTEAD.get(slot.field, "write the value itself")
            problems.append(document.problem("no-reference-here", message, slot.path, fix))
            continue
        try:
            compiled[slot.text] = references.compile(slot.text)
        except ReferenceInvalid as error:
            mark = document.within(slot.path, slot.text, error.start, error.end)
            problems.append(document.source.diagnostic(error.code, error.message, mark, help=[error.fix]))
    return compiled
