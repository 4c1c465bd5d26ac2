"""Checks of a model's calls before a tool receives them: unknown tools, invalid arguments, secrets; and repeated failures."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import jsonschema

from nodes.errors import ModelError
from nodes.values import Json, normalise
from runtime.messages.messages import Tool, ToolCall
from runtime.messages.plain_schemas import may_be_null

MOST_PROBLEMS = 5  # most problems shown to the model of one call's arguments

OVER = "tool-not-done"

REFUSAL_CODES = frozenset(
    {"tool-unknown", "tool-arguments", "secret-refused", OVER}
)  # codes of refusals by a turn itself


def of(asked: ToolCall, offered: Sequence[Tool], *, holds_secret: bool, lenient: bool = False) -> ModelError | None:
    """Return the error of a call that must not be executed; None if a tool may receive it. A ``lenient`` tool receives any JSON object."""
    tool = _tool(asked, offered)
    if tool is None:
        names = ", ".join(each.name for each in offered)
        return ModelError("tool-unknown", f"there is no tool `{asked.name}`", fix=f"these are the tools: {names}")
    if holds_secret:
        return ModelError(
            "secret-refused",
            "a secret of the run is in the arguments, and no secret is typed or sent for a model",
            fix="continue without it",
        )
    given = arguments(asked, offered)
    problems = list(_problems(tool, given))
    if not problems or (lenient and isinstance(given, dict)):
        return None
    found = "; ".join(problems[:MOST_PROBLEMS])
    return ModelError("tool-arguments", f"the arguments do not fit `{tool.name}`: {found}", fix="call it again, fixed")


def over(why: str) -> ModelError:
    return ModelError(
        OVER,
        f"not done: {why}",
        fix="look at its outcome, then call this again if it is still needed",
    )


def stopped() -> ModelError:
    return ModelError(OVER, "not done: the person stopped the work before it", fix="call it again only if they want it")


def render_error(error: Mapping[str, Json]) -> str:
    return f"{error['message']} ({error['code']}). {error.get('fix') or ''}".rstrip()


def arguments(asked: ToolCall, offered: Sequence[Tool]) -> Json:
    """Parse a call's arguments; they stay text if they are no JSON. Missing nullable ones become null, as some models leave them out.

    A reason is left out if the tool asks for none: most tools do, and models give it to all.
    """
    given = read(asked.arguments or "{}")
    tool = _tool(asked, offered)
    if not isinstance(given, dict) or tool is None:
        return given
    fields: dict[str, Json] = tool.parameters.get("properties") or {}
    given = {name: each for name, each in given.items() if name != "reason" or name in fields}
    return {**{name: None for name, field in fields.items() if may_be_null(field)}, **given}


def read(text: str) -> Json:
    try:
        return normalise(json.loads(text))
    except (ValueError, RecursionError):
        return text


def _tool(asked: ToolCall, offered: Sequence[Tool]) -> Tool | None:
    return next((each for each in offered if each.name == asked.name), None)


def _problems(tool: Tool, given: Json) -> Iterator[str]:
    if not isinstance(given, dict):
        yield "they are no JSON object"
        return
    fits: Any = jsonschema.Draft202012Validator(tool.parameters)
    for error in fits.iter_errors(given):
        where = "".join(f".{each}" if isinstance(each, str) else f"[{each}]" for each in error.absolute_path)
        yield f"{where[1:] or 'arguments'}: {error.message}"[:300]


EQUAL_FAILURES = 3  # number of times one call may fail before the conversation is given up


class Failures:
    """Counts the failures of each call since its last success."""

    def __init__(self) -> None:
        self._failures = Counter[str]()

    def forget(self) -> None:
        self._failures.clear()

    def too_many(self, asked: ToolCall, error: dict[str, Json] | None) -> bool:
        """Count the outcome of a call; True if it has failed too often now."""
        key = f"{asked.name} {json.dumps(read(asked.arguments), sort_keys=True)}"
        if error is None:
            del self._failures[key]
            return False
        self._failures[key] += error.get("code") != OVER
        return self._failures[key] >= EQUAL_FAILURES


def stuck(asked: ToolCall, error: dict[str, Json]) -> ModelError:
    return ModelError(
        "agent-stuck",
        f"the model asked {EQUAL_FAILURES} times for the same `{asked.name}`, and each time it failed: {error.get('message')}",
        fix="say in the goal how it is done, or do this step with a node of its own",
        evidence={"tool": asked.name, "arguments": asked.arguments[:1000], "error": error},
    )
