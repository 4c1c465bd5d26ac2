"""Downloads of the browser, by the DevTools protocol."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import tempfile
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Literal, Protocol

from nodes.errors import Phase, SetupError
from nodes.values import sound
from runtime.browser.devtools import connection as devtools_connection
from runtime.browser.devtools import origin_guard
from runtime.system import files

CONNECT_SECONDS = 5.0

_SHOWN_AS_PAGES = ("text/html", "application/xhtml+xml")


@dataclasses.dataclass(slots=True)
class Download:
    guid: str
    url: str
    name: str
    state: Literal["inProgress", "completed", "canceled"] = "inProgress"


class Incoming(Protocol):
    """Files that come while a step waits for one."""

    async def first(self) -> Download | None: ...

    def file(self, incoming: Download) -> Path: ...


class DownloadManager:
    """Receives the files that the browser of one run downloads."""

    def __init__(
        self, address: str, watch: origin_guard.Guard, folder: Path | None, context: str | None = None
    ) -> None:
        """``context`` is the run's browser context, None for the whole browser at ``address``.

        ``folder`` is removed by the owner of the browser; None if the browser writes its files on another machine.
        """
        self._address = address
        self._watch = watch
        self._folder = folder
        self._context = context
        self._ours: devtools_connection.Params = {"browserContextId": context} if context is not None else {}
        self._connection: devtools_connection.Connection | None = None
        self._tabs: dict[str, str] = {}
        """Browser context of every tab so far: a tab that only starts a download is gone before it can be asked."""
        self._tasks: set[asyncio.Task[None]] = set()

    @contextlib.asynccontextmanager
    async def open(self) -> AsyncGenerator[PendingDownloads]:
        """Accept files until the block ends. Raises Disconnected and Refused, SetupError ``download-elsewhere``."""
        if self._folder is None:
            raise elsewhere("before")
        connection = await self._connected()
        with _place(self._folder) as folder:
            counter = PendingDownloads(self, Path(folder))
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
                with contextlib.suppress(devtools_connection.Disconnected, devtools_connection.Refused):
                    await connection.send("Fetch.disable")
                    await self._allow({"behavior": "deny", "eventsEnabled": False})

    async def _connected(self) -> devtools_connection.Connection:
        if self._connection is None:
            # The connection stays open: closing it lifts its download ban, and Chromium would accept any file.
            self._connection = await devtools_connection.Connection.open(self._address, CONNECT_SECONDS)
            self._connection.on("Target.targetCreated", self._tab)
            await self._connection.send("Target.setDiscoverTargets", {"discover": True})
        return self._connection

    async def _allow(self, behaviour: devtools_connection.Params) -> None:
        assert self._connection is not None
        await self._connection.send("Browser.setDownloadBehavior", {**behaviour, **self._ours})

    def _tab(self, params: devtools_connection.Params, _session: str) -> None:
        info = params["targetInfo"]
        self._tabs[info["targetId"]] = str(info.get("browserContextId", ""))

    async def ours(self, frame: str) -> bool:
        if self._context is None:
            return True
        known = self._tabs.get(frame)
        return (known if known is not None else await self._watch.context_of_frame(frame)) == self._context

    def _spawn(self, params: devtools_connection.Params) -> None:
        task = asyncio.get_running_loop().create_task(self._pass_on(params))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _pass_on(self, params: devtools_connection.Params) -> None:
        """Let a document pass; turn one that is no page into a file."""
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
        if self._connection is not None:
            self._connection.post("Browser.cancelDownload", {"guid": guid, **self._ours})

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        if self._connection is not None:
            await self._connection.close()


class PendingDownloads:
    def __init__(self, state: DownloadManager, folder: Path) -> None:
        self._state = state
        self._folder = folder
        self._begun: list[tuple[str, Download]] = []

    def begins(self, params: devtools_connection.Params, _session: str) -> None:
        incoming = Download(params["guid"], params["url"], sound(params["suggestedFilename"]))
        self._begun.append((params["frameId"], incoming))

    def proceeds(self, params: devtools_connection.Params, _session: str) -> None:
        for _frame, incoming in self._begun:
            if incoming.guid == params["guid"]:
                incoming.state = params["state"]

    async def first(self) -> Download | None:
        for frame, incoming in self._begun:
            if await self._state.ours(frame):
                return incoming
        return None

    def file(self, incoming: Download) -> Path:
        """Return the complete file. Raises SetupError ``download-elsewhere`` if it is not on this machine."""
        file = self._folder / incoming.guid
        if not file.exists():
            raise elsewhere("after")
        return file


def _place(within: Path) -> tempfile.TemporaryDirectory[str]:
    """Return a folder for the files. Raises LogError ``file-write-failed``."""
    try:
        within.mkdir(mode=0o700, exist_ok=True)
        return tempfile.TemporaryDirectory(dir=within, ignore_cleanup_errors=True)
    except OSError as error:
        raise files.not_kept("a download", within, error) from None


def elsewhere(phase: Phase) -> SetupError:
    return SetupError(
        "download-elsewhere",
        "the browser of `--browser-url` saves files on its own machine, where the run cannot read them",
        fix="run this workflow with a browser of this machine: leave `--browser-url` out",
        phase=phase,
    )


def _is_page(headers: list[devtools_connection.Params]) -> bool:
    named = {each["name"].lower(): each["value"].lower() for each in headers}
    kind = named.get("content-type", "").partition(";")[0].strip()
    return kind in _SHOWN_AS_PAGES or not kind or named.get("content-disposition", "").startswith("attachment")


def _as_attachment(headers: list[devtools_connection.Params]) -> list[devtools_connection.Params]:
    others = [each for each in headers if each["name"].lower() != "content-disposition"]
    said = next((each["value"] for each in headers if each["name"].lower() == "content-disposition"), "")
    _inline, mark, name = said.partition(";")
    return [*others, {"name": "Content-Disposition", "value": f"attachment{mark}{name}"}]
