"""Capabilities of providers. ``runops doctor --model`` checks them; they are never guessed from a model's name."""

from __future__ import annotations

import dataclasses
import urllib.parse
from typing import Literal

Schemas = Literal["strict", "plain", "none"]
"""``strict``: the server enforces the schema. ``plain``: it accepts one without enforcing it. ``none``: the schema goes into the prompt."""

OPENAI_URL = "https://api.openai.com/v1"


@dataclasses.dataclass(frozen=True, slots=True)
class Profile:
    name: str
    chaining: bool  # true if it stores responses, and continues one by `previous_response_id`
    background: bool  # true if it works on a request in the background, and the answer can be fetched later
    streaming: bool  # true if it streams answers, with the events of the Responses API
    schemas: Schemas
    sealed: bool = False  # true if it gives reasoning in encrypted form, to be sent back with later requests
    sees: bool = False  # true if its models mostly see pictures, and outputs of tools may hold them
    max_output: int = 4_000  # tokens, reasoning included, that an answer of a session may have if no setting says so
    hosts: tuple[str, ...] = ()  # host names, or their endings with a leading dot, that identify it
    ports: tuple[int, ...] = ()


REASONING = 16_000  # the same for a provider whose models mostly reason: with 4,000 many answers would be cut before their first word

AZURE = (".openai.azure.com", ".cognitiveservices.azure.com", ".services.ai.azure.com")

PROFILES = {
    each.name: each
    for each in (
        Profile("openai", True, True, True, "strict", True, True, REASONING, hosts=("api.openai.com",)),
        Profile("azure", True, True, True, "strict", True, True, REASONING, hosts=AZURE),
        Profile("openrouter", False, False, True, "strict", True, False, REASONING, hosts=("openrouter.ai",)),
        Profile("vllm", False, False, True, "strict", ports=(8000,)),
        Profile("ollama", False, False, True, "plain", ports=(11434,)),
        Profile("compatible", False, False, False, "none"),
    )
}
"""The known providers. ``compatible`` is any other server, with no optional capability."""

LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})


def of_url(base_url: str) -> Profile:
    """Return the provider known at an address, else ``compatible``."""
    address = urllib.parse.urlsplit(base_url)
    host = (address.hostname or "").lower()
    for profile in PROFILES.values():
        if any(host == each or (each.startswith(".") and host.endswith(each)) for each in profile.hosts):
            return profile
        if host in LOOPBACK and _port(address) in profile.ports:
            return profile
    return PROFILES["compatible"]


def _port(address: urllib.parse.SplitResult) -> int | None:
    try:
        return address.port
    except ValueError:
        return None
