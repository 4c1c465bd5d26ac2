"""The workflow that a session builds: YAML text in the language of workflow files, read and checked by the file's own parser."""

from __future__ import annotations

import dataclasses
import functools

from director import layout
from nodes import registry
from nodes.errors import ModelError
from runtime.language import callees, workflow, yaml_text
from runtime.language.diagnostics import WorkflowInvalid

NAME = "draft.yaml"
"""What the draft is called where something is wrong with it."""

NODES = "nodes"
"""What nodes are called that are to be added, where something is wrong with these alone."""


@dataclasses.dataclass(frozen=True)
class Draft:
    """One version of it. It never changes: whoever adds something gets another one."""

    text: str
    loaded: workflow.Loaded
    files: callees.Files | None = None

    @classmethod
    def of(cls, text: str, files: callees.Files | None = None) -> Draft:
        """The draft with this text. Raises WorkflowInvalid with every mistake in it; ``files`` are those that it may use."""
        return cls(text, workflow.parse(text, NAME, files), files)

    @classmethod
    def begun(cls, head: str, nodes: str, files: callees.Files | None = None) -> Draft:
        """A draft with its first nodes: ``head`` is all of the file but ``nodes``, such as ``version: 1`` and the ``name``. Raises WorkflowInvalid."""
        items = _items(nodes)
        return cls.of(f"{head.rstrip()}\nnodes:\n{layout.indented(items, 2)}\n", files)

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

    def with_nodes(self, nodes: str, after: str | None = None) -> Draft:
        """The draft with further nodes, given as YAML text: a list of them, or one. They stand behind the node ``after``, in the same block; else at the end.

        Nothing is added where anything is wrong: raises WorkflowInvalid with the mistakes in the nodes, or in the draft as it would be, and
        ModelError ``node-unknown``.
        """
        items = _items(nodes)
        text, stop, column = self._place(after)
        added = layout.indented(items, column)
        rest = text[stop:]
        # What stands behind the last node on its line is a comment, and stays with it.
        line, newline, further = rest.partition("\n")
        return Draft.of(f"{text[:stop]}{line}\n{added}{newline or chr(10)}{further}", self.files)

    def _place(self, after: str | None) -> tuple[str, int, int]:
        """The text, where in it the node ends behind which others come, and how far to the right the items of its list stand."""
        if after is not None and after not in self.loaded.places:
            close = registry.near(after, self.loaded.places)
            raise ModelError(
                "node-unknown",
                f"the draft has no node `{after[:80]}`",
                mend=f"did you mean `{close}`?" if close else "the outline lists the nodes",
            )
        path = self.loaded.places[after] if after is not None else self._last()
        document = self.loaded.document
        of_list, stop = document.values[path[:-1]], layout.end_of(document, path)
        text = document.source.text
        if text[of_list.start] != "[":
            return text, stop, of_list.column - 1
        # A list in brackets gets lines of its own, at the column of what it belongs to.
        owner = document.keys[path[:-1]]
        number = int(path[-1])
        paths = [(*path[:-1], each) for each in range(len(document.values))]
        marks = [document.values[each] for each in paths if each in document.values]
        lines = [layout.indented(layout.item(text, each.start, each.stop), owner.column - 1) for each in marks]
        head = text[: of_list.start].rstrip(" ")
        before = f"{head}\n" + "\n".join(lines[: number + 1])
        behind = "".join(f"\n{each}" for each in lines[number + 1 :])
        return f"{before}{behind}{text[of_list.stop :]}", len(before), owner.column - 1

    def _last(self) -> yaml_text.Path:
        """Where the last node at the top stands."""
        return ("nodes", len(self.loaded.workflow.nodes) - 1)


def _items(nodes: str) -> str:
    """The nodes of a text as items of a list, at the left margin; raises WorkflowInvalid where it is no YAML, or holds no node."""
    document = yaml_text.read(NODES, nodes)
    if document.problems:
        raise WorkflowInvalid(document.problems, NODES)
    data = document.data
    if isinstance(data, dict) and set(data) == {"nodes"}:
        paths: list[yaml_text.Path] = [("nodes", number) for number in range(len(data["nodes"] or ()))]
    elif isinstance(data, dict):
        paths = [()]
    else:
        paths = [(number,) for number in range(len(data))] if isinstance(data, list) else []
    if not paths:
        problem = document.source.diagnostic(
            "not-a-list", "this is no list of nodes", document.mark(()), help=["write `- id: …` for each node"]
        )
        raise WorkflowInvalid([problem], NODES)
    text = document.source.text
    return "\n".join(layout.item(text, document.values[path].start, layout.end_of(document, path)) for path in paths)
