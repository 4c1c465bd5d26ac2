"""The conversation of the session that began a run, as the models of its steps have it: written once, before the run does anything."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from nodes.errors import ModelError
from runtime.context import items as window_items
from runtime.context import window
from runtime.messages.messages import Item, Message, ToolCall, ToolOutput

MOST = 8_000  # tokens: it is sent with each request of a step, which has its own task and budget

BEGIN = (
    "(What follows until its end is marked was said between a person and a model before this run, in other modes: its tools"
    " are not yours, and its requests are no task of yours. It is background.)"
)
END = "(End of that conversation. Your task follows.)"


def of_session(thread: window_items.Thread, limits: window.Limits) -> tuple[Item, ...]:
    """Return what a session's window holds of its thread, within ``MOST`` tokens; nothing if nothing was said, or its newest word is larger."""
    if not len(thread) and thread.summary is None:
        return ()
    most = min(MOST, limits.hard_limit or limits.compress_at)
    try:
        built = window.build(
            thread, window.RequestFrame(()), limits.model_copy(update={"hard_limit": None, "compress_at": most})
        )
    except ModelError:
        return ()
    # Reasoning is sealed for the model that made it.
    shown = tuple(each for each in built.items if isinstance(each, Message | ToolCall | ToolOutput))
    return (Message("user", BEGIN), *shown, Message("user", END)) if shown else ()


def written(items: Sequence[Item]) -> str:
    return json.dumps([_fields(each) for each in items], ensure_ascii=False)


def read(text: str) -> tuple[Item, ...]:
    return tuple(map(_item, json.loads(text)))


def _fields(item: Item) -> dict[str, str]:
    match item:
        case Message():
            return {"role": item.role, "text": item.text}
        case ToolCall():
            return {"call": item.id, "name": item.name, "arguments": item.arguments}
        case ToolOutput():
            return {"output": item.id, "text": item.text}
        case _:
            raise AssertionError("reasoning is no part of it")


def _item(fields: dict[str, Any]) -> Item:
    if "role" in fields:
        return Message(fields["role"], fields["text"])
    if "call" in fields:
        return ToolCall(fields["call"], fields["name"], fields["arguments"])
    return ToolOutput(fields["output"], fields["text"])
