"""Downloads: the files that a site gives, from the click to the whole file.

A browser takes files only while a step waits for one. Its events come over a connection of our own to the browser itself, which sees the
downloads of every tab, also of one that is gone again at once. What a page would only show (a PDF, a table as text) is taken as a file too.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import tempfile
from collections.abc import AsyncGenerator, Generator
from pathlib import Path
from typing import Literal

from playwright.async_api import Error, Response

from nodes.errors import RunOpsError, SiteError
from nodes.pages import Delivery
from nodes.targets import Target
from nodes.values import Json, sound
from runtime.browser import origins, playwright_errors
from runtime.browser.devtools import connection as devtools_connection
from runtime.browser.devtools import origin_guard
from runtime.browser.page.filled import Typed
from runtime.system import files

CONNECT_SECONDS = 5.0

LOOK_SECONDS = 0.02
"""Between two looks whether a file has come."""

_SHOWN_AS_PAGES = ("text/html", "application/xhtml+xml")


@dataclasses.dataclass(slots=True)
class Arrival:
    """A file on its way."""

    guid: str
    url: str
    name: str
    state: Literal["inProgress", "completed", "canceled"] = "inProgress"


class Desk:
    """Where the files of one run's browser arrive."""

    def __init__(self, address: str, watch: origin_guard.Guard, folder: Path, context: str | None) -> None:
        """``address`` is the browser's, ``folder`` one that goes with it; ``context`` is the run's part of it, None for all of it."""
        self._address = address
        self._watch = watch
        self._folder = folder
        self._context = context
        self._connection: devtools_connection.Connection | None = None
        self._tabs: dict[str, str] = {}
        """Browser context of every tab that there ever was: one that only starts a download is gone before anybody asks."""
        self._tasks: set[asyncio.Task[None]] = set()

    @contextlib.asynccontextmanager
    async def open(self) -> AsyncGenerator[Counter]:
        """Take files until the block ends. Raises cdp.Gone and cdp.Refused."""
        connection = await self._connected()
        with self._place() as folder:
            counter = Counter(self, Path(folder))
            connection.on("Browser.downloadWillBegin", counter.begins)
            connection.on("Browser.downloadProgress", counter.proceeds)
            connection.on("Fetch.requestPaused", lambda params, _session: self._spawn(params))
            await self._allow({"behavior": "allowAndName", "downloadPath": folder, "eventsEnabled": True})
            await connection.send(
                "Fetch.enable", {"patterns": [{"requestStage": "Response", "resourceType": "Document"}]}
            )
            try:
                yield counter
            finally:
                with contextlib.suppress(devtools_connection.Gone, devtools_connection.Refused):
                    await connection.send("Fetch.disable")
                    await self._allow({"behavior": "deny", "eventsEnabled": False})

    def _place(self) -> tempfile.TemporaryDirectory[str]:
        """A folder for what arrives. Raises LogError ``file-write-failed``."""
        try:
            self._folder.mkdir(mode=0o700, exist_ok=True)
            return tempfile.TemporaryDirectory(dir=self._folder, ignore_cleanup_errors=True)
        except OSError as error:
            raise files.not_kept("a download", self._folder, error) from None

    async def _connected(self) -> devtools_connection.Connection:
        if self._connection is None:
            # It stays: with a connection goes what it forbade, and Chromium would take any file.
            self._connection = await devtools_connection.Connection.open(self._address, CONNECT_SECONDS)
            self._connection.on("Target.targetCreated", self._tab)
            await self._connection.send("Target.setDiscoverTargets", {"discover": True})
        return self._connection

    async def _allow(self, behaviour: devtools_connection.Params) -> None:
        assert self._connection is not None
        mine: devtools_connection.Params = {"browserContextId": self._context} if self._context is not None else {}
        await self._connection.send("Browser.setDownloadBehavior", {**behaviour, **mine})

    def _tab(self, params: devtools_connection.Params, _session: str) -> None:
        info = params["targetInfo"]
        self._tabs[info["targetId"]] = str(info.get("browserContextId", ""))

    async def ours(self, frame: str) -> bool:
        """Whether a frame belongs to the run."""
        if self._context is None:
            return True
        known = self._tabs.get(frame)
        return (known if known is not None else await self._watch.context_of_frame(frame)) == self._context

    def _spawn(self, params: devtools_connection.Params) -> None:
        task = asyncio.get_running_loop().create_task(self._pass_on(params))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _pass_on(self, params: devtools_connection.Params) -> None:
        """Let a document pass; one that is no page becomes a file."""
        assert self._connection is not None
        answer: devtools_connection.Params = {"requestId": params["requestId"]}
        headers = params.get("responseHeaders") or []
        is_file = 200 <= params.get("responseStatusCode", 0) < 300 and not _is_page(headers)
        if is_file and await self.ours(params["frameId"]):
            answer |= {"responseCode": params["responseStatusCode"], "responseHeaders": _as_attachment(headers)}
            self._connection.post("Fetch.continueResponse", answer)
        else:
            self._connection.post("Fetch.continueRequest", answer)

    def cancel(self, guid: str) -> None:
        """Break a download off."""
        if self._connection is not None:
            mine: devtools_connection.Params = {"browserContextId": self._context} if self._context is not None else {}
            self._connection.post("Browser.cancelDownload", {"guid": guid, **mine})

    async def close(self) -> None:
        """Let go of the browser."""
        for task in self._tasks:
            task.cancel()
        if self._connection is not None:
            await self._connection.close()


class Counter:
    """The files that come while one step waits."""

    def __init__(self, desk: Desk, folder: Path) -> None:
        self._desk = desk
        self._folder = folder
        self._begun: list[tuple[str, Arrival]] = []

    def begins(self, params: devtools_connection.Params, _session: str) -> None:
        """A download begins."""
        arrival = Arrival(params["guid"], params["url"], sound(params["suggestedFilename"]))
        self._begun.append((params["frameId"], arrival))

    def proceeds(self, params: devtools_connection.Params, _session: str) -> None:
        """More of a file has come."""
        for _frame, arrival in self._begun:
            if arrival.guid == params["guid"]:
                arrival.state = params["state"]

    async def first(self) -> Arrival | None:
        """The first file that came for the run."""
        for frame, arrival in self._begun:
            if await self._desk.ours(frame):
                return arrival
        return None

    def file(self, arrival: Arrival) -> Path:
        """Where the file stands."""
        return self._folder / arrival.guid


def _is_page(headers: list[devtools_connection.Params]) -> bool:
    named = {each["name"].lower(): each["value"].lower() for each in headers}
    kind = named.get("content-type", "").partition(";")[0].strip()
    return kind in _SHOWN_AS_PAGES or not kind or named.get("content-disposition", "").startswith("attachment")


def _as_attachment(headers: list[devtools_connection.Params]) -> list[devtools_connection.Params]:
    others = [each for each in headers if each["name"].lower() != "content-disposition"]
    said = next((each["value"] for each in headers if each["name"].lower() == "content-disposition"), "")
    _inline, mark, name = said.partition(";")
    return [*others, {"name": "Content-Disposition", "value": f"attachment{mark}{name}"}]


class Downloads(Typed):
    """Takes files from the site of a tab."""

    @contextlib.asynccontextmanager
    async def download(self, target: Target | None, url: str | None) -> AsyncGenerator[Delivery]:
        """The file that a click on the element, or the address, gives; it is there until the block ends."""
        what = url if url is not None else str(target)
        try:
            async with self._run.desk.open() as counter:
                with self._refusals() as refusals:
                    if target is not None:
                        await self._see_to_typed()
                        await self._do(target, lambda found, timeout: found.click(timeout=timeout), driver_waits=True)
                    else:
                        await self._load(url or "")
                    arrival = await self._arrived(counter, what, refusals)
                yield Delivery(arrival.name, counter.file(arrival))
        except (devtools_connection.Gone, devtools_connection.Refused) as error:
            raise self._failed(what, f"the browser takes no files: {error}") from None

    async def _load(self, url: str) -> None:
        self._run.admit(url)
        self._run.begin(self.page, driver_waits=True)
        try:
            answer = await self.page.goto(url, timeout=self._patience.milliseconds())
        except Error as error:
            if not playwright_errors.became_download(error):
                raise await self._inquiry.not_loaded(error, url) from None
        else:
            if answer is not None and answer.status >= 400:
                raise self._failed(url, _said(answer))
            raise self._none_began(url, "it is shown as a page")

    @contextlib.contextmanager
    def _refusals(self) -> Generator[list[Response]]:
        """The answers of the site that bring no file: errors, and the empty ones."""
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

    async def _arrived(self, counter: Counter, what: str, refusals: list[Response]) -> Arrival:
        arrival: Arrival | None = None
        while arrival is None or arrival.state == "inProgress":
            if refused := self._run.refusal():
                raise refused
            arrival = arrival or await counter.first()
            if arrival is None and (refusal := _of_document(refusals)):
                raise self._failed(what, _said(refusal))
            if arrival is not None and not self._run.allowed.document(arrival.url):
                self._run.desk.cancel(arrival.guid)
                raise origin_guard.refused(arrival.url, self._run.allowed, "download")
            if self._patience.over():
                if arrival is None:
                    raise self._none_began(what, "nothing came")
                self._run.desk.cancel(arrival.guid)
                raise self._failed(what, "it did not come to its end in time")
            await asyncio.sleep(LOOK_SECONDS)
        if arrival.state == "canceled":
            status = next((each.status for each in refusals if each.url == arrival.url), None)
            raise self._failed(what, f"the site answered {status}" if status else "it broke off")
        if not counter.file(arrival).stat().st_size:
            raise self._failed(what, f"the file {arrival.name} is empty")
        return arrival

    def _failed(self, what: str, why: str) -> SiteError:
        return SiteError(
            "download-failed",
            f"no file came from {what}: {why} (waited {self._patience.waited():g} s)",
            mend="look at what the site answers there; a large file may need a larger `timeout`",
            phase="after",
            evidence=self._evidence_of(),
        )

    def _none_began(self, what: str, why: str) -> RunOpsError:
        return SiteError(
            "no-download",
            f"no download began from {what}: {why} (waited {self._patience.waited():g} s)",
            mend="look at the page: it may ask for a sign-in, or open a page instead; then point at the link of the file itself",
            phase="after",
            evidence=self._evidence_of(),
        )

    def _evidence_of(self) -> dict[str, Json]:
        return {"page": origins.without_query(self.page.url), "waited": self._patience.waited()}


def _said(answer: Response) -> str:
    return f"the site answered {answer.status} {answer.status_text}".rstrip()


def _of_document(refusals: list[Response]) -> Response | None:
    """The answer that a navigation got: what else a page asks for in vain is its own affair."""
    return next((each for each in refusals if each.request.is_navigation_request()), None)
