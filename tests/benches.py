"""A bench on a fake site: nodes run by the engine's own steps, in the runs of a session, without a browser."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from typing_extensions import override

from director.bench import bench, browser, tools
from director.draft import draft
from director.tools.build_context import BuildContext
from nodes.values import Json
from runtime.browser import port
from runtime.browser.options import BrowserOptions
from tests import build_contexts
from tests.fakes import FakeBrowser, FakeSite

HEAD = """
version: 1
name: Try
allowed_origins: ["http://127.0.0.1:8765"]
nodes:
"""


class FakeOwn(browser.Browser):
    """The browser of such a bench: a fake of one site."""

    site: FakeSite
    opened: list[FakeBrowser]
    answered: int | None = None
    """The HTTP error status with which the site answered for the current page."""

    @override
    async def make(self, options: BrowserOptions | None, origins: Sequence[str]) -> port.Browser:
        self.opened.append(FakeBrowser(self.site))
        return self.opened[-1]

    @override
    def status(self) -> int | None:
        return self.answered


class FakeBench(bench.Bench):
    """A bench whose browsers are fakes of one site."""

    def __init__(self, build: BuildContext, site: FakeSite) -> None:
        self.site = site
        super().__init__(build)

    @override
    def _own(self, build: BuildContext) -> FakeOwn:
        self.fake = FakeOwn(build, self.results.folder)
        self.fake.site, self.fake.opened = self.site, []
        return self.fake

    @property
    def opened(self) -> list[FakeBrowser]:
        """The browsers that were opened, in order."""
        return self.fake.opened


class Rig:
    """A build context with such a bench, and a draft that a test edits."""

    def __init__(self, folder: Path, nodes: str, site: FakeSite | None = None, **flags: Any) -> None:
        self.site = site or FakeSite()
        self.build = build_contexts.opened(folder, "http://127.0.0.1:8765", HEAD + nodes, **flags)
        self.bench = self.build.bench = FakeBench(self.build, self.site)
        self.told = ""

    def edit(self, before: str, after: str) -> None:
        """Replace a piece of the draft's text."""
        written = self.build.state.draft
        assert written is not None
        assert before in written.text
        text = written.text.replace(before, after)
        self.build.state.write_draft(draft.Draft.of(text), reason="otherwise")

    async def execute(
        self, nodes: str, mode: str | None = None, begin: str | None = None, item: str | None = None
    ) -> dict[str, str]:
        """Call the tool; the outcome of each node by id, or an error code under ``error``."""
        given: dict[str, Json] = {"nodes": nodes, "mode": mode, "from": begin, "item": item, "reason": "to see"}
        outcome = await build_contexts.call(
            self.build, "execute_nodes", [tools.Execute(self.build, tools.EXECUTE)], **given
        )
        self.told = outcome.text
        if outcome.error is not None:
            return {"error": outcome.error["code"]}
        lines = [re.fullmatch(r"\d+ (\S+)  (\w+).*", line) for line in outcome.text.splitlines()]
        return {line[1].rpartition("/")[2]: line[2] for line in lines if line is not None}
