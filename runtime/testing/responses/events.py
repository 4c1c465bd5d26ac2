"""A response as a stream of numbered events, in the API's order."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

PIECE = 8
"""Characters in each piece of a text."""

Event = dict[str, Any]


def of(begun: dict[str, Any], ended: dict[str, Any]) -> Iterator[Event]:
    """Yield the whole stream of a response: its beginning, its output, and its end."""
    yield from _numbered([*_opening(begun), *_said(ended, finished=True), _closing(ended)])


def before_end(begun: dict[str, Any], ended: dict[str, Any]) -> Iterator[Event]:
    """Yield the stream of a response that breaks: all pieces of its output, and the ends of all items but the last, without an end."""
    yield from _numbered([*_opening(begun), *_said(ended, finished=False)])


def error(number: int, code: str, message: str, *, nested: bool) -> Event:
    """Return an ``error`` event, flat as the API documents it, or with its fields below ``error``."""
    words = {"code": code, "message": message, "param": None}
    return {"type": "error", "sequence_number": number, **({"error": words} if nested else words)}


def _numbered(events: list[Event]) -> Iterator[Event]:
    for number, event in enumerate(events):
        yield {"type": event["type"], "sequence_number": number, **event}


def _opening(begun: dict[str, Any]) -> Iterator[Event]:
    background = begun["background"]
    yield {"type": "response.created", "response": {**begun, "status": "queued"} if background else begun}
    if background:
        yield {"type": "response.queued", "response": {**begun, "status": "queued"}}
    yield {"type": "response.in_progress", "response": begun}


def _closing(ended: dict[str, Any]) -> Event:
    return {"type": f"response.{ended['status']}", "response": ended}


def _said(ended: dict[str, Any], *, finished: bool) -> Iterator[Event]:
    for index, item in enumerate(ended["output"]):
        whole = finished or index + 1 < len(ended["output"])
        at = {"item_id": item["id"], "output_index": index}
        yield {"type": "response.output_item.added", "output_index": index, "item": _empty(item)}
        match item["type"]:
            case "message":
                yield from _content(item["content"][0], {**at, "content_index": 0}, whole)
            case "function_call":
                yield from _arguments(item, at, whole)
            case _:
                yield from _summary(item["summary"][0], {**at, "summary_index": 0}, whole)
        if whole:
            yield {"type": "response.output_item.done", "output_index": index, "item": item}


def _empty(item: dict[str, Any]) -> dict[str, Any]:
    """Return an item before any of its output."""
    match item["type"]:
        case "message":
            return {**item, "content": [], "status": "in_progress"}
        case "function_call":
            return {**item, "arguments": "", "status": "in_progress"}
        case _:
            return {**item, "summary": []}


def _pieces(text: str) -> Iterator[str]:
    for start in range(0, len(text), PIECE):
        yield text[start : start + PIECE]


def _content(part: dict[str, Any], at: dict[str, Any], whole: bool) -> Iterator[Event]:
    field = "refusal" if part["type"] == "refusal" else "text"
    kind = "response.refusal" if field == "refusal" else "response.output_text"
    more = {} if field == "refusal" else {"logprobs": []}
    yield {"type": "response.content_part.added", **at, "part": {**part, field: ""}}
    for piece in _pieces(part[field]):
        yield {"type": f"{kind}.delta", **at, "delta": piece, **more}
    if whole:
        yield {"type": f"{kind}.done", **at, field: part[field], **more}
        yield {"type": "response.content_part.done", **at, "part": part}


def _arguments(item: dict[str, Any], at: dict[str, Any], whole: bool) -> Iterator[Event]:
    kind = "response.function_call_arguments"
    for piece in _pieces(item["arguments"]):
        yield {"type": f"{kind}.delta", **at, "delta": piece}
    if whole:
        yield {"type": f"{kind}.done", **at, "arguments": item["arguments"]}


def _summary(part: dict[str, Any], at: dict[str, Any], whole: bool) -> Iterator[Event]:
    kind = "response.reasoning_summary"
    yield {"type": f"{kind}_part.added", **at, "part": {**part, "text": ""}}
    for piece in _pieces(part["text"]):
        yield {"type": f"{kind}_text.delta", **at, "delta": piece}
    if whole:
        yield {"type": f"{kind}_text.done", **at, "text": part["text"]}
        yield {"type": f"{kind}_part.done", **at, "part": part}
