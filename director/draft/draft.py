"""The workflow that a session builds: YAML text, read and checked by the parser of workflow files."""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Collection, Iterable, Sequence

from director.draft import edits, header, layout
from director.draft.lines import Lines, data_at, ended, in_lines, shifted, unsuited
from nodes import errors
from nodes.errors import ModelError
from runtime.language import callees, reader, workflow, yaml_text
from runtime.language.diagnostics import WorkflowInvalid
from runtime.language.yaml_text import Path

NAME = "draft.yaml"  # name of the draft in diagnostics


@dataclasses.dataclass(frozen=True)
class Draft:
    """One immutable version of the draft; each edit returns a new one.

    Edits raise WorkflowInvalid with every mistake, its node and its field, and ModelError if they are not possible.
    """

    text: str
    files: callees.Files | None = None
    checked: bool = True  # False: it may have mistakes, and so may what an edit makes of it

    @classmethod
    def of(cls, text: str, files: callees.Files | None = None) -> Draft:
        """Return the draft with this text, which may use ``files``. Raises WorkflowInvalid with every mistake."""
        return cls(text, files)._read()

    @classmethod
    def begun(cls, head: str, nodes: str, files: callees.Files | None = None, *, checked: bool = True) -> Draft:
        """Return a draft with its first nodes. ``head`` is everything in the file but ``nodes``, such as ``version`` and ``name``.

        Keys given next to ``nodes`` change the head, as ``with_head`` does.
        """
        if more := header.beside_nodes(nodes):
            head = header.changed(yaml_text.read(NAME, head), more).text
        new = edits.given(nodes, whole=True)
        lines = [line for each in new for line in shifted(each.lines, 2)]
        text = "\n".join([head.rstrip(), "", "nodes:", *lines, ""])
        data = {**yaml_text.read(NAME, head).data, "nodes": [each.data for each in new]}
        return cls("", files, checked)._made(edits.Edit(text, data))

    def unchecked(self) -> Draft:
        """Return the draft for edits that are checked once behind the last of them: ``check``."""
        return Draft(self.text, self.files, checked=False)

    def check(self) -> Draft:
        """Return the draft, checked. Raises WorkflowInvalid with every mistake, its node and its field."""
        try:
            return Draft(self.text, self.files)._read()
        except WorkflowInvalid as error:
            raise WorkflowInvalid([self.layout.located(each) for each in error.diagnostics], NAME) from None

    @functools.cached_property
    def loaded(self) -> workflow.Loaded:
        return reader.parse(self.text, NAME, self.files)

    def _read(self) -> Draft:
        assert self.loaded
        return self

    @functools.cached_property
    def layout(self) -> layout.Layout:
        return layout.Layout(self._given)

    def outline(self, configuration: int = 0) -> str:
        return self.layout.outline(configuration=configuration)

    def with_nodes(self, nodes: str, after: str | None = None) -> Draft:
        """Return the draft with further nodes, given as YAML text: a list of them, or one.

        ``after`` is the node that they follow, in its block. ``ID/`` or ``ID/BLOCK`` puts them first in that block, ``/`` first in the
        file, None last in the file.
        Raises ModelError ``node-unknown``, ``block-unknown``, ``edit-not-possible``.
        """
        new, place = edits.given(nodes), self._spot(after)
        return self._made(edits.spliced(self._in_lines([place]), {place: new}, ()))

    def ids(self, but: Collection[str] = ()) -> list[str]:
        """Return the ids of all nodes ``but`` these and those in them."""
        outer = [path for each, path in self._places.items() if each in but]
        gone = {*outer, *(path for path in self._places.values() if any(within(path, each) for each in outer))}
        return [each for each, path in self._places.items() if path not in gone]

    def with_updates(self, nodes: str, node: str | None = None) -> Draft:
        """Return the draft with new text for ``node``, or without it for each given node, by id. Raises ModelError ``update-unclear``."""
        new = edits.given(nodes)
        if node is not None and len(new) != 1:
            raise _unclear(
                f"{len(new)} nodes were given for the one `{node[:80]}`",
                "give one; with `id` null each replaces the node with its own id; `create_nodes` adds further ones",
            )
        names = [node] if node is not None else [str(data_at(each.data, ()).get("id") or "") for each in new]
        if "" in names:
            raise _unclear(
                f"node {names.index('') + 1} of those given has no `id`, so it replaces none",
                "give each node the id of the one that it replaces",
            )
        if twice := {each for each in names if names.count(each) > 1}:
            raise _unclear(f"`{min(twice)}` is given twice", "give each node once")
        paths = [self._place(each) for each in names]
        self._refuse_nested(names)
        return self._made(edits.replaced(self._in_lines(paths), dict(zip(paths, new, strict=True))))

    def with_moved(self, ids: Sequence[str], after: str | None) -> Draft:
        """Return the draft with these nodes moved, in this order; ``after`` as in ``with_nodes``. Raises ModelError ``move-unclear``, ``block-empty``."""
        paths = self._named(ids)
        self._refuse_nested(ids)
        place = self._spot(after)
        for each, path in paths.items():
            if place[:-1][: len(path)] == path or (after or "").partition("/")[0] == each:
                raise ModelError(
                    "move-unclear",
                    f"`{each}` cannot be moved after itself, or into itself",
                    fix="`after` is a node that stays where it is",
                )
        self._refuse_emptied(paths.values(), but=place[:-1])
        lines = self._in_lines([place, *paths.values()])
        return self._made(edits.spliced(lines, {place: [lines.item(each) for each in paths.values()]}, paths.values()))

    def without(self, ids: Sequence[str]) -> Draft:
        """Return the draft without these nodes and the nodes in them. Raises ModelError ``block-empty``."""
        paths = self._named(ids).values()
        outer = [path for path in paths if not any(within(path, each) for each in paths)]
        self._refuse_emptied(outer)
        return self._made(edits.spliced(self._in_lines(outer), {}, outer))

    def with_head(self, head: str) -> Draft:
        """Return the draft with a changed head. ``head`` maps keys to values: null removes a key, inputs are merged by name."""
        return self._made(header.changed(self._document, head))

    @functools.cached_property
    def _given(self) -> yaml_text.Document:
        return self.loaded.document if self.checked else yaml_text.read(NAME, self.text)

    @property
    def _document(self) -> yaml_text.Document:
        text = self._given.source.text
        return self._given if ended(text) == text else yaml_text.read(NAME, ended(text))

    def _made(self, edit: edits.Edit) -> Draft:
        """Return the edited draft, with its byte order mark. The text is parsed again, and must yield the intended data."""
        document = yaml_text.read(NAME, edit.text)
        if document.problems or document.data != edit.data:
            raise unsuited("the text would say something else than was meant")
        mark = "\ufeff" if self.text.startswith("\ufeff") else ""
        made = Draft(f"{mark}{edit.text}", self.files, checked=False)
        return made.check() if self.checked else made

    def _in_lines(self, places: Iterable[Path]) -> Lines:
        document = self._document
        for each in places:
            document = in_lines(document, each[:-1])
        return Lines(document)

    @functools.cached_property
    def _places(self) -> dict[str, Path]:
        return {each.id: each.path for each in self.layout.nodes}

    def _place(self, node: str) -> Path:
        found = self._places.get(node)
        if found is None:
            close = errors.near(node, self._places)
            raise ModelError(
                "node-unknown",
                f"the draft has no node `{node[:80]}`",
                fix=f"did you mean `{close}`?" if close else "the outline (`get_workflow_summary`) lists the nodes",
            )
        return found

    def _named(self, ids: Sequence[str]) -> dict[str, Path]:
        if not ids:
            raise ModelError("node-unknown", "no node is named", fix="give the ids of nodes")
        return {each: self._place(each) for each in ids}

    def _spot(self, after: str | None) -> Path:
        """Return the place before which ``after`` puts nodes: the path of a list, and an index in it."""
        if after is None:
            return ("nodes", len(data_at(self._document.data, ("nodes",))))
        node, slash, block = after.partition("/")
        if not slash:
            path = self._place(node)
            return (*path[:-1], int(path[-1]) + 1)
        if not node:
            return ("nodes", 0)
        self._place(node)
        blocks = self.layout.blocks.get(node, {})
        path = blocks.get(block) or (next(iter(blocks.values()), None) if not block else None)
        if path is None:
            named = ", ".join(f"`{node}/{each}`" for each in blocks)
            raise ModelError(
                "block-unknown",
                f"`{node}` has no block `{block[:80]}`" if block else f"`{node}` has no nodes in it",
                fix=f"it has {named}" if named else f"`update_node` writes `{node}` anew with nodes in it",
            )
        return (*path, 0)

    def _refuse_emptied(self, paths: Collection[Path], but: Path | None = None) -> None:
        for block in {each[:-1] for each in paths} - {but}:
            if len(data_at(self._document.data, block)) > sum(each[:-1] == block for each in paths):
                continue
            owner = next((each for each, blocks in self.layout.blocks.items() if block in blocks.values()), None)
            raise ModelError(
                "block-empty",
                f"{f'the block of `{owner}`' if owner else 'the draft'} would be empty",
                fix=f"delete `{owner}` as a whole, or write it anew: `update_node`"
                if owner
                else "add the new nodes first, `create_nodes`, then delete these; the head is changed by `update_node` of `workflow`",
            )

    def _refuse_nested(self, names: Collection[str]) -> None:
        for name, other in itertools.permutations(names, 2):
            if within(self._place(name), self._place(other)):
                raise _unclear(
                    f"`{name}` is in `{other}`", f"give `{other}` with `{name}` in it, or name only one of them"
                )


def within(path: Path, outer: Path) -> bool:
    return path != outer and path[: len(outer)] == outer


def _unclear(what: str, fix: str) -> ModelError:
    return ModelError("update-unclear", what, fix=fix)
