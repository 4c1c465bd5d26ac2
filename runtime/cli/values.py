"""Values from the command line: ``NAME=VALUE``, ``NAME=@FILE``, and a file of them."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from nodes import errors
from nodes.errors import UsageError
from nodes.values import Json, NotJson, normalise
from runtime.language import workflow, yaml_text
from runtime.system import regular_files

LARGEST = 16 << 20  # maximum bytes of a file that is given as a value


@dataclasses.dataclass(frozen=True, slots=True)
class Given:
    values: Mapping[str, Json]
    places: Mapping[str, str]  # file, line and column of each value that a file gave

    def of(self, loaded: workflow.Loaded) -> dict[str, Json]:
        return {name: value for name, value in self.values.items() if name in loaded.workflow.inputs}

    def typed(self, name: str) -> bool:
        """True if the value was typed, not read from a file of inputs."""
        return name in self.values and name not in self.places

    def refuse_unknown(self, files: Sequence[workflow.Loaded]) -> None:
        """Raise UsageError ``unknown-input`` for an input that none of the files declares."""
        declared = {name: field.type for loaded in files for name, field in loaded.workflow.inputs.items()}
        for name in self.values:
            if name in declared:
                continue
            place = f"{self.places[name]}: " if name in self.places else ""
            whose = "the workflow has no" if len(files) == 1 else f"none of the {len(files)} workflows has an"
            close = errors.near(name, declared)
            listed = ", ".join(f"{each} ({kind})" for each, kind in declared.items())
            known = f"there is {listed}" if declared else "there is none: leave it out"
            fix = f"did you mean `{close}`?" if close else known
            raise UsageError("unknown-input", f"{place}{whose} input `{name}`", fix=fix)


def inputs(pairs: Sequence[str], file: Path | None = None) -> Given:
    """Read inputs from ``NAME=VALUE`` texts and from a file of them; a text overrides the file.

    A VALUE stays text: it is converted to the input's type later. Raises UsageError: ``bad-input``, ``file-not-found``, ``file-not-read``,
    ``input-file-invalid``.
    """
    values, places = _map_of(file) if file is not None else ({}, {})
    typed = dict(_named(pairs, "-i", lambda text: text))
    return Given({**values, **typed}, {name: place for name, place in places.items() if name not in typed})


def pins(pairs: Sequence[str]) -> dict[str, Json]:
    """Read ``NAME=VALUE`` texts, each VALUE as in a workflow file; ``loop.index=1`` becomes a map ``loop`` with ``index``.

    Raises UsageError as ``inputs`` does.
    """
    pinned: dict[str, Json] = {}
    for name, value in _named(pairs, "--set", _as_written):
        *way, last = name.split(".")
        if not all((*way, last)):
            raise UsageError("bad-input", f"`--set {name}=…` names nothing", fix="write `--set NAME.KEY=VALUE`")
        owner: Json = pinned
        for step in way:
            if isinstance(owner, dict) and step not in owner:
                owner[step] = {}
            owner = owner[step] if isinstance(owner, dict) else None
        if not isinstance(owner, dict) or last in owner:
            raise UsageError("bad-input", f"`--set {name}=…` sets what another `--set` has set", fix="set it once")
        owner[last] = value
    return pinned


def _named(pairs: Sequence[str], flag: str, read: Callable[[str], Json]) -> Iterator[tuple[str, Json]]:
    seen: set[str] = set()
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name:
            fix = f"write `{flag} NAME=VALUE`, or `{flag} NAME=@FILE`"
            raise UsageError("bad-input", f"`{flag} {pair}` names nothing", fix=fix)
        if name in seen:
            raise UsageError("bad-input", f"`{name}` is given twice", fix=f"give `{flag} {name}=…` once")
        seen.add(name)
        if value.startswith("@") and not value.startswith("@@"):
            yield name, content(Path(value[1:]))
        else:
            yield name, read(value[1:] if value.startswith("@@") else value)


def _as_written(text: str) -> Json:
    if not text.strip():
        return text
    document = yaml_text.read("--set", text)
    if document.problems:
        fix = 'a value is written as in a workflow file: 12, true, text, "a: b", [1, 2], {"number": 7}'
        raise UsageError("bad-input", f"`--set …={text}` cannot be read: {document.problems[0].message}", fix=fix)
    return document.data


def content(file: Path) -> Json:
    """Return a file's content: JSON, YAML or CSV (a list of maps, all of it text) by its suffix, else its text."""
    text = _text_of(file)
    match file.suffix.lower():
        case ".json":
            return _json(file, text)
        case ".yaml" | ".yml":
            return _yaml(file, text).data
        case ".csv":
            return _csv(file, text)
        case _:
            return text


def _text_of(file: Path) -> str:
    try:
        with regular_files.opened(file) as stream:
            data = stream.read(LARGEST + 1)
    except FileNotFoundError:
        raise UsageError("file-not-found", f"there is no file {file}", fix=_similar(file)) from None
    except OSError as error:
        said = f"{file} cannot be read: {error.strerror}"
        raise UsageError("file-not-read", said, fix=regular_files.fix(error)) from None
    if len(data) > LARGEST:
        raise _invalid(str(file), f"it has more than {LARGEST >> 20} MiB")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise _invalid(f"{file}:{line}", "it is not UTF-8 text") from None


def _json(file: Path, text: str) -> Json:
    try:
        return normalise(json.loads(text))
    except json.JSONDecodeError as error:
        raise _invalid(f"{file}:{error.lineno}:{error.colno}", f"it is not JSON: {error.msg.lower()}") from None
    except (NotJson, RecursionError) as error:
        message = str(error) if isinstance(error, NotJson) else "it nests too deeply"
        raise _invalid(str(file), message) from None


def _yaml(file: Path, text: str) -> yaml_text.Document:
    document = yaml_text.read(str(file), text)
    if document.problems:
        first = document.problems[0]
        place = f"{file}:{first.mark.line}:{first.mark.column}" if first.mark else str(file)
        raise _invalid(place, first.message, first.help[0] if first.help else None)
    return document


def _csv(file: Path, text: str) -> Json:
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    rows: list[Json] = []
    try:
        header = next(reader, [])
        if len(set(header)) < len(header):
            raise _invalid(f"{file}:1", "two columns have the same name", "give each column a name of its own")
        for row in reader:
            if row and len(row) != len(header):
                said = f"the row has {len(row)} values, and the header {len(header)} names"
                raise _invalid(f"{file}:{reader.line_num}", said)
            rows += [dict(zip(header, row, strict=True))] if row else []
    except csv.Error as error:
        raise _invalid(f"{file}:{reader.line_num}", f"it is not CSV: {error}") from None
    return rows


def _map_of(file: Path) -> tuple[dict[str, Json], dict[str, str]]:
    if file.suffix.lower() not in (".json", ".yaml", ".yml"):
        raise UsageError("bad-input", f"`--inputs {file}` is neither JSON nor YAML", fix="give a .json, .yaml or .yml")
    text = _text_of(file)
    document = _yaml(file, text) if file.suffix.lower() != ".json" else None
    data = document.data if document is not None else _json(file, text)
    if not isinstance(data, dict):
        raise _invalid(str(file), "it is not a map of names and values", "write one input a line: `name: value`")
    marks = {name: document.mark((name,), key=True) if document is not None else None for name in data}
    return data, {name: f"{file}:{mark.line}:{mark.column}" if mark else str(file) for name, mark in marks.items()}


def _invalid(place: str, message: str, fix: str | None = None) -> UsageError:
    return UsageError("input-file-invalid", f"{place}: {message}", fix=fix or "fix the file, or give another one")


def _similar(file: Path) -> str | None:
    try:
        close = errors.near(file.name, [each.name for each in file.parent.iterdir()])
    except OSError:
        return None
    return f"did you mean {file.parent / close}?" if close else "give the path of a file that is there"
