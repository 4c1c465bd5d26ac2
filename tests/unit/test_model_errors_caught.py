"""Model errors that a workflow may catch, and those that it may not."""

from __future__ import annotations

from pathlib import Path

import pytest

from nodes.errors import AssertFailed, AuthorError, CassetteMiss, ModelError, OriginRefused, RunOpsError, SiteError
from runtime.engine import blocks
from runtime.models.cassettes import cassettes
from runtime.testing import responses, scripted_model
from tests import models
from tests.rig import Rig

CAUGHT = """
version: 1
name: Caught
nodes:
  - id: guarded
    type: handle
    try:
      - {id: kind, type: cognition, instruction: Sort it., input: tea, output: [a, b]}
    catch:
      - {id: told, type: transform, expr: "{{ error.code }}"}
    value: "{{ told | default('nothing') }}"
output: "{{ guarded }}"
"""

PASSED = """
version: 1
name: Passed
nodes:
  - {id: kind, type: cognition, instruction: Sort it., input: tea, output: [a, b], on_error: continue}
  - id: guarded
    type: handle
    try:
      - {id: again, type: cognition, instruction: Sort it., input: tea, output: [a, b]}
    catch:
      - {id: told, type: transform, expr: "{{ error.code }}"}
"""


async def test_a_handle_catches_a_model_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A handle catches a model error as it catches a page error."""
    with responses.serve([scripted_model.quota()]) as server:
        rig = Rig(tmp_path, CAUGHT, settings=models.asked_at(server, monkeypatch))
        ended = await rig.start()
    assert (ended.status, ended.output) == ("passed", "model-quota")


@pytest.mark.parametrize("text", [CAUGHT, PASSED], ids=["handle", "on_error"])
async def test_nothing_catches_a_miss(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run with a cassette miss fails whatever error handling its author wrote, because it would prove nothing."""
    monkeypatch.chdir(tmp_path)
    cassettes.path_of(Path("test.yaml")).parent.mkdir()
    cassettes.path_of(Path("test.yaml")).write_bytes(cassettes.written([]))
    with responses.serve([]) as server:
        rig = Rig(tmp_path, text, settings=models.asked_at(server, monkeypatch, model_calls="replay"))
        ended = await rig.start()
        assert not server.asked
    assert ended.status == "failed"
    assert ended.error is not None
    assert ended.error["code"] == "cassette-miss"
    assert "guarded/catch/told" not in rig.history.attempts


ERRORS: list[RunOpsError] = [
    AuthorError("value-mismatch", "no"),
    AssertFailed("assert-failed", "no"),
    SiteError("target-not-found", "no"),
    OriginRefused("origin-refused", "no"),
    ModelError("model-quota", "no"),
    CassetteMiss("cassette-miss", "no"),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: error.code)
def test_an_error_of_the_log_has_its_original_class(error: RunOpsError) -> None:
    """An error read from the log has its original class, so that a resumed run catches the same errors."""
    rebuilt = blocks.rebuilt({**error.as_json(), "step": "guarded/kind"})
    assert type(rebuilt) is type(error)
    assert rebuilt.as_json() == error.as_json()
    assert rebuilt.path == "guarded/kind"
