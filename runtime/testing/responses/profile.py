"""Abilities of a fake server, since compatible servers differ, and programs must work with all of them."""

from __future__ import annotations

import dataclasses
from typing import Literal

FIELDS = frozenset({
    "background", "include", "input", "instructions", "max_output_tokens", "max_tool_calls", "metadata", "model", "parallel_tool_calls",
    "previous_response_id", "prompt_cache_key", "prompt_cache_options", "prompt_cache_retention", "reasoning", "safety_identifier", "service_tier",
    "store", "stream", "stream_options", "temperature", "text", "tool_choice", "tools", "top_logprobs", "top_p", "truncation", "user",
})  # fmt: skip
"""The fields of a request that OpenAI's API knows, except those of conversations and of stored prompts."""


@dataclasses.dataclass(frozen=True, slots=True)
class Profile:
    """A server's abilities; by default those of OpenAI's."""

    fields: frozenset[str] = FIELDS
    """The known fields. ``previous_response_id`` is needed for chaining, ``store`` for keeping, ``background`` for background work."""
    unknown: Literal["refuse", "ignore"] = "refuse"
    """Reaction to an unknown field: 400, or it is ignored."""
    schemas: Literal["strict", "any", "none"] = "strict"
    """``strict``: a strict schema must follow the API's rules; ``any``: every schema is accepted; ``none``: a schema for JSON is a 400."""
    unknown_model: Literal[400, 404] = 404
    """The status for an unknown model. Servers differ; the code is ``model_not_found`` everywhere."""

    @property
    def keeps(self) -> bool:
        """True if responses can be kept at all."""
        return "store" in self.fields


OPENAI = Profile()
"""All abilities; unknown fields are refused."""

IGNORING = Profile(FIELDS - {"previous_response_id", "store", "background"}, "ignore", "any")
"""Accepts every field without keeping state: a request that continues another one is answered as if there were none before."""

REFUSING = Profile(FIELDS - {"previous_response_id", "store", "background"}, "refuse", "none")
"""A server without state and schemas, which refuses both."""
