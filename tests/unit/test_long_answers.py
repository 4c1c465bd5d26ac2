"""Long requests and answers, which must not block the rest of the run."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from nodes.schema import answers
from runtime.messages import estimates
from runtime.testing import responses, scripted_model
from tests import models
from tests.rig import Rig

ASK = """
version: 1
name: Ask
nodes:
  - id: kind
    type: cognition
    instruction: Repeat it.
    input: "NOTE"
    output: string
output: "{{ kind }}"
"""


@pytest.mark.parametrize(("size", "aside"), [(10, False), (30_000, True)])
async def test_a_long_text_is_processed_in_another_thread(
    size: int, aside: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A long text is processed in another thread, so that the run renews its lease and gets Ctrl-C; a short one is not."""
    threads: dict[str, list[bool]] = {}

    def seen(module: Any, name: str) -> None:
        really = getattr(module, name)

        def call(*given: Any, **named: Any) -> Any:
            threads.setdefault(name, []).append(threading.current_thread() is threading.main_thread())
            return really(*given, **named)

        monkeypatch.setattr(module, name, call)

    seen(answers, "read")
    seen(estimates, "tokens")
    text = "tea " * (size // 4)
    with responses.serve([scripted_model.server_error(), scripted_model.text({"value": text})]) as server:
        ended = await Rig(tmp_path, ASK.replace("NOTE", text), settings=models.asked_at(server, monkeypatch)).start()
    assert (ended.status, ended.output) == ("passed", text)
    # A request that is sent twice is counted once.
    assert threads == {"read": [not aside], "tokens": [not aside]}
