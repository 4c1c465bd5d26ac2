"""Browser options with references in a workflow file, through a whole run."""

from __future__ import annotations

from pathlib import Path

import pytest

from runtime.runs import start
from runtime.settings import settings
from runtime.workspace import host
from tests.site import serve

pytestmark = [pytest.mark.full_browser, pytest.mark.own_driver]

FLOW = """
version: 1
name: Headers
inputs: {base_url: {type: string}, who: {type: string}}
secrets: [TOKEN]
browser:
  mode: MODE
  headers: {X-Who: "{{ inputs.who }}", X-Token: "{{ secrets.TOKEN }}"}
nodes:
  - {id: open, type: browser_action, action: goto, url: "{{ inputs.base_url }}/"}
"""


@pytest.mark.parametrize("mode", ["own", "shared"])
async def test_options_take_inputs_and_secrets(mode: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Headers from an input and a secret are sent with their values in both modes; the log does not contain the secret."""
    monkeypatch.setenv("TOKEN", "s3cret-token")
    file = tmp_path / "flow.yaml"
    file.write_text(FLOW.replace("MODE", mode))
    with serve() as site:
        ended = await start.start(
            file, {"base_url": site.origin, "who": "me"}, host.of_command(settings.load(home=tmp_path / "home"))
        )
        assert ended.status == "passed", ended
        (request,) = site.arrived("/")
        assert (request.headers["x-who"], request.headers["x-token"]) == ("me", "s3cret-token")
    log = next((tmp_path / "home" / "conversations").iterdir()).read_text()
    assert "s3cret-token" not in log
