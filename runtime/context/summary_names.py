"""Names in a conversation that a summary must keep letter by letter: paths, ids of runs, targets, numbers."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator

from nodes.values import Json
from runtime.display import plans
from runtime.messages.messages import Item, Thought, ToolCall, ToolOutput

MOST_NAMES = 60  # names added to a summary at the most

READ = "read_state"  # the tool that reads paths: what it gave stands at the path that it read

_PATH = re.compile(r"@state/(?=[\w./:#-]*\d)[\w./:#-]*\w")
"""A path to something kept: it has the number of a line, or the id of a run."""

LINE = re.compile(r"@state/line/(\d+)")
_RUN = re.compile(r"\b[0-9A-HJKMNP-TV-Z]{26}\b")
_ADDRESS = re.compile(r"\b\w+://[^\s\"'`/]+|\b(?:\d{1,3}\.){3}\d{1,3}(?::\d+)?|\b(?:localhost:|ports? )\d+")
"""Hosts and ports: their numbers are no names."""

_REF = re.compile(r"e\d+")
"""A ref of an observation: a later one has others."""

_OURS = frozenset(plans.MARKS)  # the words of plans look like names
_NAME = re.compile(
    r"`([^`\s]{1,60})`"
    r"|[\"'](?=[^\"']*[\d_/:#-])([\w./:#-]{2,60})[\"']"
    r"|(\#\d+\b|\b\d{4,}\b|\b[0-9A-HJKMNP-TV-Z]{26}\b)"
    r"|\b([A-Za-z]\w*_\w+|[A-Za-z]+-\d[\w-]*)\b"
)
"""Probable names: texts in backticks or quotes, numbers of four digits or more (statuses have three), ids of runs, words with ``_``, or with ``-`` and a digit."""

_WORD = re.compile(r"\w[\w-]*")


def of(items: Iterable[Item], ids: Collection[str] = (), keep: str = "") -> list[str]:
    """Return the names in messages and arguments; from outputs of tools only ids of runs and paths.

    First those in ``keep``, what the person asked to keep, then ids of runs and ``ids``, then the others, each as the items are ordered.
    """
    first = dict.fromkeys(_found(keep, ids))
    runs: dict[str, None] = {}
    rest: dict[str, None] = {}
    for item in items:
        if isinstance(item, Thought):
            continue
        text = " ".join(_values(item.arguments)) if isinstance(item, ToolCall) else item.text
        found = (*_PATH.findall(text), *_RUN.findall(text)) if isinstance(item, ToolOutput) else _found(text, ids)
        for each in found:
            (runs if each in ids or _RUN.fullmatch(each) else rest)[each] = None
    return list(first | runs | rest)[:MOST_NAMES]


def _found(text: str, ids: Collection[str]) -> Iterator[str]:
    yield from _PATH.findall(text)
    rest = _ADDRESS.sub("", _PATH.sub("", text))
    named = (next(filter(None, found)) for found in _NAME.findall(rest))
    yield from (each for each in named if each not in _OURS and not _REF.fullmatch(each))
    yield from (each for each in _WORD.findall(rest) if each in ids)


def _values(arguments: str) -> Iterator[str]:
    try:
        waiting: list[Json] = [json.loads(arguments)]
    except (ValueError, RecursionError):
        waiting = [arguments]
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            yield f'"{value}"'
        elif isinstance(value, list):
            waiting += value
        elif isinstance(value, dict):
            waiting += value.values()


def is_of_reading(path: str, what: str) -> bool:
    """Return whether a path leads to what ``READ`` gave; ``what`` is the word on what it leads to."""
    return path.endswith(f"_{READ}") or what == f"result of {READ}"


def shown(name: str, what: str) -> str:
    quoted = name if _NAME.fullmatch(name) or _PATH.fullmatch(name) else f"`{name}`"
    return f"{quoted} ({what})" if what else quoted
