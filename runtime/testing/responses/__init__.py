"""A fake of OpenAI's Responses API on loopback, for the real client: it keeps state, holds clients to the protocol, and breaks when it is told to.

``docs/testing.md`` tells how to use it; ``runtime.testing.scripted_model`` has what its model says.
"""

from runtime.testing.responses.profile import FIELDS, IGNORING, OPENAI, REFUSING, Profile
from runtime.testing.responses.record import Received
from runtime.testing.responses.server import KEY, Server, serve
from runtime.testing.responses.shapes import asked_text, four_bytes

__all__ = [
    "FIELDS",
    "IGNORING",
    "KEY",
    "OPENAI",
    "REFUSING",
    "Profile",
    "Received",
    "Server",
    "asked_text",
    "four_bytes",
    "serve",
]
