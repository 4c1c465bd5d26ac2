"""A model that asks for the same again and again, though it fails each time."""

from __future__ import annotations

import json
from collections import Counter

from nodes.errors import ModelError
from nodes.values import Json
from runtime.messages.messages import ToolCall
from runtime.models.turns import call_checks

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
        key = f"{asked.name} {json.dumps(call_checks.read(asked.arguments), sort_keys=True)}"
        if error is None:
            del self._failures[key]
            return False
        self._failures[key] += error.get("code") != call_checks.OVER
        return self._failures[key] >= EQUAL_FAILURES


def stuck(asked: ToolCall, error: dict[str, Json]) -> ModelError:
    """Why a conversation is given up that does not get past this call."""
    return ModelError(
        "agent-stuck",
        f"the model asked {EQUAL_FAILURES} times for the same `{asked.name}`, and each time it failed: {error.get('message')}",
        mend="say in the goal how it is done, or do this step with a node of its own",
        evidence={"tool": asked.name, "arguments": asked.arguments[:1000], "error": error},
    )
