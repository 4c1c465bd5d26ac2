"""Fakes of the ports, for tests of the engine and of nodes: a page that answers at once, and a small site for it."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import json
import tempfile
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from pathlib import Path
from typing import Literal

from nodes.errors import AuthorError, OriginRefused, SiteError
from nodes.pages import Delivery, ElementAction, FieldSource, Grid
from nodes.pointer import PLAIN, STEPS, Spot, Stroke, Way
from nodes.rules import Rule
from nodes.tabs import MAIN
from nodes.targets import Target
from nodes.values import Json
from runtime.browser.elements.facts import Facts
from runtime.browser.options import Overlay
from runtime.browser.port import Captured, Differs, Dismissal, LostTab, Message, MissingAnswer, PageFacts, Shown
from runtime.observation.observation import Observation


@dataclasses.dataclass
class FakeSite:
    """The server side, which outlives browsers."""

    actions: list[str] = dataclasses.field(default_factory=list)
    """Every click that the site carried out, by target."""
    texts: dict[str, str] = dataclasses.field(default_factory=dict)
    """Text of elements, by target; ``=`` and the target for a rule's text."""
    records: list[dict[str, str]] = dataclasses.field(default_factory=list)
    """The filled fields sent by each submit."""
    on_click: Callable[[str, FakePage], Awaitable[None]] | None = None
    """The effect of a click; raises to fail it."""
    before_click: Callable[[str, FakePage], Awaitable[None]] | None = None
    page: type[FakePage] | None = None
    """The class of its tabs, instead of FakePage."""
    facts: dict[str, Facts] = dataclasses.field(default_factory=dict)
    """The facts of the document about elements, by their refs in the page's text."""
    status: int | None = None
    """The error status of its documents."""
    unmoved: bool = False
    """True if nothing that is done to it changes the page."""
    differs: Differs | None = None
    """The page to which a checkpoint restores now, if another one."""
    leads: dict[str, str] = dataclasses.field(default_factory=dict[str, str])
    """Addresses of a checkpoint at which the site shows another one now, such as that of its sign-in."""


@dataclasses.dataclass(frozen=True)
class FakePointed:
    """An element that a ref points at (``runtime.browser.elements.targets.Pointed``). Any target that could be its own matches."""

    facts: Facts
    says: str

    async def places(self, target: Target) -> tuple[int, int]:
        return 1, 0

    async def said(self) -> str:
        return self.says


class FakePage:
    """A tab of the fake site (``nodes.pages.Page``)."""

    def __init__(self, browser: FakeBrowser) -> None:
        """A blank tab."""
        self.browser = browser
        self.address = "about:blank"
        self.filled: dict[str, str] = {}
        self.closed = False
        self.dialog: str | None = None
        self.replaced = False
        self.visited: list[str] = []
        self.ahead: list[str] = []
        self.documents = 0

    @property
    def url(self) -> str:
        return self.address

    async def title(self) -> str:
        return "A fake page"

    def calm(self) -> None:
        if self.dialog is not None:
            raise SiteError("dialog-open", "the page shows a dialog", evidence={"message": self.dialog})

    async def goto(self, url: str, *, anew: bool = False, once: bool = False) -> str:
        self.visited.append(self.address)
        before, self.address = self.address, url
        if "#" in url and before.partition("#")[0] == url.partition("#")[0] and not anew:
            return url
        self.documents += 1
        self.filled.clear()
        self.browser.documents += 1
        self.browser.pending = False
        return url

    async def back(self) -> str:
        if len(self.visited) < 2:
            raise AuthorError("no-history", "there is no page to go back to in this tab")
        self.ahead.append(self.address)
        self.address = self.visited.pop()
        return self.address

    async def forward(self) -> str:
        if not self.ahead:
            raise AuthorError("no-history", "there is no page to go forward to in this tab")
        return await self.goto(self.ahead.pop())

    async def reload(self, *, resend: bool) -> str:
        return self.address

    @contextlib.asynccontextmanager
    async def opening(self, name: str | None) -> AsyncGenerator[None]:
        yield
        if name is not None:
            self.browser.tabs.add(name)

    async def asked(self, text: str | None) -> str:
        if self.dialog is None:
            raise SiteError("no-dialog", "the page opened no dialog")
        return self.dialog

    async def answer(self, *, accept: bool, text: str | None) -> None:
        self.browser.site.actions.append(f"{'accept' if accept else 'dismiss'} {self.dialog}")
        self.dialog = None

    async def locate(self, target: Target) -> Target:
        return target.any_of[0] if target.any_of else target

    async def ready(self, target: Target, action: ElementAction) -> None:
        if str(target) in self.browser.missing:
            raise SiteError("target-not-found", f"no element matches {target}")

    async def click(self, target: Target, how: Stroke = PLAIN) -> None:
        site = self.browser.site
        if site.before_click is not None:
            await site.before_click(str(target), self)
        site.actions.append(str(target))
        site.records.append(dict(self.filled))
        if site.on_click is not None:
            await site.on_click(str(target), self)

    async def dblclick(self, target: Target, how: Stroke = PLAIN) -> None:
        await self.click(target)

    async def tap(self, target: Target, at: Spot | None = None) -> None:
        await self.click(target)

    async def fill(self, target: Target, text: str, *, secret: bool = False) -> None:
        await self.ready(target, "fill")
        self.filled[str(target)] = text
        self.browser.pending = True

    async def type(self, target: Target, text: str, delay: float, *, secret: bool = False) -> None:
        await self.fill(target, text)
        if "\n" in text:
            await self.click(target)

    async def press(self, keys: list[str], target: Target | None, hold: float = 0) -> None:
        self.browser.pending = True
        self.browser.site.actions.extend(f"press {key}" for key in keys)

    async def hover(self, target: Target, how: Stroke = PLAIN) -> None:
        await self.ready(target, "hover")

    async def drag(
        self, target: Target, to: Target, start: Spot | None = None, at: Spot | None = None, steps: int = STEPS
    ) -> None:
        self.browser.site.actions.append(f"drag {target} to {to}")

    async def move_pressed(self, target: Target, way: Way) -> None:
        self.browser.site.actions.append(f"drag {target}")

    async def drop(self, target: Target, at: Spot | None, files: Sequence[Path]) -> None:
        self.browser.site.actions.append(f"drop {','.join(file.name for file in files)}")

    async def wheel(self, target: Target | None, by: tuple[float, float], how: Stroke) -> None:
        self.browser.site.actions.append("wheel")

    async def select_text(self, target: Target, text: str | None, start: str | None, end: str | None) -> str:
        return text or self.browser.site.texts.get(str(target), "")

    async def copy(self, target: Target | None) -> str:
        return self.browser.site.texts.get(str(target), "")

    async def paste(self, target: Target | None, text: str, *, secret: bool = False) -> None:
        self.browser.pending = True
        self.browser.site.actions.append(f"paste {text}")

    async def scroll(
        self, target: Target | None, to: Literal["top", "bottom"] | None, by: tuple[float, float] | None
    ) -> dict[str, Json]:
        return {"x": 0, "y": 0, "at_end": True}

    async def upload(self, target: Target, files: Sequence[Path]) -> None:
        await self.fill(target, ",".join(file.name for file in files))
        self.browser.site.actions.append(f"upload {self.filled[str(target)]}")

    @contextlib.asynccontextmanager
    async def download(self, target: Target | None, url: str | None) -> AsyncGenerator[Delivery]:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "given"
            file.write_text(self.browser.site.texts.get(url or str(target), ""))
            yield Delivery("report.csv", file)

    async def screenshot(
        self, target: Target | None, *, full_page: bool, hide: Callable[[str], bool], canvases: bool = False
    ) -> bytes:
        return b"a picture"

    async def frame(self, hide: Callable[[str], bool] | None, *, small: bool = False) -> bytes:
        if hide is not None and await self.shows(hide):
            raise AuthorError("secret-on-page", "the page shows a secret")
        self.browser.framed.append(self.address)
        return f"a picture of {self.address}".encode()

    async def pdf(self, landscape: bool) -> bytes:
        return b"%PDF"

    async def shows(self, hide: Callable[[str], bool]) -> bool:
        return any(hide(text) for text in (*self.browser.site.texts.values(), *self.filled.values()))

    async def signed_in(self) -> Json:
        return {"signed in": self.browser.site.texts.get("session")}

    async def sign_in(self, state: Json) -> None:
        self.browser.site.texts["session"] = state["signed in"]

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

    async def box(self, target: Target) -> tuple[float, float, float, float]:
        return (0.0, 0.0, 10.0, 20.0)

    async def attribute(self, target: Target, name: str) -> str | None:
        return self.browser.site.texts.get(f"{target} {name}")

    async def state(self, target: Target) -> dict[str, Json]:
        return {"visible": str(target) in self.browser.site.texts}

    async def table(self, target: Target, least: int, *, across: bool = False) -> Grid:
        head, *rows = json.loads(self.browser.site.texts[str(target)])
        return Grid(head, rows)

    async def drawn(self) -> None:
        pass

    async def rest(self) -> bool:
        return True

    async def unchanged(self) -> bool:
        return self.browser.site.unmoved

    async def look(self, target: Target | None = None, *, settle: float = 2.0) -> Observation:
        """The texts, with the page's own under the empty target: an accessibility snapshot, or words."""
        said = self.browser.site.texts.get(str(target) if target else "", "")
        return Observation.read(said if said.startswith("- ") else f"- text: {said}", self.address, await self.title())

    @contextlib.asynccontextmanager
    async def pointed(self, ref: str) -> AsyncGenerator[FakePointed]:
        seen = await FakePage.look(self)
        if not seen.has(ref):
            raise SiteError("ref-gone", f"the page has no element {ref} now", fix="look again")
        yield FakePointed(self.browser.site.facts.get(ref, Facts(tag="button")), seen.element(ref).name)

    @contextlib.asynccontextmanager
    async def settling(self, seconds: float) -> AsyncGenerator[None]:
        yield

    async def signs(self) -> dict[str, Json]:
        return {"status": 200, "busy": False}

    async def count(self, target: Target, *, hidden: bool = False) -> int:
        return int(str(target) in self.browser.site.texts)

    async def missing_part(self, target: Target) -> str | None:
        within = target.within
        return f"within {within}" if within is not None and not await self.count(within) else None

    async def rows(self, target: Target, fields: Sequence[FieldSource], least: int) -> list[list[str | None]]:
        rows: list[list[str | None]] = json.loads(self.browser.site.texts.get(str(target), "[]"))
        return rows

    async def scroll_rows(self, target: Target, *, start: bool) -> bool:
        return False

    async def wait_for(self, rule: Rule) -> None:
        self.calm()
        if not await self.holds(rule):
            raise SiteError("rule-failed", f"{rule} does not hold", phase="after", evidence={"rule": str(rule)})

    async def holds(self, rule: Rule) -> bool:
        self.calm()
        wanted = self.browser.site.texts.get(f"={rule.target}")
        return rule.text is not None and rule.text == wanted


class FakeTabs:
    """The tabs of a fake browser (``nodes.pages.Tabs``)."""

    def __init__(self, browser: FakeBrowser) -> None:
        """One blank tab, named ``main``."""
        self.browser = browser
        self.open_ones: dict[str, FakePage] = {}
        self.unnamed: list[str] = []
        """Tabs that opened by themselves, by the names under which they will be reported."""
        self.current = self.add(MAIN)

    def add(self, name: str) -> FakePage:
        """A new blank tab."""
        self.open_ones[name] = (self.browser.site.page or FakePage)(self.browser)
        return self.open_ones[name]

    def get(self, name: str | None) -> FakePage:
        if name is None:
            return self.current
        if name not in self.open_ones:
            raise SiteError("tab-closed", f"the tab `{name}` is not open")
        return self.open_ones[name]

    def all(self) -> list[FakePage]:
        return list(self.open_ones.values())

    def name_new(self) -> list[str]:
        named, self.unnamed = self.unnamed, []
        return named

    async def open(self, name: str) -> None:
        self.current = self.open_ones.get(name) or self.add(name)

    async def switch(self, name: str) -> None:
        self.current = self.get(name)

    async def close(self, name: str | None) -> None:
        if name is not None and name not in self.open_ones:
            return
        tab = self.get(name)
        tab.closed = True
        self.open_ones = {each: known for each, known in self.open_ones.items() if known is not tab}
        if tab is self.current:
            self.current = self.open_ones.get(MAIN) or self.add(MAIN)


class FakeBrowser:
    """A browser of the fake site (``runtime.browser.port.Browser``)."""

    def __init__(self, site: FakeSite) -> None:
        """A browser with one blank tab."""
        self.site = site
        self.tabs = FakeTabs(self)
        self.documents = 0
        self.pending = False
        self.missing: set[str] = set()
        self.reads: list[str] = []
        self.lost: str | None = None
        self.unanswered: MissingAnswer | None = None
        self.on_its_way = False
        """True if an answer that does not come in time never comes."""
        """The answer that is missing where every request of an action is awaited."""
        self.refused: OriginRefused | None = None
        self.closed = False
        self.confined: list[str] | None = None
        """The origins to which the run has confined it."""
        self.captured = 0
        self.lost_tabs: list[LostTab] = []
        self.overlays: list[Overlay] = []
        """What the run dismisses."""
        self.dismissals: list[Dismissal] = []
        """What it has dismissed since the run asked last."""
        self.moved = asyncio.Event()
        """Set when a test's page moves on."""
        self.framed: list[str] = []
        """The addresses of the frames that were taken."""
        self.heard = False
        self.said: list[Message] = []

    @property
    def page(self) -> FakePage:
        return self.tabs.get(None)

    def facts(self) -> PageFacts:
        return PageFacts(self.documents, self.pending, status=self.site.status)

    def effect_finished(self) -> None:
        self.pending = False

    def mark_pending(self) -> None:
        self.pending = True

    def mark_posted(self) -> None:
        pass

    def bound(self, seconds: float, *, quiet: float | None = None) -> None:
        self.quiet = quiet

    def confine(self, origins: Sequence[str] | None, file: str) -> None:
        self.confined = None if origins is None else list(origins)

    def name_secrets(self, names: Sequence[str]) -> None:
        pass

    def dismiss(self, overlays: Sequence[Overlay]) -> None:
        self.overlays = list(overlays)

    def dismissed(self) -> list[Dismissal]:
        happened, self.dismissals = self.dismissals, []
        return happened

    def hear(self, mask: Callable[[str], str]) -> None:
        self.heard = True

    @property
    def messages(self) -> Sequence[Message]:
        return self.said

    def refusal(self) -> OriginRefused | None:
        refused, self.refused = self.refused, None
        return refused

    async def lost_answer(self) -> MissingAnswer | None:
        return MissingAnswer(self.lost, "lost") if self.lost is not None else None

    async def missing_answer(self, *, every: bool) -> MissingAnswer | None:
        return await self.lost_answer() or (self.unanswered if every else None)

    async def at_rest(self, *, earlier: bool = False) -> bool:
        return not self.on_its_way

    @contextlib.asynccontextmanager
    async def fresh_page(self) -> AsyncGenerator[FakePage]:
        yield (self.site.page or FakePage)(self)

    async def capture(self) -> Captured:
        self.captured += 1
        return Captured(json.dumps({"url": self.page.address}).encode(), [self.page.address])

    async def restore(self, data: bytes) -> Differs | None:
        kept: str = json.loads(data)["url"]
        now = self.site.leads.get(kept, kept)
        await self.page.goto(now)
        return self.site.differs if now == kept else Differs(None, Shown(kept, "", ""), Shown(now, "", ""))

    async def close(self, *, keep: bool = False) -> None:
        self.closed = not keep
