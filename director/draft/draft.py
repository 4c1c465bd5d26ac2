"""The workflow that a session builds: YAML text in the language of workflow files, read and checked by the file's own parser."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any

from director.draft import edits, header, layout, node_lists, splices
from runtime.language import callees, reader, workflow, yaml_text
from runtime.language.diagnostics import Diagnostic, Source, WorkflowInvalid

NAME = "draft.yaml"
"""What the draft is called where something is wrong with it."""

Limits = Callable[["Draft"], Sequence[Diagnostic]]
"""What a draft may not, though it is valid: each with its place in the draft."""


@dataclasses.dataclass(frozen=True)
class Draft:
    """One version of it. It never changes: whoever adds something gets another one."""

    text: str
    loaded: workflow.Loaded
    files: callees.Files | None = None

    @classmethod
    def of(cls, text: str, files: callees.Files | None = None) -> Draft:
        """The draft with this text. Raises WorkflowInvalid with every mistake in it; ``files`` are those that it may use."""
        return cls(text, reader.parse(text, NAME, files), files)

    @classmethod
    def begun(cls, head: str, nodes: str, files: callees.Files | None = None, limits: Limits | None = None) -> Draft:
        """A draft with its first nodes: ``head`` is all of the file but ``nodes``, such as ``version: 1`` and the ``name``.

        Keys of a head that stand beside ``nodes`` in what is given change it, as ``with_head`` would. Raises WorkflowInvalid.
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
        """Its nodes as a short tree, with their positions."""
        return self.layout.outline()

    def summary(self) -> str:
        """What it is called and for, what it declares, and how large it is."""
        file = self.loaded.workflow
        lines = [f"draft of {file.name}", *([f"For: {file.description}"] if file.description else [])]
        lines += [f"Inputs: {', '.join(file.inputs)}"] if file.inputs else []
        lines += [f"Secrets: {', '.join(file.secrets)}"] if file.secrets else []
        return "\n".join([*lines, f"Nodes: {self.layout.kinds()}"])

    def with_nodes(self, nodes: str, after: str | None = None, limits: Limits | None = None) -> Draft:
        """The draft with further nodes, given as YAML text: a list of them, or one.

        ``after`` is a node, behind which they come in the same block; ``ID/`` or ``ID/BLOCK``: they begin that block; ``/``: they begin the file; None:
        they end it.
        Nothing is done where anything is wrong, here as in the other edits: raises WorkflowInvalid with every mistake at its place in the text that was
        given, or in the draft as it is, and ModelError for what cannot be done.
        """
        return self._edited(self._editor.created(edits.given(nodes), after), limits)

    def with_updates(self, nodes: str, node: str | None = None, limits: Limits | None = None) -> Draft:
        """The draft with another text for ``node``; without it, for each node that is given, by its id."""
        return self._edited(self._editor.updated(edits.given(nodes), node), limits)

    def with_moved(self, ids: Sequence[str], after: str | None, limits: Limits | None = None) -> Draft:
        """The draft with these nodes elsewhere, in this order; ``after`` as in ``with_nodes``."""
        return self._edited(self._editor.moved(ids, after), limits)

    def without(self, ids: Sequence[str], limits: Limits | None = None) -> Draft:
        """The draft without these nodes, and what is in them."""
        return self._edited(self._editor.deleted(ids), limits)

    def with_head(self, head: str, limits: Limits | None = None) -> Draft:
        """The draft with another head: a map of its keys, which replace those that are there; null takes one away, and inputs are taken in by name."""
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
    """The draft as an edit makes it, with a byte order mark where there was one. What is written is read again: it must say what was meant."""
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
