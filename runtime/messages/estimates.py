"""Estimates of a request's input tokens before it is sent, so that a budget can refuse it.

``tokens`` is an upper bound for models of OpenAI. ``Calibrated`` learns other tokenizers, and what a server adds, from answered requests.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence

from runtime.messages import tokens as text_tokens
from runtime.messages.messages import Item, Message, Request, Thought, Tool, ToolCall, ToolOutput

A_MESSAGE = 4  # tokens around each message: its start, its role, the start and the end of its text
AN_ANSWER = 3  # tokens that open the answer
A_SCHEMA = 40  # tokens around a schema: each server explains it to the model in its own words
A_TOOL = 20  # tokens around each tool: each server describes it to the model in its own form

PATCH, MOST_PATCHES = (
    32,
    1_536,
)  # pixels of a side of a patch, and patches of a picture, which is scaled down to have no more
A_PATCH = 2.46  # tokens of a patch, of the model of OpenAI for which it has most
A_TOKEN = 4  # characters that a token of a picture counts as, where a limit is in characters

LEAST_TOKENS = 200
"""Minimum tokens of a request that shows a tokenizer's ratio; in a smaller one the server's additions outweigh it."""


def tokens(request: Request) -> int:
    """Return the input tokens of ``request``: an upper bound for models of OpenAI, if nothing is added to the request."""
    total = sum(map(of_item, request.items)) + of_tools(request.tools) + AN_ANSWER
    if instructions := "\n\n".join(each for each in (request.instructions, request.brief) if each):
        total += of_text(instructions)
    if request.state:
        total += of_text(request.state)
    if request.schema is not None:
        total += A_SCHEMA + text_tokens.count(json.dumps(request.schema, ensure_ascii=False))
    return total


def of_text(text: str) -> int:
    return A_MESSAGE + text_tokens.count(text)


def of_item(item: Item) -> int:
    if isinstance(item, Thought):
        return A_MESSAGE + item.tokens
    picture = item.picture if isinstance(item, ToolOutput) else None
    return sum(map(of_text, _texts(item))) + (of_picture(picture.width, picture.height) if picture is not None else 0)


def of_picture(width: int, height: int) -> int:
    """Return the tokens of a picture: those of its patches, by the rule that OpenAI documents for its models that count patches."""
    patches = -(-width // PATCH) * -(-height // PATCH)
    return A_MESSAGE + math.ceil(min(patches, MOST_PATCHES) * A_PATCH)


def of_tools(tools: Sequence[Tool]) -> int:
    return A_SCHEMA * bool(tools) + sum(
        A_TOOL
        + text_tokens.count(tool.description)
        + text_tokens.count(json.dumps({tool.name: tool.parameters}, ensure_ascii=False))
        for tool in tools
    )


def _texts(item: Message | ToolCall | ToolOutput) -> tuple[str, ...]:
    if isinstance(item, Message):
        return (item.text,)
    # Ids count too: some makers' models read them as text.
    return (item.id, item.name, item.arguments) if isinstance(item, ToolCall) else (item.id, item.text)


class Calibrated:
    """Estimates corrected by the counts of servers, by model: never below ``tokens`` or the count of an earlier request of that size."""

    def __init__(self) -> None:
        self._outlines: dict[str, list[tuple[int, int]]] = {}
        self._lines: dict[str, tuple[float, float]] = {}

    def corrected(self, model: str, raw: int) -> int:
        """Return the estimate for ``model`` of a request for which ``tokens`` returns ``raw``, rounded up."""
        ratio, more = self._lines.get(model, (1.0, 0.0))
        # A tiny amount above a whole number is a rounding error, not a token.
        return max(raw, -int(-(raw * ratio + more - 1e-6) // 1))

    def within(self, model: str, most: int) -> int:
        """Return the largest count by ``tokens`` whose estimate for ``model`` is at most ``most``; 0 if none is."""
        ratio, more = self._lines.get(model, (1.0, 0.0))
        raw = max(0, int(min(most, (most - more) / ratio)))
        while raw and self.corrected(model, raw) > most:
            raw -= 1
        return raw

    def take(self, model: str, raw: int, counted: int) -> None:
        """Record the server's count. The largest request shows the tokenizer's ratio; the excess of others is the server's addition."""
        if raw <= 0 or counted < 0:
            return
        seen = self._outlines[model] = _outline([*self._outlines.get(model, ()), (raw, counted)])
        largest, its = seen[-1]
        ratio = max(1.0, its / largest) if largest >= LEAST_TOKENS else 1.0
        self._lines[model] = (ratio, max(0.0, *(each - ratio * size for size, each in seen)))


def _outline(points: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the points on the upper convex hull: one of them has the largest excess, whatever the ratio."""
    upper: list[tuple[int, int]] = []
    for x, y in sorted(points):
        while len(upper) > 1 and _is_below(upper[-1], upper[-2], (x, y)):
            upper.pop()
        upper.append((x, y))
    return upper


def _is_below(point: tuple[int, int], left: tuple[int, int], right: tuple[int, int]) -> bool:
    """True if the point is not above the line between the two others."""
    return (point[1] - left[1]) * (right[0] - left[0]) <= (right[1] - left[1]) * (point[0] - left[0])
