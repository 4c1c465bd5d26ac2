"""RunOps names no model, because providers shut models down, older ones within months."""

from __future__ import annotations

import re
from pathlib import Path

from runtime.settings import settings

ROOT = Path(__file__).parents[2]
OF_PROVIDERS = re.compile(
    r"\b(gpt-\d[\w.-]*|chatgpt-[\w.-]+|o[1345](-(mini|pro|preview))?|codex-[\w-]+|davinci[\w-]*|claude-[\w.-]+|gemini-[\w.-]+)\b"
)
"""Model names of OpenAI and others."""

FILES = [
    each
    for folder, pattern in (
        (".", "README.md"), ("docs", "**/*.md"), ("workflows", "**/*.yaml"), ("workflows", "**/*.json"), ("nodes", "**/*.py"), ("runtime", "**/*.py"),
    )
    for each in sorted((ROOT / folder).glob(pattern))
]  # fmt: skip


def test_no_file_names_a_model() -> None:
    """No page, example, cassette or default names a provider's model, which would break when that model is shut down."""
    found = {each.relative_to(ROOT).as_posix(): OF_PROVIDERS.search(each.read_text(encoding="utf-8")) for each in FILES}
    assert {name: hit[0] for name, hit in found.items() if hit is not None} == {}


def test_there_is_no_default_model() -> None:
    """No setting has a default model."""
    assert {name: settings.Settings.model_fields[name].default for name in ("model", "model_cognition", "model_agent")} == {
        "model": None, "model_cognition": None, "model_agent": None,
    }  # fmt: skip
