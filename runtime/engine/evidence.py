"""Evidence of a failure: the page's address, title, text and a picture, kept beside the run.

It is gathered once the failure is in the log, in a few seconds at most, and changes nothing. What cannot be had is left out.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Protocol, TypeVar, cast

from nodes import pages
from nodes.base import Leaf
from nodes.errors import AuthorError, ModelError, RunOpsError, SiteError
from nodes.values import Json, sound
from runtime.engine.run_state import RunState
from runtime.log import history
from runtime.log.writer import LogWriter

Answer = TypeVar("Answer")

SECONDS = 3.0  # time limit for all of it, in seconds
OBSERVATION = 12_000  # maximum number of characters kept of the page's text


class Page(pages.Page, Protocol):
    """A tab that also returns its page signals."""

    async def signs(self) -> dict[str, Json]: ...


MOST_TOLERATED = 20  # number of tolerated failures with evidence: a loop may have thousands


async def keep(run: RunState, error: RunOpsError, *, tolerated: bool = False) -> None:
    """Keep what the page of the failed step shows, and note it in the log. Never raises for what cannot be had.

    Keeps nothing if no page was open, or if the page has nothing to do with ``error``: the machine, a budget, a person's answer.
    """
    if run.browser is None or not isinstance(error, SiteError | AuthorError | ModelError):
        return
    if tolerated and len(run.history.evidence) >= MOST_TOLERATED:
        return
    page = _page(run, error.path)
    if page is None or page.closed:
        return
    found = Gathering(run.writer)
    data: dict[str, Json] = {"path": error.path, "url": page.url}
    run.browser.bound(SECONDS)
    if page.dialog is not None:
        data["dialog"] = page.dialog
    else:
        mask = run.writer.masker.text
        view = await found.part(lambda: page.look(settle=0))
        if view is not None:
            data["title"] = getattr(view, "title", "")
            # Texts that are side by side are shown as one, and may be a secret only then.
            text = sound(mask(view.masked(mask).render(OBSERVATION)))
            data["observation"] = await found.file("txt", error.path, text.encode())
        data["signs"] = await found.part(page.signs)
        shot = await found.part(lambda: page.screenshot(None, full_page=False, hide=lambda text: mask(text) != text))
        data["screenshot"] = await found.file("png", error.path, shot) if shot is not None else None
        data["no_screenshot"] = found.refused
    run.writer.note("evidence", **{name: value for name, value in data.items() if value is not None})


def _page(run: RunState, path: str | None) -> Page | None:
    assert run.browser is not None
    found = run.loaded.find(path) if path else None
    tab = found.node.works_in if found is not None and isinstance(found.node, Leaf) else None
    try:
        return cast("Page", run.browser.tabs.get(tab))
    except RunOpsError:
        return None


class Gathering:
    def __init__(self, writer: LogWriter) -> None:
        self._writer = writer
        self._until = time.monotonic() + SECONDS
        self.refused: str | None = None
        """Code of the error with which the last part failed; None if it succeeded, or failed with an error that is not ours."""

    async def part(self, gather: Callable[[], Awaitable[Answer]]) -> Answer | None:
        self.refused = None
        try:
            async with asyncio.timeout(max(0.0, self._until - time.monotonic())):
                return await gather()
        except RunOpsError as error:
            self.refused = error.code
            return None
        except Exception:  # noqa: BLE001 - evidence must never hide the failure that it is for
            return None

    async def file(self, ending: str, path: str | None, data: bytes) -> Json:
        """Keep ``data`` among the files of the run. Returns its description for the log; None if it cannot be written."""
        # The id of the failed call, or else the number of the log's last line.
        last = self._writer.history.last(path) if path else None
        number = last.call.call if last is not None else str(self._writer.history.last_seq)
        try:
            return await self._writer.put_file(self._free(f"failed-{number}", ending), data)
        except OSError:
            return None

    def _free(self, stem: str, ending: str) -> str:
        """Return a name that no file of the run has: a step may have kept one with the same name."""
        past = self._writer.history
        parts = (each.get(part) for each in past.evidence for part in ("observation", "screenshot"))
        ours = {str(each["name"]) for each in parts if isinstance(each, dict)}
        name, number = f"{stem}.{ending}", 2
        while name in ours or past.named_elsewhere(name, ""):
            name, number = f"{stem}-{number}.{ending}", number + 1
        return name


def of(past: history.History, path: str | None = None) -> dict[str, Json] | None:
    """Return what was last kept of the step at ``path``, or of the last failed step; None if there is nothing."""
    return next((each for each in reversed(past.evidence) if path is None or each.get("path") == path), None)
