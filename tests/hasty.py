"""Within a command that waits for what never comes: it waits for a shorter time, and does the same when that is over."""

from __future__ import annotations

from runtime.agents import page_tools
from runtime.models import requests

VARIABLE = "RUNOPS_TEST_RULE_SECONDS"
"""The environment variable that says how long a forked command waits for a rule of an agent's `success`, where that agent says that it is done."""

WAIT = "RUNOPS_TEST_FIRST_WAIT"
"""The same of how long it waits before a request to a model is sent again, for the first time."""


def install_from(environment: dict[str, str]) -> None:
    """Wait as long as the environment says; what says so is taken out of it."""
    if (seconds := environment.pop(VARIABLE, None)) is not None:
        page_tools.RULE_SECONDS = float(seconds)
    if (seconds := environment.pop(WAIT, None)) is not None:
        requests.FIRST_WAIT = float(seconds)
