"""Within a command that waits for something that never comes: it waits for a shorter time, with the same result."""

from __future__ import annotations

from runtime.agents import page_tools
from runtime.models import requests

VARIABLE = "RUNOPS_TEST_RULE_SECONDS"
"""The environment variable with the seconds for which a forked command waits for a rule of an agent's `success` after its `finish`."""

WAIT = "RUNOPS_TEST_FIRST_WAIT"
"""The same for the first wait before a request to a model is repeated."""


def install_from(environment: dict[str, str]) -> None:
    """Set the waits from these variables, and remove them from the environment."""
    if (seconds := environment.pop(VARIABLE, None)) is not None:
        page_tools.RULE_SECONDS = float(seconds)
    if (seconds := environment.pop(WAIT, None)) is not None:
        requests.FIRST_WAIT = float(seconds)
