"""The workflow that a session builds: YAML text in the language of workflow files, read and checked by the parser of workflow files."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any

from director.draft import edits, header, layout, node_lists, splices
from runtime.language import callees, reader, workflow, yaml_text
from runtime.language.diagnostics import Diagnostic, Source, WorkflowInvalid

NAME = "draft.yaml"
"""Name of the draft in diagnostics."""

Limits = Callable[["Draft"], Sequence[Diagnostic]]
"""Returns what a draft may not contain although it is valid, each with its place in the draft."""


@dataclasses.dataclass(frozen=True)
class Draft:
    """One version of the draft. It is immutable: each edit returns a new one."""

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

        Keys given next to ``nodes`` change the head, as ``with_head`` does. Raises WorkflowInvalid.
        """
        if more := header.beside_nodes(nodes):
            head = header.changed(yaml_text.read(NAME, splices.ended(head)), more).patched.text
        new = edits.given(nodes, whole=True)
        source = Source(NAME, f"{head.rstrip()}\n\nnodes:\n")
        cuts = [splices.cut(source, 0, len(source.text))]
        for number, each in enumerate(new.items):
            empty = number and new.gaps and not new.gaps[number - 1].strip() and new.gaps[number - 1]
            cuts += [
                splices.put("\n" if empty else "", source, len(source.text)),
                *each.in_lines(node_lists.INDENT, "\n"),
            ]
            cuts.append(splices.put("\n", source, len(source.text)))
        data: Any = yaml_text.read(NAME, head).data
        return _made(edits.Edit(splices.Patched(cuts), {**data, "nodes": new.data}), "", files, limits)

    @functools.cached_property
    def layout(self) -> layout.Layout:
        """Its nodes by position."""
        return layout.Layout(self.loaded.document)

    def outline(self) -> str:
        """Return its nodes as a short tree, with their positions."""
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
        If anything is wrong, nothing changes, as in the other edits. Raises WorkflowInvalid with every mistake at its place in the
        given text or in the draft, and ModelError for an impossible edit.
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
        whole = splices.ended(text)
        return self.loaded.document if whole == text else yaml_text.read(NAME, whole)

    def _edited(self, edit: edits.Edit, limits: Limits | None) -> Draft:
        mark = self.text[: len(self.text) - len(self.text.removeprefix("\ufeff"))]
        return _made(edit, mark, self.files, limits)


def _made(edit: edits.Edit, mark: str, files: callees.Files | None, limits: Limits | None) -> Draft:
    """Return the draft as an edit makes it, with its byte order mark kept. The text is parsed again: it must yield the intended data."""
    try:
        made = Draft.of(f"{mark}{edit.patched.text}", files)
        problems = limits(made) if limits is not None else ()
        if problems:
            raise WorkflowInvalid(problems, NAME)
    except WorkflowInvalid as error:
        back = [edit.patched.back(each) if each.file == NAME else each for each in error.diagnostics]
        raise WorkflowInvalid(back, NAME) from None
    if made.loaded.document.data != edit.data:
        raise splices.unsuited("the text would say something else than was meant")
    return made
