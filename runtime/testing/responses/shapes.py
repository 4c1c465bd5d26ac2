"""Responses, items, usage and event streams, with every field of the client's types; ids and times follow from numbers."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from nodes.values import Json
from runtime.messages.messages import Usage
from runtime.testing.responses.rules import form_of
from runtime.testing.scripted_model import Answer, Item, text_of

BEGINNING = 1_700_000_000  # Unix time before the first response: each response is a second after the one before
Tokens = Callable[[str], int]  # returns the number of tokens of a text


def four_bytes(text: str) -> int:
    """Count one token for every four bytes of the text in UTF-8, and one for the remainder."""
    return -(-len(text.encode()) // 4)


def asked_text(body: dict[str, Json], items: Sequence[Item]) -> str:
    """Return all text of a request that counts as input, in lines: instructions, items, and as JSON the tools and the schema."""
    form = form_of(body)
    parts = [body.get("instructions") or "", *(text_of(item) for item in items)]
    parts += [json.dumps(tool) for tool in body.get("tools") or ()]
    parts += [json.dumps(form["schema"])] if "schema" in form else []
    return "\n".join(part for part in parts if part)


_NULL = ("completed_at", "error", "incomplete_details", "usage")
_REPEATED: dict[str, Json] = {
    **dict.fromkeys(("instructions", "max_output_tokens", "max_tool_calls", "previous_response_id")),
    **dict.fromkeys(("prompt_cache_key", "safety_identifier", "user")),
    "parallel_tool_calls": True,
    "temperature": 1.0,
    "tool_choice": "auto",
    "top_logprobs": 0,
    "top_p": 1.0,
    "truncation": "disabled",
}
"""Fields of a request that its response repeats, with their defaults."""


def beginning(number: int, body: dict[str, Json], *, keeps: bool) -> dict[str, Any]:
    return {
        **dict.fromkeys(_NULL),
        **{name: body.get(name, default) for name, default in _REPEATED.items()},
        "id": f"resp_{number:04d}",
        "object": "response",
        "created_at": BEGINNING + number,
        "status": "in_progress",
        "background": bool(body.get("background")),
        "metadata": body.get("metadata") or {},
        "model": body["model"],
        "output": [],
        "reasoning": {"effort": None, "summary": None, **(body.get("reasoning") or {})},
        "service_tier": "default",
        "store": keeps,
        "text": {"format": {"type": "text"}, "verbosity": "medium", **(body.get("text") or {})},
        "tools": body.get("tools") or [],
    }


def ended(begun: dict[str, Any], answer: Answer, read: str, tokens: Tokens, *, sealed: bool) -> dict[str, Any]:
    """Return the response with the whole output of its answer.

    ``read`` is the text of the request, counted by ``tokens``; ``sealed``: reasoning has its content, encrypted.
    """
    number = int(begun["id"].removeprefix("resp_"))
    output = [_item(part, f"{number:04d}_{place}", answer.status, sealed) for place, part in enumerate(answer.parts)]
    response = {**begun, "status": answer.status, "output": output, "usage": _usage(answer, read, output, tokens)}
    if answer.status == "completed":
        response["completed_at"] = begun["created_at"]
    if answer.reason:
        response["incomplete_details"] = {"reason": answer.reason}
    if answer.error:
        response["error"] = {"code": answer.error[0], "message": answer.error[1]}
    return response


def _item(part: Item, number: str, status: str, sealed: bool) -> Item:
    kind = part["type"]
    item = {"type": kind, "id": f"{_PREFIXES[kind]}_{number}", **part}
    if kind == "reasoning":
        content = item.pop("encrypted_content", f"sealed_{number}")
        return item | ({"encrypted_content": content} if sealed else {})
    if kind == "function_call":
        item.setdefault("call_id", f"call_{number}")
    return item | {"status": "completed" if status == "completed" else "incomplete"}


_PREFIXES = {"message": "msg", "function_call": "fc", "reasoning": "rs"}


def _usage(answer: Answer, read: str, output: Sequence[Item], tokens: Tokens) -> dict[str, Any] | None:
    if answer.usage == "untold":
        return None
    usage = answer.usage
    if usage == "counted":
        thoughts = sum(tokens(text_of(item)) for item in output if item["type"] == "reasoning")
        said = sum(tokens(text_of(item)) for item in output if item["type"] != "reasoning")
        usage = Usage(input=tokens(read), cached=0, output=thoughts + said, reasoning=thoughts)
    return {
        "input_tokens": usage.input,
        "input_tokens_details": {"cached_tokens": usage.cached, "cache_write_tokens": 0},
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning},
        "total_tokens": usage.input + usage.output,
    }


def model(name: str, ends: str | None) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": BEGINNING, "owned_by": "runops", "shutdown_date": ends}


PIECE = 8  # characters in each piece of a text

Event = dict[str, Any]

_BEFORE: dict[str, Event] = {
    "message": {"content": [], "status": "in_progress"},
    "function_call": {"arguments": "", "status": "in_progress"},
    "reasoning": {"summary": []},
}
"""Fields of an item before any of its output."""


def stream_of(begun: dict[str, Any], ended: dict[str, Any], *, finished: bool = True) -> Iterator[Event]:
    """Yield the events of a response. Unless ``finished``, its end and that of its last item are missing."""
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
