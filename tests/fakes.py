"""Fakes of the ports, for tests of the engine and of nodes: a page that answers at once, and a small site behind it."""

from __future__ import annotations

import contextlib
import dataclasses
import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from pathlib import Path

from nodes.errors import OriginRefused, SiteError
from nodes.ports import Deed, FieldSource
from nodes.rules import Rule
from nodes.targets import Target
from runtime.browser.port import Captured, PageFacts


@dataclasses.dataclass
class FakeSite:
    """What is on the far side of the wire: it outlives browsers."""

    deeds: list[str] = dataclasses.field(default_factory=list)
    """Every click that the site carried out, by target."""
    texts: dict[str, str] = dataclasses.field(default_factory=dict)
    """Text of elements, by target; ``=`` and the target for a rule's text."""
    records: list[dict[str, str]] = dataclasses.field(default_factory=list)
    """What each submit sent: the fields as they were filled."""
    on_click: Callable[[str, FakePage], Awaitable[None]] | None = None
    """What a click does; raises to fail it."""
    before_click: Callable[[str, FakePage], Awaitable[None]] | None = None
    page: type[FakePage] | None = None
    """What its tabs are, in place of FakePage."""


class FakePage:
    """A tab of the fake site (``nodes.ports.Page``)."""

    def __init__(self, browser: FakeBrowser) -> None:
        """A blank tab."""
        self.browser = browser
        self.address = "about:blank"
        self.filled: dict[str, str] = {}

    @property
    def url(self) -> str:
        return self.address

    async def title(self) -> str:
        return "A fake page"

    async def goto(self, url: str) -> str:
        self.address = url
        self.filled.clear()
        self.browser.documents += 1
        self.browser.pending = False
        return url

    async def locate(self, target: Target) -> Target:
        return target.any_of[0] if target.any_of else target

    async def ready(self, target: Target, deed: Deed) -> None:
        if str(target) in self.browser.missing:
            raise SiteError("target-not-found", f"no element matches {target}")

    async def click(self, target: Target) -> None:
        site = self.browser.site
        if site.before_click is not None:
            await site.before_click(str(target), self)
        site.deeds.append(str(target))
        site.records.append(dict(self.filled))
        if site.on_click is not None:
            await site.on_click(str(target), self)

    async def fill(self, target: Target, text: str) -> None:
        await self.ready(target, "fill")
        self.filled[str(target)] = text
        self.browser.pending = True

    async def check(self, target: Target, checked: bool) -> None:
        await self.fill(target, str(checked))

    async def select(self, target: Target, options: Sequence[str]) -> list[str]:
        await self.fill(target, ",".join(options))
        return list(options)

    async def text(self, target: Target) -> str:
        self.browser.reads.append(str(target))
        await self.ready(target, "click")
        return self.browser.site.texts.get(str(target), "")

    async def value(self, target: Target) -> str:
        return self.filled.get(str(target), "")

    async def count(self, target: Target) -> int:
        return int(str(target) in self.browser.site.texts)

    async def rows(self, target: Target, fields: Sequence[FieldSource], least: int) -> list[list[str | None]]:
        rows: list[list[str | None]] = json.loads(self.browser.site.texts.get(str(target), "[]"))
        return rows

    async def wait_for(self, rule: Rule) -> None:
        if not await self.holds(rule):
            raise SiteError("rule-failed", f"{rule} does not hold", phase="after", evidence={"rule": str(rule)})

    async def holds(self, rule: Rule) -> bool:
        wanted = self.browser.site.texts.get(f"={rule.target}")
        return rule.text is not None and rule.text == wanted


class FakeBrowser:
    """A browser of the fake site (``runtime.browser.port.Browser``)."""

    def __init__(self, site: FakeSite) -> None:
        """A browser with one blank tab."""
        self.site = site
        self.tab = (site.page or FakePage)(self)
        self.documents = 0
        self.pending = False
        self.missing: set[str] = set()
        self.reads: list[str] = []
        self.lost: str | None = None
        self.refused: OriginRefused | None = None
        self.closed = False
        self.captured = 0

    @property
    def page(self) -> FakePage:
        return self.tab

    def facts(self) -> PageFacts:
        return PageFacts(self.documents, self.pending)

    def effect_finished(self) -> None:
        self.pending = False

    def mark_pending(self) -> None:
        self.pending = True

    def bound(self, seconds: float) -> None:
        pass

    def refusal(self) -> OriginRefused | None:
        refused, self.refused = self.refused, None
        return refused

    def lost_answer(self) -> str | None:
        return self.lost

    @contextlib.asynccontextmanager
    async def fresh_page(self) -> AsyncGenerator[FakePage]:
        yield (self.site.page or FakePage)(self)

    async def capture(self) -> Captured:
        self.captured += 1
        return Captured(json.dumps({"url": self.tab.address}).encode(), [self.tab.address])

    async def restore(self, path: Path) -> None:
        await self.tab.goto(json.loads(path.read_text())["url"])

    async def close(self, *, keep: bool = False) -> None:
        self.closed = True
