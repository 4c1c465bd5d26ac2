"""A build about to finish, for tests: whole runs of a draft on a fake site, and the tool that finishes it."""

from __future__ import annotations

import textwrap
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from director.bench import browser
from director.draft import output_files
from director.proving import tools
from director.tools.build_context import BuildContext
from nodes.errors import SiteError
from nodes.values import Json
from runtime.browser import port
from runtime.models.turns import turn
from runtime.runs import start
from tests import build_contexts
from tests.fakes import FakeBrowser, FakePage, FakeSite

SITE = "http://127.0.0.1:8765"


TEXT = textwrap.dedent("""
    version: 1
    name: Pays
    description: Pays an order.
    inputs:
      base_url: {type: string, default: "http://127.0.0.1:8765"}
      number: {type: string, default: "1001"}
    allowed_origins: ["{{ inputs.base_url }}"]
    nodes:
      - {id: open, type: browser_action, action: goto, url: "{{ inputs.base_url }}/orders/{{ inputs.number }}"}
      - {id: pay, type: browser_action, action: click, target: {role: button, name: Pay}, description: Pays it.}
      - {id: told, type: browser_query, query: text, target: {test_id: status}}
    output: {status: "{{ told }}"}
""").lstrip()


class Browsers:
    """Fresh browsers on a fake site, instead of Chromium."""

    def __init__(self, site: FakeSite) -> None:
        self.site = site
        self.opened = 0

    def of_run(self, *_given: object) -> Browsers:
        """Instead of ``running.Chromium``."""
        return self

    async def open(self) -> port.Browser:
        """A fresh one."""
        self.opened += 1
        return FakeBrowser(self.site)

    async def reattach(self) -> port.Browser | None:
        """No browser survives."""
        return None


def installed(monkeypatch: pytest.MonkeyPatch) -> Browsers:
    """The browsers that runs open here."""
    site = FakeSite(texts={'test_id="status"': "paid"})
    found = Browsers(site)
    monkeypatch.setattr(start, "Chromium", found.of_run)

    async def make(*_given: object) -> port.Browser:
        return await found.open()

    monkeypatch.setattr(browser.Browser, "make", make)
    return found


def clicks(browsers: Browsers, click: Callable[[int], None]) -> None:
    """``click`` is called with the number of each click, and raises to fail it."""
    numbers: list[int] = []

    async def before(_target: str, _page: FakePage) -> None:
        numbers.append(1)
        click(len(numbers))

    browsers.site.before_click = before


def opened(folder: Path, text: str | None = TEXT, **more: Any) -> BuildContext:
    """A build context with this draft."""
    return build_contexts.opened(folder, SITE, text, **more)


def finish(build: BuildContext, **given: Json) -> Awaitable[turn.Outcome]:
    """Call the tool with these arguments."""
    arguments: dict[str, Json] = {"done": True, "summary": "It pays.", "unproved": None, "reason": "It is done."}
    return build_contexts.call(build, "finish", tools.toolsets(build), **{**arguments, **given})


def left(build: BuildContext) -> tuple[str, str]:
    """The saved workflow, and the notes."""
    return build.goal.save.read_text(), output_files.notes_of(build.goal.save).read_text()


def fails(_number: int) -> None:
    """A click that fails."""
    raise SiteError("not-actionable", "it cannot be clicked")
