"""How many tokens the input of a request has, told before it is sent, so that a budget can refuse it.

``tokens`` counts what the request holds by ``runtime.messages.tokens``: for the models of OpenAI an upper bound of the texts,
and what the format of a conversation adds. Two things nobody outside knows: how another maker's tokenizer cuts, and what a
server writes around a schema or before a conversation. The server's own count of an answered request tells both, and
``Calibrated`` learns from it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from runtime.messages import tokens as text_tokens
from runtime.messages.messages import Item, Message, Request, Tool, ToolCall

A_MESSAGE = 4
"""Tokens around each message: where it begins, whose it is, where the text begins, where it ends."""

AN_ANSWER = 3
"""Tokens that open the answer."""

A_SCHEMA = 40
"""Tokens around a schema: a server tells the model what it is for, each in its own words."""

A_TOOL = 20
"""Tokens around each tool: servers write them out for the model, each in its own form."""

TELLING = 200
"""Tokens that a request needs for its ratio to tell of the tokenizer; in a smaller one it tells of what the server adds."""


def tokens(request: Request) -> int:
    """Tokens of the input of ``request``: never fewer than a model of OpenAI reads, as far as the request says all of it."""
    total = sum(map(of_item, request.items)) + of_tools(request.tools) + AN_ANSWER
    if instructions := "\n\n".join(each for each in (request.instructions, request.brief) if each):
        total += of_text(instructions)
    if request.state:
        total += of_text(request.state)
    if request.schema is not None:
        total += A_SCHEMA + text_tokens.count(json.dumps(request.schema, ensure_ascii=False))
    return total


def of_text(text: str) -> int:
    """Tokens of a text that stands by itself."""
    return A_MESSAGE + text_tokens.count(text)


def of_item(item: Item) -> int:
    """Tokens of an item."""
    return sum(map(of_text, _texts(item)))


def of_tools(tools: Sequence[Tool]) -> int:
    """Tokens of the tools that a request offers."""
    return A_SCHEMA * bool(tools) + sum(
        A_TOOL
        + text_tokens.count(tool.description)
        + text_tokens.count(json.dumps({tool.name: tool.parameters}, ensure_ascii=False))
        for tool in tools
    )


def _texts(item: Item) -> tuple[str, ...]:
    """The texts of an item, each with what stands around it."""
    if isinstance(item, Message):
        return (item.text,)
    # A call is addressed to its tool, and an output comes from it; ids are told to models of some makers.
    return (item.id, item.name, item.arguments) if isinstance(item, ToolCall) else (item.id, item.text)


class Calibrated:
    """Estimates that were corrected by what servers have counted, model by model.

    An estimate is never below ``tokens``, and never below the count of a request of the same size that the model has had. It
    is never scaled down: a lower count tells that *that* text was one of which the bound lies far above the truth, and the
    next text may be one of which it does not.
    """

    def __init__(self) -> None:
        self._seen: dict[str, list[tuple[int, int]]] = {}
        self._lines: dict[str, tuple[float, float]] = {}

    def corrected(self, model: str, raw: int) -> int:
        """What ``raw`` tokens by ``tokens`` are for ``model``, rounded up."""
        ratio, more = self._lines.get(model, (1.0, 0.0))
        # Less than a hair above a whole number is rounding, and no token.
        return max(raw, -int(-(raw * ratio + more - 1e-6) // 1))

    def within(self, model: str, most: int) -> int:
        """How many tokens by ``tokens`` are surely no more than ``most`` for ``model``; 0 where none are."""
        ratio, more = self._lines.get(model, (1.0, 0.0))
        raw = max(0, int(min(most, (most - more) / ratio)))
        while raw and self.corrected(model, raw) > most:
            raw -= 1
        return raw

    def take(self, model: str, raw: int, counted: int) -> None:
        """Take note that the server counted ``counted`` tokens in a request that has ``raw`` by ``tokens``.

        The largest request says by which ratio the model's tokenizer differs; what smaller ones had beyond that is what the
        server adds to each.
        """
        if raw <= 0 or counted < 0:
            return
        seen = self._seen.setdefault(model, [])
        seen.append((raw, counted))
        largest, its = max(seen)
        ratio = max(1.0, its / largest) if largest >= TELLING else 1.0
        self._lines[model] = (ratio, max(0.0, *(each - ratio * size for size, each in seen)))
