"""What a fake server can do: servers that call themselves compatible differ, and programs must live with all of them."""

from __future__ import annotations

import dataclasses
from typing import Literal

FIELDS = frozenset({
    "background", "include", "input", "instructions", "max_output_tokens", "max_tool_calls", "metadata", "model", "parallel_tool_calls",
    "previous_response_id", "prompt_cache_key", "prompt_cache_options", "prompt_cache_retention", "reasoning", "safety_identifier", "service_tier",
    "store", "stream", "stream_options", "temperature", "text", "tool_choice", "tools", "top_logprobs", "top_p", "truncation", "user",
})  # fmt: skip
"""The fields of a request that OpenAI's API knows, but for those of conversations and of stored prompts."""


@dataclasses.dataclass(frozen=True, slots=True)
class Profile:
    """A server's abilities. By default it is as OpenAI's."""

    fields: frozenset[str] = FIELDS
    """Those it knows. Without ``previous_response_id`` it chains nothing, without ``store`` it keeps nothing, without ``background`` everything is answered at once."""
    unknown: Literal["refuse", "ignore"] = "refuse"
    """What it does with a field that it does not know: 400, or it reads over it."""
    schemas: Literal["strict", "any", "none"] = "strict"
    """``strict``: it holds a strict schema to the API's rules; ``any``: it takes every schema; ``none``: asking for JSON by a schema is a 400."""
    unknown_model: Literal[400, 404] = 404
    """The status for a model that it does not have. Servers differ; the code is ``model_not_found`` everywhere."""

    @property
    def keeps(self) -> bool:
        """Whether responses can be kept at all."""
        return "store" in self.fields


OPENAI = Profile()
"""Everything, and what it does not know is refused."""

IGNORING = Profile(FIELDS - {"previous_response_id", "store", "background"}, "ignore", "any")
"""Takes every field and does nothing with state: a request that follows another one is answered as if nothing had gone before."""

REFUSING = Profile(FIELDS - {"previous_response_id", "store", "background"}, "refuse", "none")
"""Has no state and no schemas, and says so."""
