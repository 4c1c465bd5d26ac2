"""Effects of a skipped step on the next one: the page to which it leads, and the rules that hold there.

A step that waits on the page in its ``verify`` makes the next one wait. If it is skipped, the next step has to wait by itself. If the
browser is another one, the page has to be loaded first.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from nodes.errors import Paused, SiteError
from nodes.pages import Page
from nodes.rules import Rule
from nodes.values import Json
from runtime.browser import origins

if TYPE_CHECKING:
    from runtime.browser import port
    from runtime.engine import scopes


@dataclasses.dataclass(frozen=True, slots=True)
class Verified:
    """Rules that held on the page, and the seconds that the page had to meet them."""

    rules: Sequence[Rule]
    seconds: float

    def as_json(self) -> dict[str, Json] | None:
        said: list[Json] = [rule.model_dump(mode="json", by_alias=True, exclude_defaults=True) for rule in self.rules]
        return {"rules": said, "seconds": self.seconds} if said else None

    @staticmethod
    def read(kept: dict[str, Json] | None) -> Verified:
        if not kept:
            return NOTHING
        return Verified([Rule.model_validate(each) for each in kept["rules"]], float(kept["seconds"]))


NOTHING = Verified((), 0.0)


@dataclasses.dataclass(frozen=True, slots=True)
class ExpectedPage:
    """Page that must be reached before the next step may work on it."""

    verified: Verified
    address: str | None = None  # address that the page must have first, unless the next step loads another one
    program: scopes.Program | None = None  # file whose origins count on the way there
    strict: bool = True
    """True if nothing may be read while the rules do not hold on the loaded page; False if that step was skipped by decision."""
    lost: bool = False  # true if the page was loaded and the rules did not hold on it, or if it may not be loaded
    guessed: bool = False
    """True if the log does not have the address to which the action led: ``address`` is then the one at which it was done."""

    async def arrive(
        self, browser: port.Browser, page: Page, tell: Callable[[str], None], *, loads: bool, reads: bool
    ) -> ExpectedPage | None:
        """Load the page and wait for the rules; do nothing if the next step ``loads`` a page itself. Returns what is still open after that.

        Raises Paused ``page-lost`` if a step ``reads`` a page that was loaded in place of the lost one and the rules do not hold: it would
        read another page. A step that acts needs its element to be there, and its action may put the page right.
        """
        # A step that acts waits for its element anyway; for one that reads a pause is the alternative.
        seconds = self.verified.seconds if reads or not self.guessed else min(GUESS_SECONDS, self.verified.seconds)
        if self.address is None:
            await self._wait(browser, page, tell, seconds)
            return None
        if loads or (not self.lost and await self._loaded(browser, page, tell, seconds)) or not self.strict:
            return None
        if not reads:
            return dataclasses.replace(self, lost=True)
        raise Paused(
            "page-lost",
            "a side effect is done, and the page to which it leads is gone with the browser"
            + "".join(f": {rule} does not hold at {page.url}" for rule in self.verified.rules[:1]),
            fix="let a `goto` load what the next step reads, and continue with `runops resume RUN --allow-changed`;"
            " or take the page as it is with `--from STEP`",
            evidence={"address": page.url, "calls": []},
        )

    async def _loaded(self, browser: port.Browser, page: Page, tell: Callable[[str], None], seconds: float) -> bool:
        if self.program is not None:
            self.program.confine(browser)
        for address in (*self._named(), self.address):
            browser.bound(LOAD_SECONDS)
            await page.goto(str(address), anew=True)
            if await self._wait(browser, page, tell, seconds):
                return True
        return False

    async def _wait(self, browser: port.Browser, page: Page, tell: Callable[[str], None], seconds: float) -> bool:
        """True if the rules held within ``seconds``. If not, the next step reports what is wrong."""
        browser.bound(seconds)
        try:
            for rule in self.verified.rules:
                tell(f"verify {rule} of the step before, which is passed over")
                await page.wait_for(rule)
        except SiteError:
            return False
        return True

    def _named(self) -> list[str]:
        at = origins.origin(self.address or "")
        globs = [rule.url for rule in self.verified.rules if rule.url is not None]
        return [f"{at}{glob.removeprefix('**')}" for glob in globs if at is not None and _ONE_PATH.fullmatch(glob)]


_ONE_PATH = re.compile(r"\*\*(/[\w.~%-]+)+/?")  # A glob that matches one path of a site
LOAD_SECONDS = 30.0  # seconds that a page may take to load for the next step

GUESS_SECONDS = 2.0
"""Seconds that rules may take to hold on a page that was loaded anew at a guessed address, before a step that acts there."""
