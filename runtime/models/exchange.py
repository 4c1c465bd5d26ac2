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
class Request:
    """What is asked. Two equal requests ask the same."""

    model: str
    instructions: str
    """The system prompt."""
    messages: tuple[Message, ...]
    """The thread, oldest first; the last one is the user's."""
    schema: dict[str, Json] | None
    """JSON Schema that the answer's text must fit; None for free text."""
    max_output: int
    """Tokens that the answer may have, reasoning included. Always sent."""
    strict: bool = True
    """Whether the schema is in the strict form, so that a server can be made to keep to it."""

    @property
    def key(self) -> str:
        """A SHA-256 of all of it, to the last character: what the log knows it by."""
        text = json.dumps(dataclasses.asdict(self), ensure_ascii=True, sort_keys=False)
        return hashlib.sha256(text.encode()).hexdigest()


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
