"""What providers can do. A capability belongs to the provider, is proved by ``runops doctor --model``, and is never guessed from a model's name."""

from __future__ import annotations

import dataclasses
import urllib.parse
from typing import Literal

Schemas = Literal["strict", "plain", "none"]
"""``strict``: the server makes the answer fit a schema; ``plain``: it takes the schema, and may not keep to it; ``none``: the schema is told in words."""

OPENAI_URL = "https://api.openai.com/v1"


@dataclasses.dataclass(frozen=True, slots=True)
class Profile:
    """A provider's capabilities."""

    name: str
    chaining: bool
    """Whether it keeps responses, and goes on from one by ``previous_response_id``."""
    background: bool
    """Whether it works on a request while nobody is connected, and can be asked for it later."""
    streaming: bool
    """Whether it sends an answer in pieces, with the events of the Responses API."""
    schemas: Schemas
    hosts: tuple[str, ...] = ()
    """Host names, or their endings with a leading dot, by which it is known."""
    ports: tuple[int, ...] = ()
    """Ports on this machine at which it is usually found."""


PROFILES = {
    each.name: each
    for each in (
        Profile("openai", True, True, True, "strict", hosts=("api.openai.com",)),
        Profile(
            "azure",
            True,
            True,
            True,
            "strict",
            hosts=(".openai.azure.com", ".cognitiveservices.azure.com", ".services.ai.azure.com"),
        ),
        Profile("openrouter", False, False, True, "strict", hosts=("openrouter.ai",)),
        Profile("vllm", False, False, True, "strict", ports=(8000,)),
        Profile("ollama", False, False, True, "plain", ports=(11434,)),
        Profile("compatible", False, False, False, "none"),
    )
}
"""The known providers. ``compatible`` is any other server: it is asked for nothing that it might lack."""

LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})


def of_url(base_url: str) -> Profile:
    """The provider that is known to stand at an address; ``compatible`` where none is."""
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
