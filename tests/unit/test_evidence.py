"""What is kept of the page where a step failed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
from typing_extensions import override

from nodes.errors import AuthorError
from nodes.targets import Target
from nodes.values import Json
from runtime.engine import evidence
from runtime.observation.observation import Observation
from tests.fakes import FakePage, FakeSite
from tests.rig import Rig

MISSING = """
version: 1
name: Something is missing
secrets: [TOKEN]
nodes:
  - {id: open, type: browser_action, action: goto, url: "http://shop.test/"}
  - {id: press, type: browser_action, action: click, target: {css: gone}}
"""


def failing(folder: Path, text: str = MISSING, page: type[FakePage] | None = None) -> Rig:
    """A run whose step `press` finds nothing, on a page that shows a secret."""
    site = FakeSite(texts={"": '- button "Pay with tok-123456"'}, page=page)

    async def missing(target: str, _page: FakePage) -> None:
        await _page.ready(Target(css="gone"), "click")

    site.before_click = missing
    return Rig(folder, text, site, secrets={"TOKEN": "tok-123456"}, missing={str(Target(css="gone"))})


async def test_a_failure_keeps_what_the_page_showed_without_secrets(tmp_path: Path) -> None:
    """Address, observation and picture of the page are kept beside the run and named in its log; what was secret on the page is masked, and the files are their owner's alone."""
    rig = failing(tmp_path)
    ended = await rig.start()
    assert (ended.status, ended.path) == ("failed", "press")
    found = evidence.of(rig.history, "press")
    assert found is not None
    assert (found["url"], found["title"], found["signs"]["status"]) == ("http://shop.test/", "A fake page", 200)
    look, shot = Path(found["observation"]["path"]), Path(found["screenshot"]["path"])
    assert 'button "Pay with [hidden]"' in look.read_text()
    assert shot.read_bytes() == b"a picture"
    assert {each.stat().st_mode & 0o777 for each in (look, shot)} == {0o600}
    assert ended.files == [], "they are no files that the workflow keeps"


class Stuck(FakePage):
    """A page that answers to nothing any more."""

    @override
    async def look(self, target: Target | None = None) -> Observation:
        await asyncio.Event().wait()
        raise AssertionError

    @override
    async def signs(self) -> dict[str, Json]:
        raise RuntimeError("it broke")

    @override
    async def screenshot(self, target: Target | None, *, full_page: bool, hide: Callable[[str], bool]) -> bytes:
        await asyncio.Event().wait()
        raise AssertionError


async def test_a_page_that_does_not_answer_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the page is stuck, or breaks, the run ends as it would have, in bounded time, and its address is kept."""
    monkeypatch.setattr(evidence, "SECONDS", 0.1)
    rig = failing(tmp_path, page=Stuck)
    ended = await asyncio.wait_for(rig.start(), 5)
    assert ended.error is not None
    assert (ended.status, ended.error["code"]) == ("failed", "target-not-found")
    assert evidence.of(rig.history) == {"path": "press", "url": "http://shop.test/"}


class Unpaintable(FakePage):
    """A page of which no picture without its secrets can be taken."""

    @override
    async def screenshot(self, target: Target | None, *, full_page: bool, hide: Callable[[str], bool]) -> bytes:
        raise AuthorError("secret-on-page", "a secret stands where no element can be painted over")


async def test_a_picture_that_would_show_a_secret_is_not_taken_and_the_log_says_so(tmp_path: Path) -> None:
    """The log has the code of what refused the picture in its place, and all else that was to be had."""
    rig = failing(tmp_path, page=Unpaintable)
    await rig.start()
    found = evidence.of(rig.history, "press")
    assert found is not None
    assert found["no_screenshot"] == "secret-on-page"
    assert "screenshot" not in found
    assert Path(found["observation"]["path"]).exists()


async def test_a_dialog_is_kept_by_its_words(tmp_path: Path) -> None:
    """A page that shows a dialog cannot be looked at: what it says is kept."""
    rig = failing(tmp_path)

    async def ask(_target: str, page: FakePage) -> None:
        page.dialog = "Pay with tok-123456?"
        page.calm()

    rig.missing.clear()
    rig.site.before_click = ask
    await rig.start()
    assert evidence.of(rig.history) == {"path": "press", "url": "http://shop.test/", "dialog": "Pay with [hidden]?"}


async def test_of_many_failures_that_the_run_goes_on_after_the_first_are_kept(tmp_path: Path) -> None:
    """A failure that is tolerated keeps its page too, but a loop of thousands does not fill the disk."""
    text = MISSING.replace(
        "  - {id: press",
        """  - id: each
    type: iterate
    over: "{{ range }}"
    as: number
    nodes:
      - {id: press, on_error: continue""",
    ).replace("- {id: open", '- {id: range, type: transform, expr: "{{ [1] * 30 }}"}\n  - {id: open')
    rig = failing(tmp_path, text)
    ended = await rig.start()
    assert (ended.status, ended.tolerated) == ("passed", 30)
    kept = [each["path"] for each in rig.history.evidence]
    assert kept == [f"each[{number}]/press" for number in range(1, evidence.MOST_TOLERATED + 1)]
