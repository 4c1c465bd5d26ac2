"""The signed-in state of a browser: cookies, local storage and IndexedDB, as far as they belong to origins that the workflow allows."""

from __future__ import annotations

import urllib.parse
from typing import Any

from nodes.values import Json
from runtime.browser.origins import Allowed
from runtime.browser.page.access import ElementAccess


class SignedIn(ElementAccess):
    """Reads the signed-in state of a tab's browser, and takes one over."""

    async def signed_in(self) -> Json:
        """The state: for ``sign_in`` only."""
        state: Any = await self._read(None, lambda: self.page.context.storage_state(indexed_db=True))
        return within(state, self._run.allowed)

    async def sign_in(self, state: Json) -> None:
        """Put a state in the place of what the browser holds; what belongs to no allowed origin is left out."""
        taken: Any = within(state, self._run.allowed)
        await self._read(None, lambda: self.page.context.set_storage_state(taken))


def within(state: Json, allowed: Allowed) -> Json:
    """Playwright's storage state without what belongs to none of these origins."""
    hosts = [urllib.parse.urlsplit(each).hostname or "" for each in allowed]
    return {
        "cookies": [each for each in state["cookies"] if any(_sent_to(each["domain"], host) for host in hosts)],
        "origins": [each for each in state["origins"] if each["origin"] in allowed],
    }


def _sent_to(domain: str, host: str) -> bool:
    """Whether a cookie of this domain is sent to the host: a leading dot takes in what is below it."""
    plain = domain.lower().strip("[]")
    return host == plain.lstrip(".") or (plain.startswith(".") and host.endswith(plain))
