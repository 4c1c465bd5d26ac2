"""`runops show` of a build."""

from __future__ import annotations

from pathlib import Path

import pytest

from director.effects import effects
from director.session import person
from runtime.log import session
from runtime.log.store import file_store
from runtime.log.writer import Texts
from runtime.report import of_session, session_text, text
from tests import build_contexts
from tests.now import now

SITE = "http://127.0.0.1:8765"
TEXT = f"""\
version: 1
inputs:
  base_url: {{type: string, default: "{SITE}"}}
allowed_origins: ["{{{{ inputs.base_url }}}}"]
nodes:
  - {{id: pay, type: browser_action, action: click, target: {{role: button, name: Pay}}}}
"""


@pytest.mark.anyio
async def test_an_answer_is_shown_with_its_action(tmp_path: Path) -> None:
    """A grant is shown by its action and the answer, because its name is only a digest. What else a person answers is shown with its question."""
    build = build_contexts.opened(tmp_path, SITE, TEXT, policy="ask", who=build_contexts.Answering("no"))
    assert build.state.draft is not None
    await build.effects.demand(effects.actions_of(build.state.draft.loaded), place="1_run_draft")
    await person.Remembering(build.writer, build_contexts.Answering("the small one")).ask("Which one?", free=True)
    now(build.writer.barrier())
    store = file_store.Files(tmp_path / ".runops")
    reading = store.read(build.writer.conversation.id)
    report = of_session.session_report(session.Session(reading.entries), reading, Texts(store), brief=True)
    shown = session_text.whole(report, text.Style())
    (line,) = [each for each in shown if "kept" in each and "grant" in each]
    assert 'grant click role=button name="Pay"' in line
    assert "a person answered: no" in line
    place = shown.index("you      the small one")
    assert shown[place + 1].split() == ["(to:", "Which", "one?)"]
