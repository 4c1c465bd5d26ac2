"""Evidence of a failure: the page's address, title, text and a picture, the pages after the steps before it, and a trace, kept beside the run.

It is gathered once the failure is in the log, in a few seconds at most, and changes nothing. What cannot be had is left out.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Literal, Protocol, TypeVar, cast

from nodes import pages
from nodes.base import Leaf
from nodes.errors import AuthorError, ModelError, RunOpsError, SiteError
from nodes.targets import Target
from nodes.values import Json, sound
from runtime import events
from runtime.browser import port
from runtime.display.text import cut
from runtime.engine import trace_file, tracing, video
from runtime.engine.run_state import RunState
from runtime.log import entries, history
from runtime.log.writer import LogWriter
from runtime.system import tasks

Answer = TypeVar("Answer")

SECONDS = 3.0  # time limit for all of it, in seconds
MESSAGES = 20  # number of messages that are kept
MESSAGE = 300  # maximum number of columns kept of each
OBSERVATION = 12_000  # maximum number of characters kept of the page's text


class Page(pages.Page, tracing.Page, Protocol):
    """A tab that also returns its page signals, and pictures without canvases."""

    async def signs(self) -> dict[str, Json]: ...

    async def screenshot(
        self, target: Target | None, *, full_page: bool, hide: Callable[[str], bool], canvases: bool = False
    ) -> bytes: ...


MOST_TOLERATED = 20  # number of tolerated failures with evidence: a loop may have thousands


async def keep(run: RunState, error: RunOpsError, *, tolerated: bool = False) -> bool:
    """Keep what the page of the failed step shows, and note it in the log; return True if a trace is kept, too.

    Never raises for what cannot be had.
    Keeps nothing if no page was open, or if the page has nothing to do with ``error``: the machine, a budget, a person's answer.
    """
    if run.browser is None or not isinstance(error, SiteError | AuthorError | ModelError):
        return False
    if tolerated and len(run.history.evidence) >= MOST_TOLERATED:
        return False
    page = _page(run, error.path)
    await run.tracing.settled()
    found = Gathering(run.writer)
    data: dict[str, Json] = {"path": error.path}
    if page is not None and not page.closed:
        run.browser.bound(SECONDS)
        await _with_page(run, page, error.path, data, found)
    elif run.tracing.frames:
        data["url"] = run.tracing.frames[-1].url
    else:
        return False
    if run.tracing.mode != "off":
        await _with_steps_before(run, error.path, data, found)
    if run.tracing.mode == "on-failure" or (run.tracing.mode == "on" and not tolerated):
        data["trace"] = await _recording(run, found, "trace", error.path)
    run.writer.note("evidence", **{name: value for name, value in data.items() if value is not None})
    return data.get("trace") is not None


async def _with_page(run: RunState, page: Page, path: str | None, data: dict[str, Json], found: Gathering) -> None:
    """Add what the page shows."""
    data["url"] = page.url
    if page.dialog is not None:
        data["dialog"] = page.dialog
        return
    mask = run.writer.masker.text
    view = await found.part(lambda: page.look(settle=0))
    if view is not None:
        data["title"] = getattr(view, "title", "")
        text = await found.part(lambda: _rendered(view, mask))
        data["observation"] = await found.file("txt", path, text.encode()) if text is not None else None
    data["signs"] = await found.part(page.signs)
    hide, secrets = run.writer.masker.holds, not run.writer.masker.idle
    # Nobody asked for the picture, so it shows rather too little than too much.
    shot = await found.part(lambda: page.screenshot(None, full_page=False, hide=hide, canvases=secrets))
    data["screenshot"] = await found.file("png", path, shot) if shot is not None else None
    data["no_screenshot"] = found.refused
    last = run.history.last(path) if path else None
    if path and last is not None and shot is not None:
        run.tracing.failed(path, last.call, page, shot)


async def _rendered(view: pages.View, mask: Callable[[str], str]) -> str:
    # Texts that are side by side are shown as one, and may be a secret only then.
    return sound(mask(view.masked(mask).render(OBSERVATION)))


async def recordings(run: RunState, *, traced: bool) -> list[dict[str, Json]]:
    """Keep the trace and the video of the whole run, as far as they were asked for. ``traced``: its trace is kept already."""
    await run.tracing.settled()
    found = Gathering(run.writer)
    kept: list[tuple[str, Json]] = []
    if run.tracing.mode == "on" and not traced:
        kept.append(("application/zip", await _recording(run, found, "trace", None)))
    if run.tracing.video:
        kept.append((video.TYPE, await _recording(run, found, "video", None)))
    return [{**each, "type": kind} for kind, each in kept if isinstance(each, dict)]


async def _recording(run: RunState, found: Gathering, what: Literal["trace", "video"], path: str | None) -> Json:
    """Keep the trace or the video of the run until now, or say why there is none: a run must never fail at that."""
    try:
        if what == "trace":
            return await found.file("zip", path, trace(run), what)
        shots = [video.Shot(each.seconds, each.picture) for each in run.tracing.frames if each.picture is not None]
        return await found.file("webm", path, await tasks.in_thread(video.encode, shots), what)
    except Exception as error:  # noqa: BLE001 - whatever the pictures and the log hold
        run.emit(events.Said(f"no {what} is kept: {error}"))
        return None


async def _with_steps_before(run: RunState, path: str | None, data: dict[str, Json], found: Gathering) -> None:
    """Add the pages after the steps before it, and the messages of pages meanwhile."""
    frames: list[Json] = []
    before = run.tracing.steps_before(path)
    for frame in before:
        shown: dict[str, Json] = {"path": frame.path, "at": frame.at, "url": frame.url}
        shown |= {"along": frame.along, "no_screenshot": frame.refused}
        if frame.picture is not None:
            shown["screenshot"] = await found.file(tracing.ending(frame.picture), frame.path, frame.picture, "page")
        frames.append({name: value for name, value in shown.items() if value is not None})
    data["frames"] = frames
    assert run.browser is not None
    data["messages"] = recent(run.browser.messages, before[0].at if before else None, run.writer)


def recent(messages: Sequence[port.Message], since: str | None, writer: LogWriter) -> list[Json]:
    """Return the newest errors among the messages, as a log holds them, from the time ``since`` on."""
    told: list[Json] = []
    for each in messages:
        at = entries.moment(each.at)
        if (since is None or at >= since) and (each.kind != "console" or each.level in ("error", "warning")):
            text = cut(" ".join(writer.masker.text(each.text).split()), MESSAGE)
            said: dict[str, Json] = {"at": at, "kind": each.kind, "text": text, "url": each.url, "status": each.status}
            told.append({name: value for name, value in said.items() if value is not None})
    return told[-MESSAGES:]


def trace(run: RunState) -> bytes:
    """Return the trace of the run until now."""
    pictures = [
        trace_file.Picture(each.call, each.at, each.picture)
        for each in run.tracing.frames
        if each.picture and each.along is None
    ]
    messages = run.browser.messages if run.browser is not None else ()
    return trace_file.write(run.history, pictures, messages, run.writer.masker)


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
        self._given: set[str] = set()
        self._kept: dict[bytes, Json] = {}
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

    async def file(self, ending: str, path: str | None, data: bytes, what: str = "failed") -> Json:
        """Keep ``data`` among the files of the run, once. Returns its description for the log; None if it cannot be written."""
        if data in self._kept:
            return self._kept[data]
        # The id of the failed call, or else the number of the log's last line.
        last = self._writer.history.last(path) if path else None
        number = last.call.call if last is not None else str(self._writer.history.last_seq)
        try:
            self._kept[data] = await self._writer.put_file(self._free(f"{what}-{number}", ending), data)
        except OSError:
            return None
        return self._kept[data]

    def _free(self, stem: str, ending: str) -> str:
        """Return a name that no file of the run has: a step may have kept one with the same name."""
        past = self._writer.history
        kept = [shown for each in past.evidence for shown in (each, *(each.get("frames") or ()))]
        parts = (each.get(part) for each in kept for part in ("observation", "screenshot", "trace"))
        ours = (
            {str(each["name"]) for each in past.files}
            | {str(each["name"]) for each in parts if isinstance(each, dict)}
            | self._given
        )
        name, number = f"{stem}.{ending}", 2
        while name in ours or past.named_elsewhere(name, ""):
            name, number = f"{stem}-{number}.{ending}", number + 1
        self._given.add(name)
        return name


def of(past: history.History, path: str | None = None) -> dict[str, Json] | None:
    """Return what was last kept of the step at ``path``, or of the last failed step; None if there is nothing."""
    return next((each for each in reversed(past.evidence) if path is None or each.get("path") == path), None)
