"""Evidence kept of the page where a step failed."""

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
from runtime.secrets.masking import Masker
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
    """A run whose step `press` misses its target, on a page that shows a secret."""
    site = FakeSite(texts={"": '- button "Pay with tok-123456"'}, page=page)

    async def missing(target: str, _page: FakePage) -> None:
        await _page.ready(Target(css="gone"), "click")

    site.before_click = missing
    return Rig(folder, text, site, secrets={"TOKEN": "tok-123456"}, missing={str(Target(css="gone"))})


async def test_a_failure_keeps_its_page_without_secrets(tmp_path: Path) -> None:
    """Address, observation and screenshot are stored beside the run, private and with secrets masked, and named in the log."""
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
    """A page that no longer answers."""

    @override
    async def look(self, target: Target | None = None, *, settle: float = 2.0) -> Observation:
        await asyncio.Event().wait()
        raise AssertionError

    @override
    async def signs(self) -> dict[str, Json]:
        raise RuntimeError("it broke")

    @override
    async def screenshot(
        self, target: Target | None, *, full_page: bool, hide: Callable[[str], bool], canvases: bool = False
    ) -> bytes:
        await asyncio.Event().wait()
        raise AssertionError


async def test_a_page_that_does_not_answer_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the page hangs or breaks, the run still ends in bounded time with its own error, and keeps the address."""
    monkeypatch.setattr(evidence, "SECONDS", 0.1)
    rig = failing(tmp_path, page=Stuck)
    ended = await asyncio.wait_for(rig.start(), 5)
    assert ended.error is not None
    assert (ended.status, ended.error["code"]) == ("failed", "target-not-found")
    assert evidence.of(rig.history) == {"path": "press", "url": "http://shop.test/"}


class Drawing(FakePage):
    """A page that says in its pictures if canvases are painted over."""

    @override
    async def screenshot(
        self, target: Target | None, *, full_page: bool, hide: Callable[[str], bool], canvases: bool = False
    ) -> bytes:
        return b"without" if canvases else b"with"


@pytest.mark.parametrize(("secrets", "shown"), [({"KEY": "tok-123456"}, b"without"), ({}, b"with")])
async def test_canvases_are_painted_over_in_a_run_with_secrets(
    secrets: dict[str, str], shown: bytes, tmp_path: Path
) -> None:
    """The picture of a failure shows no canvas if the run has secrets, whether or not one was typed into this document."""
    rig = failing(tmp_path, page=Drawing)
    rig.masker = Masker(secrets)
    await rig.start()
    found = evidence.of(rig.history, "press")
    assert found is not None
    assert Path(found["screenshot"]["path"]).read_bytes() == shown


class Unpaintable(FakePage):
    """A page whose secrets cannot be painted over in a screenshot."""

    @override
    async def screenshot(
        self, target: Target | None, *, full_page: bool, hide: Callable[[str], bool], canvases: bool = False
    ) -> bytes:
        raise AuthorError("secret-on-page", "a secret stands where no element can be painted over")


async def test_a_screenshot_that_would_show_a_secret_is_not_taken(tmp_path: Path) -> None:
    """The log has the error code in place of the screenshot, and keeps all other evidence."""
    rig = failing(tmp_path, page=Unpaintable)
    await rig.start()
    found = evidence.of(rig.history, "press")
    assert found is not None
    assert found["no_screenshot"] == "secret-on-page"
    assert "screenshot" not in found
    assert Path(found["observation"]["path"]).exists()


async def test_a_dialog_is_kept_by_its_text(tmp_path: Path) -> None:
    """A page with a dialog cannot be observed, so the text of the dialog is kept, masked."""
    rig = failing(tmp_path)

    async def ask(_target: str, page: FakePage) -> None:
        page.dialog = "Pay with tok-123456?"
        page.calm()

    rig.missing.clear()
    rig.site.before_click = ask
    await rig.start()
    assert evidence.of(rig.history) == {"path": "press", "url": "http://shop.test/", "dialog": "Pay with [hidden]?"}


async def test_only_the_first_tolerated_failures_keep_evidence(tmp_path: Path) -> None:
    """A tolerated failure keeps its page too, but a long loop does not fill the disk."""
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
