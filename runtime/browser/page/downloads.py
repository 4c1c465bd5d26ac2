"""Downloads from a site, from the click to the complete file.

A browser accepts files only while a step waits for one. The events come over our own connection to the browser, which sees
the downloads of every tab, even of one that closes at once. Documents that a page would only show (a PDF, a table as text)
are saved as files too.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Generator

from playwright.async_api import Error, Response

from nodes.errors import SiteError
from nodes.pages import Delivery
from nodes.targets import Target
from runtime.browser import origins, playwright_errors
from runtime.browser.devtools import connection as devtools_connection
from runtime.browser.devtools import downloads, origin_guard
from runtime.browser.page.filled import Filled

LOOK_SECONDS = 0.02  # seconds between two checks for a file


class Downloads(Filled):
    @contextlib.asynccontextmanager
    async def download(self, target: Target | None, url: str | None) -> AsyncGenerator[Delivery]:
        what = url if url is not None else str(target)
        try:
            async with self._run.downloads.open() as counter:
                with self._refusals() as refusals:
                    if target is not None:
                        await self._refill_changed()
                        await self._do(target, lambda found, timeout: found.click(timeout=timeout), driver_waits=True)
                    else:
                        await self._load(url or "")
                    incoming = await self._arrived(counter, what, refusals)
                yield Delivery(incoming.name, counter.file(incoming))
        except (devtools_connection.Disconnected, devtools_connection.Refused) as error:
            raise self._failed(what, f"the browser takes no files: {error}") from None

    async def _load(self, url: str) -> None:
        self._run.admit(url)
        self._run.begin(self.page, driver_waits=True)
        try:
            answer = await self.page.goto(url, timeout=self._deadline.milliseconds())
        except Error as error:
            if not playwright_errors.became_download(error):
                raise await self.diagnosis.not_loaded(error, url) from None
        else:
            if answer is not None and answer.status >= 400:
                raise self._failed(url, _said(answer))
            raise self._none_began(url, "it is shown as a page")

    @contextlib.contextmanager
    def _refusals(self) -> Generator[list[Response]]:
        """Collect the answers without a file: errors and empty ones."""
        seen: list[Response] = []

        def take(response: Response) -> None:
            if response.status in (204, 205) or response.status >= 400:
                seen.append(response)

        context = self.page.context
        context.on("response", take)
        try:
            yield seen
        finally:
            context.remove_listener("response", take)

    async def _arrived(self, counter: downloads.Incoming, what: str, refusals: list[Response]) -> downloads.Download:
        incoming: downloads.Download | None = None
        while incoming is None or incoming.state == "inProgress":
            if refused := self._run.refusal():
                raise refused
            incoming = incoming or await counter.first()
            # Other failed requests of a page do not matter.
            refusal = next((each for each in refusals if each.request.is_navigation_request()), None)
            if incoming is None and refusal is not None:
                raise self._failed(what, _said(refusal))
            if incoming is not None and not self._run.allowed.document(incoming.url):
                self._run.downloads.cancel(incoming.guid)
                raise origin_guard.refused(incoming.url, self._run.allowed, "download")
            if self._deadline.over():
                if incoming is None:
                    raise self._none_began(what, "nothing came")
                self._run.downloads.cancel(incoming.guid)
                raise self._failed(what, "it was not complete in time")
            await asyncio.sleep(LOOK_SECONDS)
        if incoming.state == "canceled":
            status = next((each.status for each in refusals if each.url == incoming.url), None)
            raise self._failed(what, f"the site answered {status}" if status else "it broke off")
        if not counter.file(incoming).stat().st_size:
            raise self._failed(what, f"the file {incoming.name} is empty")
        return incoming

    def _failed(self, what: str, why: str) -> SiteError:
        message = f"no file came from {what}: {why} (waited {self._deadline.waited():g} s)"
        fix = "look at what the site answers there; a large file may need a larger `timeout`"
        return self.diagnosis.page_error("download-failed", message, fix, "after", page=self._here)

    def _none_began(self, what: str, why: str) -> SiteError:
        message = f"no download began from {what}: {why} (waited {self._deadline.waited():g} s)"
        fix = "look at the page: it may ask for a sign-in, or open a page instead; then point at the link of the file itself"
        return self.diagnosis.page_error("no-download", message, fix, "after", page=self._here)

    @property
    def _here(self) -> str:
        return origins.without_query(self.page.url)


def _said(answer: Response) -> str:
    return f"the site answered {answer.status} {answer.status_text}".rstrip()
