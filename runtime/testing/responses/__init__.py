"""A fake of OpenAI's Responses API on loopback, for the real client: it keeps state, enforces the protocol, and fails on demand.

See ``docs/testing.md``; ``runtime.testing.scripted_model`` scripts its model.
"""

from runtime.testing.responses.rules import FIELDS, IGNORING, OPENAI, REFUSING, Profile
from runtime.testing.responses.server import KEY, Received, Server, serve
from runtime.testing.responses.shapes import asked_text

__all__ = ["FIELDS", "IGNORING", "KEY", "OPENAI", "REFUSING", "Profile", "Received", "Server", "asked_text", "serve"]
