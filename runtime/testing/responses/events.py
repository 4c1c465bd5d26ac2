"""A response as a stream of numbered events, in the API's order."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

PIECE = 8
"""Characters in each piece of a text."""

Event = dict[str, Any]

_BEFORE: dict[str, Event] = {
    "message": {"content": [], "status": "in_progress"},
    "function_call": {"arguments": "", "status": "in_progress"},
    "reasoning": {"summary": []},
}
"""Fields of an item before any of its output."""


def of(begun: dict[str, Any], ended: dict[str, Any], *, finished: bool = True) -> Iterator[Event]:
    """Yield the stream of a response. One that breaks (not ``finished``) lacks its end and the end of its last item."""
    for number, event in enumerate(_events(begun, ended, finished=finished)):
        yield {"type": event["type"], "sequence_number": number, **event}


def _events(begun: dict[str, Any], ended: dict[str, Any], *, finished: bool) -> Iterator[Event]:
    queued = {**begun, "status": "queued"}
    yield {"type": "response.created", "response": queued if begun["background"] else begun}
    if begun["background"]:
        yield {"type": "response.queued", "response": queued}
    yield {"type": "response.in_progress", "response": begun}
    for index, item in enumerate(ended["output"]):
        whole = finished or index + 1 < len(ended["output"])
        yield {"type": "response.output_item.added", "output_index": index, "item": item | _BEFORE[item["type"]]}
        yield from _output(item, {"item_id": item["id"], "output_index": index}, whole=whole)
        if whole:
            yield {"type": "response.output_item.done", "output_index": index, "item": item}
    if finished:
        yield {"type": f"response.{ended['status']}", "response": ended}


def _output(item: dict[str, Any], at: Event, *, whole: bool) -> Iterator[Event]:
    more: Event = {}
    match item["type"]:
        case "message":
            part, around, at = item["content"][0], "content_part", {**at, "content_index": 0}
            field, kind = ("refusal", "refusal") if part["type"] == "refusal" else ("text", "output_text")
            more = {"logprobs": []} if field == "text" else {}
        case "function_call":
            part, around, field, kind = item, None, "arguments", "function_call_arguments"
        case _:
            part, around, at = item["summary"][0], "reasoning_summary_part", {**at, "summary_index": 0}
            field, kind = "text", "reasoning_summary_text"
    text = part[field]
    if around:
        yield {"type": f"response.{around}.added", **at, "part": {**part, field: ""}}
    for start in range(0, len(text), PIECE):
        yield {"type": f"response.{kind}.delta", **at, "delta": text[start : start + PIECE], **more}
    if whole:
        yield {"type": f"response.{kind}.done", **at, field: text, **more}
        if around:
            yield {"type": f"response.{around}.done", **at, "part": part}
