"""Requests to a model and its answers as data, without client, key or log. An *exchange* is a request with its final response."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from typing import Literal

from nodes.values import Json


@dataclasses.dataclass(frozen=True, slots=True)
class Message:
    role: Literal["user", "assistant"]
    text: str


@dataclasses.dataclass(frozen=True, slots=True)
class ToolCall:
    id: str  # identifies the call within its thread; the output refers to it
    name: str
    arguments: str  # the model's text, usually JSON


@dataclasses.dataclass(frozen=True, slots=True)
class Picture:
    """A picture for models that see."""

    data: str  # PNG, in base64
    width: int
    height: int


@dataclasses.dataclass(frozen=True, slots=True)
class ToolOutput:
    id: str
    text: str
    picture: Picture | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Thought:
    """Reasoning before a part of an answer, encrypted by the server. It is sent back unchanged, and only to its ``reader``."""

    id: str
    sealed: str
    tokens: int  # tokens that it can have in a request
    before: int = 0  # number of the call of its answer that it leads to, from 1; 0: it leads to the text
    reader: str = ""  # model and server that made it: no other can read it


Item = Message | ToolCall | ToolOutput | Thought


def is_models(item: Item) -> bool:
    return isinstance(item, ToolCall | Thought) or (isinstance(item, Message) and item.role == "assistant")


@dataclasses.dataclass(frozen=True, slots=True)
class Tool:
    name: str
    description: str
    parameters: dict[str, Json]
    """JSON Schema of the arguments, in the strict form: every property is required, and no other is allowed."""


@dataclasses.dataclass(frozen=True, slots=True)
class Request:
    """A request. Two requests with the same ``key`` ask the same."""

    model: str
    instructions: str
    items: tuple[Item, ...]
    """The thread, oldest first. Every call in it has its output; the last item is a message of the user, or an output."""
    schema: dict[str, Json] | None  # JSON Schema that the answer's text must fit; None for free text
    max_output: int  # tokens that the answer may have, reasoning included. Always sent
    strict: bool = True  # true if the schema is in the strict form, which a server can enforce
    tools: tuple[Tool, ...] = ()
    """Tools that the model may call; several calls in one answer are done one after another."""
    brief: str = ""
    """Current state of the run, sent after ``instructions``. It is no part of the thread, of ``key`` or of a cassette."""
    state: str = ""
    """Current state of a session, sent after ``items``. It is no part of the thread or of ``key`` either."""

    @property
    def key(self) -> str:
        """SHA-256 of the exact request without ``brief`` and ``state``. The log identifies the request by it."""
        said = {name: value for name, value in dataclasses.asdict(self).items() if name not in _TRANSIENT}
        for item in said["items"]:
            if item.get("picture", item) is None:
                del item["picture"]
        text = json.dumps(said, ensure_ascii=True, sort_keys=False)
        return hashlib.sha256(text.encode()).hexdigest()


_TRANSIENT = frozenset({"brief", "state"})


@dataclasses.dataclass(frozen=True, slots=True)
class Usage:
    input: int
    cached: int  # part of the input that was read from the server's cache
    output: int
    reasoning: int  # part of the output that is reasoning


@dataclasses.dataclass(frozen=True, slots=True)
class Answer:
    text: str
    usage: Usage | None  # None if the server reported none
    model: str  # the server's name for it
    id: str = ""  # the response's id; empty if there is none
    reasoning: tuple[str, ...] = ()  # summaries of the model's reasoning, if it sends them
    calls: tuple[ToolCall, ...] = ()
    thoughts: tuple[Thought, ...] = ()
