"""The cost of a build's tools in each request, in the tokens of OpenAI's models."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

from director.builds import open as open_build
from director.conversation.delegate import Delegates, Delegation
from director.conversation.session_tools import OF_TALKS, Toolbox
from director.session.events import Listener
from runtime.messages.messages import Tool
from tests import build_contexts
from tests.now import let_go
from tests.talks import About


def tools(folder: Path) -> list[Tool]:
    """All tools offered to the model of a build, as it sees them."""
    shop = build_contexts.opened(folder)
    try:
        delegate = Delegation(shop.state, Listener(), lambda: box, Delegates(clean=True))
        box = Toolbox(shop.state, About(), shop.listener, [*open_build.toolsets(shop), delegate], OF_TALKS)
        return list(box.offered)
    finally:
        let_go(shop.writer.conversation)


def measure(folder: Path) -> dict[str, int]:
    """The tokens of each tool, by its name: of its name, its description and its schema, as JSON without blanks."""
    with warnings.catch_warnings(action="ignore", category=DeprecationWarning):
        import bpe_openai  # it opens its tables with a deprecated call

        encoding = bpe_openai.get_encoding("o200k_base")
    return {each.name: len(encoding.encode_ordinary(_written(each))) for each in tools(folder)}


def _written(tool: Tool) -> str:
    data = {"type": "function", "name": tool.name, "description": tool.description, "parameters": tool.parameters}
    return json.dumps(data, ensure_ascii=False, separators=(",", ":"))
