"""Settings for tests in which a model is asked: a fake server instead of the provider."""

from __future__ import annotations

from typing import Any

import pytest

from runtime.models import selection
from runtime.settings import settings
from runtime.testing import responses

MODEL = "test-model"


def asked_at(server: responses.Server, patch: pytest.MonkeyPatch, **more: Any) -> settings.Settings:
    """The settings of a run that asks the server, with its key in the environment."""
    patch.setenv(selection.KEY, server.key)
    return settings.load(model=MODEL, model_base_url=server.url, **{"model_profile": "openai", **more})
