"""Changes single values of a workflow's text: layout, comments and line ends of the rest stay as they are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from director.draft import edits
from director.draft.lines import Item, Lines, data_at, in_lines, opening
from nodes.targets import Target
from nodes.values import Json
from runtime.language import writer
from runtime.language.diagnostics import BREAKS
from runtime.language.workflow import Loaded
from runtime.language.yaml_text import Document, Path


def with_target(loaded: Loaded, node: str, field: Path, before: Target, after: Target) -> str:
    path = (*loaded.places[node], *field)
    return _replaced(loaded, dict(_changes(path, _written(before), _written(after))))


def _written(target: Target) -> Json:
    return target.model_dump(mode="json", by_alias=True, exclude_none=True, exclude_defaults=True)


def _changes(path: Path, before: Json, after: Json) -> Iterator[tuple[Path, Json]]:
    """Yield the values that differ; a map with other keys differs as a whole."""
    if isinstance(before, dict) and isinstance(after, dict) and before.keys() == after.keys():
        for name, value in after.items():
            yield from _changes((*path, name), before[name], value)
    elif before != after:
        yield path, after


def with_column(loaded: Loaded, node: str, column: str, header: str) -> str:
    path = (*loaded.places[node], "columns", column)
    whole = (*path, "header")
    return _replaced(loaded, {whole if whole in loaded.document.values else path: header})


def with_timeout(loaded: Loaded, node: str, seconds: float) -> str:
    place, value = loaded.places[node], int(seconds) if seconds == int(seconds) else seconds
    if (*place, "timeout") in loaded.document.values:
        return _replaced(loaded, {(*place, "timeout"): value})
    text = loaded.text
    kind = loaded.document.values[*place, "type"]
    if opening(loaded.document, place) == "{":
        return f"{text[: kind.stop]}, timeout: {value}{text[kind.stop :]}"
    indent = " " * (loaded.document.keys[*place, "type"].column - 1)
    return Lines(loaded.document).edited({kind.line: [f"{indent}timeout: {value}"]}, ())


def with_node_before(loaded: Loaded, node: str, fields: dict[str, Json]) -> str:
    place = loaded.places[node]
    lines = Lines(in_lines(loaded.document, place[:-1]))
    return edits.spliced(lines, {place: [Item(fields, [f"- {writer.inline(fields)}"], commented=False)]}, ()).text


def _replaced(loaded: Loaded, values: dict[Path, Json]) -> str:
    """Return the text with other values; a value on the lines below its key moves next to it."""
    document, text = loaded.document, loaded.text
    for path in sorted(values, key=lambda each: document.values[each].start, reverse=True):
        start, key = document.values[path].start, document.keys.get(path)
        if key is not None and BREAKS.search(text, key.stop, start):
            start = text.index(":", key.stop) + 1
        blank = " " if text[start - 1] == ":" else ""
        text = f"{text[:start]}{blank}{writer.inline(values[path])}{text[_end(document, path) :]}"
    return text


def _end(document: Document, path: Path) -> int:
    """Return the end of a value; in block style that of its last inner value, without comments below."""
    data: Any = data_at(document.data, path)
    while isinstance(data, dict | list) and data and opening(document, path) not in ("{", "[", "*"):
        last: Any = next(reversed(data)) if isinstance(data, dict) else len(data) - 1
        path, data = (*path, last), data[last]
    return document.values[path].stop
