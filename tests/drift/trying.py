"""One change after the other: the workflow fails because of it, and is repaired."""

from __future__ import annotations

import contextlib
import dataclasses
import os
from collections.abc import AsyncGenerator, Generator
from pathlib import Path
from unittest import mock

from director.repair import effects, patch_files, repair
from director.session import person
from runtime.browser import shared
from runtime.browser.chromium import find
from runtime.browser.options import BrowserOptions
from runtime.language import reader
from runtime.runs import start
from runtime.settings import settings
from runtime.workspace import host
from tests.drift import changes, changing, flows
from tests.shop_process import Shop

PASSWORD = "correct-horse"


@dataclasses.dataclass(frozen=True)
class Tried:
    """The result of a repair."""

    case: changes.Case
    outcome: repair.Outcome
    patch: str

    @property
    def classified(self) -> bool:
        """True if its kind was recognised."""
        return self.outcome.found.kind == self.case.kind

    @property
    def passed(self) -> bool:
        """True if a fix passed its proof."""
        return self.outcome.proof is not None and self.outcome.proof.verdict != "guess"

    @property
    def wrong(self) -> bool:
        """True if a wrong fix passed its proof."""
        return self.passed and (self.case.right is None or self.case.right not in self.patch)

    @property
    def patched(self) -> bool:
        """True if a right fix passed its proof."""
        return self.passed and not self.wrong

    def line(self) -> str:
        """For a table."""
        verdict = self.outcome.proof.verdict if self.outcome.proof is not None else "–"
        marks = ["ok" if self.classified else "NO", verdict, "WRONG" if self.wrong else ""]
        return f"{self.case.name:<44}  {self.case.kind:<13}  {self.outcome.found.kind:<13}  {'  '.join(marks)}".rstrip()


@contextlib.asynccontextmanager
async def one_browser() -> AsyncGenerator[None]:
    """A browser that stays: each run has its own context in it."""
    browser = await shared.open_shared(find.find(), BrowserOptions(), origins=(), headed=False)
    try:
        yield
    finally:
        await browser.close()


@contextlib.contextmanager
def site(folder: Path) -> Generator[tuple[Shop, changing.Changing]]:
    """The shop, and the proxy before it."""
    with (
        mock.patch.dict(os.environ, SHOP_PASSWORD=PASSWORD),
        Shop.start(folder, orders=5, paid=0, password=PASSWORD) as shop,
        changing.before(shop.port) as proxy,
    ):
        yield shop, proxy


async def run(folder: Path, flow: str, url: str) -> tuple[str, str, settings.Settings, Path]:
    """Run a workflow: the run's id, its status, its settings and its file."""
    folder.mkdir(exist_ok=True)
    file = folder / "flow.yaml"
    file.write_text(flows.FLOWS[flow])
    chosen = settings.load(home=folder / ".runops", browser_mode="shared")
    ended = await start.start(file, {"base_url": url}, host.of_command(chosen))
    return ended.run, ended.status, chosen, file


async def attempt(case: changes.Case, folder: Path, shop: Shop, proxy: changing.Changing) -> Tried:
    """Change the site, and repair the run that fails because of it."""
    case.begin(proxy, shop)
    number, status, chosen, file = await run(folder, case.flow, proxy.url)
    assert status == "failed", f"{case.name}: the run {status}"
    if case.repaired_under is not None:
        case.repaired_under(proxy, shop)
    one = repair.Repair(host.of_command(chosen), effects.Effects("allow", person.Nobody()), lambda _text: None)
    outcome = await one.repair(number, reader.load(file))
    patch = (
        patch_files.unified(patch_files.patches_of(outcome.proof.repairs, number), folder)
        if outcome.proof is not None
        else ""
    )
    return Tried(case, outcome, patch)
