"""What is refused of a model's calls before any tool sees them: a tool that is not there, arguments that do not fit, a secret in them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import jsonschema

from nodes.errors import ModelError
from nodes.values import Json, normalise
from runtime.messages.messages import Tool, ToolCall

MOST_PROBLEMS = 5
"""Problems of a call's arguments that the model is told at once."""

OVER = "tool-not-done"

OURS = frozenset({"tool-unknown", "tool-arguments", "secret-refused", OVER})
"""Codes of what a turn refuses itself."""


def of(asked: ToolCall, offered: Sequence[Tool], *, holds_secret: bool) -> ModelError | None:
    """Why the call is not done; None where a tool may see it."""
    tool = _tool(asked, offered)
    if tool is None:
        names = ", ".join(each.name for each in offered)
        return ModelError("tool-unknown", f"there is no tool `{asked.name}`", fix=f"these are the tools: {names}")
    if holds_secret:
        return ModelError(
            "secret-refused",
            "a secret of the run stands in the arguments, and no secret is typed or sent for a model",
            fix="go on without it",
        )
    problems = list(_problems(tool, arguments(asked, offered)))
    if not problems:
        return None
    found = "; ".join(problems[:MOST_PROBLEMS])
    return ModelError("tool-arguments", f"the arguments do not fit `{tool.name}`: {found}", fix="call it again, fixed")


def over(why: str) -> ModelError:
    """Why a call is not done behind another one of the same answer."""
    return ModelError(
        OVER,
        f"not done: an earlier call of the same answer {why}",
        fix="look at what came of that one, then ask for it again if it is still wanted",
    )


def told(error: Mapping[str, Json]) -> str:
    """What the model is told of what it may not do, or cannot."""
    return f"{error['message']} ({error['code']}). {error['fix']}"


def arguments(asked: ToolCall, offered: Sequence[Tool]) -> Json:
    """The arguments; as text where they are no JSON. Left out may be what may be null, as models of lesser servers do."""
    given = read(asked.arguments or "{}")
    tool = _tool(asked, offered)
    if not isinstance(given, dict) or tool is None:
        return given
    fields: dict[str, Json] = tool.parameters.get("properties") or {}
    return {**{name: None for name, field in fields.items() if _may_be_null(field)}, **given}


def read(text: str) -> Json:
    """Arguments as the value that they are; as text where they are no JSON."""
    try:
        return normalise(json.loads(text))
    except (ValueError, RecursionError):
        return text


def _tool(asked: ToolCall, offered: Sequence[Tool]) -> Tool | None:
    return next((each for each in offered if each.name == asked.name), None)


def _may_be_null(field: Json) -> bool:
    kinds: Json = field.get("type")
    return kinds == "null" or (isinstance(kinds, list) and "null" in kinds)


def _problems(tool: Tool, given: Json) -> Iterator[str]:
    """What does not fit the tool's schema."""
    if not isinstance(given, dict):
        yield "they are no JSON object"
        return
    fits: Any = jsonschema.Draft202012Validator(tool.parameters)
    for error in fits.iter_errors(given):
        where = "".join(f".{each}" if isinstance(each, str) else f"[{each}]" for each in error.absolute_path)
        yield f"{where[1:] or 'arguments'}: {error.message}"[:300]


EQUAL_FAILURES = 3
"""How often one call may fail, before the conversation is given up."""


class Failures:
    """Counts how often each call has failed, from the last time that it went right."""

    def __init__(self) -> None:
        self._failures = Counter[str]()

    def forget(self) -> None:
        """Begin anew: somebody has spoken since."""
        self._failures.clear()

    def too_many(self, asked: ToolCall, error: dict[str, Json] | None) -> bool:
        """Count what came of a call; whether it has failed too often now."""
        key = f"{asked.name} {json.dumps(read(asked.arguments), sort_keys=True)}"
        if error is None:
            del self._failures[key]
            return False
        self._failures[key] += error.get("code") != OVER
        return self._failures[key] >= EQUAL_FAILURES


def stuck(asked: ToolCall, error: dict[str, Json]) -> ModelError:
    """Why a conversation is given up that does not get past this call."""
    return ModelError(
        "agent-stuck",
        f"the model asked {EQUAL_FAILURES} times for the same `{asked.name}`, and each time it failed: {error.get('message')}",
        fix="say in the goal how it is done, or do this step with a node of its own",
        evidence={"tool": asked.name, "arguments": asked.arguments[:1000], "error": error},
    )
