"""Minimal changes of a workflow's text: layout, comments, line ends and a byte order mark stay as they are."""

from __future__ import annotations

import contextlib
import dataclasses
import difflib
import errno
import json
import os
import re
from pathlib import Path

from director.draft import layout
from nodes.errors import UsageError
from nodes.targets import Target
from nodes.values import Json
from runtime.language import workflow, yaml_text
from runtime.system import files, regular_files

MARK = "\ufeff"
"""A byte order mark."""

_PLAIN = re.compile(r"[A-Za-z_][\w /.()-]*[\w)]|[A-Za-z_]")
_WORDS = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n"})


@dataclasses.dataclass(frozen=True, slots=True)
class Patch:
    """Old and new text of a file; a byte order mark is a part of both."""

    file: Path
    before: str
    after: str

    @classmethod
    def of(cls, file: Path, text: str) -> Patch:
        """Return the change to another text; the byte order mark stays. Raises OSError."""
        before = regular_files.read(file).decode()
        return cls(file, before, f"{MARK if before.startswith(MARK) else ''}{text}")

    def unified(self, name: str | None = None) -> str:
        """Return the change for ``git apply`` and ``patch -p1``; ``name`` is the file's name in it."""
        said = name or self.file.name
        lines = difflib.unified_diff(_lines(self.before), _lines(self.after), f"a/{said}", f"b/{said}")
        return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)

    @property
    def stands(self) -> bool:
        """Return whether the file already has the new text. Raises OSError."""
        return regular_files.read(self.file) == self.after.encode()

    def check(self) -> None:
        """Raise UsageError ``file-changed`` if the file has another text now. Raises OSError, also if it is not writable."""
        if not self.file.stat().st_mode & 0o222:
            # Root, or the owner of the folder, could write it even so: the file's mode is respected.
            raise PermissionError(errno.EACCES, "nobody may write it", str(self.file))
        if regular_files.read(self.file).decode() != self.before:
            raise UsageError(
                "file-changed",
                f"{self.file} has changed since the fix was made",
                fix="have it made again: the same without `--apply`",
            )

    def apply(self) -> None:
        """Write the file and keep its mode and owner; a link is followed. Raises OSError."""
        file = self.file.resolve()
        known = file.stat()
        files.write(file, self.after.encode())
        file.chmod(known.st_mode & 0o777)
        with contextlib.suppress(PermissionError):
            os.chown(file, known.st_uid, known.st_gid)


def _lines(text: str) -> list[str]:
    return re.findall(r"[^\n]*\n|[^\n]+", text)


def with_target(loaded: workflow.Loaded, node: str, field: tuple[str | int, ...], before: Target, after: Target) -> str:
    """Return the text with ``after`` instead of the target ``before`` at ``field`` of a node."""
    was, now = _said(before), _said(after)
    path = (*loaded.places[node], *field)
    differing = [name for name in {**was, **now} if was.get(name) != now.get(name)]
    one = differing[0] if len(differing) == 1 else None
    if one is not None and isinstance(was.get(one), str) and isinstance(now.get(one), str):
        # Only one text differs: everything next to it stays as written.
        return _replaced(loaded, (*path, one), _scalar(now[one]))
    if "within" in was and was.get("within") == now.get("within") and _has(loaded, (*path, "within")):
        # The `within` is copied as written.
        kept = _written(loaded, (*path, "within"))
        if "\n" not in kept and kept.startswith("{"):
            inner = ", ".join(f"{name}: {_flow(each)}" for name, each in now.items() if name != "within")
            return _replaced(loaded, path, f"{{{inner}, within: {kept}}}")
    return _replaced(loaded, path, _flow(now))


def with_column(loaded: workflow.Loaded, node: str, column: str, header: str) -> str:
    """Return the text with another header for a node's column."""
    path = (*loaded.places[node], "columns", column)
    return _replaced(loaded, (*path, "header") if _has(loaded, (*path, "header")) else path, _scalar(header))


def with_timeout(loaded: workflow.Loaded, node: str, seconds: float) -> str:
    """Return the text with another time limit for a node."""
    path = (*loaded.places[node], "timeout")
    said = f"{seconds:g}"
    if _has(loaded, path):
        return _replaced(loaded, path, said)
    return _added(loaded, node, f"timeout: {said}")


def with_node_before(loaded: workflow.Loaded, node: str, fields: dict[str, Json]) -> str:
    """Return the text with a node before another one, in the same block."""
    document, text = loaded.document, loaded.text
    path = loaded.places[node]
    start = document.values[path].start
    end_of_line = _newline(text)
    owner = document.values[path[:-1]]
    if text[owner.start] == "[":
        return f"{text[:start]}{_flow(fields)}, {text[start:]}"
    dash = text.rindex("-", 0, start)
    begin = max(text.rfind("\n", 0, dash), text.rfind("\r", 0, dash)) + 1
    indent = text[begin:dash]
    return f"{text[:begin]}{indent}- {_flow(fields)}{end_of_line}{text[begin:]}"


def _added(loaded: workflow.Loaded, node: str, field: str) -> str:
    """Return the text with a further field at the end of a node."""
    document, text = loaded.document, loaded.text
    path = loaded.places[node]
    start = document.values[path].start
    if text[start] == "{":
        close = document.values[path].stop - 1
        before = text[start:close].rstrip()
        comma = "" if before.endswith((",", "{")) else ", "
        at = start + len(before)
        return f"{text[:at]}{comma}{field}{text[at:]}"
    # After `type`, which every node has: no trailing comment belongs to this place.
    data: Json = document.data
    for step in path:
        data = data[step]
    key = (*path, "type") if "type" in data else (*path, next(iter(data)))
    stop = layout.end_of(document, key)
    line_end = min((each for each in (text.find("\n", stop), text.find("\r", stop)) if each >= 0), default=len(text))
    indent = " " * (document.keys[key].column - 1)
    return f"{text[:line_end]}{_newline(text)}{indent}{field}{text[line_end:]}"


def _replaced(loaded: workflow.Loaded, path: yaml_text.Path, said: str) -> str:
    document, text = loaded.document, loaded.text
    start, stop = document.values[path].start, layout.end_of(document, path)
    key = document.keys.get(path)
    if key is not None and ("\n" in text[key.stop : start] or "\r" in text[key.stop : start]):
        # A block is below its key: its replacement is next to the key.
        colon = text.index(":", key.stop) + 1
        return f"{text[:colon]} {said}{text[stop:]}"
    return f"{text[:start]}{said}{text[stop:]}"


def _written(loaded: workflow.Loaded, path: yaml_text.Path) -> str:
    mark = loaded.document.values[path]
    return loaded.text[mark.start : layout.end_of(loaded.document, path)]


def _has(loaded: workflow.Loaded, path: yaml_text.Path) -> bool:
    return path in loaded.document.values


def _said(target: Target) -> dict[str, Json]:
    return target.model_dump(mode="json", by_alias=True, exclude_none=True, exclude_defaults=True)


def _flow(value: Json) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{name}: {_flow(each)}" for name, each in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_flow, value)) + "]"
    return _scalar(value)


def _scalar(value: Json) -> str:
    """Return a scalar as YAML: plain if that is unambiguous."""
    if isinstance(value, str):
        if _PLAIN.fullmatch(value) and value.casefold() not in _WORDS:
            return value
        return json.dumps(value, ensure_ascii=False)
    return json.dumps(value)


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"
