"""What goes to a model and what comes back, as data: no client, no key, no log.

A *request* is one question with everything that belongs to it; an *exchange* is a request with its whole terminal response.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from typing import Literal

from nodes.values import Json


@dataclasses.dataclass(frozen=True, slots=True)
class Message:
    """One message of a thread."""

    role: Literal["user", "assistant"]
    text: str


@dataclasses.dataclass(frozen=True, slots=True)
class ToolCall:
    """A model asks for a tool."""

    id: str
    """What tells the call from the others of its thread; the output names it."""
    name: str
    arguments: str
    """As the model wrote them: JSON, as a rule."""


@dataclasses.dataclass(frozen=True, slots=True)
class ToolOutput:
    """What the model is told of a call."""

    id: str
    text: str


Item = Message | ToolCall | ToolOutput


def is_models(item: Item) -> bool:
    """Whether it was the model that said it."""
    return isinstance(item, ToolCall) or (isinstance(item, Message) and item.role == "assistant")


@dataclasses.dataclass(frozen=True, slots=True)
class Tool:
    """A tool that a model may ask for."""

    name: str
    description: str
    parameters: dict[str, Json]
    """JSON Schema of the arguments, in the strict form: every property required, none besides."""


@dataclasses.dataclass(frozen=True, slots=True)
class Request:
    """What is asked. Two requests with one ``key`` ask the same."""

    model: str
    instructions: str
    """The system prompt."""
    items: tuple[Item, ...]
    """The thread, oldest first. Every call in it has its output; the last item is a message of the user, or an output."""
    schema: dict[str, Json] | None
    """JSON Schema that the answer's text must fit; None for free text."""
    max_output: int
    """Tokens that the answer may have, reasoning included. Always sent."""
    strict: bool = True
    """Whether the schema is in the strict form, so that a server can be made to keep to it."""
    tools: tuple[Tool, ...] = ()
    """What the model may call; of several calls in one answer each is done after the other."""
    brief: str = ""
    """Where the run stands, made anew for each request and sent behind ``instructions``: no part of the thread, of ``key`` or of a cassette."""
    state: str = ""
    """What a session keeps beside the thread, made anew for each request and sent behind ``items``: no part of the thread or of ``key`` either."""

    @property
    def key(self) -> str:
        """A SHA-256 of what is said, to the last character, without what is made anew for each request: what the log knows it by."""
        said = {name: value for name, value in dataclasses.asdict(self).items() if name not in _TRANSIENT}
        text = json.dumps(said, ensure_ascii=True, sort_keys=False)
        return hashlib.sha256(text.encode()).hexdigest()


_TRANSIENT = frozenset({"brief", "state"})


@dataclasses.dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one exchange, as the server counts them."""

    input: int
    cached: int
    """Of the input: read from the server's cache."""
    output: int
    reasoning: int
    """Of the output: reasoning."""


@dataclasses.dataclass(frozen=True, slots=True)
class Answer:
    """One terminal response."""

    text: str
    usage: Usage | None
    """None where the server did not say."""
    model: str
    """As the server names it."""
    id: str = ""
    """The response's id; empty where there is none."""
    reasoning: tuple[str, ...] = ()
    """Summaries of what the model thought, where it tells them."""
    calls: tuple[ToolCall, ...] = ()
    """The tools that it asks for, in order."""
