"""An address that a page changes by itself, as when it saves a draft while the model thinks: told where it happens, and where a run lacks it."""

from __future__ import annotations

from pathlib import Path

import pytest
from typing_extensions import override

from director.proving import tools
from runtime.browser import port
from runtime.runs import run, start
from tests import build_contexts
from tests.benches import Rig
from tests.fakes import FakeBrowser, FakeSite

pytestmark = pytest.mark.anyio

ADD, EDIT = "http://127.0.0.1:8765/pages/add/3/", "http://127.0.0.1:8765/pages/12/edit/"

FORM = f"""
  - {{id: open, type: browser_action, action: goto, url: "{ADD}"}}
  - {{id: title, type: browser_action, action: fill, target: {{text: title}}, value: Jam}}
  - {{id: more, type: browser_action, action: click, target: {{text: more}}, effect: read, verify: [{{expr: "{{{{ 1 == 2 }}}}"}}], timeout: 1}}
"""


class Fresh(run.Browsers):
    """Fresh browsers on a fake site in place of Chromium."""

    def __init__(self, site: FakeSite) -> None:
        self.site = site

    @override
    async def open(self) -> port.Browser:
        return FakeBrowser(self.site)

    @override
    async def reattach(self) -> port.Browser | None:
        return None


async def test_an_address_that_changes_by_itself_is_told_with_its_node(tmp_path: Path) -> None:
    """An address that changed between two calls is told with the node after which it did; one that a node changed, or none, is not."""
    rig = Rig(tmp_path, FORM.replace("verify", "x-verify"), FakeSite())
    await rig.execute("open,title")
    assert "by itself" not in rig.told
    rig.bench.opened[-1].page.address = EDIT
    await rig.execute("more", begin="live")
    assert f"url, by itself after `title`: {ADD} -> /pages/12/edit/" in rig.told
    await rig.execute("more", begin="live")
    assert "by itself" not in rig.told


@pytest.mark.parametrize("changes", [True, False])
async def test_a_failed_run_tells_the_address_that_the_bench_had(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changes: bool
) -> None:
    """A whole run that fails at an address of another shape than on the bench says both, and that a run is faster; else nothing is said."""
    rig = Rig(tmp_path, FORM.replace("verify", "x-verify"), FakeSite())
    monkeypatch.setattr(start, "Chromium", lambda *_given: Fresh(rig.site))
    await rig.execute("open,title")
    rig.bench.opened[-1].page.address = EDIT if changes else ADD.replace("3", "4")
    await rig.execute("more", begin="live")
    rig.edit("x-verify", "verify")
    given = {"inputs": None, "reason": "all"}
    told = (await build_contexts.call(rig.build, "run_draft", tools.toolsets(rig.build), **given)).text
    assert "failed at more" in told
    assert (f"on the bench the page after this step was {EDIT} and here it is {ADD}" in told) == changes
    assert ("on the bench the page" in told) == changes


async def test_a_step_after_which_the_address_changed_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the address changed a while after the step at which a run fails, the run says that, also if the step was edited since."""
    text = FORM.replace("verify", "x-verify")
    rig = Rig(tmp_path, text, FakeSite())
    monkeypatch.setattr(start, "Chromium", lambda *_given: Fresh(rig.site))
    await rig.execute("open,title")
    rig.bench.opened[-1].page.address = EDIT
    await rig.execute("more", begin="live")
    rig.edit("value: Jam", 'value: Jam, verify: [{expr: "{{ 1 == 2 }}"}], timeout: 1')
    given = {"inputs": None, "reason": "all"}
    told = (await build_contexts.call(rig.build, "run_draft", tools.toolsets(rig.build), **given)).text
    assert "failed at title" in told
    assert (
        f"on the bench the page after this step was {EDIT}, to which the address changed by itself a while later, and here it is {ADD}"
        in told
    )
