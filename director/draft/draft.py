"""The workflow that a session builds: YAML text in the language of workflow files, read and checked by the parser of workflow files."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence

from director.draft import edits, header, layout
from director.draft.lines import ended, shifted, unsuited
from runtime.language import callees, reader, workflow, yaml_text
from runtime.language.diagnostics import Diagnostic, WorkflowInvalid

NAME = "draft.yaml"  # name of the draft in diagnostics

Limits = Callable[["Draft"], Sequence[Diagnostic]]
"""Returns what a draft may not contain although it is valid, each with its place in the draft."""


@dataclasses.dataclass(frozen=True)
class Draft:
    """One version of the draft. It is immutable: each edit returns a new one, checked by ``limits``, or changes nothing.

    Edits raise WorkflowInvalid with every mistake, each with its node and field, and ModelError if they are not possible.
    """

    text: str
    loaded: workflow.Loaded
    files: callees.Files | None = None

    @classmethod
    def of(cls, text: str, files: callees.Files | None = None) -> Draft:
        """Return the draft with this text; ``files`` are those that it may use. Raises WorkflowInvalid with every mistake in it."""
        return cls(text, reader.parse(text, NAME, files), files)

    @classmethod
    def begun(cls, head: str, nodes: str, files: callees.Files | None = None, limits: Limits | None = None) -> Draft:
        """Return a draft with its first nodes: ``head`` is all of the file but ``nodes``, such as ``version: 1`` and the ``name``.

        Keys given next to ``nodes`` change the head, as ``with_head`` does.
        """
        if more := header.beside_nodes(nodes):
            head = header.changed(yaml_text.read(NAME, head), more).text
        new = edits.given(nodes, whole=True)
        lines = [line for each in new for line in shifted(each.lines, 2)]
        text = "\n".join([head.rstrip(), "", "nodes:", *lines, ""])
        data = {**yaml_text.read(NAME, head).data, "nodes": [each.data for each in new]}
        return _made(edits.Edit(text, data), "", files, limits)

    @functools.cached_property
    def layout(self) -> layout.Layout:
        return layout.Layout(self.loaded.document)

    def outline(self) -> str:
        return self.layout.outline()

    def summary(self) -> str:
        """Return its name, purpose, declarations and size."""
        file = self.loaded.workflow
        lines = [f"draft of {file.name}", *([f"For: {file.description}"] if file.description else [])]
        lines += [f"Inputs: {', '.join(file.inputs)}"] if file.inputs else []
        lines += [f"Secrets: {', '.join(file.secrets)}"] if file.secrets else []
        return "\n".join([*lines, f"Nodes: {self.layout.kinds()}"])

    def with_nodes(self, nodes: str, after: str | None = None, limits: Limits | None = None) -> Draft:
        """Return the draft with further nodes, given as YAML text: a list of them, or one.

        ``after`` is a node: the new ones follow it in the same block. ``ID/`` or ``ID/BLOCK`` puts them first in that block, ``/``
        first in the file, None last in the file.
        """
        return self._edited(self._editor.created(edits.given(nodes), after), limits)

    def with_updates(self, nodes: str, node: str | None = None, limits: Limits | None = None) -> Draft:
        """Return the draft with a new text for ``node``; without ``node``, for each given node by its id."""
        return self._edited(self._editor.updated(edits.given(nodes), node), limits)

    def with_moved(self, ids: Sequence[str], after: str | None, limits: Limits | None = None) -> Draft:
        """Return the draft with these nodes moved, in this order; ``after`` as in ``with_nodes``."""
        return self._edited(self._editor.moved(ids, after), limits)

    def without(self, ids: Sequence[str], limits: Limits | None = None) -> Draft:
        """Return the draft without these nodes and the nodes in them."""
        return self._edited(self._editor.deleted(ids), limits)

    def with_head(self, head: str, limits: Limits | None = None) -> Draft:
        """Return the draft with a changed head. ``head`` maps keys to new values; null removes a key, and inputs are merged by name."""
        return self._edited(header.changed(self._document, head), limits)

    @property
    def _editor(self) -> edits.Editor:
        return edits.Editor(self._document, self.loaded.places, self.layout)

    @property
    def _document(self) -> yaml_text.Document:
        text = self.loaded.document.source.text
        return self.loaded.document if ended(text) == text else yaml_text.read(NAME, ended(text))

    def _edited(self, edit: edits.Edit, limits: Limits | None) -> Draft:
        return _made(edit, "\ufeff" if self.text.startswith("\ufeff") else "", self.files, limits)


def _made(edit: edits.Edit, mark: str, files: callees.Files | None, limits: Limits | None) -> Draft:
    """Return the draft as an edit makes it, with its byte order mark kept. The text is parsed again: it must yield the intended data."""
    document = yaml_text.read(NAME, edit.text)
    if document.problems or document.data != edit.data:
        raise unsuited("the text would say something else than was meant")
    try:
        made = Draft.of(f"{mark}{edit.text}", files)
        problems = limits(made) if limits is not None else ()
        if problems:
            raise WorkflowInvalid(problems, NAME)
    except WorkflowInvalid as error:
        laid = layout.Layout(document)
        raise WorkflowInvalid([_located(each, laid) for each in error.diagnostics], NAME) from None
    return made


def _located(problem: Diagnostic, laid: layout.Layout) -> Diagnostic:
    """Return the mistake with its node and field: its line is of no draft that anybody has seen."""
    where = laid.where(problem.mark.start) if problem.mark is not None and problem.file == NAME else ""
    return dataclasses.replace(problem, message=f"`{where}`: {problem.message}") if where else problem
