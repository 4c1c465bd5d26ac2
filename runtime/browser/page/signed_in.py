"""Signed-in state of a browser: cookies, local storage and IndexedDB of the origins that the workflow allows."""

from __future__ import annotations

import urllib.parse
from typing import Any

from nodes.values import Json
from runtime.browser.origins import Allowed
from runtime.browser.page.access import ElementAccess


class SignedIn(ElementAccess):
    """Reads and replaces the signed-in state of a tab's browser."""

    async def signed_in(self) -> Json:
        """Return the state; only ``sign_in`` reads it."""
        state: Any = await self._read(None, lambda: self.page.context.storage_state(indexed_db=True))
        return within(state, self._run.allowed)

    async def sign_in(self, state: Json) -> None:
        """Replace the browser's state; leave out what belongs to no allowed origin."""
        taken: Any = within(state, self._run.allowed)
        await self._read(None, lambda: self.page.context.set_storage_state(taken))


def within(state: Json, allowed: Allowed) -> Json:
    """Return Playwright's storage state without the parts that belong to none of these origins."""
    hosts = [urllib.parse.urlsplit(each).hostname or "" for each in allowed]
    return {
        "cookies": [each for each in state["cookies"] if any(_sent_to(each["domain"], host) for host in hosts)],
        "origins": [each for each in state["origins"] if each["origin"] in allowed],
    }


def _sent_to(domain: str, host: str) -> bool:
    """Return True if a cookie of this domain is sent to the host: a leading dot includes subdomains."""
    plain = domain.lower().strip("[]")
    return host == plain.lstrip(".") or (plain.startswith(".") and host.endswith(plain))
