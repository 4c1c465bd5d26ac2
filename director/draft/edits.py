"""Adds, changes, moves and deletes nodes of a draft. An edit is the new text, and the data that it must yield."""

from __future__ import annotations

import contextlib
import copy
import itertools
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from director.draft.lines import Item, Lines, data_at, ended, in_lines, merged, shifted
from nodes.values import Json
from runtime.language import habits, writer, yaml_text
from runtime.language.diagnostics import WorkflowInvalid
from runtime.language.yaml_text import Document, Path

GIVEN = "yaml"  # name of the text given for an edit, in diagnostics

IDS = re.compile(r"""(?:^|[\s{,-])["']?id["']?:\s*["']?([A-Za-z_][\w-]*)""")  # the ids that a text of nodes gives


class Edit(NamedTuple):
    text: str
    data: Json


def given(text: str, *, whole: bool = False) -> list[Item]:
    """Return the nodes of a text: a list, a single node, a map with only ``nodes``, or with ``whole`` a file.

    Raises WorkflowInvalid if it is not YAML or holds no nodes.
    """
    document = read(text)
    data: Any = document.data
    path: Path = ()
    if isinstance(data, dict) and (set(data) == {"nodes"} or (whole and is_whole(data))):
        path, data = ("nodes",), data["nodes"]
    elif isinstance(data, dict) and is_whole(data):
        raise _no_nodes(document, ("nodes",), "this is a whole file", HEAD)
    elif isinstance(data, dict) and data:
        document, data = _as_list(document), [data]
    if not isinstance(data, list) or not data:
        raise _no_nodes(document, path, "this is no list of nodes", "write `- id: …` for each node")
    wrong = [number for number, each in enumerate(data) if not isinstance(each, dict)]
    if wrong:
        raise _no_nodes(document, (*path, wrong[0]), "this is no node", "a node is a map: `id`, `type`, and its fields")
    if not path and document.source.text[document.values[()].start] == "[":
        path, document = ("nodes",), yaml_text.read(GIVEN, writer.text({"nodes": data}))
    lines = Lines(in_lines(document, path))
    spans = [lines.span((*path, number)) for number in range(len(data))]
    heads = [spans[0].head, *(each.stop for each in spans)]
    return [lines.item((*path, number), heads[number]) for number in range(len(data))]


def _as_list(document: Document) -> Document:
    mark, lines = document.values[()], Lines(document)
    first, column = mark.line - 1, mark.column - 1
    line = lines.all[first]
    rest = "".join("  " + each for each in lines.all[first + 1 :])
    return yaml_text.read(GIVEN, "".join([*lines.all[:first], line[:column], "- ", line[column:], rest]))


def is_whole(data: Mapping[str, Json]) -> bool:
    """Return whether this is a file, and not a node with nodes in it."""
    return "nodes" in data and "type" not in data


def by_habit(text: str, *, head: bool = False) -> tuple[str, list[str]]:
    """Return nodes, or keys of the head, as they can only be meant, and a sentence for each reading. Raises WorkflowInvalid if it is no YAML."""
    data: Any = read(text).data
    if isinstance(data, dict) and (head or is_whole(data)):
        given = data
    else:
        given = {"nodes": data if isinstance(data, list) else [data]}
    meant, said = habits.read({"version": 1, **given})
    return (writer.text({key: each for key, each in meant.items() if key in given}), said) if said else (text, [])


def has_head(text: str) -> bool:
    """Return whether the text is a file with a head: more than a list of nodes."""
    with contextlib.suppress(WorkflowInvalid):
        data: Any = read(text).data
        return isinstance(data, dict) and is_whole(data) and len(data) > 1
    return False


def ids_of(text: str) -> list[str]:
    """Return the ids of the nodes of a text. Raises like ``given``."""
    return [str(data_at(each.data, ()).get("id")) for each in given(text)]


def read(text: str) -> Document:
    """Read the text, without a Markdown fence around it. Raises WorkflowInvalid if it is empty or no YAML."""
    document = yaml_text.read(GIVEN, ended(_FENCE.sub("", text)))
    if any(each.code == "empty-file" for each in document.problems):
        raise _no_nodes(document, (), "nothing was given", "write `- id: …` for each node")
    if document.problems:
        raise WorkflowInvalid(document.problems, GIVEN)
    return document


_FENCE = re.compile(r"\A\s*?```\w*(?=[\r\n])|^```\s*\Z", re.MULTILINE)
"""The Markdown fence around a text. Removing it keeps the line numbers of the text."""

HEAD = "give only the part under `nodes:`; change what is above it by `update_node` with the id `workflow`"


def _no_nodes(document: Document, path: Path, what: str, fix: str) -> WorkflowInvalid:
    problem = document.source.diagnostic(
        "not-a-list", what, document.mark(path) or document.source.mark(0, 0), help=[fix]
    )
    return WorkflowInvalid([problem], GIVEN)


def spliced(lines: Lines, new: Mapping[Path, Sequence[Item]], gone: Collection[Path]) -> Edit:
    data: Any = copy.deepcopy(lines.document.data)
    lists: dict[Path, list[Any]] = {each[:-1]: data_at(data, each[:-1]) for each in (*new, *gone)}
    put: dict[int, list[str]] = {}
    dropped: set[int] = set()
    for path, every in lists.items():
        spans = [lines.span((*path, number)) for number in range(len(every))]
        blank = [""] if len(spans) > 1 and not any(lines.all[each.head - 1].strip() for each in spans[1:]) else []
        coming = {int(each[-1]): items for each, items in new.items() if each[:-1] == path}
        leaving = {int(each[-1]) for each in gone if each[:-1] == path}
        for at, items in coming.items():
            written = [line for each in items for line in (*(blank if each.lines[0] else ()), *each.lines)]
            if not at:
                written = [*written[len(blank) :], *blank]
            put[spans[at - 1].stop if at else spans[0].head] = shifted(written, spans[0].column)
        for number in leaving:
            dropped |= set(lines.around(spans[number], below=leaving.issuperset(range(number))))
        every[:] = merged(every, {at: [each.data for each in items] for at, items in coming.items()}, leaving)
    return Edit(lines.edited(put, dropped), data)


def replaced(lines: Lines, new: Mapping[Path, Item]) -> Edit:
    """Replace items. The comments above one stay if the new one has none."""
    data: Any = copy.deepcopy(lines.document.data)
    put: dict[int, list[str]] = {}
    dropped: set[int] = set()
    for path, item in new.items():
        span = lines.span(path)
        start = span.head if item.commented else span.own
        put[start] = shifted([*itertools.dropwhile(lambda line: not line, item.lines)], span.column)
        dropped |= set(range(start, span.stop))
        data_at(data, path[:-1])[path[-1]] = item.data
    return Edit(lines.edited(put, dropped), data)
