"""Responses, their items and usage, with every field of a client's types. Ids and times follow from numbers, so a recording repeats."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from nodes.values import Json
from runtime.messages.messages import Usage
from runtime.testing.responses.rules import Item, form_of
from runtime.testing.scripted_model import Answer, Call, Part, Refusal, Text, text_of

BEGINNING = 1_700_000_000
"""Approximate Unix time of the first response: each is a second after the one before."""

Tokens = Callable[[str], int]
"""Returns the number of tokens of a text."""


def four_bytes(text: str) -> int:
    """Count a token for each four bytes of the text in UTF-8, and one for the remainder."""
    return -(-len(text.encode()) // 4)


def asked_text(body: dict[str, Json], items: Sequence[Item]) -> str:
    """Return all text of a request that counts as input: instructions, items, tools and schema, a line each, the last two as JSON."""
    form = form_of(body)
    parts = [body.get("instructions") or "", *(text_of(item) for item in items)]
    parts += [json.dumps(tool) for tool in body.get("tools") or ()]
    parts += [json.dumps(form["schema"])] if "schema" in form else []
    return "\n".join(part for part in parts if part)


def beginning(number: int, body: dict[str, Json], *, keeps: bool) -> dict[str, Any]:
    return {
        "id": f"resp_{number:04d}",
        "object": "response",
        "created_at": BEGINNING + number,
        "status": "in_progress",
        "background": bool(body.get("background")),
        "completed_at": None,
        "error": None,
        "incomplete_details": None,
        "instructions": body.get("instructions"),
        "max_output_tokens": body.get("max_output_tokens"),
        "max_tool_calls": body.get("max_tool_calls"),
        "metadata": body.get("metadata") or {},
        "model": body["model"],
        "output": [],
        "parallel_tool_calls": body.get("parallel_tool_calls", True),
        "previous_response_id": body.get("previous_response_id"),
        "prompt_cache_key": body.get("prompt_cache_key"),
        "reasoning": {"effort": None, "summary": None, **(body.get("reasoning") or {})},
        "safety_identifier": body.get("safety_identifier"),
        "service_tier": "default",
        "store": keeps,
        "temperature": body.get("temperature", 1.0),
        "text": {"format": {"type": "text"}, "verbosity": "medium", **(body.get("text") or {})},
        "tool_choice": body.get("tool_choice", "auto"),
        "tools": body.get("tools") or [],
        "top_logprobs": body.get("top_logprobs", 0),
        "top_p": body.get("top_p", 1.0),
        "truncation": body.get("truncation", "disabled"),
        "usage": None,
        "user": body.get("user"),
    }


def ended(begun: dict[str, Any], answer: Answer, read: str, tokens: Tokens, *, sealed: bool) -> dict[str, Any]:
    """Return the response with the whole output of its answer.

    ``read`` is the text of the request, counted by ``tokens``; ``sealed``: reasoning comes with its content, encrypted.
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


def _item(part: Part, number: str, status: str, sealed: bool) -> dict[str, Any]:
    whole = "completed" if status == "completed" else "incomplete"
    match part:
        case Text(text):
            content = {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
            return _message(number, whole, content)
        case Refusal(text):
            return _message(number, whole, {"type": "refusal", "refusal": text})
        case Call(name, arguments, call_id):
            return {
                "type": "function_call",
                "id": f"fc_{number}",
                "call_id": call_id or f"call_{number}",
                "name": name,
                "arguments": arguments,
                "status": whole,
            }
        case thought:
            summary = [{"type": "summary_text", "text": thought.summary}]
            item = {"type": "reasoning", "id": f"rs_{number}", "summary": summary}
            return item | ({"encrypted_content": f"sealed_{number}"} if sealed else {})


def _message(number: str, status: str, content: dict[str, Any]) -> dict[str, Any]:
    return {"type": "message", "id": f"msg_{number}", "role": "assistant", "status": status, "content": [content]}


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
