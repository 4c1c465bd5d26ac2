"""The normal form of a request: its meaning, without values that differ from run to run.

Secrets, time stamps, ids and element refs become numbered placeholders: ``<secret NAME>``, ``<time 1>``, ``<id 2>``, ``<ref 3>``; allowed
origins ``<origin 1>``; tool calls ``call 1``. Everything else counts, plain dates too.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from nodes.values import Json
from runtime.messages.messages import Message, Request, Thought, ToolCall, ToolOutput
from runtime.secrets import masking

ISO_TIME = r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:[Zz]|[+-]\d\d(?::?\d\d)?)?"
SHORT_TIME = r"\d{8}T\d{4}(?:\d\d(?:[.,]\d+)?)?(?:Z|[+-]\d\d(?::?\d\d)?)?"
HTTP_TIME = r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d\d? (?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) \d{4} \d\d:\d\d:\d\d (?:GMT|UTC|[+-]\d{4})"

UUID = r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
ULID = r"(?=[0-9]*[A-Z])[0-7][0-9A-HJKMNP-TV-Z]{25}"
"""Ids of runs have this form too. Digits alone are data, such as the number of an account or a parcel."""
OF_SERVERS = (
    rf"(?:(?:resp|call|msg|rs|fc|req)_|(?:chat)?cmpl-)(?:{UUID}|(?=[A-Za-z]*[0-9])(?=[0-9]*[A-Za-z])[A-Za-z0-9]{{8,}})"
)
"""Ids that model servers make. Digits alone are data here, too, and so are letters alone."""
HEX = r"(?=[0-9]*[a-fA-F])(?:[0-9a-fA-F]{64}|[0-9a-fA-F]{40}|[0-9a-fA-F]{32})"

OF_REFS = r"""\[ref=|\(ref=|\bno element |"ref"\s*:\s*\""""
"""Text before an element's ref in observations, refusals and tool calls. Elsewhere the same letters are data."""
REF = r"(?:f\d+)?[ex]\d+"  # refs count documents and elements as they load, and frames load in any order

OURS = r"<(?P<more>_*)(?P<word>time \d+|id \d+|ref \d+|origin \d+|secret [A-Za-z_][A-Za-z0-9_]*)>"
"""A placeholder. One with ``_`` before its word is original text that looked like a placeholder, with one ``_`` added."""

MEANINGLESS = re.compile(
    rf"(?P<ours>{OURS})"
    rf"|(?<!\w)(?P<time>{ISO_TIME}|{SHORT_TIME}|{HTTP_TIME})(?!\w|[:.,]\d)"
    rf"|(?P<id>(?<!\w)(?:{OF_SERVERS}|{ULID}|{HEX})|(?<![^\W_]){UUID})(?!\w)"
    rf"|(?P<before>{OF_REFS})(?P<ref>{REF})(?!\w)"
)
"""An id is a word of its own. Only a UUID may also follow a name and ``_`` (``order_…``)."""

PLACEHOLDER = re.compile(OURS)
ORIGIN = "origin "


@dataclasses.dataclass(frozen=True, slots=True)
class Normal:
    request: dict[str, Json]
    texts: Mapping[str, str]  # the original text of each placeholder, except secrets
    calls: Mapping[str, str]  # the name of each call by its id: `call 1`, `call 2`, as they appear

    def apply(self, text: str) -> str:
        """Return an answer's text, with the request's placeholders in place of texts that are in the request."""
        return _Placeholders({}, {text: each for each, text in self.texts.items()}, closed=True).text(text)

    def named(self, calls: Sequence[ToolCall]) -> list[tuple[str, ToolCall]]:
        """Return the calls of an answer with their names here, and with the request's placeholders in their arguments."""
        before = len(self.calls)
        return [
            (_name(before + number), dataclasses.replace(each, arguments=self.apply(each.arguments)))
            for number, each in enumerate(calls)
        ]

    def undo(self, text: str) -> str:
        """Return an answer's text with the original texts of this request."""

        def put(found: re.Match[str]) -> str:
            if found["more"]:
                return f"<{found['more'][1:]}{found['word']}>"
            return self.texts.get(found[0], found[0])

        return PLACEHOLDER.sub(put, text)


def normal(request: Request, secrets: Mapping[str, str], origins: Sequence[str] = ()) -> Normal:
    """Return the normal form of a request; ``secrets`` are values by name, ``origins`` those that the run may load."""
    known = {origin: f"<{ORIGIN}{number}>" for number, origin in enumerate(dict.fromkeys(origins), 1)}
    placeholders = _Placeholders(secrets, known)
    calls: dict[str, str] = {}
    asked: dict[str, Json] = {
        "model": request.model,
        "instructions": placeholders.text(request.instructions),
        # A replay has no server to read thoughts, and their encryption differs from run to run.
        "messages": [_item(each, placeholders, calls) for each in request.items if not isinstance(each, Thought)],
        "schema": placeholders.json(request.schema),
        "max_output": request.max_output,
        "strict": request.strict,
    }
    if request.tools:
        asked["tools"] = placeholders.json([dataclasses.asdict(each) for each in request.tools])
    return Normal(asked, {placeholder: text for text, placeholder in placeholders.known.items()}, calls)


def _item(item: Message | ToolCall | ToolOutput, placeholders: _Placeholders, calls: dict[str, str]) -> dict[str, Json]:
    match item:
        case Message():
            return {"role": item.role, "text": placeholders.text(item.text)}
        case ToolCall():
            name = calls.setdefault(item.id, _name(len(calls)))
            return {"call": name, "tool": item.name, "arguments": placeholders.text(item.arguments)}
        case ToolOutput():
            # The pixels of a page differ from run to run.
            shown: dict[str, Json] = {} if item.picture is None else {"picture": True}
            return {"output_of": calls[item.id], "text": placeholders.text(item.text), **shown}


def _name(number: int) -> str:
    return f"call {number + 1}"


def same(one: Json, other: Json) -> bool:
    """True if two normal forms, or parts of them, are the same. The order of fields counts, as it does for a model."""
    return json.dumps(one) == json.dumps(other)


def _with_origins(origins: Sequence[str]) -> re.Pattern[str]:
    """Extend ``MEANINGLESS`` by these origins as whole words: not within a longer host, and not before a port."""
    if not origins:
        return MEANINGLESS
    every = "|".join(map(re.escape, origins))
    return re.compile(rf"(?<![\w.+-])(?:{every})(?!\w|[.:-]\w)|{MEANINGLESS.pattern}")


class _Placeholders:
    """Puts placeholders into texts, and remembers the originals."""

    def __init__(self, secrets: Mapping[str, str], known: dict[str, str], *, closed: bool = False) -> None:
        """``known`` maps texts to their placeholders; ``closed``: no text is added to them."""
        self.known = known
        self._closed = closed
        self._counts = Counter[str]()
        self._meaningless = _with_origins([text for text, each in known.items() if each.startswith(f"<{ORIGIN}")])
        self._masker = masking.Masker(secrets)
        # If one secret begins with another, the longer one matches first.
        longest_first = sorted((-len(value), name) for name, value in secrets.items() if value)
        self._maskers = {name: masking.Masker({name: secrets[name]}) for _length, name in longest_first}

    def text(self, text: str) -> str:
        parts: list[str] = []
        end = 0
        # Text around a secret is matched separately, so that no part of the secret remains.
        for start, after in self._masker.spans(text):
            parts += (
                self._meaningless.sub(self._placeholder, text[end:start]),
                f"<secret {self._named(text[start:after])}>",
            )
            end = after
        return "".join(parts) + self._meaningless.sub(self._placeholder, text[end:])

    def _named(self, written: str) -> str:
        return next(name for name, masker in self._maskers.items() if masker.text(written) == masking.MASK)

    def _placeholder(self, found: re.Match[str]) -> str:
        if found["ours"]:
            return f"<_{found['more']}{found['word']}>"
        before, text = found["before"] or "", found["ref"] or found[0]
        if text not in self.known:
            if self._closed:
                return found[0]
            kind = "time" if found["time"] else "ref" if found["ref"] else "id"
            self._counts[kind] += 1
            self.known[text] = f"<{kind} {self._counts[kind]}>"
        return f"{before}{self.known[text]}"

    def json(self, value: Any) -> Json:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list):
            return [self.json(each) for each in value]
        if isinstance(value, dict):
            return {self.text(name): self.json(each) for name, each in value.items()}
        return value
